//! Inverse functions of sine, cosine and tangent, in radians and in half turns.

use core::f32::consts::{FRAC_1_PI, FRAC_PI_2, FRAC_PI_4, PI};

use crate::operation::{Operations, horner};

/// What `pi / 2` lost by rounding; twice as much for `pi`.
const FRAC_PI_2_LOW: f32 = -4.371139e-8;

/// The arc sine of a number of at most 1/2 in magnitude; `z` is its square.
#[inline(always)]
fn asin_of_small(x: f32, z: f32) -> f32 {
    // asin(x) = x + x^3 P(x^2), relative error 2^-31.7.
    let p = horner!(z; 0.1666666, 0.07500522, 0.044513375, 0.031839095, 0.014314854, 0.03769671);
    (x * z).fma(p, x)
}

/// Half of the arc cosine of a number from 1/2 to 1.
#[inline(always)]
fn half_acos_of_large(x: f32) -> f32 {
    let z = x.fma(-0.5, 0.5);
    asin_of_small(z.root(), z)
}

/// The arc tangent of a number from 0 to 1.
#[inline(always)]
fn atan_of_small(x: f32) -> f32 {
    let z = x * x;
    // atan(x) = x + x^3 P(x^2), relative error 2^-28.5.
    let p = horner!(
        z;
        -0.333333, 0.1999853, -0.14264016, 0.10950881, -0.08399312, 0.057881575, -0.03109727, 0.0108688995, -0.0017828841
    );
    (x * z).fma(p, x)
}

/// `x / pi`.
#[inline(always)]
fn in_half_turns(x: f32) -> f32 {
    x.fma(FRAC_1_PI, x * 1.2841276e-8)
}

/// The arc sine in radians. Limit 4 ULP.
#[inline]
pub fn asin(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude <= 0.5 {
        return asin_of_small(x, x * x);
    }
    // The square root of a negative number makes NaN of what is above 1.
    let value = (half_acos_of_large(magnitude).fma(-2.0, FRAC_PI_2)) + FRAC_PI_2_LOW;
    value.copysign(x)
}

/// The arc cosine in radians. Limit 4 ULP.
#[inline]
pub fn acos(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude <= 0.5 {
        return FRAC_PI_2 - (asin_of_small(x, x * x) - FRAC_PI_2_LOW);
    }
    let value = 2.0 * half_acos_of_large(magnitude);
    if x < 0.0 { PI - (value - 2.0 * FRAC_PI_2_LOW) } else { value }
}

/// The arc tangent in radians. Limit 5 ULP.
#[inline]
pub fn atan(x: f32) -> f32 {
    let magnitude = x.abs();
    let is_large = magnitude > 1.0;
    let value = atan_of_small(if is_large { 1.0 / magnitude } else { magnitude });
    (if is_large { FRAC_PI_2 - (value - FRAC_PI_2_LOW) } else { value }).copysign(x)
}

/// The angle of the point `(x, y)` in radians, with the sign of `y`. Limit 6 ULP.
#[inline]
pub fn atan2(y: f32, x: f32) -> f32 {
    let (width, height) = (x.abs(), y.abs());
    if width.is_nan() || height.is_nan() {
        return f32::NAN;
    }
    let is_steep = height > width;
    let (small, large) = if is_steep { (width, height) } else { (height, width) };
    let mut angle = if small != large {
        atan_of_small(small / large)
    } else if small == 0.0 {
        0.0
    } else {
        // Also infinities.
        FRAC_PI_4
    };
    if is_steep {
        angle = FRAC_PI_2 - (angle - FRAC_PI_2_LOW);
    }
    if x.is_sign_negative() {
        angle = PI - (angle - 2.0 * FRAC_PI_2_LOW);
    }
    angle.copysign(y)
}

/// The arc sine in half turns. Limit 5 ULP.
#[inline]
pub fn asinpi(x: f32) -> f32 {
    in_half_turns(asin(x))
}

/// The arc cosine in half turns. Limit 5 ULP.
#[inline]
pub fn acospi(x: f32) -> f32 {
    in_half_turns(acos(x))
}

/// The arc tangent in half turns. Limit 5 ULP.
#[inline]
pub fn atanpi(x: f32) -> f32 {
    in_half_turns(atan(x))
}

/// The angle of the point `(x, y)` in half turns, with the sign of `y`. Limit 6 ULP.
#[inline]
pub fn atan2pi(y: f32, x: f32) -> f32 {
    in_half_turns(atan2(y, x))
}
