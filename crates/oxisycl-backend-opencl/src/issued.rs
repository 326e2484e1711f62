//! The driver's part of an issued task: its events, and resources that the driver uses.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::context::Context;
use crate::emitter::Emitted;
use crate::error::{ClError, Result, check};
use crate::fill::Stage;
use crate::svm::Launch;
use crate::sys::{Code, Object, code};

/// The events of a task, and resources that live as long as the driver needs them.
#[derive(Default)]
pub(crate) struct Issued {
    /// Empty before the task is issued, and from when it is known to be over and its events were released.
    emitted: RwLock<Emitted>,
    /// Whether the driver has said that the task is over, without an error.
    is_over: AtomicBool,
    /// Whether code outside of this crate may have the events. They then live as long as the task.
    is_known_outside: AtomicBool,
    /// Resources that live until the task has ended; `None` for most tasks.
    resources: Mutex<Option<Box<Resources>>>,
}

/// Resources that live until a command has ended.
#[derive(Default)]
pub(crate) struct Resources {
    /// Host memory that the driver reads.
    pub(crate) stage: Option<Stage>,
    /// Keeps the allocations in the kernel's list alive.
    pub(crate) launch: Option<Launch>,
}

/// How far the device has executed a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reached {
    /// Not begun, as far as the driver reports.
    Waiting,
    Running,
    Over,
    /// The driver has ended it with an error.
    Failed(ClError),
}

impl Issued {
    /// Sets the events and resources of an issued task. Called once.
    pub(crate) fn set(&self, emitted: Emitted, resources: Resources) {
        *self.emitted.write() = emitted;
        let is_empty = resources.stage.is_none() && resources.launch.is_none();
        *self.resources.lock() = (!is_empty).then(|| Box::new(resources));
    }

    /// Whether all events and resources of the task were released.
    #[cfg(test)]
    pub(crate) fn is_released(&self) -> bool {
        self.resources.lock().is_none()
    }

    /// The task's events, which are not released during the borrow.
    pub(crate) fn emitted(&self) -> RwLockReadGuard<'_, Emitted> {
        self.emitted.read()
    }

    /// Drops the resources of a task that is over, since the task may live long after its end.
    pub(crate) fn release_resources(&self) {
        let resources = self.resources.lock().take();
        drop(resources);
    }

    /// Queries how far the device has executed an issued task.
    pub(crate) fn reached(&self, context: &Context) -> Reached {
        const CALL: &str = "clGetEventInfo";
        if self.is_over.load(Ordering::Acquire) {
            return Reached::Over;
        }
        let functions = &context.functions;
        let mut slowest = Reached::Over;
        for event in &self.emitted().events {
            let mut status: Code = 0;
            // SAFETY: the event lives as long as it is borrowed, and the value has the size that is said.
            let asked = unsafe {
                let (what, value) = (code::EVENT_COMMAND_EXECUTION_STATUS, (&raw mut status).cast());
                (functions.clGetEventInfo)(event.0, what, size_of::<Code>(), value, ptr::null_mut())
            };
            match (asked, status) {
                (code::SUCCESS, code::COMPLETE) => {}
                (code::SUCCESS, code::RUNNING) => slowest = Reached::Running,
                (code::SUCCESS, 2..) => {
                    if slowest == Reached::Over {
                        slowest = Reached::Waiting;
                    }
                }
                (code::SUCCESS, code) => return Reached::Failed(ClError { call: "the command", code }),
                (code, _) => return Reached::Failed(ClError { call: CALL, code }),
            }
        }
        slowest
    }

    /// Queries whether an issued task is over, and remembers that it is.
    pub(crate) fn is_over(&self, context: &Context) -> bool {
        let is_over = self.reached(context) == Reached::Over;
        if is_over {
            // Release: who reads it sees what the driver's answer has made visible here.
            self.is_over.store(true, Ordering::Release);
        }
        is_over
    }

    /// Waits in the driver for an issued task. The result has to be queried afterwards.
    pub(crate) fn wait_in_driver(&self, context: &Context) {
        for event in &self.emitted().events {
            // SAFETY: the event lives as long as it is borrowed.
            unsafe { (context.functions.clWaitForEvents)(1, &raw const event.0) };
        }
    }

    /// Releases the events of a task that is over, unless they are borrowed. Otherwise they are released when the task is dropped.
    pub(crate) fn try_release(&self, context: &Context) {
        // A thread that reads them may wait with them for long.
        if let Some(mut emitted) = self.emitted.try_write()
            && !self.is_known_outside.load(Ordering::Relaxed)
        {
            release(context, std::mem::take(&mut *emitted));
        }
    }

    /// The events for code outside of this crate, valid as long as the task lives. Empty if the task has no events any more.
    pub(crate) fn lend_events(&self, context: &Context) -> Vec<*mut c_void> {
        // In a forked child the lock may be held for ever.
        if context.is_foreign() {
            return Vec::new();
        }
        let emitted = self.emitted();
        // Read with the list locked.
        self.is_known_outside.store(true, Ordering::Relaxed);
        emitted.events.iter().map(|Object(event)| *event).collect()
    }

    /// The events with a reference for the caller. None if the task is known to be over.
    pub(crate) fn retain_events(&self, context: &Context) -> Result<Vec<*mut c_void>> {
        let emitted = self.emitted();
        let mut retained = Vec::new();
        for &Object(event) in &emitted.events {
            // SAFETY: the event lives as long as it is borrowed.
            if let Err(error) = check("clRetainEvent", unsafe { (context.functions.clRetainEvent)(event) }) {
                for event in retained {
                    // SAFETY: retained above, and given to no other code.
                    unsafe { context.release_event(Object(event)) };
                }
                return Err(error);
            }
            retained.push(event);
        }
        Ok(retained)
    }

    /// Releases the events, when the task is dropped.
    pub(crate) fn release(&mut self, context: &Context) {
        release(context, std::mem::take(self.emitted.get_mut()));
    }
}

fn release(context: &Context, emitted: Emitted) {
    for event in emitted.events.into_iter().chain(emitted.first) {
        // SAFETY: the event was the task's own, and is in no list any more.
        unsafe { context.release_event(event) };
    }
}
