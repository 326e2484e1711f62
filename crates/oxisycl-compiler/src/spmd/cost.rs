//! What a body costs for one item, and in lanes: an estimate by a table of instructions, before any code is made.
//!
//! A region costs the time that its instructions keep the processor busy. A loop may take longer: its longest chain of results from one iteration to the next.
//! `frequency` says how often blocks run, `table` has the numbers, and `registers` adds what does not fit into registers. `judge` decides.
//!
//! All numbers are integers, so that a build has the same bytes on each machine. Caches, and what LLVM makes of a body by itself, are not looked at.

mod fields;
mod frequency;
mod judge;
mod registers;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use oxisycl_image::HostLevel;
use rustc_hash::FxHashMap;

use self::frequency::{Frequencies, ONE, part};
use self::table::{Access, Kind, Table, Work, bits};
use super::cfg::{BlockIdx, Graph, LoopIdx, Node};
use super::checks;
use super::fields::{Field, Groups};
use super::packed::packed_bytes;
use super::plan::{Guard, guard, has_all_lanes, wants_copy};
use super::shape::{Shape, Shapes, Status};
use super::singly::{is_copy, is_made_singly};
use crate::llvm::{Layout, Opcode, Type, Value};

/// The loop over items: one more item, or one more vector.
const NEXT_ITEM: u64 = 8;
/// A branch on whether some lane, or all lanes, are in a mask.
const ASK_MASK: u64 = 20;
/// A bounds check of all lanes by two scalar comparisons.
const SCALAR_CHECK: u64 = 12;
/// How late fields are there.
const OF_FIELDS: u64 = 64;
/// The lanes by which groups of fields are judged.
const LANES_OF_GROUPS: u32 = 8;

/// The time that a body takes, in eighths of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Estimate {
    /// For one item, without lanes.
    pub(super) scalar: u64,
    /// For the items of a vector.
    pub(super) vector: u64,
    pub(super) lanes: u32,
}

/// How many times as fast lanes are by estimate, in hundredths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Gain(pub(super) u64);

impl Estimate {
    pub(super) fn gain(self) -> Gain {
        let scalar = self.scalar.saturating_mul(self.lanes.into());
        Gain(scalar.saturating_mul(100) / self.vector.max(1))
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 + 5) / 10;
        write!(f, "about {}.{} times as fast", tenths / 10, tenths % 10)
    }
}

/// What the costs of a body follow from.
pub(super) struct Costs<'a, 'c> {
    graph: &'a Graph<'c>,
    shapes: &'a Shapes<'a, 'c>,
    layout: Layout<'a>,
    table: Table,
    groups: Groups<'c>,
}

impl<'a, 'c> Costs<'a, 'c> {
    #[cfg(test)]
    pub(super) fn new(graph: &'a Graph<'c>, shapes: &'a Shapes<'a, 'c>, layout: Layout<'a>, level: HostLevel) -> Self {
        let groups = Groups::of(graph, shapes, layout, None);
        Self::with(graph, shapes, layout, (level, groups))
    }

    /// Of all groups of fields, those stay that are worth it.
    pub(super) fn with(
        graph: &'a Graph<'c>,
        shapes: &'a Shapes<'a, 'c>,
        layout: Layout<'a>,
        (level, mut groups): (HostLevel, Groups<'c>),
    ) -> Self {
        let table = Table::of(level);
        groups.retain(|group| {
            let single = |field: &Field<'c>| {
                table.access(Access::Anywhere, 8 * field.size as u32, LANES_OF_GROUPS, group.is_store, false).busy
            };
            table.fields(group, LANES_OF_GROUPS) < group.fields.iter().map(single).sum()
        });
        Self { graph, shapes, layout, table, groups }
    }

