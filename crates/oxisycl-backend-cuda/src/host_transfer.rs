//! Transfers of memory that the driver does not know, which threads of the host execute once everything before them has ended.
//!
//! For such memory the driver's asynchronous copies wait for the device (the quirk `waiting-copies`), or read it later than the call returns. Those that touch
//! no memory of a device are made here.

use oxisycl_backend::driver::transfer_on_host;
use oxisycl_backend::{Command, CommandFailure, ExecutionTimes, FailureKind, Outcome, now};

use crate::emitter::Emitter;
use crate::memory::CudaMemory;
use crate::transfer;

/// Executes a copy or a fill, and waits until it is complete.
///
/// # Safety
/// The command's memory is valid and used by nothing else.
pub(crate) unsafe fn execute(memory: &CudaMemory, command: &Command, is_profiling: bool) -> Outcome {
    let context = &memory.context;
    let start = now();
    let is_unknown = |pitched, extent| transfer::is_unknown(context, pitched, extent);
    let run = || {
        let _entered = context.enter()?;
        let copy = match command {
            Command::Copy(copy)
                if !(is_unknown(&copy.source, copy.extent) && is_unknown(&copy.target, copy.extent)) =>
            {
                copy
            }
            _ => {
                // SAFETY: by the contract of this function.
                unsafe { transfer_on_host(command) };
                return Ok(());
            }
        };
        let stream = memory.utility;
        let emitted = transfer::copy(memory, copy, &mut Emitter::new(&context.driver, stream));
        // SAFETY: the stream lives as long as the memory.
        let finished = unsafe { context.driver.stream_synchronize(stream) };
        emitted.and(finished).map_err(|error| context.fail(error))
    };
    let result = run().map_err(|error| CommandFailure::new(command, &*context.name, FailureKind::Device(error)));
    let times = is_profiling.then(|| ExecutionTimes { start, end: now() });
    Outcome { times, ..Outcome::ran(result) }
}
