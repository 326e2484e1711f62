//! Conversions of vectors: of the values of elements, rounded, and of their bits.

use bytemuck::{AnyBitPattern, NoUninit};

use super::{Vector, VectorElement};
use crate::math;

/// How a conversion rounds values that the new type does not have (SYCL 2020 `rounding_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Towards zero if the new type is an integer, else to the nearest number.
    #[default]
    Automatic,
    /// To the nearest number, an even one if two are as near.
    ToEven,
    /// Towards zero.
    TowardZero,
    /// Upwards.
    TowardPositive,
    /// Downwards.
    TowardNegative,
}

impl Rounding {
    /// The integer that a number becomes.
    #[inline(always)]
    fn whole<F: math::Floats>(self, x: F) -> F {
        match self {
            // The conversion that follows does it.
            Self::Automatic | Self::TowardZero => x,
            Self::ToEven => math::rint(x),
            Self::TowardPositive => math::ceil(x),
            Self::TowardNegative => math::floor(x),
        }
    }

    /// The nearest number, or the one before or behind it. Which of them is right follows from its place: above or below of the exact
    /// value, which is negative or not.
    #[inline(always)]
    fn directed<F: Neighbours>(self, nearest: F, is_above: bool, is_below: bool, is_negative: bool) -> F {
        let (is_too_high, is_too_low) = match self {
            Self::Automatic | Self::ToEven => (false, false),
            Self::TowardZero => (is_above && !is_negative, is_below && is_negative),
            Self::TowardPositive => (false, is_below),
            Self::TowardNegative => (is_above, false),
        };
        if is_too_high {
            nearest.before()
        } else if is_too_low {
            nearest.behind()
        } else {
            nearest
        }
    }
}

/// The numbers beside a number.
trait Neighbours: Copy {
    fn before(self) -> Self;
    fn behind(self) -> Self;
}

macro_rules! neighbours {
    ($($type:ty)*) => { $(
        impl Neighbours for $type {
            #[inline(always)]
            fn before(self) -> Self {
                self.next_down()
            }

            #[inline(always)]
            fn behind(self) -> Self {
                self.next_up()
            }
        }
    )* };
}

neighbours! { f32 f64 }

/// A number that becomes one of another type; not for users. All types go through the widest one of their kind, which has their values.
pub trait Cast: Copy {
    fn cast<U: Cast>(self, rounding: Rounding) -> U;
    fn from_signed(x: i64, rounding: Rounding) -> Self;
    fn from_unsigned(x: u64, rounding: Rounding) -> Self;
    fn from_single(x: f32, rounding: Rounding) -> Self;
    fn from_double(x: f64, rounding: Rounding) -> Self;
}

macro_rules! integers {
    ($($type:ident $from:ident $widest:ident;)*) => { $(
        impl Cast for $type {
            #[inline(always)]
            fn cast<U: Cast>(self, rounding: Rounding) -> U {
                U::$from($widest::from(self), rounding)
            }

            #[inline(always)]
            fn from_signed(x: i64, _: Rounding) -> Self {
                x as Self
            }

            #[inline(always)]
            fn from_unsigned(x: u64, _: Rounding) -> Self {
                x as Self
            }

            #[inline(always)]
            fn from_single(x: f32, rounding: Rounding) -> Self {
                rounding.whole(x) as Self
            }

            #[inline(always)]
            fn from_double(x: f64, rounding: Rounding) -> Self {
                rounding.whole(x) as Self
            }
        }
    )* };
}

integers! {
    i8 from_signed i64; i16 from_signed i64; i32 from_signed i64; i64 from_signed i64;
    u8 from_unsigned u64; u16 from_unsigned u64; u32 from_unsigned u64; u64 from_unsigned u64;
}

/// The conversions of integers. The nearest number may be one more than the largest integer, which `as` would hide.
macro_rules! from_integers {
    ($($name:ident $integer:ident;)*) => { $(
        #[inline(always)]
        fn $name(x: $integer, rounding: Rounding) -> Self {
            const BEYOND: f64 = 2.0 * ($integer::MAX / 2 + 1) as f64;
            let nearest = x as Self;
            let is_beyond = nearest >= BEYOND as Self;
            let is_above = is_beyond || (nearest as $integer) > x;
            let is_below = !is_beyond && (nearest as $integer) < x;
            rounding.directed(nearest, is_above, is_below, nearest < 0.0)
        }
    )* };
}

impl Cast for f32 {
    #[inline(always)]
    fn cast<U: Cast>(self, rounding: Rounding) -> U {
        U::from_single(self, rounding)
    }

    from_integers! { from_signed i64; from_unsigned u64; }

    #[inline(always)]
    fn from_single(x: f32, _: Rounding) -> Self {
        x
    }

    #[inline(always)]
    fn from_double(x: f64, rounding: Rounding) -> Self {
        let nearest = x as f32;
        rounding.directed(nearest, f64::from(nearest) > x, f64::from(nearest) < x, x < 0.0)
    }
}

