//! The driver-wait thread: waits in drivers whose device is the processors of this machine.
//!
//! Such a driver may rely on waiting threads: it has one thread less than there are processors (the quirk `waiting-threads`). A thread that
//! waits for a command executes work-items meanwhile. Threads of ours that wait do not call the driver, so that one processor would be
//! idle. The driver-wait thread does it for them. When commands run for longer than two polls of the poller take, it waits in the driver
//! for the oldest of them.
//!
//! Invariants:
//! - No thread waits for this one, which may be in the driver for as long as any kernel runs. It holds no lock meanwhile but the one
//!   that the end of the process asks for, and [`TURN`].
//! - One thread of the process waits in such a driver at a time. Of two waiting threads, the driver may make the first do the second one's
//!   waiting, within the awaited command. Then neither ever returns (the quirk `second-waiter`).

use std::io;
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};

use oxisycl_backend::driver::spawn;

use parking_lot::Mutex;

use crate::device_state::DeviceState;
use crate::process_exit;

/// The shortest duration of a command after which the thread goes on to wait for the next one. Shorter commands need no second thread.
const SHORT: Duration = Duration::from_micros(100);

/// Held by the thread that waits in a driver.
static TURN: Mutex<()> = Mutex::new(());

/// Wakes the driver-wait thread to wait for running commands, if the device profits from it.
pub(crate) fn call(state: &Arc<DeviceState>) {
    // Without a thread commands end later, but they do.
    if state.has_waiting_thread && state.driver_waiter.wake(|| start(state)).is_err() {
        tracing::debug!(device = %state.context.name, "no thread can be started that helps the driver");
    }
}

fn start(state: &Arc<DeviceState>) -> io::Result<Thread> {
    let worker = state.driver_waiter.clone();
    let weak = Arc::downgrade(state);
    spawn("oxisycl-opencl-wait".to_owned(), move || {
        while let Some(state) = weak.upgrade() {
            if state.context.is_foreign() {
                return;
            }
            while wait_for_oldest(&state) {}
            drop(state);
            worker.sleep(|| weak.strong_count() == 0);
        }
    })
}

/// Waits in the driver for the oldest running command. Returns whether there may be more to wait for.
fn wait_for_oldest(state: &DeviceState) -> bool {
    let Some(task) = state.lanes.oldest() else { return false };
    let began = Instant::now();
    {
        // The poller calls again, as long as something runs.
        let turn = TURN.try_lock();
        if turn.is_none() && state.context.quirks.second_waiter {
            return false;
        }
        let Some(_guard) = process_exit::begin_driver_call() else { return false };
        task.issued.wait_in_driver(&state.context);
    }
    let is_long = began.elapsed() > SHORT;
    drop(task);
    state.lanes.poll(state, false);
    is_long
}
