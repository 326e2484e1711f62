//! Shortcuts for command groups of one kernel over work-groups that uses no accessor.

use oxisycl_device::Captured;
use oxisycl_device::group::nd::{NdArguments, NdExtent, NdItem};
use oxisycl_device::group::{Group, GroupArguments, Shape};
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
}
