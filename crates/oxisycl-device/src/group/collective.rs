//! Algorithms over all work-items of a group (SYCL 2020 section 4.17.4), at group scope.
//!
//! # Work-items that ended
//!
//! A work-item that panics ends, and others do not wait for it. What it would have contributed is missing, so no result may decide at group scope. Each
//! algorithm therefore asks behind its barriers whether a work-item of the group has ended, and ends the calling one if so.

use oxisycl_types::GroupSize;

use super::blocks::{fold, scan, scan_block};
use super::lanes::{BLOCK, Members, Scratch, blocks};
use super::memory::{Elements, PrivateValues};
use super::scope::Group;
use super::shape::Shape;
use crate::advice::AnyBits;
use crate::operator::{BitOr, Identity, Operator};
use crate::{DeviceCopyable, builtin};

/// What a work-item gets of a scan.
pub(super) struct Scanned<T> {
    /// The work-item's value and all before it; the value of its block alone where `before` has the others.
    pub(super) own: T,
    /// The values before it, if there are any.
    pub(super) before: Option<T>,
    /// All values.
    pub(super) total: T,
}

/// Which part of a scan is wanted. The rest is not computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Total,
    Inclusive,
    Exclusive,
}

impl<'wg, 'cg: 'wg, const D: usize, S: Shape<D>> Group<'wg, 'cg, D, S> {
    /// The values of all work-items together, in the [order](super#the-order-of-operands) that is the same on every device. Each work-item's value stays as it is.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Private};
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = (Buffer::from_vec((0..8).collect())?, Buffer::from_vec(vec![0u32; 2])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Atomic));
    ///     cg.parallel_for_work_group(2, Fixed1::<4>, Private::new(0), move |mut group, mut own| {
    ///         group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()));
    ///         let (sum, id) = (group.reduce(&own, Sum), group.id());
    ///         group.for_each((), move |item, ()| {
    ///             if item.local_linear_id() == 0 {
    ///                 sums.store(item, id, sum);
    ///             }
    ///         });
    ///     })
    /// })?;
    /// assert_eq!(sums.to_vec()?, [6, 22]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn reduce<T, O>(&mut self, values: &PrivateValues<'_, T>, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wg,
    {
        if builtin::is_device_code() {
            // SAFETY: the value of the calling work-item.
            return self.scan_value(unsafe { *values.first() }, &operator, Wanted::Total).total;
        }
        // SAFETY: native code, and the values are borrowed.
        fold(unsafe { core::slice::from_raw_parts(values.first(), values.len()) }, &operator)
    }

    /// Gives each work-item the values of all work-items up to its own, itself included. Returns that of the last one.
    #[inline(always)]
    #[track_caller]
    pub fn inclusive_scan<T, O>(&mut self, values: &mut PrivateValues<'_, T>, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wg,
    {
        if builtin::is_device_code() {
            let own = values.first_mut();
            // SAFETY: the value of the calling work-item.
            let scanned = self.scan_value(unsafe { *own }, &operator, Wanted::Inclusive);
            // SAFETY: as above.
            unsafe { *own = scanned.own };
            return scanned.total;
        }
        // SAFETY: native code, and the values are borrowed.
        scan(unsafe { core::slice::from_raw_parts_mut(values.first_mut(), values.len()) }, &operator)
    }

    /// Gives each work-item the values of all work-items before its own, and the operator's identity to the first one. Returns all values together.
    #[inline(always)]
    #[track_caller]
    pub fn exclusive_scan<T, O>(&mut self, values: &mut PrivateValues<'_, T>, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Identity<T> + 'wg,
    {
        let identity = operator.identity();
        self.exclusive(values, &operator, move |before| before.unwrap_or(identity))
    }

    /// Gives each work-item `first` and the values of all work-items before its own. Returns all values together, without `first`.
    #[inline(always)]
    #[track_caller]
    pub fn exclusive_scan_from<T, O>(&mut self, values: &mut PrivateValues<'_, T>, first: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wg,
    {
        self.exclusive(values, &operator, move |before| before.map_or(first, |before| operator.combine(first, before)))
    }

    #[inline(always)]
    #[track_caller]
    fn exclusive<T, O>(&mut self, values: &mut PrivateValues<'_, T>, operator: &O, finish: impl Fn(Option<T>) -> T) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        let own = values.first_mut();
        if builtin::is_device_code() {
            // SAFETY: the value of the calling work-item.
            let scanned = self.scan_value(unsafe { *own }, operator, Wanted::Exclusive);
            // SAFETY: as above.
            unsafe { *own = finish(scanned.before) };
            return scanned.total;
        }
        // SAFETY: native code, and the values are borrowed.
        let values = unsafe { core::slice::from_raw_parts_mut(own, values.len()) };
        let total = scan(values, operator);
        let mut before = None;
        for value in values {
            before = Some(core::mem::replace(value, finish(before)));
        }
        total
    }

    /// Whether it holds for a work-item.
    #[inline(always)]
    #[track_caller]
    pub fn any(&mut self, values: &PrivateValues<'_, bool>) -> bool {
        if builtin::is_device_code() {
            // SAFETY: the value of the calling work-item.
            let own = u32::from(unsafe { *values.first() });
            return self.scan_value(own, &BitOr, Wanted::Total).total != 0;
        }
        // SAFETY: native code, and the values are borrowed.
        unsafe { core::slice::from_raw_parts(values.first(), values.len()) }.contains(&true)
    }

    /// Whether it holds for all work-items.
    #[inline(always)]
    #[track_caller]
    pub fn all(&mut self, values: &PrivateValues<'_, bool>) -> bool {
        if builtin::is_device_code() {
            // SAFETY: the value of the calling work-item.
            let own = u32::from(unsafe { !*values.first() });
            return self.scan_value(own, &BitOr, Wanted::Total).total == 0;
        }
        // SAFETY: native code, and the values are borrowed.
        !unsafe { core::slice::from_raw_parts(values.first(), values.len()) }.contains(&false)
    }

    /// Whether it holds for no work-item.
    #[inline(always)]
    #[track_caller]
    pub fn none(&mut self, values: &PrivateValues<'_, bool>) -> bool {
        !self.any(values)
    }

    /// The value of the work-item with the local linear id `from`.
    ///
    /// # Panics
    /// If the group has no such work-item.
    #[inline(always)]
    #[track_caller]
    pub fn broadcast<T>(&mut self, values: &PrivateValues<'_, T>, from: usize) -> T
    where
        T: DeviceCopyable + AnyBits,
    {
        let items = self.items();
        if from >= items {
            no_such_item(from, items);
        }
        if builtin::is_device_code() {
            let turn = self.turn();
            let scratch = self.scratch::<T>();
            let place = if builtin::has_shuffles() { scratch.in_turn(turn, 0) } else { scratch.of_block(0) };
            // SAFETY: one work-item writes between two barriers, and all read between the next two.
            unsafe {
                if self.local_linear_id() == from {
                    place.write(*values.first());
                }
                self.meet();
                let value = place.read();
                if !builtin::has_shuffles() {
                    builtin::group_barrier();
                }
                return value;
            }
        }
        // SAFETY: native code, and there are as many values as work-items.
        unsafe { *values.first().add(from) }
    }

    /// The value of the work-item with the local linear id `from`, which each work-item chooses; its own if there is none. For device code.
    #[inline(always)]
    pub(super) fn select<T>(&mut self, value: T, from: usize) -> T
    where
        T: DeviceCopyable + AnyBits,
    {
        let (linear, items) = (self.local_linear_id(), self.items());
        let scratch = self.scratch::<T>();
        // SAFETY: each writes its own place between two barriers, and all read between the next two.
        unsafe {
            scratch.item(linear).write(value);
            self.meet();
            let value = if from < items { scratch.item(from).read() } else { value };
            builtin::group_barrier();
            value
        }
    }

    /// An element of a tile, for decisions at group scope.
    ///
    /// # Panics
    /// If the tile has no such element.
    #[inline(always)]
    #[track_caller]
    pub fn read<M: Elements>(&mut self, tile: &M, index: usize) -> M::Element {
        if index >= tile.len() {
            no_such_element(index, tile.len());
        }
        // SAFETY: an element of the tile, which no phase writes meanwhile: the next one begins behind the barrier.
        unsafe {
            if builtin::is_device_code() {
                self.meet();
                let value = tile.first().add(index).read();
                builtin::group_barrier();
                return value;
            }
            tile.first().add(index).read()
        }
    }

    /// The work-items of the group.
    #[inline(always)]
    pub(super) fn items(&self) -> usize {
        super::scope::size_of_group(self.extent())
    }

    /// Memory for an algorithm over values of one type, which begins. For device code.
    #[inline(always)]
    pub(super) fn scratch<T>(&mut self) -> Scratch<T> {
        const { assert!(align_of::<T>() <= GroupSize::ALIGNMENT, "local memory is aligned to 64 bytes") };
        builtin::group_scratch(size_of::<T>() as u32);
        // Where values have another size than those before, places overlap that some work-items may still read.
        if self.begins_algorithm(size_of::<T>()) {
            // SAFETY: group scope takes the same way in all work-items.
            unsafe { builtin::group_barrier() };
        }
        // SAFETY: a launch has local memory for the scratch that its kernel asks for, behind that of its arguments.
        let memory = unsafe { builtin::local_memory() };
        Scratch::new(memory.wrapping_add(self.local_bytes()).cast(), self.items())
    }

    /// Waits for all work-items of the group, and ends if one of them has ended.
    ///
    /// # Safety
    /// For device code, at group scope.
    #[inline(always)]
    pub(super) unsafe fn meet(&mut self) {
        // SAFETY: group scope takes the same way in all work-items, and counts its meetings.
        if unsafe { !builtin::meet_group(self.items() as u32, self.next_meeting()) } {
            builtin::end_work_item()
        }
    }

    /// Scans the values of the first `n` work-items in place, at least one, and returns all of them together. An exclusive scan leaves nothing of use to the
    /// first work-item, and no scan does to those behind.
    #[inline(always)]
    pub(super) fn scan_some<T, O>(
        &mut self,
        values: &mut PrivateValues<'_, T>,
        n: usize,
        operator: &O,
        wanted: Wanted,
    ) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        let own = values.first_mut();
        if builtin::is_device_code() {
            // SAFETY: the value of the calling work-item.
            let scanned = self.scan_first(unsafe { *own }, n, operator, wanted);
            let result = if wanted == Wanted::Exclusive { scanned.before } else { Some(scanned.own) };
            if let Some(result) = result {
                // SAFETY: as above.
                unsafe { *own = result };
            }
            return scanned.total;
        }
        // SAFETY: native code, the values are borrowed, and there are as many.
        let values = unsafe { core::slice::from_raw_parts_mut(own, n.min(values.len())) };
        if wanted == Wanted::Total {
            return fold(values, operator);
        }
        let total = scan(values, operator);
        if wanted == Wanted::Exclusive {
            values.copy_within(..values.len() - 1, 1);
        }
        total
    }

    #[inline(always)]
    fn scan_value<T, O>(&mut self, own: T, operator: &O, wanted: Wanted) -> Scanned<T>
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        self.scan_first(own, self.items(), operator, wanted)
    }

    /// Scans the values of the first `n` work-items, at least one; others get what is of no use, but for the total. For device code.
    #[inline(always)]
    pub(super) fn scan_first<T, O>(&mut self, own: T, n: usize, operator: &O, wanted: Wanted) -> Scanned<T>
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        let turn = self.turn();
        let scratch = self.scratch::<T>();
        let linear = self.local_linear_id();
        // Of 32 bits, which processors compare faster.
        let position = linear as u32;
        let (block, lane) = (position / BLOCK as u32, position % BLOCK as u32);
        let counted = (n as u32).saturating_sub(block * BLOCK as u32).min(BLOCK as u32);
        let mut before = None;
        // SAFETY: device code at group scope. Between two barriers each place is written by one work-item, and read by no other.
        unsafe {
            let own = if builtin::has_shuffles() {
                let members = Members::of_block(self.items(), block as usize);
                let all = if wanted == Wanted::Total { members.at_once::<T, O>(own, lane, counted) } else { None };
                let own = match all {
                    Some(all) => all,
                    None => members.scan::<T, O, BLOCK>(own, lane, counted, operator),
                };
                if wanted == Wanted::Exclusive {
                    let left = members.shuffle(own, lane.wrapping_sub(1) as usize);
                    before = (lane > 0).then_some(left);
                }
                if lane + 1 == counted {
                    scratch.in_turn(turn, block as usize).write(own);
                }
                own
            } else {
                scratch.item(linear).write(own);
                self.meet();
                if lane == 0 && counted > 0 {
                    let values = core::slice::from_raw_parts_mut(scratch.item(linear), counted as usize);
                    scan_block(values, operator);
                    scratch.of_block(block as usize).write(values[counted as usize - 1]);
                }
                own
            };
            self.meet();
            let (left, total) = if builtin::has_shuffles() {
                // Each for itself, which saves a meeting.
                let mut all = scratch.in_turn(turn, 0).read();
                let mut left = None;
                for other in 1..blocks(n) as u32 {
                    if other == block {
                        left = Some(all);
                    }
                    all = operator.combine(all, scratch.in_turn(turn, other as usize).read());
                }
                (left, all)
            } else {
                if linear == 0 {
                    let mut all = scratch.of_block(0).read();
                    scratch.up_to_block(0).write(all);
                    for block in 1..blocks(n) {
                        all = operator.combine(all, scratch.of_block(block).read());
                        scratch.up_to_block(block).write(all);
                    }
                }
                self.meet();
                let left = (block > 0 && counted > 0).then(|| scratch.up_to_block(block as usize - 1).read());
                (left, scratch.up_to_block(blocks(n) - 1).read())
            };
            let mut own = own;
            if !builtin::has_shuffles() && wanted != Wanted::Total {
                if wanted == Wanted::Inclusive {
                    own = scratch.item(linear).read();
                } else {
                    before = (lane > 0).then(|| scratch.item(linear - 1).read());
                }
                // The next algorithm writes there.
                builtin::group_barrier();
            }
            if wanted == Wanted::Inclusive {
                own = left.map_or(own, |left| operator.combine(left, own));
            }
            let before = match (left, before) {
                (Some(left), Some(before)) => Some(operator.combine(left, before)),
                (left, before) => left.or(before),
            };
            Scanned { own, before, total }
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn no_such_item(item: usize, items: usize) -> ! {
    panic!("work-item {item} of a group of {items}")
}

#[cold]
#[inline(never)]
#[track_caller]
fn no_such_element(index: usize, len: usize) -> ! {
    panic!("element {index} of local memory of {len} elements")
}
