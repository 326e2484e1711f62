//! Where code of a kernel over groups is at group scope.
//!
//! The library marks where group scope and phases begin. Of a place that both lead to, group scope is assumed. Without marks nothing is at group scope.

use rustc_hash::FxHashMap;

use crate::analyses::uniformity::Flow;
use crate::llvm::{Block, Module, Opcode, Value};

/// The builtins that mark where code of each kind begins.
const GROUP_SCOPE: &str = "oxisycl.begin_group_scope";
const PHASE: &str = "oxisycl.begin_phase";

/// Whether each block of a kernel may begin at group scope.
pub(crate) struct Scopes<'c>(FxHashMap<Block<'c>, bool>);

impl<'c> Scopes<'c> {
    pub(crate) fn of(kernel: Value<'c>) -> Self {
        let flow = Flow::of(kernel);
        let mut begins = vec![false; flow.blocks.len()];
        let after = |block: usize, begins: bool| {
            let marks = flow.blocks[block].instructions().into_iter().filter_map(mark);
            marks.last().unwrap_or(begins)
        };
        let mut queue: Vec<usize> = (0..flow.blocks.len()).filter(|block| after(*block, false)).collect();
        while let Some(block) = queue.pop() {
            for &next in flow.successors(block) {
                if !std::mem::replace(&mut begins[next], true) && after(next, true) {
                    queue.push(next);
                }
            }
        }
        Self(flow.blocks.iter().copied().zip(begins).collect())
    }

    /// Whether an instruction of the kernel is at group scope.
    pub(crate) fn is_group_scope(&self, instruction: Value<'c>) -> bool {
        let block = instruction.block();
        let before = block.instructions().into_iter().take_while(|other| *other != instruction);
        before.filter_map(mark).last().unwrap_or(self.0[&block])
    }
}

/// Whether group scope begins at an instruction. `None` if it is no mark.
fn mark(instruction: Value<'_>) -> Option<bool> {
    match instruction.callee().filter(|_| instruction.is(Opcode::CALL))?.name() {
        GROUP_SCOPE => Some(true),
        PHASE => Some(false),
        _ => None,
    }
}

/// Whether a function is one of the marks.
pub(crate) fn is_mark(function: Value<'_>) -> bool {
    [GROUP_SCOPE, PHASE].contains(&function.name())
}

/// Whether a module has a kernel with group scope.
pub(crate) fn has_marks(module: &Module<'_>) -> bool {
    module.function(GROUP_SCOPE).is_some_and(Value::is_used)
}

/// Removes the marks.
pub(crate) fn drop_marks(module: &Module<'_>) {
    for mark in [GROUP_SCOPE, PHASE].into_iter().filter_map(|name| module.function(name)) {
        mark.calls().into_iter().for_each(Value::erase);
        // One whose address is taken stays, and is refused as a function that no device has.
        if !mark.is_used() {
            mark.delete_function();
        }
    }
}
