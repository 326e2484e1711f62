//! Loops whose end depends on memory that other work-items write.
//!
//! A work-item that panicked never writes what others wait for. A loop that such memory alone ends may then run for ever: the loop is *open*. It is
//! closed if each round passes a condition that leaves it and is computed from positions, captures and constants. A panic is no way
//! out, because the check of an overflow takes as long as counting that far.
//!
//! Calls a loop open rather than closed where it cannot tell. Does not know how many rounds a loop has.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analyses::uniformity::{COMPUTE, Flow, bases, escapes};
use crate::builtin_table::LAUNCH;
use crate::codegen::intrinsics::{PURE, SAME_FOR_A_GROUP};
use crate::llvm::{Opcode, Value, ValueKind};
use crate::passes::thread_coarsening;

/// The beginnings of the names of exchanges between lanes, of which some may have ended.
pub(crate) const EXCHANGES: [&str; 3] = ["llvm.nvvm.shfl.sync.", "llvm.nvvm.vote.ballot.sync", "llvm.nvvm.redux.sync."];

/// Whether a kernel, or a function that it calls on the way to its end, has an open loop.
pub(crate) fn has(kernel: Value<'_>) -> bool {
    let (mut seen, mut queue) = (FxHashSet::default(), vec![kernel]);
    while let Some(function) = queue.pop() {
        if function.is_declaration() || !seen.insert(function) {
            continue;
        }
        let analysis = Analysis::of(function, function == kernel);
        if analysis
            .has_open_loop((0..analysis.flow.blocks.len()).filter(|block| analysis.flow.returns(*block)).collect())
        {
            return true;
        }
        for (number, block) in analysis.flow.blocks.iter().enumerate() {
            if analysis.flow.returns(number) {
                let calls = block.instructions().into_iter().filter(|instruction| instruction.is(Opcode::CALL));
                queue.extend(calls.filter_map(Value::callee).filter(|callee| callee.kind() == ValueKind::Function));
            }
        }
    }
    false
}

/// The values of a function that memory of other work-items decides.
struct Analysis<'c> {
    flow: Flow<'c>,
    /// For each block, the loops around it, from the outermost on.
    loops_around: Vec<Vec<usize>>,
    /// The blocks of each loop, and the one that it begins with.
    loops: Vec<(FxHashSet<usize>, usize)>,
    /// Values that such memory decides, and variables with such contents.
    decided: FxHashSet<Value<'c>>,
    /// Blocks whose phis such memory chooses.
    chosen: Vec<bool>,
    /// Loops of which such memory decides the number of rounds.
    uncertain: FxHashSet<usize>,
}

impl<'c> Analysis<'c> {
    fn of(function: Value<'c>, is_kernel: bool) -> Self {
        let flow = Flow::of(function);
        let n_blocks = flow.blocks.len();
        let mut analysis = Self {
            flow,
            loops_around: vec![Vec::new(); n_blocks],
            loops: Vec::new(),
            decided: FxHashSet::default(),
            chosen: vec![false; n_blocks],
            uncertain: FxHashSet::default(),
        };
        analysis.find_loops((0..n_blocks).collect());
        if !is_kernel {
            analysis.decided.extend(function.parameters());
        }
        let instructions = function.instructions();
        let variables = instructions.iter().copied().filter(|instruction| instruction.is(Opcode::ALLOCA));
        analysis.decided.extend(variables.filter(|variable| escapes(*variable)));
        // Decided values only become more, so this ends.
        while analysis.step(&instructions) {}
        analysis
    }

    /// Finds the loops within some blocks: cycles, and without the block that a cycle begins with the cycles within it.
    fn find_loops(&mut self, blocks: FxHashSet<usize>) {
        for cycle in cycles(&self.flow, &blocks) {
            let begins =
                |block: &usize| *block == 0 || self.flow.predecessors(*block).any(|before| !cycle.contains(&before));
            let mut order: Vec<usize> = cycle.iter().copied().collect();
            order.sort_unstable();
            let Some(first) = order.iter().copied().find(begins).or_else(|| order.first().copied()) else { continue };
            let number = self.loops.len();
            order.iter().for_each(|block| self.loops_around[*block].push(number));
            let within = cycle.iter().copied().filter(|block| *block != first).collect();
            self.loops.push((cycle, first));
            self.find_loops(within);
        }
    }

