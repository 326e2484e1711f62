//! Launching kernels over work-groups.

use std::panic::Location;

use oxisycl_backend::{Captures, KernelGroupLimits};
use oxisycl_device::Captured;
use oxisycl_device::group::{ByGroup, Group, GroupArguments, GroupForm, GroupKernel, GroupKind, GroupLaunch, Shape};
use oxisycl_image::{Form, KernelDescriptor};
use oxisycl_types::{ErrorCode, GroupSize, LaunchRange, Range};

use super::Handler;
use super::kernel::describe;
use crate::{Device, Error, Result};

impl<'cg> Handler<'cg> {
    /// Runs `kernel` once for each of `groups` work-groups, in any order and at the same time (SYCL 2020 section 4.9.4.2.3). With an extent of
    /// zero it does not run, and the event completes after the dependencies.
    ///
    /// `shape` is the number of work-items of a group: [`Fixed1`](crate::group::Fixed1), [`Fixed2`](crate::group::Fixed2) or
    /// [`Fixed3`](crate::group::Fixed3), or a [`Range`] that the program computes. `memory` is what each group gets: [`Local`](crate::group::Local),
    /// [`LocalSlice`](crate::group::LocalSlice), [`Private`](crate::group::Private), `()`, or a tuple of up to six of them. See
    /// [`group`](crate::group).
    ///
    /// Errors: as those of [`parallel_for`](Self::parallel_for). `NdRange` if an extent of `shape` is zero, or if a group is larger than the
    /// device allows. The latter is `KernelNotSupported` for a fixed shape: no launch of the kernel could run there. `MemoryAllocation` if a group's
    /// local memory is larger than the device has.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // The sum of each four neighbours, by halves.
    /// let (numbers, sums) = (Buffer::from_vec((0..8).collect())?, Buffer::from_vec(vec![0i32; 2])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Atomic));
    ///     cg.parallel_for_work_group(2, Fixed1::<4>, Local::<i32, 4>::new(), move |mut group, mut tile| {
    ///         group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
    ///         let first = group.id();
    ///         group.for_each(&tile, move |item, tile| {
    ///             if item.local_linear_id() == 0 {
    ///                 sums.store(item, first, tile.iter().sum());
    ///             }
    ///         });
    ///     })
    /// })?;
    /// assert_eq!(sums.to_vec()?, [6, 22]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_for_work_group<const D: usize, S, A, K>(
        &mut self,
        groups: impl Into<Range<D>>,
        shape: S,
        memory: A,
        kernel: K,
    ) -> Result
    where
        S: Shape<D>,
        A: GroupArguments,
        K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Captured + Send + Sync + 'cg,
    {
        let location = Location::caller();
        self.command("a kernel", |handler| {
            handler.push_work_group(groups.into(), shape, memory, kernel, D as u8, location)
        })
    }

    /// Adds a launch over groups to the group's command. `location` is where the user wrote it. A panic names as many positions of its work-item as
    /// `named` says; with 0 it names none.
    pub(super) fn push_work_group<const D: usize, S, A, K>(
        &mut self,
        groups: Range<D>,
        shape: S,
        memory: A,
        kernel: K,
        named: u8,
        location: &'static Location<'static>,
    ) -> Result
    where
        S: Shape<D>,
        A: GroupArguments,
        K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Captured + Send + Sync + 'cg,
    {
        let captured = GroupLaunch { shape, arguments: memory, kernel };
        self.push_groups::<ByGroup<'cg, S, A, K>, D>(groups, None, captured, named, location)
    }

    /// Adds a launch of either kind to the group's command. One over an nd-range has a global range, which the groups have to divide.
    pub(super) fn push_groups<F: GroupKind<D, Kernel: Send + Sync>, const D: usize>(
        &mut self,
        groups: Range<D>,
        global: Option<Range<D>>,
        captured: GroupLaunch<F::Shape, F::Arguments, F::Kernel>,
        named: u8,
        location: &'static Location<'static>,
    ) -> Result {
        let descriptor = self.describe_groups::<F, D>(location);
        self.push_described::<F, D>(&descriptor, groups, global, captured, named)
    }

    /// What the runtime knows of a kernel over groups.
    pub(super) fn describe_groups<F: GroupKind<D>, const D: usize>(
        &self,
        location: &'static Location<'static>,
    ) -> KernelDescriptor {
        describe(&GroupForm::<F, D>::NEW, Form::Group(D as u8), self.name, location)
    }

    /// Adds a launch of either kind, of a kernel that has been described. [`push_groups`](Self::push_groups) says what the ranges are.
    pub(super) fn push_described<F: GroupKind<D, Kernel: Send + Sync>, const D: usize>(
        &mut self,
        descriptor: &KernelDescriptor,
        groups: Range<D>,
        global: Option<Range<D>>,
        captured: GroupLaunch<F::Shape, F::Arguments, F::Kernel>,
        named: u8,
    ) -> Result {
        let launch = LaunchRange { dimensions: named, extent: groups.embed(), offset: [0; 3] };
        let local = Range(Range(captured.shape.extent()).embed());
        let items = local.checked_size().unwrap_or(usize::MAX);
        let memory = captured.arguments;
        let (local_bytes, host_bytes) = (memory.local_bytes(), memory.host_bytes(items));
        let is_fixed = F::Shape::FIXED[0] != 0;
        let wished = Wished { global: global.map(|global| global.embed()), local, is_fixed, local_bytes, host_bytes };
        self.push_wished(descriptor, Captures::of(&captured), &launch, &wished)
    }

    fn push_wished(
        &mut self,
        descriptor: &KernelDescriptor,
        captures: Captures<'_>,
        launch: &LaunchRange,
        wished: &Wished,
    ) -> Result {
        self.push_kernel(descriptor, captures, launch, &mut |device| wished.check(device, descriptor, launch).map(Some))
    }

    /// Runs a kernel that is a named type once for each work-group.
    ///
    /// Errors as for [`parallel_for_work_group`](Self::parallel_for_work_group).
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Group, GroupKernel, Local, Tile};
    /// use oxisycl::prelude::*;
    ///
    /// /// Turns each block of 64 numbers round.
    /// #[derive(Clone, Copy)]
    /// struct Reverse<'cg>(Accessor<'cg, u32, 1, ReadWrite>);
    ///
    /// impl<'cg> GroupKernel<'cg, 1, Fixed1<64>, Local<u32, 64>> for Reverse<'cg> {
    ///     #[inline]
    ///     fn run<'wg>(&self, mut group: Group<'wg, 'cg, 1, Fixed1<64>>, mut tile: Tile<'wg, u32, 64>) {
    ///         let numbers = self.0;
    ///         group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
    ///         group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[63 - item.local_linear_id()]));
    ///     }
    /// }
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec((0..128).collect())?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.launch_work_group(2, Fixed1, Local::new(), Reverse(numbers))
    /// })?;
    /// assert_eq!(numbers.to_vec()?[..2], [63, 62]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn launch_work_group<const D: usize, S, A, K>(
        &mut self,
        groups: impl Into<Range<D>>,
        shape: S,
        memory: A,
        kernel: K,
    ) -> Result
    where
        S: Shape<D>,
        A: GroupArguments,
        K: GroupKernel<'cg, D, S, A> + 'cg,
    {
        self.name.get_or_insert(std::any::type_name::<K>());
        self.parallel_for_work_group(groups, shape, memory, group_closure::<D, S, A, K>(kernel))
    }
}

