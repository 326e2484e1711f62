//! Reductions as commands (SYCL 2020 section 4.9.2).
//!
//! A reduction is one command of one or more launches, each of which reduces what the one before has left, until one group can finish. The tree is that
//! of [`oxisycl_device::group::reduction`].

use std::panic::Location;

use oxisycl_device::group::reduction::{self, ITEMS, Partials, Reductions, TILE};
use oxisycl_device::group::{Fixed1, Group};
use oxisycl_device::{Captured, Item};
use oxisycl_types::{ErrorCode, Range};

use super::Handler;
use crate::{Buffer, Error, Result, Write};

impl<'cg> Handler<'cg> {
    /// Runs `kernel` once for each id of `range`, and combines what work-items give to their reducers (SYCL 2020 section 4.9.2).
    ///
    /// `into` is a [`reduction`](crate::reduction::reduction), or a tuple of up to six. The kernel gets a `&mut Reducer` for each. Operators have to be associative and
    /// commutative. The result is made by one fixed [tree](crate::reduction), so that it is the same on every device if the values are.
    ///
    /// Errors: as those of [`parallel_for`](Self::parallel_for). `Invalid` if a target has not one element.
    ///
    /// ```
    /// use oxisycl::operator::{Max, Sum};
    /// use oxisycl::prelude::*;
    /// use oxisycl::reduction::reduction;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec((0..1000u64).collect())?;
    /// let (sum, largest) = (Buffer::from_vec(vec![0u64])?, Buffer::from_vec(vec![0u64])?);
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, Read);
    ///     let sum = reduction(cg.access(&sum, Write), Sum);
    ///     let largest = reduction(cg.access(&largest, Write), Max);
    ///     cg.parallel_reduce(1000, (sum, largest), move |item, (sum, largest)| {
    ///         *sum += numbers.get(item);
    ///         largest.combine(numbers.get(item));
    ///     })
    /// })?;
    /// assert_eq!((sum.to_vec()?[0], largest.to_vec()?[0]), (499_500, 999));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_reduce<const D: usize, R, K>(&mut self, range: impl Into<Range<D>>, into: R, kernel: K) -> Result
    where
        R: Reductions + 'cg,
        K: for<'wi> Fn(Item<'wi, D>, R::Reducers<'wi>) + Captured + Send + Sync + 'cg,
    {
        self.reduce_at(range.into(), into, Location::caller(), kernel)
    }

    /// As [`parallel_reduce`](Self::parallel_reduce), for a launch that the user wrote at `location`.
    pub(crate) fn reduce_at<const D: usize, R, K>(
        &mut self,
        range: Range<D>,
        into: R,
        location: &'static Location<'static>,
        kernel: K,
    ) -> Result
    where
        R: Reductions + 'cg,
        K: for<'wi> Fn(Item<'wi, D>, R::Reducers<'wi>) + Captured + Send + Sync + 'cg,
    {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        self.command("a kernel", |handler| handler.push_reduction(range, into, kernel, location))
    }

    fn push_reduction<const D: usize, R, K>(
        &mut self,
        range: Range<D>,
        into: R,
        kernel: K,
        location: &'static Location<'static>,
    ) -> Result
    where
        R: Reductions + 'cg,
        K: for<'wi> Fn(Item<'wi, D>, R::Reducers<'wi>) + Captured + Send + Sync + 'cg,
    {
        let name = *self
            .name
            .get_or_insert(oxisycl_image::user_name(std::any::type_name::<K>()).trim_end_matches("::{{closure}}"));
        let refuse = |code, what: String| {
            let device = self.queue.device().name();
            Err(Error::new(code, format!("kernel \"{name}\" on device \"{device}\": {what}")))
        };
        if let Some(elements) = into.wrong_size() {
            let what = format!("the target of a reduction has {elements} elements, and must have 1");
            return refuse(ErrorCode::Invalid, what);
        }
        let Some(n) = range.checked_size().filter(|n| isize::try_from(*n).is_ok()) else {
            return refuse(
                ErrorCode::NdRange,
                format!("the range {:?} has more work-items than can be counted", range.0),
            );
        };
        let tiles: Vec<usize> = launches(n).collect();
        let memory = Buffer::<R::Value, 1>::uninit(tiles.iter().sum::<usize>().max(1))?;
        let memory = self.access(&memory, Write.no_init());
        let Range(extent) = range;
        let first = Partials { memory, first: 0 };
        self.group.is_chain = true;
        self.push_work_group(
            Range([reduction::groups(n)]),
            Fixed1::<ITEMS>,
            (),
            // SAFETY: the launch has as many groups; `memory` has a value for each of its tiles.
            move |group: Group<'_, 'cg, 1, Fixed1<ITEMS>>, ()| unsafe {
                reduction::reduce_range(group, extent, kernel, &into, first);
            },
            // A work-item of the launch is none of the range.
            0,
            location,
        )?;
        let mut source = first;
        for n in tiles.iter().copied().take_while(|tiles| *tiles > reduction::TILES) {
            let target = Partials { memory, first: source.first + n };
            self.push_work_group(
                Range([reduction::groups(n)]),
                Fixed1::<ITEMS>,
                (),
                // SAFETY: as above. Launches of a chain follow each other.
                move |group: Group<'_, 'cg, 1, Fixed1<ITEMS>>, ()| unsafe {
                    reduction::reduce_partials(group, n, source, &into, target);
                },
                0,
                location,
            )?;
            source = target;
        }
        Ok(())
    }
}

/// The tiles of each launch of a reduction of `n` elements.
fn launches(n: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(n.div_ceil(TILE)), |tiles| (*tiles > reduction::TILES).then(|| tiles.div_ceil(TILE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_go_on_until_one_group_can_finish() {
        let of = |n: usize| launches(n).collect::<Vec<_>>();
        assert_eq!(of(0), [0]);
        assert_eq!(of(1), [1]);
        assert_eq!(of(8 * TILE), [8]);
        assert_eq!(of(8 * TILE + 1), [9, 1]);
        assert_eq!(of(1 << 27), [1 << 15, 8]);
        assert_eq!(of((1 << 27) + 1), [(1 << 15) + 1, 9, 1]);
    }
}
