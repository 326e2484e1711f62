//! Functions of published crates that compute with integers or by the host's instructions what LLVM has an operation for: conversions of
//! the crate `half`, square roots and fused products of `libm` (also of the copy in Rust's own runtime library). Also functions of `libm` that
//! call themselves and need not: not all devices can do that.
//!
//! `native.ll` has a function for each. Results are the same for numbers, with one exception: from `f64`, `half` on an x86 host may round
//! twice, by way of `f32`; devices round once.

use crate::CompileError;
use crate::llvm::Module;
use crate::stage::bodies;
use crate::symbols::plain_path;

const TABLE: &str = include_str!("native.ll");

/// The end of the function's path, and the function of the table. The two forms of a fused product are those of versions of `libm`.
const FUNCTIONS: [(&str, &str); 14] = [
    ("half::binary16::arch::f32_to_f16_fallback", "oxisycl.half.f32_to_f16"),
    ("half::binary16::arch::f64_to_f16_fallback", "oxisycl.half.f64_to_f16"),
    ("half::binary16::arch::f16_to_f32_fallback", "oxisycl.half.f16_to_f32"),
    ("half::binary16::arch::f16_to_f64_fallback", "oxisycl.half.f16_to_f64"),
    ("half::bfloat::convert::f32_to_bf16", "oxisycl.half.f32_to_bf16"),
    ("half::bfloat::convert::f64_to_bf16", "oxisycl.half.f64_to_bf16"),
    ("half::bfloat::convert::bf16_to_f32", "oxisycl.half.bf16_to_f32"),
    ("half::bfloat::convert::bf16_to_f64", "oxisycl.half.bf16_to_f64"),
    ("::math::arch::x86::sqrt", "oxisycl.libm.sqrt"),
    ("::math::arch::x86::sqrtf", "oxisycl.libm.sqrtf"),
    ("::math::arch::x86::fma::fma", "oxisycl.libm.fma"),
    ("::math::arch::x86::fma::fmaf", "oxisycl.libm.fmaf"),
    ("::math::frexp::frexp", "oxisycl.libm.frexp"),
    ("::math::frexpf::frexpf", "oxisycl.libm.frexpf"),
];

/// Replaces the functions that the module uses.
pub(crate) fn replace(module: &Module<'_>) -> Result<(), CompileError> {
    bodies::replace(module, TABLE, |symbol| {
        // Most symbols are not of these crates, and need not be demangled.
        let path =
            ["4half", "4arch3x86", "frexp"].iter().any(|part| symbol.contains(part)).then(|| plain_path(symbol))?;
        let (_, body) = FUNCTIONS.iter().find(|(function, _)| path.ends_with(function))?;
        Some((*body).to_owned())
    })
}
