//! Kernels over an nd-range: each work-item runs the kernel, and waits for its group where it says so (SYCL 2020 section 4.9.4.2.2).
//!
//! It is the form of CUDA, OpenCL and most SYCL code. [`parallel_for_work_group`](super) says the same in phases, where a barrier cannot be met by some
//! work-items only, and where local memory is safe.
//!
//! | SYCL 2020 | here |
//! |---|---|
//! | `nd_range` | [`NdRange`], or a pair of a range and a [`Shape`] |
//! | `nd_item` | [`NdItem`] |
//! | `local_accessor` | [`LocalAccessor`], made from [`Local`](super::Local) and [`LocalSlice`](super::LocalSlice) |
//! | `group_barrier`, with a fence scope | [`NdGroup::barrier`], [`NdGroup::barrier_in`] |
//! | `async_work_group_copy`, `wait_for` | [`NdItem::async_copy_to_local`], [`NdItem::async_copy_from_local`], [`NdGroup::wait_for`] |
//! | algorithms over a group, the joint forms among them | methods of [`NdGroup`] |
//! | algorithms over a sub-group, the joint forms among them, and its barrier | methods of [`SubGroup`] |
//!
//! # Where all work-items have to come
//!
//! Barriers and algorithms are places to which all work-items of a group come, the same number of times, or none does. SYCL leaves that to the
//! programmer. Here the compiler proves it of those that [`NdItem::group`] gives, and refuses a kernel where it cannot. Those of
//! [`NdItem::unchecked`] are the caller's promise. On the host a group fails with an error if its work-items wait at different places, or
//! if some wait and others have ended. The error names both places.
//!
//! # On the host
//!
//! A work-item that waits lets the others run on stacks of their own. A kernel without barriers and algorithms is an ordinary loop. In the vector code of
//! `cargo sycl`, barriers that the compiler can prove part a kernel into several such loops, and nothing waits.

mod algorithms;
mod copies;
mod joint;
mod launch;
mod local;
mod sub_group;
mod sub_group_joint;

use core::any::TypeId;
use core::fmt;
use core::panic::Location;

use oxisycl_types::{HostGroup, HostPlace, HostTurn, Id, NdRange, Range};

pub use algorithms::NdGroup;
pub use copies::GroupCopy;
#[doc(hidden)]
pub use launch::{ByItem, ByItemWith};
pub use launch::{NdExtent, NdKernel};
pub use local::{LocalAccessor, NdArguments};
pub use sub_group::SubGroup;

use super::scope::Group;
use super::shape::Shape;
use crate::kernel::leave_id;
use crate::{Item, builtin};

/// One work-item of a kernel over an nd-range.
///
/// It is not `Copy`: what all work-items of the group come to borrows it mutably. For accessors there is [`global`](Self::global), which is.
pub struct NdItem<'wi, 'cg: 'wi, const D: usize, S = Range<D>> {
    group: Group<'wi, 'cg, D, S>,
    local: [usize; D],
    linear: usize,
    /// In native code: the group, for waiting. Null where item loops stand for that.
    host: *const HostGroup<'wi>,
    /// Which of two memories the next exchange uses, in native code.
    turn: bool,
}

