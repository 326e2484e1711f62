//! Hyperbolic functions and their inverses.

use core::f32::consts::LN_2;

use super::exponential::{Scaled, exp_scaled};
use super::logarithm::{log, log1p};
use crate::operation::{Operations, horner};

/// Quarters of `exp(x)` and `exp(-x)`, so that the first one is a number wherever the function is; for `x` from 0 to 130.
#[inline(always)]
fn quarters(x: f32) -> (f32, f32) {
    let Scaled { factor, exponent } = exp_scaled(x);
    let quarter = Scaled { factor, exponent: exponent - 2 }.value();
    (quarter, 0.0625 / quarter)
}

/// The hyperbolic sine. Limit 4 ULP.
#[inline]
pub fn sinh(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude < 1.0 {
        let z = x * x;
        // sinh(x) = x + x^3 P(x^2), relative error 2^-31.6.
        let p = horner!(z; 0.16666667, 0.0083333105, 0.00019842896, 2.7822132e-6);
        return (x * z).fma(p, x);
    }
    if x.is_nan() {
        return x;
    }
    let (up, down) = quarters(magnitude.min(130.0));
    (2.0 * (up - down)).copysign(x)
}

/// The hyperbolic cosine. Limit 4 ULP.
#[inline]
pub fn cosh(x: f32) -> f32 {
    if x.is_nan() {
        return x;
    }
    let (up, down) = quarters(x.abs().min(130.0));
    2.0 * (up + down)
}

/// The hyperbolic tangent. Limit 5 ULP.
#[inline]
pub fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude < 0.6 {
        let z = x * x;
        // tanh(x) = x + x^3 P(x^2), relative error 2^-33.
        let p = horner!(z; -0.3333333, 0.1333323, -0.05395007, 0.02172051, -0.008230544, 0.002195489);
        return (x * z).fma(p, x).copysign(x);
    }
    if x.is_nan() {
        return x;
    }
    // From 10 on it is 1.
    let square = exp_scaled(2.0 * magnitude.min(10.0)).value();
    (1.0 - 2.0 / (square + 1.0)).copysign(x)
}

/// The inverse of the hyperbolic sine. Limit 4 ULP.
#[inline]
pub fn asinh(x: f32) -> f32 {
    let magnitude = x.abs();
    let value = if magnitude > 1.0e9 {
        log(magnitude) + LN_2
    } else {
        // log(x + sqrt(x^2 + 1)), of which 1 is taken out.
        let root = magnitude.fma(magnitude, 1.0).root();
        log1p(magnitude.fma(magnitude / (1.0 + root), magnitude))
    };
    value.copysign(x)
}

/// The inverse of the hyperbolic cosine. NaN below 1. Limit 4 ULP.
#[inline]
pub fn acosh(x: f32) -> f32 {
    if x < 1.0 {
        return f32::NAN;
    }
    if x > 1.0e9 {
        return log(x) + LN_2;
    }
    // log(x + sqrt(x^2 - 1)), of which 1 is taken out.
    let t = x - 1.0;
    log1p(t + t.fma(t, 2.0 * t).root())
}

/// The inverse of the hyperbolic tangent. NaN beyond 1. Limit 5 ULP.
#[inline]
pub fn atanh(x: f32) -> f32 {
    let magnitude = x.abs();
    (0.5 * log1p(2.0 * magnitude / (1.0 - magnitude))).copysign(x)
}
