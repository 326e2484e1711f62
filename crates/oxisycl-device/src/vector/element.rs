//! The types of elements, and the layout of their vectors.

use core::fmt::{Debug, Display};

use bytemuck::Pod;

use super::convert::Cast;
use crate::DeviceCopyable;

/// A type of which there are vectors of `N` elements: integers of 8 to 64 bits, `f32`, `f64`, and `half::f16` with the feature `half`.
/// `N` is 1, 2, 3, 4, 8 or 16. Implemented by this crate only.
///
/// ```
/// use oxisycl_device::vector::{Vector, VectorElement};
///
/// fn reversed<T: VectorElement<4>>(v: Vector<T, 4>) -> Vector<T, 4> {
///     v.swizzle([3, 2, 1, 0])
/// }
/// assert_eq!(reversed(Vector::from([1_u8, 2, 3, 4])), Vector::from([4, 3, 2, 1]));
/// ```
///
/// ```compile_fail,E0277
/// # use oxisycl_device::vector::Vector;
/// let five = Vector::from([1.0_f32; 5]); // there are no vectors of 5 elements
/// ```
///
/// ```compile_fail,E0277
/// # use oxisycl_device::vector::Vector;
/// let none = Vector::<i32, 0>::default();
/// ```
///
/// ```compile_fail,E0277
/// # use oxisycl_device::vector::Vector;
/// let flags = Vector::from([true, false]); // `MArray` has elements of any type
/// ```
#[diagnostic::on_unimplemented(
    message = "there is no vector of {N} elements of type `{Self}`",
    note = "vectors have 1, 2, 3, 4, 8 or 16 elements: integers of 8 to 64 bits, `f32`, `f64`, or `half::f16` with the feature `half`",
    note = "`MArray` has any number of elements of any type"
)]
pub trait VectorElement<const N: usize>:
    sealed::Layout<N> + DeviceCopyable + Pod + PartialOrd + Default + Debug + Display
{
    /// The signed integer of the same size, of which masks consist.
    type Mask: VectorElement<N> + sealed::MaskElement;
}

pub(super) mod sealed {
    use super::Cast;

    /// How a vector lies in memory; not for users.
    pub trait Layout<const N: usize>: Cast {
        /// Of size zero, with the alignment of the vector.
        type Alignment: Copy + Send + Sync + 'static;
        type Count: Unrolled<N>;
    }

    /// What masks consist of: -1 for true and 0 for false.
    pub trait MaskElement: Copy {
        fn of(truth: bool) -> Self;
        /// Whether the uppermost bit is set, which is what counts in SYCL.
        fn is_set(self) -> bool;
    }

    /// Loops over elements, written out. So the elements stay in registers of GPUs also where the body is too long for LLVM to do it.
    pub trait Unrolled<const N: usize> {
        fn generate<U>(f: impl FnMut(usize) -> U) -> [U; N];
        fn map<T: Copy, U>(x: [T; N], f: impl FnMut(T) -> U) -> [U; N];
        fn zip<T: Copy, U: Copy, V>(x: [T; N], y: [U; N], f: impl FnMut(T, U) -> V) -> [V; N];
        fn zip3<T: Copy, U>(x: [T; N], y: [T; N], z: [T; N], f: impl FnMut(T, T, T) -> U) -> [U; N];
    }
}

macro_rules! counts {
    ($($name:ident $n:literal [$($i:literal)*];)*) => { $(
        pub struct $name;

        impl sealed::Unrolled<$n> for $name {
            #[inline(always)]
            fn generate<U>(mut f: impl FnMut(usize) -> U) -> [U; $n] {
                [$(f($i)),*]
            }

            #[inline(always)]
            fn map<T: Copy, U>(x: [T; $n], mut f: impl FnMut(T) -> U) -> [U; $n] {
                [$(f(x[$i])),*]
            }

            #[inline(always)]
            fn zip<T: Copy, U: Copy, V>(x: [T; $n], y: [U; $n], mut f: impl FnMut(T, U) -> V) -> [V; $n] {
                [$(f(x[$i], y[$i])),*]
            }

            #[inline(always)]
            fn zip3<T: Copy, U>(x: [T; $n], y: [T; $n], z: [T; $n], mut f: impl FnMut(T, T, T) -> U) -> [U; $n] {
                [$(f(x[$i], y[$i], z[$i])),*]
            }
        }
    )* };
}

counts! {
    One 1 [0];
    Two 2 [0 1];
    Three 3 [0 1 2];
    Four 4 [0 1 2 3];
    Eight 8 [0 1 2 3 4 5 6 7];
    Sixteen 16 [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15];
}

macro_rules! alignments {
    ($($name:ident $bytes:literal;)*) => { $(
        #[derive(Clone, Copy)]
        #[repr(align($bytes))]
        pub struct $name;
    )* };
}

alignments! { A1 1; A2 2; A4 4; A8 8; A16 16; A32 32; A64 64; }

macro_rules! element {
    ($type:ty, $mask:ty, $one:ident $two:ident $three:ident $four:ident $eight:ident $sixteen:ident) => {
        element!(@ $type, $mask, 1 One $one, 2 Two $two, 3 Three $three, 4 Four $four, 8 Eight $eight, 16 Sixteen $sixteen);
    };
    (@ $type:ty, $mask:ty, $($n:literal $count:ident $alignment:ident),*) => { $(
        impl sealed::Layout<$n> for $type {
            type Alignment = $alignment;
            type Count = $count;
        }

        impl VectorElement<$n> for $type {
            type Mask = $mask;
        }
    )* };
}

element!(i8, i8, A1 A2 A4 A4 A8 A16);
element!(u8, i8, A1 A2 A4 A4 A8 A16);
element!(i16, i16, A2 A4 A8 A8 A16 A32);
element!(u16, i16, A2 A4 A8 A8 A16 A32);
element!(i32, i32, A4 A8 A16 A16 A32 A64);
element!(u32, i32, A4 A8 A16 A16 A32 A64);
element!(f32, i32, A4 A8 A16 A16 A32 A64);
element!(i64, i64, A8 A16 A32 A32 A64 A64);
element!(u64, i64, A8 A16 A32 A32 A64 A64);
element!(f64, i64, A8 A16 A32 A32 A64 A64);
#[cfg(feature = "half")]
element!(half::f16, i16, A2 A4 A8 A8 A16 A32);

macro_rules! masks {
    ($($type:ty)*) => { $(
        impl sealed::MaskElement for $type {
            #[inline(always)]
            fn of(truth: bool) -> Self {
                -Self::from(truth)
            }

            #[inline(always)]
            fn is_set(self) -> bool {
                self < 0
            }
        }
    )* };
}

masks! { i8 i16 i32 i64 }
