//! Names and numbers that modules use between the expansion and the translation.

use crate::builtin_table::{LAUNCH, LOCAL_MEMORY};
use crate::llvm::{Value, ValueKind};

/// The prefix of functions for remainders of floats; the type's name follows.
pub(super) const REMAINDER: &str = "oxisycl.spirv.frem.";
/// The function that returns the launch's address, where that is not the kernel's own parameter.
pub(super) const HIDDEN_LAUNCH: &str = "oxisycl.spirv.launch";
/// Calling convention `spir_kernel`.
pub(super) const KERNEL_CONVENTION: u32 = 76;
/// The function that ends the work-item.
pub(super) const END_WORK_ITEM: &str = "oxisycl.end_work_item";

/// Instructions that end the program, and in kernels the work-item.
const TRAPS: [&str; 2] = ["llvm.trap", "llvm.ubsantrap"];

/// Whether a call ends the work-item.
pub(super) fn ends_work_item(instruction: Value<'_>) -> bool {
    instruction.callee().is_some_and(|callee| callee.name() == END_WORK_ITEM || TRAPS.contains(&callee.name()))
}

/// Whether a call says that an address is of global memory.
pub(super) fn is_as_global(instruction: Value<'_>) -> bool {
    instruction.callee().is_some_and(|callee| callee.name() == "oxisycl.spirv.as_global")
}

/// Whether a call asks for the launch's address.
pub(super) fn is_launch(instruction: Value<'_>) -> bool {
    instruction.callee().is_some_and(|callee| [LAUNCH, HIDDEN_LAUNCH].contains(&callee.name()))
}

pub(super) fn is_local_memory(global: Value<'_>) -> bool {
    global.kind() == ValueKind::GlobalVariable && global.name() == LOCAL_MEMORY
}

/// Whether an operand of the instruction is an address in dynamic local memory.
pub(super) fn uses_local_memory(instruction: Value<'_>) -> bool {
    instruction.operands().into_iter().any(|operand| {
        is_local_memory(operand) || operand.kind() == ValueKind::ConstantExpression && uses_local_memory(operand)
    })
}
