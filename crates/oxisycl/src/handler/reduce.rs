//! Reductions as commands (SYCL 2020 section 4.9.2).
//!
//! A reduction is one command of one or more launches, each of which reduces what the one before has left, until one group can finish. The tree is that
//! of [`oxisycl_device::group::reduction`]. Over a range, the first launch reduces what its own work-items give. Over groups and nd-ranges, whose
//! work-items meet as the user says, it only keeps what they give.

use std::panic::Location;

use oxisycl_device::group::nd::{NdArguments, NdExtent, NdItem};
use oxisycl_device::group::reduction::{self, ITEMS, Partials, Reductions, TILE};
use oxisycl_device::group::{Fixed1, Group, GroupArguments, Shape};
use oxisycl_device::{Captured, Item};
use oxisycl_types::{ErrorCode, Range};

use super::Handler;
use crate::{BackendKind, Buffer, Error, Result, Write};

impl<'cg> Handler<'cg> {
    /// Runs `kernel` once for each id of `range`, and combines what work-items give to their reducers (SYCL 2020 section 4.9.2).
    ///
    /// `into` is a [`reduction`](crate::reduction::reduction), or a tuple of up to six. The kernel gets a `&mut Reducer` for each. Operators have to be associative and
    /// commutative. The result is made by one fixed [tree](crate::reduction), so that it is the same on every device if the values are.
    ///
    /// Errors: as those of [`parallel_for`](Self::parallel_for). `Invalid` if a target has not one element, or a span not as many as it says.
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

    /// Runs a reduction over a range, for a launch that the user wrote at `location`.
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

    /// Runs `kernel` once for each work-item of an nd-range, as [`parallel_for_nd_range`](Self::parallel_for_nd_range) does, and combines what work-items
    /// give to their reducers, as [`parallel_reduce`](Self::parallel_reduce) does. The elements of the tree are the work-items, by their global linear ids.
    ///
    /// Errors: as those of both.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::operator::Max;
    /// use oxisycl::prelude::*;
    /// use oxisycl::reduction::reduction;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // The largest step between neighbours of a block.
    /// let numbers = Buffer::from_vec(vec![3i32, 4, 9, 1, 1, 2, 8, 5])?;
    /// let step = Buffer::from_vec(vec![0i32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, Read);
    ///     let into = reduction(cg.access(&step, Write), Max);
    ///     cg.parallel_reduce_nd_range((8, Fixed1::<4>), Local::<i32, 4>::new(), into, move |mut item, tile, step| {
    ///         let own = item.local_linear_id();
    ///         // SAFETY: each work-item writes its own element before the barrier, and all only read behind it.
    ///         unsafe {
    ///             tile.set(own, numbers.get(item.global()));
    ///             item.group().barrier();
    ///             step.combine((tile.get(own) - tile.get((own + 1) % 4)).abs());
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(step.to_vec()?, [8]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_reduce_nd_range<const D: usize, E, A, R, K>(
        &mut self,
        range: E,
        memory: A,
        into: R,
        kernel: K,
    ) -> Result
    where
        E: NdExtent<D>,
        A: NdArguments,
        R: Reductions + 'cg,
        K: for<'wi, 'r> Fn(NdItem<'wi, 'cg, D, E::Shape>, A::Accessors<'wi>, R::Reducers<'r>)
            + Captured
            + Send
            + Sync
            + 'cg,
    {
        let location = Location::caller();
        let parts = range.parts();
        self.command("a kernel", |handler| {
            handler.push_items_reduction::<D, E::Shape, A, R, K>(parts, memory, into, kernel, location)
        })
    }

    /// Runs `kernel` once for each of `groups` work-groups, as [`parallel_for_work_group`](Self::parallel_for_work_group) does, and combines what they give to
    /// their reducers at group scope, as [`parallel_reduce`](Self::parallel_reduce) does. The elements of the tree are the groups, by their linear ids.
    ///
    /// Errors: as those of both.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Private};
    /// use oxisycl::operator::{Max, Sum};
    /// use oxisycl::prelude::*;
    /// use oxisycl::reduction::reduction;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // The largest sum of a block.
    /// let numbers = Buffer::from_vec(vec![3u32, 4, 9, 1, 1, 2, 8, 5])?;
    /// let largest = Buffer::from_vec(vec![0u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, Read);
    ///     let into = reduction(cg.access(&largest, Write), Max);
    ///     cg.parallel_reduce_work_group(2, Fixed1::<4>, Private::new(0), into, move |mut group, mut own, largest| {
    ///         group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()));
    ///         largest.combine(group.reduce(&own, Sum));
    ///     })
    /// })?;
    /// assert_eq!(largest.to_vec()?, [17]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_reduce_work_group<const D: usize, S, A, R, K>(
        &mut self,
        groups: impl Into<Range<D>>,
        shape: S,
        memory: A,
        into: R,
        kernel: K,
    ) -> Result
    where
        S: Shape<D>,
        A: GroupArguments,
        R: Reductions + 'cg,
        K: for<'wg, 'r> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>, R::Reducers<'r>) + Captured + Send + Sync + 'cg,
    {
        let location = Location::caller();
        self.command("a kernel", |handler| {
            handler.push_groups_reduction::<D, S, A, R, K>((groups.into(), shape), memory, into, kernel, location)
        })
    }

