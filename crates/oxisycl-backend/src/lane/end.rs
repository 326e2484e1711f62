//! Reporting one task that is over: its output, its result and its times.

use super::{Driver, Task};
use crate::driver::{call_completion, panic_failure};
use crate::{Command, CommandFailure, FailureKind, KernelOutput, Outcome};

/// Reports the end of a task that was on a lane. `is_finished` is false if the device was lost before it finished the task.
pub(super) fn end<D: Driver>(task: &Task<D>, is_finished: bool) {
    let output = if is_finished { output_of(task) } else { Vec::new() };
    if let (true, Some((size, block))) = (is_finished, &task.block) {
        task.queue.blocks.give_back(*size, block.clone());
    }
    let times = if task.queue.options.profiling { D::times(task, is_finished) } else { None };
    let result = failure_of(task, is_finished).map_or(Ok(()), Err);
    D::lanes(&task.queue.device).counts.end();
    if let Some(completion) = task.end() {
        // SAFETY: taken from the task, which its queue made for the command; the driver has done with it.
        call_completion(|| unsafe { completion.complete(Outcome { has_run: true, result, times, output }) });
    }
}

fn kernel_of<D: Driver>(task: &Task<D>) -> Option<&D::Kernel> {
    let Command::Kernel(command) = &task.command else { return None };
    D::kernel_of(command)
}

/// The output of a launch that may have printed. Its print buffer can be used again afterwards.
fn output_of<D: Driver>(task: &Task<D>) -> Vec<KernelOutput> {
    let Some(print) = &task.print else { return Vec::new() };
    let kernel = if task.error().is_none() { kernel_of(task) } else { None };
    let output = kernel.map(|kernel| D::read_print(print, D::sites(kernel)));
    task.queue.prints.give_back(print.clone());
    output.unwrap_or_default()
}

/// The failure of a task that was on a lane; `None` if it succeeded.
fn failure_of<D: Driver>(task: &Task<D>, is_finished: bool) -> Option<CommandFailure> {
    let device = &task.queue.device;
    if !is_finished {
        return Some(task.failure_of(FailureKind::Device(D::lost_error(device))));
    }
    // Taken in any case: the record is used again.
    let report = D::written_record(task).and_then(D::take_report);
    if let Some(error) = task.error() {
        return Some(task.failure_of(FailureKind::Device(D::fail(device, error))));
    }
    if let Command::Native(native) = &task.command {
        return native.take_failure().map(|kind| task.failure_of(kind));
    }
    let report = report?;
    let (Command::Kernel(command), Some(kernel)) = (&task.command, kernel_of(task)) else { return None };
    Some(task.failure_of(panic_failure(&report, &command.work_items(), D::sites(kernel))))
}
