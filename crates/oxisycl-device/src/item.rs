//! Tokens: proof of being inside a kernel, and of being one particular work-item.

use core::fmt;
use core::marker::PhantomData;

use oxisycl_types::{Id, Range};

pub(crate) type Brand<'a> = PhantomData<fn(&'a ()) -> &'a ()>;
/// In a type that must stay with its work-item: a trait object that is neither `Send` nor `Sync`, whose name stands in the error.
pub(crate) type NotSend = PhantomData<dyn StaysInItsWorkItem>;

/// See [`NotSend`].
pub(crate) trait StaysInItsWorkItem {}

/// One work-item of a `parallel_for` over a range (SYCL 2020 section 4.9.1.4).
///
/// Only the runtime makes items, one per id and launch, and hands each to exactly one call of the kernel. An item can
/// be copied within that call, but cannot leave it. Its lifetime is fresh for the call, and it is neither `Send` nor
/// `Sync`.
#[derive(Clone, Copy)]
pub struct Item<'wi, const D: usize> {
    pub(crate) id: [usize; D],
    pub(crate) end: [usize; D],
    pub(crate) offset: [usize; D],
    brand: Brand<'wi>,
    not_send: NotSend,
}

impl<const D: usize> Item<'_, D> {
    /// # Safety
    /// Called by the code that runs a launch, once per id and launch, with a lifetime that ends with the kernel's call.
    #[inline(always)]
    pub(crate) unsafe fn new(id: [usize; D], end: [usize; D], offset: [usize; D]) -> Self {
        Self { id, end, offset, brand: PhantomData, not_send: PhantomData }
    }

    /// The position in the index space, offset included.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let on_diagonal = Buffer::from_vec_nd(vec![false; 4], [2, 2])?;
    /// Queue::default()?.submit(|cg| {
    ///     let on_diagonal = cg.access(&on_diagonal, Write);
    ///     cg.parallel_for([2, 2], move |item: Item<2>| {
    ///         let Id([row, column]) = item.id();
    ///         on_diagonal.set(item, row == column);
    ///     })
    /// })?;
    /// assert_eq!(on_diagonal.to_vec()?, [true, false, false, true]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn id(self) -> Id<D> {
        Id(self.id)
    }

    /// The coordinate in dimension `d`.
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
    /// If `d >= D`.
    #[inline(always)]
    pub fn get(self, d: usize) -> usize {
        self.id[d]
    }

    /// The extent of the launch.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0; 6], [2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let table = cg.access(&table, Write);
    ///     cg.parallel_for([2, 3], move |item: Item<2>| table.set(item, item.range().size()))
    /// })?;
    /// assert_eq!(table.to_vec()?, [6; 6]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn range(self) -> Range<D> {
        Range(core::array::from_fn(|d| self.end[d] - self.offset[d]))
    }

    /// The offset of the launch; zero unless the offset form was used.
    #[inline(always)]
    pub fn offset(self) -> Id<D> {
        Id(self.offset)
    }

    /// The row-major position within the launch, not counting the offset.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0; 6], [2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let table = cg.access(&table, Write);
    ///     cg.parallel_for([2, 3], move |item: Item<2>| table.set(item, item.linear_id()))
    /// })?;
    /// assert_eq!(table.to_vec()?, [0, 1, 2, 3, 4, 5]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn linear_id(self) -> usize {
        let mut position = 0;
        for d in 0..D {
            position = position * (self.end[d] - self.offset[d]) + (self.id[d] - self.offset[d]);
        }
        position
    }
}

impl Item<'_, 1> {
    /// The id of a one-dimensional launch as a number.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0; 4])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, Write);
    ///     cg.parallel_for(4, move |item| numbers.set(item, item.index()))
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [0, 1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn index(self) -> usize {
        self.id[0]
    }
}

impl<const D: usize> fmt::Debug for Item<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item").field("id", &self.id).field("range", &self.range()).finish()
    }
}

/// The only work-item of a `single_task`. It may read and write any element.
#[derive(Clone, Copy)]
pub struct Single<'wi> {
    brand: Brand<'wi>,
    not_send: NotSend,
}

impl Single<'_> {
    /// # Safety
    /// Called by the code that runs a single task, once per launch, with a lifetime that ends with the kernel's call.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Self { brand: PhantomData, not_send: PhantomData }
    }
}

impl fmt::Debug for Single<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Single")
    }
}

/// A token of code inside a kernel. What reading needs. Implemented by this crate only.
///
/// # Safety
/// The token exists only while a kernel runs; `'k` ends with the call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a token of a kernel",
    note = "pass the argument of the kernel: an `Item` or a `Single`"
)]
pub unsafe trait Inside<'k>: Copy {}

/// A token of one work-item. What atomic operations need. Implemented by this crate only.
///
/// # Safety
/// What [`Inside`] asks. The token belongs to one work-item.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the token of one work-item",
    note = "pass the argument of the kernel: an `Item` or a `Single`"
)]
pub unsafe trait InItem<'k>: Inside<'k> {}

// SAFETY: an item exists only during its kernel call.
unsafe impl<'k, const D: usize> Inside<'k> for Item<'k, D> {}
// SAFETY: an item is one work-item.
unsafe impl<'k, const D: usize> InItem<'k> for Item<'k, D> {}
// SAFETY: the token exists only during its kernel call.
unsafe impl<'k> Inside<'k> for Single<'k> {}
// SAFETY: a single task is one work-item.
unsafe impl<'k> InItem<'k> for Single<'k> {}
