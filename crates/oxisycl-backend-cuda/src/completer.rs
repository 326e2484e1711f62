//! The thread that tells completions.
//!
//! It looks at all streams in turn, and naps between two looks for a time that grows with how long nothing has happened: a command
//! is told at most a sixty-fourth of its own duration late, or half a millisecond. While work is being submitted it looks less often, since
//! that costs those who submit, and a thread that submits without pause looks itself (`Stream::poll`), so that a command may be told a
//! millisecond late; a thread that has to wait for longer than a few microseconds ends such a nap. The completer never waits for one
//! stream alone.

use std::io;
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};

use oxisycl_backend::driver::spawn;

use crate::advance;
use crate::gpu::Gpu;

/// Shortest and longest time between two looks.
const SHORTEST_NAP: Duration = Duration::from_micros(40);
/// As above.
const LONGEST_NAP: Duration = Duration::from_micros(500);
/// Time between two looks while work is being submitted.
const BUSY_NAP: Duration = Duration::from_micros(300);
/// How long the thread stays up without work, so that the next submission need not wake it, and retired memory is not freed.
const LINGER: Duration = Duration::from_millis(4);

/// Starts the thread.
pub(crate) fn start(core: &Arc<Gpu>) -> io::Result<Thread> {
    let worker = core.completer().clone();
    let weak = Arc::downgrade(core);
    let name = "oxisycl-cuda-complete".to_owned();
    spawn(name, move || {
        make_naps_exact();
        let mut last_progress = Instant::now();
        let mut n_accepted = 0;
        while let Some(core) = weak.upgrade() {
            let progress = look(&core);
            let is_fed = n_accepted != core.n_accepted();
            n_accepted = core.n_accepted();
            let has_tasks = core.has_tasks();
            drop(core);
            if progress {
                last_progress = Instant::now();
            }
            let idle = last_progress.elapsed();
            if is_fed {
                worker.nap(BUSY_NAP);
            } else if has_tasks || idle < LINGER {
                std::thread::sleep((idle / 64).clamp(SHORTEST_NAP, LONGEST_NAP));
            } else {
                if let Some(core) = weak.upgrade() {
                    core.free_retired_while_idle();
                }
                let has_work = |core: Arc<Gpu>| core.has_tasks() || !core.retired.is_empty();
                worker.sleep(|| weak.upgrade().is_none_or(has_work));
                last_progress = Instant::now();
            }
        }
    })
}

/// Ends what can end. Whether anything did.
fn look(core: &Arc<Gpu>) -> bool {
    let mut progress = false;
    for stream in core.streams() {
        if !stream.is_empty() {
            progress |= advance::drain(&stream, true);
        }
    }
    if core.clock.is_stale()
        && let Ok(_entered) = core.context.enter()
    {
        let _ = core.clock.renew(&core.context, core.utility);
    }
    progress
}

/// The system lets short sleeps of a thread end late, to save power; 50 us by default on Linux.
#[cfg(target_os = "linux")]
fn make_naps_exact() {
    // SAFETY: changes only how exactly the calling thread's timers are kept.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
}

#[cfg(not(target_os = "linux"))]
fn make_naps_exact() {}
