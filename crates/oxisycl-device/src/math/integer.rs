//! Integer functions (SYCL 2020 section 4.17.7).

use self::sealed::Operations;
use self::words::Multiply;
use super::elements::sealed::{Differences, Halves, Yields};
use super::{Integers, Narrows, Words};
use crate::DeviceCopyable;

/// An integer type of SYCL's functions: 8 to 64 bits, with and without sign. Nothing else can implement it.
pub trait Integer: sealed::Operations + Differences + DeviceCopyable + Ord {}

/// An integer type of which there is one of twice as many bits: 8 to 32 bits.
pub trait Narrow: Integer + Halves {}

pub(crate) mod sealed {
    /// What the functions do for one type; not for users.
    pub trait Operations: Copy {
        const BITS: u32;
        fn abs(self) -> Self;
        fn add_sat(self, other: Self) -> Self;
        fn sub_sat(self, other: Self) -> Self;
        fn add_wrapping(self, other: Self) -> Self;
        fn hadd(self, other: Self) -> Self;
        fn rhadd(self, other: Self) -> Self;
        fn clz(self) -> u32;
        fn ctz(self) -> u32;
        fn popcount(self) -> u32;
        fn mul_hi(self, other: Self) -> Self;
        fn mad_sat(self, factor: Self, term: Self) -> Self;
        fn rotate(self, count: u32) -> Self;
        fn count(self) -> u32;
    }
}