    /// The groups of fields that are worth it.
    pub(super) fn into_groups(self) -> Groups<'c> {
        self.groups
    }

    /// The estimate for so many lanes.
    pub(super) fn of(&self, lanes: u32) -> Estimate {
        let frequencies = Frequencies::of(self.graph, self.shapes, lanes);
        let scalar = self.sum(&frequencies.scalar, |instruction, _| self.scalar(instruction));
        let whole = |block: BlockIdx| frequencies.whole[block.index()];
        let vector = self
            .sum(&frequencies.vector, |instruction, block| self.vector(instruction, (block, whole(block)), lanes))
            .saturating_add(self.masks(&frequencies, lanes))
            .saturating_add(registers::spills(self.graph, self.shapes, (self.table, lanes), &frequencies.vector));
        let [scalar, vector] = [scalar, vector].map(|sum| NEXT_ITEM + sum / ONE);
        Estimate { scalar, vector, lanes }
    }

    /// Whether a body without loops moves more through memory than it computes.
    pub(super) fn is_stream(&self) -> bool {
        self.work_for_memory().is_some_and(|(moved, computed)| 2 * computed <= moved)
    }

    /// What a body without loops moves and computes for an item, in bytes and eighths of a cycle; `None` if it loads from scattered places.
    fn work_for_memory(&self) -> Option<(u64, u64)> {
        let (mut moved, mut computed) = (0, 0);
        let instructions = self.graph.order().iter().flat_map(|block| self.graph.block(*block).instructions());
        for instruction in instructions {
            let varies = self.shapes.shape(instruction) == Shape::Varying;
            match self.place(instruction) {
                Some(Access::Consecutive | Access::Fields) => moved += u64::from(width(instruction) / 8),
                Some(Access::Anywhere) => return None,
                None if varies && !checks::is_decided(self.graph, self.shapes, instruction) => {
                    computed += self.scalar(instruction).busy
                }
                Some(_) | None => {}
            }
        }
        Some((moved, computed))
    }

    /// The most bits of an element that lanes have of their own in memory; at least 32.
    fn widest(&self) -> u32 {
        let instructions = self.graph.order().iter().flat_map(|block| self.graph.block(*block).instructions());
        let own = instructions.filter(|access| self.place(*access).is_some_and(|place| place != Access::Uniform));
        own.map(width).max().unwrap_or_default().max(32)
    }

    /// The costs of all regions, times their frequencies.
    fn sum(&self, frequencies: &[u64], work: impl Fn(Value<'c>, BlockIdx) -> Work) -> u64 {
        let mut sum = 0_u64;
        for region in self.graph.regions() {
            let mut busy = 0_u64;
            for node in self.graph.nodes(region) {
                let Node::Block(block) = *node else { continue };
                let instructions = self.graph.block(block).instructions().into_iter();
                let once: u64 = instructions.map(|instruction| work(instruction, block).busy).sum();
                busy = busy.saturating_add(once.saturating_mul(frequencies[block.index()]));
            }
            let chain =
                region.map_or(0, |of| self.chain(of, &work).saturating_mul(frequencies[self.graph.header(of).index()]));
            sum = sum.saturating_add(busy.max(chain));
        }
        sum
    }

    /// The longest way from a value of one iteration of a loop to that of the next one. What is in loops inside has its time there.
    fn chain(&self, of: LoopIdx, work: &impl Fn(Value<'c>, BlockIdx) -> Work) -> u64 {
        let mut steps = Vec::new();
        for &block in self.graph.loop_blocks(of) {
            let is_own = self.graph.innermost(block) == Some(of);
            for instruction in self.graph.block(block).instructions() {
                let late = if is_own { work(instruction, block).late } else { 0 };
                steps.push((instruction, instruction.operands(), late));
            }
        }
        let header = self.graph.block(self.graph.header(of));
        let phis: Vec<_> = header.instructions().into_iter().take_while(|phi| phi.is(Opcode::PHI)).collect();
        let latch = self.graph.block(self.graph.latch(of));
        let mut longest = 0;
        for phi in &phis {
            let mut lengths = FxHashMap::from_iter([(*phi, 0)]);
            for (instruction, operands, late) in &steps {
                let before = operands.iter().filter_map(|operand| lengths.get(operand)).max().copied();
                if let Some(before) = before.filter(|_| !phis.contains(instruction)) {
                    lengths.insert(*instruction, before + late);
                }
            }
            let next = phi.incoming().into_iter().find(|(_, from)| *from == latch);
            let length = next.and_then(|(value, _)| lengths.get(&value).copied());
            longest = longest.max(length.unwrap_or(0));
        }
        longest
    }

    /// The cost of an instruction for one item.
    fn scalar(&self, instruction: Value<'c>) -> Work {
        let kind = self.kind(instruction);
        match instruction.opcode() {
            Some(Opcode::BRANCH) if instruction.operands().len() == 1 => Work::default(),
            // In two or three parts, which are joined or taken apart.
            Some(Opcode::LOAD | Opcode::STORE) if packed_bytes(element(instruction)).is_some() => {
                Work { busy: 16, late: 56 }
            }
            Some(Opcode::STORE) if kind == Kind::Access => Work { busy: 8, late: 0 },
            Some(Opcode::CALL) if let Some(bytes) = copied_bytes(instruction) => self.table.copy(bytes),
            // Mostly loaded once for a row.
            Some(Opcode::LOAD) if self.is_made_for_rows(instruction) => Work { busy: 2, late: 0 },
            _ => self.table.scalar(kind, width(instruction)),
        }
    }

    fn is_made_for_rows(&self, load: Value<'c>) -> bool {
        self.shapes.is_uniform(load) && self.graph.innermost(self.graph.index(load.block())).is_none()
    }

    /// The cost of an instruction for all lanes, of whose runs a part is without a mask.
    fn vector(&self, instruction: Value<'c>, (block, whole): (BlockIdx, u64), lanes: u32) -> Work {
        let (kind, bits) = (self.kind(instruction), width(instruction));
        let varies = self.shapes.shape(instruction) == Shape::Varying;
        match instruction.opcode() {
            Some(Opcode::BRANCH) => self.branch(instruction, block, lanes),
            Some(Opcode::LOAD | Opcode::STORE) if kind == Kind::Access => self.access(instruction, whole, lanes),
            Some(Opcode::CALL) if let Some(bytes) = copied_bytes(instruction) => self.table.copies(bytes, lanes),
            _ if is_made_singly(instruction) && (varies || instruction.is_atomic()) => {
                self.table.vector(kind, bits, lanes)
            }
            _ if varies && checks::is_decided(self.graph, self.shapes, instruction) => Work::default(),
            _ if varies => self.table.vector(kind, bits, lanes),
            _ => {
                let mut work = self.scalar(instruction);
                if self.is_spread(instruction) {
                    work.busy += self.table.vector(Kind::Simple, bits, lanes).busy;
                }
                work
            }
        }
    }

    fn kind(&self, instruction: Value<'c>) -> Kind {
        Kind::of(instruction, |operand| self.shapes.is_uniform(operand))
    }

    /// Whether vectors are made of a value whose lanes are a constant distance apart.
    fn is_spread(&self, value: Value<'c>) -> bool {
        let is_vector = |user: &Value<'c>| {
            self.shapes.shape(*user) == Shape::Varying
                && !user.is(Opcode::BRANCH)
                && !checks::is_decided(self.graph, self.shapes, *user)
                && self.place(*user).is_none_or(|place| place == Access::Anywhere)
        };
        matches!(self.shapes.shape(value), Shape::Affine(_)) && value.users().iter().any(is_vector)
    }

    /// The places of an access that is not atomic.
    fn place(&self, access: Value<'c>) -> Option<Access> {
        let is_store = access.is(Opcode::STORE);
        if !is_store && !access.is(Opcode::LOAD) || access.is_atomic() {
            return None;
        }
        let element = element(access);
        Some(match self.shapes.shape(access.operand(u32::from(is_store))) {
            _ if self.groups.get(access).is_some() => Access::Fields,
            Shape::Uniform => Access::Uniform,
            Shape::Affine(step) if step == self.layout.store_size(element) as i64 => Access::Consecutive,
            _ => Access::Anywhere,
        })
    }

    fn access(&self, access: Value<'c>, whole: u64, lanes: u32) -> Work {
        let place = self.place(access).unwrap_or(Access::Anywhere);
        if place == Access::Uniform && access.is(Opcode::LOAD) {
            return self.scalar(access);
        }
        let is_store = access.is(Opcode::STORE);
        let is_packed = place != Access::Uniform && packed_bytes(element(access)).is_some();
        let of = |is_masked| match is_packed {
            true => self.table.packed_access(place, width(access), lanes, is_store, is_masked),
            false => self.table.access(place, width(access), lanes, is_store, is_masked),
        };
        if let Some(group) = self.groups.get(access) {
            let is_leader = group.leader().access == access;
            let together = if is_leader { self.table.fields(group, lanes) } else { 0 };
            let single = self.table.access(Access::Anywhere, width(access), lanes, is_store, true);
            return Work { busy: part(together, whole) + part(single.busy, ONE - whole), late: OF_FIELDS };
        }
        let busy = part(of(false).busy, whole) + part(of(true).busy, ONE - whole);
        Work { busy, late: of(false).late }
    }

    /// The cost of a block's end: a scalar branch, a check of all lanes, or two masks.
    fn branch(&self, branch: Value<'c>, block: BlockIdx, lanes: u32) -> Work {
        let busy = if branch.operands().len() == 1 {
            0
        } else if self.shapes.is_uniform(branch.operand(0)) {
            self.table.scalar(Kind::Branch, 32).busy
        } else if self.graph.traps(block).next().is_none() {
            3 * self.table.of_mask(lanes)
        } else if checks::of_branch(self.graph, self.shapes, branch).is_some() {
            SCALAR_CHECK
        } else {
            ASK_MASK + self.table.of_mask(lanes)
        };
        Work { busy, late: 0 }
    }

    /// The costs of masks: the branches in front of nodes and behind divergent loops, and what joins masks and values.
    fn masks(&self, frequencies: &Frequencies, lanes: u32) -> u64 {
        let (graph, shapes) = (self.graph, self.shapes);
        let of_mask = self.table.of_mask(lanes);
        let of = |block: BlockIdx| frequencies.vector[block.index()];
        let mut sum = 0_u64;
        for region in graph.regions() {
            let nodes = graph.nodes(region);
            let runs = of(graph.node_blocks(&nodes[0])[0]);
            for &node in nodes.iter().filter(|node| shapes.status(**node) == Status::Masked) {
                let edges = of_mask * graph.in_edges(node).len() as u64;
                let asked = if guard(graph, shapes, node) == Guard::None { 0 } else { ASK_MASK };
                sum = sum.saturating_add((edges + asked) * frequencies.arrivals(graph, (node, region)));
                if let Node::Block(block) = node
                    && wants_copy(graph, shapes, node)
                {
                    sum = sum.saturating_add(ASK_MASK * of(block));
                }
            }
            if region.is_some_and(|of| shapes.is_divergent(of)) {
                sum = sum.saturating_add((ASK_MASK + of_mask) * runs);
            }
        }
        for &block in graph.order().iter().filter(|block| graph.headed(**block).is_none()) {
            let region = graph.innermost(block);
            let instructions = graph.block(block).instructions().into_iter();
            let phis = instructions.take_while(|phi| phi.is(Opcode::PHI));
            let varying = phis.filter(|phi| shapes.shape(*phi) == Shape::Varying);
            let blend: u64 = varying.map(|phi| self.table.vector(Kind::Select, width(phi), lanes).busy).sum();
            for (index, &from) in graph.predecessors(block).iter().enumerate() {
                let is_blended = !has_all_lanes(graph, shapes, region) || !shapes.is_uniform_edge(from, block, region);
                // The first value replaces one that no lane has, but for those that leave a loop in different iterations.
                let is_first = index == 0 && graph.innermost(from) == region;
                if is_blended && !is_first {
                    sum = sum.saturating_add(blend * of(from));
                }
            }
        }
        sum
    }
}

/// What a load or store accesses.
fn element<'c>(access: Value<'c>) -> Type<'c> {
    if access.is(Opcode::STORE) { access.operand(0).value_type() } else { access.value_type() }
}

/// The bytes that a call copies or fills, if their number is known.
fn copied_bytes(call: Value<'_>) -> Option<u64> {
    if is_copy(call) { call.operand(2).integer() } else { None }
}

/// The bits of the elements that an instruction works on in vectors.
fn width(instruction: Value<'_>) -> u32 {
    match instruction.opcode() {
        Some(Opcode::STORE | Opcode::INTEGER_COMPARISON | Opcode::FCMP) => bits(instruction.operand(0).value_type()),
        Some(Opcode::SELECT) => bits(instruction.value_type()),
        Some(Opcode::CALL) => {
            let of = instruction.arguments().first().map_or(32, |argument| bits(argument.value_type()));
            of.max(bits(instruction.value_type()))
        }
        Some(opcode) if opcode.is_cast() => {
            bits(instruction.operand(0).value_type()).max(bits(instruction.value_type()))
        }
        _ => bits(instruction.value_type()),
    }
}
