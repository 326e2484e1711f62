//! Finding out that the process was forked.
//!
//! A child has its parent's memory but none of its threads: commands that were pending never end there, and locks may be held for
//! ever. So whoever owns threads compares generations before it touches a lock, and waits are refused instead of hanging.
//! Does nothing about it otherwise: a child that uses nothing of its parent's is an ordinary process.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The generation in which counting began.
pub(crate) const FIRST_GENERATION: u32 = 1;

static GENERATION: AtomicU32 = AtomicU32::new(FIRST_GENERATION);
static LEFT_COMMANDS: AtomicBool = AtomicBool::new(false);

/// The generation of this process: greater than that of the process it was forked from.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether commands were pending when the process was forked from its parent. They end in the parent only.
pub(crate) fn has_left_commands() -> bool {
    LEFT_COMMANDS.load(Ordering::Relaxed)
}

/// Begins to count. Called before the process has commands.
#[cfg(all(unix, not(miri)))]
pub(crate) fn watch() {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        if crate::observe::counters().snapshot().live_nodes() > 0 {
            LEFT_COMMANDS.store(true, Ordering::Relaxed);
        }
    }
    static WATCHING: std::sync::Once = std::sync::Once::new();
    // The handler must not be the first to use the counters.
    crate::observe::counters();
    WATCHING.call_once(|| {
        // SAFETY: the handler only uses atomics, which is allowed in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Elsewhere, and under Miri, processes are not forked.
#[cfg(any(not(unix), miri))]
pub(crate) fn watch() {}
