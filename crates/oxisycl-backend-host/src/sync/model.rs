//! The primitives that the model checker explores.

use std::time::Duration;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use loom::sync::{Mutex, MutexGuard};
use loom::thread::{self, Thread};

/// A lock for short critical sections that cannot be poisoned.
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no thread of a model panics while it holds the lock")
    }
}

/// The place where its thread sleeps. Wake-ups may be spurious.
pub(crate) struct Parker(Thread);

impl Parker {
    pub(crate) fn of_current_thread() -> Self {
        Self(thread::current())
    }

    /// Sleeps until `unpark`. Returns at once if `unpark` was called since the last call. Called by the parker's thread.
    pub(crate) fn park(&self) {
        thread::park();
    }

    /// Returns at once: the model has no time, so the limit is always over.
    pub(crate) fn park_timeout(&self, _time: Duration) {
        thread::yield_now();
    }

    pub(crate) fn unpark(&self) {
        self.0.unpark();
    }
}
