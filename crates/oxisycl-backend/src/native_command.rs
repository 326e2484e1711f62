//! Work that other code than a backend puts on a driver's queue, as a command of that queue.
//!
//! Invariant: the work runs at most once, when the command is issued, and what it holds is dropped then. What must live longer, or runs code
//! of users when it is dropped, is kept by the code that issues the command. Does not know what the driver's calls are.

use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parking_lot::Mutex;

use crate::{BackendError, FailureKind};

/// The driver's handles that native work gets. A CUDA context is current.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeQueue {
    /// The driver's queue on which the work comes after the command's dependencies.
    pub queue: *mut c_void,
    /// The device. A number is given as an address.
    pub device: *mut c_void,
    /// The context that the memory of the device belongs to.
    pub context: *mut c_void,
}

/// Puts work on a driver's queue. What it has put there is part of the command also if it fails.
pub type NativeWork = Box<dyn FnOnce(NativeQueue) -> Result<(), BackendError> + Send>;

/// A command whose work is put on the driver's queue by other code than a backend.
pub struct NativeCommand {
    name: String,
    is_wait: bool,
    state: Mutex<State>,
}

enum State {
    Waiting(NativeWork),
    Ran(Option<FailureKind>),
}

impl NativeCommand {
    /// A command of that name.
    pub fn new(name: String, work: NativeWork) -> Self {
        Self { name, is_wait: false, state: Mutex::new(State::Waiting(work)) }
    }

    /// A command whose work only makes the queue wait.
    pub fn wait(name: String, work: NativeWork) -> Self {
        Self { is_wait: true, ..Self::new(name, work) }
    }

    /// Whether the work may run kernels, for which a driver that [loads](crate::DeviceInfo::load_waits) code would wait.
    pub fn may_run_kernels(&self) -> bool {
        !self.is_wait
    }

    /// The command's name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the work. Called by a backend, once, where the command's calls of the driver belong.
    ///
    /// # Safety
    /// `queue` has live handles of the driver that the work is for. The command was given to [`Queue::issue`](crate::Queue::issue), with its promises.
    pub unsafe fn enqueue(&self, queue: NativeQueue) {
        let mut state = self.state.lock();
        if let State::Ran(_) = *state {
            return;
        }
        let State::Waiting(work) = std::mem::replace(&mut *state, State::Ran(None)) else { return };
        // The work may take locks of its own.
        drop(state);
        let failure = match catch_unwind(AssertUnwindSafe(|| work(queue))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => FailureKind::Device(error),
            Err(payload) => {
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                let message = text.unwrap_or("a panic without a text").to_owned();
                std::mem::forget(payload);
                FailureKind::Panic { message, location: None, item: None }
            }
        };
        *self.state.lock() = State::Ran(Some(failure));
    }

    /// Takes the failure of the work, if it ran and failed.
    pub fn take_failure(&self) -> Option<FailureKind> {
        match &mut *self.state.lock() {
            State::Ran(failure) => failure.take(),
            State::Waiting(_) => None,
        }
    }
}

impl fmt::Debug for NativeCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeCommand").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const QUEUE: NativeQueue =
        NativeQueue { queue: std::ptr::null_mut(), device: std::ptr::null_mut(), context: std::ptr::null_mut() };

    #[test]
    fn work_runs_once_and_its_failure_is_taken_once() {
        let kept = Arc::new(());
        let held = kept.clone();
        let error = BackendError::NotCompiled { reason: "no".to_owned() };
        let work = move |_| {
            drop(held);
            Err(error)
        };
        let command = NativeCommand::new("work".to_owned(), Box::new(work));
        assert!(command.take_failure().is_none() && Arc::strong_count(&kept) == 2);
        for _ in 0..2 {
            // SAFETY: the work calls no driver.
            unsafe { command.enqueue(QUEUE) };
        }
        assert_eq!(Arc::strong_count(&kept), 1);
        assert!(matches!(command.take_failure(), Some(FailureKind::Device(BackendError::NotCompiled { .. }))));
        assert!(command.take_failure().is_none());
    }

    #[test]
    fn a_panic_of_the_work_is_a_failure() {
        let command = NativeCommand::new("work".to_owned(), Box::new(|_| panic!("no {}", 7)));
        // SAFETY: the work calls no driver.
        unsafe { command.enqueue(QUEUE) };
        let failure = command.take_failure();
        assert!(matches!(failure, Some(FailureKind::Panic { ref message, .. }) if message == "no 7"), "{failure:?}");
    }
}
