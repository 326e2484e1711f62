//! Moves a function's variables into the target's address space for them.
//!
//! rustc makes them in the address space of everything. On AMD GPUs they have one of their own, and their addresses are cast.

use crate::llvm::{Builder, Module, Opcode, Type, TypeKind};

/// Recreates every variable in the address space that the module's data layout names.
pub(crate) fn move_variables(module: &Module<'_>) {
    let context = module.context();
    let generic = Type::pointer(context, 0);
    for function in module.functions() {
        // They name variables directly, and say only how long those live.
        if function.name().starts_with("llvm.lifetime.") {
            for call in function.users() {
                call.erase();
            }
            function.delete_function();
            continue;
        }
        for variable in function.instructions() {
            if !variable.is(Opcode::ALLOCA) || variable.value_type().kind() != TypeKind::Pointer(0) {
                continue;
            }
            let builder = Builder::before(context, variable);
            let moved = builder.alloca(variable.allocated_type(), variable.operand(0));
            moved.set_alignment(variable.alignment());
            variable.replace_all_uses_with(builder.cast_address(moved, generic));
            variable.erase();
        }
    }
}
