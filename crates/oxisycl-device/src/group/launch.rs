//! What a launch over groups is made of, and the code that runs it.

use core::any::TypeId;
use core::marker::PhantomData;
use core::mem::offset_of;

use oxisycl_types::{ArgumentPart, ArgumentType, DeviceLaunch, GroupSize, HostChunk, HostEntry, LaunchRange};

use super::memory::GroupArguments;
use super::scope::{Group, size_of_group};
use super::shape::Shape;
use crate::argument::{Bound, DeviceForm, values};
use crate::kernel::{DescribeKernel, device_launch, host_position, last_axes, leave_id};
use crate::{Range, builtin};

/// A kernel over groups as a named type, launched with `launch_work_group`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel over groups of this shape and memory",
    note = "implement `GroupKernel<'cg, D, S, A>` for it, or use `parallel_for_work_group` with a closure"
)]
pub trait GroupKernel<'cg, const D: usize, S: Shape<D>, A: GroupArguments>: Copy + Send + Sync {
    /// Runs one group. Mark it `#[inline]`, so that its phases can become part of the loop over groups.
    fn run<'wg>(&self, group: Group<'wg, 'cg, D, S>, memory: A::Bound<'wg>);
}

/// What a kernel over groups captures: shape, memory and the kernel itself. A launch of the same kernel with another shape or memory is another kernel.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct GroupLaunch<S, A, K> {
    /// The local range.
    pub shape: S,
    /// What each group owns.
    pub arguments: A,
    /// The kernel.
    pub kernel: K,
}

/// The two ways to write a kernel over groups: [`ByGroup`] and [`ByItem`](super::nd::ByItem).
///
/// # Safety
/// `ENTRY` is the entry for `GroupLaunch<Shape, Arguments, Kernel>`.
#[doc(hidden)]
pub unsafe trait GroupKind<const D: usize> {
    /// The shape of a group.
    type Shape: Shape<D>;
    /// The memory of a group.
    type Arguments: GroupArguments;
    /// The kernel of the launch.
    type Kernel: Copy;
    /// The user's type, which is the kernel's or a part of it.
    type Named;
    /// The host entry.
    const ENTRY: HostEntry;
    /// What the kernel consists of if it has arguments beside it.
    const ARGUMENTS: Option<&'static ArgumentType> = None;
}

/// The form of a launch over groups.
#[doc(hidden)]
pub struct GroupForm<F, const D: usize>(PhantomData<F>);

impl<F, const D: usize> GroupForm<F, D> {
    /// The form.
    #[doc(hidden)]
    pub const NEW: Self = Self(PhantomData);
}

/// The form of `parallel_for_work_group`.
#[doc(hidden)]
pub struct ByGroup<'cg, S, A, K>(PhantomData<(S, A, K)>, PhantomData<fn(&'cg ())>);

// SAFETY: the entry is for that type.
unsafe impl<'cg, S: Shape<D>, A: GroupArguments, K, const D: usize> GroupKind<D> for ByGroup<'cg, S, A, K>
where
    K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Copy,
{
    type Shape = S;
    type Arguments = A;
    type Kernel = K;
    type Named = K;
    const ENTRY: HostEntry = group_entry::<K, S, A, GroupLaunch<S, A, K>, D>;
}

/// The form of `parallel_for_work_group_with`.
#[doc(hidden)]
pub struct ByGroupWith<'cg, S, A, K, P>(PhantomData<(S, A, K, P)>, PhantomData<fn(&'cg ())>);

// SAFETY: the entry is for that type.
unsafe impl<'cg, S: Shape<D>, A: GroupArguments, K, P: DeviceForm, const D: usize> GroupKind<D>
    for ByGroupWith<'cg, S, A, K, P>
where
    K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>, P::Value<'wg>) + Copy,
{
    type Shape = S;
    type Arguments = A;
    type Kernel = Bound<K, P>;
    type Named = K;
    const ENTRY: HostEntry = group_entry_with::<K, S, A, P, GroupLaunch<S, A, Bound<K, P>>, D>;
    const ARGUMENTS: Option<&'static ArgumentType> = Some(Bound::<K, P>::TYPE);
}

impl<F: GroupKind<D>, const D: usize> GroupForm<F, D> {
    /// What the block consists of, of which only the kernel's part is listed.
    const BLOCK: ArgumentType = ArgumentType {
        type_name: core::any::type_name::<F::Kernel>,
        size: size_of::<GroupLaunch<F::Shape, F::Arguments, F::Kernel>>(),
        length: ArgumentType::NO_ARRAY,
        parts: &[ArgumentPart {
            name: "",
            offset: offset_of!(GroupLaunch<F::Shape, F::Arguments, F::Kernel>, kernel),
            part: match F::ARGUMENTS {
                Some(kernel) => kernel,
                None => &ArgumentType::leaf(core::any::type_name::<F::Kernel>, size_of::<F::Kernel>()),
            },
        }],
    };
}

