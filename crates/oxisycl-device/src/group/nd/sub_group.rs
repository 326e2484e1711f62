//! Algorithms of sub-groups in kernels over an nd-range (SYCL 2020 section 4.17.4), which run as those of [`NdGroup`] do.

use core::panic::Location;

use oxisycl_types::HostTurn;

use super::algorithms::prove;
use super::{NdGroup, NdItem};
use crate::advice::AnyBits;
use crate::atomic::Scope;
use crate::group::memory::PrivateValues;
use crate::group::scope::Group;
use crate::group::shape::Shape;
use crate::group::sub_group::SubGroups;
use crate::operator::{Identity, Operator};
use crate::{DeviceCopyable, builtin};

/// The sub-group of a work-item, of `W` work-items, of which the last one of a group may have fewer. All work-items of the group come to each of its
/// algorithms.
pub struct SubGroup<'a, 'wi, 'cg: 'wi, const D: usize, S, const W: usize, const PROVED: bool> {
    pub(super) item: &'a mut NdItem<'wi, 'cg, D, S>,
}

impl<'wi, 'cg: 'wi, const D: usize, S: Shape<D>, const W: usize, const PROVED: bool>
    SubGroup<'_, 'wi, 'cg, D, S, W, PROVED>
{
    /// The position of the sub-group in its group.
    #[inline(always)]
    pub fn id(&self) -> usize {
        self.item.linear / W
    }

    /// How many sub-groups the group has.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.item.group.items().div_ceil(W)
    }

    /// The position of the work-item in its sub-group.
    #[inline(always)]
    pub fn local_id(&self) -> usize {
        self.item.linear % W
    }

    /// How many work-items the sub-group has.
    #[inline(always)]
    pub fn size(&self) -> usize {
        (self.item.group.items() - self.id() * W).min(W)
    }

    /// Whether it is the sub-group's first work-item.
    #[inline(always)]
    pub fn is_leader(&self) -> bool {
        self.local_id() == 0
    }

    /// Waits for all work-items of the group, as each of the algorithms does (SYCL 2020 `group_barrier` of a sub-group). What they wrote to local and
    /// global memory is visible to all of them afterwards.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // Each sub-group turns its part round.
    /// let numbers = Buffer::from_vec((0..8).collect())?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.parallel_for_nd_range((8, Fixed1::<8>), Local::<i32, 8>::new(), move |mut item, tile| {
    ///         let (own, number) = (item.local_linear_id(), numbers.get(item.global()));
    ///         let mut group = item.group();
    ///         let mut sub_group = group.sub_group::<4>();
    ///         let first = own - sub_group.local_id();
    ///         // SAFETY: each work-item writes its own element before the barrier, and all only read behind it.
    ///         let other = unsafe {
    ///             tile.set(own, number);
    ///             sub_group.barrier();
    ///             tile.get(2 * first + 3 - own)
    ///         };
    ///         numbers.set(item.global(), other);
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [3, 2, 1, 0, 7, 6, 5, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn barrier(&mut self) {
        self.whole_group().barrier();
    }

    /// Waits as [`barrier`](Self::barrier) does, and is a fence of `scope`, as [`NdGroup::barrier_in`] is.
    #[inline(always)]
    #[track_caller]
    pub fn barrier_in(&mut self, scope: Scope) {
        self.whole_group().barrier_in(scope);
    }

    /// The group, with what was promised of the sub-group.
    #[inline(always)]
    fn whole_group(&mut self) -> NdGroup<'_, 'wi, 'cg, D, S, PROVED> {
        // SAFETY: its methods ask for a proof, or it was promised when this was made.
        unsafe { NdGroup::new(self.item) }
    }

    /// Runs an algorithm of all sub-groups.
    #[inline(always)]
    #[track_caller]
    fn run<T: DeviceCopyable + AnyBits>(
        &mut self,
        value: T,
        algorithm: impl FnOnce(&mut SubGroups<'_, 'wi, 'cg, D, S, W>, &mut PrivateValues<'_, T>),
    ) -> T {
        let algorithm = |group: &mut Group<'wi, 'cg, D, S>, values: &mut PrivateValues<'_, T>| {
            algorithm(&mut group.sub_groups(), values);
            T::zeroed()
        };
        prove::<PROVED>();
        // SAFETY: proved, or promised when this was made.
        unsafe { self.item.run(value, Location::caller(), algorithm) }.0
    }

    /// The values of the sub-group together, in the order of a [block](crate::group#the-order-of-operands).
    #[inline(always)]
    #[track_caller]
    pub fn reduce<T, O>(&mut self, value: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        self.run(value, |all, values| all.reduce(values, operator))
    }

    /// The values of the sub-group up to the calling work-item, itself included.
    #[inline(always)]
    #[track_caller]
    pub fn inclusive_scan<T, O>(&mut self, value: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        self.run(value, |all, values| all.inclusive_scan(values, operator))
    }

    /// The values of the sub-group before the calling work-item; the operator's identity for the first one.
    #[inline(always)]
    #[track_caller]
    pub fn exclusive_scan<T, O>(&mut self, value: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Identity<T> + 'wi,
    {
        self.run(value, |all, values| all.exclusive_scan(values, operator))
    }

    /// `first`, and the values of the sub-group before the calling work-item. Each sub-group may have a `first` of its own.
    ///
    /// ```
    /// use oxisycl::group::Fixed1;
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // Each sub-group writes its pieces one behind the other, from where its row begins.
    /// let lengths = Buffer::from_vec(vec![3u32, 1, 4, 2, 5, 1, 2, 6])?;
    /// let starts = Buffer::from_vec(vec![0u32; 8])?;
    /// Queue::default()?.submit(|cg| {
    ///     let (lengths, starts) = (cg.access(&lengths, Read), cg.access(&starts, Write));
    ///     cg.parallel_for_nd_range((8, Fixed1::<8>), (), move |mut item, ()| {
    ///         let length = lengths.get(item.global());
    ///         let mut group = item.group();
    ///         let mut sub_group = group.sub_group::<4>();
    ///         let row = 100 * sub_group.id() as u32;
    ///         let start = sub_group.exclusive_scan_from(length, row, Sum);
    ///         starts.set(item.global(), start);
    ///     })
    /// })?;
    /// assert_eq!(starts.to_vec()?, [0, 3, 4, 8, 100, 105, 106, 108]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn exclusive_scan_from<T, O>(&mut self, value: T, first: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        let before = self.run(value, |all, values| all.before(values, &operator));
        if self.is_leader() { first } else { operator.combine(first, before) }
    }

    /// The value of the work-item `n` places behind; the own one where there is none. `n` is the same for all.
    #[inline(always)]
    #[track_caller]
    pub fn shift_left<T: DeviceCopyable + AnyBits>(&mut self, value: T, n: usize) -> T {
        self.run(value, |all, values| all.shift_left(values, n))
    }

    /// The value of the work-item `n` places before; the own one where there is none. `n` is the same for all.
    #[inline(always)]
    #[track_caller]
    pub fn shift_right<T: DeviceCopyable + AnyBits>(&mut self, value: T, n: usize) -> T {
        self.run(value, |all, values| all.shift_right(values, n))
    }

    /// The value of the work-item whose place is the own one with the bits of `mask` inverted; the own one where there is none. `mask` is the same for all.
    #[inline(always)]
    #[track_caller]
    pub fn permute_by_xor<T: DeviceCopyable + AnyBits>(&mut self, value: T, mask: usize) -> T {
        self.run(value, |all, values| all.permute_by_xor(values, mask))
    }

    /// The value of the work-item at place `lane`, which is the same for all; the own one where there is none.
    #[inline(always)]
    #[track_caller]
    pub fn broadcast<T: DeviceCopyable + AnyBits>(&mut self, value: T, lane: usize) -> T {
        self.run(value, |all, values| all.broadcast(values, lane))
    }

    /// The value of the work-item at place `lane`, which each chooses; the own one where there is none.
    #[inline(always)]
    #[track_caller]
    pub fn select<T: DeviceCopyable + AnyBits>(&mut self, value: T, lane: usize) -> T {
        let (first, n) = (self.id() * W, self.size());
        let from = if lane < n { first + lane } else { usize::MAX };
        // SAFETY: of the same kind as this.
        unsafe { NdGroup::<D, S, PROVED>::new(&mut *self.item) }.select(value, from)
    }

    /// A number with a bit for each work-item of the sub-group for which it holds, the first one's the lowest.
    #[inline(always)]
    #[track_caller]
    pub fn ballot(&mut self, holds: bool) -> u64 {
        self.run(u64::from(holds), |all, votes| all.ballot_of(votes))
    }

    /// A number with a bit for each work-item of the sub-group that has the same value, itself included.
    #[inline(always)]
    #[track_caller]
    pub fn match_any<T>(&mut self, value: T) -> u64
    where
        T: DeviceCopyable + AnyBits + PartialEq,
    {
        prove::<PROVED>();
        let items = self.item.group.items();
        if builtin::is_device_code() {
            let mut matches = PrivateValues::own(0, items);
            self.item.group.sub_groups::<W>().match_any(&PrivateValues::own(value, items), &mut matches);
            // SAFETY: device code.
            return unsafe { matches.of(0) };
        }
        let (first, n) = (self.id() * W, self.size());
        // SAFETY: native code, where work-items that do not come are found.
        let memory = unsafe { self.item.exchange(value, Location::caller()) };
        if memory.turn == HostTurn::Unwinds {
            return 0;
        }
        // SAFETY: the values of the sub-group, within those of the group.
        let bits = (0..n).map(|lane| u64::from(unsafe { memory.first.add(first + lane).read() } == value) << lane);
        bits.fold(0, |all, bit| all | bit)
    }

    /// Whether it holds for a work-item of the sub-group.
    #[inline(always)]
    #[track_caller]
    pub fn any(&mut self, holds: bool) -> bool {
        self.ballot(holds) != 0
    }

    /// Whether it holds for all work-items of the sub-group.
    #[inline(always)]
    #[track_caller]
    pub fn all(&mut self, holds: bool) -> bool {
        self.ballot(!holds) == 0
    }

    /// Whether it holds for no work-item of the sub-group.
    #[inline(always)]
    #[track_caller]
    pub fn none(&mut self, holds: bool) -> bool {
        self.ballot(holds) == 0
    }
}
