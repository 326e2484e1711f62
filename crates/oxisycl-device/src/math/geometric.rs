//! Geometric functions (SYCL 2020 section 4.17.9).

use super::float::sealed::Functions;
use super::{Geometric, native};

/// The cross product of vectors of 3 or 4 elements; the fourth one of the result is 0.
#[inline]
pub fn cross<T: Geometric>(p: T, q: T) -> T {
    const { assert!(T::LENGTH == 3 || T::LENGTH == 4, "cross products are of vectors of 3 or 4 elements") };
    let product = |i, j| p.element(i) * q.element(j) - p.element(j) * q.element(i);
    T::generate(|i| match i {
        0 => product(1, 2),
        1 => product(2, 0),
        2 => product(0, 1),
        _ => T::Element::ZERO,
    })
}

/// The sum of the products of the elements.
#[inline]
pub fn dot<T: Geometric>(p: T, q: T) -> T::Element {
    p.zip(q, |p, q| p * q).fold(T::Element::ZERO, |sum, product| sum + product)
}

/// Whether an element is infinite.
#[inline]
fn has_infinity<T: Geometric>(p: T) -> bool {
    p.fold(false, |found, element| found | element.has_infinity())
}

/// The power of two to divide by so that squares stay in range, and the factor itself.
#[inline]
fn scale_of<T: Geometric>(p: T) -> (T::Element, T::Element) {
    let largest = p.fold(T::Element::ZERO, |largest, element| largest.larger(element.magnitude()));
    let (least, most) = T::Element::SQUARES;
    let one = T::Element::ONE;
    if largest == T::Element::ZERO || largest.has_infinity() || (largest > least && largest < most) {
        return (one, one);
    }
    // Not so small that its inverse is infinite.
    let exponent = largest.ilogb().max(2 * least.ilogb());
    (one.ldexp(exponent), one.ldexp(-exponent))
}

/// The square root of the sum of the squares, without overflow on the way.
#[inline]
pub fn length<T: Geometric>(p: T) -> T::Element {
    if has_infinity(p) {
        return T::Element::ONE / T::Element::ZERO;
    }
    let (scale, inverse) = scale_of(p);
    let p = p.map(|element| element * inverse);
    dot(p, p).sqrt() * scale
}

/// The length of the difference.
#[inline]
pub fn distance<T: Geometric>(p: T, q: T) -> T::Element {
    length(p.zip(q, |p, q| p - q))
}

/// The vector of length 1 in the same direction. A vector of zeros comes back; of infinite elements only these count, as if they were 1.
#[inline]
pub fn normalize<T: Geometric>(p: T) -> T {
    let p = if has_infinity(p) {
        p.map(|element| {
            let unit = if element.has_infinity() { T::Element::ONE } else { T::Element::ZERO };
            unit.with_sign_of(element)
        })
    } else {
        let (_, inverse) = scale_of(p);
        p.map(|element| element * inverse)
    };
    let square = dot(p, p);
    if square == T::Element::ZERO {
        return p;
    }
    let length = square.sqrt();
    p.map(|element| element / length)
}

/// [`distance`] without care for overflow, of less precision.
#[inline]
pub fn fast_distance<T: Geometric<Element = f32>>(p: T, q: T) -> f32 {
    fast_length(p.zip(q, |p, q| p - q))
}

/// [`length`] without care for overflow, of less precision.
#[inline]
pub fn fast_length<T: Geometric<Element = f32>>(p: T) -> f32 {
    native::sqrt(dot(p, p))
}

/// [`normalize`] without care for overflow, of less precision.
#[inline]
pub fn fast_normalize<T: Geometric<Element = f32>>(p: T) -> T {
    let square = dot(p, p);
    if square == 0.0 {
        return p;
    }
    let inverse = native::rsqrt(square);
    p.map(|element| element * inverse)
}
