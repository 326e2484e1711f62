//! Shortcuts for command groups of one kernel that uses no accessor.

use oxisycl_device::group::{Group, GroupArguments, Shape};
use oxisycl_device::{Captured, Item, Single};
use oxisycl_runtime::graph::forbid_blocking;
use oxisycl_types::Range;

use crate::{Event, Handler, Queue, Result};

impl Queue {
    /// Shortcut for a command group with one kernel that uses no accessor.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// queue.parallel_for(4, |item| oxisycl::println!("work-item {}", item.index()))?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for<const D: usize, K>(&self, range: impl Into<Range<D>>, kernel: K) -> Result<Event>
    where
        K: for<'wi> Fn(Item<'wi, D>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.parallel_for(range, kernel)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut for a command group with one single task that uses no accessor.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// Queue::default()?.single_task(|_| oxisycl::println!("once"))?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn single_task<K>(&self, kernel: K) -> Result<Event>
    where
        K: for<'wi> Fn(Single<'wi>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.single_task(kernel)?;
        handler.submit().map(Event::new)
    }

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
}
