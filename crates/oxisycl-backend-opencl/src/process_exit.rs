//! The end of the process: drivers are torn down by exit handlers of their own, and must not be called after that.
//!
//! A handler that runs before the driver's keeps the threads of this crate away from the driver for good. A driver may also abort the process if
//! a kernel runs then (the quirk `process-end`). For its sake the handler first waits for a while until all its commands have ended and nothing is
//! compiled any more. Where commands still run after that while, the process ends there and then, with its own status.
//! Handlers run in the reverse order of their registration. Drivers register theirs when they are loaded or first used, so this one is
//! registered again after each such moment, a few times.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use oxisycl_backend::poller::Progress;
use oxisycl_backend::process_end;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

/// How long the exit handler waits for commands.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// The most registrations of the handler.
const MAX_HANDLERS: usize = 16;

static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Read-locked by threads while they poll commands. The exit handler locks it for writing and never unlocks it.
static DRIVER_CALLS: RwLock<()> = RwLock::new(());
static DEVICES: Mutex<Vec<Weak<dyn Progress>>> = Mutex::new(Vec::new());

/// Whether drivers must not be called any more.
#[inline]
pub(crate) fn is_ending() -> bool {
    IS_ENDING.load(Ordering::Acquire)
}

/// Held by a thread while it polls commands; `None` at the end of the process.
pub(crate) fn begin_driver_call() -> Option<RwLockReadGuard<'static, ()>> {
    // A completion that is called may poll, too.
    let guard = DRIVER_CALLS.read_recursive();
    (!is_ending()).then_some(guard)
}

/// Makes the exit handler wait for the commands of a device whose driver needs it.
pub(crate) fn add(device: Weak<dyn Progress>) {
    let mut devices = DEVICES.lock();
    devices.retain(|device| device.strong_count() > 0);
    devices.push(device);
}

/// Registers the exit handler. Called after a driver was loaded, or used for the first time for something.
pub(crate) fn watch() {
    static N_HANDLERS: AtomicUsize = AtomicUsize::new(0);
    if N_HANDLERS.fetch_add(1, Ordering::Relaxed) < MAX_HANDLERS {
        register();
    } else {
        N_HANDLERS.store(MAX_HANDLERS, Ordering::Relaxed);
    }
}

/// The number of programs that drivers are compiling.
static N_COMPILING: AtomicUsize = AtomicUsize::new(0);

/// Held while a driver that needs it compiles. The exit handler waits for its end as for commands.
pub(crate) struct Compiling(());

impl Compiling {
    pub(crate) fn begin() -> Self {
        N_COMPILING.fetch_add(1, Ordering::AcqRel);
        Self(())
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        N_COMPILING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Waits for commands and compilations, and then locks out all threads. Returns whether everything had ended.
fn end() -> bool {
    if is_ending() {
        return true;
    }
    let devices: Vec<Arc<dyn Progress>> = {
        // A thread may have ended the process while it held the lock.
        let Some(devices) = DEVICES.try_lock_for(Duration::from_millis(100)) else { return true };
        devices.iter().filter_map(Weak::upgrade).filter(|device| !device.counts().is_foreign()).collect()
    };
    let began = Instant::now();
    let has_tasks =
        || N_COMPILING.load(Ordering::Acquire) > 0 || devices.iter().any(|device| device.counts().has_commands());
    while has_tasks() && began.elapsed() < EXIT_TIMEOUT {
        std::thread::sleep(Duration::from_micros(200));
    }
    let is_idle = !has_tasks();
    IS_ENDING.store(true, Ordering::Release);
    if let Some(guard) = DRIVER_CALLS.try_write_for(Duration::from_millis(100)) {
        std::mem::forget(guard);
    }
    // Not dropped: that would be calls of the driver.
    std::mem::forget(devices);
    is_idle
}

fn register() {
    process_end::at_exit(|status| {
        if !end() {
            process_end::exit_now(status);
        }
    });
}
