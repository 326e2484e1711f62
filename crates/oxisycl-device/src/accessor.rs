//! Accessors of kernels: a pointer into a buffer's allocation, and the range that may be used.

use core::cell::Cell;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use oxisycl_types::{AccessMode, Id, Range};

use crate::bounds::{checked_position, outside, position};
use crate::builtin;
use crate::item::Brand;
use crate::{Atomic, CellView, DeviceCopyable, InItem, Inside, Item, Loads, Mode, OnlyLoads, Single, Stores, View};

/// Access of one command group to a range of a buffer (SYCL 2020 section 4.7.6.9).
///
/// A plain `Copy` value, captured by the kernel. It gives no access by itself: every method takes the token of a work-item.
/// Indices are relative to the accessor's offset.
pub struct Accessor<'cg, T, const D: usize, M> {
    pub(crate) first: *mut T,
    pub(crate) range: [usize; D],
    pub(crate) pitch: [usize; D],
    offset: [usize; D],
    brand: Brand<'cg>,
    mode: PhantomData<fn() -> M>,
}

impl<T, const D: usize, M> Clone for Accessor<'_, T, D, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const D: usize, M> Copy for Accessor<'_, T, D, M> {}

impl<T, const D: usize, M> PartialEq for Accessor<'_, T, D, M> {
    /// Whether both give access to the same part of the same buffer.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}
impl<T, const D: usize, M> Eq for Accessor<'_, T, D, M> {}
impl<T, const D: usize, M> Hash for Accessor<'_, T, D, M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

// SAFETY: an accessor gives access only against a token, which proves that the calling work-item is ordered with all other use of the
// memory. Within the kernel, work-items reach disjoint elements, read only, or use atomics.
unsafe impl<T: DeviceCopyable, const D: usize, M> Send for Accessor<'_, T, D, M> {}
// SAFETY: as above.
unsafe impl<T: DeviceCopyable, const D: usize, M> Sync for Accessor<'_, T, D, M> {}

/// What the runtime makes an accessor from.
#[derive(Clone, Copy, Debug)]
pub struct AccessorParts<T, const D: usize> {
    /// First element of the buffer (or sub-buffer) on the device; aligned for `T`, also if the range is empty.
    pub pointer: *mut T,
    /// Extent of the buffer.
    pub buffer: Range<D>,
    /// First element that may be used.
    pub offset: Id<D>,
    /// Extent that may be used; `offset + range` lies inside `buffer`.
    pub range: Range<D>,
}

impl<'cg, T, const D: usize, M> Accessor<'cg, T, D, M> {
    /// # Safety
    /// For every launch of the command group `'cg`, `parts` describes memory that is allocated and holds valid values
    /// of `T` in the accessor's range. The launch is ordered with all other use of that memory according to `M`.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn from_parts(parts: AccessorParts<T, D>) -> Self {
        // Without elements, the offset may name a place far outside the allocation, even address zero.
        let skipped = if parts.range.0.contains(&0) { 0 } else { parts.buffer.linear(&parts.offset) };
        let first = parts.pointer.wrapping_add(skipped);
        Self {
            first,
            range: parts.range.0,
            pitch: parts.buffer.0,
            offset: parts.offset.0,
            brand: PhantomData,
            mode: PhantomData,
        }
    }

    /// An accessor with the lifetime of a call of a kernel, or without one.
    ///
    /// # Safety
    /// Only launches of the accessor's command group use it.
    #[inline(always)]
    pub(crate) unsafe fn with_brand<'k>(self) -> Accessor<'k, T, D, M> {
        let Self { first, range, pitch, offset, .. } = self;
        Accessor { first, range, pitch, offset, brand: PhantomData, mode: PhantomData }
    }

    /// What makes two accessors the same. The pointer alone does not: empty parts may have that of another part.
    #[inline]
    fn identity(&self) -> (*mut T, [usize; D], [usize; D], [usize; D]) {
        (self.first, self.range, self.pitch, self.offset)
    }

    /// The extent that may be used.
    #[inline(always)]
    pub fn range(self) -> Range<D> {
        Range(self.range)
    }

    /// The first element of the buffer that may be used.
    #[inline(always)]
    pub fn offset(self) -> Id<D> {
        Id(self.offset)
    }

    /// The extent of the whole buffer.
    #[inline(always)]
    pub fn buffer_range(self) -> Range<D> {
        Range(self.pitch)
    }

    /// Number of elements that may be used.
    #[inline(always)]
    pub fn size(self) -> usize {
        Range(self.range).size()
    }

    /// Whether no element may be used.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.size() == 0
    }

    /// The address of the *buffer's* first element on the device (SYCL 2020: `get_pointer` ignores the accessor's offset).
    ///
    /// Elements outside the accessor's range are allocated, too; reading them through this pointer does not fault, but their
    /// values may be stale.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut T {
        let skipped = if self.range.contains(&0) { 0 } else { Range(self.pitch).linear(&Id(self.offset)) };
        self.first.wrapping_sub(skipped)
    }

    /// The address of the work-item's own element.
    #[inline(always)]
    #[track_caller]
    fn own(self, item: Item<'_, D>) -> *mut T {
        // The same for every work-item of the launch, so the test leaves the loop.
        for d in 0..D {
            if item.end[d] > self.range[d] {
                outside(item.end, self.range, self.first.addr())
            }
        }
        // SAFETY: `item.id < item.end <= self.range` per dimension, and the range lies inside the allocation.
        unsafe { self.first.add(position(item.id, self.pitch)) }
    }

    #[inline(always)]
    #[track_caller]
    fn element(self, index: [usize; D]) -> *mut T {
        let position = checked_position(index, self.range, self.pitch, self.first);
        // SAFETY: the index lies inside the range, which lies inside the allocation.
        unsafe { self.first.add(position) }
    }
}

