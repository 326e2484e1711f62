//! Launching kernels: the only generic step between a user's closure and the type-erased command.

use std::marker::PhantomData;
use std::panic::Location;

use oxisycl_backend::{Captures, Command, KernelBox, KernelCommand, KernelInfo};
use oxisycl_device::{Captured, DescribeKernel, Item, Kernel, RangeForm, Single, SingleForm, SingleKernel};
use oxisycl_image::{Form, KernelDescriptor, KernelId, ParameterLayout, StatedNeeds};
use oxisycl_runtime::graph::{KeptAlive, Unloaded};
use oxisycl_runtime::program::{Code, Values, programs};
use oxisycl_types::{ArgumentPart, ArgumentType, Aspects, ErrorCode, GroupSize, Id, LaunchRange, Range};

use super::Handler;
use super::group::fit_to_code;
use crate::{Device, Error, Result};

impl<'cg> Handler<'cg> {
    /// Runs `kernel` once for each id of `range`, in any order and at the same time (SYCL 2020 section 4.9.4.2.2). With an extent
    /// of zero it does not run, and the event completes after the dependencies.
    ///
    /// Errors: `Invalid` for a second command in the group. `NdRange` if the number of work-items overflows. `KernelArgument` if
    /// the captures are larger than the device allows. `KernelNotSupported` if the device cannot run the kernel, or the program was
    /// not built for it. `Build` if the driver refuses the code. The errors that `access` recorded.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0; 12], [3, 4])?;
    /// Queue::default()?.submit(|cg| {
    ///     let table = cg.access(&table, Write);
    ///     cg.parallel_for([3, 4], move |item: Item<2>| table.set(item, 10 * item.get(0) + item.get(1)))
    /// })?;
    /// assert_eq!(table.host_access(Read)?[[2, 3]], 23);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for<const D: usize, K>(&mut self, range: impl Into<Range<D>>, kernel: K) -> Result
    where
        K: for<'wi> Fn(Item<'wi, D>) + Captured + Send + Sync + 'cg,
    {
        self.parallel_for_offset(Id::default(), range, kernel)
    }

    /// Runs `kernel` once for each id from `offset` on, `range` of them in each dimension (a deprecated form of SYCL 2020).
    ///
    /// Errors: as those of [`parallel_for`](Self::parallel_for).
    #[track_caller]
    pub fn parallel_for_offset<const D: usize, K>(
        &mut self,
        offset: impl Into<Id<D>>,
        range: impl Into<Range<D>>,
        kernel: K,
    ) -> Result
    where
        K: for<'wi> Fn(Item<'wi, D>) + Captured + Send + Sync + 'cg,
    {
        let (range, offset) = (range.into(), offset.into());
        let launch = LaunchRange { dimensions: D as u8, extent: range.embed(), offset: offset.embed() };
        let form = RangeForm::<K, D>(PhantomData);
        let descriptor = describe(&form, Form::Range(D as u8), self.name, Location::caller());
        self.kernel(&descriptor, Captures::of(&kernel), &launch, &mut no_groups)
    }

    /// Runs a kernel that is a named type once for each id of `range`.
    ///
    /// Errors as for [`parallel_for`](Self::parallel_for).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// /// Multiplies each element.
    /// #[derive(Clone, Copy)]
    /// struct Scale<'cg> {
    ///     numbers: Accessor<'cg, f32, 1, ReadWrite>,
    ///     factor: f32,
    /// }
    ///
    /// impl<'wi> Kernel<Item<'wi, 1>> for Scale<'_> {
    ///     #[inline]
    ///     fn run(&self, item: Item<'wi, 1>) {
    ///         self.numbers.update(item, |x| self.factor * x);
    ///     }
    /// }
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1.0, 2.0, 3.0])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.launch(3, Scale { numbers, factor: 2.0 })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [2.0, 4.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn launch<const D: usize, K>(&mut self, range: impl Into<Range<D>>, kernel: K) -> Result
    where
        K: for<'wi> Kernel<Item<'wi, D>> + 'cg,
    {
        self.name.get_or_insert(std::any::type_name::<K>());
        self.parallel_for(range, range_closure(kernel))
    }

    /// Runs `kernel` once. Its token may read and write any element of the group's accessors.
    ///
    /// Errors as for [`parallel_for`](Self::parallel_for).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, sum) = (Buffer::from_vec(vec![1, 2, 3])?, Buffer::from_vec(vec![0])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sum) = (cg.access(&numbers, Read), cg.access(&sum, Write));
    ///     cg.single_task(move |task| sum.set_at(task, 0, numbers.view(task).iter().sum()))
    /// })?;
    /// assert_eq!(sum.to_vec()?, [6]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn single_task<K>(&mut self, kernel: K) -> Result
    where
        K: for<'wi> Fn(Single<'wi>) + Captured + Send + Sync + 'cg,
    {
        let form = SingleForm::<K>(PhantomData);
        let descriptor = describe(&form, Form::Single, self.name, Location::caller());
        self.kernel(&descriptor, Captures::of(&kernel), &LaunchRange::SINGLE, &mut no_groups)
    }

    /// Runs a single task that is a named type.
    ///
    /// Errors as for [`parallel_for`](Self::parallel_for).
    #[track_caller]
    pub fn launch_single<K>(&mut self, kernel: K) -> Result
    where
        K: SingleKernel + 'cg,
    {
        self.name.get_or_insert(std::any::type_name::<K>());
        self.single_task(single_closure(kernel))
    }

    /// The rest of a launch.
    pub(super) fn kernel(
        &mut self,
        descriptor: &KernelDescriptor,
        captures: Captures<'_>,
        range: &LaunchRange,
        group: GroupCheck<'_>,
    ) -> Result {
        self.command("a kernel", |handler| handler.push_kernel(descriptor, captures, range, group))
    }

    /// Adds a launch to the group's command. Not generic: programs would be compiled with a copy of it, and of what it calls, for each kernel.
    pub(super) fn push_kernel(
        &mut self,
        descriptor: &KernelDescriptor,
        captures: Captures<'_>,
        range: &LaunchRange,
        group: GroupCheck<'_>,
    ) -> Result {
        let device = self.queue.device();
        let fits = Range(range.extent).checked_size().is_some_and(|size| isize::try_from(size).is_ok())
            && (0..3).all(|d| range.offset[d].checked_add(range.extent[d]).is_some());
        if !fits {
            return Err(Error::new(
                ErrorCode::NdRange,
                format!(
                    "kernel \"{}\" on device \"{}\": the range {:?} at offset {:?} has more work-items than can be counted",
                    descriptor.display_name(),
                    device.name(),
                    &range.extent[3 - usize::from(range.dimensions)..],
                    &range.offset[3 - usize::from(range.dimensions)..]
                ),
            ));
        }
        if descriptor.stated != StatedNeeds::NONE {
            check_stated(device, || descriptor.display_name(), &descriptor.stated)?;
        }
        let mut group = group(device)?;
        let limit = device.info().max_parameter_size;
        if descriptor.parameters.size > limit {
            return Err(too_large(device, descriptor, limit));
        }
        let backend_device = device.backend_device();
        let is_empty = range.extent.contains(&0);
        let mut check = |info: &KernelInfo| fit(device, descriptor, &mut group, range, info);
        let values = Values {
            captures,
            are_of_constants: self.constants.are_named(),
            is_idle: || oxisycl_runtime::observe::counters().is_idle(),
        };
        let runs_native = backend_device.info().image_targets.is_empty();
        let code = match &self.bundle {
            Some(bundle) if is_empty => bundle.code(device, descriptor)?,
            // SAFETY: the captures are the block of the described kernel, by the contract of this function's callers: both are made of it.
            Some(bundle) => unsafe { bundle.code_for(device, descriptor, &values, &mut check) }?,
            None if runs_native => None,
            None if is_empty => Some(programs().code(backend_device, descriptor)?),
            // SAFETY: as above.
            None => Some(unsafe { programs().code_for(backend_device, descriptor, &values, &mut check) }?),
        };
        let (code, load) = match code {
            // The code for values of specialization constants is as able, and was not adapted to twice.
            Some(Code::Ready(code)) => {
                if is_empty {
                    check(code.info())?;
                }
                (Some(code), None)
            }
            Some(Code::Unloaded(load)) => (None, Some(load)),
            None => (None, None),
        };
        if code.is_none()
            && let Some(library) = programs().hold_library(descriptor.host_entry)
        {
            self.group.kept_alive.push(KeptAlive::Other(Box::new(library)));
        }
        let command = if is_empty {
            Command::Marker
        } else {
            let native = if runs_native { programs().native(backend_device, descriptor) } else { None };
            Command::Kernel(KernelBox::of(descriptor, code, native, captures, range, group))
        };
        if let (Some(load), false) = (load, is_empty) {
            let device = device.clone();
            let fit = move |info: &KernelInfo, kernel: &mut KernelCommand| {
                let (descriptor, range) = (kernel.descriptor, kernel.range);
                fit(&device, &descriptor, &mut kernel.group, &range, info)
            };
            self.group.unloaded.push((self.group.commands.len(), Unloaded { load, fit: Box::new(fit) }));
        }
        self.group.commands.push(command);
        Ok(())
    }
}

