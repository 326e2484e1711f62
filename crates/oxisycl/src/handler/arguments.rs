//! Launching kernels with arguments beside them.

use std::marker::PhantomData;
use std::panic::Location;

use oxisycl_backend::Captures;
use oxisycl_device::argument::{
    Bound, Call, Deconstruct, DeviceForm, RangeFormWith, Sent, SingleFormWith, States, Unstated, Value, values,
};
use oxisycl_device::group::nd::{ByItemWith, NdArguments, NdExtent, NdItem};
use oxisycl_device::group::reduction::Reductions;
use oxisycl_device::group::{ByGroupWith, Group, GroupArguments, GroupLaunch, Shape};
use oxisycl_device::{Captured, Item, Single};
use oxisycl_image::{Form, KernelDescriptor};
use oxisycl_types::{LaunchRange, NdRange, Range};

use super::Handler;
use super::kernel::{describe, no_groups};
use crate::Result;

impl<'cg> Handler<'cg> {
    /// Runs `kernel` once for each id of `range`, as [`parallel_for`](Self::parallel_for) does, with what it gets for `arguments`.
    ///
    /// See [`argument`](crate::argument) for what may be passed. The arguments are moved to the command, and dropped when it has ended.
    ///
    /// Errors: as those of [`parallel_for`](Self::parallel_for), and as those of the command group's methods for the same access. `KernelArgument` if an
    /// argument's own type refuses it.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0, 1, 2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let names = vec![30, 31, 32, 33];
    ///     cg.parallel_for_with(4, (names, numbers.update()), |item, (names, numbers)| {
    ///         numbers.update(item, |x| names[x])
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [30, 31, 32, 33]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for_with<const D: usize, A, K>(
        &mut self,
        range: impl Into<Range<D>>,
        arguments: A,
        kernel: K,
    ) -> Result
    where
        A: Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Item<'k, D>, Value<'k, A>) + Captured + Send + Sync + 'cg,
    {
        self.push_range::<D, A, K, Unstated>(range.into(), arguments, kernel)
    }

    #[track_caller]
    fn push_range<const D: usize, A, K, R: States>(&mut self, range: Range<D>, arguments: A, kernel: K) -> Result
    where
        A: Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Item<'k, D>, Value<'k, A>) + Captured + Send + Sync + 'cg,
    {
        let form = RangeFormWith::<K, Sent<A>, D, R>(PhantomData);
        let descriptor = describe(&form, Form::Range(D as u8), self.name, Location::caller());
        let launch = LaunchRange { dimensions: D as u8, extent: range.embed(), offset: [0; 3] };
        self.command("a kernel", |handler| {
            let arguments = handler.take_apart(arguments, &descriptor)?;
            handler.push_kernel(&descriptor, Captures::of(&Bound { kernel, arguments }), &launch, &mut no_groups)
        })
    }

    /// Runs `kernel` once, as [`single_task`](Self::single_task) does, with what it gets for `arguments`.
    ///
    /// Errors: as those of [`parallel_for_with`](Self::parallel_for_with).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (text, count) = ("one two three".to_owned(), Buffer::from_vec(vec![0])?);
    /// Queue::default()?.submit(|cg| {
    ///     cg.single_task_with((text, count.write()), |task, (text, count)| {
    ///         count.set_at(task, 0, text.split(' ').count())
    ///     })
    /// })?;
    /// assert_eq!(count.to_vec()?, [3]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn single_task_with<A, K>(&mut self, arguments: A, kernel: K) -> Result
    where
        A: Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Single<'k>, Value<'k, A>) + Captured + Send + Sync + 'cg,
    {
        self.push_single::<A, K, Unstated>(arguments, kernel)
    }

    #[track_caller]
    fn push_single<A, K, R: States>(&mut self, arguments: A, kernel: K) -> Result
    where
        A: Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Single<'k>, Value<'k, A>) + Captured + Send + Sync + 'cg,
    {
        let form = SingleFormWith::<K, Sent<A>, R>(PhantomData);
        let descriptor = describe(&form, Form::Single, self.name, Location::caller());
        self.command("a kernel", |handler| {
            let arguments = handler.take_apart(arguments, &descriptor)?;
            let captures = Bound { kernel, arguments };
            handler.push_kernel(&descriptor, Captures::of(&captures), &LaunchRange::SINGLE, &mut no_groups)
        })
    }

    /// Runs `kernel` once for each work-group, as [`parallel_for_work_group`](Self::parallel_for_work_group) does, with what it gets for `arguments`.
    ///
    /// Errors: as those of [`parallel_for_work_group`](Self::parallel_for_work_group) and of [`parallel_for_with`](Self::parallel_for_with).
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // Turns each block of four numbers round.
    /// let numbers = Buffer::from_vec((0..8).collect())?;
    /// Queue::default()?.submit(|cg| {
    ///     let (shape, tile) = (Fixed1::<4>, Local::<i32, 4>::new());
    ///     cg.parallel_for_work_group_with(2, shape, tile, numbers.update(), |mut group, mut tile, numbers| {
    ///         group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
    ///         group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[3 - item.local_linear_id()]));
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [3, 2, 1, 0, 7, 6, 5, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for_work_group_with<const D: usize, S, M, A, K>(
        &mut self,
        groups: impl Into<Range<D>>,
        shape: S,
        memory: M,
        arguments: A,
        kernel: K,
    ) -> Result
    where
        S: Shape<D>,
        M: GroupArguments,
        A: Deconstruct<Handler<'cg>>,
        K: for<'wg> Fn(Group<'wg, 'cg, D, S>, M::Bound<'wg>, Value<'wg, A>) + Captured + Send + Sync + 'cg,
    {
        let location = Location::caller();
        self.command("a kernel", |handler| {
            let descriptor = handler.describe_groups::<ByGroupWith<'cg, S, M, K, Sent<A>>, D>(location);
            let kernel = Bound { kernel, arguments: handler.take_apart(arguments, &descriptor)? };
            let captured = GroupLaunch { shape, arguments: memory, kernel };
            handler.push_described::<ByGroupWith<'cg, S, M, K, Sent<A>>, D>(
                &descriptor,
                groups.into(),
                None,
                captured,
                D as u8,
            )
        })
    }

    /// Runs `kernel` once for each work-item of an nd-range, as [`parallel_for_nd_range`](Self::parallel_for_nd_range) does, with what it gets for
    /// `arguments`.
    ///
    /// Errors: as those of [`parallel_for_nd_range`](Self::parallel_for_nd_range) and of [`parallel_for_with`](Self::parallel_for_with).
    ///
    /// ```
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sums) = ((0..8).collect::<Vec<u32>>(), Buffer::from_vec(vec![0u32; 2])?);
    /// Queue::default()?.submit(|cg| {
    ///     let range = NdRange::new(Range::new([8]), Range::new([4]));
    ///     cg.parallel_for_nd_range_with(range, (), (numbers, sums.atomic()), |mut item, (), (numbers, sums)| {
    ///         let own = numbers[item.global_linear_id()];
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
    pub fn parallel_for_nd_range_with<const D: usize, R, M, A, K>(
        &mut self,
        range: R,
        memory: M,
        arguments: A,
        kernel: K,
    ) -> Result
    where
        R: NdExtent<D>,
        M: NdArguments,
        A: Deconstruct<Handler<'cg>>,
        K: for<'wi> Fn(NdItem<'wi, 'cg, D, R::Shape>, M::Accessors<'wi>, Value<'wi, A>) + Captured + Send + Sync + 'cg,
    {
        let location = Location::caller();
        let (global, shape) = range.parts();
        self.command("a kernel", |handler| {
            let descriptor = handler.describe_groups::<ByItemWith<'cg, R::Shape, M, K, Sent<A>>, D>(location);
            let kernel = Bound { kernel, arguments: handler.take_apart(arguments, &descriptor)? };
            let groups = NdRange::new(global, Range(shape.extent())).group_range();
            let captured = GroupLaunch { shape, arguments: memory, kernel };
            handler.push_described::<ByItemWith<'cg, R::Shape, M, K, Sent<A>>, D>(
                &descriptor,
                groups,
                Some(global),
                captured,
                D as u8,
            )
        })
    }

    /// Runs `kernel` once for each id of `range` and combines what work-items give to their reducers, as [`parallel_reduce`](Self::parallel_reduce) does,
    /// with what it gets for `arguments`.
    ///
    /// Errors: as those of [`parallel_reduce`](Self::parallel_reduce) and of [`parallel_for_with`](Self::parallel_for_with).
    ///
    /// ```
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    /// use oxisycl::reduction::reduction;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (x, y) = (Buffer::from_vec(vec![1.0f64, 2.0])?, Buffer::from_vec(vec![3.0f64, 4.0])?);
    /// let product = Buffer::uninit(1)?;
    /// Queue::default()?.submit(|cg| {
    ///     let into = reduction(cg.access(&product, Write.no_init()), Sum);
    ///     cg.parallel_reduce_with(2, into, (x.read(), y.read()), |item, sum, (x, y)| *sum += x.get(item) * y.get(item))
    /// })?;
    /// assert_eq!(product.to_vec()?, [11.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_reduce_with<const D: usize, R, A, K>(
        &mut self,
        range: impl Into<Range<D>>,
        into: R,
        arguments: A,
        kernel: K,
    ) -> Result
    where
        R: Reductions + 'cg,
        A: Deconstruct<Handler<'cg>>,
        K: for<'wi> Fn(Item<'wi, D>, R::Reducers<'wi>, Value<'wi, A>) + Captured + Send + Sync + 'cg,
    {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        let location = Location::caller();
        self.command("a kernel", |handler| {
            handler.name_reduction::<K>();
            let name = handler.name.unwrap_or_default();
            let arguments = handler.take_apart_for(arguments, || name, location)?;
            // SAFETY: the launches of the command are those that the arguments were taken apart for.
            let kernel = unsafe { reducing::<D, R, Sent<A>, K>(kernel, arguments) };
            handler.push_reduction(range.into(), into, kernel, location)
        })
    }

    /// Runs the call of a [kernel function](macro@crate::kernel) once for each id of `range`. The function's name is the kernel's, unless the group
    /// [has one](Self::name).
    ///
    /// Errors: as those of [`parallel_for_with`](Self::parallel_for_with). `KernelNotSupported` if the device lacks what the function's attribute states.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// #[kernel]
    /// fn square(item: Item<1>, numbers: Accessor<u32, 1, ReadWrite>) {
    ///     numbers.update(item, |x| x * x);
    /// }
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.launch_call(3, square(numbers))
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [1, 4, 9]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn launch_call<const D: usize, A, K, R: States>(
        &mut self,
        range: impl Into<Range<D>>,
        call: Call<A, K, R>,
    ) -> Result
    where
        A: Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Item<'k, D>, Value<'k, A>) + Captured + Send + Sync + 'cg,
    {
        let (name, arguments, kernel) = call.into_parts();
        self.name.get_or_insert(name);
        self.push_range::<D, A, K, R>(range.into(), arguments, kernel)
    }

    /// Runs the call of a [kernel function](macro@crate::kernel) for a single task once.
    ///
    /// Errors: as those of [`parallel_for_with`](Self::parallel_for_with).
    #[track_caller]
    pub fn launch_single_call<A, K, R: States>(&mut self, call: Call<A, K, R>) -> Result
    where
        A: Deconstruct<Handler<'cg>>,
        K: for<'k> Fn(Single<'k>, Value<'k, A>) + Captured + Send + Sync + 'cg,
    {
        let (name, arguments, kernel) = call.into_parts();
        self.name.get_or_insert(name);
        self.push_single::<A, K, R>(arguments, kernel)
    }

    /// What crosses for the arguments of the launch that is being recorded.
    fn take_apart<A: Deconstruct<Self>>(&mut self, arguments: A, kernel: &KernelDescriptor) -> Result<Sent<A>> {
        self.take_apart_for(arguments, || kernel.display_name(), kernel.location)
    }

    /// `kernel` gives the name for an error. It searches a text, so a launch without an error must not call it.
    fn take_apart_for<'n, A: Deconstruct<Self>>(
        &mut self,
        arguments: A,
        kernel: impl FnOnce() -> &'n str,
        location: &'static Location<'static>,
    ) -> Result<Sent<A>> {
        // SAFETY: callers put the result into the block of the group's launch, which is used for nothing else.
        unsafe { arguments.deconstruct(self) }.map_err(|error| error.into_error(kernel(), location))
    }
}

/// A kernel with arguments that reduces, as one without.
///
/// # Safety
/// It is called inside the launches that the arguments were taken apart for.
unsafe fn reducing<const D: usize, R, S, K>(
    kernel: K,
    arguments: S,
) -> impl for<'wi> Fn(Item<'wi, D>, R::Reducers<'wi>) + Copy + Send + Sync
where
    R: Reductions,
    S: DeviceForm,
    K: for<'wi> Fn(Item<'wi, D>, R::Reducers<'wi>, S::Value<'wi>) + Captured + Send + Sync,
{
    // SAFETY: by the contract of this function; the values are made for one call.
    move |item: Item<'_, D>, reducers: R::Reducers<'_>| kernel(item, reducers, unsafe { values(arguments) })
}
