//! The gamma function and its logarithm.

use core::f32::consts::{LOG2_E, PI};

use super::circular::sinpi;
use super::exponential::{Scaled, exp2_scaled};
use super::logarithm::{log, log2_pair};
use super::pair::{Pair, ordered_sum, sum};
use super::power_of_two;
use crate::operation::{Operations, horner};

/// Beyond it `tgamma` is infinite, and zero below its negative.
const LARGEST: f32 = 50.0;

/// What Stirling's formula for the logarithm leaves out, for `x` from 4.
#[inline(always)]
fn stirling(x: f32) -> f32 {
    let inverse = 1.0 / x;
    // P(1 / x^2) / x, error 2^-30.9.
    horner!(inverse * inverse; 0.08333332, -0.002776068, 0.0007356731) * inverse
}

/// The gamma function of `x + rest` for `x` from 4 to 54, by Stirling's formula.
#[inline(always)]
fn gamma_of_large(x: f32, rest: f32) -> Scaled {
    let log2 = log2_pair(x);
    // (x - 1/2) log2(x) - x log2(e) + log2(2 pi) / 2.
    let power = log2.times(Pair { high: x - 0.5, low: 0.0 });
    let decay = Pair { high: -LOG2_E, low: -1.925963e-8 }.times(Pair { high: x, low: 0.0 });
    let total = power.plus(decay).plus(Pair { high: 1.3257481, low: -2.1239488e-8 });
    // The derivative of the logarithm is about log(x) - 1 / (2 x).
    let slope = log2.high - 0.5 * LOG2_E / x;
    let low = stirling(x).fma(LOG2_E, rest.fma(slope, total.low));
    exp2_scaled(ordered_sum(total.high, low))
}

/// The gamma function of a number from 2^-26 to 54.
#[inline(always)]
fn gamma_of_positive(x: f32) -> Scaled {
    if x >= 4.0 {
        return gamma_of_large(x, 0.0);
    }
    // gamma(x) = gamma(x + 4) / (x (x + 1) (x + 2) (x + 3)).
    let Pair { high, low } = sum(x, 4.0);
    let Scaled { factor, exponent } = gamma_of_large(high, low);
    let product = x * (x + 1.0) * ((x + 2.0) * (x + 3.0));
    Scaled { factor: factor / product * power_of_two(exponent), exponent: 0 }
}

/// The gamma function. NaN for negative integers. Limit 16 ULP.
#[inline]
pub fn tgamma(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude < 1.0 / 67_108_864.0 {
        return 1.0 / x;
    }
    if x > LARGEST || x.is_nan() {
        return x + f32::INFINITY;
    }
    if x > 0.0 {
        return gamma_of_positive(x).value();
    }
    let floor = x.lower();
    if floor == x {
        // Negative integers and negative infinity.
        return f32::NAN;
    }
    if magnitude > LARGEST {
        return if floor as i32 & 1 == 0 { 0.0 } else { -0.0 };
    }
    // gamma(x) = -pi / (x sin(pi x) gamma(-x)).
    let Scaled { factor, exponent } = gamma_of_positive(magnitude);
    let product = magnitude * sinpi(x) * factor;
    super::scale(PI / product, -exponent)
}

/// The logarithm of the magnitude of the gamma function.
///
/// Within 8 ULP for positive numbers. For negative ones it is a difference whose parts cancel near the function's zeros; there the error
/// is within 8 ULP of the larger part. The specifications set no limit.
#[inline]
pub fn lgamma(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude < 1.0 / 67_108_864.0 {
        return -log(magnitude);
    }
    if x.is_nan() || magnitude == f32::INFINITY {
        return magnitude;
    }
    let value = log_gamma_of_positive(magnitude);
    if x > 0.0 {
        return value;
    }
    // log(pi / |x sin(pi x)|) - log gamma(-x).
    let sin = sinpi(magnitude);
    if sin == 0.0 {
        return f32::INFINITY;
    }
    log(PI / (magnitude * sin.abs())) - value
}

/// The sign of the gamma function: 1 or -1.
#[inline]
pub fn gamma_sign(x: f32) -> i32 {
    // All numbers beyond 2^24 are even.
    if x < 0.0 && x > -16_777_216.0 && x.lower() as i32 & 1 == 1 { -1 } else { 1 }
}

#[inline(always)]
fn log_gamma_of_positive(x: f32) -> f32 {
    if x < 1.5 {
        let t = if x < 0.5 { x } else { x - 1.0 };
        // log gamma(1 + t) = t P(t), relative error 2^-24.6.
        let p = horner!(
            t;
            -0.5772157, 0.8224671, -0.40068865, 0.27057743, -0.20719437, 0.16953748, -0.14760794, 0.12728445, -0.08385948,
            0.08087075, -0.17993863, 0.1567897
        );
        return if x < 0.5 { t.fma(p, -log(x)) } else { t * p + 0.0 };
    }
    if x < 4.0 {
        let is_above_3 = x > 3.0;
        let t = if is_above_3 { x - 3.0 } else { x - 2.0 };
        // log gamma(2 + t) = t P(t), relative error 2^-25.9.
        let p = horner!(
            t;
            0.42278433, 0.32246703, -0.06735165, 0.020580932, -0.0073959576, 0.002893843, -0.0011367524, 0.00046526635,
            -0.00032179634, 0.00022444765, -4.9652088e-5, -1.28712445e-5
        );
        // gamma(x) = (x - 1) gamma(x - 1).
        return if is_above_3 { t.fma(p, log(x - 1.0)) } else { t * p };
    }
    // log(2 pi) / 2 - 1/2 comes last, after the large product.
    (x - 0.5).fma(log(x) - 1.0, 0.4189385 + stirling(x))
}