/// A named kernel over groups as the closure that is launched.
fn group_closure<'cg, const D: usize, S, A, K>(
    kernel: K,
) -> impl for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Copy + Send + Sync
where
    S: Shape<D>,
    A: GroupArguments,
    K: GroupKernel<'cg, D, S, A> + 'cg,
{
    move |group: Group<'_, 'cg, D, S>, memory: A::Bound<'_>| kernel.run(group, memory)
}

/// Most bytes that private values and large tiles of one group may take on the host.
const MAX_HOST_BYTES: usize = 1 << 30;

/// The groups that a launch asks for, before they are checked.
struct Wished {
    global: Option<[usize; 3]>,
    local: Range<3>,
    /// Whether the extent is part of the kernel, so that no launch of it can have another.
    is_fixed: bool,
    /// `None` if the bytes cannot be counted.
    local_bytes: Option<usize>,
    host_bytes: Option<usize>,
}

impl Wished {
    /// Holds the groups against the limits of a device.
    fn check(&self, device: &Device, kernel: &KernelDescriptor, launch: &LaunchRange) -> Result<GroupSize> {
        let info = device.info();
        let visible = 3 - usize::from(launch.dimensions.max(1));
        let refuse = |code, what: String| {
            let kernel = kernel.display_name();
            Err(Error::new(code, format!("kernel \"{kernel}\" on device \"{}\": {what}", device.name())))
        };
        let Range(local) = self.local;
        let shown = &local[visible..];
        let is_empty = self.global.unwrap_or(launch.extent).contains(&0);
        if local.contains(&0) && !is_empty {
            return refuse(ErrorCode::NdRange, format!("work-groups of {shown:?} have no work-items"));
        }
        if let (Some(global), false) = (self.global, is_empty)
            && let Some(d) = (visible..3).find(|d| global[*d] % local[*d] != 0)
        {
            let (global, local, d) = (global[d], local[d], d - visible);
            return refuse(
                ErrorCode::NdRange,
                format!("the global extent {global} in dimension {d} is no multiple of the local extent {local}"),
            );
        }
        let too_large = if self.is_fixed { ErrorCode::KernelNotSupported } else { ErrorCode::NdRange };
        let limit = info.max_work_group_size;
        if self.local.checked_size().is_none_or(|items| items > limit) {
            return refuse(too_large, format!("work-groups of {shown:?} work-items, the limit is {limit} for a group"));
        }
        let limits = info.max_work_item_sizes;
        if let Some(d) = (visible..3).find(|d| local[*d] > limits[*d]) {
            return refuse(
                too_large,
                format!("work-groups of {shown:?} work-items, the limit is {} in dimension {}", limits[d], d - visible),
            );
        }
        if (0..3).any(|d| launch.extent[d].checked_mul(local[d]).is_none_or(|n| isize::try_from(n).is_err())) {
            return refuse(
                ErrorCode::NdRange,
                format!(
                    "{:?} work-groups of {shown:?} have more work-items than can be counted",
                    &launch.extent[visible..]
                ),
            );
        }
        let limit = info.local_mem_size;
        let Some(local_bytes) = self.local_bytes.filter(|bytes| u64::try_from(*bytes).is_ok_and(|n| n <= limit)) else {
            let bytes = self.local_bytes.map_or("more than can be counted".to_owned(), |bytes| bytes.to_string());
            return refuse(
                ErrorCode::MemoryAllocation,
                format!("local memory of {bytes} bytes for each work-group, the limit is {limit}"),
            );
        };
        let Some(host_bytes) = self.host_bytes.filter(|bytes| *bytes <= MAX_HOST_BYTES) else {
            let bytes = self.host_bytes.map_or("more than can be counted".to_owned(), |bytes| bytes.to_string());
            return refuse(
                ErrorCode::MemoryAllocation,
                format!(
                    "private values and local memory of {bytes} bytes for each work-group, the limit is {MAX_HOST_BYTES}"
                ),
            );
        };
        // Limits of groups are below 2^32 on every device; empty launches have none.
        Ok(GroupSize { local: local.map(|n| n as u32), local_bytes, host_bytes })
    }
}

