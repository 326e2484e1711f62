//! Launching kernels over nd-ranges.

use std::panic::Location;

use oxisycl_device::Captured;
use oxisycl_device::group::nd::{ByItem, NdArguments, NdExtent, NdItem, NdKernel};
use oxisycl_device::group::{GroupLaunch, Shape};
use oxisycl_types::{NdRange, Range};

use super::Handler;
use crate::Result;

impl<'cg> Handler<'cg> {
    /// Runs `kernel` once for each work-item of an nd-range, those of a group at the same time (SYCL 2020 section 4.9.4.2.2). With a global extent of
    /// zero it does not run, and the event completes after the dependencies.
    ///
    /// `range` is an [`NdRange`], or a pair of the global range and [`Fixed1`](crate::group::Fixed1), [`Fixed2`](crate::group::Fixed2) or
    /// [`Fixed3`](crate::group::Fixed3). `memory` is what each group gets: [`Local`](crate::group::Local), [`LocalSlice`](crate::group::LocalSlice), `()`,
    /// or a tuple of up to six of them. See [`nd`](crate::group::nd).
    ///
    /// Errors: as those of [`parallel_for_work_group`](Self::parallel_for_work_group). `NdRange` if a global extent is no multiple of the local one.
    /// `KernelNotSupported` if the compiler cannot prove that all work-items of a group come to a barrier. When the kernel runs: `Kernel` on the host if
    /// work-items of a group wait at different places.
    ///
    /// ```
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = (Buffer::from_vec((0..8).collect())?, Buffer::from_vec(vec![0u32; 2])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Atomic));
    ///     let range = NdRange::new(Range::new([8]), Range::new([4]));
    ///     cg.parallel_for_nd_range(range, (), move |mut item, ()| {
    ///         let own = numbers.get(item.global());
    ///         let sum = item.group().reduce(own, Sum);
    ///         if item.is_leader() {
    ///             sums.store(item.global(), item.group_id(), sum);
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(sums.to_vec()?, [6, 22]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for_nd_range<const D: usize, R, A, K>(&mut self, range: R, memory: A, kernel: K) -> Result
    where
        R: NdExtent<D>,
        A: NdArguments,
        K: for<'wi> Fn(NdItem<'wi, 'cg, D, R::Shape>, A::Accessors<'wi>) + Captured + Send + Sync + 'cg,
    {
        let location = Location::caller();
        let parts = range.parts();
        self.command("a kernel", |handler| handler.push_nd_range::<D, R::Shape, A, K>(parts, memory, kernel, location))
    }

    /// Adds a launch over an nd-range to the group's command.
    pub(super) fn push_nd_range<const D: usize, S, A, K>(
        &mut self,
        (global, shape): (Range<D>, S),
        memory: A,
        kernel: K,
        location: &'static Location<'static>,
    ) -> Result
    where
        S: Shape<D>,
        A: NdArguments,
        K: for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>) + Captured + Send + Sync + 'cg,
    {
        let groups = NdRange::new(global, Range(shape.extent())).group_range();
        let captured = GroupLaunch { shape, arguments: memory, kernel };
        self.push_groups::<ByItem<'cg, S, A, K>, D>(groups, Some(global), captured, D as u8, location)
    }

    /// Runs a kernel that is a named type once for each work-item of an nd-range.
    ///
    /// Errors as for [`parallel_for_nd_range`](Self::parallel_for_nd_range).
    ///
    /// ```
    /// use oxisycl::group::nd::{LocalAccessor, NdItem, NdKernel};
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::prelude::*;
    ///
    /// /// Turns each block of 64 numbers round.
    /// #[derive(Clone, Copy)]
    /// struct Reverse<'cg>(Accessor<'cg, u32, 1, ReadWrite>);
    ///
    /// impl<'cg> NdKernel<'cg, 1, Fixed1<64>, Local<u32, 64>> for Reverse<'cg> {
    ///     #[inline]
    ///     fn run<'wi>(&self, mut item: NdItem<'wi, 'cg, 1, Fixed1<64>>, tile: LocalAccessor<'wi, u32>) {
    ///         let own = item.local_linear_id();
    ///         // SAFETY: each work-item writes its own element before the barrier, and all only read behind it.
    ///         unsafe {
    ///             tile.set(own, self.0.get(item.global()));
    ///             item.group().barrier();
    ///             self.0.set(item.global(), tile.get(63 - own));
    ///         }
    ///     }
    /// }
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec((0..128).collect())?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.launch_nd_range((128, Fixed1), Local::new(), Reverse(numbers))
    /// })?;
    /// assert_eq!(numbers.to_vec()?[..2], [63, 62]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn launch_nd_range<const D: usize, R, A, K>(&mut self, range: R, memory: A, kernel: K) -> Result
    where
        R: NdExtent<D>,
        A: NdArguments,
        K: NdKernel<'cg, D, R::Shape, A> + 'cg,
    {
        self.name.get_or_insert(std::any::type_name::<K>());
        self.parallel_for_nd_range(range, memory, nd_closure::<D, R::Shape, A, K>(kernel))
    }
}

/// A named kernel over an nd-range as the closure that is launched.
fn nd_closure<'cg, const D: usize, S, A, K>(
    kernel: K,
) -> impl for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>) + Copy + Send + Sync
where
    S: Shape<D>,
    A: NdArguments,
    K: NdKernel<'cg, D, S, A> + 'cg,
{
    move |item: NdItem<'_, 'cg, D, S>, memory: A::Accessors<'_>| kernel.run(item, memory)
}
