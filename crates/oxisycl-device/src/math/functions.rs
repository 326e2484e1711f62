//! Math functions (SYCL 2020 section 4.17.5).

use super::elements::sealed::Yields;
use super::float::sealed::Functions;
use super::{Float, Floats};

/// An `i32` for a number, and a vector or array of `i32` for one of numbers.
pub type Exponents<T> = <T as Yields<i32>>::Result;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[inline]
        pub fn $name<T: Floats>(x: T) -> T {
            x.map(Functions::$name)
        }
    )* };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident($first:ident, $second:ident);)*) => { $(
        $(#[$doc])*
        #[inline]
        pub fn $name<T: Floats>($first: T, $second: T) -> T {
            $first.zip($second, Functions::$name)
        }
    )* };
}

unary! {
    /// The arc cosine in radians; Rust's `acos`. Limit 4 ULP.
    acos;
    /// The inverse of the hyperbolic cosine; Rust's `acosh`. NaN below 1. Limit 4 ULP.
    acosh;
    /// The arc cosine in half turns, `acos(x) / pi`. Limit 5 ULP.
    acospi;
    /// The arc sine in radians; Rust's `asin`. Limit 4 ULP.
    asin;
    /// The inverse of the hyperbolic sine; Rust's `asinh`. Limit 4 ULP.
    asinh;
    /// The arc sine in half turns, `asin(x) / pi`. Limit 5 ULP.
    asinpi;
    /// The arc tangent in radians; Rust's `atan`. Limit 5 ULP.
    atan;
    /// The inverse of the hyperbolic tangent; Rust's `atanh`. NaN beyond 1. Limit 5 ULP.
    atanh;
    /// The arc tangent in half turns, `atan(x) / pi`. Limit 5 ULP.
    atanpi;
    /// The cube root; Rust's `cbrt`. Limit 2 ULP.
    cbrt;
    /// The next integer upwards; Rust's `ceil`. Exact.
    ceil;
    /// The cosine of an angle in radians; Rust's `cos`. Limit 4 ULP.
    cos;
    /// The hyperbolic cosine; Rust's `cosh`. Limit 4 ULP.
    cosh;
    /// The cosine of an angle in half turns, `cos(pi * x)`. Limit 4 ULP.
    cospi;
    /// The error function. Limit 16 ULP.
    erf;
    /// 1 less the error function, also where that is near 1. Limit 16 ULP.
    erfc;
    /// e to the power of `x`; Rust's `exp`. Limit 3 ULP.
    exp;
    /// 10 to the power of `x`. Limit 3 ULP.
    exp10;
    /// 2 to the power of `x`; Rust's `exp2`. Limit 3 ULP.
    exp2;
    /// e to the power of `x`, less 1; Rust's `exp_m1`. Limit 3 ULP.
    expm1;
    /// The next integer downwards; Rust's `floor`. Exact.
    floor;
    /// The logarithm of the magnitude of the gamma function. No limit; within 8 ULP for positive numbers.
    lgamma;
    /// The natural logarithm; Rust's `ln`. Limit 3 ULP.
    log;
    /// The logarithm to base 10; Rust's `log10`. Limit 3 ULP.
    log10;
    /// The natural logarithm of `1 + x`; Rust's `ln_1p`. Limit 2 ULP.
    log1p;
    /// The logarithm to base 2; Rust's `log2`. Limit 3 ULP.
    log2;
    /// The exponent of two as a number: negative infinity for zero, infinity for infinities. Exact.
    logb;
    /// The nearest integer, an even one if two are as near; Rust's `round_ties_even`. Exact.
    rint;
    /// The nearest integer, away from zero if two are as near; Rust's `round`. Exact.
    round;
    /// One over the square root. Limit 2 ULP.
    rsqrt;
    /// The sine of an angle in radians; Rust's `sin`. Limit 4 ULP.
    sin;
    /// The hyperbolic sine; Rust's `sinh`. Limit 4 ULP.
    sinh;
    /// The sine of an angle in half turns, `sin(pi * x)`. Limit 4 ULP.
    sinpi;
    /// The square root; Rust's `sqrt`. Correctly rounded.
    sqrt;
    /// The tangent of an angle in radians; Rust's `tan`. Limit 5 ULP.
    tan;
    /// The hyperbolic tangent; Rust's `tanh`. Limit 5 ULP.
    tanh;
    /// The tangent of an angle in half turns, `tan(pi * x)`. Limit 6 ULP.
    tanpi;
    /// The gamma function. NaN for negative integers. Limit 16 ULP.
    tgamma;
    /// The next integer towards zero; Rust's `trunc`. Exact.
    trunc;
}

binary! {
    /// The angle of the point `(x, y)` in radians; Rust's `atan2`. Limit 6 ULP.
    atan2(y, x);
    /// The angle of the point `(x, y)` in half turns, `atan2(y, x) / pi`. Limit 6 ULP.
    atan2pi(y, x);
    /// `x - y` if it is positive, else zero. Correctly rounded.
    fdim(x, y);
    /// The rest of `x / y` towards zero, with the sign of `x`; Rust's `%`. Exact.
    fmod(x, y);
    /// The length of the hypotenuse, without overflow on the way; Rust's `hypot`. Limit 4 ULP.
    hypot(x, y);
    /// The next number from `x` in the direction of `y`. Exact.
    nextafter(x, y);
    /// `x` to the power of `y`; Rust's `powf`. Limit 16 ULP.
    pow(x, y);
    /// `x` to the power of `y` for `x` that is not negative, else NaN. Limit 16 ULP.
    powr(x, y);
    /// The rest of `x / y` to the nearest integer, an even one if two are as near. Exact.
    remainder(x, y);
}

