//! Functions that the kernels of `tests/kernels` call and that the compiler must not inline. They test that code of another crate is found
//! and linked when the device image is made.
//!
//! The crate does not depend on OxiSYCL, so that it has no device code until a kernel asks for it.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Random kernels, for the build script.
#[cfg(test)]
mod generator;

/// The powers of ten that fit 32 bits.
pub static POWERS_OF_TEN: [u32; 10] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// The number of decimal digits.
#[inline(never)]
pub fn digits(value: u32) -> u32 {
    1 + POWERS_OF_TEN[1..].iter().take_while(|power| value >= **power).count() as u32
}

/// The greatest common divisor, by Euclid's algorithm.
#[inline(never)]
pub fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The length of the longest run of equal elements.
#[inline(never)]
pub fn longest_run<T: PartialEq>(values: &[T]) -> usize {
    let (mut longest, mut current) = (0, 0);
    for (index, value) in values.iter().enumerate() {
        current = if index > 0 && values[index - 1] == *value { current + 1 } else { 1 };
        longest = longest.max(current);
    }
    longest
}

/// A polynomial of the third degree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cubic {
    /// From the constant upwards.
    pub coefficients: [f64; 4],
}

impl Cubic {
    /// The value at a place, by Horner's scheme.
    #[inline(never)]
    pub fn at(&self, x: f64) -> f64 {
        self.coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
    }

    /// The derivative, whose highest coefficient is zero.
    #[inline(never)]
    #[must_use]
    pub fn derivative(&self) -> Self {
        let [_, b, c, d] = self.coefficients;
        Self { coefficients: [b, 2.0 * c, 3.0 * d, 0.0] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted() {
        for (value, expected) in [(0, 1), (9, 1), (10, 2), (999_999_999, 9), (1_000_000_000, 10), (u32::MAX, 10)] {
            assert_eq!(digits(value), expected, "{value}");
        }
    }

    #[test]
    fn divisors_and_runs_are_those_of_the_definition() {
        assert_eq!((greatest_common_divisor(48, 36), greatest_common_divisor(7, 0)), (12, 7));
        assert_eq!((longest_run(&[1, 1, 2, 2, 2, 3]), longest_run::<u8>(&[])), (3, 0));
    }

    #[test]
    fn a_cubic_and_its_derivative_are_evaluated() {
        let cubic = Cubic { coefficients: [1.0, 2.0, 3.0, 4.0] };
        assert_eq!((cubic.at(2.0), cubic.derivative().at(2.0)), (49.0, 62.0));
    }
}
