//! What the functions apply to: numbers, and vectors and arrays of them, element by element.
//!
//! The functions are written for a number, and these traits say how a number's function becomes that of its vectors. Vectors implement
//! them in their own module.

use super::{Float, Integer, Word};
use crate::DeviceCopyable;

/// Floating-point numbers: `f32`, `f64`, `half::f16` with the feature `half`, and vectors and arrays of these ([`Vector`](crate::vector::Vector),
/// [`MArray`](crate::vector::MArray)). Nothing else can implement it.
pub trait Floats: sealed::Elements<Element: Float> + sealed::Yields<i32> + sealed::Tests {}

/// Integers of 8 to 64 bits, and vectors and arrays of these. Nothing else can implement it.
pub trait Integers: sealed::Elements<Element: Integer> + sealed::Yields<u32> + sealed::Differences {}

/// Integers of which there are such of twice as many bits: those of 8 to 32 bits, and vectors and arrays of these. Nothing else can
/// implement it.
pub trait Narrows: Integers + sealed::Halves {}

/// Integers of 32 bits, and vectors and arrays of these. Nothing else can implement it.
pub trait Words: Integers + sealed::Elements<Element: Word> {}

/// Values with a lesser and a larger one: whatever can be compared, and vectors and arrays of it. Nothing else can implement it.
pub trait Ordered: sealed::Order {}

/// Points of a space: vectors, and arrays of both kinds, of `f32` or `f64`, and such a number itself. Nothing else can implement it.
pub trait Geometric: sealed::Elements<Element: Float> {}

/// Results of comparisons: arrays of `bool`, and masks, whose elements are true if they are negative. Nothing else can implement it.
pub trait Flags: sealed::Flags {}

/// What [`select`](super::select) chooses values of type `T` by: one `bool`, or for vectors and arrays one for each element. Nothing else
/// can implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not choose between values of type `{T}`",
    note = "a `bool` does; for a `Vector`, so does a mask with integers of the elements' size; for an `MArray`, one of as many `bool`"
)]
pub trait Condition<T>: sealed::Condition<T> {}

pub(crate) mod sealed {
    /// Loops over elements; not for users.
    pub trait Elements: Copy {
        type Element: Copy;
        const LENGTH: usize;
        fn map(self, f: impl Fn(Self::Element) -> Self::Element) -> Self;
        fn zip(self, other: Self, f: impl Fn(Self::Element, Self::Element) -> Self::Element) -> Self;
        fn zip3(
            self,
            second: Self,
            third: Self,
            f: impl Fn(Self::Element, Self::Element, Self::Element) -> Self::Element,
        ) -> Self;
        fn map_pair(self, f: impl Fn(Self::Element) -> (Self::Element, Self::Element)) -> (Self, Self);
        fn generate(f: impl Fn(usize) -> Self::Element) -> Self;
        fn element(self, index: usize) -> Self::Element;
        fn fold<U>(self, first: U, f: impl Fn(U, Self::Element) -> U) -> U;
    }

    /// Functions that involve numbers of another type.
    pub trait Yields<U: Copy>: Elements {
        type Result;
        fn to(self, f: impl Fn(Self::Element) -> U) -> Self::Result;
        fn with(self, other: Self::Result, f: impl Fn(Self::Element, U) -> Self::Element) -> Self;
        fn split(self, f: impl Fn(Self::Element) -> (Self::Element, U)) -> (Self, Self::Result);
        fn zip_split(
            self,
            other: Self,
            f: impl Fn(Self::Element, Self::Element) -> (Self::Element, U),
        ) -> (Self, Self::Result);
    }

    /// Functions that give truth.
    pub trait Tests: Elements {
        type Truth;
        fn test(self, f: impl Fn(Self::Element) -> bool) -> Self::Truth;
        fn test_pair(self, other: Self, f: impl Fn(Self::Element, Self::Element) -> bool) -> Self::Truth;
    }

    pub trait Differences: Copy {
        type Unsigned;
        fn differences(self, other: Self) -> Self::Unsigned;
    }

    pub trait Halves: Differences {
        type Wide;
        fn upsampled(self, low: Self::Unsigned) -> Self::Wide;
    }

    pub trait Order: Copy {
        fn lesser_of(self, other: Self) -> Self;
        fn larger_of(self, other: Self) -> Self;
    }

    pub trait Flags: Copy {
        fn any(self) -> bool;
        fn all(self) -> bool;
    }

    pub trait Condition<T> {
        fn choose(self, otherwise: T, chosen: T) -> T;
    }
}