/// `x` with the sign of `y`; Rust's `copysign`. Exact.
#[inline]
pub fn copysign<T: Floats>(x: T, y: T) -> T {
    x.zip(y, Functions::with_sign_of)
}

/// The magnitude; Rust's `abs`. Exact.
#[inline]
pub fn fabs<T: Floats>(x: T) -> T {
    x.map(Functions::magnitude)
}

/// `a * b + c`, rounded once; Rust's `mul_add`.
#[inline]
pub fn fma<T: Floats>(a: T, b: T, c: T) -> T {
    a.zip3(b, c, Functions::fma)
}

/// The larger number; the other one if one is NaN. Rust's `max`.
#[inline]
pub fn fmax<T: Floats>(x: T, y: T) -> T {
    x.zip(y, Functions::larger)
}

/// The lesser number; the other one if one is NaN. Rust's `min`.
#[inline]
pub fn fmin<T: Floats>(x: T, y: T) -> T {
    x.zip(y, Functions::lesser)
}

/// What is above the next integer downwards, less than 1, and that integer. The first is 0 for infinities.
#[inline]
pub fn fract<T: Floats>(x: T) -> (T, T) {
    x.map_pair(fract_of)
}

#[inline]
fn fract_of<T: Float>(x: T) -> (T, T) {
    let floor = Functions::floor(x);
    if x.has_infinity() {
        return (T::ZERO.with_sign_of(x), x);
    }
    // The difference of a small negative number is rounded to 1.
    let largest = Functions::nextafter(T::ONE, T::ZERO);
    let rest = x - floor;
    let rest = if rest > largest { largest } else { rest };
    (if rest.is_number() { rest.with_sign_of(if rest == T::ZERO { x } else { rest }) } else { rest }, floor)
}

/// A number from 1/2 to 1 and the exponent of two by which it is to be multiplied. Zeros, infinities and NaN come back with 0. Exact.
#[inline]
pub fn frexp<T: Floats>(x: T) -> (T, Exponents<T>) {
    x.split(Functions::frexp)
}

/// The exponent of two: `i32::MIN` for zero, `i32::MAX` for infinities and NaN.
#[inline]
pub fn ilogb<T: Floats>(x: T) -> Exponents<T> {
    x.to(Functions::ilogb)
}

/// `x * 2^k`, correctly rounded.
#[inline]
pub fn ldexp<T: Floats>(x: T, k: Exponents<T>) -> T {
    x.with(k, Functions::ldexp)
}

/// [`lgamma`] and the sign of the gamma function, 1 or -1.
#[inline]
pub fn lgamma_r<T: Floats>(x: T) -> (T, Exponents<T>) {
    x.split(|x| (Functions::lgamma(x), Functions::gamma_sign(x)))
}

/// `a * b + c`, with one or two roundings, whichever is faster; Rust's operators.
#[inline]
pub fn mad<T: Floats>(a: T, b: T, c: T) -> T {
    a.zip3(b, c, |a, b, c| a * b + c)
}

/// The number of larger magnitude; [`fmax`] if they are equal.
#[inline]
pub fn maxmag<T: Floats>(x: T, y: T) -> T {
    x.zip(y, maxmag_of)
}

#[inline]
fn maxmag_of<T: Float>(x: T, y: T) -> T {
    let (width, height) = (x.magnitude(), y.magnitude());
    if width > height {
        x
    } else if height > width {
        y
    } else {
        x.larger(y)
    }
}

/// The number of lesser magnitude; [`fmin`] if they are equal.
#[inline]
pub fn minmag<T: Floats>(x: T, y: T) -> T {
    x.zip(y, minmag_of)
}

#[inline]
fn minmag_of<T: Float>(x: T, y: T) -> T {
    let (width, height) = (x.magnitude(), y.magnitude());
    if width < height {
        x
    } else if height < width {
        y
    } else {
        x.lesser(y)
    }
}

/// The rest after the next integer towards zero, and that integer; both with the sign of `x`. Rust's `fract` and `trunc`. Exact.
#[inline]
pub fn modf<T: Floats>(x: T) -> (T, T) {
    x.map_pair(|x| {
        let whole = Functions::trunc(x);
        let rest = if x.has_infinity() { T::Element::ZERO } else { x - whole };
        (rest.with_sign_of(x), whole)
    })
}

/// A quiet NaN with a code in the last bits of its mantissa.
#[inline]
pub fn nan<T: Float>(code: T::Bits) -> T {
    T::with_code(code)
}

/// `x` to the power of an integer; Rust's `powi`, whose error grows with the exponent. Limit 16 ULP.
#[inline]
pub fn pown<T: Floats>(x: T, y: Exponents<T>) -> T {
    x.with(y, Functions::pown)
}

/// [`remainder`], and the last seven bits of the quotient with the sign of the quotient. Exact.
#[inline]
pub fn remquo<T: Floats>(x: T, y: T) -> (T, Exponents<T>) {
    x.zip_split(y, Functions::remquo)
}

/// The root of degree `y`. NaN for degree 0, and for even degrees of negative numbers. Limit 16 ULP.
#[inline]
pub fn rootn<T: Floats>(x: T, y: Exponents<T>) -> T {
    x.with(y, Functions::rootn)
}

/// Sine and cosine of an angle in radians; Rust's `sin_cos`. Limit 4 ULP.
#[inline]
pub fn sincos<T: Floats>(x: T) -> (T, T) {
    x.map_pair(Functions::sincos)
}
