//! Whether a body is worth lanes, and how many.

use std::fmt;

use super::table::{Access, Kind};
use super::{Costs, Estimate, Frequencies, Gain, ONE, copied_bytes};
use crate::llvm::{Opcode, Value};
use crate::spmd::examine::Refused;
use crate::spmd::shape::Shape;

/// Lanes have to be so many times as fast, in hundredths. Estimates are not better than that.
const LEAST_GAIN: Gain = Gain(125);

/// More lanes than that have to be so many times as fast as fewer, in hundredths. Rows have more work-items that fill no vector then.
const MANY: (u32, u64) = (16, 115);

/// What costs much in lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Gathers,
    Scatters,
    MaskedAccesses,
    Calls,
    Atomics,
    Divisions,
}

impl Part {
    const ALL: [Self; 6] =
        [Self::Gathers, Self::Scatters, Self::MaskedAccesses, Self::Calls, Self::Atomics, Self::Divisions];
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gathers => "loads from scattered places",
            Self::Scatters => "stores to scattered places",
            Self::MaskedAccesses => "accesses of some lanes",
            Self::Calls => "calls for one lane after the other",
            Self::Atomics => "atomic operations for one lane after the other",
            Self::Divisions => "divisions for one lane after the other",
        })
    }
}

impl<'c> Costs<'_, 'c> {
    /// The number of lanes with the lowest cost for an item; of equal ones, the smallest. Rows have at most so many items. The error says why none is worth it.
    pub(in crate::spmd) fn judge(&self, most_items: u64) -> Result<Estimate, Refused<'c>> {
        let has_divergent_loop = self.graph.loops().any(|of| self.shapes.is_divergent(of));
        let candidates: &[u32] = match self.table.has_masks {
            true => &[8, 16, 32],
            // Two registers for each value are many for a loop that waits for the longest of the lanes.
            false if has_divergent_loop => &[4, 8],
            false => &[4, 8, 16],
        };
        let estimates = candidates.iter().filter(|lanes| u64::from(**lanes) <= most_items).map(|lanes| self.of(*lanes));
        let best = estimates.reduce(|best, next| {
            let least = if next.lanes > MANY.0 { MANY.1 } else { 100 };
            if next.gain().0 > best.gain().0 * least / 100 { next } else { best }
        });
        let Some(best) = best else { return Err(Refused::new(format!("its rows have {most_items} work-items"))) };
        if best.gain() >= LEAST_GAIN { Ok(best) } else { Err(self.against(best)) }
    }

    /// Why lanes are not worth it: what takes most of their time.
    fn against(&self, estimate: Estimate) -> Refused<'c> {
        let reason = format!("in lanes they would be {}", estimate.gain());
        let frequencies = Frequencies::of(self.graph, self.shapes, estimate.lanes);
        let mut costs = Part::ALL.map(|part| (part, 0_u64, None));
        for &block in self.graph.order() {
            let whole = frequencies.whole[block.index()];
            for instruction in self.graph.block(block).instructions() {
                let Some(part) = self.part(instruction, whole) else { continue };
                let busy = self.vector(instruction, (block, whole), estimate.lanes).busy;
                let cost = busy.saturating_mul(frequencies.vector[block.index()]) / ONE;
                let (_, sum, dearest) = &mut costs[part as usize];
                *sum = sum.saturating_add(cost);
                if dearest.is_none_or(|(known, _)| cost > known) {
                    *dearest = Some((cost, instruction));
                }
            }
        }
        let dearest = costs.into_iter().max_by_key(|(_, sum, _)| *sum);
        match dearest {
            Some((part, sum, Some((_, at)))) if sum >= estimate.vector / 4 => {
                let percent = sum.saturating_mul(100) / estimate.vector.max(1);
                Refused {
                    reason: format!("{reason}, with {} % of the time for {part}", percent.min(100)),
                    at: Some(at),
                }
            }
            _ => Refused::new(reason),
        }
    }

    /// The part that an instruction belongs to, if it is a dear one. Of its runs, `whole` are without a mask.
    fn part(&self, instruction: Value<'c>, whole: u64) -> Option<Part> {
        let kind = self.kind(instruction);
        if kind == Kind::Access {
            return match self.place(instruction)? {
                Access::Anywhere if instruction.is(Opcode::STORE) => Some(Part::Scatters),
                Access::Anywhere => Some(Part::Gathers),
                Access::Consecutive if whole < ONE => Some(Part::MaskedAccesses),
                _ => None,
            };
        }
        match kind {
            Kind::Atomic | Kind::AtomicAccess => Some(Part::Atomics),
            _ if self.shapes.shape(instruction) != Shape::Varying => None,
            Kind::Call if copied_bytes(instruction).is_none() => Some(Part::Calls),
            Kind::Divide => Some(Part::Divisions),
            _ => None,
        }
    }
}
