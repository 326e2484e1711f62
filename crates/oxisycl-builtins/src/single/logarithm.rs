//! Logarithms.
//!
//! The argument becomes an exponent of two and a number between 2/3 and 4/3, whose logarithm is a polynomial.

use core::f32::consts::{LOG2_E, LOG10_E};

use super::exponential::{LN_2, LOG10_2};
use super::pair::{Pair, ordered_sum, sum};
use super::power_of_two;
use crate::operation::{Operations, horner};

/// `m * 2^e`, with `m` from `2/3` (the bits `LEAST`) to twice as much.
const LEAST: i32 = 0x3f2a_aaab;
/// The bits of the square root of 1/2.
const LEAST_ROOT: i32 = 0x3f35_04f3;

/// Splits a positive finite number.
#[inline(always)]
fn split(x: f32, least: i32) -> (f32, i32) {
    let is_small = x < f32::MIN_POSITIVE;
    let bits = (if is_small { x * 8_388_608.0 } else { x }).to_bits() as i32;
    let exponent = (bits - least) >> 23;
    (f32::from_bits((bits - (exponent << 23)) as u32), exponent - if is_small { 23 } else { 0 })
}

/// What `log(1 + f)` is above `f`, for `f` between -1/3 and 1/3.
#[inline(always)]
fn above(f: f32) -> f32 {
    // log(1 + f) = f - f^2 / 2 + f^3 P(f), relative error 2^-27.7.
    let p = horner!(
        f;
        0.33333215, -0.24999803, 0.20010446, -0.16680247, 0.14005303, -0.12187451, 0.1398693, -0.12878321
    );
    p.fma(f, -0.5) * (f * f)
}

/// The logarithm of what is not positive and finite.
#[inline(always)]
fn special(x: f32) -> f32 {
    if x == 0.0 {
        f32::NEG_INFINITY
    } else if x > 0.0 {
        f32::INFINITY
    } else {
        f32::NAN
    }
}

#[inline(always)]
fn is_ordinary(x: f32) -> bool {
    x > 0.0 && x < f32::INFINITY
}

/// The natural logarithm. Limit 3 ULP.
#[inline]
pub fn log(x: f32) -> f32 {
    if !is_ordinary(x) {
        return special(x);
    }
    let (m, e) = split(x, LEAST);
    let (f, e) = (m - 1.0, e as f32);
    e.fma(LN_2.high, e.fma(LN_2.low, f + above(f)))
}

/// The logarithm to base 2. Limit 3 ULP.
#[inline]
pub fn log2(x: f32) -> f32 {
    if !is_ordinary(x) {
        return special(x);
    }
    let (m, e) = split(x, LEAST);
    let f = m - 1.0;
    let low = f.fma(1.925963e-8, above(f) * LOG2_E);
    e as f32 + f.fma(LOG2_E, low)
}

/// The logarithm to base 10. Limit 3 ULP.
#[inline]
pub fn log10(x: f32) -> f32 {
    if !is_ordinary(x) {
        return special(x);
    }
    let (m, e) = split(x, LEAST);
    let (f, e) = (m - 1.0, e as f32);
    let low = f.fma(-1.010305e-8, above(f) * LOG10_E);
    e.fma(LOG10_2.high, e.fma(LOG10_2.low, f.fma(LOG10_E, low)))
}

/// The natural logarithm of `1 + x`, also for small `x`. Limit 2 ULP.
#[inline]
pub fn log1p(x: f32) -> f32 {
    if x > -0.29 && x < 0.33 {
        return x + above(x);
    }
    if !(x > -1.0 && x < f32::INFINITY) {
        return special(1.0 + x);
    }
    let Pair { high, low } = sum(1.0, x);
    let (m, e) = split(high, LEAST);
    // What the sum lost, in units of m; nothing of it is left in large ones.
    let lost = if e < 30 { low * power_of_two(-e) } else { 0.0 };
    let (f, e) = ((m - 1.0) + lost, e as f32);
    e.fma(LN_2.high, e.fma(LN_2.low, f + above(f)))
}

/// The logarithm to base 2 of a positive finite number, with a relative error of about 2^-31.
#[inline(always)]
pub(super) fn log2_pair(x: f32) -> Pair {
    let (m, e) = split(x, LEAST_ROOT);
    // log2(m) = 2 log2(e) atanh(s), s = (m - 1) / (m + 1).
    let f = m - 1.0;
    let sum_high = f + 2.0;
    let sum_low = f - (sum_high - 2.0);
    let s = f / sum_high;
    let s_low = (-s).fma(sum_low, (-s).fma(sum_high, f)) / sum_high;
    let z = s * s;
    // atanh(s) = s + s^3 P(s^2), relative error 2^-35.2.
    let p = horner!(z; 0.3333333, 0.20000486, 0.14249393, 0.121396035) * z;
    let scaled = Pair { high: s, low: s_low }.times(Pair { high: 2.0 * LOG2_E, low: 3.851926e-8 });
    let log_of_m = ordered_sum(scaled.high, scaled.high.fma(p, scaled.low));
    let Pair { high, low } = sum(e as f32, log_of_m.high);
    ordered_sum(high, low + log_of_m.low)
}
