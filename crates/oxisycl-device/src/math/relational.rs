//! Relational functions (SYCL 2020 section 4.17.10). Scalars give `bool`, as in SYCL; for the elements of arrays use `array::map`.

use super::Float;
use crate::DeviceCopyable;

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident = $function:expr;)*) => { $(
        $(#[$doc])*
        #[inline]
        pub fn $name<T: Float>(x: T, y: T) -> bool {
            $function(x, y)
        }
    )* };
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $function:expr;)*) => { $(
        $(#[$doc])*
        #[inline]
        pub fn $name<T: Float>(x: T) -> bool {
            $function(x)
        }
    )* };
}

comparisons! {
    /// `x == y`.
    isequal = |x, y| x == y;
    /// `x != y`; true if one is NaN.
    isnotequal = |x, y| x != y;
    /// `x > y`.
    isgreater = |x, y| x > y;
    /// `x >= y`.
    isgreaterequal = |x, y| x >= y;
    /// `x < y`.
    isless = |x, y| x < y;
    /// `x <= y`.
    islessequal = |x, y| x <= y;
    /// `x < y || x > y`; false if one is NaN.
    islessgreater = |x: T, y: T| x.partial_cmp(&y).is_some_and(core::cmp::Ordering::is_ne);
    /// Whether neither is NaN.
    isordered = |x: T, y: T| x.is_number() && y.is_number();
    /// Whether one is NaN.
    isunordered = |x: T, y: T| !(x.is_number() && y.is_number());
}

classes! {
    /// Whether it is neither infinite nor NaN; Rust's `is_finite`.
    isfinite = |x: T| x.is_number() && !x.has_infinity();
    /// Whether it is infinite; Rust's `is_infinite`.
    isinf = T::has_infinity;
    /// Whether it is NaN; Rust's `is_nan`.
    isnan = |x: T| !x.is_number();
    /// Whether it is neither zero, subnormal, infinite nor NaN; Rust's `is_normal`.
    isnormal = T::is_usual;
    /// Whether the sign bit is set, also of zeros and NaN; Rust's `is_sign_negative`.
    signbit = T::is_below_zero;
}

/// Whether one of them is true.
#[inline]
pub fn any<const N: usize>(x: [bool; N]) -> bool {
    let mut result = false;
    for x in x {
        result |= x;
    }
    result
}

/// Whether all of them are true.
#[inline]
pub fn all<const N: usize>(x: [bool; N]) -> bool {
    let mut result = true;
    for x in x {
        result &= x;
    }
    result
}

/// The bits of `b` where those of `mask` are set, else those of `a`. For integers write `a & !mask | b & mask`.
#[inline]
pub fn bitselect<T: Float>(a: T, b: T, mask: T) -> T {
    a.select_bits(b, mask)
}

/// `b` if the condition holds, else `a`: in the order of SYCL, not of `if`.
#[inline]
pub fn select<T: DeviceCopyable>(a: T, b: T, condition: bool) -> T {
    if condition { b } else { a }
}
