//! Ending tasks, and everything that follows from it: tasks that can be issued now, streams that can go on, tasks that fail.
//!
//! One loop over a list of what is left to do, so that nothing recurses however long a chain is. No lock is held while a completion is
//! told.

use std::collections::VecDeque;
use std::sync::Arc;

use oxisycl_backend::driver::{DriverTask, panic_failure, tell};
use oxisycl_backend::{Command, CommandFailure, ExecutionTimes, FailureKind, Outcome};
use smallvec::SmallVec;

use crate::clock;
use crate::gpu::Gpu;
use crate::module::CudaKernel;
use crate::record_pool::Slot;
use crate::stream::Stream;
use crate::task::{CudaTask, Dependencies, Follower, Followers};
use crate::task_pool::TASKS;

/// Something to do.
enum Step {
    /// End what has finished on a stream.
    Drain(Arc<Stream>),
    /// Go on with a task that waits for nothing any more.
    Release(Arc<CudaTask>),
    /// End a task that does not run, and whose dependencies have ended.
    EndDead(Arc<CudaTask>),
}

/// What is left to do, and tasks that have ended.
#[derive(Default)]
struct Steps {
    list: VecDeque<Step>,
    /// Dropped several at a time: what they refer to is counted, and the counters are also changed by threads that submit.
    ended: SmallVec<[Arc<CudaTask>; 32]>,
}

impl Steps {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { list: steps.into_iter().collect(), ended: SmallVec::new() }
    }

    fn push_back(&mut self, step: Step) {
        self.list.push_back(step);
    }

    fn let_go(&mut self, task: Arc<CudaTask>) {
        if self.ended.len() == self.ended.inline_size() {
            self.drop_ended();
        }
        self.ended.push(task);
    }

    fn drop_ended(&mut self) {
        self.ended.drain(..).for_each(|task| TASKS.end(task));
    }
}

/// Ends what has finished on a stream. Whether anything ended.
pub(crate) fn drain(stream: &Arc<Stream>, thorough: bool) -> bool {
    run(Steps::new([Step::Drain(stream.clone())]), thorough)
}

/// Ends the tasks that will not run.
pub(crate) fn tell_dead(core: &Gpu) -> bool {
    let dead = core.take_dead();
    !dead.is_empty() && run(Steps::new(dead.into_iter().map(Step::EndDead)), false)
}

/// Ends a task that a thread of the host has executed.
pub(crate) fn end_host_work(task: Arc<CudaTask>, result: Result<(), CommandFailure>, times: Option<ExecutionTimes>) {
    let mut steps = Steps::default();
    end(task, Outcome { result, times }, &mut steps);
    run(steps, false);
}

/// Goes on with a task that waits for nothing any more, without telling a completion: called by `enqueue`.
pub(crate) fn release_quietly(task: Arc<CudaTask>) {
    let mut steps = Steps::default();
    release(task, &mut steps);
    // A task that was just accepted has no followers, so this is the task itself.
    for step in steps.list {
        if let Step::EndDead(task) = step {
            let core = task.queue.core.clone();
            core.push_dead(task);
        }
    }
}

fn run(mut steps: Steps, thorough: bool) -> bool {
    let mut progress = false;
    while let Some(step) = steps.list.pop_front() {
        match step {
            Step::Drain(stream) => progress |= drain_one(&stream, thorough, &mut steps),
            Step::Release(task) => release(task, &mut steps),
            Step::EndDead(task) => {
                let failure = task.known_failure();
                end(task, Outcome { result: failure.map_or(Ok(()), Err), times: None }, &mut steps);
                progress = true;
            }
        }
    }
    steps.drop_ended();
    progress
}

fn drain_one(stream: &Arc<Stream>, thorough: bool, steps: &mut Steps) -> bool {
    let mut progress = false;
    if !stream.begin_drain() {
        return false;
    }
    loop {
        progress |= drain_once(stream, thorough, steps);
        if stream.end_drain() {
            return progress;
        }
    }
}

