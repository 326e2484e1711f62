//! What a launch over an nd-range is made of, and the code that runs it.

use core::marker::PhantomData;

use oxisycl_types::{ArgumentType, HostChunk, HostEntry, HostGroup, HostWaiting, LaunchRange};

use super::{NdArguments, NdItem};
use crate::argument::{Bound, DeviceForm, values};
use crate::group::launch::{GroupKind, GroupLaunch, device_group, each_group};
use crate::group::scope::{Group, for_positions, linear, local_position, size_of_group};
use crate::group::shape::Shape;
use crate::kernel::{host_position, last_axes, leave_id};
use crate::{NdRange, Range, builtin};

/// A kernel over an nd-range as a named type, launched with `launch_nd_range`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel over an nd-range of this shape and memory",
    note = "implement `NdKernel<'cg, D, S, A>` for it, or use `parallel_for_nd_range` with a closure"
)]
pub trait NdKernel<'cg, const D: usize, S: Shape<D>, A: NdArguments>: Copy + Send + Sync {
    /// Runs one work-item. Mark it `#[inline]`, so that it can become part of the loop over work-items.
    fn run<'wi>(&self, item: NdItem<'wi, 'cg, D, S>, memory: A::Accessors<'wi>);
}

/// The range of a launch. It is an [`NdRange`] that the program computes, or a global range paired with the [`Shape`] of a group, which may
/// be fixed. Implemented by this crate only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an nd-range of {D} dimensions",
    note = "use `NdRange::new(global, local)`, or a pair of a global range and `Fixed1::<X>`, `Fixed2::<Y, X>` or `Fixed3::<Z, Y, X>`"
)]
pub trait NdExtent<const D: usize>: sealed::Sealed {
    /// The shape of a group.
    type Shape: Shape<D>;
    /// The global range, and the shape.
    #[doc(hidden)]
    fn parts(self) -> (Range<D>, Self::Shape);
}

mod sealed {
    pub trait Sealed {}
}

impl<const D: usize> sealed::Sealed for NdRange<D> {}
impl<const D: usize> NdExtent<D> for NdRange<D> {
    type Shape = Range<D>;
    fn parts(self) -> (Range<D>, Range<D>) {
        (self.global_range(), self.local_range())
    }
}

impl<R, S> sealed::Sealed for (R, S) {}
impl<R: Into<Range<D>>, S: Shape<D>, const D: usize> NdExtent<D> for (R, S) {
    type Shape = S;
    fn parts(self) -> (Range<D>, S) {
        (self.0.into(), self.1)
    }
}

/// The form of `parallel_for_nd_range`.
#[doc(hidden)]
pub struct ByItem<'cg, S, A, K>(PhantomData<(S, A, K)>, PhantomData<fn(&'cg ())>);

// SAFETY: the entry is for that type.
unsafe impl<'cg, S: Shape<D>, A: NdArguments, K, const D: usize> GroupKind<D> for ByItem<'cg, S, A, K>
where
    K: for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>) + Copy,
{
    type Shape = S;
    type Arguments = A;
    type Kernel = K;
    type Named = K;
    const ENTRY: HostEntry = nd_entry::<K, S, A, GroupLaunch<S, A, K>, D>;
}

/// The form of `parallel_for_nd_range_with`.
#[doc(hidden)]
pub struct ByItemWith<'cg, S, A, K, P>(PhantomData<(S, A, K, P)>, PhantomData<fn(&'cg ())>);

// SAFETY: the entry is for that type.
unsafe impl<'cg, S: Shape<D>, A: NdArguments, K, P: DeviceForm, const D: usize> GroupKind<D>
    for ByItemWith<'cg, S, A, K, P>
where
    K: for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>, P::Value<'wi>) + Copy,
{
    type Shape = S;
    type Arguments = A;
    type Kernel = Bound<K, P>;
    type Named = K;
    const ENTRY: HostEntry = nd_entry_with::<K, S, A, P, GroupLaunch<S, A, Bound<K, P>>, D>;
    const ARGUMENTS: Option<&'static ArgumentType> = Some(Bound::<K, P>::TYPE);
}

