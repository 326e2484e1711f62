//! Barriers of kernels over an nd-range, and algorithms of their groups (SYCL 2020 sections 4.17.3 and 4.17.4).
//!
//! They are those of group scope, with values of work-items instead of private values. In native code each work-item leaves its value in
//! memory of the group and waits. The first one that goes on runs the algorithm for all.

use core::any::TypeId;
use core::panic::Location;

use oxisycl_types::{GroupSize, HostChunk, HostGroup, HostPlace, HostTurn};

use super::{GroupCopy, NdItem, SubGroup};
use crate::advice::AnyBits;
use crate::atomic::{AcqRel, Scope, atomic_fence};
use crate::group::memory::PrivateValues;
use crate::group::scope::Group;
use crate::group::shape::Shape;
use crate::operator::{Identity, Operator};
use crate::{DeviceCopyable, builtin};

impl<'wi, 'cg: 'wi, const D: usize, S: Shape<D>> NdItem<'wi, 'cg, D, S> {
    /// Runs an algorithm of the group. Gives what it leaves in the place of the calling work-item, and its result.
    ///
    /// # Safety
    /// All work-items of the group come here, as [`unchecked`](Self::unchecked) asks.
    #[inline(always)]
    pub(super) unsafe fn run<T>(
        &mut self,
        value: T,
        place: &'static Location<'static>,
        algorithm: impl FnOnce(&mut Group<'wi, 'cg, D, S>, &mut PrivateValues<'_, T>) -> T,
    ) -> (T, T)
    where
        T: DeviceCopyable + AnyBits,
    {
        let items = self.group.items();
        if builtin::is_device_code() {
            let mut values = PrivateValues::own(value, items);
            let result = algorithm(&mut self.group, &mut values);
            // SAFETY: device code.
            return (unsafe { values.of(0) }, result);
        }
        // SAFETY: native code, by the contract of this function.
        let memory = unsafe { self.exchange(value, place) };
        if memory.turn == HostTurn::Unwinds {
            return (value, value);
        }
        if memory.turn == HostTurn::First {
            let lead = self.lead();
            let for_all = || {
                // SAFETY: the values of all work-items, none of which goes on before this one waits or ends.
                let result = algorithm(&mut self.group, &mut unsafe { PrivateValues::all(memory.first, items) });
                // SAFETY: behind the values.
                unsafe { memory.first.add(items).write(result) };
            };
            // SAFETY: this is the first one.
            unsafe { lead.run(for_all) };
        }
        self.end_lead();
        // SAFETY: within the memory. Each work-item has written its own value, and the first one the result: otherwise no other one is here.
        unsafe { (memory.first.add(self.linear).read(), memory.first.add(items).read()) }
    }

    /// The way to do something for the whole group in native code.
    pub(super) fn lead(&self) -> Lead<'wi> {
        Lead { chunk: self.group.chunk(), host: self.host }
    }

    /// Leaves a value for the group in native code, and waits.
    ///
    /// # Safety
    /// Native code.
    pub(super) unsafe fn exchange<T: 'static>(&mut self, value: T, place: &'static Location<'static>) -> Exchanged<T> {
        const { assert!(align_of::<T>() <= GroupSize::ALIGNMENT, "local memory is aligned to 64 bytes") };
        // Groups are smaller than what can be counted in such sizes: their private values were.
        let items = self.group.items();
        if builtin::has_item_loops() {
            // Twice: the first one may come to the next algorithm before others have read what is left for them here.
            let both = builtin::item_array(2 * size_of::<T>() as u64).cast::<T>();
            let first = both.wrapping_add(if self.turn { items + 1 } else { 0 });
            // SAFETY: within that memory, at the caller's own place.
            unsafe { first.add(self.linear).write(value) };
            self.turn = !self.turn;
            self.end_item_loop();
            return Exchanged { first, turn: if self.linear == 0 { HostTurn::First } else { HostTurn::Later } };
        }
        let bytes = size_of::<T>().saturating_mul(items.saturating_add(1));
        // SAFETY: by the contract of `new`. Memory that was asked for is the same until it is asked for with another size.
        unsafe {
            let exchange = (*self.group.chunk()).waiting.exchange;
            let first = exchange(&*self.host, self.linear, bytes, self.turn).cast::<T>();
            first.add(self.linear).write(value);
            let turn = self.wait_on_host(HostPlace { location: place, values: TypeId::of::<T>() });
            let first = exchange(&*self.host, self.linear, bytes, self.turn).cast::<T>();
            // The first one may come to the next algorithm before others have read what is left for them here.
            self.turn = !self.turn;
            Exchanged { first, turn }
        }
    }

    /// Waits until the first work-item has done what it does for all, where others do not wait for that anyway.
    #[inline(always)]
    pub(super) fn end_lead(&self) {
        if builtin::has_item_loops() {
            self.end_item_loop();
        }
    }
}

