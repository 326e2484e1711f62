//! How the functions of [`math`](crate::math) apply to vectors and arrays.

use super::element::sealed::{MaskElement, Unrolled};
use super::{MArray, Vector, VectorElement};
use crate::DeviceCopyable;
use crate::math::elements::sealed::{self, Differences, Elements, Halves};
use crate::math::{
    Condition, Flags, Float, Floats, Geometric, Integer, Integers, Narrow, Narrows, Ordered, Word, Words,
};

impl<T: VectorElement<N>, const N: usize> sealed::Elements for Vector<T, N> {
    type Element = T;
    const LENGTH: usize = N;

    #[inline(always)]
    fn map(self, f: impl Fn(T) -> T) -> Self {
        self.map(f)
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        self.zip_map(other, f)
    }

    #[inline(always)]
    fn zip3(self, second: Self, third: Self, f: impl Fn(T, T, T) -> T) -> Self {
        Self::from_array(T::Count::zip3(self.elements, second.elements, third.elements, f))
    }

    #[inline(always)]
    fn map_pair(self, f: impl Fn(T) -> (T, T)) -> (Self, Self) {
        let pairs = T::Count::map(self.elements, f);
        (Self::from_fn(|i| pairs[i].0), Self::from_fn(|i| pairs[i].1))
    }

    #[inline(always)]
    fn generate(f: impl Fn(usize) -> T) -> Self {
        Self::from_fn(f)
    }

    #[inline(always)]
    fn element(self, index: usize) -> T {
        self.elements[index]
    }

    #[inline(always)]
    fn fold<U>(self, first: U, f: impl Fn(U, T) -> U) -> U {
        let mut result = first;
        for element in &self {
            result = f(result, *element);
        }
        result
    }
}

impl<T: VectorElement<N>, U: VectorElement<N>, const N: usize> sealed::Yields<U> for Vector<T, N> {
    type Result = Vector<U, N>;

    #[inline(always)]
    fn to(self, f: impl Fn(T) -> U) -> Vector<U, N> {
        self.map(f)
    }

    #[inline(always)]
    fn with(self, other: Vector<U, N>, f: impl Fn(T, U) -> T) -> Self {
        self.zip_map(other, f)
    }

    #[inline(always)]
    fn split(self, f: impl Fn(T) -> (T, U)) -> (Self, Vector<U, N>) {
        let pairs = <T as super::element::sealed::Layout<N>>::Count::map(self.elements, f);
        (Self::from_fn(|i| pairs[i].0), Vector::from_fn(|i| pairs[i].1))
    }

    #[inline(always)]
    fn zip_split(self, other: Self, f: impl Fn(T, T) -> (T, U)) -> (Self, Vector<U, N>) {
        let pairs = <T as super::element::sealed::Layout<N>>::Count::zip(self.elements, other.elements, f);
        (Self::from_fn(|i| pairs[i].0), Vector::from_fn(|i| pairs[i].1))
    }
}

impl<T: VectorElement<N>, const N: usize> sealed::Tests for Vector<T, N> {
    type Truth = Vector<T::Mask, N>;

    #[inline(always)]
    fn test(self, f: impl Fn(T) -> bool) -> Self::Truth {
        self.map(|x| MaskElement::of(f(x)))
    }

    #[inline(always)]
    fn test_pair(self, other: Self, f: impl Fn(T, T) -> bool) -> Self::Truth {
        self.zip_map(other, |x, y| MaskElement::of(f(x, y)))
    }
}

impl<T: VectorElement<N>, const N: usize> sealed::Order for Vector<T, N> {
    #[inline(always)]
    fn lesser_of(self, other: Self) -> Self {
        self.zip_map(other, sealed::Order::lesser_of)
    }

    #[inline(always)]
    fn larger_of(self, other: Self) -> Self {
        self.zip_map(other, sealed::Order::larger_of)
    }
}