macro_rules! numbers {
    ($($type:ty)*) => { $(
        impl sealed::Elements for $type {
            type Element = $type;
            const LENGTH: usize = 1;

            #[inline(always)]
            fn map(self, f: impl Fn($type) -> $type) -> Self {
                f(self)
            }

            #[inline(always)]
            fn zip(self, other: Self, f: impl Fn($type, $type) -> $type) -> Self {
                f(self, other)
            }

            #[inline(always)]
            fn zip3(self, second: Self, third: Self, f: impl Fn($type, $type, $type) -> $type) -> Self {
                f(self, second, third)
            }

            #[inline(always)]
            fn map_pair(self, f: impl Fn($type) -> ($type, $type)) -> (Self, Self) {
                f(self)
            }

            #[inline(always)]
            fn generate(f: impl Fn(usize) -> $type) -> Self {
                f(0)
            }

            #[inline(always)]
            fn element(self, _: usize) -> $type {
                self
            }

            #[inline(always)]
            fn fold<U>(self, first: U, f: impl Fn(U, $type) -> U) -> U {
                f(first, self)
            }
        }

        impl<U: Copy> sealed::Yields<U> for $type {
            type Result = U;

            #[inline(always)]
            fn to(self, f: impl Fn($type) -> U) -> U {
                f(self)
            }

            #[inline(always)]
            fn with(self, other: U, f: impl Fn($type, U) -> $type) -> Self {
                f(self, other)
            }

            #[inline(always)]
            fn split(self, f: impl Fn($type) -> ($type, U)) -> (Self, U) {
                f(self)
            }

            #[inline(always)]
            fn zip_split(self, other: Self, f: impl Fn($type, $type) -> ($type, U)) -> (Self, U) {
                f(self, other)
            }
        }
    )* };
}

numbers! { i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 }
#[cfg(feature = "half")]
numbers! { half::f16 }

macro_rules! floats {
    ($($type:ty)*) => { $(
        impl sealed::Tests for $type {
            type Truth = bool;

            #[inline(always)]
            fn test(self, f: impl Fn($type) -> bool) -> bool {
                f(self)
            }

            #[inline(always)]
            fn test_pair(self, other: Self, f: impl Fn($type, $type) -> bool) -> bool {
                f(self, other)
            }
        }

        impl Floats for $type {}
        impl Geometric for $type {}
    )* };
}

floats! { f32 f64 }
#[cfg(feature = "half")]
floats! { half::f16 }

macro_rules! integers {
    ($($type:ident $unsigned:ty;)*) => { $(
        impl sealed::Differences for $type {
            type Unsigned = $unsigned;

            #[inline(always)]
            fn differences(self, other: Self) -> $unsigned {
                $type::abs_diff(self, other)
            }
        }

        impl Integers for $type {}
    )* };
}

integers! { i8 u8; u8 u8; i16 u16; u16 u16; i32 u32; u32 u32; i64 u64; u64 u64; }

macro_rules! halves {
    ($($type:ident $wide:ident;)*) => { $(
        impl sealed::Halves for $type {
            type Wide = $wide;

            #[inline(always)]
            fn upsampled(self, low: Self::Unsigned) -> $wide {
                $wide::from(self) << $type::BITS | $wide::from(low)
            }
        }

        impl Narrows for $type {}
    )* };
}

halves! { i8 i16; i16 i32; i32 i64; u8 u16; u16 u32; u32 u64; }

impl Words for i32 {}
impl Words for u32 {}

impl<T: Copy, const N: usize> sealed::Elements for [T; N] {
    type Element = T;
    const LENGTH: usize = N;

    #[inline(always)]
    fn map(self, f: impl Fn(T) -> T) -> Self {
        self.map(f)
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        Self::generate(|i| f(self[i], other[i]))
    }

    #[inline(always)]
    fn zip3(self, second: Self, third: Self, f: impl Fn(T, T, T) -> T) -> Self {
        Self::generate(|i| f(self[i], second[i], third[i]))
    }

    #[inline(always)]
    fn map_pair(self, f: impl Fn(T) -> (T, T)) -> (Self, Self) {
        let pairs = self.map(f);
        (pairs.map(|(first, _)| first), pairs.map(|(_, second)| second))
    }

    #[inline(always)]
    fn generate(f: impl Fn(usize) -> T) -> Self {
        core::array::from_fn(f)
    }

    #[inline(always)]
    fn element(self, index: usize) -> T {
        self[index]
    }

    #[inline(always)]
    fn fold<U>(self, first: U, f: impl Fn(U, T) -> U) -> U {
        let mut result = first;
        for element in self {
            result = f(result, element);
        }
        result
    }
}

impl<T: Float, const N: usize> Geometric for [T; N] {}

impl<T: DeviceCopyable + PartialOrd> sealed::Order for T {
    #[inline(always)]
    fn lesser_of(self, other: Self) -> Self {
        if other < self { other } else { self }
    }

    #[inline(always)]
    fn larger_of(self, other: Self) -> Self {
        if self < other { other } else { self }
    }
}
impl<T: DeviceCopyable + PartialOrd> Ordered for T {}

impl<const N: usize> sealed::Flags for [bool; N] {
    #[inline(always)]
    fn any(self) -> bool {
        let mut result = false;
        for flag in self {
            result |= flag;
        }
        result
    }

    #[inline(always)]
    fn all(self) -> bool {
        let mut result = true;
        for flag in self {
            result &= flag;
        }
        result
    }
}
impl<const N: usize> Flags for [bool; N] {}

impl<T: DeviceCopyable> sealed::Condition<T> for bool {
    #[inline(always)]
    fn choose(self, otherwise: T, chosen: T) -> T {
        if self { chosen } else { otherwise }
    }
}
impl<T: DeviceCopyable> Condition<T> for bool {}