/// The host entry of a kernel over an nd-range of `D` dimensions. A chunk is a number of groups.
///
/// # Safety
/// As that of a kernel over groups. In native code the chunk's way to wait runs work-items on the calling thread.
#[expect(clippy::extra_unused_type_parameters, reason = "the device compiler finds the type of the block there")]
unsafe fn nd_entry<'cg, K, S: Shape<D>, A: NdArguments, B, const D: usize>(
    arguments: *const u8,
    launch: &LaunchRange,
    chunk: &HostChunk,
) where
    K: for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>) + Copy,
{
    // SAFETY: `arguments` holds such a value by contract.
    let GroupLaunch { shape, arguments, kernel } = unsafe { *arguments.cast::<GroupLaunch<S, A, K>>() };
    // SAFETY: by the contract of this function.
    unsafe { run_items(shape, arguments, kernel, launch, chunk) };
}

/// The host entry of a kernel with arguments over an nd-range.
///
/// # Safety
/// That of [`nd_entry`] for the type `GroupLaunch<S, A, Bound<K, P>>`.
#[expect(clippy::extra_unused_type_parameters, reason = "the device compiler finds the type of the block there")]
unsafe fn nd_entry_with<'cg, K, S: Shape<D>, A: NdArguments, P: DeviceForm, B, const D: usize>(
    arguments: *const u8,
    launch: &LaunchRange,
    chunk: &HostChunk,
) where
    K: for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>, P::Value<'wi>) + Copy,
{
    // SAFETY: `arguments` holds such a value by contract.
    let GroupLaunch { shape, arguments, kernel } = unsafe { *arguments.cast::<GroupLaunch<S, A, Bound<K, P>>>() };
    let Bound { kernel, arguments: passed } = kernel;
    // SAFETY: by the contract of this function.
    unsafe { run_items(shape, arguments, with_values(kernel, passed), launch, chunk) };
}

/// A kernel with arguments as one without.
///
/// # Safety
/// It is called inside the launch that the arguments were taken apart for.
#[inline(always)]
unsafe fn with_values<'cg, K, S: Shape<D>, A: NdArguments, P: DeviceForm, const D: usize>(
    kernel: K,
    passed: P,
) -> impl for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>) + Copy
where
    K: for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>, P::Value<'wi>) + Copy,
{
    // SAFETY: by the contract of this function; the values are made for one call.
    move |item, memory| kernel(item, memory, unsafe { values(passed) })
}

/// Runs a chunk of a launch over an nd-range, or the calling work-item of a device.
///
/// # Safety
/// That of [`nd_entry`], but for its arguments.
#[inline(always)]
unsafe fn run_items<'cg, S: Shape<D>, A: NdArguments, const D: usize>(
    shape: S,
    arguments: A,
    kernel: impl for<'wi> Fn(NdItem<'wi, 'cg, D, S>, A::Accessors<'wi>) + Copy,
    launch: &LaunchRange,
    chunk: &HostChunk,
) {
    let extent = shape.extent();
    let items = size_of_group(extent);
    if builtin::is_device_code() {
        let local = local_position(extent);
        // SAFETY: the compiled kernel passes its launch, and has the group's memory. A device starts one work-item for each position.
        unsafe {
            let (group, memory) = device_group(launch, shape, arguments);
            let item = NdItem::new(group, local, linear(local, extent), core::ptr::null());
            kernel(item, A::accessors(arguments.bind(memory, items)));
        }
        return;
    }
    // SAFETY: as for groups. Each work-item makes handles of the same places, and access by them is unsafe.
    unsafe {
        arguments.with_places(items, chunk.group_memory, |places| {
            each_group(shape, launch, chunk, |group| {
                if builtin::has_item_loops() {
                    run_loops(group, chunk, move |item| {
                        kernel(item, A::accessors(arguments.bind_places(places, items)))
                    });
                    return;
                }
                run_group(&group, chunk, |item| kernel(item, A::accessors(arguments.bind_places(places, items))));
            });
        });
    }
}

