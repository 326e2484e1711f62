//! What a fork of the process means to the runtime.
//!
//! Commands that were pending never end in the child, so waits for them are refused instead of hanging. Does nothing else about a fork:
//! a child that uses nothing of its parent's is an ordinary process.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

pub(crate) use oxisycl_backend::fork::generation;

/// The generation in which the runtime began; 0 before that.
static FIRST_GENERATION: AtomicU32 = AtomicU32::new(0);
static LEFT_COMMANDS: AtomicBool = AtomicBool::new(false);

/// Whether the process was forked since the runtime began.
pub(crate) fn is_child() -> bool {
    ![0, generation()].contains(&FIRST_GENERATION.load(Ordering::Relaxed))
}

/// Whether commands were pending when the process was forked from its parent. They end in the parent only.
pub(crate) fn has_left_commands() -> bool {
    LEFT_COMMANDS.load(Ordering::Relaxed)
}

/// Called before the process has commands.
pub(crate) fn watch() {
    extern "C" fn in_child() {
        if crate::observe::counters().snapshot().live_nodes() > 0 {
            LEFT_COMMANDS.store(true, Ordering::Relaxed);
        }
    }
    static WATCHING: Once = Once::new();
    // The handler must not be the first to use the counters.
    crate::observe::counters();
    WATCHING.call_once(|| {
        oxisycl_backend::fork::watch();
        FIRST_GENERATION.store(generation(), Ordering::Relaxed);
        // SAFETY: the handler only uses atomics.
        unsafe { oxisycl_backend::fork::in_child(in_child) };
    });
}
