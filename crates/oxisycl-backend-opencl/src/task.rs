//! A command from when it is given to the driver to its end. It is also the command's event.
//!
//! Invariants: a task is given to the driver once, and is over once. The event says `Complete` from just before the completion is called, so
//! that a completion sees its own command as complete.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use oxisycl_backend::driver::DriverTask;
use oxisycl_backend::{Command, Completion, Event, EventStatus};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::emitter::Emitted;
use crate::error::ClError;
use crate::execute::Kept;
use crate::launch_shape::LaunchShape;
use crate::print_pool::PrintBuffer;
use crate::queue::QueueShared;
use crate::record_pool::Slot;
use crate::sys::{Code, Object, code};

/// What the driver has of a task.
pub(crate) struct Issued {
    /// Empty from when the task is known to be over and its events were let go of.
    emitted: RwLock<Emitted>,
    /// Whether the driver has said that the task is over, without an error.
    is_over: AtomicBool,
    /// Whether code outside of this crate may have the events, which then live as long as the task.
    is_known_outside: AtomicBool,
    /// What went wrong after a part of the command was on the queue already.
    pub(crate) error: Option<ClError>,
    kept: Mutex<Kept>,
}

impl Issued {
    pub(crate) fn new(emitted: Emitted, error: Option<ClError>, kept: Kept) -> Self {
        let (is_over, is_known_outside) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { emitted: RwLock::new(emitted), is_over, is_known_outside, error, kept: Mutex::new(kept) }
    }

    /// Whether nothing is kept for the driver any more.
    #[cfg(test)]
    pub(crate) fn has_let_go(&self) -> bool {
        self.kept.lock().is_empty()
    }

    /// The driver's events, which nobody lets go of while they are borrowed.
    pub(crate) fn emitted(&self) -> RwLockReadGuard<'_, Emitted> {
        self.emitted.read()
    }
}

/// How far the device has come with a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// Not begun, as far as the driver says.
    Waiting,
    Running,
    Over,
    /// The driver has ended it with an error.
    Ended(ClError),
}

pub(crate) struct Task {
    pub(crate) queue: Arc<QueueShared>,
    pub(crate) command: Command,
    /// Its place in the order in which the device's tasks were accepted.
    pub(crate) number: u64,
    /// How a kernel is launched.
    pub(crate) shape: Option<LaunchShape>,
    /// Where the launch leaves word of a panic.
    pub(crate) record: Option<Slot>,
    /// Where the launch prints.
    pub(crate) print: Option<PrintBuffer>,
    /// On the device's clock, of profiled commands.
    pub(crate) submitted: u64,
    issued: OnceLock<Issued>,
    is_over: AtomicBool,
    completion: Mutex<Option<Arc<dyn Completion>>>,
}

/// What a launch is given beside its command.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) shape: Option<LaunchShape>,
    pub(crate) record: Option<Slot>,
    pub(crate) print: Option<PrintBuffer>,
}

impl Task {
    /// A task that nobody knows yet.
    #[inline(always)]
    pub(crate) fn new(
        queue: Arc<QueueShared>,
        number: u64,
        command: Command,
        extras: Extras,
        completion: Arc<dyn Completion>,
    ) -> Self {
        let Extras { shape, record, print } = extras;
        let submitted = if queue.options.profiling { queue.core.clock.now(&queue.core.context) } else { 0 };
        Self {
            queue,
            command,
            number,
            shape,
            record,
            print,
            submitted,
            issued: OnceLock::new(),
            is_over: AtomicBool::new(false),
            completion: Mutex::new(Some(completion)),
        }
    }

    /// The driver has the task. Called once.
    pub(crate) fn set_issued(&self, issued: Issued) {
        // A second call would be a mistake of this crate; its events would be released with it.
        let _ = self.issued.set(issued);
    }

    pub(crate) fn issued(&self) -> Option<&Issued> {
        self.issued.get()
    }