// Bounds on modes are on the methods, not on the blocks. If one does not hold, the compiler then shows the message of its trait.
impl<T: DeviceCopyable, const D: usize, M: Mode> Accessor<'_, T, D, M> {
    /// The work-item's own element.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, squares) = (Buffer::from_vec(vec![1, 2, 3])?, Buffer::from_vec(vec![0; 3])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, squares) = (cg.access(&numbers, Read), cg.access(&squares, Write));
    ///     cg.parallel_for(3, move |item| squares.set(item, numbers.get(item) * numbers.get(item)))
    /// })?;
    /// assert_eq!(squares.to_vec()?, [1, 4, 9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the launch goes beyond the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, item: Item<'_, D>) -> T
    where
        M: Loads,
    {
        let own = self.own(item);
        if matches!(M::MODE, AccessMode::Read) {
            // SAFETY: `own` gives a valid element, and the range of an accessor that only reads is not written while the kernel runs. The
            // runtime refuses overlapping accessors of a command group if one writes, and orders other commands before or after.
            return unsafe { builtin::load_constant(own) };
        }
        // SAFETY: `own` gives a valid element that only this work-item may write.
        unsafe { *own }
    }
}

impl<T: DeviceCopyable, const D: usize, M: Mode> Accessor<'_, T, D, M> {
    /// All elements of an accessor with mode [`Read`](crate::Read), for reading at any index.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = (Buffer::from_vec(vec![1, 2, 3, 4])?, Buffer::from_vec(vec![0; 3])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write));
    ///     cg.parallel_for(3, move |item| {
    ///         let (numbers, i) = (numbers.view(item), item.index());
    ///         sums.set(item, numbers[i] + numbers[i + 1]);
    ///     })
    /// })?;
    /// assert_eq!(sums.to_vec()?, [3, 5, 7]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn view<'k>(self, _inside: impl Inside<'k>) -> View<'k, T, D>
    where
        M: OnlyLoads,
    {
        // SAFETY: a read accessor's range is valid and not written while the kernel of the token runs.
        unsafe { View::new(self.first, self.range, self.pitch) }
    }

    /// One element at any index of an accessor with mode [`Read`](crate::Read).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, reversed) = (Buffer::from_vec(vec![1, 2, 3])?, Buffer::from_vec(vec![0; 3])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, reversed) = (cg.access(&numbers, Read), cg.access(&reversed, Write));
    ///     cg.parallel_for(3, move |item| reversed.set(item, *numbers.at(item, 2 - item.index())))
    /// })?;
    /// assert_eq!(reversed.to_vec()?, [3, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn at<'k>(self, inside: impl Inside<'k>, index: impl Into<Id<D>>) -> &'k T
    where
        M: OnlyLoads,
    {
        self.view(inside).at(index)
    }
}

