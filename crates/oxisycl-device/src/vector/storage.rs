//! The vector itself: how it lies in memory, how it is made, and what its elements are.

use super::VectorElement;
use super::element::sealed::{Layout, Unrolled};
use crate::DeviceCopyable;
use crate::argument::plain_arguments;

/// `N` numbers that are computed with at once (SYCL 2020 `vec<T, N>`). The [module](super) has an overview.
///
/// ```
/// use oxisycl_device::vector::{Float2, Vector};
///
/// let v = Vector::from([1.5_f32, 2.5]);
/// assert_eq!(v + v, Float2::new(3.0, 5.0));
/// assert_eq!(v * 2.0, 2.0 * v);
/// assert_eq!(v.map(f64::from)[1], 2.5);
/// assert_eq!(v.to_string(), "{1.5, 2.5}");
/// ```
#[repr(C)]
pub struct Vector<T: VectorElement<N>, const N: usize> {
    // Of size zero: only its alignment counts.
    alignment: [<T as Layout<N>>::Alignment; 0],
    pub(super) elements: [T; N],
}

impl<T: VectorElement<N>, const N: usize> Clone for Vector<T, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: VectorElement<N>, const N: usize> Copy for Vector<T, N> {}

// SAFETY: numbers side by side, in the order of `repr(C)`, behind an array of size zero.
unsafe impl<T: VectorElement<N>, const N: usize> DeviceCopyable for Vector<T, N> {}
plain_arguments! { [T: VectorElement<N>, const N: usize] Vector<T, N> }
// SAFETY: numbers, which may be zero.
unsafe impl<T: VectorElement<N>, const N: usize> bytemuck::Zeroable for Vector<T, N> {}
// SAFETY: numbers, for which every bit pattern is a value, and padding.
unsafe impl<T: VectorElement<3>> bytemuck::AnyBitPattern for Vector<T, 3> {}

macro_rules! without_padding {
    ($($n:literal)*) => { $(
        // SAFETY: numbers, for which every bit pattern is a value. The alignment is that of all of them or 64 bytes, and divides their size,
        // both powers of two.
        unsafe impl<T: VectorElement<$n>> bytemuck::Pod for Vector<T, $n> {}
    )* };
}

without_padding! { 1 2 4 8 16 }

impl<T: VectorElement<N>, const N: usize> Vector<T, N> {
    /// A vector of these elements.
    #[inline(always)]
    pub const fn from_array(elements: [T; N]) -> Self {
        Self { alignment: [], elements }
    }

    /// A vector of equal elements.
    #[inline(always)]
    pub const fn splat(element: T) -> Self {
        Self::from_array([element; N])
    }

    /// A vector of what `f` gives for each index, in the order of the indices.
    #[inline(always)]
    pub fn from_fn(f: impl FnMut(usize) -> T) -> Self {
        Self::from_array(T::Count::generate(f))
    }

    /// The number of elements, `N` (SYCL 2020 `size`).
    #[inline(always)]
    pub const fn size() -> usize {
        N
    }

    /// The number of bytes of the vector, padding included (SYCL 2020 `byte_size`).
    #[inline(always)]
    pub const fn byte_size() -> usize {
        size_of::<Self>()
    }

    /// The elements.
    #[inline(always)]
    pub const fn to_array(self) -> [T; N] {
        self.elements
    }

    /// The elements in place.
    #[inline(always)]
    pub const fn as_array(&self) -> &[T; N] {
        &self.elements
    }

    /// The elements in place, to be changed.
    #[inline(always)]
    pub const fn as_mut_array(&mut self) -> &mut [T; N] {
        &mut self.elements
    }

    /// The elements, one after another.
    #[inline(always)]
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.elements.iter()
    }

    /// The elements, one after another, to be changed.
    #[inline(always)]
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, T> {
        self.elements.iter_mut()
    }

    /// A vector of what `f` gives for each element.
    #[inline(always)]
    pub fn map<U: VectorElement<N>>(self, f: impl FnMut(T) -> U) -> Vector<U, N> {
        Vector::from_array(T::Count::map(self.elements, f))
    }

    /// A vector of what `f` gives for each two elements.
    ///
    /// ```
    /// use oxisycl_device::vector::{Float2, Int2};
    ///
    /// let v = Float2::new(0.5, 1.5).zip_map(Int2::new(2, 4), |x, n| x.powi(n));
    /// assert_eq!(v, Float2::new(0.25, 5.0625));
    /// ```
    #[inline(always)]
    pub fn zip_map<U: VectorElement<N>, V: VectorElement<N>>(
        self,
        other: Vector<U, N>,
        f: impl FnMut(T, U) -> V,
    ) -> Vector<V, N> {
        Vector::from_array(T::Count::zip(self.elements, other.elements, f))
    }
}