    fn push_items_reduction<const D: usize, S, A, R, K>(
        &mut self,
        (global, shape): (Range<D>, S),
        memory: A,
        into: R,
        kernel: K,
        location: &'static Location<'static>,
    ) -> Result
    where
        S: Shape<D>,
        A: NdArguments,
        R: Reductions + 'cg,
        K: for<'wi, 'r> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>, R::Reducers<'r>) + Captured + Send + Sync + 'cg,
    {
        self.push_given::<D, R, K>(global, into, location, |handler, given| {
            // SAFETY: there is a place for each work-item of the range.
            let run = unsafe { giving_items::<D, S, A, R, K>(given, into, kernel) };
            handler.push_nd_range::<D, S, A, _>((global, shape), memory, run, location)
        })
    }

    fn push_groups_reduction<const D: usize, S, A, R, K>(
        &mut self,
        (groups, shape): (Range<D>, S),
        memory: A,
        into: R,
        kernel: K,
        location: &'static Location<'static>,
    ) -> Result
    where
        S: Shape<D>,
        A: GroupArguments,
        R: Reductions + 'cg,
        K: for<'wg, 'r> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>, R::Reducers<'r>) + Captured + Send + Sync + 'cg,
    {
        self.push_given::<D, R, K>(groups, into, location, |handler, given| {
            // SAFETY: there is a place for each group.
            let run = unsafe { giving_groups::<D, S, A, R, K>(given, into, kernel) };
            handler.push_work_group(groups, shape, memory, run, D as u8, location)
        })
    }

    /// Adds a launch that keeps what each element of `range` gives, which `push` does, and the launches that reduce that.
    fn push_given<const D: usize, R: Reductions + 'cg, K>(
        &mut self,
        range: Range<D>,
        into: R,
        location: &'static Location<'static>,
        push: impl FnOnce(&mut Self, Partials<'cg, R::Value>) -> Result,
    ) -> Result {
        self.name_reduction::<K>();
        let n = self.check_reduction(range, &into)?;
        let tiles_of_group = self.tiles_of_group(reduction::are_by_group::<R::Value>());
        let given = self.partials::<R>(n.saturating_add(launches(n, tiles_of_group, tiles_of_group).sum()))?;
        push(self, given)?;
        self.push_tree(n, given, into, location)
    }

    pub(super) fn push_reduction<const D: usize, R, K>(
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
        self.name_reduction::<K>();
        let n = self.check_reduction(range, &into)?;
        let tiles_of_group = self.tiles_of_group(reduction::is_by_group::<R::Value>());
        let tiles_of_later = self.tiles_of_group(reduction::are_by_group::<R::Value>());
        let first = self.partials::<R>(launches(n, tiles_of_group, tiles_of_later).sum())?;
        let Range(extent) = range;
        self.push_work_group(
            Range([reduction::groups(n, tiles_of_group)]),
            Fixed1::<ITEMS>,
            (),
            // SAFETY: the launch has as many groups; there is a value for each of its tiles.
            move |group: Group<'_, 'cg, 1, Fixed1<ITEMS>>, ()| unsafe {
                reduction::reduce_range(group, extent, kernel, &into, first);
            },
            // A work-item of the launch is none of the range.
            0,
            location,
        )?;
        let n = n.div_ceil(TILE);
        if n > tiles_of_group { self.push_tree(n, first, into, location) } else { Ok(()) }
    }

    /// All launches of a reduction have the name of its kernel.
    pub(super) fn name_reduction<K>(&mut self) {
        let name = oxisycl_image::user_name(std::any::type_name::<K>());
        self.name.get_or_insert(name.trim_end_matches("::{{closure}}"));
    }

    /// How many elements are reduced.
    fn check_reduction<const D: usize, R: Reductions>(&self, range: Range<D>, into: &R) -> Result<usize> {
        let refuse = |code, what: String| {
            let (name, device) = (self.name.unwrap_or_default(), self.queue.device().name());
            Err(Error::new(code, format!("kernel \"{name}\" on device \"{device}\": {what}")))
        };
        if let Some((elements, expected)) = into.wrong_size() {
            let what = format!("the target of a reduction has {elements} elements, and must have {expected}");
            return refuse(ErrorCode::Invalid, what);
        }
        match range.checked_size().filter(|n| isize::try_from(*n).is_ok()) {
            Some(n) => Ok(n),
            None => {
                refuse(ErrorCode::NdRange, format!("the range {:?} has more work-items than can be counted", range.0))
            }
        }
    }

    /// How many tiles a group reduces. It is one where all of its work-items load it together, in code for the processors of GPUs.
    fn tiles_of_group(&self, is_by_group: bool) -> usize {
        let has_shuffles = self.queue.device().backend() == BackendKind::Cuda;
        if has_shuffles && is_by_group { 1 } else { reduction::TILES }
    }

