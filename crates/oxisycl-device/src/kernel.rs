//! Kernels, and the code that runs them: over a piece of their index space on a CPU, or one work-item of it on a device.
//!
//! The same entry serves both. In native code the device's half is dropped, because [`builtin::is_device_code`] is false there; the
//! device compiler makes it true and finds entries through [`DescribeKernel`].

use core::any::TypeId;
use core::marker::PhantomData;

use oxisycl_types::{ArgumentType, DeviceLaunch, HostChunk, HostEntry, LaunchRange};

use crate::{Captured, Item, Single, builtin};

/// What identifies a kernel: the functions of a vtable that the device compiler looks for in the program's code, and the runtime calls.
///
/// Implemented by the forms of a launch, without a value of the kernel.
///
/// # Safety
/// `type_id` and `layout` belong to the same type. `entry` is the entry of that type for the form of launch that `form` and `group`
/// describe. The device compiler and the runtime pass it a value of the type, which they never look at.
#[doc(hidden)]
pub unsafe trait DescribeKernel {
    /// The kernel's type. Callers outside the compiler may erase lifetimes first: they are not part of the id.
    fn type_id(&self) -> TypeId
    where
        Self: 'static;

    /// The kernel's code: a host entry in native code, and on a device what a launch calls with a [`DeviceLaunch`].
    fn entry(&self) -> HostEntry;

    /// Size and alignment of the kernel's type in bytes.
    fn layout(&self) -> (usize, usize);

    /// The compiler's name of the kernel's type.
    fn type_name(&self) -> &'static str;

    /// How it is launched: the dimensions of the launch's range, 0 for a single task, and [`GroupSize::FORM`](oxisycl_types::GroupSize::FORM) more for a range of work-groups.
    fn form(&self) -> u32;

    /// The group's extents along the axes of a launch if the kernel fixes them, else zero. The extent along `x` is in the lowest
    /// [`GroupSize::EXTENT_BITS`](oxisycl_types::GroupSize::EXTENT_BITS) bits, then follow `y` and `z`.
    fn group(&self) -> u64;

    /// What the block consists of, if there are arguments beside the kernel.
    fn arguments(&self) -> Option<&'static ArgumentType>;

    /// The aspects that a device has to have, as [`Aspects::bits`](oxisycl_types::Aspects::bits), if the kernel states some, else zero.
    fn aspects(&self) -> u64;

    /// The work-items of a sub-group if the kernel states them, else zero.
    fn sub_group(&self) -> u32;
}

/// The form of `parallel_for`.
#[derive(Debug)]
pub struct RangeForm<K, const D: usize>(pub PhantomData<K>);

/// The form of `single_task`.
#[derive(Debug)]
pub struct SingleForm<K>(pub PhantomData<K>);

// SAFETY: all methods are about `K`, and the entry is that of a range of `D` dimensions.
unsafe impl<K, const D: usize> DescribeKernel for RangeForm<K, D>
where
    K: for<'wi> Fn(Item<'wi, D>) + Copy,
{
    fn type_id(&self) -> TypeId
    where
        Self: 'static,
    {
        TypeId::of::<K>()
    }

    fn entry(&self) -> HostEntry {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        range_entry::<K, D>
    }

    fn layout(&self) -> (usize, usize) {
        (size_of::<K>(), align_of::<K>())
    }

    fn type_name(&self) -> &'static str {
        core::any::type_name::<K>()
    }

    fn form(&self) -> u32 {
        D as u32
    }

    fn group(&self) -> u64 {
        0
    }

    fn arguments(&self) -> Option<&'static ArgumentType> {
        None
    }

    fn aspects(&self) -> u64 {
        0
    }

    fn sub_group(&self) -> u32 {
        0
    }
}

// SAFETY: all methods are about `K`, and the entry is that of a single task.
unsafe impl<K> DescribeKernel for SingleForm<K>
where
    K: for<'wi> Fn(Single<'wi>) + Copy,
{
    fn type_id(&self) -> TypeId
    where
        Self: 'static,
    {
        TypeId::of::<K>()
    }

    fn entry(&self) -> HostEntry {
        single_entry::<K>
    }

    fn layout(&self) -> (usize, usize) {
        (size_of::<K>(), align_of::<K>())
    }

    fn type_name(&self) -> &'static str {
        core::any::type_name::<K>()
    }

    fn form(&self) -> u32 {
        0
    }

    fn group(&self) -> u64 {
        0
    }

    fn arguments(&self) -> Option<&'static ArgumentType> {
        None
    }

    fn aspects(&self) -> u64 {
        0
    }

    fn sub_group(&self) -> u32 {
        0
    }
}

