//! Copies between global and local memory that the work-items of a group make together (SYCL 2020 section 4.9.1.7, `async_work_group_copy`).
//!
//! Each work-item copies every so many elements, neighbours neighbouring ones. What others have copied is there behind
//! [`wait_for`](super::NdGroup::wait_for), which is a barrier.

use core::marker::PhantomData;

use super::{LocalAccessor, NdItem};
use crate::group::shape::Shape;
use crate::item::Brand;
use crate::{Accessor, DeviceCopyable, Loads, ModeFor, Stores};

/// A copy that a group has begun (SYCL 2020 `device_event`), to be [waited for](super::NdGroup::wait_for).
#[must_use = "what other work-items copy is there only when the copy was waited for"]
#[derive(Clone, Copy, Debug)]
pub struct GroupCopy<'wi>(Brand<'wi>);

impl<'wi, 'cg: 'wi, const D: usize, S: Shape<D>> NdItem<'wi, 'cg, D, S> {
    /// Begins to fill `tile` with elements of `source`: the one with index `first`, and every `stride`-th behind it. All work-items of the group call it with
    /// the same arguments.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // Each group turns its part round.
    /// let numbers = Buffer::from_vec((0..128u32).collect())?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.parallel_for_nd_range((128, Fixed1::<64>), Local::<u32, 64>::new(), move |mut item, tile| {
    ///         let first = item.group_linear_id() * 64;
    ///         // SAFETY: no other code accesses the tile, or writes this part of the numbers, until the copy was waited for.
    ///         let copy = unsafe { item.async_copy_to_local(numbers, first, 1, tile) };
    ///         // Something else may be done meanwhile.
    ///         item.group().wait_for(copy);
    ///         // SAFETY: the tile is only read from here on, and each work-item writes its own number.
    ///         unsafe { numbers.set(item.global(), tile.get(63 - item.local_linear_id())) };
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?[..2], [63, 62]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If `source` has not all of these elements, or `stride` is zero.
    ///
    /// # Safety
    /// Until the copy was waited for, no work-item accesses `tile`, and nothing writes the elements of `source`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn async_copy_to_local<T: DeviceCopyable, M: ModeFor<T> + Loads>(
        &self,
        source: Accessor<'cg, T, 1, M>,
        first: usize,
        stride: usize,
        tile: LocalAccessor<'wi, T>,
    ) -> GroupCopy<'wi> {
        check(first, stride, tile.len(), source.size());
        let (from, to) = (source.as_ptr(), tile.as_ptr());
        // SAFETY: elements of both, which was checked; the rest is the contract of this function.
        self.for_share(tile.len(), |i| unsafe { to.add(i).write(from.add(first + i * stride).read()) });
        GroupCopy(PhantomData)
    }

    /// Begins to copy `tile` to elements of `target`: the one with index `first`, and every `stride`-th behind it. All work-items of the group call it with the
    /// same arguments.
    ///
    /// # Panics
    /// If `target` has not all of these elements, or `stride` is zero.
    ///
    /// # Safety
    /// Until the copy was waited for, no work-item writes `tile`, and nothing accesses the elements of `target`. What the group wrote to `tile` lies before a
    /// barrier.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn async_copy_from_local<T: DeviceCopyable, M: ModeFor<T> + Stores>(
        &self,
        tile: LocalAccessor<'wi, T>,
        target: Accessor<'cg, T, 1, M>,
        first: usize,
        stride: usize,
    ) -> GroupCopy<'wi> {
        check(first, stride, tile.len(), target.size());
        let (from, to) = (tile.as_ptr(), target.as_ptr());
        // SAFETY: elements of both, which was checked; the rest is the contract of this function.
        self.for_share(tile.len(), |i| unsafe { to.add(first + i * stride).write(from.add(i).read()) });
        GroupCopy(PhantomData)
    }

    /// Calls `copy` for the elements of the calling work-item.
    #[inline(always)]
    fn for_share(&self, len: usize, copy: impl Fn(usize)) {
        let (mut i, items) = (self.linear, self.group.items());
        while i < len {
            copy(i);
            i += items;
        }
    }
}

/// # Panics
/// If `size` elements have not one at `first` and `len - 1` further ones, each `stride` behind the one before.
#[inline(always)]
#[track_caller]
fn check(first: usize, stride: usize, len: usize, size: usize) {
    assert!(stride > 0, "a copy of a group with a stride of zero");
    // An element at the end has `size - 1 - first` behind the first one.
    let fits = len == 0
        || (first < size && (if stride == 1 { len - 1 } else { (len - 1).saturating_mul(stride) }) < size - first);
    assert!(fits, "a copy of {len} elements from {first} on, {stride} apart, of an accessor of {size}");
}
