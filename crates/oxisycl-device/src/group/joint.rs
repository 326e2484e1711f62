//! Algorithms of a group over elements of a tile or a slice (SYCL 2020 section 4.17.4, the joint forms), at group scope.

use super::blocks::{fold_of, scan};
use super::collective::Wanted;
use super::memory::Elements;
use super::scope::Group;
use super::shape::Shape;
use crate::advice::AnyBits;
use crate::operator::{BitOr, Operator};
use crate::{DeviceCopyable, builtin};

impl<'wg, 'cg: 'wg, const D: usize, S: Shape<D>> Group<'wg, 'cg, D, S> {
    /// `first` and the elements of a tile or a slice together (SYCL 2020 `joint_reduce`). The operator also has to be commutative. Each
    /// work-item combines the elements at its local linear id and at every further multiple of the group size; `first` comes before the
    /// first element. Their values follow in the [order](super#the-order-of-operands) of a reduction.
    #[inline(always)]
    #[track_caller]
    pub fn joint_reduce<T, M, O>(&mut self, elements: &M, first: T, operator: O) -> T
    where
        T: DeviceCopyable + AnyBits,
        M: JointElements<T> + ?Sized,
        O: Operator<T> + 'wg,
    {
        let (start, len, step) = (elements.start(), elements.count(), self.items());
        if len == 0 {
            return first;
        }
        let of_item = |item: usize| {
            // SAFETY: an element of memory that is borrowed.
            let mut value = unsafe { start.add(item).read() };
            if item == 0 {
                // Not behind the reduction: what each work-item computes for itself may differ.
                value = operator.combine(first, value);
            }
            let mut next = item + step;
            while next < len {
                // SAFETY: as above.
                value = operator.combine(value, unsafe { start.add(next).read() });
                next += step;
            }
            value
        };
        let items = step.min(len);
        if builtin::is_device_code() {
            let own = self.local_linear_id();
            // Work-items without elements are behind all others.
            let value = if own < items { of_item(own) } else { T::zeroed() };
            return self.scan_first(value, items, &operator, Wanted::Total).total;
        }
        fold_of(items, of_item, &operator)
    }

    /// Whether `predicate` holds for an element of a tile or a slice (SYCL 2020 `joint_any_of`). Of no elements it does not.
    ///
    /// ```
    /// use oxisycl::group::Fixed1;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, found) = (Buffer::from_vec((1..9).collect())?, Buffer::from_vec(vec![[false; 3]; 4])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, found) = (cg.access(&numbers, Read), cg.access(&found, Write));
    ///     cg.parallel_for_work_group(1, Fixed1::<4>, (), move |mut group, ()| {
    ///         let view = numbers.view(group.uniform());
    ///         let is_odd = |number: i32| number % 2 == 1;
    ///         let all = view.as_slice();
    ///         let odd = [group.joint_any(all, is_odd), group.joint_all(all, is_odd), group.joint_none(all, is_odd)];
    ///         group.for_each((), move |item, ()| found.set(item.global(), odd));
    ///     })
    /// })?;
    /// assert_eq!(found.to_vec()?, [[true, false, false]; 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn joint_any<T, M, P>(&mut self, elements: &M, predicate: P) -> bool
    where
        T: DeviceCopyable + AnyBits,
        M: JointElements<T> + ?Sized,
        P: Fn(T) -> bool + Copy + Send + Sync + 'wg,
    {
        let (start, len) = (elements.start(), elements.count());
        let holds = |first: usize, step: usize| {
            let (mut next, mut any) = (first, false);
            while next < len {
                // SAFETY: an element of memory that is borrowed.
                any |= predicate(unsafe { start.add(next).read() });
                next += step;
            }
            any
        };
        if builtin::is_device_code() {
            let items = self.items();
            let own = u32::from(holds(self.local_linear_id(), items));
            return self.scan_first(own, items, &BitOr, Wanted::Total).total != 0;
        }
        holds(0, 1)
    }

    /// Whether `predicate` holds for all elements of a tile or a slice (SYCL 2020 `joint_all_of`). Of no elements it does.
    #[inline(always)]
    #[track_caller]
    pub fn joint_all<T, M, P>(&mut self, elements: &M, predicate: P) -> bool
    where
        T: DeviceCopyable + AnyBits,
        M: JointElements<T> + ?Sized,
        P: Fn(T) -> bool + Copy + Send + Sync + 'wg,
    {
        !self.joint_any(elements, move |element| !predicate(element))
    }

    /// Whether `predicate` holds for no element of a tile or a slice (SYCL 2020 `joint_none_of`). Of no elements it does.
    #[inline(always)]
    #[track_caller]
    pub fn joint_none<T, M, P>(&mut self, elements: &M, predicate: P) -> bool
    where
        T: DeviceCopyable + AnyBits,
        M: JointElements<T> + ?Sized,
        P: Fn(T) -> bool + Copy + Send + Sync + 'wg,
    {
        !self.joint_any(elements, predicate)
    }

    /// Puts into each of `results` the elements of a tile or a slice up to its index, itself included (SYCL 2020 `joint_inclusive_scan`).
    ///
    /// Each piece of as many elements as the group has work-items is scanned in the [order](super#the-order-of-operands) of private values. All pieces
    /// before it come first.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local, Shares};
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = (Buffer::from_vec((1..9).collect())?, Buffer::from_vec(vec![0u32; 8])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Atomic));
    ///     cg.parallel_for_work_group(1, Fixed1::<3>, Local::<u32, 8>::new(), move |mut group, mut tile| {
    ///         group.joint_inclusive_scan(numbers.view(group.uniform()).as_slice(), &mut tile, Sum);
    ///         group.for_each(Shares(&mut tile), move |item, share| {
    ///             share.for_each(|(index, sum)| sums.store(item, index, *sum));
    ///         });
    ///     })
    /// })?;
    /// assert_eq!(sums.to_vec()?, [1, 3, 6, 10, 15, 21, 28, 36]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If there are fewer results than elements. What is behind them stays as it is.
    #[inline(always)]
    #[track_caller]
    pub fn joint_inclusive_scan<T, M, R, O>(&mut self, elements: &M, results: &mut R, operator: O)
    where
        T: DeviceCopyable + AnyBits,
        M: JointElements<T> + ?Sized,
        R: Elements<Element = T>,
        O: Operator<T> + 'wg,
    {
        self.joint_scan(
            elements,
            results,
            &operator,
            Wanted::Inclusive,
            |left, value, _| match left {
                Some(left) => operator.combine(left, value),
                None => value,
            },
            None,
        );
    }

    /// Puts into each of `results` first `first` and then the elements of a tile or a slice before its index (SYCL 2020 `joint_exclusive_scan`).
    ///
    /// Pieces are scanned, and come one after the other, as in [`joint_inclusive_scan`](Self::joint_inclusive_scan).
    ///
    /// # Panics
    /// If there are fewer results than elements.
    #[inline(always)]
    #[track_caller]
    pub fn joint_exclusive_scan<T, M, R, O>(&mut self, elements: &M, results: &mut R, first: T, operator: O)
    where
        T: DeviceCopyable + AnyBits,
        M: JointElements<T> + ?Sized,
        R: Elements<Element = T>,
        O: Operator<T> + 'wg,
    {
        self.joint_scan(
            elements,
            results,
            &operator,
            Wanted::Exclusive,
            |left, _, before| {
                let left = left.unwrap_or(first);
                before.map_or(left, |before| operator.combine(left, before))
            },
            Some(first),
        );
    }

    /// Scans piece by piece. `result` gets what is before the piece, the value of the inclusive scan of the piece, and the one before it.
    #[inline(always)]
    #[track_caller]
    fn joint_scan<T, M, R, O>(
        &mut self,
        elements: &M,
        results: &mut R,
        operator: &O,
        wanted: Wanted,
        result: impl Fn(Option<T>, T, Option<T>) -> T,
        first: Option<T>,
    ) where
        T: DeviceCopyable + AnyBits,
        M: JointElements<T> + ?Sized,
        R: Elements<Element = T>,
        O: Operator<T>,
    {
        let (start, len, items) = (elements.start(), elements.count(), self.items());
        let into = results.first();
        assert!(len <= results.len(), "{} results of a scan of {len} elements", results.len());
        let mut left = first;
        let mut at = 0;
        while at < len {
            let n = items.min(len - at);
            let total;
            if builtin::is_device_code() {
                let own = self.local_linear_id();
                // SAFETY: an element of memory that is borrowed.
                let value = if own < n { unsafe { start.add(at + own).read() } } else { T::zeroed() };
                let scanned = self.scan_first(value, n, operator, wanted);
                if own < n {
                    // SAFETY: a result of its own.
                    unsafe { into.add(at + own).write(result(left, scanned.own, scanned.before)) };
                }
                total = scanned.total;
            } else {
                // SAFETY: native code: as many elements, and as many results, which are borrowed.
                let piece = unsafe {
                    core::ptr::copy_nonoverlapping(start.add(at), into.add(at), n);
                    core::slice::from_raw_parts_mut(into.add(at), n)
                };
                total = scan(piece, operator);
                let mut before = None;
                for place in piece {
                    let own = *place;
                    *place = result(left, own, before);
                    before = Some(own);
                }
            }
            left = Some(left.map_or(total, |left| operator.combine(left, total)));
            at += n;
        }
        if builtin::is_device_code() {
            // SAFETY: group scope takes the same way in all work-items.
            unsafe { builtin::group_barrier() };
        }
    }
}

/// Elements that all work-items of a group may read: those of a [`Tile`](super::Tile), a [`TileSlice`](super::TileSlice), and a slice of a view. Implemented
/// by this crate only.
///
/// # Safety
/// The elements are valid, and nothing writes them while this is borrowed at group scope.
pub unsafe trait JointElements<T> {
    /// The first one.
    #[doc(hidden)]
    fn start(&self) -> *const T;
    /// How many there are.
    #[doc(hidden)]
    fn count(&self) -> usize;
}

// SAFETY: the slice is borrowed.
unsafe impl<T> JointElements<T> for [T] {
    #[inline(always)]
    fn start(&self) -> *const T {
        self.as_ptr()
    }
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }
}

// SAFETY: a tile is written by phases only, which borrow it.
unsafe impl<M: Elements> JointElements<M::Element> for M {
    #[inline(always)]
    fn start(&self) -> *const M::Element {
        self.first()
    }
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }
}
