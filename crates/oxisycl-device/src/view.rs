//! Read views of kernels: shared references to any element of a read accessor's range.

use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::ops::Index;

use oxisycl_types::{Id, Range};

use crate::bounds::{checked_position, out_of_bounds, position};
use crate::slices::slice;
use crate::{InItem, Item};

/// All elements of a read accessor, readable at any index while the kernel runs.
pub struct View<'k, T, const D: usize> {
    first: *const T,
    range: [usize; D],
    pitch: [usize; D],
    lifetime: PhantomData<&'k [T]>,
}

impl<T, const D: usize> Clone for View<'_, T, D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const D: usize> Copy for View<'_, T, D> {}

// SAFETY: a view is a shared borrow of elements.
unsafe impl<T: Sync, const D: usize> Send for View<'_, T, D> {}
// SAFETY: as above.
unsafe impl<T: Sync, const D: usize> Sync for View<'_, T, D> {}

impl<'k, T, const D: usize> View<'k, T, D> {
    /// # Safety
    /// For `'k`, the elements of `range` at `first` with the given pitches are valid and nothing writes them.
    #[inline(always)]
    pub(crate) unsafe fn new(first: *const T, range: [usize; D], pitch: [usize; D]) -> Self {
        Self { first, range, pitch, lifetime: PhantomData }
    }

    /// The extent.
    #[inline(always)]
    pub fn range(self) -> Range<D> {
        Range(self.range)
    }

    /// The element at `index`.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (table, column) = (Buffer::from_vec_nd(vec![1, 2, 3, 4, 5, 6], [2, 3])?, Buffer::from_vec(vec![0; 2])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (table, column) = (cg.access(&table, Read), cg.access(&column, Write));
    ///     cg.parallel_for(2, move |item| column.set(item, *table.view(item).at([item.index(), 1])))
    /// })?;
    /// assert_eq!(column.to_vec()?, [2, 5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the range.
    #[inline(always)]
    #[track_caller]
    pub fn at(self, index: impl Into<Id<D>>) -> &'k T {
        let position = checked_position(index.into().0, self.range, self.pitch, self.first);
        // SAFETY: the index lies inside the range; validity is the constructor's contract.
        unsafe { &*self.first.add(position) }
    }

    /// The element at `index`, or `None` outside the range.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (table, diagonal) = (Buffer::from_vec_nd(vec![1, 2, 3, 4, 5, 6], [2, 3])?, Buffer::from_vec(vec![0; 3])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (table, diagonal) = (cg.access(&table, Read), cg.access(&diagonal, Write));
    ///     cg.parallel_for(3, move |item| diagonal.set(item, table.view(item).get([item.index(); 2]).copied().unwrap_or(-1)))
    /// })?;
    /// assert_eq!(diagonal.to_vec()?, [1, 5, -1]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn get(self, index: impl Into<Id<D>>) -> Option<&'k T> {
        let index = index.into();
        if Range(self.range).contains(&index) { Some(self.at(index)) } else { None }
    }

    /// All elements as one slice, if they are contiguous in memory.
    #[inline(always)]
    pub fn to_slice(self) -> Option<&'k [T]> {
        // Contiguous if every dimension but the outermost with an extent above one spans its pitch.
        let mut outer = true;
        for d in 0..D {
            if !outer && self.range[d] != self.pitch[d] {
                return None;
            }
            if self.range[d] != 1 {
                outer = false;
            }
        }
        // SAFETY: the elements are contiguous, valid and not written for `'k`.
        Some(unsafe { slice(self.first, Range(self.range).size()) })
    }

    /// All elements in row-major order, from either end.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (table, larger) = (Buffer::from_vec_nd(vec![1, 2, 3, 4, 5, 6], [2, 3])?, Buffer::from_vec(vec![0; 2])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (table, larger) = (cg.access(&table, Read), cg.access(&larger, Write));
    ///     cg.parallel_for(2, move |item| larger.set(item, table.view(item).iter().filter(|&&x| x > 3 * item.index()).count()))
    /// })?;
    /// assert_eq!(larger.to_vec()?, [6, 3]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn iter(self) -> ViewIter<'k, T, D> {
        let last = self.range.map(|n| n.wrapping_sub(1));
        ViewIter { view: self, index: [0; D], last, left: Range(self.range).size() }
    }
}

