//! Relational functions (SYCL 2020 section 4.17.10). Numbers give `bool`, vectors give masks, arrays of SYCL give arrays of `bool`.

use super::elements::sealed::Tests;
use super::float::sealed::Functions;
use super::{Condition, Flags, Floats};

/// A `bool` for a number, a mask for a vector, in which true is -1, and an array of `bool` for an array.
pub type Truth<T> = <T as Tests>::Truth;

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident = $function:expr;)*) => { $(
        $(#[$doc])*
        #[inline]
        pub fn $name<T: Floats>(x: T, y: T) -> Truth<T> {
            x.test_pair(y, $function)
        }
    )* };
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $function:expr;)*) => { $(
        $(#[$doc])*
        #[inline]
        pub fn $name<T: Floats>(x: T) -> Truth<T> {
            x.test($function)
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
    islessgreater = |x, y| PartialOrd::partial_cmp(&x, &y).is_some_and(core::cmp::Ordering::is_ne);
    /// Whether neither is NaN.
    isordered = |x, y| x.is_number() && y.is_number();
    /// Whether one is NaN.
    isunordered = |x, y| !(x.is_number() && y.is_number());
}

classes! {
    /// Whether it is neither infinite nor NaN; Rust's `is_finite`.
    isfinite = |x| x.is_number() && !x.has_infinity();
    /// Whether it is infinite; Rust's `is_infinite`.
    isinf = Functions::has_infinity;
    /// Whether it is NaN; Rust's `is_nan`.
    isnan = |x| !x.is_number();
    /// Whether it is neither zero, subnormal, infinite nor NaN; Rust's `is_normal`.
    isnormal = Functions::is_usual;
    /// Whether the sign bit is set, also of zeros and NaN; Rust's `is_sign_negative`.
    signbit = Functions::is_below_zero;
}

/// Whether one of them is true. Elements of masks are true if they are negative.
#[inline]
pub fn any<T: Flags>(x: T) -> bool {
    x.any()
}

/// Whether all of them are true. Elements of masks are true if they are negative.
#[inline]
pub fn all<T: Flags>(x: T) -> bool {
    x.all()
}

/// The bits of `b` where those of `mask` are set, else those of `a`. For integers write `a & !mask | b & mask`.
#[inline]
pub fn bitselect<T: Floats>(a: T, b: T, mask: T) -> T {
    a.zip3(b, mask, Functions::select_bits)
}

/// `b` if the condition holds, else `a`: in the order of SYCL, not of `if`. A mask, or an array of `bool`, chooses for each element.
///
/// ```
/// use oxisycl_device::math;
/// use oxisycl_device::vector::Int2;
///
/// let (a, b) = (Int2::new(1, 2), Int2::new(7, 0));
/// assert_eq!(math::select(a, b, a.lt_mask(b)), Int2::new(7, 2));
/// assert_eq!(math::select(a, b, true), b);
/// ```
#[inline]
pub fn select<T, C: Condition<T>>(a: T, b: T, condition: C) -> T {
    condition.choose(a, b)
}
