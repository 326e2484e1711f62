//! What a launch over groups is made of, and the code that runs it.

use core::any::TypeId;
use core::marker::PhantomData;

use oxisycl_types::{GroupSize, HostChunk, HostEntry, LaunchRange};

use super::memory::GroupArguments;
use super::scope::{Group, size_of_group};
use super::shape::Shape;
use crate::kernel::{DescribeKernel, device_launch, host_position, leave_id};
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

/// What a kernel over groups captures: shape, memory and the kernel itself. Two launches of one closure with other shapes or memory are two kernels.
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

/// The form of `parallel_for_work_group`.
#[doc(hidden)]
pub struct GroupForm<'cg, S, A, K, const D: usize>(pub PhantomData<(S, A, K)>, pub PhantomData<fn(&'cg ())>);

// SAFETY: all methods are about `GroupLaunch<S, A, K>`, but for the name, which is that of the user's type in it. The entry is that of groups of `D`
// dimensions.
unsafe impl<'cg, S: Shape<D>, A: GroupArguments, K, const D: usize> DescribeKernel for GroupForm<'cg, S, A, K, D>
where
    K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Copy,
{
    fn type_id(&self) -> TypeId
    where
        Self: 'static,
    {
        TypeId::of::<GroupLaunch<S, A, K>>()
    }

    fn entry(&self) -> HostEntry {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        group_entry::<K, S, A, D>
    }

    fn layout(&self) -> (usize, usize) {
        (size_of::<GroupLaunch<S, A, K>>(), align_of::<GroupLaunch<S, A, K>>())
    }

    fn type_name(&self) -> &'static str {
        core::any::type_name::<K>()
    }

    fn form(&self) -> u32 {
        GroupSize::FORM | D as u32
    }

    fn group(&self) -> u64 {
        const { assert!(fits(&S::FIXED), "a work-group has fewer than 2^21 work-items along an axis") };
        if S::FIXED[0] == 0 {
            return 0;
        }
        let [z, y, x] = Range(S::FIXED).embed();
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
/// for captures.
unsafe fn group_entry<'cg, K, S: Shape<D>, A: GroupArguments, const D: usize>(
    arguments: *const u8,
    launch: &LaunchRange,
    chunk: &HostChunk,
) where
    K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Copy,
{
    // SAFETY: `arguments` holds such a value by contract.
    let GroupLaunch { shape, arguments, kernel } = unsafe { *arguments.cast::<GroupLaunch<S, A, K>>() };
    let items = size_of_group(shape.extent());
    if builtin::is_device_code() {
        // SAFETY: the compiled kernel passes its launch.
        let launch = unsafe { device_launch(launch) };
        let id = core::array::from_fn(|d| {
            let axis = 3 - D + d;
            // SAFETY: device code.
            let position = unsafe {
                match axis {
                    0 => builtin::group_position_z(),
                    1 => builtin::group_position_y(),
                    _ => builtin::group_position_x(),
                }
            };
            launch.offset[axis].wrapping_add(position) as usize
        });
        let groups = core::array::from_fn(|d| launch.end[3 - D + d] as usize);
        // The launch was refused if it cannot be counted.
        let local_bytes = arguments.local_bytes().unwrap_or(0);
        let memory = match local_bytes {
            0 => core::ptr::without_provenance_mut(GroupSize::ALIGNMENT),
            // SAFETY: the launch has local memory.
            _ => unsafe { builtin::local_memory() },
        };
        // SAFETY: the device starts one work-item for each position of each group; the group's memory has the size that was asked for.
        unsafe { kernel(Group::new(id, groups, shape, local_bytes, core::ptr::null()), arguments.bind(memory, items)) };
        return;
    }
    let groups: [usize; D] = core::array::from_fn(|d| launch.extent[3 - D + d]);
    let mut id = host_position(groups, chunk.begin);
    // SAFETY: the chunk has as much memory as the arguments ask for, by contract.
    unsafe {
        arguments.with_places(items, chunk.group_memory, |places| {
            for _ in chunk.begin..chunk.end {
                // For a panic at group scope, which has no work-item of its own.
                leave_id::<D>(chunk, core::array::from_fn(|d| id[d].wrapping_mul(shape.extent()[d])));
                // SAFETY: one group after the other uses the places; each group of the launch is in one chunk.
                kernel(Group::new(id, groups, shape, 0, chunk), arguments.bind_places(places, items));
                for d in (0..D).rev() {
                    id[d] += 1;
                    if id[d] < groups[d] || d == 0 {
                        break;
                    }
                    id[d] = 0;
                }
            }
        });
    }
}
