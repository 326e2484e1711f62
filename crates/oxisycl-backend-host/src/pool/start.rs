//! Starting the pool's threads, and the one pool of the process.
//!
//! Threads start with the first command, since a program that only lists its devices needs none. After `fork` the child has the
//! pool's memory but none of its threads; it gets an error instead of waiting for ever.

use std::env::VarError;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use oxisycl_backend::{BackendError, fork};
use parking_lot::Mutex;

use super::Pool;
use crate::waiting;

/// The environment variable with the number of threads.
pub(crate) const THREADS_VARIABLE: &str = "OXISYCL_HOST_THREADS";
const MAX_THREADS: usize = 1024;

/// The started threads of the pool.
pub(super) struct Threads {
    /// The generation of the process that started the threads; 0 before that.
    generation: AtomicU32,
    /// The number of threads that have started and not ended.
    live: AtomicUsize,
    starting: Mutex<()>,
}

impl Threads {
    pub(super) fn new() -> Self {
        Self { generation: AtomicU32::new(0), live: AtomicUsize::new(0), starting: Mutex::new(()) }
    }

    /// Whether the threads are those of the parent process.
    pub(super) fn is_stale(&self) -> bool {
        let started = self.generation.load(Ordering::Relaxed);
        started != 0 && started != fork::generation()
    }
}

impl Pool {
    /// Starts the threads, if they do not run yet.
    #[inline]
    pub(crate) fn start(&'static self) -> Result<(), BackendError> {
        if self.started.generation.load(Ordering::Acquire) == fork::generation() {
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
        if self.started.generation.load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        crate::panic_hook::install();
        fork::watch();
        for index in 0..self.threads {
            let reserve = index > 0 && index == self.threads - 1;
            let body = move || {
                if reserve {
                    self.reserve_loop()
                } else {
                    self.worker_loop()
                }
                self.started.live.fetch_sub(1, Ordering::Relaxed);
            };
            let thread = std::thread::Builder::new().name(format!("oxisycl-host-{index}")).spawn(body);
            match thread {
                Ok(_) => drop(self.started.live.fetch_add(1, Ordering::Relaxed)),
                // The pool works with fewer threads, but not with none.
                Err(error) if index == 0 => return Err(self.lost(&format!("no thread could be started: {error}"))),
                Err(_) => {}
            }
        }
        self.started.generation.store(fork::generation(), Ordering::Release);
        Ok(())
    }

    /// The number of threads that have started and not ended.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn live_threads(&self) -> usize {
        self.started.live.load(Ordering::Relaxed)
    }

    fn lost(&self, reason: &str) -> BackendError {
        BackendError::DeviceLost { device: self.device_name.clone(), reason: reason.to_owned() }
    }
}

/// The pool of the process. It has as many threads as the setting says, else as the program may use processors.
pub(crate) fn process_pool(device_name: &str) -> Result<&'static Pool, BackendError> {
    static POOL: OnceLock<Result<&'static Pool, BackendError>> = OnceLock::new();
    POOL.get_or_init(|| {
        let threads = thread_count(std::env::var(THREADS_VARIABLE))?;
        waiting::read_stack_size()?;
        Ok(Pool::leak(threads, device_name.to_owned()))
    })
    .clone()
}

fn thread_count(setting: Result<String, VarError>) -> Result<usize, BackendError> {
    let value = match setting {
        Ok(text) => text,
        Err(VarError::NotPresent) => return Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        Err(VarError::NotUnicode(text)) => text.to_string_lossy().into_owned(),
    };
    match value.trim().parse() {
        Ok(count @ 1..=MAX_THREADS) => Ok(count),
        _ => {
            let expected = format!("a number of threads from 1 to {MAX_THREADS}");
            Err(BackendError::Setting { variable: THREADS_VARIABLE, value, expected })
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_a_number_of_threads_or_an_error_that_quotes_it() {
        assert_eq!(thread_count(Ok("3".to_owned())), Ok(3));
        assert_eq!(thread_count(Ok(" 1024 ".to_owned())), Ok(1024));
        assert!(thread_count(Err(VarError::NotPresent)).expect("a default") >= 1);
        for text in ["", "0", "-1", "1025", "two", "1.5"] {
            let error = thread_count(Ok(text.to_owned())).expect_err("no number of threads");
            let expected = format!("OXISYCL_HOST_THREADS=\"{text}\": expected a number of threads from 1 to 1024");
            assert_eq!(error.to_string(), expected);
        }
        assert!(thread_count(Err(VarError::NotUnicode("x".into()))).is_err());
    }
}