// SAFETY: all methods are about the captures, but for the name, which is that of the user's type in them. The entry is that of groups of `D`
// dimensions.
unsafe impl<F: GroupKind<D>, const D: usize> DescribeKernel for GroupForm<F, D> {
    fn type_id(&self) -> TypeId
    where
        Self: 'static,
    {
        TypeId::of::<GroupLaunch<F::Shape, F::Arguments, F::Kernel>>()
    }

    fn entry(&self) -> HostEntry {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        F::ENTRY
    }

    fn layout(&self) -> (usize, usize) {
        (
            size_of::<GroupLaunch<F::Shape, F::Arguments, F::Kernel>>(),
            align_of::<GroupLaunch<F::Shape, F::Arguments, F::Kernel>>(),
        )
    }

    fn type_name(&self) -> &'static str {
        core::any::type_name::<F::Named>()
    }

    fn arguments(&self) -> Option<&'static ArgumentType> {
        F::ARGUMENTS.is_some().then_some(const { &Self::BLOCK })
    }

    fn aspects(&self) -> u64 {
        0
    }

    fn sub_group(&self) -> u32 {
        0
    }

    fn form(&self) -> u32 {
        GroupSize::FORM | D as u32
    }

    fn group(&self) -> u64 {
        const { assert!(fits(&F::Shape::FIXED), "a work-group has fewer than 2^21 work-items along an axis") };
        if F::Shape::FIXED[0] == 0 {
            return 0;
        }
        let [z, y, x] = Range(F::Shape::FIXED).embed();
        ((z as u64) << GroupSize::EXTENT_BITS | y as u64) << GroupSize::EXTENT_BITS | x as u64
    }
}

/// Whether each extent has no more bits than a description has for it.
const fn fits(mut extent: &[usize]) -> bool {
    while let [first, rest @ ..] = extent {
        if *first >> GroupSize::EXTENT_BITS != 0 {
            return false;
        }
        extent = rest;
    }
    true
}

/// The host entry of a kernel over groups of `D` dimensions. A chunk is a number of groups.
///
/// # Safety
/// The contract of [`HostEntry`] for the type `GroupLaunch<S, A, K>`. In addition every group of the launch is in exactly one chunk. Groups have
/// the extent of the shape, and the chunk has as much memory as the arguments ask for. The kernel is the first parameter, where the device compiler looks
/// for captures. The block is the last.
#[expect(clippy::extra_unused_type_parameters, reason = "the device compiler finds the type of the block there")]
unsafe fn group_entry<'cg, K, S: Shape<D>, A: GroupArguments, B, const D: usize>(
    arguments: *const u8,
    launch: &LaunchRange,
    chunk: &HostChunk,
) where
    K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Copy,
{
    // SAFETY: `arguments` holds such a value by contract.
    let GroupLaunch { shape, arguments, kernel } = unsafe { *arguments.cast::<GroupLaunch<S, A, K>>() };
    // SAFETY: by the contract of this function.
    unsafe { run_groups(shape, arguments, kernel, launch, chunk) };
}

/// The host entry of a kernel with arguments over groups.
///
/// # Safety
/// That of [`group_entry`] for the type `GroupLaunch<S, A, Bound<K, P>>`.
#[expect(clippy::extra_unused_type_parameters, reason = "the device compiler finds the type of the block there")]
unsafe fn group_entry_with<'cg, K, S: Shape<D>, A: GroupArguments, P: DeviceForm, B, const D: usize>(
    arguments: *const u8,
    launch: &LaunchRange,
    chunk: &HostChunk,
) where
    K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>, P::Value<'wg>) + Copy,
{
    // SAFETY: `arguments` holds such a value by contract.
    let GroupLaunch { shape, arguments, kernel } = unsafe { *arguments.cast::<GroupLaunch<S, A, Bound<K, P>>>() };
    let Bound { kernel, arguments: passed } = kernel;
    // SAFETY: by the contract of this function.
    unsafe { run_groups(shape, arguments, with_values(kernel, passed), launch, chunk) };
}

