//! Whether a body is worth lanes, and how many.

use std::fmt;

use super::table::{Access, Kind};
use super::{Costs, Estimate, Frequencies, Gain, ONE, copied_bytes};
use crate::llvm::{Opcode, Value};
use crate::spmd::examine::Refused;
use crate::spmd::shape::Shape;

/// Lanes have to be so many times as fast, in hundredths. Estimates are not better than that.
const LEAST_GAIN: Gain = Gain(125);

/// The most items that are expected of a row of a group.
const ROW_OF_A_GROUP: u64 = 16;

/// More lanes than that have to be [`GAIN_OF_MANY`] times as fast as fewer, on processors with registers for masks. Rows have more work-items that
/// fill no vector then.
const MANY: u32 = 16;
/// More lanes than that have to be so in loops on processors whose registers have half the size.
const MANY_OF_256: u32 = 8;
/// What waits for memory computes less than that for each byte, in eighths of a cycle.
const LITTLE_FOR_A_BYTE: u64 = 4;
/// In hundredths.
const GAIN_OF_MANY: u64 = 115;

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
    pub(in crate::spmd) fn judge(&self, most_items: Option<u64>, is_of_groups: bool) -> Result<Estimate, Refused<'c>> {
        let has_divergent_loop = self.graph.loops().any(|of| self.shapes.is_divergent(of));
        let candidates: &[u32] = match self.table.has_masks {
            true => &[8, 16, 32],
            // Two registers for each value are many for a loop that waits for the longest of the lanes.
            false if has_divergent_loop => &[4, 8],
            false => &[4, 8, 16],
        };
        let most_items = most_items.unwrap_or(if is_of_groups { ROW_OF_A_GROUP } else { u64::MAX });
        let has_loop = self.graph.loops().next().is_some();
        let most = if self.table.has_masks || has_loop || is_of_groups { u32::MAX } else { self.most_for_memory() };
        let fits = |lanes: &&u32| u64::from(**lanes) <= most_items && **lanes <= most;
        let estimates = candidates.iter().filter(fits).map(|lanes| self.of(*lanes));
        let best = estimates.reduce(|best, next| {
            let is_many = if self.table.has_masks { next.lanes > MANY } else { has_loop && next.lanes > MANY_OF_256 };
            let least = if is_many { GAIN_OF_MANY } else { 100 };
            if next.gain().0 > best.gain().0 * least / 100 { next } else { best }
        });
        let Some(best) = best else { return Err(Refused::new(format!("its rows have {most_items} work-items"))) };
        if best.gain() >= LEAST_GAIN { Ok(best) } else { Err(self.against(best)) }
    }

    /// The most lanes of a body without loops, on processors without registers for masks. What waits for memory is not faster by more registers for
    /// each value, whose accesses are farther apart. Memory of a group is near.
    fn most_for_memory(&self) -> u32 {
        match self.work_for_memory() {
            Some((moved, computed)) if computed <= moved => self.table.lanes(self.widest()),
            Some((moved, computed)) if computed <= LITTLE_FOR_A_BYTE * moved => MANY_OF_256,
            _ => u32::MAX,
        }
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
                Access::Consecutive | Access::Fields if whole < ONE => Some(Part::MaskedAccesses),
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
