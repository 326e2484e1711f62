//! SYCL's mathematical functions (SYCL 2020 section 4.17), in kernels and on the host.
//!
//! Their names are SYCL's. If Rust has a method that does the same, such as `f32::floor`, the documentation of the
//! function names it. Both work in kernels, and are the same there. Functions with several results give tuples.
//!
//! They take numbers, and vectors and arrays of these ([`vector`](crate::vector)), to whose elements they apply. All arguments are then of
//! one length: `Vector::splat` makes a vector of a number. Comparisons give `bool` for numbers, masks for vectors, and an array of `bool`
//! for arrays. Geometric functions take Rust's arrays, too.
//!
//! # Precision
//!
//! Every function is within the limits of the OpenCL C specification, full profile, to which SYCL refers. The
//! documentation of each function has the limit, in units in the last place (ULP) of the result.
//! `crates/oxisycl/tests/math` checks the functions on each device. Results for zeros, infinities and NaN are those of
//! C99. On devices functions of `f32` compute in `f32` only. Those of `half::f16`, with the feature `half`, are computed in `f32` and rounded
//! once more.
//!
//! The floating-point policy of a build does not reach into the functions. Under `fast` results for NaN and infinities
//! are unspecified. Some functions of `f32` are then the device's imprecise instructions where it has them.
//! [`float`](crate::float) says which, and how imprecise. [`native`] has the same under every policy.
//!
//! ```
//! use oxisycl_device::math;
//!
//! assert_eq!(math::sinpi(0.5_f32), 1.0);
//! assert_eq!(math::rootn(-27.0_f64, 3), -3.0);
//! assert_eq!(math::upsample(0x12_u8, 0x34), 0x1234);
//! assert_eq!(math::cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), [0.0, 0.0, 1.0]);
//!
//! use oxisycl_device::vector::{Float3, Int3};
//!
//! let v = Float3::new(3.0, 0.0, -4.0);
//! assert_eq!(math::length(v), 5.0);
//! assert_eq!(math::fabs(v), Float3::new(3.0, 0.0, 4.0));
//! assert_eq!(math::signbit(v), Int3::new(0, 0, -1));
//! assert_eq!(math::select(v, Float3::splat(9.0), math::signbit(v)), Float3::new(3.0, 0.0, 9.0));
//! ```

pub(crate) mod elements;
mod float;
mod functions;
mod geometric;
#[cfg(feature = "half")]
mod half;
pub(crate) mod integer;
mod interpolation;
mod platform;
mod precision;
mod relational;

pub use elements::{Condition, Flags, Floats, Geometric, Integers, Narrows, Ordered, Words};
pub use float::Float;
pub use functions::*;
pub use geometric::{cross, distance, dot, fast_distance, fast_length, fast_normalize, length, normalize};
pub use integer::*;
pub use interpolation::{clamp, degrees, max, min, mix, radians, sign, smoothstep, step};
pub use precision::{half_precision, native};
pub use relational::*;

#[cfg(test)]
mod tests;