/// A kernel with arguments as one without.
///
/// # Safety
/// It is called inside the launch that the arguments were taken apart for.
#[inline(always)]
unsafe fn with_values<'cg, K, S: Shape<D>, A: GroupArguments, P: DeviceForm, const D: usize>(
    kernel: K,
    passed: P,
) -> impl for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>)
where
    K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>, P::Value<'wg>) + Copy,
{
    // SAFETY: by the contract of this function; the values are made for one group.
    move |group, memory| kernel(group, memory, unsafe { values(passed) })
}

/// Runs a chunk of a launch over groups, or the group of the calling work-item of a device.
///
/// # Safety
/// That of [`group_entry`], but for its arguments.
#[inline(always)]
unsafe fn run_groups<'cg, S: Shape<D>, A: GroupArguments, const D: usize>(
    shape: S,
    arguments: A,
    kernel: impl for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>),
    launch: &LaunchRange,
    chunk: &HostChunk,
) {
    let items = size_of_group(shape.extent());
    if builtin::is_device_code() {
        // SAFETY: the compiled kernel passes its launch, and has the group's memory.
        let (group, memory) = unsafe { device_group(launch, shape, arguments) };
        // SAFETY: as above.
        let memory = unsafe { arguments.bind(memory, items) };
        builtin::begin_group_scope();
        kernel(group, memory);
        return;
    }
    // SAFETY: the chunk has as much memory as the arguments ask for; each group of the launch is in one chunk. One after the other uses the places.
    unsafe {
        arguments.with_places(items, chunk.group_memory, |places| {
            each_group(shape, launch, chunk, |group| kernel(group, arguments.bind_places(places, items)));
        });
    }
}

/// The id of the calling work-item's group, and the number of groups. For device code.
#[inline(always)]
fn group_in_launch<const D: usize>(launch: &DeviceLaunch) -> ([usize; D], [usize; D]) {
    let id = core::array::from_fn(|d| {
        let axis = 3 - D + d;
        // SAFETY: callers are compiled for a device.
        let position = unsafe {
            match axis {
                0 => builtin::group_position_z(),
                1 => builtin::group_position_y(),
                _ => builtin::group_position_x(),
            }
        };
        launch.offset[axis].wrapping_add(position) as usize
    });
    (id, core::array::from_fn(|d| launch.end[3 - D + d] as usize))
}

/// The group of the calling work-item of a device, and its local memory.
///
/// # Safety
/// Called by the entry of a kernel over groups on a device, which started one work-item for each position of each group.
#[inline(always)]
pub(super) unsafe fn device_group<'wg, 'cg: 'wg, S: Shape<D>, A: GroupArguments, const D: usize>(
    launch: &LaunchRange,
    shape: S,
    arguments: A,
) -> (Group<'wg, 'cg, D, S>, *mut u8) {
    // SAFETY: the compiled kernel passes its launch.
    let launch = unsafe { device_launch(launch) };
    let (id, groups) = group_in_launch(launch);
    // The launch was refused if it cannot be counted.
    let local_bytes = arguments.local_bytes().unwrap_or(0);
    let memory = match local_bytes {
        0 => core::ptr::without_provenance_mut(GroupSize::ALIGNMENT),
        // SAFETY: the launch has local memory.
        _ => unsafe { builtin::local_memory() },
    };
    // SAFETY: by the contract of this function.
    (unsafe { Group::new(id, groups, shape, local_bytes, core::ptr::null()) }, memory)
}

/// Calls `run` for each group of a chunk, in native code.
///
/// # Safety
/// Each group of the launch is in one chunk.
#[inline(always)]
pub(super) unsafe fn each_group<'wg, 'cg: 'wg, S: Shape<D>, const D: usize>(
    shape: S,
    launch: &LaunchRange,
    chunk: &HostChunk,
    run: impl Fn(Group<'wg, 'cg, D, S>),
) {
    let groups: [usize; D] = last_axes(launch.extent);
    let mut id = host_position(groups, chunk.begin);
    for _ in chunk.begin..chunk.end {
        // For a panic at group scope, which has no work-item of its own.
        leave_id(chunk, first_item(id, shape.extent()));
        // SAFETY: by the contract of this function.
        run(unsafe { Group::new(id, groups, shape, 0, chunk) });
        for d in (0..D).rev() {
            id[d] += 1;
            if id[d] < groups[d] || d == 0 {
                break;
            }
            id[d] = 0;
        }
    }
}

/// The id of the first work-item of a group.
#[inline(always)]
fn first_item<const D: usize>(group: [usize; D], extent: [usize; D]) -> [usize; D] {
    core::array::from_fn(|d| group[d].wrapping_mul(extent[d]))
}
