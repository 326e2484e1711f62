//! A command from its acceptance to its end: what it waits for, who waits for it, and how it ended. It is also the command's event.
//!
//! Invariants:
//! - The status only grows. A task is issued at most once, and ends exactly once.
//! - A task *ends* after all its dependencies have ended; its completion has been told when the status says so. The event says
//!   `Complete` from just before that, so that a completion sees its own command and all earlier ones as complete.
//! - A follower is on a task's list, or was told that what it waits for has happened, never both. The lock decides which.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use oxisycl_backend::driver::{self, DriverTask, cause_among};
use oxisycl_backend::{Command, CommandFailure, Completion, Event, EventStatus};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::clock::Base;
use crate::error::DriverError;
use crate::execute::Launch;
use crate::print_pool::PrintBuffer;
use crate::queue::QueueShared;
use crate::record_pool::Slot;
use crate::stream::Stream;
use crate::sys::RawEvent;

const DEFERRED: u8 = 0;
const ISSUED: u8 = 1;
const TELLING: u8 = 2;
const SUCCEEDED: u8 = 3;
const FAILED: u8 = 4;

pub(crate) type Dependencies = driver::Dependencies<CudaTask>;
pub(crate) type TaskDependency = driver::TaskDependency<CudaTask>;
pub(crate) type Followers = SmallVec<[Follower; 1]>;

/// Who waits for a task, and for what.
pub(crate) enum Follower {
    /// A task that can be put behind this one once it is on a stream.
    Issue(Arc<CudaTask>),
    /// A task that has to wait on the host until this one has ended.
    End(Arc<CudaTask>),
    /// A stream whose first task has finished on the device, and ends once this one has.
    Drain(Arc<Stream>),
}

/// Where a task was put.
pub(crate) struct Place<'a> {
    pub(crate) stream: &'a Arc<Stream>,
    /// Its number in the stream.
    pub(crate) position: u64,
}

/// What a profiled command leaves behind.
pub(crate) struct Profile {
    pub(crate) base: Arc<Base>,
    pub(crate) start: RawEvent,
    pub(crate) end: RawEvent,
}

pub(crate) struct CudaTask {
    pub(crate) queue: Arc<QueueShared>,
    pub(crate) command: Command,
    /// Its place in the order in which the device's tasks were accepted.
    pub(crate) number: u64,
    /// How a kernel is launched.
    pub(crate) launch: Option<Launch>,
    /// Where the launch prints.
    pub(crate) print: Option<PrintBuffer>,
    /// Executed by a thread of the host, which waits for the device.
    pub(crate) is_host_work: bool,
    /// On the host's clock, of profiled commands.
    pub(crate) submitted: u64,
    /// What went wrong after a part of the command was on the device already.
    pub(crate) issue_error: OnceLock<DriverError>,
    /// The address of the panic record, or 0. Written before the task is put on a stream.
    record: AtomicU64,
    /// Which of the queue's streams it is on.
    stream_index: AtomicUsize,
    /// Its number in the stream, or 0 as long as it is on none. Published by the status, and by the stream's lock.
    position: AtomicU64,
    status: AtomicU8,
    /// What the task still waits for before it can be released, plus one while that is being counted.
    blockers: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    dependencies: Dependencies,
    followers: Followers,
    completion: Option<Arc<dyn Completion>>,
    profile: Option<Profile>,
    /// Before the end: the task will not run, for this reason. After it: why it failed.
    failure: Option<CommandFailure>,
}

/// What is left of a task that is ending.
pub(crate) struct Ending {
    pub(crate) completion: Option<Arc<dyn Completion>>,
    /// To be dropped after the task's followers were told.
    pub(crate) dependencies: Dependencies,
}

impl CudaTask {
    /// A task that nobody knows yet. With `is_issued`, it will be put on a stream before anybody does.
    #[expect(clippy::too_many_arguments, reason = "called once")]
    #[inline(always)]
    pub(crate) fn new(
        queue: Arc<QueueShared>,
        number: u64,
        command: Command,
        launch: Option<Launch>,
        print: Option<PrintBuffer>,
        is_host_work: bool,
        is_issued: bool,
        dependencies: Dependencies,
        completion: Arc<dyn Completion>,
    ) -> Self {
        Self {
            number,
            submitted: if queue.options.profiling { crate::clock::now() } else { 0 },
            queue,
            command,
            launch,
            print,
            is_host_work,
            issue_error: OnceLock::new(),
            record: AtomicU64::new(0),
            stream_index: AtomicUsize::new(0),
            position: AtomicU64::new(0),
            status: AtomicU8::new(if is_issued { ISSUED } else { DEFERRED }),
            blockers: AtomicUsize::new(0),
            state: Mutex::new(State {
                dependencies,
                followers: Followers::new(),
                completion: Some(completion),
                profile: None,
                failure: None,
            }),
        }
    }

