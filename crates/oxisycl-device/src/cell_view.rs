//! Elements that the only work-item of a single task sees as cells.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Index;

use oxisycl_types::{Id, Range};

use crate::bounds::checked_position;
use crate::slices::slice;

/// All elements of a read-write accessor as cells, for the only work-item of a single task.
pub struct CellView<'wi, T, const D: usize> {
    first: *mut T,
    range: [usize; D],
    pitch: [usize; D],
    lifetime: PhantomData<&'wi Cell<T>>,
}

impl<T, const D: usize> Clone for CellView<'_, T, D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const D: usize> Copy for CellView<'_, T, D> {}

impl<'wi, T, const D: usize> CellView<'wi, T, D> {
    /// # Safety
    /// For `'wi`, the elements of `range` at `first` with the given pitches are valid and used by one work-item only, through
    /// cells or by value.
    #[inline(always)]
    pub(crate) unsafe fn new(first: *mut T, range: [usize; D], pitch: [usize; D]) -> Self {
        Self { first, range, pitch, lifetime: PhantomData }
    }

    /// The extent.
    #[inline(always)]
    pub fn range(self) -> Range<D> {
        Range(self.range)
    }

    /// The element at `index`.
    ///
    /// # Panics
    /// If the index is outside the range.
    #[inline(always)]
    #[track_caller]
    pub fn at(self, index: impl Into<Id<D>>) -> &'wi Cell<T> {
        let position = checked_position(index.into().0, self.range, self.pitch, self.first);
        // SAFETY: the index lies inside the range; `Cell<T>` has the layout of `T`; exclusiveness is the constructor's contract.
        unsafe { &*self.first.add(position).cast_const().cast::<Cell<T>>() }
    }
}

impl<'wi, T> CellView<'wi, T, 1> {
    /// All elements as a slice of cells.
    #[inline(always)]
    pub fn as_slice(self) -> &'wi [Cell<T>] {
        // SAFETY: a one-dimensional range is contiguous; the rest as in `at`.
        unsafe { slice(self.first.cast_const().cast::<Cell<T>>(), self.range[0]) }
    }
}

impl<T, const D: usize> Index<[usize; D]> for CellView<'_, T, D> {
    type Output = Cell<T>;
    #[inline(always)]
    #[track_caller]
    fn index(&self, index: [usize; D]) -> &Cell<T> {
        self.at(index)
    }
}

impl<T> Index<usize> for CellView<'_, T, 1> {
    type Output = Cell<T>;
    #[inline(always)]
    #[track_caller]
    fn index(&self, index: usize) -> &Cell<T> {
        self.at(index)
    }
}
