//! Accessors through which a work-item owns a block of elements instead of one.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;

use oxisycl_types::{Id, Range};

use crate::bounds::{checked_position, next_row, out_of_bounds, position};
use crate::slices::slice;
use crate::{Accessor, DeviceCopyable, Item, Loads, Stores};

/// Access of one command group to a range of a buffer in blocks. The work-item with id `i` owns the elements from
/// `i * block` to `(i + 1) * block` per dimension, cut at the end of the range.
///
/// Blocks of different work-items never overlap, which is what makes writing to them safe.
pub struct Chunked<'cg, T, const D: usize, M> {
    accessor: Accessor<'cg, T, D, M>,
    block: [usize; D],
}

impl<T, const D: usize, M> Clone for Chunked<'_, T, D, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const D: usize, M> Copy for Chunked<'_, T, D, M> {}

impl<T, const D: usize, M> Chunked<'_, T, D, M> {
    /// An accessor with the lifetime of a call of a kernel, or without one.
    ///
    /// # Safety
    /// Only launches of the accessor's command group use it.
    #[inline(always)]
    pub(crate) unsafe fn with_brand<'k>(self) -> Chunked<'k, T, D, M> {
        // SAFETY: by the contract of this function.
        Chunked { accessor: unsafe { self.accessor.with_brand() }, block: self.block }
    }
}

impl<'cg, T: DeviceCopyable, const D: usize, M: Stores> Chunked<'cg, T, D, M> {
    /// # Safety
    /// No other copy of `accessor` gives access to elements in the command group: this type replaces it.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn from_accessor(accessor: Accessor<'cg, T, D, M>, block: Range<D>) -> Self {
        Self { accessor, block: block.0 }
    }

    /// The extent that may be used.
    #[inline(always)]
    pub fn range(self) -> Range<D> {
        self.accessor.range()
    }

    /// The extent of one block.
    #[inline(always)]
    pub fn block_range(self) -> Range<D> {
        Range(self.block)
    }

    /// How many blocks there are per dimension: the range to launch over.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0; 10])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access_chunks(&numbers, Write, 4);
    ///     assert_eq!(numbers.n_blocks(), Range([3]));
    ///     cg.parallel_for(numbers.n_blocks(), move |item| numbers.block(item).fill(item.index()))
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn n_blocks(self) -> Range<D> {
        Range(core::array::from_fn(|d| self.accessor.range[d].div_ceil(self.block[d].max(1))))
    }

    /// The work-item's own block; empty if it lies beyond the range.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0; 12], [3, 4])?;
    /// Queue::default()?.submit(|cg| {
    ///     let table = cg.access_chunks(&table, Write, [1, 4]);
    ///     cg.parallel_for(table.n_blocks(), move |item: Item<2>| {
    ///         table.block(item).fill_with(|index| 10 * item.get(0) + index[1]);
    ///     })
    /// })?;
    /// assert_eq!(table.to_vec()?, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn block<'wi>(self, item: Item<'wi, D>) -> Block<'wi, T, D, M> {
        let range = self.accessor.range;
        // Saturating, so that a huge id cannot wrap around into a block of another work-item.
        let begin: [usize; D] = core::array::from_fn(|d| item.id[d].saturating_mul(self.block[d]).min(range[d]));
        let extent = core::array::from_fn(|d| self.block[d].min(range[d] - begin[d]));
        // Wrapping: an empty block beyond the range may start outside the allocation; it is never dereferenced.
        let first = self.accessor.first.wrapping_add(position(begin, self.accessor.pitch));
        Block { first, begin, extent, pitch: self.accessor.pitch, lifetime: PhantomData, mode: PhantomData }
    }
}

/// The elements that one work-item owns. Indices are relative to the block.
pub struct Block<'wi, T, const D: usize, M> {
    first: *mut T,
    begin: [usize; D],
    extent: [usize; D],
    pitch: [usize; D],
    lifetime: PhantomData<&'wi Cell<T>>,
    mode: PhantomData<fn() -> M>,
}

impl<T, const D: usize, M> Clone for Block<'_, T, D, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const D: usize, M> Copy for Block<'_, T, D, M> {}

impl<'wi, T: DeviceCopyable, const D: usize, M: Stores> Block<'wi, T, D, M> {
    /// The position of the block's first element in the accessor's range.
    #[inline(always)]
    pub fn origin(self) -> Id<D> {
        Id(self.begin)
    }

    /// The extent, smaller than the block range at the end of the accessor's range.
    #[inline(always)]
    pub fn range(self) -> Range<D> {
        Range(self.extent)
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(self) -> usize {
        Range(self.extent).size()
    }

    /// Whether the block has no elements.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Stores to one element of the block.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0; 8])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access_chunks(&numbers, Write, 4);
    ///     cg.parallel_for(numbers.n_blocks(), move |item| {
    ///         let block = numbers.block(item);
    ///         block.set(0, 1 + item.index()); // the first of four
    ///         block.set(3, 9); // the last
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [1, 0, 0, 9, 2, 0, 0, 9]);
    /// # Ok(())
    /// # }
    /// ```
    /// # Panics
    /// If the index is outside the block.
    #[inline(always)]
    #[track_caller]
    pub fn set(self, index: impl Into<Id<D>>, value: T) {
        let position = checked_position(index.into().0, self.extent, self.pitch, self.first);
        // SAFETY: the index lies inside the block, which lies inside the accessor's range; only this work-item owns it.
        unsafe { *self.first.add(position) = value }
    }