impl<T: Copy, const N: usize> sealed::Elements for MArray<T, N> {
    type Element = T;
    const LENGTH: usize = N;

    #[inline(always)]
    fn map(self, f: impl Fn(T) -> T) -> Self {
        self.map(f)
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        self.zip_map(other, f)
    }

    #[inline(always)]
    fn zip3(self, second: Self, third: Self, f: impl Fn(T, T, T) -> T) -> Self {
        Self::from_fn(|i| f(self[i], second[i], third[i]))
    }

    #[inline(always)]
    fn map_pair(self, f: impl Fn(T) -> (T, T)) -> (Self, Self) {
        let pairs = self.to_array().map(f);
        (Self::from_fn(|i| pairs[i].0), Self::from_fn(|i| pairs[i].1))
    }

    #[inline(always)]
    fn generate(f: impl Fn(usize) -> T) -> Self {
        Self::from_fn(f)
    }

    #[inline(always)]
    fn element(self, index: usize) -> T {
        self[index]
    }

    #[inline(always)]
    fn fold<U>(self, first: U, f: impl Fn(U, T) -> U) -> U {
        let mut result = first;
        for element in &self {
            result = f(result, *element);
        }
        result
    }
}

impl<T: Copy, U: Copy, const N: usize> sealed::Yields<U> for MArray<T, N> {
    type Result = MArray<U, N>;

    #[inline(always)]
    fn to(self, f: impl Fn(T) -> U) -> MArray<U, N> {
        self.map(f)
    }

    #[inline(always)]
    fn with(self, other: MArray<U, N>, f: impl Fn(T, U) -> T) -> Self {
        self.zip_map(other, f)
    }

    #[inline(always)]
    fn split(self, f: impl Fn(T) -> (T, U)) -> (Self, MArray<U, N>) {
        let pairs = self.map(f);
        (pairs.map(|(first, _)| first), pairs.map(|(_, second)| second))
    }

    #[inline(always)]
    fn zip_split(self, other: Self, f: impl Fn(T, T) -> (T, U)) -> (Self, MArray<U, N>) {
        let pairs = self.zip_map(other, f);
        (pairs.map(|(first, _)| first), pairs.map(|(_, second)| second))
    }
}

impl<T: Copy, const N: usize> sealed::Tests for MArray<T, N> {
    type Truth = MArray<bool, N>;

    #[inline(always)]
    fn test(self, f: impl Fn(T) -> bool) -> MArray<bool, N> {
        self.map(f)
    }

    #[inline(always)]
    fn test_pair(self, other: Self, f: impl Fn(T, T) -> bool) -> MArray<bool, N> {
        self.zip_map(other, f)
    }
}

impl<T: DeviceCopyable + PartialOrd, const N: usize> sealed::Order for MArray<T, N> {
    #[inline(always)]
    fn lesser_of(self, other: Self) -> Self {
        self.zip_map(other, sealed::Order::lesser_of)
    }

    #[inline(always)]
    fn larger_of(self, other: Self) -> Self {
        self.zip_map(other, sealed::Order::larger_of)
    }
}

impl<T: Float + VectorElement<N>, const N: usize> Floats for Vector<T, N> where i32: VectorElement<N> {}
impl<T: Float, const N: usize> Floats for MArray<T, N> {}

impl<T: Float + VectorElement<N>, const N: usize> Geometric for Vector<T, N> {}
impl<T: Float, const N: usize> Geometric for MArray<T, N> {}

impl<T: VectorElement<N>, const N: usize> Ordered for Vector<T, N> {}
impl<T: DeviceCopyable + PartialOrd, const N: usize> Ordered for MArray<T, N> {}

