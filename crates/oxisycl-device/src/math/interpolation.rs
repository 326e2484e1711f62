//! Common functions (SYCL 2020 section 4.17.8). `clamp`, `max` and `min` are those of integers as well (4.17.7).

use super::Float;
use crate::DeviceCopyable;

/// `x`, or the nearest of the limits if it is not between them. Unlike Rust's `clamp` it does not panic: of limits in
/// the wrong order it takes the upper one.
#[inline]
pub fn clamp<T: DeviceCopyable + PartialOrd>(x: T, least: T, largest: T) -> T {
    let x = if x < least { least } else { x };
    if x > largest { largest } else { x }
}

/// The larger number; `x` if one is NaN. Rust's `max`.
#[inline]
pub fn max<T: DeviceCopyable + PartialOrd>(x: T, y: T) -> T {
    if x < y { y } else { x }
}

/// The lesser number; `x` if one is NaN. Rust's `min`.
#[inline]
pub fn min<T: DeviceCopyable + PartialOrd>(x: T, y: T) -> T {
    if y < x { y } else { x }
}

/// Radians in degrees; Rust's `to_degrees`.
#[inline]
pub fn degrees<T: Float>(radians: T) -> T {
    T::DEGREES * radians
}

/// Degrees in radians; Rust's `to_radians`.
#[inline]
pub fn radians<T: Float>(degrees: T) -> T {
    T::RADIANS * degrees
}

/// `x` for `a = 0`, `y` for `a = 1`, and what lies on the line through them for other `a`.
#[inline]
pub fn mix<T: Float>(x: T, y: T, a: T) -> T {
    x + (y - x) * a
}

/// 1 or -1 by the sign of the number; zeros come back, and 0 for NaN.
#[inline]
pub fn sign<T: Float>(x: T) -> T {
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
pub fn smoothstep<T: Float>(edge0: T, edge1: T, x: T) -> T {
    let t = clamp((x - edge0) / (edge1 - edge0), T::ZERO, T::ONE);
    t * t * (T::THREE - T::TWO * t)
}

/// 0 below the edge, else 1.
#[inline]
pub fn step<T: Float>(edge: T, x: T) -> T {
    if x < edge { T::ZERO } else { T::ONE }
}
