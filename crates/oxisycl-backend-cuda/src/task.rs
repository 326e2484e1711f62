//! A command from when it is issued to its end. It is also the command's event.
//!
//! Invariants: a task is on one stream, at one position, and is over once. The event says `Complete` from just before the completion is
//! called, so that a completion sees its own command as complete.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use oxisycl_backend::driver::DriverTask;
use oxisycl_backend::{Command, Completion, Event, EventStatus};
use parking_lot::Mutex;

use crate::clock::Base;
use crate::error::DriverError;
use crate::execute::Launch;
use crate::print_pool::PrintBuffer;
use crate::queue::QueueShared;
use crate::record_pool::Slot;
use crate::stream::Stream;
use crate::sys::RawEvent;

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

/// What a task is given beside its command.
pub(crate) struct Extras {
    /// Its place in the order in which the device's tasks were issued.
    pub(crate) number: u64,
    /// How a kernel is launched.
    pub(crate) launch: Option<Launch>,
    /// Where the launch prints.
    pub(crate) print: Option<PrintBuffer>,
}

pub(crate) struct CudaTask {
    pub(crate) queue: Arc<QueueShared>,
    pub(crate) command: Command,
    pub(crate) extras: Extras,
    /// On the host's clock, of profiled commands.
    pub(crate) submitted: u64,
    /// What went wrong after a part of the command was on the device already.
    pub(crate) issue_error: OnceLock<DriverError>,
    /// The address of the panic record, or 0. Written before the task is put on a stream.
    record: AtomicU64,
    /// Which of the queue's streams it is on.
    stream_index: AtomicUsize,
    /// Its number in the stream, or 0 as long as it is on none. Published by the stream's lock.
    position: AtomicU64,
    is_over: AtomicBool,
    state: Mutex<State>,
}

struct State {
    completion: Option<Arc<dyn Completion>>,
    profile: Option<Profile>,
}

impl CudaTask {
    /// A task that is about to be put on a stream.
    #[inline(always)]
    pub(crate) fn new(
        queue: Arc<QueueShared>,
        command: Command,
        extras: Extras,
        completion: Arc<dyn Completion>,
    ) -> Self {
        Self {
            submitted: if queue.options.profiling { crate::clock::now() } else { 0 },
            queue,
            command,
            extras,
            issue_error: OnceLock::new(),
            record: AtomicU64::new(0),
            stream_index: AtomicUsize::new(0),
            position: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            state: Mutex::new(State { completion: Some(completion), profile: None }),
        }
    }

    pub(crate) fn place(&self) -> Option<Place<'_>> {
        // Acquire pairs with `set_place`: the index is that of the position.
        let position = self.position.load(Ordering::Acquire);
        (position > 0)
            .then(|| Place { stream: &self.queue.streams[self.stream_index.load(Ordering::Relaxed)], position })
    }

    /// The task is on a stream now. Called with that stream's lock held.
    pub(crate) fn set_place(&self, stream_index: usize, position: u64) {
        self.stream_index.store(stream_index, Ordering::Relaxed);
        self.position.store(position, Ordering::Release);
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

    pub(crate) fn set_profile(&self, profile: Profile) {
        self.state.lock().profile = Some(profile);
    }

    pub(crate) fn take_profile(&self) -> Option<Profile> {
        self.state.lock().profile.take()
    }

    /// The task is over. Called once; what is given is to be called.
    pub(crate) fn end(&self) -> Option<Arc<dyn Completion>> {
        self.is_over.store(true, Ordering::Release);
        self.state.lock().completion.take()
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
        self.is_over.load(Ordering::Acquire)
    }
}

impl Event for CudaTask {
    fn status(&self) -> EventStatus {
        if self.has_ended() {
            return EventStatus::Complete;
        }
        match self.place() {
            Some(place) if place.stream.is_first(place.position) => EventStatus::Running,
            _ => EventStatus::Submitted,
        }
    }
}
