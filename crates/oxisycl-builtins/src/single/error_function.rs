//! The error function and its complement.

use core::f32::consts::FRAC_2_SQRT_PI;

use super::exponential::{Scaled, exp_scaled};
use crate::operation::{Operations, horner};

/// The error function of a number of at most 0.92 in magnitude.
#[inline(always)]
fn erf_of_small(x: f32) -> f32 {
    let z = x * x;
    // erf(x) = 2 / sqrt(pi) x + x^3 P(x^2), relative error 2^-32.9.
    let p = horner!(z; -0.37612638, 0.11283768, -0.026864318, 0.0052171634, -0.0008416301, 0.00010682175, -7.700595e-6);
    // The two parts of a zero differ in sign.
    x.fma(FRAC_2_SQRT_PI, x * z.fma(p, -5.8635383e-8)).copysign(x)
}

/// The error function. Limit 16 ULP.
#[inline]
pub fn erf(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude < 0.92 {
        return erf_of_small(x);
    }
    if x.is_nan() {
        return x;
    }
    // From 3.95 on it is 1.
    let t = magnitude.min(3.95) - 2.0;
    // erfc(x) = exp(-Q(x - 2)), error relative to erf 2^-30.4.
    let q = horner!(
        t;
        5.364941, 4.41816, 0.9237524, 0.016477613, -0.0035562818, 0.00072452746, -0.00015571201, 1.3944376e-5
    );
    (1.0 - exp_scaled(-q).value()).copysign(x)
}

/// 1 less the error function. Limit 16 ULP.
#[inline]
pub fn erfc(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude < 0.4 {
        return 1.0 - erf_of_small(x);
    }
    if x.is_nan() {
        return x;
    }
    // From 10.1 on it is zero.
    let a = magnitude.min(10.1);
    // exp(-a^2), less what the square loses by rounding.
    let square = a * a;
    let Scaled { factor, exponent } = exp_scaled(-square);
    let factor = (-a.fma(a, -square)).fma(factor, factor);
    let t = (a - 3.0) / (a + 3.0);
    // (1 + 2 a) exp(a^2) erfc(a) = P((a - 3) / (a + 3)), relative error 2^-24.6.
    let p = horner!(
        t;
        1.253008, -0.1356211, -0.047557864, 0.12964553, -0.11933608, 0.06829301, -0.023475233, 0.0026379605, 0.0014077942,
        -0.0009575582
    );
    let value = Scaled { factor: factor * (4.0 * p / 2.0_f32.fma(a, 1.0)), exponent: exponent - 2 }.value();
    if x < 0.0 { 2.0 - value } else { value }
}
