//! Lowers intrinsics of x86 processors, which published crates reach on their fast paths, to operations that every target has.
//!
//! `intrinsics.ll` is the table: a function `oxisycl.x86.<name>` for each `llvm.x86.<name>` of SSE, SSE2, SSE3, SSSE3, SSE4.1 and CRC32
//! that Rust's `core::arch` calls. What needs a newer processor is behind a question that is answered in `stage::features`. An
//! intrinsic that is not in the table stays, and makes its kernels unsupported (`stage::legality`).

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests;

use crate::CompileError;
use crate::llvm::Module;
use crate::stage::bodies;

const TABLE: &str = include_str!("intrinsics.ll");

/// Replaces the intrinsics that the module uses by the functions of the table.
pub(crate) fn lower(module: &Module<'_>) -> Result<(), CompileError> {
    bodies::replace(module, TABLE, |name| Some(format!("oxisycl.x86.{}", name.strip_prefix("llvm.x86.")?)))
}
