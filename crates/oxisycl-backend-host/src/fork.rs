//! Finding out that the process was forked.
//!
//! A child has its parent's memory but none of its threads, and locks may be held for ever. So whoever owns threads remembers the
//! generation they were started in, and compares before it touches a lock. Generations are counted from 1, and only from the first
//! call of [`watch`] on.

use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(1);

/// The generation of this process: greater than that of the process it was forked from.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Begins to count. Called before threads are started.
#[cfg(all(unix, not(miri)))]
pub(crate) fn watch() {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    static WATCHING: std::sync::Once = std::sync::Once::new();
    WATCHING.call_once(|| {
        // SAFETY: the handler only changes an atomic, which is allowed in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Elsewhere, and under Miri, processes are not forked.
#[cfg(any(not(unix), miri))]
pub(crate) fn watch() {}