    /// Asks the driver how far an issued task is.
    pub(crate) fn progress(&self) -> Progress {
        const CALL: &str = "clGetEventInfo";
        let Some(issued) = self.issued.get() else { return Progress::Waiting };
        if issued.is_over.load(Ordering::Acquire) {
            return Progress::Over;
        }
        let functions = &self.queue.core.context.functions;
        let mut slowest = Progress::Over;
        for event in &issued.emitted().events {
            let mut status: Code = 0;
            // SAFETY: the event lives as long as it is borrowed, and the value has the size that is said.
            let asked = unsafe {
                let (what, value) = (code::EVENT_COMMAND_EXECUTION_STATUS, (&raw mut status).cast());
                (functions.clGetEventInfo)(event.0, what, size_of::<Code>(), value, ptr::null_mut())
            };
            match (asked, status) {
                (code::SUCCESS, code::COMPLETE) => {}
                (code::SUCCESS, code::RUNNING) => slowest = Progress::Running,
                (code::SUCCESS, 2..) => {
                    if slowest == Progress::Over {
                        slowest = Progress::Waiting;
                    }
                }
                (code::SUCCESS, code) => return Progress::Ended(ClError { call: "the command", code }),
                (code, _) => return Progress::Ended(ClError { call: CALL, code }),
            }
        }
        slowest
    }

    /// Asks the driver whether an issued task is over, and lets go of its events if it is and nobody needs them. Whether it is. Called by
    /// threads that may [look](crate::ending::begin_look).
    pub(crate) fn settle(&self) -> bool {
        let Some(issued) = self.issued.get() else { return false };
        if !self.has_ended() {
            if self.progress() != Progress::Over {
                return false;
            }
            // Release: who reads it sees what the driver's answer has made visible here.
            issued.is_over.store(true, Ordering::Release);
        }
        // Somebody who reads them may wait with them for long. They are released with the task then.
        if !self.queue.options.profiling
            && let Some(mut emitted) = issued.emitted.try_write()
            && !issued.is_known_outside.load(Ordering::Relaxed)
        {
            self.release(std::mem::take(&mut *emitted));
        }
        true
    }

    fn release(&self, emitted: Emitted) {
        for event in emitted.events.into_iter().chain(emitted.first) {
            // SAFETY: the event was the task's own, and is in no list any more.
            unsafe { self.queue.core.context.release_event(event) };
        }
    }

    /// The driver's events for code outside of this crate, valid as long as the task lives. None if the driver does not have the task, or
    /// nothing is left of it there.
    pub(crate) fn lend_events(&self) -> Vec<*mut c_void> {
        // In a forked child the lock may be held for ever.
        let issued = self.issued.get().filter(|_| !self.queue.core.context.is_foreign());
        let Some(issued) = issued else { return Vec::new() };
        let emitted = issued.emitted();
        // Read with the list locked.
        issued.is_known_outside.store(true, Ordering::Relaxed);
        emitted.events.iter().map(|Object(event)| *event).collect()
    }

    /// Has the driver wait for an issued task. What came of it is asked afterwards.
    pub(crate) fn wait_in_driver(&self) {
        let Some(issued) = self.issued.get() else { return };
        let functions = &self.queue.core.context.functions;
        for event in &issued.emitted().events {
            // SAFETY: the event lives as long as it is borrowed.
            unsafe { (functions.clWaitForEvents)(1, &raw const event.0) };
        }
    }

    /// Who is told of the end, as long as it has not come.
    pub(crate) fn completion(&self) -> Option<Arc<dyn Completion>> {
        self.completion.lock().clone()
    }

    /// The task is over. Called once; what is given is to be called.
    pub(crate) fn end(&self) -> Option<Arc<dyn Completion>> {
        if let Some(issued) = self.issued.get() {
            // The task may be known for long after its end.
            let kept = std::mem::take(&mut *issued.kept.lock());
            drop(kept);
        }
        self.is_over.store(true, Ordering::Release);
        self.completion.lock().take()
    }
}

impl DriverTask for Task {
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

impl Event for Task {
    fn status(&self) -> EventStatus {
        if self.has_ended() {
            return EventStatus::Complete;
        }
        if self.queue.core.context.is_foreign() {
            return EventStatus::Submitted;
        }
        match self.progress() {
            Progress::Waiting => EventStatus::Submitted,
            // Over is not complete before that was told.
            Progress::Running | Progress::Over | Progress::Ended(_) => EventStatus::Running,
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(issued) = self.issued.take() {
            self.release(issued.emitted.into_inner());
        }
    }
}