fn drain_once(stream: &Arc<Stream>, thorough: bool, steps: &mut Steps) -> bool {
    let mut progress = false;
    let polled = stream.poll(thorough).or_else(|error| {
        // The driver does not even tell how far the device has come.
        stream.core.context.give_up(error);
        stream.poll(thorough)
    });
    if polled.is_err() {
        return false;
    }
    let mut slots = SmallVec::<[Slot; 32]>::new();
    while let Some(task) = stream.first_over() {
        while let Some(earlier) = task.open_dependency() {
            if earlier.follow_for_stream(stream) {
                // It has finished on the device, or is lost; whoever looks at its stream finds that out.
                if let Some(place) = earlier.place() {
                    steps.push_back(Step::Drain(place.stream.clone()));
                }
                stream.core.records.give_back(&slots);
                return progress;
            }
        }
        let is_finished = task.place().is_some_and(|place| stream.has_finished(place.position));
        stream.remove_first_over(&task);
        // Where the device is lost, a kernel may write still: its record is not used again.
        slots.extend(task.record().filter(|_| is_finished));
        finish(task, is_finished, steps);
        stream.forget_ending();
        progress = true;
        if slots.len() == slots.inline_size() {
            stream.core.records.give_back(&slots);
            slots.clear();
        }
    }
    stream.core.records.give_back(&slots);
    progress
}

/// Ends a task that was on a stream.
fn finish(task: Arc<CudaTask>, is_finished: bool, steps: &mut Steps) {
    if is_finished {
        tell_output(&task);
    }
    let times = take_times(&task, is_finished);
    let result = match failure_of_finished(&task, is_finished) {
        None => Ok(()),
        Some(failure) => Err(failure),
    };
    end(task, Outcome { result, times }, steps);
}

/// Passes on what a kernel has printed.
fn tell_output(task: &CudaTask) {
    let (Some(buffer), None, Command::Kernel(command)) = (task.print, task.issue_error.get(), &task.command) else {
        return;
    };
    let kernel = command.code.as_deref().and_then(CudaKernel::of);
    if let (Some(kernel), Some(completion)) = (kernel, task.completion()) {
        tell(|| buffer.read(kernel.module.sites(), &mut |output| completion.output(output)));
    }
}

/// Why a task that was on a stream has failed, if it has.
fn failure_of_finished(task: &CudaTask, is_finished: bool) -> Option<CommandFailure> {
    let context = &task.queue.core.context;
    let report = task.record().filter(|_| is_finished).and_then(Slot::take_report);
    if !is_finished {
        return Some(task.failure_of(FailureKind::Device(context.lost_error())));
    }
    if let Some(cause) = task.cause() {
        // It was with the driver before the failure was known.
        return Some(task.spoiled_failure(&cause));
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

/// Ends a task whose dependencies have ended: tells its event, its completion and its followers, in this order.
fn end(task: Arc<CudaTask>, outcome: Outcome, steps: &mut Steps) {
    let ending = task.begin_end(outcome.result.as_ref().err().cloned());
    task.queue.core.forget_task();
    if let Some(completion) = ending.completion {
        // SAFETY: taken from the task, which its queue made for the command; it has ended, as have its dependencies.
        tell(|| unsafe { completion.complete(outcome) });
    }
    tell_followers(task.finish_end(), steps);
    task.queue.let_go(&task);
    for dependency in ending.dependencies {
        steps.let_go(dependency.task);
    }
    steps.let_go(task);
}

fn tell_followers(followers: Followers, steps: &mut Steps) {
    for follower in followers {
        match follower {
            Follower::Drain(stream) => steps.push_back(Step::Drain(stream)),
            Follower::Issue(task) | Follower::End(task) => {
                if task.arrive() {
                    steps.push_back(Step::Release(task));
                }
            }
        }
    }
}

/// Has a task wait for its dependencies: until they are issued, or until they have ended. True if there is nothing to wait for.
pub(crate) fn wait_for(task: &Arc<CudaTask>, dependencies: &Dependencies, until_end: bool) -> bool {
    task.begin_waiting();
    for dependency in dependencies {
        dependency.task.follow(task, until_end);
    }
    task.arrive()
}

/// Goes on with a task that waits for nothing any more.
fn release(task: Arc<CudaTask>, steps: &mut Steps) {
    let dependencies = task.dependencies();
    if task.known_failure().is_none()
        && let Some(cause) = task.cause()
    {
        task.doom(task.dependency_failure(&cause));
    }
    if task.known_failure().is_none() {
        if task.is_host_work {
            let core = task.queue.core.clone();
            return core.push_copy(task);
        }
        match task.queue.issue(&task, &dependencies) {
            Ok(()) => {
                let followers = task.set_issued();
                return tell_followers(followers, steps);
            }
            Err(error) => task.doom(task.failure_of(FailureKind::Device(error))),
        }
    }
    if dependencies.iter().all(|dependency| dependency.task.has_ended()) || wait_for(&task, &dependencies, true) {
        steps.push_back(Step::EndDead(task));
    }
}
