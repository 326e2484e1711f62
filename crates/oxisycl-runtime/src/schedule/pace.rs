//! Slows a thread down that submits faster than the devices work, so that a long loop of submissions does not fill the memory with
//! commands that wait for their turn (about 800 bytes each).
//!
//! Invariant: a pause ends by itself after [`LONGEST`], whether or not any command ends meanwhile. Submitting therefore still never
//! waits for a device: a command that waits for the submitting thread cannot hold it up.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use crate::observe::counters;

/// Commands of the process that may be unfinished without anybody being slowed down.
const PLENTY: u64 = 8192;
/// A thread looks once in so many submissions, and pauses at most once.
const EVERY: u32 = 64;
/// A device that runs more than 0.6 commands a microsecond keeps up with a thread that pauses.
const LONGEST: Duration = Duration::from_micros(100);

/// Called once per submission, without locks.
#[inline]
pub(super) fn pace() {
    thread_local! {
        static SUBMISSIONS: Cell<u32> = const { Cell::new(0) };
    }
    let count = SUBMISSIONS.get().wrapping_add(1);
    SUBMISSIONS.set(count);
    if count.is_multiple_of(EVERY) && counters().unfinished_nodes() > PLENTY {
        pause();
    }
}

#[cold]
fn pause() {
    let began = Instant::now();
    while counters().unfinished_nodes() > PLENTY && began.elapsed() < LONGEST {
        thread::yield_now();
    }
}
