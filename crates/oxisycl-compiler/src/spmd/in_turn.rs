//! Bodies whose items take their turn on a thread. They share its memory without atomics, such as the bins of a group in local memory, or one waits
//! while others run.
//!
//! The device library says so by the builtin `in_turn`, which does nothing. Until it is known which bodies have it, it is a call that LLVM keeps.

use rustc_hash::FxHashSet;

use crate::llvm::{Attribute, Block, Builder, Linkage, Module, Opcode, Value, ValueKind};
use crate::origin;

/// The function that stands for the builtin.
const MARK: &str = "oxisycl.in_turn";

/// The function attribute `memory(inaccessiblemem: readwrite)`, as LLVM writes it in a number.
pub(super) const OTHER_MEMORY: u64 = 0b11 << 2;

/// Makes LLVM keep the marks, wherever they are inlined.
pub(super) fn keep(module: &Module<'_>) {
    let context = module.context();
    for builtin in module.functions() {
        if origin::builtin(builtin.name()).as_deref() != Some("in_turn") {
            continue;
        }
        let mark = module.declare(MARK, builtin.held_type());
        for (name, value) in [("nounwind", 0), ("willreturn", 0), ("memory", OTHER_MEMORY)] {
            mark.add_attribute(Attribute::FUNCTION, Attribute::plain(context, name, value));
        }
        builtin.replace_all_uses_with(mark);
    }
}

/// Whether a body has a mark, or calls what has one. Code that ends in a panic counts: it may wait for other items before.
pub(super) fn is_marked(body: Value<'_>) -> bool {
    let calls = |instruction: &Value<'_>| instruction.is(Opcode::CALL) || instruction.is(Opcode::INVOKE);
    let (mut seen, mut queue) = (FxHashSet::from_iter([body]), vec![body]);
    while let Some(function) = queue.pop() {
        let callees = function.instructions().into_iter().filter(calls).filter_map(Value::callee);
        for callee in callees.filter(|callee| callee.kind() == ValueKind::Function) {
            if callee.name() == MARK {
                return true;
            }
            if !callee.is_declaration() && seen.insert(callee) {
                queue.push(callee);
            }
        }
    }
    false
}

/// Makes the marks do nothing again.
pub(super) fn forget(module: &Module<'_>) {
    let Some(mark) = module.function(MARK) else { return };
    let context = module.context();
    mark.remove_attribute(Attribute::FUNCTION, "memory");
    mark.set_linkage(Linkage::INTERNAL);
    mark.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
    Builder::at_end(context, Block::append(context, mark)).ret_void();
}