/// Checks the work-groups of a launch on a device, and gives their size; `None` if it states none.
pub(super) type GroupCheck<'a> = &'a mut dyn FnMut(&Device) -> Result<Option<GroupSize>>;

/// The check of a launch without work-groups of its own.
#[expect(clippy::unnecessary_wraps, reason = "it is one of several checks")]
pub(super) fn no_groups(_: &Device) -> Result<Option<GroupSize>> {
    Ok(None)
}

/// Holds a launch against the limits of its code. Adds the local memory to its groups that the code needs.
fn fit(
    device: &Device,
    descriptor: &KernelDescriptor,
    group: &mut Option<GroupSize>,
    range: &LaunchRange,
    info: &KernelInfo,
) -> Result {
    if let Some(group) = group {
        fit_to_code(device, descriptor, group, info.group_limits, range)?;
    }
    let (items, limit) = (descriptor.stated.group.iter().product::<u32>() as usize, info.group_limits.items);
    if items > limit {
        let what =
            format!("it states work-groups of {items} work-items, and the limit of its code is {limit} for a group");
        return Err(not_supported(device, descriptor.display_name(), &what));
    }
    Ok(())
}

/// Holds what a kernel states against the device. `kernel` gives the name for the error.
#[cold]
pub(crate) fn check_stated<'n>(device: &Device, kernel: impl FnOnce() -> &'n str, stated: &StatedNeeds) -> Result {
    device.info().lacks(stated).map_or(Ok(()), |what| Err(not_supported(device, kernel(), &what)))
}

