//! One issued command, from the call of `issue` to its completion.
//!
//! A [`HostTask`] owns the command and the completion, and is the event that the runtime gets. Who may touch them is
//! decided by [`Links`]: no thread until the last dependency has ended, then one owner, which is the executor.
//! Invariants: the owner calls [`complete`](HostTask::complete) exactly once. Afterwards the task holds no command, no
//! completion and no other task, so events may be kept for any time. Nothing here recurses along dependencies.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use oxisycl_backend::{
    BackendError, Command, CommandFailure, Completion, Dependency, DependencyKind, ExecutionTimes, FailureKind,
    Outcome, Priority, now,
};

use crate::event::task_of;
use crate::kernel::PanicReport;
use crate::links::{Follow, Links};

/// An executor of ready tasks.
pub(crate) trait Executor: Send + Sync {
    /// Accepts a task whose dependencies have ended without failure. Does not run it on the calling thread.
    fn accept(&self, task: Arc<HostTask>);

    /// Called when a task of this executor has ended, before its completion is called.
    fn ended(&self) {}

    /// The device's name, for messages.
    fn device_name(&self) -> &str;
}

/// The receiver of what a completed task leaves behind.
pub(crate) trait ReadySink {
    /// Takes a task that has become ready.
    fn ready(&mut self, task: Arc<HostTask>);

    /// Takes an ended task without other references, to free it.
    fn retire(&mut self, task: Arc<HostTask>) {
        drop(task);
    }
}

/// A sink that passes ready tasks to their executors.
pub(crate) struct HandOver;

impl ReadySink for HandOver {
    fn ready(&mut self, task: Arc<HostTask>) {
        task.hand_over();
    }
}

/// The executor of a task. Pools live as long as the process and are not reference-counted. A counter that all submitting and executing
/// threads change would cost more than the rest of an empty command.
#[derive(Clone)]
pub(crate) enum ExecutorRef {
    Pool(&'static dyn Executor),
    Device(Arc<dyn Executor>),
}

impl ExecutorRef {
    fn get(&self) -> &dyn Executor {
        match self {
            Self::Pool(pool) => *pool,
            Self::Device(device) => &**device,
        }
    }
}

/// The options of the queue that a task keeps.
#[derive(Clone, Copy)]
pub(crate) struct TaskOptions {
    pub(crate) priority: Priority,
    pub(crate) profiling: bool,
    /// The most threads that may take part in the command, at least one.
    pub(crate) max_threads: u32,
    /// The command's position, on a device whose order of execution depends on it.
    pub(crate) sequence: u64,
    /// Whether commands without work end without being executed.
    pub(crate) instant_hints: bool,
}

/// A task that waits for another one.
pub(crate) struct Follower {
    task: Arc<HostTask>,
    kind: DependencyKind,
}

pub(crate) struct HostTask {
    links: Links<Follower>,
    options: TaskOptions,
    executor: ExecutorRef,
    command: UnsafeCell<Option<Command>>,
    completion: UnsafeCell<Option<Arc<dyn Completion>>>,
}

// SAFETY: the two cells are written before the task is shared. Afterwards only the task's owner uses them (see `Links`), and threads read
// them that the owner lets take part in the command until it ends. Their contents are `Send + Sync`.
unsafe impl Sync for HostTask {}
// SAFETY: as above; every field is `Send`.
unsafe impl Send for HostTask {}

impl HostTask {
    /// Makes a task and links it to its dependencies. The task runs as soon as they have ended, perhaps before this returns. `old` is an
    /// ended task whose memory may be reused.
    pub(crate) fn submit(
        old: Option<Arc<Self>>,
        command: Command,
        dependencies: &[Dependency],
        completion: Arc<dyn Completion>,
        executor: ExecutorRef,
        options: TaskOptions,
    ) -> Result<Arc<Self>, BackendError> {
        if dependencies.iter().any(|dependency| task_of(&dependency.event).is_none()) {
            return Err(BackendError::Unsupported {
                device: executor.get().device_name().to_owned(),
                what: "an event of another backend as a dependency".to_owned(),
            });
        }
        if matches!(command, Command::Native(_)) {
            let what = "native commands: it has no driver".to_owned();
            return Err(BackendError::Unsupported { device: executor.get().device_name().to_owned(), what });
        }
        let task = Self {
            links: Links::new(dependencies.len()),
            options,
            executor,
            command: UnsafeCell::new(Some(command)),
            completion: UnsafeCell::new(Some(completion)),
        };
        let task = place(old, task);
        let mut n_ended = 1;
        for Dependency { event, kind } in dependencies {
            let follower = || Follower { task: Arc::clone(&task), kind: *kind };
            match task_of(event).map(|dependency| dependency.links.follow(follower)) {
                Some(Follow::Listed) => {}
                Some(Follow::Ended { succeeded }) => {
                    n_ended += 1;
                    task.dependency_ended(succeeded, *kind);
                }
                None => n_ended += 1,
            }
        }
        if task.links.subtract_pending(n_ended) {
            Arc::clone(&task).start(!dependencies.is_empty());
        }
        Ok(task)
    }

