//! Powers with real and integer exponents, and roots of any degree.

use super::exponential::{exp2_scaled, limited};
use super::logarithm::log2_pair;
use super::pair::Pair;
use crate::operation::Operations;
use crate::powers::powers;

powers!(f32);

/// A positive finite number to the power of a finite exponent.
#[inline(always)]
fn positive(x: f32, exponent: Pair) -> f32 {
    let Pair { high, low } = log2_pair(x).times(exponent);
    // What is beyond it is beyond `f32`; the lower part of a huge product may be no number.
    let reached = limited(high, 200.0);
    exp2_scaled(Pair { high: reached, low: if reached == high { low } else { 0.0 } }).value()
}

/// The power of what is not negative, and its exponent's sign where the number is zero or infinite.
#[inline(always)]
fn magnitude(x: f32, exponent: Pair) -> f32 {
    if x == 0.0 || x == f32::INFINITY {
        if (x == 0.0) == (exponent.high > 0.0) { 0.0 } else { f32::INFINITY }
    } else {
        positive(x, exponent)
    }
}

/// `x` to the power of `y`. Limit 16 ULP.
#[inline]
pub fn pow(x: f32, y: f32) -> f32 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return f32::NAN;
    }
    let base = x.abs();
    let value = if y.abs() == f32::INFINITY {
        if base == 1.0 {
            1.0
        } else if (base > 1.0) == (y > 0.0) {
            f32::INFINITY
        } else {
            0.0
        }
    } else {
        magnitude(base, Pair { high: y, low: 0.0 })
    };
    if x.is_sign_positive() {
        return value;
    }
    let is_integer = y.truncated() == y;
    if !is_integer && x < 0.0 && base < f32::INFINITY {
        return f32::NAN;
    }
    let is_odd = is_integer && y.abs() < 16_777_216.0 && (y as i32) & 1 == 1;
    if is_odd { -value } else { value }
}

/// An integer, exactly.
#[inline(always)]
fn pair_of(n: i32) -> Pair {
    let high = n as f32;
    Pair { high, low: (i64::from(n) - high as i64) as f32 }
}

/// `x` to the power of an integer. Limit 16 ULP.
#[inline]
pub fn pown(x: f32, n: i32) -> f32 {
    if n == 0 {
        return 1.0;
    }
    if x.is_nan() {
        return x;
    }
    let value = magnitude(x.abs(), pair_of(n));
    if n & 1 == 1 { value.copysign(x) } else { value }
}

/// The root of degree `n`. NaN for degree 0, and for even degrees of negative numbers. Limit 16 ULP.
#[inline]
pub fn rootn(x: f32, n: i32) -> f32 {
    let is_odd = n & 1 == 1;
    if n == 0 || x.is_nan() || (x < 0.0 && !is_odd) {
        return f32::NAN;
    }
    let Pair { high, low } = pair_of(n);
    let inverse = 1.0 / high;
    let rest = -inverse.fma(high, -1.0).fma(1.0, inverse * low) * inverse;
    let value = magnitude(x.abs(), Pair { high: inverse, low: rest });
    if is_odd { value.copysign(x) } else { value }
}