/// A kernel as a named type, launched over a range with `launch`.
///
/// Closures are launched with `parallel_for`; the two are apart because one method for both would cost type inference.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel for `{I}`",
    note = "implement `Kernel<Item<'wi, D>>` for it, or use `parallel_for` with a closure"
)]
pub trait Kernel<I>: Copy + Send + Sync {
    /// Runs one work-item. Mark it `#[inline]`, so that it can become part of the loop over work-items.
    fn run(&self, item: I);
}

/// A single task as a named type.
pub trait SingleKernel: Copy + Send + Sync {
    /// Runs the task.
    fn run(&self, task: Single<'_>);
}

/// Gives a closure that is stored before it is launched the signature of a kernel.
///
/// ```
/// use oxisycl::prelude::*;
///
/// # fn main() -> oxisycl::Result {
/// let greet = oxisycl::kernel(|item: Item<1>| oxisycl::println!("work-item {}", item.index()));
/// let queue = Queue::default()?;
/// queue.parallel_for(2, greet)?;
/// queue.parallel_for(3, greet)?;
/// queue.wait()?;
/// # Ok(())
/// # }
/// ```
#[inline(always)]
pub fn kernel<const D: usize, K>(kernel: K) -> K
where
    K: for<'wi> Fn(Item<'wi, D>) + Captured + Send + Sync,
{
    kernel
}

/// Leaves the id of the work-item that is unwinding where the runtime finds it. Forgotten when the work-item ends well, so that
/// the loop over work-items stores nothing.
pub(crate) struct OnUnwind<'c, const D: usize> {
    pub(crate) id: [usize; D],
    pub(crate) chunk: &'c HostChunk,
}

impl<const D: usize> Drop for OnUnwind<'_, D> {
    #[cold]
    fn drop(&mut self) {
        leave_id(self.chunk, self.id);
    }
}

/// Leaves an id where the runtime finds it after a panic.
#[inline(always)]
pub(crate) fn leave_id<const D: usize>(chunk: &HostChunk, id: [usize; D]) {
    let mut full = [0; 3];
    full[3 - D..].copy_from_slice(&id);
    chunk.item.set(full);
}