    /// Records how a dependency ended. `succeeded` is true if it ran without a failure.
    fn dependency_ended(&self, succeeded: bool, kind: DependencyKind) {
        if !succeeded && kind == DependencyKind::Data {
            self.links.poison();
        }
    }

    /// Called by the owner of a task whose last dependency had ended before the task was submitted.
    fn start(self: Arc<Self>, may_be_poisoned: bool) {
        if may_be_poisoned && self.links.is_poisoned() {
            self.complete(Outcome::not_run(), &mut HandOver);
        } else if self.is_instant() {
            let times = self.instant_times();
            self.complete(Outcome { times, ..Outcome::ran(Ok(())) }, &mut HandOver);
        } else {
            self.hand_over();
        }
    }

    /// Passes a ready task to its executor.
    pub(crate) fn hand_over(self: Arc<Self>) {
        match &self.executor {
            ExecutorRef::Pool(pool) => pool.accept(self),
            ExecutorRef::Device(device) => {
                let device = Arc::clone(device);
                device.accept(self);
            }
        }
    }

    pub(crate) fn links(&self) -> &Links<Follower> {
        &self.links
    }

    pub(crate) fn options(&self) -> TaskOptions {
        self.options
    }

    /// Whether the task is executed by the pool at that address.
    pub(crate) fn is_of_pool(&self, pool: *const ()) -> bool {
        matches!(&self.executor, ExecutorRef::Pool(executor) if std::ptr::from_ref(*executor).cast::<()>() == pool)
    }

    /// The command.
    ///
    /// # Safety
    /// The caller owns the task or takes part in its command with the owner's leave, and does not use the reference after
    /// `complete` was called.
    pub(crate) unsafe fn command(&self) -> &Command {
        // SAFETY: nothing writes the cell between the construction of the task and `complete`, by the caller's promise.
        match unsafe { &*self.command.get() } {
            Some(command) => command,
            None => &Command::Marker,
        }
    }

    /// The failure of this task because of a panic in its kernel. Called by the owner.
    pub(crate) fn panic_failure(&self, report: PanicReport) -> CommandFailure {
        let kind = FailureKind::Panic { message: report.message, location: report.location, item: report.item };
        self.failure(kind)
    }

    /// A failure of this task. Called by the owner.
    pub(crate) fn failure(&self, kind: FailureKind) -> CommandFailure {
        // SAFETY: the caller owns the task and has not completed it.
        CommandFailure::new(unsafe { self.command() }, self.executor.get().device_name(), kind)
    }

    fn is_instant(&self) -> bool {
        // SAFETY: called by the owner before the task is completed.
        let command = unsafe { self.command() };
        self.options.instant_hints
            && matches!(command, Command::Marker | Command::Prefetch { .. } | Command::Advise { .. })
    }

    fn instant_times(&self) -> Option<ExecutionTimes> {
        self.options.profiling.then(|| {
            let now = now();
            ExecutionTimes { start: now, end: now }
        })
    }

    /// Ends the task: marks it, passes tasks that are now ready to `sink`, and calls the completion. Also ends each task that does not run
    /// because of it. Called once, by the owner.
    pub(crate) fn complete(self: Arc<Self>, outcome: Outcome, sink: &mut dyn ReadySink) {
        // Tasks that end without running wait here, in the order in which they became ready.
        let mut ending = VecDeque::new();
        let mut current = (self, outcome);
        loop {
            let (task, outcome) = current;
            let succeeded = outcome.has_run && outcome.result.is_ok();
            for Follower { task: follower, kind } in task.links.end(succeeded) {
                follower.dependency_ended(succeeded, kind);
                if follower.links.subtract_pending(1) {
                    if follower.links.is_poisoned() {
                        ending.push_back((follower, Outcome::not_run()));
                    } else if follower.is_instant() {
                        let outcome = Outcome { times: follower.instant_times(), ..Outcome::ran(Ok(())) };
                        ending.push_back((follower, outcome));
                    } else {
                        sink.ready(follower);
                    }
                }
            }
            task.notify(outcome);
            // Relaxed is enough: if the count is one, this thread has the only reference, and no other thread can make one.
            if Arc::strong_count(&task) == 1 {
                sink.retire(task);
            } else {
                drop(task);
            }
            match ending.pop_front() {
                Some(next) => current = next,
                None => return,
            }
        }
    }

    /// Releases the command and calls the completion.
    fn notify(&self, outcome: Outcome) {
        // SAFETY: the caller owns the task, and all who took part in its command have finished.
        unsafe { *self.command.get() = None };
        // SAFETY: as above.
        let completion = unsafe { (*self.completion.get()).take() };
        self.executor.get().ended();
        if let Some(completion) = completion {
            // A completion must not panic. If one does, the hook has printed it; the thread goes on for the sake of other work.
            // SAFETY: taken from the task, so that it is called once; all who took part in the command have finished.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| unsafe { completion.complete(outcome) })) {
                crate::kernel::discard(payload);
            }
        }
    }
}

/// Moves `task` into the memory of `old`, if there is no other reference to that; else into new memory.
fn place(old: Option<Arc<HostTask>>, task: HostTask) -> Arc<HostTask> {
    if let Some(mut old) = old
        && let Some(slot) = Arc::get_mut(&mut old)
    {
        *slot = task;
        return old;
    }
    Arc::new(task)
}
