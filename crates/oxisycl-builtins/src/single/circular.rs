//! Sine, cosine and tangent, of angles in radians and in half turns.

use core::f32::consts::PI;

use super::reduction::quarters;
use crate::operation::{Operations, horner};

/// The sine of an angle of at most an eighth of a turn.
#[inline(always)]
fn sin_of_rest(r: f32) -> f32 {
    let z = r * r;
    // sin(r) = r + r^3 P(r^2), relative error 2^-32.6.
    let p = horner!(z; -0.16666667, 0.00833338, -0.00019853511, 2.837512e-6);
    (r * z).fma(p, r)
}

/// The cosine of an angle of at most an eighth of a turn.
#[inline(always)]
fn cos_of_rest(r: f32) -> f32 {
    let z = r * r;
    // cos(r) = 1 - z / 2 + z^2 P(z), relative error 2^-33.
    let p = horner!(z; 0.041666646, -0.001388731, 2.4432327e-5);
    z.fma(z.fma(p, -0.5), 1.0)
}

/// The tangent of an angle of at most an eighth of a turn.
#[inline(always)]
fn tan_of_rest(r: f32) -> f32 {
    let z = r * r;
    // tan(r) = r + r^3 P(r^2), relative error 2^-29.6.
    let p = horner!(z; 0.3333335, 0.13332675, 0.054058906, 0.021286294, 0.010827104, 9.881185e-5, 0.0043723593);
    (r * z).fma(p, r)
}

/// The sine after `n` quarter turns, out of sine and cosine of the rest.
#[inline(always)]
fn turned(sin: f32, cos: f32, n: i32) -> f32 {
    let value = if n & 1 == 0 { sin } else { cos };
    if n & 2 == 0 { value } else { -value }
}

/// The sine of an angle in radians. Limit 4 ULP.
#[inline]
pub fn sin(x: f32) -> f32 {
    if x.abs() < 1.0 / 4096.0 {
        // Also keeps the sign of zero.
        return x;
    }
    let (r, n) = quarters(x);
    turned(sin_of_rest(r), cos_of_rest(r), n)
}

/// The cosine of an angle in radians. Limit 4 ULP.
#[inline]
pub fn cos(x: f32) -> f32 {
    let (r, n) = quarters(x);
    turned(sin_of_rest(r), cos_of_rest(r), n.wrapping_add(1))
}

/// Sine and cosine of an angle in radians. Limit 4 ULP.
#[inline]
pub fn sincos(x: f32) -> (f32, f32) {
    let (r, n) = quarters(x);
    let (sin, cos) = (sin_of_rest(r), cos_of_rest(r));
    let is_small = x.abs() < 1.0 / 4096.0;
    (if is_small { x } else { turned(sin, cos, n) }, turned(sin, cos, n.wrapping_add(1)))
}

/// The tangent of an angle in radians. Limit 5 ULP.
#[inline]
pub fn tan(x: f32) -> f32 {
    if x.abs() < 1.0 / 4096.0 {
        return x;
    }
    let (r, n) = quarters(x);
    let tan = tan_of_rest(r);
    if n & 1 == 0 { tan } else { -1.0 / tan }
}

/// An angle in half turns: the rest, at most a quarter of one, and the number of halves of it. NaN for infinities and NaN.
#[inline(always)]
fn halves(x: f32) -> (f32, i32) {
    // Numbers from here on are even, and their doubles would not be numbers.
    if x.abs() >= 16_777_216.0 {
        return (if x.is_finite() { 0.0 } else { f32::NAN }, 0);
    }
    let n = (x + x).nearest();
    // NaN passes, and its number of halves is 0.
    (n.fma(-0.5, x), n as i32)
}

#[inline(always)]
fn sinpi_of_rest(r: f32) -> f32 {
    let z = r * r;
    // sin(pi r) = pi r + r^3 P(r^2), relative error 2^-33.4.
    let p = horner!(z; -5.1677127, 2.5501547, -0.5989812, 0.07915734);
    r.fma(PI, r * z.fma(p, -8.742278e-8))
}

#[inline(always)]
fn cospi_of_rest(r: f32) -> f32 {
    let z = r * r;
    // cos(pi r) = 1 + z P(z), relative error 2^-31.1.
    z.fma(horner!(z; -4.934802, 4.0586967, -1.3347579, 0.22898151), 1.0)
}

/// The sine of `pi * x`. Zero of the sign of `x` for integers. Limit 4 ULP.
#[inline]
pub fn sinpi(x: f32) -> f32 {
    let (r, n) = halves(x);
    if r == 0.0 && n & 1 == 0 {
        return 0.0_f32.copysign(x);
    }
    turned(sinpi_of_rest(r), cospi_of_rest(r), n)
}

/// The cosine of `pi * x`. Positive zero between integers. Limit 4 ULP.
#[inline]
pub fn cospi(x: f32) -> f32 {
    let (r, n) = halves(x);
    turned(sinpi_of_rest(r), cospi_of_rest(r), n.wrapping_add(1)) + 0.0
}

/// The tangent of `pi * x`. For even integers it is zero with the sign of `x`, for odd ones zero with the other sign. Between integers it
/// is infinity, positive above even ones. Limit 6 ULP.
#[inline]
pub fn tanpi(x: f32) -> f32 {
    let (r, n) = halves(x);
    if r == 0.0 {
        let zero = 0.0_f32.copysign(x);
        return match n & 3 {
            0 => zero,
            1 => f32::INFINITY,
            2 => -zero,
            _ => f32::NEG_INFINITY,
        };
    }
    let (sin, cos) = (sinpi_of_rest(r), cospi_of_rest(r));
    if n & 1 == 0 { sin / cos } else { -cos / sin }
}