impl<T: Integer + VectorElement<N>, const N: usize> Differences for Vector<T, N>
where
    T::Unsigned: VectorElement<N>,
{
    type Unsigned = Vector<T::Unsigned, N>;

    #[inline(always)]
    fn differences(self, other: Self) -> Self::Unsigned {
        self.zip_map(other, Differences::differences)
    }
}
impl<T: Integer, const N: usize> Differences for MArray<T, N>
where
    T::Unsigned: Copy,
{
    type Unsigned = MArray<T::Unsigned, N>;

    #[inline(always)]
    fn differences(self, other: Self) -> Self::Unsigned {
        self.zip_map(other, Differences::differences)
    }
}

impl<T: Integer + VectorElement<N>, const N: usize> Integers for Vector<T, N>
where
    T::Unsigned: VectorElement<N>,
    u32: VectorElement<N>,
{
}
impl<T: Integer, const N: usize> Integers for MArray<T, N> where T::Unsigned: Copy {}

impl<T: Narrow + VectorElement<N>, const N: usize> Halves for Vector<T, N>
where
    T::Unsigned: VectorElement<N>,
    T::Wide: VectorElement<N>,
{
    type Wide = Vector<T::Wide, N>;

    #[inline(always)]
    fn upsampled(self, low: Self::Unsigned) -> Self::Wide {
        self.zip_map(low, Halves::upsampled)
    }
}
impl<T: Narrow, const N: usize> Halves for MArray<T, N>
where
    T::Unsigned: Copy,
{
    type Wide = MArray<T::Wide, N>;

    #[inline(always)]
    fn upsampled(self, low: Self::Unsigned) -> Self::Wide {
        self.zip_map(low, Halves::upsampled)
    }
}

impl<T: Narrow + VectorElement<N>, const N: usize> Narrows for Vector<T, N>
where
    T::Unsigned: VectorElement<N>,
    T::Wide: VectorElement<N>,
    u32: VectorElement<N>,
{
}
impl<T: Narrow, const N: usize> Narrows for MArray<T, N> where T::Unsigned: Copy {}

impl<T: Word + VectorElement<N>, const N: usize> Words for Vector<T, N>
where
    T::Unsigned: VectorElement<N>,
    u32: VectorElement<N>,
{
}
impl<T: Word, const N: usize> Words for MArray<T, N> where T::Unsigned: Copy {}

impl<M: VectorElement<N> + MaskElement, const N: usize> sealed::Flags for Vector<M, N> {
    #[inline(always)]
    fn any(self) -> bool {
        self.fold(false, |found, element| found | element.is_set())
    }

    #[inline(always)]
    fn all(self) -> bool {
        self.fold(true, |found, element| found & element.is_set())
    }
}
impl<M: VectorElement<N> + MaskElement, const N: usize> Flags for Vector<M, N> {}

impl<const N: usize> sealed::Flags for MArray<bool, N> {
    #[inline(always)]
    fn any(self) -> bool {
        sealed::Flags::any(self.to_array())
    }

    #[inline(always)]
    fn all(self) -> bool {
        sealed::Flags::all(self.to_array())
    }
}
impl<const N: usize> Flags for MArray<bool, N> {}

impl<T: VectorElement<N>, const N: usize> sealed::Condition<Vector<T, N>> for Vector<T::Mask, N> {
    #[inline(always)]
    fn choose(self, otherwise: Vector<T, N>, chosen: Vector<T, N>) -> Vector<T, N> {
        Vector::from_fn(|i| if self[i].is_set() { chosen[i] } else { otherwise[i] })
    }
}
impl<T: VectorElement<N>, const N: usize> Condition<Vector<T, N>> for Vector<T::Mask, N> {}

impl<T: Copy, const N: usize> sealed::Condition<MArray<T, N>> for MArray<bool, N> {
    #[inline(always)]
    fn choose(self, otherwise: MArray<T, N>, chosen: MArray<T, N>) -> MArray<T, N> {
        MArray::from_fn(|i| if self[i] { chosen[i] } else { otherwise[i] })
    }
}
impl<T: Copy, const N: usize> Condition<MArray<T, N>> for MArray<bool, N> {}
