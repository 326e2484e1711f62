//! Lowers intrinsics of x86 processors, which published crates reach on their fast paths, to operations that every target has.
//!
//! `intrinsics.ll` is the table: a function `oxisycl.x86.<name>` for each `llvm.x86.<name>` of SSE, SSE2, SSE3, SSSE3, SSE4.1 and CRC32
//! that Rust's `core::arch` calls. What needs a newer processor is behind a question that is answered in `passes::cpu_features`. An
//! intrinsic that is not in the table stays, and makes its kernels unsupported (`analyses::legality`).
//!
//! The crate `libm`, which `no_std` crates use, has square roots as assembly of the host. They are operations, too, and for native code as
//! well. Their encoding is that of the oldest processors, which others are slow to mix with instructions for AVX.

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests;

use crate::error::CompileError;
use crate::link::definitions;
use crate::llvm::{Builder, Module, Type, TypeKind, ValueKind};

const TABLE: &str = include_str!("intrinsics.ll");

/// Replaces the intrinsics that the module uses by the functions of the table.
pub(crate) fn lower(module: &Module<'_>) -> Result<(), CompileError> {
    lower_assembly(module);
    definitions::replace(module, TABLE, |name| Some(format!("oxisycl.x86.{}", name.strip_prefix("llvm.x86.")?)))
}

/// The inline assembly of one register, and the operation that replaces it.
const ASSEMBLY: [(&str, &str); 2] =
    [("\"sqrtss ${0:x}, ${0:x}\"", "llvm.sqrt.f32"), ("\"sqrtsd ${0:x}, ${0:x}\"", "llvm.sqrt.f64")];

/// Replaces inline assembly whose operation is known.
pub(crate) fn lower_assembly(module: &Module<'_>) {
    for instruction in module.functions().into_iter().flat_map(|function| function.instructions()) {
        let Some(callee) = instruction.callee().filter(|callee| callee.kind() == ValueKind::InlineAsm) else {
            continue;
        };
        let text = callee.print();
        let Some((_, operation)) = ASSEMBLY.iter().find(|(assembly, _)| text.contains(assembly)) else { continue };
        let held = instruction.value_type();
        let of = if operation.ends_with("f32") { TypeKind::Float } else { TypeKind::Double };
        // Users may write the same text for vectors.
        if held.kind() != of || instruction.operand(0).value_type() != held {
            continue;
        }
        let operation = module.declare(operation, Type::function(held, &[held]));
        let builder = Builder::before(module.context(), instruction);
        instruction.replace_all_uses_with(builder.call(operation, &[instruction.operand(0)]));
        instruction.erase();
    }
}