impl<T: DeviceCopyable, const D: usize, M: Mode> Accessor<'_, T, D, M> {
    /// Stores to the work-item's own element.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0; 6], [2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let table = cg.access(&table, Write);
    ///     cg.parallel_for([2, 3], move |item: Item<2>| table.set(item, 10 * item.get(0) + item.get(1)))
    /// })?;
    /// assert_eq!(table.to_vec()?, [0, 1, 2, 10, 11, 12]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the launch goes beyond the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, item: Item<'_, D>, value: T)
    where
        M: Stores,
    {
        // SAFETY: `own` gives a valid element that no other work-item reaches.
        unsafe { *self.own(item) = value }
    }

    /// Stores to any element.
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    ///
    /// # Safety
    /// No other work-item of this launch accesses the element, and this one holds no [`Cell`] borrow of it that it expects
    /// unchanged.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn scatter<'k>(self, _item: impl InItem<'k>, index: impl Into<Id<D>>, value: T)
    where
        M: Stores,
    {
        // SAFETY: `element` checked the index; exclusiveness is the caller's promise.
        unsafe { *self.element(index.into().0) = value }
    }

    /// Stores to any element from the only work-item of a single task.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sum) = (Buffer::from_vec(vec![1, 2, 3])?, Buffer::from_vec(vec![0])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sum) = (cg.access(&numbers, Read), cg.access(&sum, Write));
    ///     cg.single_task(move |task| sum.set_at(task, 0, numbers.view(task).iter().sum()))
    /// })?;
    /// assert_eq!(sum.to_vec()?, [6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn set_at(self, _single: Single<'_>, index: impl Into<Id<D>>, value: T)
    where
        M: Stores,
    {
        // SAFETY: `element` checked the index; a single task is the only work-item.
        unsafe { *self.element(index.into().0) = value }
    }
}

impl<T: DeviceCopyable, const D: usize, M: Mode> Accessor<'_, T, D, M> {
    /// The work-item's own element as a cell.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 20, 300])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.parallel_for(3, move |item| {
    ///         let own = numbers.cell(item);
    ///         while own.get() > 9 {
    ///             own.set(own.get() / 10);
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the launch goes beyond the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn cell<'wi>(self, item: Item<'wi, D>) -> &'wi Cell<T>
    where
        M: Stores + Loads,
    {
        // SAFETY: `own` gives a valid element that no other work-item reaches. `Cell<T>` has the layout of `T`, and cells may alias each
        // other within the work-item.
        unsafe { &*self.own(item).cast_const().cast::<Cell<T>>() }
    }

    /// Replaces the work-item's own element by `f` of it.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.parallel_for(3, move |item| numbers.update(item, |x| 10 * x))
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [10, 20, 30]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the launch goes beyond the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn update(self, item: Item<'_, D>, f: impl FnOnce(T) -> T)
    where
        M: Stores + Loads,
    {
        let cell = self.cell(item);
        cell.set(f(cell.get()));
    }

    /// Loads any element.
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    ///
    /// # Safety
    /// No other work-item of this launch writes the element.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn gather<'k>(self, _item: impl InItem<'k>, index: impl Into<Id<D>>) -> T
    where
        M: Stores + Loads,
    {
        // SAFETY: `element` checked the index; the absence of a writer is the caller's promise.
        unsafe { *self.element(index.into().0) }
    }

    /// All elements as cells, for the only work-item of a single task.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3, 4])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.single_task(move |task| {
    ///         let cells = numbers.cells(task);
    ///         for i in 1..4 {
    ///             cells[i].set(cells[i].get() + cells[i - 1].get());
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [1, 3, 6, 10]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn cells<'wi>(self, _single: Single<'wi>) -> CellView<'wi, T, D>
    where
        M: Stores + Loads,
    {
        // SAFETY: the accessor's range is valid, and only this work-item uses it during the kernel.
        unsafe { CellView::new(self.first, self.range, self.pitch) }
    }

    /// Loads any element from the only work-item of a single task.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3, 4])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.single_task(move |task| {
    ///         for i in 1..4 {
    ///             numbers.set_at(task, i, numbers.get_at(task, i) + numbers.get_at(task, i - 1));
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [1, 3, 6, 10]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn get_at(self, _single: Single<'_>, index: impl Into<Id<D>>) -> T
    where
        M: Stores + Loads,
    {
        // SAFETY: `element` checked the index; a single task is the only work-item.
        unsafe { *self.element(index.into().0) }
    }
}

impl<T: crate::atomic::AtomicValue, const D: usize> Accessor<'_, T, D, Atomic> {
    #[inline(always)]
    #[track_caller]
    pub(crate) fn atomic_element(self, index: impl Into<Id<D>>) -> *mut T {
        self.element(index.into().0)
    }
}

impl<T, const D: usize, M: Mode> fmt::Debug for Accessor<'_, T, D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accessor")
            .field("mode", &M::MODE)
            .field("offset", &self.offset)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}
