//! The end of the process: the order of exit handlers, and the exit status.
//!
//! Handlers run in the reverse order of their registration. Drivers register theirs when they are loaded or first used, and must not be called
//! once those have run. A backend registers its own handler after that ([`at_exit`]), so that it runs before. The runtime's handler
//! ([`run_first`]) needs the backends, so it runs before all others. The handler that [decides the status](fail) runs last, after the drivers'.
//!
//! A handler must not call `exit`. To replace a status, the process is ended there and then, after C's streams are written out.
//! Handlers that were registered before [`begin`] do not run then.

use std::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use parking_lot::Mutex;

/// An exit handler. It gets the exit status of the process, where the system reports it, and must not call `exit`.
pub type Handler = fn(status: Option<c_int>);

static HANDLERS: Mutex<Vec<Handler>> = Mutex::new(Vec::new());
static FIRST: OnceLock<Handler> = OnceLock::new();
static HAS_FIRST_RUN: AtomicBool = AtomicBool::new(false);
/// The exit status that replaces success; 0 for none.
static FAILURE: AtomicI32 = AtomicI32::new(0);

/// Registers the handler that replaces the exit status for [`fail`]. To be called before a driver is loaded.
pub fn begin() {
    at_exit(|status| {
        if final_status(status) != status {
            exit_now(status);
        }
    });
}

/// Sets the handler that runs before all others, once. A second handler is ignored.
pub fn run_first(handler: Handler) {
    let _ = FIRST.set(handler);
}

/// Registers `handler` to run when `main` returns or the process calls `exit`, before all handlers that are registered now.
pub fn at_exit(handler: Handler) {
    HANDLERS.lock().push(handler);
    register();
}

/// Makes the process exit with `code` instead of success. An exit status of failure stays as it is.
pub fn fail(code: c_int) {
    FAILURE.store(code, Ordering::Release);
}

/// Exits the process with `status`, or with the one of [`fail`], after C's streams were flushed. For handlers; no other handler runs.
pub fn exit_now(status: Option<c_int>) -> ! {
    let status = final_status(status).unwrap_or(0);
    // SAFETY: neither has preconditions; a null pointer names all streams.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(status)
    }
}

fn final_status(status: Option<c_int>) -> Option<c_int> {
    match (status, FAILURE.load(Ordering::Acquire)) {
        (None | Some(0), code) if code != 0 => Some(code),
        _ => status,
    }
}

/// Runs the last handler that was registered and has not run, after the [first](run_first) one.
fn run(status: Option<c_int>) {
    let handler = HANDLERS.lock().pop();
    // A panic has its message printed; it must not go on into C.
    let result = catch_unwind(|| {
        if let Some(first) = FIRST.get()
            && !HAS_FIRST_RUN.swap(true, Ordering::AcqRel)
        {
            first(status);
        }
    });
    drop(result);
    if let Some(handler) = handler {
        drop(catch_unwind(|| handler(status)));
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
fn register() {
    use std::ffi::c_void;

    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }

    extern "C" fn at_exit(status: c_int, _argument: *mut c_void) {
        run(Some(status));
    }

    // SAFETY: the function does not unwind. A failure means that there is no room: then the handler does not run.
    unsafe { on_exit(at_exit, std::ptr::null_mut()) };
}

#[cfg(not(any(all(target_os = "linux", target_env = "gnu"), miri)))]
fn register() {
    extern "C" fn at_exit() {
        run(None);
    }

    // SAFETY: as above.
    unsafe { libc::atexit(at_exit) };
}

/// Miri has no such function.
#[cfg(miri)]
fn register() {}