fn not_supported(device: &Device, kernel: &str, what: &str) -> Error {
    let device = device.name();
    Error::new(ErrorCode::KernelNotSupported, format!("kernel \"{kernel}\" on device \"{device}\": {what}"))
}

/// The error of a kernel with more captures and arguments than a launch passes.
#[cold]
fn too_large(device: &Device, descriptor: &KernelDescriptor, limit: usize) -> Error {
    let (kernel, device, size) = (descriptor.display_name(), device.name(), descriptor.parameters.size);
    let largest = descriptor.arguments.and_then(largest_part).map(|ArgumentPart { name, part, .. }| {
        format!("; its largest argument is \"{name}\", of type `{}` and {} bytes", (part.type_name)(), part.size)
    });
    let largest = largest.unwrap_or_default();
    Error::new(
        ErrorCode::KernelArgument,
        format!(
            "kernel \"{kernel}\" on device \"{device}\": its captures are {size} bytes, the limit is {limit}{largest}; pass large data in a \
             buffer, or as an `Arc`"
        ),
    )
}

/// The largest of the parts that have names. A part without a name stands for its own.
fn largest_part(mut of: &'static ArgumentType) -> Option<&'static ArgumentPart> {
    loop {
        let part = of.parts.iter().max_by_key(|part| part.part.size)?;
        if !part.name.is_empty() {
            return Some(part);
        }
        of = part.part;
    }
}

/// A named kernel as the closure that is launched. Of one type for each kernel, wherever it is launched.
pub(crate) fn range_closure<const D: usize, K>(kernel: K) -> impl for<'wi> Fn(Item<'wi, D>) + Copy + Send + Sync
where
    K: for<'wi> Kernel<Item<'wi, D>>,
{
    move |item: Item<'_, D>| kernel.run(item)
}

/// A named kernel of a single task as the closure that is launched.
pub(crate) fn single_closure<K: SingleKernel>(kernel: K) -> impl for<'wi> Fn(Single<'wi>) + Copy + Send + Sync {
    move |task: Single<'_>| kernel.run(task)
}

// Inlined, so that the calls through the object become constants.
#[inline(always)]
pub(crate) fn describe(
    kernel: &dyn DescribeKernel,
    form: Form,
    name: Option<&'static str>,
    location: &'static Location<'static>,
) -> KernelDescriptor {
    // SAFETY: only the lifetime of the object changes, and it is used within this function only. The cast gives the id of a type that
    // borrows for the command group's lifetime. `type_id` does not give it as long as the compiler knows of the borrow.
    let erased = unsafe { std::mem::transmute::<&dyn DescribeKernel, &(dyn DescribeKernel + 'static)>(kernel) };
    let (size, align) = kernel.layout();
    KernelDescriptor {
        id: KernelId { type_id: erased.type_id(), form },
        type_name: kernel.type_name(),
        name,
        location,
        parameters: ParameterLayout { size, align },
        arguments: kernel.arguments(),
        stated: match form {
            // Their groups are the launch's.
            Form::Group(_) => StatedNeeds::NONE,
            _ => StatedNeeds {
                aspects: Aspects::from_bits(kernel.aspects()).unwrap_or_default(),
                group: GroupSize::extents(kernel.group()),
                sub_group: kernel.sub_group(),
            },
        },
        host_entry: kernel.entry(),
    }
}