    /// Memory for so many values that the launches of a reduction leave.
    fn partials<R: Reductions>(&mut self, n_values: usize) -> Result<Partials<'cg, R::Value>> {
        let memory = Buffer::<R::Value, 1>::uninit(n_values.max(1))?;
        let memory = self.access(&memory, Write.no_init());
        self.group.is_chain = true;
        Ok(Partials { memory, first: 0 })
    }

    /// Adds the launches that reduce the `n` values that the launch before leaves in `source`. The sums of their tiles come behind those.
    fn push_tree<R: Reductions + 'cg>(
        &mut self,
        n: usize,
        mut source: Partials<'cg, R::Value>,
        into: R,
        location: &'static Location<'static>,
    ) -> Result {
        let mut n = n;
        let tiles_of_group = self.tiles_of_group(reduction::are_by_group::<R::Value>());
        for tiles in launches(n, tiles_of_group, tiles_of_group) {
            let target = Partials { first: source.first + n, ..source };
            let (n_values, values) = (n, source);
            self.push_work_group(
                Range([reduction::groups(n, tiles_of_group)]),
                Fixed1::<ITEMS>,
                (),
                // SAFETY: the launch has as many groups, and a value for each of its tiles. Launches of a chain follow each other.
                move |group: Group<'_, 'cg, 1, Fixed1<ITEMS>>, ()| unsafe {
                    reduction::reduce_partials(group, n_values, values, &into, target);
                },
                0,
                location,
            )?;
            (n, source) = (tiles, target);
        }
        Ok(())
    }
}

/// A kernel over an nd-range that keeps what its work-items give.
///
/// # Safety
/// `given` has a place for each work-item of the launch.
unsafe fn giving_items<'cg, const D: usize, S, A, R, K>(
    given: Partials<'cg, R::Value>,
    into: R,
    kernel: K,
) -> impl for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>) + Copy + Send + Sync
where
    S: Shape<D>,
    A: NdArguments,
    R: Reductions + 'cg,
    K: for<'wi, 'r> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>, R::Reducers<'r>) + Captured + Send + Sync + 'cg,
{
    move |item: NdItem<'_, 'cg, D, S>, memory: A::Accessors<'_>| {
        let place = item.global_linear_id();
        // SAFETY: by the contract of this function.
        unsafe { reduction::give(&into, given, place, |reducers| kernel(item, memory, reducers)) };
    }
}

/// A kernel over groups that keeps what they give.
///
/// # Safety
/// `given` has a place for each group of the launch.
unsafe fn giving_groups<'cg, const D: usize, S, A, R, K>(
    given: Partials<'cg, R::Value>,
    into: R,
    kernel: K,
) -> impl for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Copy + Send + Sync
where
    S: Shape<D>,
    A: GroupArguments,
    R: Reductions + 'cg,
    K: for<'wg, 'r> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>, R::Reducers<'r>) + Captured + Send + Sync + 'cg,
{
    move |group: Group<'_, 'cg, D, S>, memory: A::Bound<'_>| {
        // SAFETY: by the contract of this function.
        unsafe { reduction::give_of_group(&into, given, group, |group, reducers| kernel(group, memory, reducers)) };
    }
}

/// The tiles of each launch of a reduction of `n` elements. A group of the first launch, and one of a later launch, can finish so many of them.
fn launches(n: usize, tiles_of_first: usize, tiles_of_later: usize) -> impl Iterator<Item = usize> {
    let mut tiles_of_group = tiles_of_first;
    std::iter::successors(Some(n.div_ceil(TILE)), move |tiles| {
        let is_last = *tiles <= tiles_of_group;
        tiles_of_group = tiles_of_later;
        (!is_last).then(|| tiles.div_ceil(TILE))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_go_on_until_one_group_can_finish() {
        let of = |n: usize| launches(n, 8, 8).collect::<Vec<_>>();
        assert_eq!(of(0), [0]);
        assert_eq!(of(1), [1]);
        assert_eq!(of(8 * TILE), [8]);
        assert_eq!(of(8 * TILE + 1), [9, 1]);
        assert_eq!(of(1 << 27), [1 << 15, 8]);
        assert_eq!(of((1 << 27) + 1), [(1 << 15) + 1, 9, 1]);
        let of = |n: usize| launches(n, 1, 1).collect::<Vec<_>>();
        assert_eq!(of(0), [0]);
        assert_eq!(of(TILE), [1]);
        assert_eq!(of(TILE + 1), [2, 1]);
        assert_eq!(of(1 << 27), [1 << 15, 8, 1]);
        // Large elements on GPUs: work-items of a group share a tile from the second launch on.
        let of = |n: usize| launches(n, 8, 1).collect::<Vec<_>>();
        assert_eq!(of(0), [0]);
        assert_eq!(of(8 * TILE), [8]);
        assert_eq!(of(8 * TILE + 1), [9, 1]);
        assert_eq!(of(1 << 27), [1 << 15, 8, 1]);
    }
}
