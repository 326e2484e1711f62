//! Starting the pool's threads, and the one pool of the process.
//!
//! Threads start with the first command, since a program that only lists its devices needs none. After `fork` the child has the
//! pool's memory but none of its threads; it is told so instead of waiting for ever.

use std::env::VarError;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use oxisycl_backend::BackendError;
use parking_lot::Mutex;

use super::Pool;

/// Names the setting in messages.
pub(crate) const THREADS_VARIABLE: &str = "OXISYCL_HOST_THREADS";
const MAX_THREADS: usize = 1024;

const NOT_STARTED: u8 = 0;
const STARTED: u8 = 1;

/// Set in a child process that was forked after threads had started.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether the pool's threads run.
pub(super) struct Threads {
    state: AtomicU8,
    starting: Mutex<()>,
}

impl Threads {
    pub(super) fn new() -> Self {
        Self { state: AtomicU8::new(NOT_STARTED), starting: Mutex::new(()) }
    }

    /// Whether the threads are those of the parent process.
    pub(super) fn is_stale(&self) -> bool {
        FORKED.load(Ordering::Relaxed) && self.state.load(Ordering::Relaxed) == STARTED
    }
}

impl Pool {
    /// Makes sure that the threads run.
    #[inline]
    pub(crate) fn start(&'static self) -> Result<(), BackendError> {
        if self.started.state.load(Ordering::Acquire) == STARTED && !FORKED.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.start_threads()
    }

    #[cold]
    fn start_threads(&'static self) -> Result<(), BackendError> {
        if self.started.is_stale() {
            return Err(self.lost("the process was forked after the host device's threads had started"));
        }
        let _guard = self.started.starting.lock();
        if self.started.state.load(Ordering::Acquire) == STARTED {
            return Ok(());
        }
        crate::panic_hook::install();
        watch_fork();
        for index in 0..self.threads {
            let reserve = index > 0 && index == self.threads - 1;
            let body = move || if reserve { self.work_in_reserve() } else { self.work() };
            let thread = std::thread::Builder::new().name(format!("oxisycl-host-{index}")).spawn(body);
            // The pool works with fewer threads, but not with none.
            if let Err(error) = thread
                && index == 0
            {
                return Err(self.lost(&format!("no thread could be started: {error}")));
            }
        }
        self.started.state.store(STARTED, Ordering::Release);
        Ok(())
    }

    fn lost(&self, reason: &str) -> BackendError {
        BackendError::DeviceLost { device: self.device_name.clone(), reason: reason.to_owned() }
    }
}

#[cfg(unix)]
fn watch_fork() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static WATCHING: std::sync::Once = std::sync::Once::new();
    WATCHING.call_once(|| {
        // SAFETY: the handler only stores to an atomic, which is allowed in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

#[cfg(not(unix))]
fn watch_fork() {}

/// The pool of the process, with as many threads as the program may use processors or as the setting says.
pub(crate) fn process_pool(device_name: &str) -> Result<&'static Pool, BackendError> {
    static POOL: OnceLock<Result<&'static Pool, BackendError>> = OnceLock::new();
    POOL.get_or_init(|| {
        let threads = thread_count(std::env::var(THREADS_VARIABLE))
            .map_err(|what| BackendError::Unsupported { device: device_name.to_owned(), what })?;
        Ok(Pool::leak(threads, device_name.to_owned()))
    })
    .clone()
}

fn thread_count(setting: Result<String, VarError>) -> Result<usize, String> {
    let text = match setting {
        Ok(text) => text,
        Err(VarError::NotPresent) => return Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        Err(VarError::NotUnicode(text)) => text.to_string_lossy().into_owned(),
    };
    match text.trim().parse() {
        Ok(count @ 1..=MAX_THREADS) => Ok(count),
        _ => Err(format!("{THREADS_VARIABLE}=\"{text}\" (expected a number from 1 to {MAX_THREADS})")),
    }
}
