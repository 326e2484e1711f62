//! The functions for `half::f16`: those of `f32`, whose results are rounded once more.
//!
//! A number of `f32` has more than twice as many bits. So a result that is right in `f32` is at most slightly more than half a unit of `f16`
//! away. Sums, products, quotients and square roots come out as if they had been rounded once. A fused product and sum needs more care:
//! [`fma`].

use ::half::f16;
use oxisycl_builtins::exact;

use super::float::Float;

/// The functions that need no library, and the constants.
macro_rules! plain_half {
    () => {
        type Bits = u16;
        const ZERO: Self = f16::ZERO;
        const ONE: Self = f16::ONE;
        const TWO: Self = f16::from_f32_const(2.0);
        const THREE: Self = f16::from_f32_const(3.0);
        const DEGREES: Self = f16::from_f32_const(180.0 / core::f32::consts::PI);
        const RADIANS: Self = f16::from_f32_const(core::f32::consts::PI / 180.0);
        const SQUARES: (Self, Self) = (f16::from_f32_const(0.015_625), f16::from_f32_const(32.0));

        #[inline(always)]
        fn magnitude(self) -> Self {
            f16::from_bits(self.to_bits() & !SIGN)
        }

        #[inline(always)]
        fn with_sign_of(self, sign: Self) -> Self {
            f16::from_bits(self.to_bits() & !SIGN | sign.to_bits() & SIGN)
        }

        #[inline(always)]
        fn lesser(self, other: Self) -> Self {
            f16::from_f32(self.to_f32().min(other.to_f32()))
        }

        #[inline(always)]
        fn larger(self, other: Self) -> Self {
            f16::from_f32(self.to_f32().max(other.to_f32()))
        }

        classes_and_bits!(f16);

        #[inline(always)]
        fn with_code(code: u16) -> Self {
            // The quiet bit and the exponent are those of NaN, whatever the code is.
            f16::from_bits(f16::NAN.to_bits() | (code & 0x1FF))
        }
    };
}

/// One function, by that of `f32`.
macro_rules! by_single {
    (fma $arguments:tt -> $result:ty) => {
        #[inline(always)]
        fn fma(self, factor: Self, term: Self) -> Self {
            fma(self, factor, term)
        }
    };
    (nextafter $arguments:tt -> $result:ty) => {
        #[inline(always)]
        fn nextafter(self, other: Self) -> Self {
            nextafter(self, other)
        }
    };
    ($name:ident ($($argument:ident: $type:tt),*) -> $result:tt) => {
        #[inline(always)]
        fn $name(self, $($argument: $type),*) -> by_single!(@type $result) {
            let result = sealed::Functions::$name(self.to_f32(), $(by_single!(@argument $argument $type)),*);
            by_single!(@round $result result)
        }
    };
    (@type Self) => { Self };
    (@type i32) => { i32 };
    (@type ($first:ty, $second:ty)) => { ($first, $second) };
    (@argument $argument:ident i32) => { $argument };
    (@argument $argument:ident $type:tt) => { $argument.to_f32() };
    (@round Self $value:ident) => { f16::from_f32($value) };
    (@round i32 $value:ident) => { $value };
    (@round (Self, i32) $value:ident) => { (f16::from_f32($value.0), $value.1) };
    (@round (Self, Self) $value:ident) => { (f16::from_f32($value.0), f16::from_f32($value.1)) };
}
pub(super) use {by_single, plain_half};

/// The bit of a number's sign.
pub(super) const SIGN: u16 = 0x8000;

/// A product and a sum, rounded once. A product of two numbers of 11 bits is exact in `f32`. The sum is rounded to odd there, so that
/// rounding it again does not see a tie that there is none.
#[inline(always)]
pub(super) fn fma(x: f16, y: f16, z: f16) -> f16 {
    f16::from_f32(exact::sum_to_odd(x.to_f32() * y.to_f32(), z.to_f32()))
}

/// The next number from `x` in the direction of `y`; `y` if they are equal.
#[inline(always)]
pub(super) fn nextafter(x: f16, y: f16) -> f16 {
    if x.is_nan() || y.is_nan() {
        return f16::NAN;
    }
    if x == y {
        return y;
    }
    if x == f16::ZERO {
        return f16::from_bits(1 | y.to_bits() & SIGN);
    }
    let is_away = (y > x) == (x > f16::ZERO);
    f16::from_bits(if is_away { x.to_bits() + 1 } else { x.to_bits() - 1 })
}

impl Float for f16 {}
