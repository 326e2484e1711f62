//! Arrays with operators for each element.

use core::fmt;
use core::ops::{Index, IndexMut};

use crate::DeviceCopyable;
use crate::argument::plain_arguments;

/// `N` elements that are computed with at once (SYCL 2020 `marray<T, N>`). The layout is that of the array.
///
/// The elements are of any type, also of one of your own. Operators are there if the element has them, with a result of its own type.
///
/// ```
/// use oxisycl_device::math;
/// use oxisycl_device::vector::MArray;
///
/// let a = MArray::from([1.0, 4.0, 9.0, 16.0, 25.0]);
/// assert_eq!(math::sqrt(a) + 1.0, MArray::from([2.0, 3.0, 4.0, 5.0, 6.0]));
/// assert_eq!(a.gt_mask(MArray::splat(5.0)), MArray::from([false, false, true, true, true]));
/// ```
///
/// ```compile_fail,E0080
/// # use oxisycl_device::vector::MArray;
/// let none = MArray::<i32, 0>::from([]); // an array has an element
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct MArray<T, const N: usize>([T; N]);

// SAFETY: an array is nothing but its elements.
unsafe impl<T: DeviceCopyable, const N: usize> DeviceCopyable for MArray<T, N> {}
plain_arguments! { [T: DeviceCopyable, const N: usize] MArray<T, N> }
// SAFETY: elements, which may be zero.
unsafe impl<T: bytemuck::Zeroable, const N: usize> bytemuck::Zeroable for MArray<T, N> {}
// SAFETY: elements without padding in them or between them, for which every bit pattern is a value.
unsafe impl<T: bytemuck::Pod, const N: usize> bytemuck::Pod for MArray<T, N> {}

impl<T, const N: usize> MArray<T, N> {
    /// An array of these elements.
    #[inline(always)]
    pub const fn from_array(elements: [T; N]) -> Self {
        const { assert!(N > 0, "an `MArray` has at least one element") };
        Self(elements)
    }

    /// An array of equal elements.
    #[inline(always)]
    pub const fn splat(element: T) -> Self
    where
        T: Copy,
    {
        Self::from_array([element; N])
    }

    /// An array of what `f` gives for each index, in the order of the indices.
    #[inline(always)]
    pub fn from_fn(f: impl FnMut(usize) -> T) -> Self {
        Self::from_array(core::array::from_fn(f))
    }

    /// The number of elements, `N` (SYCL 2020 `size`).
    #[inline(always)]
    pub const fn size() -> usize {
        N
    }

    /// The elements.
    #[inline(always)]
    pub fn to_array(self) -> [T; N] {
        self.0
    }

    /// The elements in place.
    #[inline(always)]
    pub const fn as_array(&self) -> &[T; N] {
        &self.0
    }

    /// The elements in place, to be changed.
    #[inline(always)]
    pub const fn as_mut_array(&mut self) -> &mut [T; N] {
        &mut self.0
    }

    /// The elements, one after another.
    #[inline(always)]
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The elements, one after another, to be changed.
    #[inline(always)]
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// An array of what `f` gives for each element.
    #[inline(always)]
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> MArray<U, N> {
        MArray(self.0.map(f))
    }

    /// An array of what `f` gives for each two elements.
    #[inline(always)]
    pub fn zip_map<U, V>(self, other: MArray<U, N>, mut f: impl FnMut(T, U) -> V) -> MArray<V, N>
    where
        T: Copy,
        U: Copy,
    {
        MArray(core::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

impl<T: Default, const N: usize> Default for MArray<T, N> {
    #[inline(always)]
    fn default() -> Self {
        Self::from_fn(|_| T::default())
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for MArray<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MArray").field(&self.0).finish()
    }
}

impl<T: fmt::Display, const N: usize> fmt::Display for MArray<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::traits::display(&self.0, f)
    }
}

impl<T, const N: usize> From<[T; N]> for MArray<T, N> {
    #[inline(always)]
    fn from(elements: [T; N]) -> Self {
        Self::from_array(elements)
    }
}

impl<T, const N: usize> From<MArray<T, N>> for [T; N] {
    #[inline(always)]
    fn from(array: MArray<T, N>) -> Self {
        array.0
    }
}

impl<T, const N: usize> AsRef<[T]> for MArray<T, N> {
    #[inline(always)]
    fn as_ref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const N: usize> AsMut<[T]> for MArray<T, N> {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T, const N: usize> Index<usize> for MArray<T, N> {
    type Output = T;

    #[inline(always)]
    #[track_caller]
    fn index(&self, index: usize) -> &T {
        &self.0[index]
    }
}

impl<T, const N: usize> IndexMut<usize> for MArray<T, N> {
    #[inline(always)]
    #[track_caller]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.0[index]
    }
}

impl<T, const N: usize> IntoIterator for MArray<T, N> {
    type Item = T;
    type IntoIter = core::array::IntoIter<T, N>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a MArray<T, N> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a mut MArray<T, N> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}
