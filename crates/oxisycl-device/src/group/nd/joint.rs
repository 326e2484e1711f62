//! Algorithms of a group over elements of memory, on work-items of an nd-range (SYCL 2020 section 4.17.4, the joint forms).
//!
//! Results have the bits of those at group scope. Each work-item combines what is its own first, and the group's algorithms do the rest.

use super::NdGroup;
use crate::advice::AnyBits;
use crate::group::collective::Wanted;
use crate::group::shape::Shape;
use crate::operator::Operator;
use crate::{DeviceCopyable, builtin};

impl<'wi, 'cg: 'wi, const D: usize, S: Shape<D>, const PROVED: bool> NdGroup<'_, 'wi, 'cg, D, S, PROVED> {
    /// A number that all work-items have to have in common, since it says how often they meet.
    #[inline(always)]
    fn in_common(number: usize) -> usize {
        if PROVED { builtin::prove_uniform(number as u64) as usize } else { number }
    }

    /// `first` and the elements together (SYCL 2020 `joint_reduce`). All work-items give the same elements and the same `first`. The operator also has
    /// to be commutative. Each work-item combines the elements at its local linear id and at every further multiple of the group size; `first` comes
    /// before the first element. Their values follow in the [order](crate::group#the-order-of-operands) of a reduction.
    ///
    /// ```
    /// use oxisycl::group::Fixed1;
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = (Buffer::from_vec((1..=100u32).collect())?, Buffer::from_vec(vec![0; 8])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write));
    ///     cg.parallel_for_nd_range((8, Fixed1::<8>), (), move |mut item, ()| {
    ///         let all = numbers.view(item.global());
    ///         sums.set(item.global(), item.group().joint_reduce(all.as_slice(), 7, Sum));
    ///     })
    /// })?;
    /// assert_eq!(sums.to_vec()?, [5057; 8]);
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
        let (own, items, len) = (self.item.linear, self.item.group.items(), Self::in_common(elements.len()));
        if len == 0 {
            return first;
        }
        let n = items.min(len);
        // Work-items without elements are behind all others.
        let mut value = elements.get(own).copied().unwrap_or(T::zeroed());
        if own == 0 {
            value = operator.combine(first, value);
        }
        let mut next = own + items;
        while let Some(element) = elements.get(next) {
            value = operator.combine(value, *element);
            next += items;
        }
        self.run(value, |group, values| group.scan_some(values, n, &operator, Wanted::Total)).1
    }

    /// Whether `predicate` holds for one of the elements (SYCL 2020 `joint_any_of`). Of no elements it does not. All work-items give the same elements and
    /// the same predicate, which is asked once for each element.
    #[inline(always)]
    #[track_caller]
    pub fn joint_any<T: DeviceCopyable>(&mut self, elements: &[T], predicate: impl Fn(T) -> bool) -> bool {
        let (mut next, mut found) = (self.item.linear, false);
        while let Some(element) = elements.get(next) {
            found |= predicate(*element);
            next += self.item.group.items();
        }
        self.any(found)
    }

    /// Whether `predicate` holds for all of the elements (SYCL 2020 `joint_all_of`). Of no elements it does. Otherwise it is as
    /// [`joint_any`](Self::joint_any).
    #[inline(always)]
    #[track_caller]
    pub fn joint_all<T: DeviceCopyable>(&mut self, elements: &[T], predicate: impl Fn(T) -> bool) -> bool {
        !self.joint_any(elements, |element| !predicate(element))
    }

    /// Whether `predicate` holds for none of the elements (SYCL 2020 `joint_none_of`). Of no elements it does. Otherwise it is as
    /// [`joint_any`](Self::joint_any).
    #[inline(always)]
    #[track_caller]
    pub fn joint_none<T: DeviceCopyable>(&mut self, elements: &[T], predicate: impl Fn(T) -> bool) -> bool {
        !self.joint_any(elements, predicate)
    }

    /// Puts into each of `len` results the elements up to its index, itself included (SYCL 2020 `joint_inclusive_scan`). All work-items give the same
    /// pointers and the same `len`.
    ///
    /// Each piece of as many elements as the group has work-items is scanned in the [order](crate::group#the-order-of-operands) of a scan. All pieces
    /// before it come first. The results are there for all work-items behind the call.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = (Buffer::from_vec((1..=6u32).collect())?, Buffer::from_vec(vec![0; 3])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write));
    ///     cg.parallel_for_nd_range((3, Fixed1::<3>), Local::<u32, 6>::new(), move |mut item, tile| {
    ///         let all = numbers.view(item.global());
    ///         let all = all.as_slice();
    ///         // SAFETY: the tile has room for all sums, no other code writes it, and it is read behind the scan.
    ///         unsafe {
    ///             item.group().joint_inclusive_scan(all.as_ptr(), 6, tile.as_ptr(), Sum);
    ///             sums.set(item.global(), tile.get(2 * item.local_linear_id() + 1));
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(sums.to_vec()?, [3, 10, 21]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// There are `len` elements and room for `len` results. Both are all the same, or have no element in common. No other code writes the elements or
    /// accesses the results from the last barrier until the call has ended for all work-items.
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
    /// work-items, too. For the order of the rest see [`joint_inclusive_scan`](Self::joint_inclusive_scan).
    ///
    /// # Safety
    /// As for [`joint_inclusive_scan`](Self::joint_inclusive_scan).
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
    /// As for [`joint_inclusive_scan`](Self::joint_inclusive_scan).
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
        let (own, items, len) = (self.item.linear, self.item.group.items(), Self::in_common(len));
        let wanted = if first.is_some() { Wanted::Exclusive } else { Wanted::Inclusive };
        let mut left = first;
        let mut at = 0;
        while at < len {
            let n = items.min(len - at);
            // SAFETY: an element, and only its own work-item writes a result that is in its place.
            let value = if own < n { unsafe { elements.add(at + own).read() } } else { T::zeroed() };
            let (scanned, total) = self.run(value, |group, values| group.scan_some(values, n, &operator, wanted));
            if own < n {
                let result = match left {
                    // Nothing of the piece is before its first element.
                    Some(left) if wanted == Wanted::Exclusive && own == 0 => left,
                    Some(left) => operator.combine(left, scanned),
                    None => scanned,
                };
                // SAFETY: a result of its own.
                unsafe { results.add(at + own).write(result) };
            }
            left = Some(left.map_or(total, |left| operator.combine(left, total)));
            at += n;
        }
        self.barrier();
    }
}
