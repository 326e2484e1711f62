//! Launching kernels: the only generic step between a user's closure and the type-erased command.

use std::panic::Location;

use oxisycl_backend::{ArgumentBlock, Command, KernelCommand};
use oxisycl_device::{Item, Kernel, Single, SingleKernel, range_entry, single_entry};
use oxisycl_image::{Form, KernelDescriptor, KernelId, ParameterLayout};
use oxisycl_types::{ErrorCode, HostEntry, Id, LaunchRange, Range};

use super::Handler;
use crate::{Error, Result};

impl<'cg> Handler<'cg> {
    /// Runs `kernel` once for each id of `range`, in any order and at the same time (SYCL 2020 section 4.9.4.2.2). With an extent
    /// of zero it does not run, and the event completes after the dependencies.
    ///
    /// Errors: `Invalid` for a second command in the group; `NdRange` if the number of work-items overflows; `KernelArgument` if
    /// the captures are larger than the device allows; what `access` recorded.
    #[track_caller]
    pub fn parallel_for<const D: usize, K>(&mut self, range: impl Into<Range<D>>, kernel: K) -> Result
    where
        K: for<'wi> Fn(Item<'wi, D>) + Copy + Send + Sync + 'cg,
    {
        self.parallel_for_offset(range, Id::default(), kernel)
    }

    /// The same with `offset` added to every id (a deprecated form of SYCL 2020).
    #[track_caller]
    pub fn parallel_for_offset<const D: usize, K>(
        &mut self,
        range: impl Into<Range<D>>,
        offset: impl Into<Id<D>>,
        kernel: K,
    ) -> Result
    where
        K: for<'wi> Fn(Item<'wi, D>) + Copy + Send + Sync + 'cg,
    {
        let (range, offset) = (range.into(), offset.into());
        let launch = LaunchRange { dimensions: D as u8, extent: range.embed(), offset: offset.embed() };
        let descriptor = self.descriptor::<K>(Form::Range(D as u8), range_entry::<K, D>, Location::caller());
        self.kernel(descriptor, ArgumentBlock::new(&kernel), launch)
    }

    /// Runs a kernel that is a named type once for each id of `range`.
    ///
    /// Errors as for [`parallel_for`](Self::parallel_for).
    #[track_caller]
    pub fn launch<const D: usize, K>(&mut self, range: impl Into<Range<D>>, kernel: K) -> Result
    where
        K: for<'wi> Kernel<Item<'wi, D>> + 'cg,
    {
        self.name.get_or_insert(std::any::type_name::<K>());
        self.parallel_for(range, move |item: Item<'_, D>| kernel.run(item))
    }

    /// Runs `kernel` once. Its token may read and write any element of the group's accessors.
    ///
    /// Errors as for [`parallel_for`](Self::parallel_for).
    #[track_caller]
    pub fn single_task<K>(&mut self, kernel: K) -> Result
    where
        K: for<'wi> Fn(Single<'wi>) + Copy + Send + Sync + 'cg,
    {
        let descriptor = self.descriptor::<K>(Form::Single, single_entry::<K>, Location::caller());
        self.kernel(descriptor, ArgumentBlock::new(&kernel), LaunchRange::SINGLE)
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
        self.single_task(move |task: Single<'_>| kernel.run(task))
    }

    fn descriptor<K>(
        &self,
        form: Form,
        host_entry: HostEntry,
        location: &'static Location<'static>,
    ) -> KernelDescriptor {
        KernelDescriptor {
            id: KernelId { type_id: typeid::of::<K>(), form },
            type_name: std::any::type_name::<K>(),
            name: self.name,
            location,
            parameters: ParameterLayout { size: size_of::<K>(), align: align_of::<K>() },
            host_entry,
        }
    }

    /// The non-generic rest of a launch.
    fn kernel(&mut self, descriptor: KernelDescriptor, arguments: ArgumentBlock, range: LaunchRange) -> Result {
        self.command("a kernel", |handler| {
            let device = handler.queue.device();
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
            let limit = device.info().max_parameter_size;
            if descriptor.parameters.size > limit {
                return Err(Error::new(
                    ErrorCode::KernelArgument,
                    format!(
                        "kernel \"{}\" on device \"{}\": its captures are {} bytes, the limit is {limit}",
                        descriptor.display_name(),
                        device.name(),
                        descriptor.parameters.size
                    ),
                ));
            }
            if !device.backend_device().image_targets().is_empty() {
                return Err(Error::new(
                    ErrorCode::KernelNotSupported,
                    format!(
                        "kernel \"{}\" on device \"{}\": the program has no image for it (built without the device compiler)",
                        descriptor.display_name(),
                        device.name()
                    ),
                ));
            }
            let command = if range.extent.contains(&0) {
                Command::Marker
            } else {
                Command::Kernel(KernelCommand { descriptor, code: None, arguments, range })
            };
            handler.group.commands.push(command);
            Ok(())
        })
    }
}