/// Adds the local memory that the kernel's code needs, and checks the launch's groups against the limits of that code on the device.
pub(super) fn fit_to_code(
    device: &Device,
    descriptor: &KernelDescriptor,
    group: &mut GroupSize,
    limits: KernelGroupLimits,
    launch: &LaunchRange,
) -> Result {
    let refuse = |code, what: String| {
        Err(Error::new(
            code,
            format!("kernel \"{}\" on device \"{}\": {what}", descriptor.display_name(), device.name()),
        ))
    };
    if launch.extent.contains(&0) {
        return Ok(());
    }
    if group.items() > limits.items {
        let shown = &group.local[3 - usize::from(launch.dimensions.max(1))..];
        let limit = limits.items;
        return refuse(
            ErrorCode::NdRange,
            format!("work-groups of {shown:?} work-items, the limit of the kernel's code is {limit} for a group"),
        );
    }
    let scratch = GroupSize::scratch_bytes(group.items(), limits.bytes_of_element);
    let limit = device.info().local_mem_size.saturating_sub(limits.static_local_bytes as u64);
    let bytes = scratch.and_then(|scratch| scratch.checked_add(group.local_bytes));
    match bytes.filter(|bytes| u64::try_from(*bytes).is_ok_and(|bytes| bytes <= limit)) {
        Some(bytes) => {
            group.local_bytes = bytes;
            Ok(())
        }
        None => refuse(
            ErrorCode::MemoryAllocation,
            format!(
                "local memory of {} bytes for each work-group and {} for its algorithms, the limit is {limit} beside the {} that its code has",
                group.local_bytes,
                scratch.map_or("more than can be counted".to_owned(), |bytes| bytes.to_string()),
                limits.static_local_bytes
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use oxisycl_device::{Item, RangeForm};

    use super::*;

    /// The code's own part of a device's local memory, in these tests.
    const STATIC: usize = 100;

    fn device() -> Device {
        Device::default().unwrap()
    }

    fn described<K: for<'wi> Fn(Item<'wi, 1>) + Copy>(_: K) -> KernelDescriptor {
        describe(&RangeForm::<K, 1>(PhantomData), Form::Range(1), Some("fitting"), Location::caller())
    }

    /// What becomes of `local_bytes` of groups of `items`, by code with such limits.
    fn fitted(items: u32, local_bytes: usize, limits: KernelGroupLimits, groups: usize) -> Result<usize> {
        let mut group = GroupSize { local: [1, 1, items], local_bytes, host_bytes: 0 };
        let launch = LaunchRange { dimensions: 1, extent: [1, 1, groups], offset: [0; 3] };
        fit_to_code(&device(), &described(|_| {}), &mut group, limits, &launch)?;
        Ok(group.local_bytes)
    }

    fn limits(items: usize, bytes_of_element: usize) -> KernelGroupLimits {
        KernelGroupLimits { items, static_local_bytes: STATIC, bytes_of_element }
    }

    #[track_caller]
    fn refused(fitted: Result<usize>, code: ErrorCode, what: &str) {
        let error = fitted.unwrap_err();
        let name = device().name().to_owned();
        assert_eq!(
            (error.code(), error.to_string()),
            (code, format!("kernel \"fitting\" on device \"{name}\": {what}"))
        );
    }

    /// No launch of the user gets there on a device that passes fewer bytes to a kernel than a group's private values would need.
    #[test]
    fn memory_of_the_host_for_a_group_has_a_limit() {
        let taken = |host_bytes| {
            let wished =
                Wished { global: None, local: Range([1, 1, 32]), is_fixed: false, local_bytes: Some(0), host_bytes };
            let launch = LaunchRange { dimensions: 1, extent: [1, 1, 4], offset: [0; 3] };
            wished.check(&device(), &described(|_| {}), &launch).map(|group| group.host_bytes)
        };
        assert_eq!(taken(Some(1 << 30)).unwrap(), 1 << 30);
        for (host_bytes, bytes) in [(Some((1 << 30) + 1), "1073741825"), (None, "more than can be counted")] {
            let what = format!(
                "private values and local memory of {bytes} bytes for each work-group, the limit is 1073741824"
            );
            refused(taken(host_bytes), ErrorCode::MemoryAllocation, &what);
        }
    }

    #[test]
    fn groups_of_the_codes_largest_size_fit_and_larger_ones_do_not() {
        assert_eq!(fitted(96, 10, limits(96, 0), 4).unwrap(), 10);
        let what = "work-groups of [97] work-items, the limit of the kernel's code is 96 for a group";
        refused(fitted(97, 10, limits(96, 0), 4), ErrorCode::NdRange, what);
    }

    #[test]
    fn algorithms_add_their_local_memory() {
        // 33 work-items in two blocks are 37 elements.
        assert_eq!(fitted(33, 64, limits(1024, 8), 4).unwrap(), 64 + (37 * 8usize).next_multiple_of(64));
    }

    #[test]
    fn all_local_memory_fits_that_the_codes_own_leaves() {
        let most = device().info().local_mem_size as usize - STATIC;
        let scratch = GroupSize::scratch_bytes(32, 4).unwrap();
        assert_eq!(fitted(32, most - scratch, limits(1024, 4), 4).unwrap(), most);
        let local = most - scratch + 1;
        let what = format!(
            "local memory of {local} bytes for each work-group and {scratch} for its algorithms, the limit is {most} beside the {STATIC} \
             that its code has"
        );
        refused(fitted(32, local, limits(1024, 4), 4), ErrorCode::MemoryAllocation, &what);
    }

    #[test]
    fn local_memory_that_cannot_be_counted_is_too_much() {
        let most = device().info().local_mem_size as usize - STATIC;
        let what = format!(
            "local memory of 0 bytes for each work-group and more than can be counted for its algorithms, the limit is {most} beside the \
             {STATIC} that its code has"
        );
        refused(fitted(32, 0, limits(1024, usize::MAX / 2), 4), ErrorCode::MemoryAllocation, &what);
        // The parts can be, and not their sum.
        assert_eq!(fitted(32, usize::MAX - 8, limits(1024, 4), 4).unwrap_err().code(), ErrorCode::MemoryAllocation);
    }

    #[test]
    fn a_launch_of_no_groups_has_no_limits() {
        assert_eq!(fitted(97, usize::MAX, limits(96, 4), 0).unwrap(), usize::MAX);
    }
}
