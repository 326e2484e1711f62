//! The thread that executes transfers of memory that the driver does not know.
//!
//! For such memory the driver's asynchronous copies wait for the device, or read the memory later than the call returns. Here they are
//! issued when everything they depend on has ended, and waited for, by this thread or by one that helps.

use std::io;
use std::sync::Arc;
use std::thread::Thread;

use oxisycl_backend::driver::{DriverTask, spawn};
use oxisycl_backend::{Command, CommandFailure, ExecutionTimes, FailureKind};

use crate::advance;
use crate::clock;
use crate::emitter::Emitter;
use crate::gpu::Gpu;
use crate::host_transfer;
use crate::task::CudaTask;
use crate::{execute, transfer};

/// Starts the thread.
pub(crate) fn start(core: &Arc<Gpu>) -> io::Result<Thread> {
    let worker = core.copier().clone();
    let weak = Arc::downgrade(core);
    spawn("oxisycl-cuda-copy".to_owned(), move || {
        while let Some(core) = weak.upgrade() {
            while run_one(&core) {}
            drop(core);
            worker.sleep(|| weak.upgrade().is_none_or(|core| core.has_copies()));
        }
    })
}

/// Executes one transfer, if there is one.
pub(crate) fn run_one(core: &Arc<Gpu>) -> bool {
    let Some(task) = core.pop_copy() else { return false };
    let start = clock::now();
    let result = execute(&task);
    let times = task.queue.options.profiling.then(|| ExecutionTimes { start, end: clock::now() });
    advance::end_host_work(task, result, times);
    true
}

fn execute(task: &CudaTask) -> Result<(), CommandFailure> {
    let context = &task.queue.core.context;
    if is_all_host(task) {
        // SAFETY: the enqueuer promises that the memory is valid until the task ends, and its dependencies have ended.
        unsafe { host_transfer::run(&task.command) };
        return Ok(());
    }
    let run = || {
        let _entered = context.enter()?;
        let stream = task.queue.core.utility;
        let mut emitter = Emitter::new(&context.driver, stream);
        let emitted = execute::emit(task, &mut emitter);
        // SAFETY: the stream lives as long as the core.
        let finished = unsafe { context.driver.stream_synchronize(stream) };
        emitted.and(finished).map_err(|error| context.fail(error))
    };
    run().map_err(|error| task.failure_of(FailureKind::Device(error)))
}

/// Whether no memory of the command is known to the driver.
fn is_all_host(task: &CudaTask) -> bool {
    let context = &task.queue.core.context;
    match &task.command {
        Command::Copy(copy) => {
            transfer::is_unknown(context, &copy.source, copy.extent)
                && transfer::is_unknown(context, &copy.target, copy.extent)
        }
        Command::Fill(_) => true,
        _ => false,
    }
}
