//! The thread that lends itself to drivers whose device is the processors of this machine.
//!
//! Such a driver may count on those who wait: Intel's has one thread less than there are processors, and whoever waits for a command
//! executes work-items meanwhile. Threads of ours that wait do not call the driver, so that one processor would be idle. This one does it for
//! them: when commands run for longer than the completer needs to look twice, it waits in the driver for the oldest of them.
//!
//! Invariants:
//! - Nobody waits for this thread, which may be in the driver for as long as any kernel runs. It holds no lock meanwhile but the one
//!   that the end of the process asks for, and [`TURN`].
//! - One thread of the process waits in a driver at a time. Of two, Intel's (seen with 2026.22) may hand the second one's waiting to the
//!   first, which then does it in the middle of the very command that is waited for: neither ever returns.

use std::io;
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};

use oxisycl_backend::driver::spawn;

use parking_lot::Mutex;

use crate::advance;
use crate::core::Core;
use crate::ending;

/// Commands that end sooner need no second thread: the next one is not waited for.
const SHORT: Duration = Duration::from_micros(100);

/// Held by the thread that waits in a driver.
static TURN: Mutex<()> = Mutex::new(());

/// Has the thread wait for what runs, if the device is one that gains by it.
pub(crate) fn call(core: &Arc<Core>) {
    // Without a thread commands end later, but they do.
    if core.is_lent_to && core.lender.wake(|| start(core)).is_err() {
        tracing::debug!(device = %core.context.name, "no thread can be started that helps the driver");
    }
}

fn start(core: &Arc<Core>) -> io::Result<Thread> {
    let worker = core.lender.clone();
    let weak = Arc::downgrade(core);
    spawn("oxisycl-opencl-lend".to_owned(), move || {
        while let Some(core) = weak.upgrade() {
            if core.context.is_foreign() {
                return;
            }
            while lend(&core) {}
            drop(core);
            worker.sleep(|| weak.strong_count() == 0);
        }
    })
}

/// Waits in the driver for the oldest command that runs. Whether there may be more to do.
fn lend(core: &Core) -> bool {
    let Some(task) = core.oldest_running() else { return false };
    let began = Instant::now();
    {
        // The completer calls again, as long as something runs.
        let Some(_turn) = TURN.try_lock() else { return false };
        let Some(_guard) = ending::begin_look() else { return false };
        task.wait_in_driver();
    }
    let is_long = began.elapsed() > SHORT;
    drop(task);
    advance::look(core);
    is_long
}
