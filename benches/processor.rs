//! Time on processors, of all threads of this process together: what counts where other programs share the machine.

use std::time::{Duration, Instant};

/// How long a measurement leaves the threads of other libraries to go to sleep.
const REST: Duration = Duration::from_millis(2);

/// What a piece of work took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Seconds that threads were on processors.
    pub(crate) processor: f64,
    /// Seconds that passed.
    pub(crate) wall: f64,
}

/// Seconds that all threads of this process have been on processors.
fn processor() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that each system of this kind has, and room for its time.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0, "the process has a clock");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Runs `f` after a rest.
pub(crate) fn times(f: impl FnOnce()) -> Times {
    std::thread::sleep(REST);
    let (start, before) = (Instant::now(), processor());
    f();
    Times { processor: processor() - before, wall: start.elapsed().as_secs_f64() }
}
