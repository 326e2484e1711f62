//! Loops that work-items leave at different times, for the remedy of the quirk `masked-calls`.
//!
//! A driver for CPUs executes several work-items as one vector. In such a loop it hides the results of calls from the work-items that have
//! left. It does so with masks on the path from one iteration to the next. To the driver, `mad` is a call, while a product and a sum are
//! not. Their results need no mask, since nothing reads what a work-item computes after it has left. Mandelbrot took twice the time with
//! `mad`.
//!
//! What is found here decides about speed only: it looks at where values come from, not at which way led to them.

use super::names::is_launch;
use crate::llvm::{Attribute, Block, Opcode, Value, ValueKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// The blocks of divergent loops. `blocks` are those of a kernel, each after the ones that dominate it.
pub(super) fn blocks_of_divergent_loops<'c>(blocks: &[Block<'c>]) -> FxHashSet<Block<'c>> {
    let position: FxHashMap<Block<'c>, usize> =
        blocks.iter().enumerate().map(|(index, &block)| (block, index)).collect();
    let mut predecessors: FxHashMap<Block<'c>, Vec<Block<'c>>> = FxHashMap::default();
    for &block in blocks {
        for successor in block.successors() {
            predecessors.entry(successor).or_default().push(block);
        }
    }
    let mut divergent = FxHashSet::default();
    for &head in blocks {
        let begins_again = |block: &&Block<'c>| position[*block] >= position[&head];
        let mut queue: Vec<_> = predecessors.get(&head).into_iter().flatten().filter(begins_again).copied().collect();
        if queue.is_empty() {
            continue;
        }
        let mut inside = FxHashSet::from_iter([head]);
        while let Some(block) = queue.pop() {
            if inside.insert(block) {
                queue.extend(predecessors.get(&block).into_iter().flatten());
            }
        }
        let leaves = |block: &Block<'c>| block.successors().iter().any(|successor| !inside.contains(successor));
        if inside.iter().any(|block| leaves(block) && !is_uniform_branch(block.end())) {
            divergent.extend(inside);
        }
    }
    divergent
}

/// Whether all work-items of a launch take the same branch at the end of a block.
fn is_uniform_branch(end: Value<'_>) -> bool {
    if !end.is(Opcode::BRANCH) && !end.is(Opcode::SWITCH) {
        return true;
    }
    let mut seen = FxHashSet::default();
    let mut queue = vec![end.operand(0)];
    while let Some(value) = queue.pop() {
        if value.opcode().is_none() || !seen.insert(value) {
            continue;
        }
        if !is_same_for_same_operands(value) {
            return false;
        }
        queue.extend(value.operands());
    }
    true
}

/// Whether an instruction has the same result for all work-items if its operands have. That holds for a kernel's parameters, and for the
/// memory that they point to.
fn is_same_for_same_operands(instruction: Value<'_>) -> bool {
    match instruction.opcode() {
        // A variable of each work-item's own.
        Some(Opcode::ALLOCA) => false,
        Some(Opcode::CALL) => {
            let callee = instruction.callee().filter(|callee| callee.kind() == ValueKind::Function);
            let is_pure = |callee: Value<'_>| callee.has_attribute(Attribute::FUNCTION, "speculatable");
            is_launch(instruction) || callee.is_some_and(is_pure)
        }
        _ => !instruction.is_atomic(),
    }
}