    pub(crate) fn place(&self) -> Option<Place<'_>> {
        // Acquire pairs with `set_place`: the index is that of the position.
        let position = self.position.load(Ordering::Acquire);
        (position > 0)
            .then(|| Place { stream: &self.queue.streams[self.stream_index.load(Ordering::Relaxed)], position })
    }

    /// Who is told of the end, as long as it has not come.
    pub(crate) fn completion(&self) -> Option<Arc<dyn Completion>> {
        self.state.lock().completion.clone()
    }

    /// The panic record of the launch.
    pub(crate) fn record(&self) -> Option<Slot> {
        Slot::at(self.record.load(Ordering::Relaxed))
    }

    /// Gives the launch a panic record, or takes it away. Called with the lock of the stream that it is being put on.
    pub(crate) fn set_record(&self, slot: Option<Slot>) {
        self.record.store(slot.map_or(0, Slot::address), Ordering::Relaxed);
    }

    pub(crate) fn is_issued(&self) -> bool {
        self.status.load(Ordering::Acquire) >= ISSUED
    }

    /// Says that the task will not run. The first reason counts.
    pub(crate) fn doom(&self, failure: CommandFailure) {
        self.state.lock().failure.get_or_insert(failure);
    }

    /// The first failure among the dependencies that must not fail.
    pub(crate) fn cause(&self) -> Option<CommandFailure> {
        cause_among(&self.dependencies())
    }

    pub(crate) fn dependencies(&self) -> Dependencies {
        self.state.lock().dependencies.clone()
    }

    /// A dependency that has not ended.
    pub(crate) fn open_dependency(&self) -> Option<Arc<Self>> {
        self.state.lock().dependencies.iter().find(|d| !d.task.has_ended()).map(|d| d.task.clone())
    }

    pub(crate) fn set_profile(&self, profile: Profile) {
        self.state.lock().profile = Some(profile);
    }

    pub(crate) fn take_profile(&self) -> Option<Profile> {
        self.state.lock().profile.take()
    }

    /// The task is on a stream now. Called with that stream's lock held, by the one that releases the task.
    pub(crate) fn set_place(&self, stream_index: usize, position: u64) {
        self.stream_index.store(stream_index, Ordering::Relaxed);
        self.position.store(position, Ordering::Release);
    }

    /// Publishes that the task is on a stream. Returns those that wait for that.
    pub(crate) fn set_issued(&self) -> Followers {
        let mut state = self.state.lock();
        // The task may have ended meanwhile.
        let _ = self.status.compare_exchange(DEFERRED, ISSUED, Ordering::AcqRel, Ordering::Acquire);
        if state.followers.is_empty() {
            return Followers::new();
        }
        let (told, kept) = state.followers.drain(..).partition(|follower| matches!(follower, Follower::Issue(_)));
        state.followers = kept;
        told
    }

    /// Begins to count what the task waits for.
    pub(crate) fn begin_waiting(&self) {
        self.blockers.store(1, Ordering::Relaxed);
    }

    /// Puts `task` on this task's list, for its end or for its being issued. False if that has happened already.
    pub(crate) fn follow(&self, task: &Arc<Self>, until_end: bool) -> bool {
        let until = if until_end { SUCCEEDED } else { ISSUED };
        let mut state = self.state.lock();
        if self.status.load(Ordering::Acquire) >= until {
            return false;
        }
        task.blockers.fetch_add(1, Ordering::Relaxed);
        let task = task.clone();
        state.followers.push(if until_end { Follower::End(task) } else { Follower::Issue(task) });
        true
    }

    /// Has `stream` drained again once this task has ended. False if it has.
    pub(crate) fn follow_for_stream(&self, stream: &Arc<Stream>) -> bool {
        let mut state = self.state.lock();
        if self.has_ended() {
            return false;
        }
        state.followers.push(Follower::Drain(stream.clone()));
        true
    }

    /// Takes one from what the task waits for. True for the one caller after which nothing is left: it releases the task.
    pub(crate) fn arrive(&self) -> bool {
        // Release publishes what the dependency did, acquire makes all of it visible to the one that goes on.
        self.blockers.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Makes the result known to the event. Called once.
    pub(crate) fn begin_end(&self, failure: Option<CommandFailure>) -> Ending {
        let mut state = self.state.lock();
        state.failure = failure;
        self.status.store(TELLING, Ordering::Release);
        Ending { completion: state.completion.take(), dependencies: std::mem::take(&mut state.dependencies) }
    }

    /// Makes the end known to followers, whom it returns. Called once, after the completion was told.
    pub(crate) fn finish_end(&self) -> Followers {
        let mut state = self.state.lock();
        let status = if state.failure.is_some() { FAILED } else { SUCCEEDED };
        self.status.store(status, Ordering::Release);
        std::mem::take(&mut state.followers)
    }
}

impl DriverTask for CudaTask {
    fn command(&self) -> &Command {
        &self.command
    }

    fn device_name(&self) -> &str {
        &self.queue.core.context.name
    }

    fn has_ended(&self) -> bool {
        self.status.load(Ordering::Acquire) >= SUCCEEDED
    }

    fn failure(&self) -> Option<CommandFailure> {
        if self.status.load(Ordering::Acquire) == FAILED { self.state.lock().failure.clone() } else { None }
    }

    fn known_failure(&self) -> Option<CommandFailure> {
        // On a stream nothing is known before the end.
        if self.status.load(Ordering::Acquire) == ISSUED { None } else { self.state.lock().failure.clone() }
    }
}

impl Event for CudaTask {
    fn status(&self) -> EventStatus {
        match self.status.load(Ordering::Acquire) {
            DEFERRED => EventStatus::Submitted,
            ISSUED => match self.place() {
                Some(place) if place.stream.is_first(place.position) => EventStatus::Running,
                _ => EventStatus::Submitted,
            },
            _ => EventStatus::Complete,
        }
    }
}
