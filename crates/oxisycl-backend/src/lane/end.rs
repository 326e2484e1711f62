//! Reporting one task that is over: its output, its result and its times.

use super::{Driver, Task};
use crate::driver::{call_completion, panic_failure};
use crate::{Command, CommandFailure, FailureKind, Outcome};

/// Reports the end of a task that was on a lane. `is_finished` is false if the device was lost before it finished the task.
pub(super) fn end<D: Driver>(task: &Task<D>, is_finished: bool) {
    if is_finished {
        report_output(task);
        if let Some((size, block)) = &task.block {
            task.queue.blocks.give_back(*size, block.clone());
        }
    }
    let times = if task.queue.options.profiling { D::times(task, is_finished) } else { None };
    let result = failure_of(task, is_finished).map_or(Ok(()), Err);
    D::lanes(&task.queue.device).counts.end();
    if let Some(completion) = task.end() {
        // SAFETY: taken from the task, which its queue made for the command; the driver has done with it.
        call_completion(|| unsafe { completion.complete(Outcome { has_run: true, result, times }) });
    }
}

fn kernel_of<D: Driver>(task: &Task<D>) -> Option<&D::Kernel> {
    let Command::Kernel(command) = &task.command else { return None };
    D::kernel_of(command)
}

/// Passes a kernel's output to the task's completion.
fn report_output<D: Driver>(task: &Task<D>) {
    let Some(print) = &task.print else { return };
    if let (Some(kernel), Some(completion), None) = (kernel_of(task), task.completion(), task.error()) {
        call_completion(|| D::read_print(print, D::sites(kernel), &mut |output| completion.output(output)));
    }
    task.queue.prints.give_back(print.clone());
}

/// The failure of a task that was on a lane; `None` if it succeeded.
fn failure_of<D: Driver>(task: &Task<D>, is_finished: bool) -> Option<CommandFailure> {
    let device = &task.queue.device;
    if !is_finished {
        return Some(task.failure_of(FailureKind::Device(D::lost_error(device))));
    }
    // Taken in any case: the record is used again.
    let report = task.record().and_then(D::take_report);
    if let Some(error) = task.error() {
        return Some(task.failure_of(FailureKind::Device(D::fail(device, error))));
    }
    let report = report?;
    let (Command::Kernel(command), Some(kernel)) = (&task.command, kernel_of(task)) else { return None };
    Some(task.failure_of(panic_failure(&report, &command.work_items(), D::sites(kernel))))
}
