//! The thread that tells completions.
//!
//! It looks at all tasks that may be over, and naps between two looks for a time that grows with how long nothing has happened: a
//! command is told at most a sixty-fourth of its own duration late, or half a millisecond. While work is being submitted it looks less
//! often, since that costs those who submit; a thread that has to wait for longer than a few microseconds ends such a nap. It also hands to
//! the device what queues hold back, since OpenCL promises nothing before that.

use std::io;
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};

use oxisycl_backend::driver::spawn;

use crate::advance;
use crate::core::Core;
use crate::lender;

/// Shortest and longest time between two looks.
const SHORTEST_NAP: Duration = Duration::from_micros(40);
/// As above.
const LONGEST_NAP: Duration = Duration::from_micros(500);
/// Time between two looks while work is being submitted.
const BUSY_NAP: Duration = Duration::from_micros(300);
/// How long the thread stays up without work, so that the next submission need not wake it.
const LINGER: Duration = Duration::from_millis(4);

/// Starts the thread.
pub(crate) fn start(core: &Arc<Core>) -> io::Result<Thread> {
    let worker = core.completer().clone();
    let weak = Arc::downgrade(core);
    spawn("oxisycl-opencl-complete".to_owned(), move || {
        let mut last_progress = Instant::now();
        let mut n_accepted = 0;
        while let Some(core) = weak.upgrade() {
            if core.context.is_foreign() {
                return;
            }
            let progress = advance::look(&core);
            let is_fed = n_accepted != core.n_accepted();
            n_accepted = core.n_accepted();
            let has_tasks = core.has_tasks();
            if has_tasks && !progress {
                lender::call(&core);
            }
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
                worker.sleep(|| weak.upgrade().is_none_or(|core| core.has_tasks()));
                last_progress = Instant::now();
            }
        }
    })
}