impl<'k, T> View<'k, T, 1> {
    /// All elements as a slice.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (sorted, places) = (Buffer::from_vec(vec![10, 20, 30])?, Buffer::from_vec(vec![25, 5])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (sorted, places) = (cg.access(&sorted, Read), cg.access(&places, ReadWrite));
    ///     cg.parallel_for(2, move |item| {
    ///         places.update(item, |x| sorted.view(item).as_slice().partition_point(|&y| y < x));
    ///     })
    /// })?;
    /// assert_eq!(places.to_vec()?, [2, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn as_slice(self) -> &'k [T] {
        // SAFETY: a one-dimensional range is contiguous; valid and not written for `'k`.
        unsafe { slice(self.first, self.range[0]) }
    }

    /// The work-item's share when every item takes `length` elements: `id * length ..`, cut at the end of the range.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = (Buffer::from_vec(vec![1, 2, 3, 4, 5])?, Buffer::from_vec(vec![0; 3])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write));
    ///     cg.parallel_for(3, move |item| sums.set(item, numbers.view(item).chunk(item, 2).iter().sum()))
    /// })?;
    /// assert_eq!(sums.to_vec()?, [3, 7, 5]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn chunk(self, item: Item<'_, 1>, length: usize) -> &'k [T] {
        let begin = item.index().saturating_mul(length).min(self.range[0]);
        let end = begin.saturating_add(length).min(self.range[0]);
        &self.as_slice()[begin..end]
    }
}

impl<'k, T> View<'k, T, 2> {
    /// Row `y` as a slice.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (table, sums) = (Buffer::from_vec_nd(vec![1, 2, 3, 4, 5, 6], [2, 3])?, Buffer::from_vec(vec![0; 2])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (table, sums) = (cg.access(&table, Read), cg.access(&sums, Write));
    ///     cg.parallel_for(2, move |item| sums.set(item, table.view(item).row(item.index()).iter().sum()))
    /// })?;
    /// assert_eq!(sums.to_vec()?, [6, 15]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the row is outside the range.
    #[inline(always)]
    #[track_caller]
    pub fn row(self, y: usize) -> &'k [T] {
        if y >= self.range[0] {
            out_of_bounds([y], self.range, self.first.addr())
        }
        // SAFETY: a row of the range is contiguous, valid and not written for `'k`.
        unsafe { slice(self.first.add(y * self.pitch[1]), self.range[1]) }
    }

    /// A block of `Y` rows and `X` columns whose bounds are checked once, here.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (picture, blurred) = (Buffer::from_vec_nd((0..12).collect(), [3, 4])?, Buffer::from_vec_nd(vec![0; 6], [2, 3])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (picture, blurred) = (cg.access(&picture, Read), cg.access(&blurred, Write));
    ///     cg.parallel_for([2, 3], move |item: Item<2>| {
    ///         let window = picture.view(item).window::<2, 2>(item.id());
    ///         blurred.set(item, (window[[0, 0]] + window[[0, 1]] + window[[1, 0]] + window[[1, 1]]) / 4);
    ///     })
    /// })?;
    /// assert_eq!(blurred.to_vec()?, [2, 3, 4, 6, 7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the block is not inside the range.
    #[inline(always)]
    #[track_caller]
    pub fn window<const Y: usize, const X: usize>(self, origin: impl Into<Id<2>>) -> Window<'k, T, Y, X> {
        let [y, x] = origin.into().0;
        if Y > self.range[0] || X > self.range[1] || y > self.range[0] - Y || x > self.range[1] - X {
            out_of_bounds([y.saturating_add(Y), x.saturating_add(X)], self.range, self.first.addr())
        }
        // Wrapping: a block without elements may begin outside the allocation; it is never dereferenced.
        let first = self.first.wrapping_add(position([y, x], self.pitch));
        Window { first, pitch: self.pitch[1], lifetime: PhantomData }
    }
}

impl<'k, T> View<'k, T, 3> {
    /// The row at `[z, y]` as a slice.
    ///
    /// # Panics
    /// If the row is outside the range.
    #[inline(always)]
    #[track_caller]
    pub fn row(self, z: usize, y: usize) -> &'k [T] {
        if z >= self.range[0] || y >= self.range[1] {
            out_of_bounds([z, y], self.range, self.first.addr())
        }
        // SAFETY: a row of the range is contiguous, valid and not written for `'k`.
        unsafe { slice(self.first.add(position([z, y, 0], self.pitch)), self.range[2]) }
    }
}

impl<T, const D: usize> Index<[usize; D]> for View<'_, T, D> {
    type Output = T;
    #[inline(always)]
    #[track_caller]
    fn index(&self, index: [usize; D]) -> &T {
        self.at(index)
    }
}

impl<T, const D: usize> Index<Id<D>> for View<'_, T, D> {
    type Output = T;
    #[inline(always)]
    #[track_caller]
    fn index(&self, index: Id<D>) -> &T {
        self.at(index)
    }
}

impl<T> Index<usize> for View<'_, T, 1> {
    type Output = T;
    #[inline(always)]
    #[track_caller]
    fn index(&self, index: usize) -> &T {
        self.at(index)
    }
}

