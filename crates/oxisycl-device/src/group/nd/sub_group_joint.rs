//! Algorithms of a sub-group over elements of memory, on work-items of an nd-range (SYCL 2020 section 4.17.4, the joint forms).
//!
//! Each sub-group has elements of its own, of which the others may have fewer or none. Scans go on for as long as one sub-group has elements, since
//! all work-items of the group come to each algorithm.

use core::panic::Location;

use oxisycl_types::HostTurn;

use super::algorithms::prove;
use super::{NdGroup, SubGroup};
use crate::advice::AnyBits;
use crate::group::blocks::{fold_block, scan_block};
use crate::group::collective::{Scanned, Wanted};
use crate::group::shape::Shape;
use crate::operator::{Max, Operator};
use crate::{DeviceCopyable, builtin};

/// What a work-item leaves for its sub-group in native code, and finds there.
#[derive(Clone, Copy)]
struct Piece<T> {
    value: T,
    before: Option<T>,
    total: T,
    /// How many values of the sub-group count.
    n: usize,
}

impl<'wi, 'cg: 'wi, const D: usize, S: Shape<D>, const W: usize, const PROVED: bool>
    SubGroup<'_, 'wi, 'cg, D, S, W, PROVED>
{
    /// `first` and the elements together (SYCL 2020 `joint_reduce`). All work-items of a sub-group give the same elements and the same `first`; each
    /// sub-group may give others. The operator also has to be commutative. Each work-item combines the elements at its place and at every further multiple
    /// of the size of its sub-group; `first` comes before the first element. Their values follow in the order of a
    /// [block](crate::group#the-order-of-operands).
    ///
    /// ```
    /// use oxisycl::group::Fixed1;
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // A sub-group for each row of a matrix.
    /// let (rows, sums) = (Buffer::from_vec((1..=100u32).collect())?, Buffer::from_vec(vec![0; 16])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (rows, sums) = (cg.access(&rows, Read), cg.access(&sums, Write));
    ///     cg.parallel_for_nd_range((16, Fixed1::<16>), (), move |mut item, ()| {
    ///         let all = rows.view(item.global());
    ///         let mut group = item.group();
    ///         let mut sub_group = group.sub_group::<8>();
    ///         let first = 50 * sub_group.id();
    ///         let row = all.as_slice().get(first..first + 50).unwrap_or(&[]);
    ///         let sum = sub_group.joint_reduce(row, 0, Sum);
    ///         sums.set(item.global(), sum);
    ///     })
    /// })?;
    /// assert_eq!(sums.to_vec()?[7..9], [1275, 3775]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn joint_reduce<T, O>(&mut self, elements: &[T], first: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        let (lane, size) = (self.local_id(), self.size());
        // Work-items without elements are behind all others.
        let mut value = elements.get(lane).copied().unwrap_or(T::zeroed());
        if lane == 0 {
            value = if elements.is_empty() { first } else { operator.combine(first, value) };
        }
        let mut next = lane + size;
        while let Some(element) = elements.get(next) {
            value = operator.combine(value, *element);
            next += size;
        }
        self.scan_first(value, size.min(elements.len()).max(1), &operator, Wanted::Total).total
    }

    /// Whether `predicate` holds for one of the elements (SYCL 2020 `joint_any_of`). Of no elements it does not. All work-items of a sub-group give the same
    /// elements and the same predicate, which is asked once for each element.
    #[inline(always)]
    #[track_caller]
    pub fn joint_any<T: DeviceCopyable>(&mut self, elements: &[T], predicate: impl Fn(T) -> bool) -> bool {
        let (mut next, size, mut found) = (self.local_id(), self.size(), false);
        while let Some(element) = elements.get(next) {
            found |= predicate(*element);
            next += size;
        }
        self.any(found)
    }

    /// Whether `predicate` holds for all of the elements (SYCL 2020 `joint_all_of`). Of no elements it does. For the rest see
    /// [`joint_any`](Self::joint_any).
    #[inline(always)]
    #[track_caller]
    pub fn joint_all<T: DeviceCopyable>(&mut self, elements: &[T], predicate: impl Fn(T) -> bool) -> bool {
        !self.joint_any(elements, |element| !predicate(element))
    }

    /// Whether `predicate` holds for none of the elements (SYCL 2020 `joint_none_of`). Of no elements it does. For the rest see
    /// [`joint_any`](Self::joint_any).
    #[inline(always)]
    #[track_caller]
    pub fn joint_none<T: DeviceCopyable>(&mut self, elements: &[T], predicate: impl Fn(T) -> bool) -> bool {
        !self.joint_any(elements, predicate)
    }

    /// Puts into each of `len` results the elements up to its index, itself included (SYCL 2020 `joint_inclusive_scan`). All work-items of a sub-group
    /// give the same pointers and the same `len`; each sub-group may give others.
    ///
    /// Each piece of as many elements as the sub-group has work-items is scanned in the order of a [block](crate::group#the-order-of-operands). All pieces
    /// before it come first. The results are there for all work-items of the group behind the call.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = (Buffer::from_vec((1..=6u32).collect())?, Buffer::from_vec(vec![0; 6])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write));
    ///     cg.parallel_for_nd_range((6, Fixed1::<6>), Local::<u32, 6>::new(), move |mut item, tile| {
    ///         let all = numbers.view(item.global());
    ///         let all = all.as_slice();
    ///         let mut group = item.group();
    ///         let mut sub_group = group.sub_group::<4>();
    ///         // Four elements, and two.
    ///         let (first, len) = (4 * sub_group.id(), sub_group.size());
    ///         // SAFETY: elements of the sub-group in both memories. No other code writes the tile, and it is read behind the scan.
    ///         unsafe {
    ///             sub_group.joint_inclusive_scan(all.as_ptr().add(first), len, tile.as_ptr().add(first), Sum);
    ///             sums.set(item.global(), tile.get(item.local_linear_id()));
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(sums.to_vec()?, [1, 3, 6, 10, 5, 11]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// There are `len` elements and room for `len` results. Both are all the same, or have no element in common. No other code writes the elements or
    /// accesses the results from the last barrier until the call has ended for the whole group. Other code includes the scans of other sub-groups.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn joint_inclusive_scan<T, O>(&mut self, elements: *const T, len: usize, results: *mut T, operator: O)
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        // SAFETY: the contract is that of this function.
        unsafe { self.joint_scan(elements, len, results, operator, None) };
    }

    /// Puts into each of `len` results `first` and the elements before its index (SYCL 2020 `joint_exclusive_scan`). `first` is the same for all
    /// work-items of a sub-group, too. For the order of the rest see [`joint_inclusive_scan`](Self::joint_inclusive_scan).
    ///
    /// # Safety
    /// See [`joint_inclusive_scan`](Self::joint_inclusive_scan).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn joint_exclusive_scan<T, O>(
        &mut self,
        elements: *const T,
        len: usize,
        results: *mut T,
        first: T,
        operator: O,
    ) where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        // SAFETY: the contract is that of this function.
        unsafe { self.joint_scan(elements, len, results, operator, Some(first)) };
    }

    /// Scans piece by piece, with the element of the index itself if nothing comes before all of them.
    ///
    /// # Safety
    /// See [`joint_inclusive_scan`](Self::joint_inclusive_scan).
    #[inline(always)]
    #[track_caller]
    unsafe fn joint_scan<T, O>(
        &mut self,
        elements: *const T,
        len: usize,
        results: *mut T,
        operator: O,
        first: Option<T>,
    ) where
        T: DeviceCopyable + AnyBits,
        O: Operator<T> + 'wi,
    {
        let (lane, size) = (self.local_id(), self.size());
        let wanted = if first.is_some() { Wanted::Exclusive } else { Wanted::Inclusive };
        let mut rounds = self.group().reduce(len.div_ceil(size), Max);
        let (mut left, mut at) = (first, 0);
        while rounds > 0 {
            let n = size.min(len - at);
            // SAFETY: an element, and only its own work-item writes a result that is in its place.
            let value = if lane < n { unsafe { elements.add(at + lane).read() } } else { T::zeroed() };
            let scanned = self.scan_first(value, n, &operator, wanted);
            if lane < n {
                // Of an exclusive scan, nothing of the piece is before its first element.
                let own = if wanted == Wanted::Exclusive { scanned.before } else { Some(scanned.own) };
                let result = match (left, own) {
                    (Some(left), Some(own)) => operator.combine(left, own),
                    (Some(one), None) | (None, Some(one)) => one,
                    (None, None) => value,
                };
                // SAFETY: a result of its own.
                unsafe { results.add(at + lane).write(result) };
            }
            if n > 0 {
                left = Some(left.map_or(scanned.total, |left| operator.combine(left, scanned.total)));
            }
            at += n;
            rounds -= 1;
        }
        self.group().barrier();
    }

    /// The group, of the same kind as this.
    #[inline(always)]
    fn group(&mut self) -> NdGroup<'_, 'wi, 'cg, D, S, PROVED> {
        // SAFETY: proved, or promised when this was made.
        unsafe { NdGroup::new(&mut *self.item) }
    }

    /// Scans the values of the first `n` work-items of each sub-group, whose work-items all give the same `n`. Others get what is of no use, but for the
    /// total, which no values have either.
    #[inline(always)]
    #[track_caller]
    fn scan_first<T, O>(&mut self, value: T, n: usize, operator: &O, wanted: Wanted) -> Scanned<T>
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        prove::<PROVED>();
        if builtin::is_device_code() {
            return self.item.group.sub_groups::<W>().scan_first(value, n, operator, wanted);
        }
        let (items, own) = (self.item.group.items(), self.item.linear);
        let piece = Piece { value, before: None, total: value, n };
        // SAFETY: native code, where work-items that do not come are found.
        let memory = unsafe { self.item.exchange(piece, Location::caller()) };
        if memory.turn == HostTurn::Unwinds {
            return Scanned { own: value, before: None, total: value };
        }
        if memory.turn == HostTurn::First {
            let for_all = || {
                // SAFETY: the values of all work-items, none of which goes on before this one waits or ends.
                let pieces = unsafe { core::slice::from_raw_parts_mut(memory.first, items) };
                pieces.chunks_mut(W).for_each(|pieces| scan_pieces::<T, O, W>(pieces, operator, wanted));
            };
            // SAFETY: this is the first one.
            unsafe { self.item.lead().run(for_all) };
        }
        self.item.end_lead();
        // SAFETY: within the memory, where each work-item has left one.
        let piece = unsafe { memory.first.add(own).read() };
        Scanned { own: piece.value, before: piece.before, total: piece.total }
    }
}

/// Scans the values of a sub-group in native code. Its first work-item says how many count.
fn scan_pieces<T, O, const W: usize>(pieces: &mut [Piece<T>], operator: &O, wanted: Wanted)
where
    T: DeviceCopyable + AnyBits,
    O: Operator<T>,
{
    let n = pieces[0].n.min(pieces.len());
    if n == 0 {
        return;
    }
    let mut values = [pieces[0].value; W];
    values.iter_mut().zip(&pieces[..n]).for_each(|(value, piece)| *value = piece.value);
    let values = &mut values[..n];
    if wanted == Wanted::Total {
        fold_block(values, operator);
    } else {
        scan_block(values, operator);
    }
    let mut before = None;
    for (piece, value) in pieces.iter_mut().zip(&*values) {
        (piece.value, piece.before) = (*value, before);
        before = Some(*value);
    }
    let total = values[n - 1];
    pieces.iter_mut().for_each(|piece| piece.total = total);
}
