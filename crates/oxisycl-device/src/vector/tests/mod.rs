//! Vectors and arrays against the same operations on their elements, over boundary values.

mod conversions;
mod functions;
mod layout;
mod memory;
mod operators;
mod parts;

use std::vec::Vec;

/// Numbers at the ends of a type and about zero.
trait Boundaries: Copy + 'static {
    const ALL: &'static [Self];

    /// All pairs, in rows of `N`, the last of which begins again. Under Miri, which is slow, some pairs.
    fn rows<const N: usize>() -> Vec<([Self; N], [Self; N])> {
        let pairs = Self::ALL.iter().flat_map(|x| Self::ALL.iter().map(|y| (*x, *y)));
        let pairs: Vec<(Self, Self)> = pairs.step_by(if cfg!(miri) { Self::ALL.len() * 3 + 1 } else { 1 }).collect();
        let row = |start: usize| {
            let pair = |i| pairs[(start + i) % pairs.len()];
            (std::array::from_fn(|i| pair(i).0), std::array::from_fn(|i| pair(i).1))
        };
        (0..pairs.len()).step_by(N).map(row).collect()
    }
}

macro_rules! boundaries {
    ($($type:ident)*) => { $(
        impl Boundaries for $type {
            const ALL: &'static [Self] =
                &[0, 1, 2, 3, 7, Self::MAX, Self::MAX - 1, Self::MIN, Self::MIN + 1, Self::MAX / 2, Self::MAX / 2 + 1];
        }
    )* };
    (floats: $($type:ident)*) => { $(
        impl Boundaries for $type {
            const ALL: &'static [Self] = &[
                0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.1, -0.1, 127.5, 128.0, -128.5, 255.5, 256.0, 65504.0,
                65520.0, 2147483520.0, 2147483648.0, -2147483648.0, 9.2233715e18, 9.223372e18, 1.8446744e19, -9.223372e18,
                Self::MIN_POSITIVE, Self::MIN_POSITIVE / 2.0, Self::MAX, Self::MIN, Self::INFINITY, Self::NEG_INFINITY,
                Self::NAN,
            ];
        }
    )* };
}

boundaries! { i8 u8 i16 u16 i32 u32 i64 u64 }
boundaries! { floats: f32 f64 }

/// Numbers whose bits can be compared, so that NaN equals itself and zeros have signs.
trait Bits: Copy {
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($type:ident)*) => { $(
        impl Bits for $type {
            fn bits(self) -> u64 {
                self as u64
            }
        }
    )* };
}

bits! { i8 u8 i16 u16 i32 u32 i64 u64 bool }

impl Bits for f32 {
    fn bits(self) -> u64 {
        if self.is_nan() { u64::MAX } else { self.to_bits().into() }
    }
}
impl Bits for f64 {
    fn bits(self) -> u64 {
        if self.is_nan() { u64::MAX } else { self.to_bits() }
    }
}

#[track_caller]
fn assert_same<T: Bits + std::fmt::Debug, const N: usize>(found: impl Into<[T; N]>, expected: [T; N]) {
    let found = found.into();
    assert_eq!(found.map(T::bits), expected.map(T::bits), "{found:?} {expected:?}");
}