impl Cast for f64 {
    #[inline(always)]
    fn cast<U: Cast>(self, rounding: Rounding) -> U {
        U::from_double(self, rounding)
    }

    from_integers! { from_signed i64; from_unsigned u64; }

    #[inline(always)]
    fn from_single(x: f32, _: Rounding) -> Self {
        f64::from(x)
    }

    #[inline(always)]
    fn from_double(x: f64, _: Rounding) -> Self {
        x
    }
}

#[cfg(feature = "half")]
mod of_half {
    use half::f16;

    use super::{Cast, Neighbours, Rounding};

    impl Neighbours for f16 {
        #[inline(always)]
        fn before(self) -> Self {
            -(-self).behind()
        }

        #[inline(always)]
        fn behind(self) -> Self {
            let bits = self.to_bits();
            match bits {
                // Zeros of both signs.
                0 | 0x8000 => f16::from_bits(1),
                _ if bits & 0x8000 == 0 => f16::from_bits(bits + 1),
                _ => f16::from_bits(bits - 1),
            }
        }
    }

    /// A number that was rounded towards zero, with a last bit that says if it was. So the second rounding finds no tie where none is.
    #[inline(always)]
    fn marked(single: f32, is_inexact: bool) -> f32 {
        f32::from_bits(single.to_bits() | u32::from(is_inexact))
    }

    impl Cast for f16 {
        #[inline(always)]
        fn cast<U: Cast>(self, rounding: Rounding) -> U {
            U::from_single(f32::from(self), rounding)
        }

        // By way of `f32`, since a device need not have `f64`.
        #[inline(always)]
        fn from_signed(x: i64, rounding: Rounding) -> Self {
            let single = f32::from_signed(x, Rounding::TowardZero);
            Self::from_single(marked(single, single as i64 != x), rounding)
        }

        #[inline(always)]
        fn from_unsigned(x: u64, rounding: Rounding) -> Self {
            let single = f32::from_unsigned(x, Rounding::TowardZero);
            Self::from_single(marked(single, single as u64 != x), rounding)
        }

        #[inline(always)]
        fn from_single(x: f32, rounding: Rounding) -> Self {
            let nearest = f16::from_f32(x);
            rounding.directed(nearest, f32::from(nearest) > x, f32::from(nearest) < x, x < 0.0)
        }

        #[inline(always)]
        fn from_double(x: f64, rounding: Rounding) -> Self {
            let single = f32::from_double(x, Rounding::TowardZero);
            let is_inexact = !x.is_nan() && f64::from(single) != x;
            Self::from_single(marked(single, is_inexact), rounding)
        }
    }
}

impl<T: VectorElement<N>, const N: usize> Vector<T, N> {
    /// The elements as those of another type, as Rust's `as` does it: towards zero or to the nearest number. Numbers beyond the ends of an
    /// integer type become its ends, and NaN becomes zero.
    ///
    /// ```
    /// use oxisycl_device::vector::{Float2, Rounding, Uchar2};
    ///
    /// let v = Float2::new(-1.5, 2.5);
    /// assert_eq!(v.convert::<u8>(), Uchar2::new(0, 2));
    /// assert_eq!(v.convert_with::<i32>(Rounding::TowardPositive).to_array(), [-1, 3]);
    /// ```
    #[inline(always)]
    pub fn convert<U: VectorElement<N>>(self) -> Vector<U, N> {
        self.convert_with(Rounding::Automatic)
    }

    /// The elements as those of another type, rounded in this way.
    #[inline(always)]
    pub fn convert_with<U: VectorElement<N>>(self, rounding: Rounding) -> Vector<U, N> {
        self.map(|element| element.cast(rounding))
    }

    /// The bits of the elements as those of another vector with as many (SYCL 2020 `as`).
    ///
    /// ```
    /// use oxisycl_device::vector::{Float2, Uint2, Ushort4};
    ///
    /// let bits = Float2::new(1.0, -0.0).bit_cast::<u32, 2>();
    /// assert_eq!(bits, Uint2::new(0x3f80_0000, 0x8000_0000));
    /// assert_eq!(bits.bit_cast(), Ushort4::new(0, 0x3f80, 0, 0x8000));
    /// ```
    ///
    /// ```compile_fail,E0080
    /// # use oxisycl_device::vector::Float2;
    /// let bits = Float2::new(1.0, -0.0).bit_cast::<u64, 2>(); // twice as many
    /// ```
    #[inline(always)]
    pub fn bit_cast<U: VectorElement<M>, const M: usize>(self) -> Vector<U, M>
    where
        [T; N]: NoUninit,
        [U; M]: AnyBitPattern,
    {
        const { assert!(size_of::<[T; N]>() == size_of::<[U; M]>(), "a vector of another size has other bits") };
        Vector::from_array(bytemuck::cast(self.to_array()))
    }
}
