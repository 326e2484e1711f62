//! Functions of `f32` that compute in `f32` and integers only: `f64` is slow on most GPUs, and absent on some devices.
//!
//! Each is within the limit that OpenCL C sets for the full profile (table "ULP values for single precision"). SYCL 2020 section 4.17.5
//! refers to that table. It keeps C99's results for zeros, infinities, NaN and subnormal numbers. The worst errors that were measured stand
//! in `crates/oxisycl/tests/math/results`.
//!
//! Rules for the code in here:
//! - No `f64`, no table in memory: devices differ in whether they have either.
//! - Products that must not be rounded are written as fused multiply-adds. The compiler does not contract, reorder or approximate the
//!   operations of this crate under any floating-point policy. The sums that make up for rounding would not survive it.
//! - Coefficients come from `coefficients.py` beside this crate's manifest; each list says what it approximates and how well.

mod arc;
mod circular;
mod error_function;
mod exponential;
mod gamma;
mod hyperbolic;
mod logarithm;
mod pair;
mod power;
mod reduction;
mod root;

pub use arc::{acos, acospi, asin, asinpi, atan, atan2, atan2pi, atanpi};
pub use circular::{cos, cospi, sin, sincos, sinpi, tan, tanpi};
pub use error_function::{erf, erfc};
pub use exponential::{exp, exp2, exp10, expm1};
pub use gamma::{gamma_sign, lgamma, tgamma};
pub use hyperbolic::{acosh, asinh, atanh, cosh, sinh, tanh};
pub use logarithm::{log, log1p, log2, log10};
pub use power::{pow, powi, pown, powr, rootn};
pub use root::{cbrt, hypot, rsqrt};

/// 2 to the power of `n`, for `n` from -126 to 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// `x * 2^n`, rounded once, for `x` between 1/4 and 4 and `n` from -250 to 250.
#[inline(always)]
fn scale(x: f32, n: i32) -> f32 {
    let half = n >> 1;
    x * power_of_two(half) * power_of_two(n - half)
}
