//! A thread that starts when it is first needed and sleeps while there is nothing to do.
//!
//! To wake a thread that is awake costs one load. The thread stays awake for a while after its last work, so a loop of submissions makes no
//! system call. Invariant: the thread announces that it will sleep, looks for work once more, and then sleeps. So it sees a waker's
//! work, or the waker sees it sleep.

use std::io;
use std::time::Duration;

use crate::sync::{AtomicBool, AtomicU8, Lock, Ordering, Thread, barrier, park, park_timeout};

const NONE: u8 = 0;
const AWAKE: u8 = 1;
/// The thread sleeps for a limited time, and then checks for work.
const NAPPING: u8 = 2;
const ASLEEP: u8 = 3;

/// A thread that sleeps while there is nothing to do. The first thread that needs it starts it.
#[derive(Debug, Default)]
pub struct Worker {
    state: AtomicU8,
    is_closed: AtomicBool,
    thread: Lock<Option<Thread>>,
}

impl Worker {
    /// Wakes the thread if it sleeps. If there is none, starts it by `start`.
    #[inline]
    pub fn wake(&self, start: impl FnOnce() -> io::Result<Thread>) -> io::Result<()> {
        match self.state.load(Ordering::SeqCst) {
            AWAKE | NAPPING => Ok(()),
            _ => self.wake_slowly(start),
        }
    }

    #[cold]
    fn wake_slowly(&self, start: impl FnOnce() -> io::Result<Thread>) -> io::Result<()> {
        let mut thread = self.thread.lock();
        match &*thread {
            None => {
                // Awake before it starts, so that it never sees itself as missing.
                self.state.store(AWAKE, Ordering::SeqCst);
                match start() {
                    Ok(started) => *thread = Some(started),
                    Err(error) => {
                        self.state.store(NONE, Ordering::SeqCst);
                        return Err(error);
                    }
                }
            }
            Some(thread) => {
                if self.state.swap(AWAKE, Ordering::SeqCst) == ASLEEP {
                    thread.unpark();
                }
            }
        }
        Ok(())
    }

    /// Wakes the thread if there is one and it sleeps.
    #[inline]
    pub fn ring(&self) {
        barrier();
        if self.state.load(Ordering::SeqCst) == ASLEEP {
            self.unpark();
        }
    }

    #[cold]
    fn unpark(&self) {
        if let Some(thread) = &*self.thread.lock()
            && self.state.compare_exchange(ASLEEP, AWAKE, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            thread.unpark();
        }
    }

    /// Whether the thread was started.
    pub fn is_running(&self) -> bool {
        self.state.load(Ordering::SeqCst) != NONE
    }

    /// Called by the thread: sleeps until another thread wakes it, unless `has_work` returns true.
    pub fn sleep(&self, has_work: impl Fn() -> bool) {
        self.state.store(ASLEEP, Ordering::SeqCst);
        barrier();
        if has_work() || self.is_closed.load(Ordering::SeqCst) {
            self.state.store(AWAKE, Ordering::SeqCst);
            return;
        }
        while self.state.load(Ordering::SeqCst) == ASLEEP {
            park();
        }
    }

    /// Called by the thread: sleeps for `time`, or until [`hurry`](Self::hurry) wakes it.
    pub fn nap(&self, time: Duration) {
        self.state.store(NAPPING, Ordering::SeqCst);
        park_timeout(time);
        self.state.store(AWAKE, Ordering::SeqCst);
    }

    /// Wakes the thread if it naps.
    pub fn hurry(&self) {
        let nap = self.state.compare_exchange(NAPPING, AWAKE, Ordering::SeqCst, Ordering::SeqCst);
        if nap.is_ok()
            && let Some(thread) = &*self.thread.lock()
        {
            thread.unpark();
        }
    }

    /// Wakes the thread for the last time.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        barrier();
        self.state.store(AWAKE, Ordering::SeqCst);
        if let Some(thread) = &*self.thread.lock() {
            thread.unpark();
        }
    }
}

/// Starts a named thread.
#[cfg(not(loom))]
pub fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    Ok(std::thread::Builder::new().name(name).spawn(run)?.thread().clone())
}

/// Under `loom`, models start their threads themselves.
#[cfg(loom)]
pub fn spawn(_name: String, _run: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    Err(io::Error::other("a model"))
}
