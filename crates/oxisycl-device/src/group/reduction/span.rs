//! Reductions into several elements at once (SYCL 2020 section 4.9.2.1, of `span`).

use super::target::Target;
use super::{Combine, Reducer, Reduction, Reductions};
use crate::DeviceCopyable;
use crate::advice::AnyBits;

/// Most bytes of what one work-item gives to a reduction into a span: it has all of them at once.
const MOST_BYTES: usize = 4096;

/// `N` reductions with one operator, into elements that follow each other. See [`Reduction::span`].
pub struct SpanReduction<T, O, G, const N: usize>(pub(super) Reduction<T, O, G>);

impl<T, O: Clone, G: Clone, const N: usize> Clone for SpanReduction<T, O, G, N> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
impl<T, O: Copy, G: Copy, const N: usize> Copy for SpanReduction<T, O, G, N> {}

impl<T, O: Combine<T>, G: Target<T>> Reduction<T, O, G> {
    /// The reduction into `N` elements instead of one. Work-items get an array of `N` reducers. All `N` values of a work-item are kept at
    /// once, so this is for few elements. Many elements, as of a histogram, are better counted by [atomics](crate::atomic) on local memory.
    ///
    /// ```
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    /// use oxisycl::reduction::reduction;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // How many numbers leave which rest.
    /// let (numbers, rests) = (Buffer::from_vec((0..1000u32).collect())?, Buffer::from_vec(vec![0u32; 3])?);
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, Read);
    ///     let rests = reduction(cg.access(&rests, Write), Sum).span::<3>();
    ///     cg.parallel_reduce(1000, rests, move |item, rests| rests[numbers.get(item) as usize % 3] += 1)
    /// })?;
    /// assert_eq!(rests.to_vec()?, [334, 333, 333]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn span<const N: usize>(self) -> SpanReduction<T, O, G, N> {
        const { assert!(N > 0, "a span has elements") };
        const { assert!(size_of::<O::Value>() * N <= MOST_BYTES, "a work-item's values for a span take 4096 bytes at most") };
        SpanReduction(self)
    }
}

/// What a work-item gives to a reduction into a span.
#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Values<V, const N: usize>([V; N]);

// SAFETY: all elements are.
unsafe impl<V: bytemuck::Zeroable, const N: usize> bytemuck::Zeroable for Values<V, N> {}
// SAFETY: all elements are.
unsafe impl<V: bytemuck::AnyBitPattern, const N: usize> bytemuck::AnyBitPattern for Values<V, N> {}
// SAFETY: all elements are.
unsafe impl<V: DeviceCopyable, const N: usize> DeviceCopyable for Values<V, N> {}

// SAFETY: it writes to its target's elements.
unsafe impl<T, O, G, const N: usize> Reductions for SpanReduction<T, O, G, N>
where
    T: DeviceCopyable + AnyBits,
    O: Combine<T> + 'static,
    G: Target<T>,
{
    type Reducers<'wi> = &'wi mut [Reducer<T, O>; N];
    type Value = Values<O::Value, N>;
    type Slots = [Reducer<T, O>; N];

    #[inline(always)]
    fn join(&self, first: Self::Value, second: Self::Value) -> Self::Value {
        Values(core::array::from_fn(|i| self.0.operator.join_results(first.0[i], second.0[i])))
    }

    #[inline(always)]
    fn start(&self) -> Self::Slots {
        core::array::from_fn(|_| self.0.operator.start())
    }

    #[inline(always)]
    fn reducers(slots: &mut Self::Slots) -> &mut [Reducer<T, O>; N] {
        slots
    }

    #[inline(always)]
    fn end(slots: Self::Slots) -> Self::Value {
        Values(slots.map(O::end))
    }

    type Sums = [O::Sums; N];

    #[inline(always)]
    fn no_sums() -> Self::Sums {
        core::array::from_fn(|_| O::no_sums())
    }

    #[inline(always)]
    unsafe fn sum(sums: *const Self::Sums, index: usize) -> Self::Value {
        // SAFETY: by the contract of this function; there are so many elements.
        Values(core::array::from_fn(|i| unsafe { O::sum(sums.cast::<O::Sums>().add(i), index) }))
    }

    #[inline(always)]
    unsafe fn set_sum(sums: *mut Self::Sums, index: usize, value: Self::Value) {
        for (i, value) in value.0.into_iter().enumerate() {
            // SAFETY: by the contract of this function; there are so many elements.
            unsafe { O::set_sum(sums.cast::<O::Sums>().add(i), index, value) };
        }
    }

    #[inline(always)]
    unsafe fn finish(&self, all: Self::Value) {
        for (i, all) in all.0.into_iter().enumerate() {
            // SAFETY: by the contract of this function; the target has `N` elements.
            unsafe { self.0.finish_at(i, all) };
        }
    }

    fn wrong_size(&self) -> Option<(usize, usize)> {
        self.0.target.size().filter(|size| *size != N).map(|size| (size, N))
    }
}