impl<'wi, 'cg: 'wi, const D: usize, S: Shape<D>> NdItem<'wi, 'cg, D, S> {
    /// # Safety
    /// Made by the entry of a kernel over an nd-range, once for each work-item, with a lifetime that ends with the kernel's call. The position is that of the
    /// work-item in `group`. In native code without item loops, `host` is the group, as long as the item exists.
    #[inline(always)]
    unsafe fn new(group: Group<'wi, 'cg, D, S>, local: [usize; D], linear: usize, host: *const HostGroup<'wi>) -> Self {
        Self { group, local, linear, host, turn: false }
    }

    /// The work-item as one of a range, whose element accessors give.
    #[inline(always)]
    pub fn global(&self) -> Item<'wi, D> {
        self.group.phase_item(self.local, self.linear).global()
    }

    /// The position in the whole range.
    #[inline(always)]
    pub fn global_id(&self) -> Id<D> {
        self.global().id()
    }

    /// The row-major position in the whole range.
    #[inline(always)]
    pub fn global_linear_id(&self) -> usize {
        self.global().linear_id()
    }

    /// The whole range.
    #[inline(always)]
    pub fn global_range(&self) -> Range<D> {
        self.global().range()
    }

    /// The position in the group.
    #[inline(always)]
    pub fn local_id(&self) -> Id<D> {
        Id(self.local)
    }

    /// The row-major position in the group.
    #[inline(always)]
    pub fn local_linear_id(&self) -> usize {
        self.linear
    }

    /// How many work-items the group has.
    #[inline(always)]
    pub fn local_range(&self) -> Range<D> {
        self.group.local_range()
    }

    /// The position of the group.
    #[inline(always)]
    pub fn group_id(&self) -> Id<D> {
        self.group.id()
    }

    /// The row-major position of the group.
    #[inline(always)]
    pub fn group_linear_id(&self) -> usize {
        self.group.linear_id()
    }

    /// How many groups there are.
    #[inline(always)]
    pub fn group_range(&self) -> Range<D> {
        self.group.group_range()
    }

    /// The nd-range of the launch.
    #[inline(always)]
    pub fn nd_range(&self) -> NdRange<D> {
        NdRange::new(self.global_range(), self.local_range())
    }

    /// Whether it is the group's first work-item.
    #[inline(always)]
    pub fn is_leader(&self) -> bool {
        self.linear == 0
    }

    /// Barriers and algorithms that all work-items of the group come to, which the compiler proves.
    ///
    /// A kernel for which it cannot prove that is refused for devices. Work-items may part by their ids, and meet again. A barrier in a branch or a loop depends
    /// on captured values, the position of the group, and what algorithms give to all. An element of a buffer gets to all by
    /// [`broadcast`](NdGroup::broadcast). On the host work-items that wait at different places are an error.
    ///
    /// ```
    /// use oxisycl::group::Fixed1;
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, places) = (Buffer::from_vec(vec![3u32, 0, 5, 0, 0, 7, 0, 9])?, Buffer::from_vec(vec![0u32; 8])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, places) = (cg.access(&numbers, Read), cg.access(&places, Write));
    ///     cg.parallel_for_nd_range((8, Fixed1::<8>), (), move |mut item, ()| {
    ///         let counts = u32::from(numbers.get(item.global()) != 0);
    ///         let place = item.group().exclusive_scan(counts, Sum);
    ///         places.set(item.global(), place);
    ///     })
    /// })?;
    /// assert_eq!(places.to_vec()?, [0, 1, 1, 2, 2, 2, 3, 3]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn group(&mut self) -> NdGroup<'_, 'wi, 'cg, D, S, true> {
        // SAFETY: each of its methods asks for a proof.
        unsafe { NdGroup::new(self) }
    }

    /// The group without a proof: for kernels in which work-items come together in a way that the compiler does not see.
    ///
    /// ```
    /// use oxisycl::group::Local;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec((0..8).collect())?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     let range = NdRange::new(Range::new([8]), Range::new([4]));
    ///     cg.parallel_for_nd_range(range, Local::<i32, 4>::new(), move |mut item, tile| {
    ///         let own = item.local_linear_id();
    ///         // SAFETY: each work-item writes its own element before the barrier, and all only read behind it. All come to it.
    ///         unsafe {
    ///             tile.set(own, numbers.get(item.global()));
    ///             item.unchecked().barrier();
    ///             numbers.set(item.global(), tile.get(3 - own));
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [3, 2, 1, 0, 7, 6, 5, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// Each call of a method of the result is made by all work-items of the group or by none. They make it from the same place and equally
    /// often. Those that have panicked are not counted. Arguments that a method calls the same for all are the same.
    #[inline(always)]
    pub unsafe fn unchecked(&mut self) -> NdGroup<'_, 'wi, 'cg, D, S, false> {
        // SAFETY: by the contract of this function.
        unsafe { NdGroup::new(self) }
    }

    /// Waits for the group.
    ///
    /// # Safety
    /// All work-items of the group come here, as [`unchecked`](Self::unchecked) asks.
    #[inline(always)]
    unsafe fn wait(&mut self, place: &'static Location<'static>) {
        if builtin::is_device_code() {
            // SAFETY: by the contract of this function.
            unsafe { builtin::group_barrier() };
            return;
        }
        if builtin::has_item_loops() {
            self.end_item_loop();
            return;
        }
        // SAFETY: native code: by the contract of `new` the group and its chunk exist, and the entry ends the group.
        unsafe { self.wait_on_host(HostPlace { location: place, values: TypeId::of::<()>() }) };
    }

    /// Waits in native code that has item loops.
    #[inline(always)]
    fn end_item_loop(&self) {
        builtin::end_item_loop();
        if cfg!(panic = "abort") {
            builtin::in_turn();
            // SAFETY: native code, whose chunk exists by the contract of `Group::new`.
            leave_id(unsafe { &*self.group.chunk() }, self.global_id().0);
        }
    }

    /// Waits in native code.
    ///
    /// # Safety
    /// Native code.
    unsafe fn wait_on_host(&self, place: HostPlace) -> HostTurn {
        builtin::only_on_stacks();
        builtin::in_turn();
        // SAFETY: by the contract of `new`.
        unsafe {
            let chunk = &*self.group.chunk();
            let turn = (chunk.waiting.wait)(&*self.host, self.linear, place);
            if cfg!(panic = "abort") {
                // Another work-item has run meanwhile.
                ((*self.host).name)(self.linear);
            }
            turn
        }
    }
}

impl<const D: usize, S: Shape<D>> fmt::Debug for NdItem<'_, '_, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NdItem")
            .field("global_id", &self.global_id())
            .field("local_id", &self.local_id())
            .field("nd_range", &self.nd_range())
            .finish()
    }
}
