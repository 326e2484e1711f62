//! Common functions (SYCL 2020 section 4.17.8). `clamp`, `max` and `min` are those of integers as well (4.17.7).

use super::float::sealed::Functions;
use super::{Float, Floats, Ordered};

/// `x`, or the nearest of the limits if it is not between them. Unlike Rust's `clamp` it does not panic: of limits in
/// the wrong order it takes the upper one.
#[inline]
pub fn clamp<T: Ordered>(x: T, least: T, largest: T) -> T {
    x.larger_of(least).lesser_of(largest)
}

/// The larger number; `x` if one is NaN. Rust's `max`.
#[inline]
pub fn max<T: Ordered>(x: T, y: T) -> T {
    x.larger_of(y)
}

/// The lesser number; `x` if one is NaN. Rust's `min`.
#[inline]
pub fn min<T: Ordered>(x: T, y: T) -> T {
    x.lesser_of(y)
}

/// Radians in degrees; Rust's `to_degrees`.
#[inline]
pub fn degrees<T: Floats>(radians: T) -> T {
    radians.map(|radians| T::Element::DEGREES * radians)
}

/// Degrees in radians; Rust's `to_radians`.
#[inline]
pub fn radians<T: Floats>(degrees: T) -> T {
    degrees.map(|degrees| T::Element::RADIANS * degrees)
}

/// `x` for `a = 0`, `y` for `a = 1`, and what lies on the line through them for other `a`.
#[inline]
pub fn mix<T: Floats>(x: T, y: T, a: T) -> T {
    x.zip3(y, a, |x, y, a| x + (y - x) * a)
}

/// 1 or -1 by the sign of the number; zeros come back, and 0 for NaN.
#[inline]
pub fn sign<T: Floats>(x: T) -> T {
    x.map(sign_of)
}

#[inline]
fn sign_of<T: Float>(x: T) -> T {
    if x > T::ZERO {
        T::ONE
    } else if x < T::ZERO {
        -T::ONE
    } else if x == T::ZERO {
        x
    } else {
        T::ZERO
    }
}

/// 0 below the first edge, 1 above the second, and a curve without corners between them.
#[inline]
pub fn smoothstep<T: Floats>(edge0: T, edge1: T, x: T) -> T {
    edge0.zip3(edge1, x, smoothstep_of)
}

#[inline]
fn smoothstep_of<T: Float>(edge0: T, edge1: T, x: T) -> T {
    let t = clamp((x - edge0) / (edge1 - edge0), T::ZERO, T::ONE);
    t * t * (T::THREE - T::TWO * t)
}

/// 0 below the edge, else 1.
#[inline]
pub fn step<T: Floats>(edge: T, x: T) -> T {
    edge.zip(x, |edge, x| if x < edge { Functions::ZERO } else { Functions::ONE })
}
