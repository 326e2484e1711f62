//! Ending tasks that the device has done with: their result, their output and their times are reported.
//!
//! No lock is held while a completion is called.

use std::sync::Arc;

use oxisycl_backend::driver::{DriverTask, panic_failure, tell};
use oxisycl_backend::{Command, CommandFailure, ExecutionTimes, FailureKind, Outcome};
use smallvec::SmallVec;

use crate::clock;
use crate::module::CudaKernel;
use crate::record_pool::Slot;
use crate::stream::Stream;
use crate::task::CudaTask;
use crate::task_pool::TASKS;

/// How many tasks are ended before what they leave is given back: it is counted, and the counters are also changed by threads that submit.
const AT_ONCE: usize = 32;

/// Ends what has finished on a stream. Whether anything ended.
pub(crate) fn drain(stream: &Arc<Stream>, thorough: bool) -> bool {
    let mut progress = false;
    if !stream.begin_drain() {
        return false;
    }
    loop {
        progress |= drain_once(stream, thorough);
        if stream.end_drain() {
            return progress;
        }
    }
}

fn drain_once(stream: &Arc<Stream>, thorough: bool) -> bool {
    let polled = stream.poll(thorough).or_else(|error| {
        // The driver does not even tell how far the device has come.
        stream.core.context.give_up(error);
        stream.poll(thorough)
    });
    if polled.is_err() {
        return false;
    }
    let mut progress = false;
    let mut slots = SmallVec::<[Slot; AT_ONCE]>::new();
    let mut ended = SmallVec::<[Arc<CudaTask>; AT_ONCE]>::new();
    let give_back = |slots: &mut SmallVec<[Slot; AT_ONCE]>, ended: &mut SmallVec<[Arc<CudaTask>; AT_ONCE]>| {
        stream.core.records.give_back(slots);
        slots.clear();
        ended.drain(..).for_each(|task| TASKS.end(task));
    };
    while let Some(task) = stream.take_first_over() {
        let is_finished = task.place().is_some_and(|place| stream.has_finished(place.position));
        end(&task, is_finished);
        // Where the device is lost, a kernel may write still: its record is not used again.
        slots.extend(task.record().filter(|_| is_finished));
        ended.push(task);
        progress = true;
        if ended.len() == AT_ONCE {
            give_back(&mut slots, &mut ended);
        }
    }
    give_back(&mut slots, &mut ended);
    progress
}

/// Ends a task that was on a stream.
fn end(task: &CudaTask, is_finished: bool) {
    if is_finished {
        tell_output(task);
    }
    let times = take_times(task, is_finished);
    let result = failure_of(task, is_finished).map_or(Ok(()), Err);
    task.queue.core.forget_task();
    if let Some(completion) = task.end() {
        // SAFETY: taken from the task, which its queue made for the command; the device has done with it.
        tell(|| unsafe { completion.complete(Outcome { has_run: true, result, times }) });
    }
}

/// Passes on what a kernel has printed.
fn tell_output(task: &CudaTask) {
    let (Some(buffer), Command::Kernel(command)) = (task.extras.print, &task.command) else { return };
    let kernel = command.code.as_deref().and_then(CudaKernel::of);
    if let (Some(kernel), Some(completion), None) = (kernel, task.completion(), task.issue_error.get()) {
        tell(|| buffer.read(kernel.module.sites(), &mut |output| completion.output(output)));
    }
    task.queue.prints.give_back(buffer);
}

/// Why a task that was on a stream has failed, if it has.
fn failure_of(task: &CudaTask, is_finished: bool) -> Option<CommandFailure> {
    let context = &task.queue.core.context;
    let report = task.record().filter(|_| is_finished).and_then(Slot::take_report);
    if !is_finished {
        return Some(task.failure_of(FailureKind::Device(context.lost_error())));
    }
    if let Some(error) = task.issue_error.get() {
        return Some(task.failure_of(FailureKind::Device(context.fail(*error))));
    }
    let report = report?;
    let Command::Kernel(command) = &task.command else { return None };
    let kernel = command.code.as_deref().and_then(CudaKernel::of)?;
    Some(task.failure_of(panic_failure(&report, &command.range, kernel.module.sites())))
}

fn take_times(task: &CudaTask, is_finished: bool) -> Option<ExecutionTimes> {
    let profile = task.take_profile()?;
    let context = &task.queue.core.context;
    let read = || {
        let _entered = context.enter().ok()?;
        let (start, end) = (profile.base.time_of(profile.start).ok()?, profile.base.time_of(profile.end).ok()?);
        // The two clocks are not exactly together; no command starts before it is submitted or ends after its end is seen.
        let now = clock::now().max(task.submitted);
        let start = start.clamp(task.submitted, now);
        Some(ExecutionTimes { start, end: end.clamp(start, now) })
    };
    let times = if is_finished { read() } else { None };
    context.return_timed_event(profile.start);
    context.return_timed_event(profile.end);
    times
}
