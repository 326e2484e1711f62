//! The primitives that programs run with.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use std::thread::{self, Thread};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// A lock for short critical sections that cannot be poisoned.
#[derive(Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
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

    /// Sleeps until `unpark`, or until `time` is over.
    pub(crate) fn park_timeout(&self, time: Duration) {
        thread::park_timeout(time);
    }

    pub(crate) fn unpark(&self) {
        self.0.unpark();
    }
}
