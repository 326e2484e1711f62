//! Putting one command on a stream: the driver calls for each kind of command.

use std::ffi::{c_int, c_void};

use oxisycl_backend::lane::Driver as _;
use oxisycl_backend::{Advice, Command, KernelCommand, NativeCommand, NativeQueue};
use smallvec::{SmallVec, smallvec};

use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::fill;
use crate::lane::{Cuda, CudaTask, record_of};
use crate::launch_shape::LaunchShape;
use crate::print_buffer::PrintBuffer;
use crate::records::Slot;
use crate::sys::{DEVICE_CPU, DevicePointer, MemoryLocation, RawDevice, RawFunction, advice};
use crate::transfer;

/// The parts of a launch that are kept from its acceptance on. The rest follows from the command again, since a task should be small.
pub(crate) struct Launch {
    pub(crate) function: RawFunction,
    pub(crate) fitness: GraphFitness,
}

/// Whether a graph can launch a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GraphFitness {
    /// A node of a graph cannot be that launch.
    Unfit,
    /// A node of a graph can be that launch, which fills the device.
    Large,
    /// A node of a graph can be that launch, and the device can run many such launches at once.
    Small,
}

/// Makes the driver calls for a task. The context is current. After an error, calls that succeeded have left their work on the stream.
pub(crate) fn emit(task: &CudaTask, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
    match &task.command {
        Command::Kernel(command) => launch(task, command, emitter),
        Command::Copy(copy) => transfer::copy(&task.queue.device.memory, copy, emitter),
        Command::Fill(command) => fill::fill(&task.queue.device.fill_kernels, command, emitter),
        Command::Prefetch { pointer, size } => prefetch(task, *pointer as DevicePointer, *size, emitter),
        Command::Native(native) => enqueue_native(task, native, emitter),
        Command::Advise { pointer, size, advice } => advise(task, *pointer as DevicePointer, *size, *advice),
        _ => Ok(()),
    }
}

fn launch(task: &CudaTask, command: &KernelCommand, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
    // Both were found when the command was accepted.
    let Some(Launch { function, .. }) = &task.launch else { return Ok(()) };
    let Some(shape) = Cuda::kernel_of(command).and_then(|kernel| LaunchShape::of(kernel, command)) else {
        return Ok(());
    };
    let record = record_of(task).map_or(0, Slot::address);
    let print = task.print.as_ref().map_or(0, PrintBuffer::address);
    let call_stack = task.queue.device.context.stack.call_stack();
    if let Some(buffer) = &task.print {
        buffer.clear(emitter)?;
    }
    let mut address = None;
    if let (Some(block), Some(kernel)) = (task.block(), Cuda::kernel_of(command)) {
        address = Some(block.fill(&command.arguments, kernel.entry.parameters, emitter)?);
    }
    let arguments = match &mut address {
        Some(address) => (&raw mut *address).cast::<c_void>(),
        None => command.arguments.as_ptr().cast_mut().cast::<c_void>(),
    };
    let [block_x, block_y, block_z] = shape.block;
    shape.grids.for_each(|grid| {
        let mut grid = shape.grid(grid);
        let [grid_x, grid_y, grid_z] = shape.blocks(&grid);
        let launch = &mut grid.launch;
        (launch.record, launch.print, launch.call_stack) = (record, print, call_stack);
        let mut parameters = [(&raw mut *launch).cast::<c_void>(), arguments];
        emitter.call(|driver, stream| {
            // SAFETY: the command keeps the function loaded. Its parameters are a launch and as many bytes as its image promises (checked
            // at loading and at acceptance), and the driver copies them. The arguments' pointers are valid by the issuer's promise.
            unsafe {
                driver.launch_kernel(
                    *function,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    shape.shared(),
                    stream,
                    parameters.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            }
        })
    })?;
    task.print.as_ref().map_or(Ok(()), |buffer| buffer.fetch(emitter))
}

/// Has other code put its work on the stream. That counts as a call, whatever it has done.
fn enqueue_native(task: &CudaTask, native: &NativeCommand, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
    let context = &task.queue.device.context;
    emitter.call(|_, stream| {
        let device = std::ptr::without_provenance_mut(context.device as usize);
        // SAFETY: the stream and context of the command's queue, and the context is current; the command was given to `issue`.
        unsafe { native.enqueue(NativeQueue { queue: stream.0, device, context: context.raw.0 }) };
        Ok(())
    })
}

/// Hints are for managed memory, and may be ignored.
fn prefetch(
    task: &CudaTask,
    pointer: DevicePointer,
    size: usize,
    emitter: &mut Emitter<'_>,
) -> Result<(), DriverError> {
    let context = &task.queue.device.context;
    if size == 0 || !transfer::is_managed(context, pointer) {
        return Ok(());
    }
    let device = context.device;
    ignore_hint_error(emitter.call(|driver, stream| {
        // SAFETY: managed memory, valid by the issuer's promise.
        let newer = unsafe { driver.mem_prefetch_async_v2(pointer, size, MemoryLocation::of(device), 0, stream) };
        // SAFETY: as above.
        newer.or_else(|| unsafe { driver.mem_prefetch_async(pointer, size, device, stream) }).unwrap_or(Ok(()))
    }))
}

fn advise(task: &CudaTask, pointer: DevicePointer, size: usize, hint: Advice) -> Result<(), DriverError> {
    let context = &task.queue.device.context;
    if size == 0 || !transfer::is_managed(context, pointer) {
        return Ok(());
    }
    let own = context.device;
    let calls: SmallVec<[(c_int, RawDevice); 2]> = match hint {
        Advice::Reset => smallvec![(advice::UNSET_READ_MOSTLY, own), (advice::UNSET_PREFERRED_LOCATION, own)],
        Advice::ReadMostly => smallvec![(advice::SET_READ_MOSTLY, own)],
        Advice::PreferDevice => smallvec![(advice::SET_PREFERRED_LOCATION, own)],
        Advice::PreferHost => smallvec![(advice::SET_PREFERRED_LOCATION, DEVICE_CPU)],
        _ => smallvec![],
    };
    for (hint, device) in calls {
        let driver = &context.driver;
        // SAFETY: managed memory, valid by the issuer's promise.
        let newer = unsafe { driver.mem_advise_v2(pointer, size, hint, MemoryLocation::of(device)) };
        // SAFETY: as above.
        let advised = newer.or_else(|| unsafe { driver.mem_advise(pointer, size, hint, device) });
        ignore_hint_error(advised.unwrap_or(Ok(())))?;
    }
    Ok(())
}

/// Ignores the error of a hint that the driver does not accept, unless the device is lost.
fn ignore_hint_error(result: Result<(), DriverError>) -> Result<(), DriverError> {
    result.or_else(|error| if error.is_sticky() { Err(error) } else { Ok(()) })
}
