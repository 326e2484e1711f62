//! Bodies whose items take their turn on a thread. They share its memory without atomics, such as the bins of a group in local memory.
//!
//! The device library says so by the builtin `in_turn`, which does nothing. Until it is known which bodies have it, it is a call that LLVM keeps.

use crate::llvm::{Attribute, Block, Builder, Linkage, Module, Opcode, Value};
use crate::origin;

/// The function that stands for the builtin.
const MARK: &str = "oxisycl.in_turn";

/// The function attribute `memory(inaccessiblemem: readwrite)`, as LLVM writes it in a number.
const OTHER_MEMORY: u64 = 0b11 << 2;

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

/// Whether a body has a mark, once all that it calls is inlined. What is not is a call, and keeps the body scalar as such.
pub(super) fn is_marked(body: Value<'_>) -> bool {
    let is_mark = |callee: Value<'_>| callee.name() == MARK;
    let calls = |instruction: &Value<'_>| instruction.is(Opcode::CALL) || instruction.is(Opcode::INVOKE);
    body.instructions().into_iter().filter(calls).filter_map(Value::callee).any(is_mark)
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
