//! What vectors have of the standard library's traits: comparison as a whole, text, indices, iteration, and what they are made from.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Index, IndexMut};

use super::{Vector, VectorElement};

/// Writes elements as `{a, b}`, each with the options of the formatter.
pub(super) fn display<T: fmt::Display>(elements: &[T], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut separator = "{";
    for element in elements {
        f.write_str(separator)?;
        element.fmt(f)?;
        separator = ", ";
    }
    f.write_str("}")
}

impl<T: VectorElement<N>, const N: usize> PartialEq for Vector<T, N> {
    /// Whether all elements are equal. [`Vector::eq_mask`] compares each.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let mut is_equal = true;
        for (x, y) in self.iter().zip(other) {
            is_equal &= x == y;
        }
        is_equal
    }
}
impl<T: VectorElement<N> + Eq, const N: usize> Eq for Vector<T, N> {}

impl<T: VectorElement<N> + Hash, const N: usize> Hash for Vector<T, N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.elements.hash(state);
    }
}

impl<T: VectorElement<N>, const N: usize> Default for Vector<T, N> {
    /// Zeros.
    #[inline(always)]
    fn default() -> Self {
        Self::splat(T::default())
    }
}

impl<T: VectorElement<N>, const N: usize> fmt::Debug for Vector<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vector").field(&self.elements).finish()
    }
}

impl<T: VectorElement<N>, const N: usize> fmt::Display for Vector<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(&self.elements, f)
    }
}

impl<T: VectorElement<N>, const N: usize> AsRef<[T]> for Vector<T, N> {
    #[inline(always)]
    fn as_ref(&self) -> &[T] {
        &self.elements
    }
}

impl<T: VectorElement<N>, const N: usize> AsMut<[T]> for Vector<T, N> {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut [T] {
        &mut self.elements
    }
}

impl<T: VectorElement<N>, const N: usize> Index<usize> for Vector<T, N> {
    type Output = T;

    #[inline(always)]
    #[track_caller]
    fn index(&self, index: usize) -> &T {
        &self.elements[index]
    }
}

impl<T: VectorElement<N>, const N: usize> IndexMut<usize> for Vector<T, N> {
    #[inline(always)]
    #[track_caller]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.elements[index]
    }
}

impl<T: VectorElement<N>, const N: usize> IntoIterator for Vector<T, N> {
    type Item = T;
    type IntoIter = core::array::IntoIter<T, N>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.elements.into_iter()
    }
}

impl<'a, T: VectorElement<N>, const N: usize> IntoIterator for &'a Vector<T, N> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.elements.iter()
    }
}

impl<'a, T: VectorElement<N>, const N: usize> IntoIterator for &'a mut Vector<T, N> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.elements.iter_mut()
    }
}

impl<T: VectorElement<N>, const N: usize> From<[T; N]> for Vector<T, N> {
    #[inline(always)]
    fn from(elements: [T; N]) -> Self {
        Self::from_array(elements)
    }
}

impl<T: VectorElement<N>, const N: usize> From<Vector<T, N>> for [T; N] {
    #[inline(always)]
    fn from(vector: Vector<T, N>) -> Self {
        vector.elements
    }
}

impl<T: VectorElement<1>> From<T> for Vector<T, 1> {
    #[inline(always)]
    fn from(element: T) -> Self {
        Self::from_array([element])
    }
}

macro_rules! scalars {
    ($($type:ty)*) => { $(
        impl From<Vector<$type, 1>> for $type {
            #[inline(always)]
            fn from(vector: Vector<$type, 1>) -> Self {
                vector.elements[0]
            }
        }
    )* };
}

scalars! { i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 }
#[cfg(feature = "half")]
scalars! { half::f16 }

macro_rules! parts {
    ($($n:literal: ($($part:ident: $type:ty),*) $(where $($m:literal)*)? = [$($element:expr),*];)*) => { $(
        impl<T: VectorElement<$n> $($(+ VectorElement<$m>)*)?> From<($($type,)*)> for Vector<T, $n> {
            #[inline(always)]
            fn from(($($part,)*): ($($type,)*)) -> Self {
                Self::from_array([$($element),*])
            }
        }
    )* };
}

parts! {
    2: (x: T, y: T) = [x, y];
    3: (x: T, y: T, z: T) = [x, y, z];
    3: (a: Vector<T, 2>, z: T) where 2 = [a[0], a[1], z];
    3: (x: T, b: Vector<T, 2>) where 2 = [x, b[0], b[1]];
    4: (x: T, y: T, z: T, w: T) = [x, y, z, w];
    4: (a: Vector<T, 2>, b: Vector<T, 2>) where 2 = [a[0], a[1], b[0], b[1]];
    4: (a: Vector<T, 2>, z: T, w: T) where 2 = [a[0], a[1], z, w];
    4: (x: T, b: Vector<T, 2>, w: T) where 2 = [x, b[0], b[1], w];
    4: (x: T, y: T, b: Vector<T, 2>) where 2 = [x, y, b[0], b[1]];
    4: (a: Vector<T, 3>, w: T) where 3 = [a[0], a[1], a[2], w];
    4: (x: T, b: Vector<T, 3>) where 3 = [x, b[0], b[1], b[2]];
    8: (a: Vector<T, 4>, b: Vector<T, 4>) where 4 = [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]];
    16: (a: Vector<T, 8>, b: Vector<T, 8>) where 8
        = [a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]];
}
