//! Powers of e, 2 and 10.
//!
//! The argument becomes an integer power of two and a rest of at most half a factor two, whose power is a polynomial.

use core::f32::consts::{LN_10, LOG2_10, LOG2_E};

use super::pair::Pair;
use super::{power_of_two, scale};
use crate::operation::{Operations, horner};

/// The natural logarithm of 2, in two parts: 15 bits, so that products with exponents are exact, and the rest.
pub(super) const LN_2: Pair = Pair { high: 0.69314575, low: 1.4286068e-6 };
/// The decimal logarithm of 2, likewise.
pub(super) const LOG10_2: Pair = Pair { high: 0.3010254, low: 4.605039e-6 };

/// A power as a number near 1 and an exponent of two.
#[derive(Clone, Copy)]
pub(super) struct Scaled {
    pub(super) factor: f32,
    pub(super) exponent: i32,
}

impl Scaled {
    #[inline(always)]
    pub(super) fn value(self) -> f32 {
        scale(self.factor, self.exponent)
    }
}

/// `x`, less what makes no difference any more; NaN stays.
#[inline(always)]
pub(super) fn limited(x: f32, limit: f32) -> f32 {
    if x > limit {
        limit
    } else if x < -limit {
        -limit
    } else {
        x
    }
}

/// e to the power of a rest of at most ln 2 / 2.
#[inline(always)]
fn exp_of_rest(r: f32) -> f32 {
    // exp(r) = 1 + r + r^2 Q(r), relative error 2^-28.2.
    let q = horner!(r; 0.49999994, 0.16666521, 0.041668262, 0.008368676, 0.0013821078);
    (r * r).fma(q, r) + 1.0
}

/// e^x for `x` of at most 130 in magnitude.
#[inline(always)]
pub(super) fn exp_scaled(x: f32) -> Scaled {
    let n = (x * LOG2_E).nearest();
    let r = (-n).fma(LN_2.low, (-n).fma(LN_2.high, x));
    Scaled { factor: exp_of_rest(r), exponent: n as i32 }
}

/// 2^(high + low) for a sum of at most 240 in magnitude; `low` is small.
#[inline(always)]
pub(super) fn exp2_scaled(x: Pair) -> Scaled {
    let n = x.high.nearest();
    let r = (x.high - n) + x.low;
    // 2^r = 1 + r Q(r), relative error 2^-28.3.
    let q = horner!(r; core::f32::consts::LN_2, 0.24022648, 0.0555036, 0.009618506, 0.0013390812, 0.00015326492);
    Scaled { factor: r.fma(q, 1.0), exponent: n as i32 }
}

/// e to the power of `x`. Limit 3 ULP.
#[inline]
pub fn exp(x: f32) -> f32 {
    exp_scaled(limited(x, 130.0)).value()
}

/// 2 to the power of `x`. Limit 3 ULP.
#[inline]
pub fn exp2(x: f32) -> f32 {
    exp2_scaled(Pair { high: limited(x, 200.0), low: 0.0 }).value()
}

/// 10 to the power of `x`. Limit 3 ULP.
#[inline]
pub fn exp10(x: f32) -> f32 {
    let x = limited(x, 60.0);
    let n = (x * LOG2_10).nearest();
    let r = (-n).fma(LOG10_2.low, (-n).fma(LOG10_2.high, x));
    // The product with ln 10, and what the constant lost by rounding.
    let r = r.fma(LN_10, r * -3.1975436e-8);
    scale(exp_of_rest(r), n as i32)
}

/// e to the power of `x`, less 1, also for small `x`. Limit 3 ULP.
#[inline]
pub fn expm1(x: f32) -> f32 {
    let x = limited(x, 89.0);
    let n = (x * LOG2_E).nearest();
    let r = (-n).fma(LN_2.low, (-n).fma(LN_2.high, x));
    // exp(r) - 1 = r + r^2 Q(r), relative error 2^-31.1.
    let q = horner!(r; 0.5, 0.16666666, 0.041666493, 0.008333546, 0.0013932327, 0.00019761633);
    let p = (r * r).fma(q, r);
    if n == 0.0 {
        // A zero keeps its sign.
        return p.copysign(x);
    }
    // Half of it, since 2^128 is no number.
    let n = n as i32;
    let half = if n < -40 { 0.0 } else { power_of_two(n - 1) };
    half.fma(p, half - 0.5) * 2.0
}
