//! Geometric functions (SYCL 2020 section 4.17.9), on arrays as vectors.

use super::float::sealed::Functions;
use super::{Float, native};

/// The cross product of vectors of 3 or 4 elements; the fourth one of the result is 0.
#[inline]
pub fn cross<T: Float, const N: usize>(p: [T; N], q: [T; N]) -> [T; N] {
    const { assert!(N == 3 || N == 4, "cross products are of vectors of 3 or 4 elements") };
    let mut product = [T::ZERO; N];
    product[0] = p[1] * q[2] - p[2] * q[1];
    product[1] = p[2] * q[0] - p[0] * q[2];
    product[2] = p[0] * q[1] - p[1] * q[0];
    product
}

/// The sum of the products of the elements.
#[inline]
pub fn dot<T: Float, const N: usize>(p: [T; N], q: [T; N]) -> T {
    let mut sum = T::ZERO;
    for (p, q) in p.into_iter().zip(q) {
        sum = sum + p * q;
    }
    sum
}

/// The power of two to divide by so that squares stay in range, and the factor itself.
#[inline]
fn scale_of<T: Float, const N: usize>(p: [T; N]) -> (T, T) {
    let mut largest = T::ZERO;
    for element in p {
        largest = largest.larger(element.magnitude());
    }
    let (least, most) = T::SQUARES;
    if largest == T::ZERO || largest.has_infinity() || (largest > least && largest < most) {
        return (T::ONE, T::ONE);
    }
    // Not so small that its inverse is infinite.
    let exponent = Functions::ilogb(largest).max(2 * Functions::ilogb(least));
    (Functions::ldexp(T::ONE, exponent), Functions::ldexp(T::ONE, -exponent))
}

/// The square root of the sum of the squares, without overflow on the way.
#[inline]
pub fn length<T: Float, const N: usize>(p: [T; N]) -> T {
    if p.into_iter().any(T::has_infinity) {
        return T::ONE / T::ZERO;
    }
    let (scale, inverse) = scale_of(p);
    let p = p.map(|element| element * inverse);
    Functions::sqrt(dot(p, p)) * scale
}

/// The length of the difference.
#[inline]
pub fn distance<T: Float, const N: usize>(p: [T; N], q: [T; N]) -> T {
    let mut difference = p;
    for (element, q) in difference.iter_mut().zip(q) {
        *element = *element - q;
    }
    length(difference)
}

/// The vector of length 1 in the same direction. A vector of zeros comes back; of infinite elements only these count, as if they were 1.
#[inline]
pub fn normalize<T: Float, const N: usize>(p: [T; N]) -> [T; N] {
    let p = if p.into_iter().any(T::has_infinity) {
        p.map(|element| (if element.has_infinity() { T::ONE } else { T::ZERO }).with_sign_of(element))
    } else {
        let (_, inverse) = scale_of(p);
        p.map(|element| element * inverse)
    };
    let square = dot(p, p);
    if square == T::ZERO {
        return p;
    }
    let length = Functions::sqrt(square);
    p.map(|element| element / length)
}

/// [`distance`] without care for overflow, of less precision.
#[inline]
pub fn fast_distance<const N: usize>(p: [f32; N], q: [f32; N]) -> f32 {
    let mut difference = p;
    for (element, q) in difference.iter_mut().zip(q) {
        *element -= q;
    }
    fast_length(difference)
}

/// [`length`] without care for overflow, of less precision.
#[inline]
pub fn fast_length<const N: usize>(p: [f32; N]) -> f32 {
    native::sqrt(dot(p, p))
}

/// [`normalize`] without care for overflow, of less precision.
#[inline]
pub fn fast_normalize<const N: usize>(p: [f32; N]) -> [f32; N] {
    let square = dot(p, p);
    if square == 0.0 {
        return p;
    }
    let inverse = native::rsqrt(square);
    p.map(|element| element * inverse)
}
