//! What kernels give, and when two results agree.

use std::fmt::Debug;

use half::{bf16, f16};
use oxisycl::DeviceCopyable;

/// How far floating-point results may be apart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Tolerance {
    /// Equal bits: products and sums are not contracted, or there are none.
    Exact,
    /// Equal bits if every operation is rounded on its own, else this distance, relative above one.
    Contracted(f64),
    /// This distance, relative above one: the kernel calls functions that each platform approximates in its own way.
    Approximate(f64),
}

impl Tolerance {
    /// The distance in a build whose policy is `strict` or not.
    pub(crate) fn distance(self, is_strict: bool) -> f64 {
        match self {
            Self::Contracted(distance) if !is_strict => distance,
            Self::Approximate(distance) => distance,
            Self::Exact | Self::Contracted(_) => 0.0,
        }
    }
}

/// A kernel's result for one work-item.
pub(crate) trait Outcome: DeviceCopyable + Debug {
    /// What the buffer holds before the kernel.
    const NOTHING: Self;

    /// Whether the results agree up to a distance of floating-point numbers.
    fn agrees(&self, other: &Self, distance: f64) -> bool;
}

macro_rules! exact {
    ($($type:ty = $nothing:expr),*) => { $(
        impl Outcome for $type {
            const NOTHING: Self = $nothing;

            fn agrees(&self, other: &Self, _: f64) -> bool {
                self == other
            }
        }
    )* };
}

exact! {
    u8 = 0xA5, u16 = 0xA5A5, u32 = 0xA5A5_A5A5, u64 = 0xA5A5_A5A5, u128 = 0xA5A5_A5A5, usize = 0xA5A5_A5A5,
    i8 = -91, i16 = -91, i32 = -91, i64 = -91, i128 = -91, bool = false, char = '?'
}

macro_rules! floats {
    ($($type:ty),*) => { $(
        impl Outcome for $type {
            const NOTHING: Self = <$type>::MAX;

            fn agrees(&self, other: &Self, distance: f64) -> bool {
                // Which of the many NaNs comes out is not promised, neither by Rust nor by devices.
                if self.is_nan() || other.is_nan() || self.to_bits() == other.to_bits() {
                    return self.is_nan() == other.is_nan();
                }
                let (left, right) = (f64::from(*self), f64::from(*other));
                distance > 0.0 && (left - right).abs() <= distance * left.abs().max(right.abs()).max(1.0)
            }
        }
    )* };
}

floats! { f32, f64, f16, bf16 }

impl<T: Outcome, const N: usize> Outcome for [T; N] {
    const NOTHING: Self = [T::NOTHING; N];

    fn agrees(&self, other: &Self, distance: f64) -> bool {
        self.iter().zip(other).all(|(left, right)| left.agrees(right, distance))
    }
}

impl<T: Outcome> Outcome for Option<T> {
    const NOTHING: Self = Some(T::NOTHING);

    fn agrees(&self, other: &Self, distance: f64) -> bool {
        match (self, other) {
            (Some(left), Some(right)) => left.agrees(right, distance),
            (None, None) => true,
            _ => false,
        }
    }
}

macro_rules! tuples {
    ($($name:ident = $index:tt),*) => {
        impl<$($name: Outcome),*> Outcome for ($($name,)*) {
            const NOTHING: Self = ($($name::NOTHING,)*);

            fn agrees(&self, other: &Self, distance: f64) -> bool {
                $(self.$index.agrees(&other.$index, distance))&&*
            }
        }
    };
}

tuples! { A = 0, B = 1 }
tuples! { A = 0, B = 1, C = 2 }
tuples! { A = 0, B = 1, C = 2, D = 3 }
tuples! { A = 0, B = 1, C = 2, D = 3, E = 4 }
