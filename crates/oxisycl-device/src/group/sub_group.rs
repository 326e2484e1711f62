//! Algorithms over sub-groups (SYCL 2020 sections 4.9.1.8 and 4.17.4), at group scope.
//!
//! A kernel names the size of its sub-groups. Where the processor's own sub-groups hold as many work-items, values go from one to another without memory.
//! Elsewhere they go through local memory, so that a kernel runs on every device, with the same results.

use super::blocks::{fold_block, scan_block};
use super::collective::{Scanned, Wanted};
use super::lanes::BLOCK;
use super::memory::PrivateValues;
use super::place::Place;
use super::scope::Group;
use super::shape::Shape;
use crate::advice::AnyBits;
use crate::operator::{Identity, Operator};
use crate::{DeviceCopyable, builtin};

/// The sub-groups of a group, of `W` work-items each, of which the last one may have fewer. They follow the local linear ids.
///
/// Every operation is one of all sub-groups at the same time. It changes private values in place, so that results belong to work-items.
pub struct SubGroups<'a, 'wg, 'cg: 'wg, const D: usize, S, const W: usize> {
    group: &'a mut Group<'wg, 'cg, D, S>,
}

impl<'wg, 'cg: 'wg, const D: usize, S: Shape<D>> Group<'wg, 'cg, D, S> {
    /// The sub-groups of `W` work-items, a power of two of at most 64. Processors of NVIDIA have 32.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Private};
    /// use oxisycl::operator::Max;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec((0..64u32).collect())?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.parallel_for_work_group(1, Fixed1::<64>, Private::new(0), move |mut group, mut own| {
    ///         group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()));
    ///         group.sub_groups::<16>().reduce(&mut own, Max);
    ///         group.for_each(&own, move |item, own| numbers.set(item.global(), *own));
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?[14..18], [15, 15, 31, 31]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn sub_groups<const W: usize>(&mut self) -> SubGroups<'_, 'wg, 'cg, D, S, W> {
        const { assert!(W.is_power_of_two() && W <= 64, "a sub-group has 1, 2, 4, 8, 16, 32 or 64 work-items") };
        SubGroups { group: self }
    }
}

