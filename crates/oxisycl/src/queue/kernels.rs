//! Shortcuts for command groups of one kernel: over work-groups without accessors, and with arguments.

use oxisycl_device::argument::{Call, Deconstruct, KernelArg, States, Value};
use oxisycl_device::group::nd::{NdArguments, NdExtent, NdItem};
use oxisycl_device::group::{Group, GroupArguments, Shape};
use oxisycl_device::{Captured, Item, Single};
use oxisycl_runtime::graph::forbid_blocking;
use oxisycl_types::Range;

use crate::{Event, Handler, Queue, Result};

impl Queue {
    /// Shortcut for a command group with one kernel over work-groups that uses no accessor.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Private};
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let event = Queue::default()?.parallel_for_work_group(2, Fixed1::<8>, Private::new(1), |mut group, own| {
    ///     let items = group.reduce(&own, Sum);
    ///     group.for_each((), move |item, ()| assert!(item.local_linear_id() < items));
    /// })?;
    /// event.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for_work_group<const D: usize, S, A, K>(
        &self,
        groups: impl Into<Range<D>>,
        shape: S,
        memory: A,
        kernel: K,
    ) -> Result<Event>
    where
        S: Shape<D>,
        A: GroupArguments,
        K: for<'wg, 'cg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.parallel_for_work_group(groups, shape, memory, kernel)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut for a command group with one kernel over an nd-range that uses no accessor.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let range = NdRange::new(Range::new([16]), Range::new([8]));
    /// let event = Queue::default()?.parallel_for_nd_range(range, (), |mut item, ()| {
    ///     let is_first = item.is_leader();
    ///     assert!(item.group().any(is_first));
    /// })?;
    /// event.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for_nd_range<const D: usize, R, A, K>(&self, range: R, memory: A, kernel: K) -> Result<Event>
    where
        R: NdExtent<D>,
        A: NdArguments,
        K: for<'wi, 'cg> Fn(NdItem<'wi, 'cg, D, R::Shape>, A::Accessors<'wi>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.parallel_for_nd_range(range, memory, kernel)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut for a command group with one kernel that gets `arguments`, such as buffers. See [`argument`](crate::argument).
    ///
    /// Errors: as those of [`Handler::parallel_for_with`] and of [`submit`](Self::submit).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (x, y) = (Buffer::from_vec(vec![1.0f32; 8])?, Buffer::from_vec(vec![2.0f32; 8])?);
    /// let queue = Queue::default()?;
    /// queue.parallel_for_with(8, (3.0f32, x.read(), y.update()), |item, (a, x, y)| y.update(item, |y| a * x.get(item) + y))?;
    /// assert_eq!(y.to_vec()?, [5.0; 8]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for_with<const D: usize, A, K>(
        &self,
        range: impl Into<Range<D>>,
        arguments: A,
        kernel: K,
    ) -> Result<Event>
    where
        A: KernelArg + for<'cg> Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Item<'k, D>, Value<'k, A>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.parallel_for_with(range, arguments, kernel)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut for a command group with one single task that gets `arguments`.
    ///
    /// Errors: as those of [`parallel_for_with`](Self::parallel_for_with).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sum) = (vec![1, 2, 3], Buffer::from_vec(vec![0])?);
    /// let arguments = (numbers, sum.write());
    /// Queue::default()?.single_task_with(arguments, |task, (numbers, sum)| sum.set_at(task, 0, numbers.iter().sum()))?;
    /// assert_eq!(sum.to_vec()?, [6]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn single_task_with<A, K>(&self, arguments: A, kernel: K) -> Result<Event>
    where
        A: KernelArg + for<'cg> Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Single<'k>, Value<'k, A>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.single_task_with(arguments, kernel)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut for a command group with one kernel over work-groups that gets `arguments`.
    ///
    /// Errors: as those of [`Handler::parallel_for_work_group_with`] and of [`submit`](Self::submit).
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // Turns each block of four numbers round.
    /// let numbers = Buffer::from_vec((0..8).collect())?;
    /// let (shape, tile) = (Fixed1::<4>, Local::<i32, 4>::new());
    /// Queue::default()?.parallel_for_work_group_with(2, shape, tile, numbers.update(), |mut group, mut tile, numbers| {
    ///     group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
    ///     group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[3 - item.local_linear_id()]));
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [3, 2, 1, 0, 7, 6, 5, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for_work_group_with<const D: usize, S, M, A, K>(
        &self,
        groups: impl Into<Range<D>>,
        shape: S,
        memory: M,
        arguments: A,
        kernel: K,
    ) -> Result<Event>
    where
        S: Shape<D>,
        M: GroupArguments,
        A: KernelArg + for<'cg> Deconstruct<Handler<'cg>>,
        K: for<'wg, 'cg> Fn(Group<'wg, 'cg, D, S>, M::Bound<'wg>, Value<'wg, A>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.parallel_for_work_group_with(groups, shape, memory, arguments, kernel)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut for a command group with one kernel over an nd-range that gets `arguments`.
    ///
    /// Errors: as those of [`Handler::parallel_for_nd_range_with`] and of [`submit`](Self::submit).
    ///
    /// ```
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = ((0..8).collect::<Vec<u32>>(), Buffer::from_vec(vec![0u32; 2])?);
    /// let range = NdRange::new(Range::new([8]), Range::new([4]));
    /// let arguments = (numbers, sums.atomic());
    /// Queue::default()?.parallel_for_nd_range_with(range, (), arguments, |mut item, (), (numbers, sums)| {
    ///     let own = numbers[item.global_linear_id()];
    ///     let sum = item.group().reduce(own, Sum);
    ///     if item.is_leader() {
    ///         sums.store(item.global(), item.group_id(), sum);
    ///     }
    /// })?;
    /// assert_eq!(sums.to_vec()?, [6, 22]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for_nd_range_with<const D: usize, R, M, A, K>(
        &self,
        range: R,
        memory: M,
        arguments: A,
        kernel: K,
    ) -> Result<Event>
    where
        R: NdExtent<D>,
        M: NdArguments,
        A: KernelArg + for<'cg> Deconstruct<Handler<'cg>>,
        K: for<'wi, 'cg> Fn(NdItem<'wi, 'cg, D, R::Shape>, M::Accessors<'wi>, Value<'wi, A>)
            + Captured
            + Send
            + Sync
            + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.parallel_for_nd_range_with(range, memory, arguments, kernel)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut for a command group with one call of a [kernel function](macro@crate::kernel).
    ///
    /// Errors: as those of [`parallel_for_with`](Self::parallel_for_with).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// #[kernel]
    /// fn scale(item: Item<1>, factors: &[f32], y: Accessor<f32, 1, ReadWrite>) {
    ///     y.update(item, |y| factors[item.index()] * y);
    /// }
    ///
    /// # fn main() -> oxisycl::Result {
    /// let y = Buffer::from_vec(vec![2.0; 3])?;
    /// Queue::default()?.launch_call(3, scale(vec![1.0, 2.0, 3.0], y.update()))?;
    /// assert_eq!(y.to_vec()?, [2.0, 4.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn launch_call<const D: usize, A, K, R: States>(
        &self,
        range: impl Into<Range<D>>,
        call: Call<A, K, R>,
    ) -> Result<Event>
    where
        A: KernelArg + for<'cg> Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Item<'k, D>, Value<'k, A>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.launch_call(range, call)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut for a command group with one call of a [kernel function](macro@crate::kernel) for a single task.
    ///
    /// Errors: as those of [`parallel_for_with`](Self::parallel_for_with).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// #[kernel]
    /// fn sum(task: Single, numbers: &[u32], sum: Accessor<u32, 1, Write>) {
    ///     sum.set_at(task, 0, numbers.iter().sum());
    /// }
    ///
    /// # fn main() -> oxisycl::Result {
    /// let result = Buffer::from_vec(vec![0])?;
    /// Queue::default()?.launch_single_call(sum(vec![1, 2, 3], result.write()))?;
    /// assert_eq!(result.to_vec()?, [6]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn launch_single_call<A, K, R: States>(&self, call: Call<A, K, R>) -> Result<Event>
    where
        A: KernelArg + for<'cg> Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Single<'k>, Value<'k, A>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.launch_single_call(call)?;
        handler.submit().map(Event::new)
    }
}