macro_rules! integers {
    ($($type:ident $wide:ident $abs:ident;)*) => { $(
        impl sealed::Operations for $type {
            const BITS: u32 = $type::BITS;

            #[inline(always)]
            fn abs(self) -> Self {
                integers!(@ $abs self)
            }

            #[inline(always)]
            fn add_sat(self, other: Self) -> Self {
                self.saturating_add(other)
            }

            #[inline(always)]
            fn sub_sat(self, other: Self) -> Self {
                self.saturating_sub(other)
            }

            #[inline(always)]
            fn add_wrapping(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn hadd(self, other: Self) -> Self {
                // The bits that both have, and half of those that one has.
                (self & other).wrapping_add((self ^ other) >> 1)
            }

            #[inline(always)]
            fn rhadd(self, other: Self) -> Self {
                (self | other).wrapping_sub((self ^ other) >> 1)
            }

            #[inline(always)]
            fn clz(self) -> u32 {
                self.leading_zeros()
            }

            #[inline(always)]
            fn ctz(self) -> u32 {
                self.trailing_zeros()
            }

            #[inline(always)]
            fn popcount(self) -> u32 {
                self.count_ones()
            }

            #[inline(always)]
            fn mul_hi(self, other: Self) -> Self {
                (($wide::from(self) * $wide::from(other)) >> $type::BITS) as Self
            }

            #[inline(always)]
            fn mad_sat(self, factor: Self, term: Self) -> Self {
                // Neither the product nor the sum leaves the wider type.
                let sum = $wide::from(self) * $wide::from(factor) + $wide::from(term);
                if sum > $wide::from(Self::MAX) {
                    Self::MAX
                } else if sum < $wide::from(Self::MIN) {
                    Self::MIN
                } else {
                    sum as Self
                }
            }

            #[inline(always)]
            fn rotate(self, count: u32) -> Self {
                self.rotate_left(count % $type::BITS)
            }

            #[inline(always)]
            fn count(self) -> u32 {
                // Modulo the number of bits, which divides 2^32: the sign does not matter.
                self as u32
            }
        }

        impl Integer for $type {}
    )* };
    (@ signed $value:ident) => { $value.wrapping_abs() };
    (@ unsigned $value:ident) => { $value };
}

integers! {
    i8 i16 signed;
    i16 i32 signed;
    i32 i64 signed;
    i64 i128 signed;
    u8 u16 unsigned;
    u16 u32 unsigned;
    u32 u64 unsigned;
    u64 u128 unsigned;
}

macro_rules! narrow {
    ($($type:ty)*) => { $(
        impl Narrow for $type {}
    )* };
}

narrow! { i8 i16 i32 u8 u16 u32 }

/// A `u32` for an integer, and a vector or array of `u32` for one of integers.
pub type Counts<T> = <T as Yields<u32>>::Result;

/// The magnitude; Rust's `wrapping_abs`: the least signed number has none, and comes back.
#[inline]
pub fn abs<T: Integers>(x: T) -> T {
    x.map(Operations::abs)
}

/// The distance of two numbers, which always fits; Rust's `abs_diff`.
#[inline]
pub fn abs_diff<T: Integers>(x: T, y: T) -> T::Unsigned {
    x.differences(y)
}

/// The sum, or the nearest number if it does not fit; Rust's `saturating_add`.
#[inline]
pub fn add_sat<T: Integers>(x: T, y: T) -> T {
    x.zip(y, Operations::add_sat)
}

/// The difference, or the nearest number if it does not fit; Rust's `saturating_sub`.
#[inline]
pub fn sub_sat<T: Integers>(x: T, y: T) -> T {
    x.zip(y, Operations::sub_sat)
}

/// Half of the sum, rounded downwards, without overflow.
#[inline]
pub fn hadd<T: Integers>(x: T, y: T) -> T {
    x.zip(y, Operations::hadd)
}

/// Half of the sum, rounded upwards, without overflow.
#[inline]
pub fn rhadd<T: Integers>(x: T, y: T) -> T {
    x.zip(y, Operations::rhadd)
}

/// The number of zero bits before the first one; Rust's `leading_zeros`.
#[inline]
pub fn clz<T: Integers>(x: T) -> Counts<T> {
    x.to(Operations::clz)
}

/// The number of zero bits after the last one; Rust's `trailing_zeros`.
#[inline]
pub fn ctz<T: Integers>(x: T) -> Counts<T> {
    x.to(Operations::ctz)
}

/// The number of one bits; Rust's `count_ones`.
#[inline]
pub fn popcount<T: Integers>(x: T) -> Counts<T> {
    x.to(Operations::popcount)
}

/// The upper half of the product.
#[inline]
pub fn mul_hi<T: Integers>(x: T, y: T) -> T {
    x.zip(y, Operations::mul_hi)
}

/// `mul_hi(a, b) + c`, without the bits that do not fit.
#[inline]
pub fn mad_hi<T: Integers>(a: T, b: T, c: T) -> T {
    a.zip3(b, c, |a, b, c| a.mul_hi(b).add_wrapping(c))
}

/// `a * b + c`, or the nearest number if it does not fit.
#[inline]
pub fn mad_sat<T: Integers>(a: T, b: T, c: T) -> T {
    a.zip3(b, c, Operations::mad_sat)
}

/// The bits of `v`, moved up by `count` places, and in from below again; Rust's `rotate_left`. The count is taken modulo the number of bits.
#[inline]
pub fn rotate<T: Integers>(v: T, count: T) -> T {
    v.zip(count, |v, count| v.rotate(count.count()))
}

/// A number of twice as many bits out of its halves.
#[inline]
pub fn upsample<T: Narrows>(high: T, low: T::Unsigned) -> T::Wide {
    high.upsampled(low)
}

/// A 32-bit integer, with or without sign. Nothing else can implement it.
pub trait Word: Integer + words::Multiply {}

pub(crate) mod words {
    pub trait Multiply {
        fn multiply_24(self, other: Self) -> Self;
    }
}

macro_rules! word {
    ($($type:ty)*) => { $(
        impl words::Multiply for $type {
            #[inline(always)]
            fn multiply_24(self, other: Self) -> Self {
                // The upper bits are dropped as by an instruction for 24 bits, so that wrong arguments are wrong everywhere alike.
                (self << 8 >> 8).wrapping_mul(other << 8 >> 8)
            }
        }

        impl Word for $type {}
    )* };
}

word! { i32 u32 }

/// The lower 32 bits of the product of two numbers of 24 bits; more bits of the arguments do not count.
#[inline]
pub fn mul24<T: Words>(x: T, y: T) -> T {
    x.zip(y, Multiply::multiply_24)
}

/// `mul24(x, y) + z`, without the bits that do not fit.
#[inline]
pub fn mad24<T: Words>(x: T, y: T, z: T) -> T {
    x.zip3(y, z, |x, y, z| x.multiply_24(y).add_wrapping(z))
}
