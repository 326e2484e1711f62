//! Functions of `f64`: those of the crate `libm`, a port of musl's, and what it lacks.
//!
//! Each is within the limit that the OpenCL C specification sets (table "ULP values for double precision"). The compiler gives `libm` the
//! device's instructions for square roots, rounding and fused multiply-adds.

use core::f64::consts::{FRAC_1_PI, PI};

use crate::operation::Operations;
use crate::powers::powers;

powers!(f64);

macro_rules! of_libm {
    ($($(#[$doc:meta])* $name:ident = $function:ident($($argument:ident),+);)*) => { $(
        $(#[$doc])*
        #[inline]
        pub fn $name($($argument: f64),+) -> f64 {
            libm::$function($($argument),+)
        }
    )* };
}

of_libm! {
    /// The sine of an angle in radians. Limit 4 ULP.
    sin = sin(x);
    /// The cosine of an angle in radians. Limit 4 ULP.
    cos = cos(x);
    /// The tangent of an angle in radians. Limit 5 ULP.
    tan = tan(x);
    /// The arc sine in radians. Limit 4 ULP.
    asin = asin(x);
    /// The arc cosine in radians. Limit 4 ULP.
    acos = acos(x);
    /// The arc tangent in radians. Limit 5 ULP.
    atan = atan(x);
    /// The angle of the point `(x, y)` in radians. Limit 6 ULP.
    atan2 = atan2(y, x);
    /// The hyperbolic sine. Limit 4 ULP.
    sinh = sinh(x);
    /// The hyperbolic cosine. Limit 4 ULP.
    cosh = cosh(x);
    /// The hyperbolic tangent. Limit 5 ULP.
    tanh = tanh(x);
    /// The inverse of the hyperbolic sine. Limit 4 ULP.
    asinh = asinh(x);
    /// The inverse of the hyperbolic tangent. Limit 5 ULP.
    atanh = atanh(x);
    /// e to the power of `x`. Limit 3 ULP.
    exp = exp(x);
    /// 2 to the power of `x`. Limit 3 ULP.
    exp2 = exp2(x);
    /// 10 to the power of `x`. Limit 3 ULP.
    exp10 = exp10(x);
    /// e to the power of `x`, less 1. Limit 3 ULP.
    expm1 = expm1(x);
    /// The natural logarithm. Limit 3 ULP.
    log = log(x);
    /// The logarithm to base 2. Limit 3 ULP.
    log2 = log2(x);
    /// The logarithm to base 10. Limit 3 ULP.
    log10 = log10(x);
    /// The natural logarithm of `1 + x`. Limit 2 ULP.
    log1p = log1p(x);
    /// `x` to the power of `y`. Limit 16 ULP.
    pow = pow(x, y);
    /// The length of the hypotenuse. Limit 4 ULP.
    hypot = hypot(x, y);
    /// The gamma function. Limit 16 ULP.
    tgamma = tgamma(x);
    /// The error function. Limit 16 ULP.
    erf = erf(x);
    /// 1 less the error function. Limit 16 ULP.
    erfc = erfc(x);
    /// The logarithm of the magnitude of the gamma function.
    lgamma = lgamma(x);
}

/// The sign of the gamma function: 1 or -1.
#[inline]
pub fn gamma_sign(x: f64) -> i32 {
    // All numbers beyond 2^53 are even.
    if x < 0.0 && x > -9_007_199_254_740_992.0 && x.lower() as i64 & 1 == 1 { -1 } else { 1 }
}

/// The inverse of the hyperbolic cosine. NaN below 1, where `libm` gives numbers. Limit 4 ULP.
#[inline]
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// Sine and cosine of an angle in radians. Limit 4 ULP.
#[inline]
pub fn sincos(x: f64) -> (f64, f64) {
    libm::sincos(x)
}

/// 2 to the power of `n`, for `n` from -1022 to 1023.
fn power_of_two(n: i64) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// The cube root. Limit 2 ULP.
#[inline]
pub fn cbrt(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude == 0.0 || !magnitude.is_finite() {
        return x;
    }
    // 2^-600 or 2^600, so that neither cubes nor their sums leave the range, and what undoes it.
    let (up, down) = if magnitude > 1.0e150 {
        (power_of_two(-600), power_of_two(200))
    } else if magnitude < 1.0e-150 {
        (power_of_two(600), power_of_two(-200))
    } else {
        (1.0, 1.0)
    };
    let a = magnitude * up;
    // A third of the exponent, within 4 percent: bits are about linear in the logarithm.
    let mut y = f64::from_bits(a.to_bits() / 3 + 0x2a9f_7893_0000_0000);
    // Two of Halley's steps, then Newton's with an exact rest.
    for _ in 0..2 {
        let cube = y * y * y;
        y *= (cube + 2.0 * a) / (2.0 * cube + a);
    }
    let square = y * y;
    let square_low = y.fma(y, -square);
    let rest = square_low.fma(y, square.fma(y, -a));
    let y = y - rest / (3.0 * square);
    (y * down).copysign(x)
}

/// One over the square root. Limit 2 ULP.
#[inline]
pub fn rsqrt(x: f64) -> f64 {
    1.0 / x.root()
}

/// An angle in half turns: the rest, at most a quarter of one, and the number of halves of it. NaN for infinities and NaN.
#[inline(always)]
fn halves(x: f64) -> (f64, i64) {
    // Numbers from here on are even.
    if x.abs() >= 9_007_199_254_740_992.0 {
        return (if x.is_finite() { 0.0 } else { f64::NAN }, 0);
    }
    let n = (x + x).nearest();
    (n.fma(-0.5, x), n as i64)
}

#[inline(always)]
fn turned(r: f64, n: i64) -> f64 {
    let angle = PI * r;
    // What the product lost is too small to count beside the rounding of the result, but for angles that are small themselves.
    let rest = PI.fma(r, -angle) + 1.224_646_799_147_353_2e-16 * r;
    let (sin, cos) = libm::sincos(angle);
    let value = if n & 1 == 0 { cos.fma(rest, sin) } else { (-sin).fma(rest, cos) };
    if n & 2 == 0 { value } else { -value }
}

/// The sine of `pi * x`. Zero of the sign of `x` for integers. Limit 4 ULP.
#[inline]
pub fn sinpi(x: f64) -> f64 {
    let (r, n) = halves(x);
    if r == 0.0 && n & 1 == 0 { 0.0_f64.copysign(x) } else { turned(r, n) }
}

/// The cosine of `pi * x`. Positive zero between integers. Limit 4 ULP.
#[inline]
pub fn cospi(x: f64) -> f64 {
    let (r, n) = halves(x);
    turned(r, n.wrapping_add(1)) + 0.0
}

/// The tangent of `pi * x`. For even integers it is zero with the sign of `x`, for odd ones zero with the other sign. Between integers it
/// is infinity, positive above even ones. Limit 6 ULP.
#[inline]
pub fn tanpi(x: f64) -> f64 {
    let (r, n) = halves(x);
    if r == 0.0 {
        let zero = 0.0_f64.copysign(x);
        return match n & 3 {
            0 => zero,
            1 => f64::INFINITY,
            2 => -zero,
            _ => f64::NEG_INFINITY,
        };
    }
    let (sin, cos) = (turned(r, 0), turned(r, 1));
    if n & 1 == 0 { sin / cos } else { -cos / sin }
}

/// `x / pi`.
#[inline(always)]
fn in_half_turns(x: f64) -> f64 {
    // The two parts of a zero differ in sign.
    x.fma(FRAC_1_PI, x * -1.967_867_667_518_248_6e-17).copysign(x)
}

/// The arc sine in half turns. Limit 5 ULP.
#[inline]
pub fn asinpi(x: f64) -> f64 {
    in_half_turns(libm::asin(x))
}

/// The arc cosine in half turns. Limit 5 ULP.
#[inline]
pub fn acospi(x: f64) -> f64 {
    in_half_turns(libm::acos(x))
}

/// The arc tangent in half turns. Limit 5 ULP.
#[inline]
pub fn atanpi(x: f64) -> f64 {
    in_half_turns(libm::atan(x))
}

/// The angle of the point `(x, y)` in half turns, with the sign of `y`. Limit 6 ULP.
#[inline]
pub fn atan2pi(y: f64, x: f64) -> f64 {
    in_half_turns(libm::atan2(y, x))
}

/// `x` to the power of an integer. Limit 16 ULP.
#[inline]
pub fn pown(x: f64, n: i32) -> f64 {
    libm::pow(x, n.into())
}

/// The root of degree `n`. NaN for degree 0, and for even degrees of negative numbers. Limit 16 ULP.
#[inline]
pub fn rootn(x: f64, n: i32) -> f64 {
    let is_odd = n & 1 == 1;
    if n == 0 || x.is_nan() || (x < 0.0 && !is_odd) {
        return f64::NAN;
    }
    let (magnitude, degree) = (x.abs(), f64::from(n));
    let inverse = 1.0 / degree;
    let mut value = libm::pow(magnitude, inverse);
    if magnitude != 0.0 && magnitude < f64::INFINITY {
        // What the exponent lost by rounding.
        let rest = -inverse.fma(degree, -1.0) * inverse;
        value = value.fma(rest * libm::log(magnitude), value);
    }
    if is_odd { value.copysign(x) } else { value }
}