/// Runs the work-items of one group in native code.
///
/// # Safety
/// Called once for each group of a launch.
#[inline(always)]
unsafe fn run_group<'wi, 'cg: 'wi, S: Shape<D>, const D: usize>(
    group: &Group<'wi, 'cg, D, S>,
    chunk: &HostChunk,
    kernel: impl Fn(NdItem<'wi, 'cg, D, S>),
) {
    let shape_extent = group.extent();
    let id_of = |local: [usize; D]| group.phase_item(local, 0).global().id().0;
    let run_at = |host: &HostGroup<'_>, local: [usize; D], linear: usize| {
        let id = id_of(local);
        let guard = OnUnwind { id, chunk, host };
        if cfg!(panic = "abort") {
            builtin::in_turn();
            leave_id(chunk, id);
        }
        // SAFETY: each position once. The group is behind `host` as long as a work-item runs.
        let item = unsafe { NdItem::new(group.again(), local, linear, core::ptr::from_ref(host).cast()) };
        kernel(item);
        core::mem::forget(guard);
    };
    let run = |host: &HostGroup<'_>, linear: usize| run_at(host, host_position(shape_extent, linear), linear);
    let name = |linear: usize| leave_id(chunk, id_of(host_position(shape_extent, linear)));
    let host = HostGroup::new(size_of_group(shape_extent), &run, &name);
    let end = EndOfGroup { host: &host, waiting: chunk.waiting };
    for_positions(shape_extent, |local, linear| {
        // Once a work-item has waited, those behind it have run.
        if host.waiting.get().is_null() {
            run_at(&host, local, linear);
        }
    });
    core::mem::forget(end);
    let waiting = host.waiting.get();
    if !waiting.is_null() {
        // SAFETY: the group exists.
        unsafe { (chunk.waiting.finish)(waiting) };
    }
}

/// Runs the work-items of one group in native code whose compiler parts the loop over them at barriers.
///
/// What the body captures is the same for all work-items, and nothing writes it. So it captures all by value: what a reference leads to
/// could change.
///
/// # Safety
/// Called once for each group of a launch.
#[inline(always)]
unsafe fn run_loops<'wi, 'cg: 'wi, S: Shape<D>, const D: usize>(
    group: Group<'wi, 'cg, D, S>,
    chunk: &HostChunk,
    kernel: impl Fn(NdItem<'wi, 'cg, D, S>),
) {
    let [planes, rows, row] = Range(group.extent()).embed();
    builtin::each_position(planes, rows, row, move |z, y, x| {
        if z >= planes || y >= rows || x >= row {
            // SAFETY: the loop has such positions alone. What `assert_unchecked` says does not reach device code, see `local_position`.
            unsafe { core::hint::unreachable_unchecked() };
        }
        let local = last_axes([z, y, x]);
        let guard = OnUnwindInLoop { id: group.phase_item(local, 0).global().id().0, chunk };
        if cfg!(panic = "abort") {
            builtin::in_turn();
            leave_id(chunk, guard.id);
        }
        // SAFETY: each position once.
        kernel(unsafe { NdItem::new(group.again(), local, (z * rows + y) * row + x, core::ptr::null()) });
        core::mem::forget(guard);
    });
}

/// Leaves the id of the work-item that panicked, for [`run_loops`].
struct OnUnwindInLoop<'c, const D: usize> {
    id: [usize; D],
    chunk: &'c HostChunk,
}

impl<const D: usize> Drop for OnUnwindInLoop<'_, D> {
    #[inline(always)]
    fn drop(&mut self) {
        // Zero in front of the first dimension. Nothing else is done here that a compiler could take for a drop of the kernel's own.
        let of = |behind: usize| self.id.get(D.wrapping_sub(behind)).map_or(0, |position| *position as u64);
        // SAFETY: the chunk's own place, and the calling thread runs the chunk.
        unsafe { builtin::leave_item(self.chunk.item.as_ptr().cast(), of(3), of(2), of(1)) };
    }
}

/// Ends the others when the work-item that waited first unwinds.
///
/// Passes on what the host has noted of the group, not the group itself, and is inlined into the loop. A group whose address is known
/// elsewhere could not be optimised out of the loop over its work-items.
struct EndOfGroup<'g> {
    host: &'g HostGroup<'g>,
    waiting: &'static HostWaiting,
}

impl Drop for EndOfGroup<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let waiting = self.host.waiting.get();
        if !waiting.is_null() {
            // SAFETY: the group exists.
            unsafe { (self.waiting.abandon)(waiting) };
        }
    }
}

/// Leaves the id of the work-item that panicked, not of those that are unwound with it. Part of the loop as [`EndOfGroup`] is.
struct OnUnwind<'c, const D: usize> {
    id: [usize; D],
    chunk: &'c HostChunk,
    host: &'c HostGroup<'c>,
}

impl<const D: usize> Drop for OnUnwind<'_, D> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.host.has_failed.replace(true) {
            leave_id(self.chunk, self.id);
        }
    }
}
