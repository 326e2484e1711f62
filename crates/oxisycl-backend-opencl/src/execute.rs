//! Putting one command on a driver's queue: the calls for each kind of command.

use std::ffi::c_void;

use oxisycl_backend::{Command, KernelCommand, NativeCommand, NativeQueue};
use oxisycl_types::{DeviceLaunch, GroupSize};

use crate::emitter::Emitter;
use crate::error::{Result, check};
use crate::fill;
use crate::issued::Resources;
use crate::lane::ClTask;
use crate::module::ClKernel;
use crate::print_buffer::PrintBuffer;
use crate::sys::Object;
use crate::transfer;

/// Makes the driver calls for a task. `follows` says whether the command has to come after others that have not ended. After an error,
/// calls that succeeded have left their work on the queue.
pub(crate) fn emit(task: &ClTask, follows: bool, emitter: &mut Emitter<'_>, resources: &mut Resources) -> Result<()> {
    match &task.command {
        Command::Kernel(command) => launch(task, command, emitter, resources),
        Command::Copy(copy) => transfer::copy(copy, emitter),
        Command::Fill(command) => fill::fill(command, emitter, &mut resources.stage),
        Command::Prefetch { pointer, size } => {
            prefetch(*pointer, *size, emitter);
            Ok(())
        }
        Command::Native(native) => return enqueue_native(native, emitter),
        // Advice has no values that OpenCL gives a meaning to.
        _ => Ok(()),
    }?;
    // A marker that waits for no event waits for all that is on the queue, which is right only where that is in order. Without one the
    // task is over at once: what it depends on gave the driver nothing to do either.
    let needs_marker = emitter.has_waits() || (follows && emitter.keeps_order());
    if !emitter.has_begun() && needs_marker { emitter.marker() } else { Ok(()) }
}

/// Has other code put its work on the queue. A barrier before it waits for the command's dependencies, and a marker behind it for the work.
/// Both are for queues out of order; on others they order nothing and have the command's events.
fn enqueue_native(native: &NativeCommand, emitter: &mut Emitter<'_>) -> Result<()> {
    let context = emitter.context();
    emitter.barrier()?;
    emitter.call_native(|queue| {
        // SAFETY: the queue, device and context of the command's queue; the command was given to `issue`.
        unsafe { native.enqueue(NativeQueue { queue: queue.0, device: context.device.0, context: context.raw.0 }) };
    });
    emitter.marker_of_all()
}

fn launch(task: &ClTask, command: &KernelCommand, emitter: &mut Emitter<'_>, resources: &mut Resources) -> Result<()> {
    // Both were made sure of when the command was accepted.
    let Some(kernel) = command.code.as_deref().and_then(ClKernel::of) else { return Ok(()) };
    let Some(shape) = &task.launch else { return Ok(()) };
    let record = task.record().map_or(0, |slot| slot.address());
    let print = task.print.as_ref().map_or(0, PrintBuffer::address);
    if let Some(buffer) = &task.print {
        buffer.clear(emitter)?;
    }
    if let Some(slot) = task.record() {
        slot.clear(emitter)?;
    }
    let mut address = None;
    if let Some(block) = task.block() {
        // SAFETY: the task keeps both, and the sizes were compared when the command was accepted.
        address = Some(unsafe { block.fill(&command.arguments, kernel.entry.parameters, emitter) }?);
    }
    emitter.next_stage()?;
    let context = emitter.context();
    // Arguments belong to the kernel until it is issued.
    let mut state = kernel.state.lock();
    let mut list =
        context.sharing.set_indirect_access(&context.functions, context.raw, kernel.raw, &mut state.indirect)?;
    resources.launch = list.begin(&task.queue.device.context);
    if let Some(address) = &address {
        set_argument(emitter, kernel.raw, 1, size_of_val(address), (&raw const *address).cast())?;
    } else if kernel.entry.parameters.size > 0 {
        set_argument(emitter, kernel.raw, 1, kernel.entry.parameters.size, command.arguments.as_ptr().cast())?;
    }
    if let Some(group) = command.group.filter(|_| kernel.entry.groups.uses_local_memory) {
        let index = if kernel.entry.parameters.size > 0 { 2 } else { 1 };
        // A kernel may name memory that a launch has none of; no bytes are no argument.
        set_argument(emitter, kernel.raw, index, group.local_bytes.max(GroupSize::ALIGNMENT), std::ptr::null())?;
    }
    let is_of_groups = command.group.is_some();
    let grids = if is_of_groups { shape.grids_of_groups(&command.range) } else { shape.grids(&command.range) };
    let Some(grids) = grids else { return Ok(()) };
    let (dimensions, local) = (shape.dimensions(), shape.local());
    grids.for_each(|grid| {
        let (grid, positions) = if is_of_groups {
            (grid.of_groups(shape.local().map(|n| n as u32)), shape.global_of_groups(&grid))
        } else {
            (grid, shape.global(&grid))
        };
        let launch = DeviceLaunch { record, print, ..grid.launch };
        // Programs launch the same kernel over the same range again and again.
        if state.launch != Some(launch) {
            state.launch = None;
            set_argument(emitter, kernel.raw, 0, size_of::<DeviceLaunch>(), (&raw const launch).cast())?;
            state.launch = Some(launch);
        }
        emitter.call("clEnqueueNDRangeKernel", |functions, queue, n, list, event| {
            let (global, local, no_offset) = (positions.as_ptr(), local.as_ptr(), std::ptr::null());
            // SAFETY: queue and kernel are live (the command keeps its kernel), the arrays have as many dimensions as are said, and the
            // events are live. All arguments are set (their number and sizes were checked); what they point to is valid by the
            // issuer's promise.
            unsafe {
                let enqueue = functions.clEnqueueNDRangeKernel;
                enqueue(queue, kernel.raw.0, dimensions, no_offset, global, local, n, list, event)
            }
        })
    })?;
    drop(list);
    drop(state);
    if task.print.is_some() || task.record().is_some_and(|slot| slot.is_copied()) {
        emitter.next_stage()?;
    }
    if let Some(slot) = task.record() {
        slot.fetch(emitter)?;
    }
    task.print.as_ref().map_or(Ok(()), |buffer| buffer.fetch(emitter))
}

fn set_argument(emitter: &Emitter<'_>, kernel: Object, index: u32, size: usize, value: *const c_void) -> Result<()> {
    // SAFETY: a live kernel, whose arguments the caller has locked, and a value of that size, which is copied.
    check("clSetKernelArg", unsafe { (emitter.context().functions.clSetKernelArg)(kernel.0, index, size, value) })
}

/// Ignores the error of a hint that the driver does not accept.
fn prefetch(pointer: *mut u8, size: usize, emitter: &mut Emitter<'_>) {
    let Some(migrate) = emitter.context().sharing.migrate.filter(|_| size > 0) else { return };
    let _ = emitter.call("clEnqueueMigrateMemINTEL", |_, queue, n, list, event| {
        // SAFETY: a live queue, live events, and shared memory that is valid by the issuer's promise; no flags.
        unsafe { migrate(queue, pointer.cast(), size, 0, n, list, event) }
    });
}