/// What the first work-item that goes on does for its group in native code.
pub(super) struct Lead<'wi> {
    chunk: *const HostChunk,
    host: *const HostGroup<'wi>,
}

impl Lead<'_> {
    /// Calls it. If it panics, the group fails: the other work-items would read what is not there.
    ///
    /// # Safety
    /// Native code. The caller has [`HostTurn::First`] from its last exchange.
    pub(super) unsafe fn run(&self, for_all: impl FnOnce()) {
        if builtin::has_item_loops() {
            // It has the thread for itself, and reads what others have left.
            builtin::in_turn();
            return for_all();
        }
        let mut for_all = Some(for_all);
        let mut once = || {
            if let Some(for_all) = for_all.take() {
                for_all();
            }
        };
        // SAFETY: the group and its chunk exist as long as its work-items, and the rest is the contract of this function.
        unsafe { ((*self.chunk).waiting.run)(&*self.host, &mut once) };
    }
}

/// Values of a group in native code.
pub(super) struct Exchanged<T> {
    /// One for each work-item, and one behind them.
    pub(super) first: *mut T,
    /// Why the caller goes on. The values are those of all only if they have come.
    pub(super) turn: HostTurn,
}

/// What all work-items of a group come to: proved by the compiler ([`NdItem::group`]), or promised by the caller ([`NdItem::unchecked`]).
pub struct NdGroup<'a, 'wi, 'cg: 'wi, const D: usize, S, const PROVED: bool> {
    pub(super) item: &'a mut NdItem<'wi, 'cg, D, S>,
}

/// Has the compiler prove that all work-items come to the caller's caller.
#[inline(always)]
pub(super) fn prove<const PROVED: bool>() {
    if PROVED {
        builtin::prove_convergence();
    }
}