impl<'wg, 'cg: 'wg, const D: usize, S: Shape<D>, const W: usize> SubGroups<'_, 'wg, 'cg, D, S, W> {
    /// How many sub-groups there are.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.group.items().div_ceil(W)
    }

    /// Gives each work-item the values of its sub-group together, in the order of a [block](Group::reduce).
    #[inline(always)]
    pub fn reduce<T, O>(&mut self, values: &mut PrivateValues<'_, T>, operator: O)
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wg,
    {
        self.change(
            values,
            // SAFETY: as `change` says.
            |value, place| unsafe { place.reduce::<T, O, W>(value, place.n, &operator) },
            |values| {
                let all = fold_block(values, &operator);
                values.fill(all);
            },
        );
    }

    /// Gives each work-item the values of its sub-group up to its own, itself included.
    #[inline(always)]
    pub fn inclusive_scan<T, O>(&mut self, values: &mut PrivateValues<'_, T>, operator: O)
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wg,
    {
        self.change(
            values,
            // SAFETY: as `change` says.
            |value, place| unsafe { place.scan::<T, O, W>(value, &operator) },
            |values| scan_block(values, &operator),
        );
    }

    /// Gives each work-item the values of its sub-group before its own, and the operator's identity to the first one.
    #[inline(always)]
    pub fn exclusive_scan<T, O>(&mut self, values: &mut PrivateValues<'_, T>, operator: O)
    where
        T: DeviceCopyable + AnyBits,
        O: Identity<T> + 'wg,
    {
        let identity = operator.identity();
        self.exclusive(values, &operator, |before| before.unwrap_or(identity));
    }

    /// Gives each work-item `first` and the values of its sub-group before its own.
    #[inline(always)]
    pub fn exclusive_scan_from<T, O>(&mut self, values: &mut PrivateValues<'_, T>, first: T, operator: O)
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wg,
    {
        self.exclusive(values, &operator, |before| before.map_or(first, |before| operator.combine(first, before)));
    }

    /// Gives each work-item the values of its sub-group before its own, and bytes of zero to the first one.
    #[inline(always)]
    pub(super) fn before<T, O>(&mut self, values: &mut PrivateValues<'_, T>, operator: &O)
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        self.exclusive(values, operator, |before| before.unwrap_or_else(T::zeroed));
    }

    #[inline(always)]
    fn exclusive<T, O>(&mut self, values: &mut PrivateValues<'_, T>, operator: &O, finish: impl Fn(Option<T>) -> T)
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        self.change(
            values,
            |value, place| {
                // SAFETY: as `change` says.
                let before = unsafe {
                    let own = place.scan::<T, O, W>(value, operator);
                    place.shuffle(own, place.lane.wrapping_sub(1))
                };
                finish((place.lane > 0).then_some(before))
            },
            |values| {
                scan_block(values, operator);
                let mut before = None;
                for value in values {
                    before = Some(core::mem::replace(value, finish(before)));
                }
            },
        );
    }

    /// Gives each work-item the value of the one `n` places behind it. Where there is none, the value stays as it is.
    #[inline(always)]
    pub fn shift_left<T: DeviceCopyable + AnyBits>(&mut self, values: &mut PrivateValues<'_, T>, n: usize) {
        self.gather(values, |lane, _| lane.saturating_add(n));
    }

    /// Gives each work-item the value of the one `n` places before it. Where there is none, the value stays as it is.
    #[inline(always)]
    pub fn shift_right<T: DeviceCopyable + AnyBits>(&mut self, values: &mut PrivateValues<'_, T>, n: usize) {
        self.gather(values, |lane, _| lane.wrapping_sub(n));
    }

    /// Gives each work-item the value of the one whose place is its own with the bits of `mask` inverted. Where there is none, the value stays as it is.
    #[inline(always)]
    pub fn permute_by_xor<T: DeviceCopyable + AnyBits>(&mut self, values: &mut PrivateValues<'_, T>, mask: usize) {
        self.gather(values, |lane, _| lane ^ mask);
    }

    /// Gives each work-item the value of the one whose place its index says. Where there is none, the value stays as it is.
    #[inline(always)]
    pub fn select<T: DeviceCopyable + AnyBits>(
        &mut self,
        values: &mut PrivateValues<'_, T>,
        indices: &PrivateValues<'_, u32>,
    ) {
        // SAFETY: there are as many indices as work-items; on a device it is the work-item's own.
        self.gather(values, |_, item| unsafe { indices.of(item) as usize });
    }

    /// Gives each work-item the value of the one at place `lane` of its sub-group. Where there is none, the value stays as it is.
    #[inline(always)]
    pub fn broadcast<T: DeviceCopyable + AnyBits>(&mut self, values: &mut PrivateValues<'_, T>, lane: usize) {
        self.gather(values, |_, _| lane);
    }

    /// Gives each work-item a number with a bit for each work-item of its sub-group for which it holds, the first one's the lowest.
    #[inline(always)]
    pub fn ballot(&mut self, holds: &PrivateValues<'_, bool>, votes: &mut PrivateValues<'_, u64>) {
        self.vote(holds, votes, |bits, _| bits);
    }

    /// Puts in the place of each vote a number with a bit for each vote of its sub-group. A bit is set where the vote is not zero.
    #[inline(always)]
    pub(super) fn ballot_of(&mut self, votes: &mut PrivateValues<'_, u64>) {
        if builtin::is_device_code() {
            // SAFETY: device code.
            let holds = PrivateValues::own(unsafe { votes.of(0) } != 0, 1);
            return self.ballot(&holds, votes);
        }
        // SAFETY: native code, and the values are borrowed.
        let votes = unsafe { core::slice::from_raw_parts_mut(votes.first_mut(), votes.len()) };
        for votes in votes.chunks_mut(W) {
            let bits = votes.iter().enumerate().map(|(lane, vote)| u64::from(*vote != 0) << lane);
            let bits = bits.fold(0, |all, bit| all | bit);
            votes.fill(bits);
        }
    }

    /// Gives each work-item whether it holds for one of its sub-group.
    #[inline(always)]
    pub fn any(&mut self, holds: &mut PrivateValues<'_, bool>) {
        self.decide(holds, |bits, _| bits != 0);
    }

    /// Gives each work-item whether it holds for all of its sub-group.
    #[inline(always)]
    pub fn all(&mut self, holds: &mut PrivateValues<'_, bool>) {
        self.decide(holds, |bits, n| bits.count_ones() as usize == n);
    }

    /// Gives each work-item whether it holds for none of its sub-group.
    #[inline(always)]
    pub fn none(&mut self, holds: &mut PrivateValues<'_, bool>) {
        self.decide(holds, |bits, _| bits == 0);
    }

    /// Gives each work-item a number with a bit for each work-item of its sub-group that has the same value, itself included.
    #[inline(always)]
    pub fn match_any<T>(&mut self, values: &PrivateValues<'_, T>, matches: &mut PrivateValues<'_, u64>)
    where
        T: DeviceCopyable + AnyBits + PartialEq,
    {
        if builtin::is_device_code() {
            let place = self.place();
            // SAFETY: device code at group scope: all work-items call it; each writes its own place between two barriers.
            unsafe {
                let own = values.of(0);
                let mut bits = 0u64;
                if builtin::has_shuffles() && W <= BLOCK {
                    for lane in 0..W {
                        let other = place.shuffle(own, lane);
                        bits |= u64::from(lane < place.n && other == own) << lane;
                    }
                } else {
                    let scratch = self.group.scratch::<T>();
                    scratch.item(place.first + place.lane).write(own);
                    self.group.meet();
                    for lane in 0..place.n {
                        bits |= u64::from(scratch.item(place.first + lane).read() == own) << lane;
                    }
                    builtin::group_barrier();
                }
                *matches.first_mut() = bits;
            }
            return;
        }
        for item in 0..values.len() {
            let first = item - item % W;
            let n = (values.len() - first).min(W);
            // SAFETY: there are as many values of both as work-items.
            unsafe {
                let own = values.of(item);
                let bits = (0..n).map(|lane| u64::from(values.of(first + lane) == own) << lane);
                *matches.first_mut().add(item) = bits.fold(0, |all, bit| all | bit);
            }
        }
    }

    /// Gives each work-item a value that is computed from those of its sub-group. On a device with shuffles, all work-items call
    /// `by_shuffles` from the same place, each for its own value. Otherwise, `in_memory` computes the values of a whole sub-group.
    #[inline(always)]
    fn change<T: DeviceCopyable + AnyBits>(
        &mut self,
        values: &mut PrivateValues<'_, T>,
        by_shuffles: impl FnOnce(T, Place) -> T,
        in_memory: impl Fn(&mut [T]),
    ) {
        let own = values.first_mut();
        if builtin::is_device_code() {
            let place = self.place();
            // SAFETY: the value of the calling work-item. Its place in memory is its own, but between the barriers, where the first one of the
            // sub-group has all of them.
            unsafe {
                if builtin::has_shuffles() && W <= BLOCK {
                    *own = by_shuffles(*own, place);
                } else {
                    let scratch = self.group.scratch::<T>();
                    let item = scratch.item(place.first + place.lane);
                    item.write(*own);
                    self.group.meet();
                    if place.lane == 0 {
                        in_memory(core::slice::from_raw_parts_mut(item, place.n));
                    }
                    self.group.meet();
                    *own = item.read();
                }
            }
            return;
        }
        // SAFETY: native code, and the values are borrowed.
        unsafe { core::slice::from_raw_parts_mut(own, values.len()) }.chunks_mut(W).for_each(in_memory);
    }

    /// Scans the values of the first `n` work-items of each sub-group. Others get what is of no use, but for the total, which no values have either. For
    /// device code.
    #[inline(always)]
    pub(super) fn scan_first<T, O>(&mut self, own: T, n: usize, operator: &O, wanted: Wanted) -> Scanned<T>
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        let place = self.place();
        let (lane, last) = (place.lane, n.wrapping_sub(1));
        // SAFETY: as in `change`. Behind the second meeting, places are only read until the barrier.
        unsafe {
            if builtin::has_shuffles() && W <= BLOCK {
                if wanted == Wanted::Total {
                    let total = place.reduce::<T, O, W>(own, n, operator);
                    return Scanned { own, before: None, total };
                }
                let own = place.members.scan::<T, O, W>(own, lane as u32, n as u32, operator);
                let mut before = None;
                if wanted == Wanted::Exclusive {
                    let left = place.shuffle(own, lane.wrapping_sub(1));
                    before = (lane > 0).then_some(left);
                }
                return Scanned { own, before, total: place.shuffle(own, last) };
            }
            let scratch = self.group.scratch::<T>();
            let item = scratch.item(place.first + lane);
            item.write(own);
            self.group.meet();
            if lane == 0 && n > 0 {
                let values = core::slice::from_raw_parts_mut(item, n.min(place.n));
                if wanted == Wanted::Total {
                    fold_block(values, operator);
                } else {
                    scan_block(values, operator);
                }
            }
            self.group.meet();
            let before = (lane > 0).then(|| scratch.item(place.first + lane - 1).read());
            let total = scratch.item(place.first + last.min(place.n - 1)).read();
            let own = item.read();
            builtin::group_barrier();
            Scanned { own, before, total }
        }
    }

    /// Gives each work-item the value of the one at place `source` of its sub-group, if there is one. `source` gets the own place, and the local linear id.
    #[inline(always)]
    fn gather<T: DeviceCopyable + AnyBits>(
        &mut self,
        values: &mut PrivateValues<'_, T>,
        source: impl Fn(usize, usize) -> usize,
    ) {
        let own = values.first_mut();
        if builtin::is_device_code() {
            let place = self.place();
            let item = place.first + place.lane;
            let source = source(place.lane, item);
            // SAFETY: as in `match_any`.
            unsafe {
                if builtin::has_shuffles() && W <= BLOCK {
                    let value = place.shuffle(*own, source);
                    if source < place.n {
                        *own = value;
                    }
                } else {
                    let scratch = self.group.scratch::<T>();
                    scratch.item(item).write(*own);
                    self.group.meet();
                    if source < place.n {
                        *own = scratch.item(place.first + source).read();
                    }
                    builtin::group_barrier();
                }
            }
            return;
        }
        // SAFETY: native code, and the values are borrowed.
        let values = unsafe { core::slice::from_raw_parts_mut(own, values.len()) };
        for (number, values) in values.chunks_mut(W).enumerate() {
            let mut old = [values[0]; W];
            old[..values.len()].copy_from_slice(values);
            let old = &old[..values.len()];
            for (lane, value) in values.iter_mut().enumerate() {
                if let Some(other) = old.get(source(lane, number * W + lane)) {
                    *value = *other;
                }
            }
        }
    }

    #[inline(always)]
    fn decide(&mut self, holds: &mut PrivateValues<'_, bool>, decide: impl Fn(u64, usize) -> bool) {
        let (first, len) = (holds.first_mut(), holds.len());
        // SAFETY: the values are borrowed, and of each sub-group are all read before one is written.
        unsafe { self.vote_at(first, len, |item, bits, n| *first.add(item) = decide(bits, n)) };
    }

    #[inline(always)]
    fn vote(
        &mut self,
        holds: &PrivateValues<'_, bool>,
        votes: &mut PrivateValues<'_, u64>,
        decide: impl Fn(u64, usize) -> u64,
    ) {
        let into = votes.first_mut();
        // SAFETY: the values are borrowed, and there are as many of both.
        unsafe { self.vote_at(holds.first(), holds.len(), |item, bits, n| *into.add(item) = decide(bits, n)) };
    }

    /// Calls `put` for each work-item, with a bit for each of its sub-group that holds, and with their number. On a device it is the calling one's, at 0.
    ///
    /// # Safety
    /// As many values as work-items are valid from `holds` on; on a device it is one.
    #[inline(always)]
    unsafe fn vote_at(&mut self, holds: *const bool, len: usize, put: impl Fn(usize, u64, usize)) {
        if builtin::is_device_code() {
            let place = self.place();
            // SAFETY: as in `match_any`; the value is valid.
            unsafe {
                let own = *holds;
                let bits = if builtin::has_shuffles() && W <= BLOCK {
                    u64::from(place.members.ballot(own) >> place.base) & (u64::MAX >> (64 - place.n))
                } else {
                    let scratch = self.group.scratch::<u64>();
                    scratch.item(place.first + place.lane).write(u64::from(own));
                    self.group.meet();
                    let bits = (0..place.n).map(|lane| scratch.item(place.first + lane).read() << lane);
                    let bits = bits.fold(0, |all, bit| all | bit);
                    builtin::group_barrier();
                    bits
                };
                put(0, bits, place.n);
            }
            return;
        }
        for first in (0..len).step_by(W) {
            let n = (len - first).min(W);
            // SAFETY: by the contract of this function.
            let bits = (0..n).map(|lane| u64::from(unsafe { *holds.add(first + lane) }) << lane);
            let bits = bits.fold(0, |all, bit| all | bit);
            (first..first + n).for_each(|item| put(item, bits, n));
        }
    }

    /// Where the calling work-item is. For device code.
    #[inline(always)]
    fn place(&self) -> Place {
        Place::of::<W>(self.group.local_linear_id(), self.group.items())
    }
}