#[inline(always)]
fn run_one<const D: usize>(
    kernel: &impl Fn(Item<'_, D>),
    id: [usize; D],
    end: [usize; D],
    offset: [usize; D],
    chunk: &HostChunk,
) {
    let guard = OnUnwind { id, chunk };
    // SAFETY: `run_rows` calls this once per id of its chunk, chunks of a launch are disjoint, and the item's lifetime is that
    // of this call.
    kernel(unsafe { Item::new(id, end, offset) });
    core::mem::forget(guard);
}

/// Runs consecutive work-items of one row.
#[inline(always)]
fn run_row<const D: usize>(
    kernel: &impl Fn(Item<'_, D>),
    id: [usize; D],
    row: core::ops::Range<usize>,
    end: [usize; D],
    offset: [usize; D],
    chunk: &HostChunk,
) {
    let first = row.start;
    builtin::each_item(row.end - first, |x| {
        let mut id = id;
        id[D - 1] = first + x;
        run_one(kernel, id, end, offset, chunk);
    });
}

/// Extent, offset and end of a launch. Apart from [`run_rows`], so that its loops are compiled for each number of dimensions, and not for each
/// kernel.
#[inline(always)]
fn bounds<const D: usize>(launch: &LaunchRange) -> [[usize; D]; 3] {
    let (extent, offset) = (last_axes(launch.extent), last_axes(launch.offset));
    [extent, offset, core::array::from_fn(|d| offset[d] + extent[d])]
}

/// The extents of the axes that a launch of `D` dimensions has. Apart for the reason of [`bounds`].
#[inline(always)]
pub(crate) fn last_axes<const D: usize>(full: [usize; 3]) -> [usize; D] {
    core::array::from_fn(|d| full[3 - D + d])
}

/// The id of the work-item with that row-major number. Apart for the reason of [`bounds`].
#[inline(always)]
fn first_id<const D: usize>(extent: [usize; D], offset: [usize; D], linear: usize) -> [usize; D] {
    let first = host_position(extent, linear);
    core::array::from_fn(|d| offset[d] + first[d])
}

/// Runs the work-items `chunk.begin..chunk.end` (row-major, offset not counted) of a launch.
#[inline(always)]
fn run_rows<const D: usize>(kernel: impl Fn(Item<'_, D>), launch: &LaunchRange, chunk: &HostChunk) {
    let [extent, offset, end] = bounds(launch);
    let row_length = extent[D - 1];
    let mut left = chunk.end - chunk.begin;
    if left == 0 {
        return;
    }
    let mut id = first_id(extent, offset, chunk.begin);
    loop {
        let first = id[D - 1];
        let n_items = left.min(offset[D - 1] + row_length - first);
        let last = first + n_items;
        if cfg!(panic = "abort") {
            // Nothing unwinds, so that the panic hook reads where the kernel is. A store for every item would keep the loop from being
            // vectorised.
            let mut x = first;
            while x < last {
                id[D - 1] = x;
                leave_id(chunk, id);
                let block_end = last.min(x.saturating_add(HostChunk::ITEMS_PER_STORE));
                run_row(&kernel, id, x..block_end, end, offset, chunk);
                x = block_end;
            }
        } else {
            run_row(&kernel, id, first..last, end, offset, chunk);
        }
        left -= n_items;
        if left == 0 {
            return;
        }
        id[D - 1] = offset[D - 1];
        for d in (0..D - 1).rev() {
            id[d] += 1;
            if id[d] < end[d] {
                break;
            }
            id[d] = offset[d];
        }
    }
}

/// The position of a unit with that row-major number.
#[inline(always)]
pub(crate) fn host_position<const D: usize>(extent: [usize; D], linear: usize) -> [usize; D] {
    let mut position = [0; D];
    let mut rest = linear;
    for d in (0..D).rev() {
        position[d] = rest % extent[d];
        rest /= extent[d];
    }
    position
}

/// The host entry of a kernel over a range of `D` dimensions.
///
/// # Safety
/// The contract of [`HostEntry`](oxisycl_types::HostEntry) for the type `K`; in addition every work-item of the launch is in
/// exactly one chunk.
pub unsafe fn range_entry<K, const D: usize>(arguments: *const u8, launch: &LaunchRange, chunk: &HostChunk)
where
    K: for<'wi> Fn(Item<'wi, D>) + Copy,
{
    // A copy on this stack, so that stores of the kernel cannot alias its captures and the loop can keep them in registers.
    // SAFETY: `arguments` holds a value of `K` by contract.
    let kernel = unsafe { *arguments.cast::<K>() };
    // SAFETY: by the contract of this function.
    unsafe { run_range(kernel, launch, chunk) };
}

/// Runs a chunk of a launch over a range, or the calling work-item of a device.
///
/// # Safety
/// That of [`range_entry`], but for its arguments.
#[inline(always)]
pub(crate) unsafe fn run_range<const D: usize>(kernel: impl Fn(Item<'_, D>), launch: &LaunchRange, chunk: &HostChunk) {
    if builtin::is_device_code() {
        // SAFETY: the compiled kernel passes its launch.
        run_on_device(kernel, unsafe { device_launch(launch) });
    } else {
        run_rows(|item: Item<'_, D>| kernel(item), launch, chunk);
    }
}

/// What a compiled kernel passes in the place of the launch.
///
/// # Safety
/// The caller is the entry of a kernel that was compiled for a device.
#[inline(always)]
pub(crate) unsafe fn device_launch(launch: &LaunchRange) -> &DeviceLaunch {
    // SAFETY: by the contract of this function it is a `DeviceLaunch`, whose alignment is that of its largest number.
    unsafe { &*(&raw const *launch).cast::<DeviceLaunch>() }
}

/// Runs the calling work-item, unless it lies beyond the launch.
#[inline(always)]
fn run_on_device<const D: usize>(kernel: impl Fn(Item<'_, D>), launch: &DeviceLaunch) {
    // SAFETY: this is the entry of a kernel, compiled for a device, and below it runs both work-items.
    let is_paired = || unsafe { D == 1 && builtin::is_paired() };
    if is_paired() {
        // With the first one inside the launch as well, which comes before it, so that no test stands between the two.
        // SAFETY: this is device code, of a paired kernel.
        let second = [0, 0, unsafe { builtin::second_position_x() }];
        if is_in_launch::<D>(launch, second) {
            // SAFETY: as below; no other thread has the two positions.
            let (first, second) =
                unsafe { (item_in_launch(launch, grid_positions::<D>()), item_in_launch(launch, second)) };
            kernel(first);
            // SAFETY: the first work-item of the position has run.
            unsafe { builtin::next_item() };
            kernel(second);
            return;
        }
    }
    let position = grid_positions::<D>();
    if is_in_launch::<D>(launch, position) {
        // SAFETY: the backend starts one work-item per grid position and launch, and the item's lifetime is that of this call.
        kernel(unsafe { item_in_launch(launch, position) });
        if is_paired() {
            // SAFETY: the end of the entry.
            unsafe { builtin::only_item() };
        }
    }
}

/// The position of the calling work-item along an axis of the grid, whose last axis is `x`. A grid has one position along the axes that the
/// launch does not have. For device code.
#[inline(always)]
pub(crate) fn grid_position(axis: usize) -> u64 {
    // SAFETY: callers are compiled for a device.
    unsafe {
        match axis {
            0 => builtin::grid_position_z(),
            1 => builtin::grid_position_y(),
            _ => builtin::grid_position_x(),
        }
    }
}

/// The position along the last `D` axes of the grid; 0 along the others.
#[inline(always)]
fn grid_positions<const D: usize>() -> [u64; 3] {
    core::array::from_fn(|axis| if axis < 3 - D { 0 } else { grid_position(axis) })
}

/// Whether there is a work-item at that position of the grid. A grid consists of whole groups, so positions and not ids are compared:
/// ids beyond a launch with a large offset are no numbers.
#[inline(always)]
pub(crate) fn is_in_launch<const D: usize>(launch: &DeviceLaunch, position: [u64; 3]) -> bool {
    (3 - D..3).all(|axis| position[axis] < u64::from(launch.count[axis]))
}

/// Id, end and offset of the work-item at that position of the grid, which [is there](is_in_launch).
///
/// The host has checked that all ids of a launch fit their type, so they are added without a check. In the development profile a check
/// would make every kernel one that can panic. It would also become a comparison of positions, which are compared with nothing but the
/// launch's size ([`is_in_launch`]).
#[inline(always)]
pub(crate) fn place_in_launch<const D: usize>(launch: &DeviceLaunch, position: [u64; 3]) -> [[usize; D]; 3] {
    let mut id = [0; D];
    let mut end = [0; D];
    let mut offset = [0; D];
    for d in 0..D {
        let axis = 3 - D + d;
        id[d] = launch.begin[axis].wrapping_add(position[axis]) as usize;
        offset[d] = launch.offset[axis] as usize;
        end[d] = launch.end[axis] as usize;
    }
    [id, end, offset]
}

/// The work-item at that position of the grid, which [is there](is_in_launch).
///
/// # Safety
/// No other item has the position, and its lifetime is that of the work-item's call.
#[inline(always)]
unsafe fn item_in_launch<'wi, const D: usize>(launch: &DeviceLaunch, position: [u64; 3]) -> Item<'wi, D> {
    let [id, end, offset] = place_in_launch(launch, position);
    // SAFETY: by the contract of this function.
    unsafe { Item::new(id, end, offset) }
}

/// The host entry of a single task.
///
/// # Safety
/// The contract of [`HostEntry`](oxisycl_types::HostEntry) for the type `K`; in addition it is called once per launch.
pub unsafe fn single_entry<K>(arguments: *const u8, _launch: &LaunchRange, _chunk: &HostChunk)
where
    K: for<'wi> Fn(Single<'wi>) + Copy,
{
    // SAFETY: `arguments` holds a value of `K` by contract.
    let kernel = unsafe { *arguments.cast::<K>() };
    // SAFETY: by the contract of this function.
    unsafe { run_single(kernel) };
}

/// Runs a single task, unless the calling work-item of a device is not its only one.
///
/// # Safety
/// That of [`single_entry`], but for its arguments.
#[inline(always)]
pub(crate) unsafe fn run_single(kernel: impl Fn(Single<'_>)) {
    // A device starts whole groups: all but one of the work-items have nothing to do.
    if builtin::is_device_code() && grid_position(2) != 0 {
        return;
    }
    // SAFETY: called once per launch, or by one work-item of the launch, and the token's lifetime is that of this call.
    kernel(unsafe { Single::new() });
}