impl<'a, 'wi, 'cg: 'wi, const D: usize, S: Shape<D>, const PROVED: bool> NdGroup<'a, 'wi, 'cg, D, S, PROVED> {
    /// # Safety
    /// All work-items of the group come to each call of a method, as [`NdItem::unchecked`] asks, if that is not proved.
    #[inline(always)]
    pub(super) unsafe fn new(item: &'a mut NdItem<'wi, 'cg, D, S>) -> Self {
        Self { item }
    }

    /// Runs an algorithm of the group. Gives what it leaves in the place of the calling work-item, and its result.
    #[inline(always)]
    #[track_caller]
    pub(super) fn run<T: DeviceCopyable + AnyBits>(
        &mut self,
        value: T,
        algorithm: impl FnOnce(&mut Group<'wi, 'cg, D, S>, &mut PrivateValues<'_, T>) -> T,
    ) -> (T, T) {
        prove::<PROVED>();
        // SAFETY: proved, or promised when this was made.
        unsafe { self.item.run(value, Location::caller(), algorithm) }
    }

    /// Waits for all work-items of the group. What they wrote to local and global memory is visible to all of them afterwards.
    #[inline(always)]
    #[track_caller]
    pub fn barrier(&mut self) {
        prove::<PROVED>();
        // SAFETY: proved, or promised when this was made.
        unsafe { self.item.wait(Location::caller()) };
    }

    /// Waits as [`barrier`](Self::barrier) does, and is a fence of `scope` for the whole group (SYCL 2020 `group_barrier` with a fence
    /// scope). Work-items of other groups see what this group wrote before if a later atomic operation of this group notifies them. They
    /// must also wait or fence in that scope.
    ///
    /// ```
    /// use oxisycl::atomic::{Relaxed, Scope};
    /// use oxisycl::group::Fixed1;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // The group that comes last adds up what all have written.
    /// let (words, sum) = (Buffer::from_vec(vec![0u32; 256 + 1])?, Buffer::from_vec(vec![0u32])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (words, sum) = (cg.access(&words, Atomic), cg.access(&sum, Atomic));
    ///     cg.parallel_for_nd_range((256, Fixed1::<64>), (), move |mut item, ()| {
    ///         words.store(item.global(), item.global_linear_id(), 1);
    ///         item.group().barrier_in(Scope::Device);
    ///         let before = if item.is_leader() { words.fetch_add(item.global(), 256, 1) } else { 0 };
    ///         let before = item.group().broadcast(before, 0);
    ///         item.group().barrier_in(Scope::Device);
    ///         if before == 3 {
    ///             let own = item.local_linear_id();
    ///             (0..4).for_each(|n| drop(sum.fetch_add(item.global(), 0, words.load(item.global(), own + 64 * n))));
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(sum.to_vec()?, [256]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn barrier_in(&mut self, scope: Scope) {
        prove::<PROVED>();
        let is_wider = matches!(scope, Scope::Device | Scope::System);
        if is_wider {
            atomic_fence(AcqRel, scope);
        }
        // SAFETY: proved, or promised when this was made.
        unsafe { self.item.wait(Location::caller()) };
        if is_wider {
            atomic_fence(AcqRel, scope);
        }
    }

    /// Waits until the group has made the copy: a [barrier](Self::barrier).
    #[inline(always)]
    #[track_caller]
    pub fn wait_for(&mut self, copy: GroupCopy<'wi>) {
        prove::<PROVED>();
        let GroupCopy { .. } = copy;
        // SAFETY: proved, or promised when this was made.
        unsafe { self.item.wait(Location::caller()) };
    }

    /// The values of all work-items together, in the [order](crate::group#the-order-of-operands) that is the same on every device.
    #[inline(always)]
    #[track_caller]
    pub fn reduce<T, O>(&mut self, value: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        self.run(value, |group, values| group.reduce(values, operator)).1
    }

    /// The values of all work-items up to the calling one, itself included.
    #[inline(always)]
    #[track_caller]
    pub fn inclusive_scan<T, O>(&mut self, value: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        self.run(value, |group, values| group.inclusive_scan(values, operator)).0
    }

    /// The values of all work-items before the calling one; the operator's identity for the first one.
    #[inline(always)]
    #[track_caller]
    pub fn exclusive_scan<T, O>(&mut self, value: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Identity<T> + 'wi,
    {
        self.run(value, |group, values| group.exclusive_scan(values, operator)).0
    }

    /// `first`, which is the same for all work-items, and the values of all work-items before the calling one.
    #[inline(always)]
    #[track_caller]
    pub fn exclusive_scan_from<T, O>(&mut self, value: T, first: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        self.run(value, |group, values| group.exclusive_scan_from(values, first, operator)).0
    }

    /// Whether it holds for a work-item.
    #[inline(always)]
    #[track_caller]
    pub fn any(&mut self, holds: bool) -> bool {
        self.run(u32::from(holds), |group, values| group.reduce(values, crate::operator::BitOr)).1 != 0
    }

    /// Whether it holds for all work-items.
    #[inline(always)]
    #[track_caller]
    pub fn all(&mut self, holds: bool) -> bool {
        !self.any(!holds)
    }

    /// Whether it holds for no work-item.
    #[inline(always)]
    #[track_caller]
    pub fn none(&mut self, holds: bool) -> bool {
        !self.any(holds)
    }

    /// The value of the work-item with the local linear id `from`, which is the same for all.
    ///
    /// # Panics
    /// If the group has no such work-item.
    #[inline(always)]
    #[track_caller]
    pub fn broadcast<T: DeviceCopyable + AnyBits>(&mut self, value: T, from: usize) -> T {
        let from = if PROVED { builtin::prove_uniform(from as u64) as usize } else { from };
        self.run(value, |group, values| group.broadcast(values, from)).1
    }

    /// The value of the work-item with the local linear id `from`, which each work-item chooses; its own value if there is no such work-item.
    #[inline(always)]
    #[track_caller]
    pub fn select<T: DeviceCopyable + AnyBits>(&mut self, value: T, from: usize) -> T {
        prove::<PROVED>();
        if builtin::is_device_code() {
            return self.item.group.select(value, from);
        }
        let items = self.item.group.items();
        // SAFETY: native code, where work-items that do not come are found.
        let memory = unsafe { self.item.exchange(value, Location::caller()) };
        if from >= items || memory.turn == HostTurn::Unwinds {
            return value;
        }
        // SAFETY: within the values.
        unsafe { memory.first.add(from).read() }
    }

    /// The sub-group of `W` work-items, a power of two of at most 64. Processors of NVIDIA have 32.
    #[inline(always)]
    pub fn sub_group<const W: usize>(&mut self) -> SubGroup<'_, 'wi, 'cg, D, S, W, PROVED> {
        SubGroup { item: &mut *self.item }
    }
}
