//! Functions of published crates that emulate with integers, or with instructions of the host, what LLVM has an operation for.
//!
//! They are conversions of the crate `half`, square roots and fused products of `libm` (also of the copy in Rust's own runtime library). Also functions of `libm` that
//! call themselves and need not: not all devices can do that.
//!
//! `native.ll` has a function for each. Results are the same for numbers, with one exception: from `f64`, `half` on an x86 host may round
//! twice, by way of `f32`. Devices round once.

use crate::error::CompileError;
use crate::link::definitions;
use crate::llvm::Module;
use crate::origin;

const TABLE: &str = include_str!("native.ll");

/// Replaces the functions that the module uses, except those of crates with `borrowed` names.
pub(crate) fn replace(module: &Module<'_>, borrowed: &[String]) -> Result<(), CompileError> {
    definitions::replace(module, TABLE, |symbol| origin::by_integers(symbol, borrowed).map(str::to_owned))
}
