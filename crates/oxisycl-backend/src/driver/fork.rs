//! Finding out that the process was forked: the driver does not work in the child, and threads and locks are those of the parent.

use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(1);

/// The generation of this process: greater than that of the process it was forked from, once [`watch`] was called.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Begins to count.
#[cfg(all(unix, not(miri)))]
pub fn watch() {
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
pub fn watch() {}
