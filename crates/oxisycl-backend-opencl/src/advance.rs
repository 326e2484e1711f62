//! Ending tasks, and everything that follows from it: tasks that can be given to the driver now, tasks that fail.
//!
//! One loop over a list of what is left to do, so that nothing recurses however long a chain is. No lock is held while a completion is
//! told.

use std::collections::VecDeque;
use std::sync::Arc;

use oxisycl_backend::driver::{DriverTask, panic_failure, tell};
use oxisycl_backend::{Command, CommandFailure, ExecutionTimes, FailureKind, Outcome};

use crate::core::Core;
use crate::ending;
use crate::error::ClError;
use crate::module::ClKernel;
use crate::task::{Dependencies, Progress, Task};
use crate::task_pool::TASKS;

/// Something to do.
enum Step {
    /// All dependencies of the task have ended.
    GoOn(Arc<Task>),
    /// End a task that the driver has finished, or will not finish.
    Finish(Arc<Task>, Result<(), ClError>),
    /// End a task that does not run, and whose dependencies have ended.
    EndDead(Arc<Task>),
}

type Steps = VecDeque<Step>;

/// Ends what can end. Whether anything did.
pub(crate) fn look(core: &Core) -> bool {
    let Some(_guard) = ending::begin_look() else { return false };
    core.flush();
    let mut progress = run(core.take_dead().into_iter().map(Step::EndDead).collect());
    let mut waiting = Vec::new();
    let mut steps = Steps::new();
    for task in core.take_ready() {
        match look_at(core, &task) {
            Some(result) => steps.push_back(Step::Finish(task, result)),
            None => waiting.push(task),
        }
    }
    // Back before anything is told: who is told may wait for one of them, and look.
    core.push_back_ready(waiting);
    progress |= run(steps);
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

fn run(mut steps: Steps) -> bool {
    let mut progress = false;
    while let Some(step) = steps.pop_front() {
        match step {
            Step::GoOn(task) => go_on(task, &mut steps),
            Step::Finish(task, result) => {
                finish(task, result, &mut steps);
                progress = true;
            }
            Step::EndDead(task) => {
                if let Some(slot) = task.record {
                    // No kernel has seen it.
                    task.queue.core.records.give_back(slot);
                }
                let failure = task.known_failure();
                end(task, Outcome { result: failure.map_or(Ok(()), Err), times: None }, &mut steps);
                progress = true;
            }
        }
    }
    progress
}

/// Has a task wait for its dependencies to end. Called once for each task, by `enqueue`; tells no completion.
pub(crate) fn follow(task: &Arc<Task>, dependencies: &Dependencies) {
    for dependency in dependencies {
        dependency.task.add_follower(task);
    }
    if !task.arrive() {
        return;
    }
    let core = &task.queue.core;
    if task.is_issued() {
        return core.push_ready(task.clone());
    }
    match issue_or_doom(task) {
        true => core.push_ready(task.clone()),
        false => core.push_dead(task.clone()),
    }
}

/// Goes on with a task whose dependencies have ended.
fn go_on(task: Arc<Task>, steps: &mut Steps) {
    if !task.is_issued() && !issue_or_doom(&task) {
        return steps.push_back(Step::EndDead(task));
    }
    let core = task.queue.core.clone();
    match look_at(&core, &task) {
        Some(result) => steps.push_back(Step::Finish(task, result)),
        None => core.push_ready(task),
    }
}

/// Gives a task to the driver whose dependencies have ended, unless one of them has failed. Whether the driver has it.
fn issue_or_doom(task: &Arc<Task>) -> bool {
    if task.known_failure().is_none()
        && let Some(cause) = task.cause()
    {
        task.doom(task.dependency_failure(&cause));
    }
    if task.known_failure().is_some() {
        return false;
    }
    match task.queue.issue(task, &Dependencies::new()) {
        Ok(()) => true,
        Err(error) => {
            task.doom(task.failure_of(FailureKind::Device(error)));
            false
        }
    }
}

/// Ends a task that the driver had.
fn finish(task: Arc<Task>, result: Result<(), ClError>, steps: &mut Steps) {
    if let Err(error) = result {
        let context = &task.queue.core.context;
        context.lose(error, task.shape.is_some().then(|| task.command.to_string()));
        // The kernel may write still: its record is not used again.
        let failure = task.failure_of(FailureKind::Device(context.lost_error()));
        return end(task, Outcome { result: Err(failure), times: None }, steps);
    }
    tell_output(&task);
    let failure = failure_of_finished(&task);
    if let Some(slot) = task.record {
        task.queue.core.records.give_back(slot);
    }
    let times = take_times(&task);
    end(task, Outcome { result: failure.map_or(Ok(()), Err), times }, steps);
}

/// Passes on what a kernel has printed.
fn tell_output(task: &Task) {
    let (Some(buffer), Command::Kernel(command)) = (&task.print, &task.command) else { return };
    if task.issued().is_none_or(|issued| issued.error.is_some()) {
        return;
    }
    let kernel = command.code.as_deref().and_then(ClKernel::of);
    if let (Some(kernel), Some(completion)) = (kernel, task.completion()) {
        tell(|| buffer.read(kernel.module.sites(), &mut |output| completion.output(output)));
    }
}

/// Why a task that the driver has finished has failed, if it has.
fn failure_of_finished(task: &Task) -> Option<CommandFailure> {
    // Taken in any case: the record is used again.
    let report = task.record.and_then(|slot| slot.take_report());
    if let Some(cause) = task.cause() {
        // It was with the driver before the failure was known.
        return Some(task.spoiled_failure(&cause));
    }
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

/// Ends a task whose dependencies have ended: tells its event, its completion and its followers, in this order.
fn end(task: Arc<Task>, outcome: Outcome, steps: &mut Steps) {
    let ending = task.begin_end(outcome.result.as_ref().err().cloned());
    task.queue.core.forget_task();
    if let Some(completion) = ending.completion {
        // SAFETY: taken from the task, which its queue made for the command; it has ended, as have its dependencies.
        tell(|| unsafe { completion.complete(outcome) });
    }
    for follower in task.finish_end() {
        if follower.arrive() {
            steps.push_back(Step::GoOn(follower));
        }
    }
    ending.dependencies.into_iter().for_each(|dependency| TASKS.end(dependency.task));
    TASKS.end(task);
}
