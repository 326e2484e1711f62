//! Detection of forked processes.
//!
//! A child has its parent's memory but none of its threads, and locks may be held for ever. Drivers do not work there. So the owner of
//! threads or of a driver remembers the generation in which they began. It compares generations before it touches a lock or calls
//! the driver. Generations are counted from the first call of [`watch`] on.

use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(1);

/// The generation of this process, at least 1. It is greater than that of the process it was forked from.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Starts counting generations. Called before threads are started.
pub fn watch() {
    extern "C" fn count() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    static WATCHING: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handler only changes an atomic.
    WATCHING.call_once(|| unsafe { in_child(count) });
}

/// Registers `handler` to run in each child of the process, and in their children.
///
/// # Safety
/// The handler only does what a forked child of a process with threads may do. It uses atomics, but no locks and no memory allocation.
#[cfg(all(unix, not(miri)))]
pub unsafe fn in_child(handler: extern "C" fn()) {
    // SAFETY: by the contract of this function. A failure means that there is no room: then the handler does not run.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}

/// Does nothing: on other systems, and under Miri, processes are not forked.
///
/// # Safety
/// None.
#[cfg(any(not(unix), miri))]
pub unsafe fn in_child(_handler: extern "C" fn()) {}