    /// Looks at all instructions once. Returns whether more values are decided.
    fn step(&mut self, instructions: &[Value<'c>]) -> bool {
        let mut learned = false;
        for &instruction in instructions {
            let block = self.flow.number(instruction.block());
            if let Some(variable) = self.decided_variable(instruction, block) {
                learned |= self.decided.insert(variable);
            }
            if !self.decided.contains(&instruction) && self.is_decided(instruction, block) {
                self.decided.insert(instruction);
                learned = true;
            }
            if self.flow.blocks[block].end() == instruction && self.branches_by_memory(block) {
                learned |= self.note_branch(block);
            }
        }
        learned
    }

    fn branches_by_memory(&self, block: usize) -> bool {
        let end = self.flow.blocks[block].end();
        let is_known = end.is(Opcode::BRANCH) || end.is(Opcode::SWITCH);
        self.flow.has_several_successors(block) && (!is_known || self.is_operand_decided(end.operand(0), block))
    }

    /// Notes what a branch decides: phis before its ways meet, in the same round, and the rounds of loops that it leaves.
    fn note_branch(&mut self, branch: usize) -> bool {
        let mut learned = false;
        let around = &self.loops_around[branch];
        let beginnings: Vec<usize> = around.iter().map(|number| self.loops[*number].1).collect();
        let meeting = self.flow.meeting(branch);
        // A work-item that panics goes no other way.
        let mut ways: Vec<usize> =
            self.flow.successors(branch).iter().copied().filter(|next| self.flow.returns(*next)).collect();
        ways.dedup();
        if ways.len() < 2 {
            return false;
        }
        let mut queue = ways.clone();
        let mut seen = FxHashSet::default();
        while let Some(block) = queue.pop() {
            if beginnings.contains(&block) || !seen.insert(block) {
                continue;
            }
            learned |= !std::mem::replace(&mut self.chosen[block], true);
            if Some(block) != meeting {
                queue.extend(self.flow.successors(block));
            }
        }
        for number in around {
            let leaves = ways.iter().any(|next| !self.loops[*number].0.contains(next));
            learned |= leaves && self.uncertain.insert(*number);
        }
        learned
    }

    /// The variable that an instruction gives such contents, if it does.
    fn decided_variable(&self, instruction: Value<'c>, block: usize) -> Option<Value<'c>> {
        let (address, is_decided) = match instruction.opcode() {
            Some(Opcode::STORE) => {
                let operands = [instruction.operand(0), instruction.operand(1)];
                let is_decided = operands.into_iter().any(|operand| self.is_operand_decided(operand, block));
                (instruction.operand(1), is_decided || self.chosen[block])
            }
            Some(Opcode::ATOMIC_RMW | Opcode::ATOMIC_CMP_XCHG) => (instruction.operand(0), true),
            // Copies, of anything.
            Some(Opcode::CALL) => {
                let name = instruction.callee().map(Value::name).unwrap_or_default();
                let writes = ["llvm.memcpy.", "llvm.memmove.", "llvm.memset."].iter().any(|of| name.starts_with(of));
                (instruction.arguments().first().copied().filter(|_| writes)?, true)
            }
            _ => return None,
        };
        let is_new = |base: &Value<'c>| base.is(Opcode::ALLOCA) && !self.decided.contains(base);
        if is_decided { bases(address).into_iter().find(is_new) } else { None }
    }

    /// Whether a value is decided where a block uses it.
    fn is_operand_decided(&self, operand: Value<'c>, block: usize) -> bool {
        if self.decided.contains(&operand) {
            // The address of a variable is no secret, whatever the variable holds.
            return !operand.is(Opcode::ALLOCA);
        }
        // What a loop left behind, if the number of its rounds is decided.
        operand.kind() == ValueKind::Instruction
            && self.loops_around[self.flow.number(operand.block())]
                .iter()
                .any(|number| self.uncertain.contains(number) && !self.loops[*number].0.contains(&block))
    }

    fn is_decided(&self, instruction: Value<'c>, block: usize) -> bool {
        let operands = instruction.operands();
        let any = || operands.iter().any(|operand| self.is_operand_decided(*operand, block));
        match instruction.opcode() {
            Some(Opcode::ALLOCA) => false,
            Some(Opcode::ATOMIC_RMW | Opcode::ATOMIC_CMP_XCHG | Opcode::INVOKE) => true,
            Some(Opcode::PHI) => self.chosen[block] || any(),
            Some(Opcode::LOAD) => any() || self.is_load_decided(instruction, operands[0]),
            Some(Opcode::CALL) => {
                let name = instruction.callee().map(Value::name).unwrap_or_default();
                let is_any = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
                let is_known = name == LAUNCH || is_any(&SAME_FOR_A_GROUP) || is_any(&PURE) || is_any(COMPUTE);
                !is_known || is_any(&EXCHANGES) || any()
            }
            _ => any(),
        }
    }

    fn is_load_decided(&self, load: Value<'c>, address: Value<'c>) -> bool {
        if load.is_atomic() || load.is_volatile() {
            return true;
        }
        let is_constant = load.has_metadata(thread_coarsening::CONSTANT);
        bases(address).into_iter().any(|base| match base.kind() {
            _ if base.is(Opcode::ALLOCA) => self.decided.contains(&base),
            _ if is_constant => false,
            // Captures and the launch. Those of a function are decided as it is.
            ValueKind::Argument => false,
            ValueKind::GlobalVariable => !base.is_constant_global(),
            _ => base.callee().is_none_or(|callee| callee.name() != LAUNCH),
        })
    }

    /// Whether some of the blocks form an open loop.
    fn has_open_loop(&self, blocks: FxHashSet<usize>) -> bool {
        cycles(&self.flow, &blocks).into_iter().any(|cycle| {
            let leaves = |block: &usize| {
                let out = |next: &usize| !cycle.contains(next) && self.flow.returns(*next);
                self.flow.successors(*block).iter().any(out) && !self.branches_by_memory(*block)
            };
            let ways_out: FxHashSet<usize> = cycle.iter().copied().filter(leaves).collect();
            // Rounds that pass none of them are loops of their own.
            ways_out.is_empty() || self.has_open_loop(cycle.difference(&ways_out).copied().collect())
        })
    }
}

/// The cycles of some blocks: sets of blocks, each of which leads to each other one within the set. The algorithm is Tarjan's.
fn cycles(flow: &Flow<'_>, blocks: &FxHashSet<usize>) -> Vec<FxHashSet<usize>> {
    let mut order: Vec<usize> = blocks.iter().copied().collect();
    order.sort_unstable();
    let next_of = |block: usize| flow.successors(block).iter().copied().filter(|next| blocks.contains(next));
    // When a block was found, and the earliest block that it leads back to.
    let (mut times, mut earliest) = (FxHashMap::default(), FxHashMap::default());
    let (mut open, mut is_open) = (Vec::new(), FxHashSet::default());
    let mut found = Vec::new();
    for start in order {
        if times.contains_key(&start) {
            continue;
        }
        let mut walk = vec![(start, 0)];
        while let Some((block, n_seen)) = walk.pop() {
            if n_seen == 0 {
                let time = times.len();
                times.insert(block, time);
                earliest.insert(block, time);
                open.push(block);
                is_open.insert(block);
            }
            if let Some(next) = next_of(block).nth(n_seen) {
                walk.push((block, n_seen + 1));
                if !times.contains_key(&next) {
                    walk.push((next, 0));
                } else if is_open.contains(&next) {
                    let time = times[&next].min(earliest[&block]);
                    earliest.insert(block, time);
                }
                continue;
            }
            if let Some((before, _)) = walk.last() {
                let time = earliest[&block].min(earliest[before]);
                earliest.insert(*before, time);
            }
            if earliest[&block] == times[&block] {
                let first = open.iter().position(|other| *other == block).unwrap_or_default();
                let cycle: FxHashSet<usize> = open.drain(first..).collect();
                cycle.iter().for_each(|block| _ = is_open.remove(block));
                if cycle.len() > 1 || next_of(block).any(|next| next == block) {
                    found.push(cycle);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