impl<'k, T, const D: usize> IntoIterator for View<'k, T, D> {
    type Item = &'k T;
    type IntoIter = ViewIter<'k, T, D>;
    fn into_iter(self) -> ViewIter<'k, T, D> {
        self.iter()
    }
}

impl<'k, T, const D: usize> View<'k, T, D> {
    /// The element at `index`.
    ///
    /// # Safety
    /// The index is inside the range.
    #[inline(always)]
    unsafe fn at_inside(self, index: [usize; D]) -> &'k T {
        let pointer = self.first.wrapping_add(position(index, self.pitch));
        // Device code is captured where the compiler does not yet say that references are not null, and null marks an iterator's end.
        if pointer.is_null() {
            // SAFETY: an element of an allocation.
            unsafe { core::hint::unreachable_unchecked() }
        }
        // SAFETY: by contract it is an element of the range, which is valid and not written for `'k`.
        unsafe { &*pointer }
    }
}

/// Iterator over a [`View`] in row-major order.
pub struct ViewIter<'k, T, const D: usize> {
    view: View<'k, T, D>,
    index: [usize; D],
    last: [usize; D],
    left: usize,
}

impl<'k, T, const D: usize> Iterator for ViewIter<'k, T, D> {
    type Item = &'k T;

    #[inline]
    fn next(&mut self) -> Option<&'k T> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        // SAFETY: positions are inside the range as long as elements are left.
        let element = unsafe { self.view.at_inside(self.index) };
        if D == 1 {
            self.index[0] += 1;
            return Some(element);
        }
        for d in (0..D).rev() {
            self.index[d] += 1;
            if self.index[d] < self.view.range[d] {
                break;
            }
            self.index[d] = 0;
        }
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'k, T, const D: usize> DoubleEndedIterator for ViewIter<'k, T, D> {
    #[inline]
    fn next_back(&mut self) -> Option<&'k T> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        // SAFETY: as above.
        let element = unsafe { self.view.at_inside(self.last) };
        for d in (0..D).rev() {
            if self.last[d] > 0 {
                self.last[d] -= 1;
                break;
            }
            self.last[d] = self.view.range[d] - 1;
        }
        Some(element)
    }
}

impl<T, const D: usize> ExactSizeIterator for ViewIter<'_, T, D> {}
impl<T, const D: usize> FusedIterator for ViewIter<'_, T, D> {}

/// A block of a two-dimensional view with constant extents; see [`View::window`].
pub struct Window<'k, T, const Y: usize, const X: usize> {
    first: *const T,
    pitch: usize,
    lifetime: PhantomData<&'k [T]>,
}

impl<T, const Y: usize, const X: usize> Clone for Window<'_, T, Y, X> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const Y: usize, const X: usize> Copy for Window<'_, T, Y, X> {}

// SAFETY: a window is a shared borrow of elements.
unsafe impl<T: Sync, const Y: usize, const X: usize> Send for Window<'_, T, Y, X> {}
// SAFETY: as above.
unsafe impl<T: Sync, const Y: usize, const X: usize> Sync for Window<'_, T, Y, X> {}

impl<'k, T, const Y: usize, const X: usize> Window<'k, T, Y, X> {
    /// The element at `[y, x]` of the block.
    ///
    /// # Panics
    /// If the index is outside the block.
    #[inline(always)]
    #[track_caller]
    pub fn at(self, index: [usize; 2]) -> &'k T {
        if index[0] >= Y || index[1] >= X {
            out_of_bounds(index, [Y, X], self.first.addr())
        }
        // SAFETY: `View::window` checked that the whole block lies inside the view.
        unsafe { &*self.first.add(index[0] * self.pitch + index[1]) }
    }

    /// Row `y` of the block.
    ///
    /// # Panics
    /// If `y >= Y`.
    #[inline(always)]
    #[track_caller]
    pub fn row(self, y: usize) -> &'k [T; X] {
        if y >= Y {
            out_of_bounds([y], [Y, X], self.first.addr())
        }
        // SAFETY: `View::window` checked that the whole block lies inside the view; a row is contiguous.
        unsafe { &*self.first.add(y * self.pitch).cast::<[T; X]>() }
    }
}

impl<T, const Y: usize, const X: usize> Index<[usize; 2]> for Window<'_, T, Y, X> {
    type Output = T;
    #[inline(always)]
    #[track_caller]
    fn index(&self, index: [usize; 2]) -> &T {
        self.at(index)
    }
}

const _: () = {
    // Views can be handed to helpers that are generic over where they run.
    const fn in_item<'k, I: InItem<'k>>() {}
    in_item::<Item<'static, 1>>();
};