    /// Stores the same value to all elements.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0; 5])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access_chunks(&numbers, Write, 2);
    ///     cg.parallel_for(numbers.n_blocks(), move |item| numbers.block(item).fill(item.index()))
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [0, 0, 1, 1, 2]); // the last block is cut at the end
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn fill(self, value: T) {
        self.fill_with(|_| value);
    }

    /// Stores `f` of each element's block-relative index, in row-major order.
    #[inline(always)]
    pub fn fill_with(self, mut f: impl FnMut(Id<D>) -> T) {
        let mut index = [0; D];
        let n_rows = if self.is_empty() { 0 } else { self.len() / self.extent[D - 1] };
        for _ in 0..n_rows {
            index[D - 1] = 0;
            let row = position(index, self.pitch);
            for x in 0..self.extent[D - 1] {
                index[D - 1] = x;
                // SAFETY: `index` lies inside the block, as in `set`.
                unsafe { *self.first.add(row + x) = f(Id(index)) }
            }
            next_row(&mut index, self.extent);
        }
    }
}

impl<'wi, T: DeviceCopyable, const D: usize, M: Stores> Block<'wi, T, D, M> {
    /// Loads one element of the block.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3, 4, 5, 6])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access_chunks(&numbers, ReadWrite, 3);
    ///     cg.parallel_for(numbers.n_blocks(), move |item| {
    ///         let block = numbers.block(item);
    ///         block.set(0, block.get(0) + block.get(1) + block.get(2));
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [6, 2, 3, 15, 5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    /// # Panics
    /// If the index is outside the block.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, index: impl Into<Id<D>>) -> T
    where
        M: Loads,
    {
        self.cell(index).get()
    }

    /// One element of the block as a cell.
    ///
    /// # Panics
    /// If the index is outside the block.
    #[inline(always)]
    #[track_caller]
    pub fn cell(self, index: impl Into<Id<D>>) -> &'wi Cell<T>
    where
        M: Loads,
    {
        let position = checked_position(index.into().0, self.extent, self.pitch, self.first);
        // SAFETY: as in `set`; `Cell<T>` has the layout of `T`, and cells may alias each other within the work-item.
        unsafe { &*self.first.add(position).cast_const().cast::<Cell<T>>() }
    }
}

impl<'wi, T: DeviceCopyable, M: Stores> Block<'wi, T, 1, M> {
    /// The block as a slice of cells.
    #[inline(always)]
    pub fn as_cells(self) -> &'wi [Cell<T>]
    where
        M: Loads,
    {
        // The address of an empty block need not be one. No return here: what is said of the address then holds for all blocks.
        let first = if self.extent[0] == 0 { NonNull::dangling().as_ptr() } else { self.first };
        // SAFETY: a one-dimensional block is contiguous; the rest as in `cell`.
        unsafe { slice(first.cast_const().cast::<Cell<T>>(), self.extent[0]) }
    }
}

impl<'wi, T: DeviceCopyable, M: Stores> Block<'wi, T, 2, M> {
    /// Row `y` of the block as a slice of cells.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![1, 2, 3, 4, 5, 6, 7, 8], [2, 4])?;
    /// Queue::default()?.submit(|cg| {
    ///     let table = cg.access_chunks(&table, ReadWrite, [2, 2]);
    ///     cg.parallel_for(table.n_blocks(), move |item: Item<2>| {
    ///         let block = table.block(item);
    ///         for (upper, lower) in block.row(0).iter().zip(block.row(1)) {
    ///             lower.set(lower.get() - upper.get());
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(table.to_vec()?, [1, 2, 3, 4, 4, 4, 4, 4]);
    /// # Ok(())
    /// # }
    /// ```
    /// # Panics
    /// If the row is outside the block.
    #[inline(always)]
    #[track_caller]
    pub fn row(self, y: usize) -> &'wi [Cell<T>]
    where
        M: Loads,
    {
        if y >= self.extent[0] {
            out_of_bounds([y], self.extent, self.first.addr())
        }
        let first = match self.extent[1] {
            // As in `as_cells`.
            0 => NonNull::dangling().as_ptr(),
            // SAFETY: the row is in the block.
            _ => unsafe { self.first.add(y * self.pitch[1]) },
        };
        // SAFETY: a row of the block is contiguous; the rest as in `cell`.
        unsafe { slice(first.cast_const().cast::<Cell<T>>(), self.extent[1]) }
    }
}
