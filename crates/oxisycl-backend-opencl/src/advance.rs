//! Ending tasks that the driver has done with: their result, their output and their times are reported.
//!
//! No lock is held while a completion is called.

use std::sync::Arc;

use oxisycl_backend::driver::{DriverTask, panic_failure, tell};
use oxisycl_backend::{Command, CommandFailure, ExecutionTimes, FailureKind, Outcome};

use crate::core::Core;
use crate::ending;
use crate::error::ClError;
use crate::module::ClKernel;
use crate::task::{Progress, Task};
use crate::task_pool::TASKS;

/// Ends what can end. Whether anything did.
pub(crate) fn look(core: &Core) -> bool {
    let Some(_guard) = ending::begin_look() else { return false };
    let queues = core.queues();
    for queue in &queues {
        // Whoever enqueues next is told of an error.
        let _ = queue.flush();
    }
    let mut progress = false;
    for queue in queues {
        for (task, result) in queue.take_over(|task| look_at(core, task)) {
            end(&task, result);
            TASKS.end(task);
            progress = true;
        }
    }
    progress
}

/// How an issued task has ended, if it has. An error is the driver's.
fn look_at(core: &Core, task: &Task) -> Option<Result<(), ClError>> {
    match task.progress() {
        Progress::Over => Some(Ok(())),
        Progress::Ended(error) => Some(Err(error)),
        Progress::Waiting | Progress::Running if core.has_given_up() => {
            Some(Err(ClError { call: "the command", code: crate::sys::code::DEVICE_NOT_AVAILABLE }))
        }
        Progress::Waiting | Progress::Running => None,
    }
}

/// Ends a task that the driver had.
fn end(task: &Arc<Task>, result: Result<(), ClError>) {
    let context = &task.queue.core.context;
    let outcome = match result {
        Ok(()) => {
            tell_output(task);
            let failure = failure_of_finished(task);
            if let Some(slot) = task.record {
                task.queue.core.records.give_back(slot);
            }
            Outcome { has_run: true, result: failure.map_or(Ok(()), Err), times: take_times(task) }
        }
        Err(error) => {
            context.lose(error, task.shape.is_some().then(|| task.command.to_string()));
            // The kernel may write still: its record and its buffer are not used again.
            Outcome::ran(Err(task.failure_of(FailureKind::Device(context.lost_error()))))
        }
    };
    task.queue.core.forget_task();
    if let Some(completion) = task.end() {
        // SAFETY: taken from the task, which its queue made for the command; the driver has done with it.
        tell(|| unsafe { completion.complete(outcome) });
    }
}

/// Passes on what a kernel has printed.
fn tell_output(task: &Task) {
    let (Some(buffer), Command::Kernel(command)) = (&task.print, &task.command) else { return };
    let has_failed = task.issued().is_none_or(|issued| issued.error.is_some());
    let kernel = command.code.as_deref().and_then(ClKernel::of);
    if let (Some(kernel), Some(completion), false) = (kernel, task.completion(), has_failed) {
        tell(|| buffer.read(kernel.module.sites(), &mut |output| completion.output(output)));
    }
    task.queue.prints.give_back(buffer.clone());
}

/// Why a task that the driver has finished has failed, if it has.
fn failure_of_finished(task: &Task) -> Option<CommandFailure> {
    // Taken in any case: the record is used again.
    let report = task.record.and_then(|slot| slot.take_report());
    if let Some(error) = task.issued().and_then(|issued| issued.error) {
        return Some(task.failure_of(FailureKind::Device(task.queue.core.context.fail(error))));
    }
    let report = report?;
    let Command::Kernel(command) = &task.command else { return None };
    let kernel = command.code.as_deref().and_then(ClKernel::of)?;
    Some(task.failure_of(panic_failure(&report, &command.range, kernel.module.sites())))
}

fn take_times(task: &Task) -> Option<ExecutionTimes> {
    let core = &task.queue.core;
    task.queue.options.profiling.then(|| core.clock.times(&core.context, task))
}
