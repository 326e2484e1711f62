//! The thread of a simulated device, and the order in which it runs ready tasks.
//!
//! An [`Engine`] owns the device's ready tasks and its thread, which starts with the first command. The thread ends
//! when nothing can issue any more and every accepted command has ended. Invariant: one command runs at a time.
//! Without a seed it is the oldest ready one. With a seed it is the one that the seed and its number put first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use oxisycl_backend::{BackendError, Command, ExecutionTimes, FailureKind, Operation, Outcome, fork, now};
use parking_lot::{Condvar, Mutex};

use super::check::Checker;
use super::fault::Attempts;
use crate::pool::Work;
use crate::task::{Executor, HandOver, HostTask};

/// The last part of a latency, which is waited for actively since sleeping is not exact.
const ACTIVE_WAIT: Duration = Duration::from_micros(120);

pub(crate) struct Engine {
    device_name: String,
    latency: Duration,
    seed: Option<u64>,
    checker: Checker,
    attempts: Arc<Mutex<Attempts>>,
    /// The generation of the process that started the thread; 0 before that.
    generation: AtomicU32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: Vec<Ready>,
    /// The number of accepted commands that have not ended.
    live: usize,
    submitted: u64,
    has_thread: bool,
    paused: bool,
    /// Whether a command is being executed.
    is_executing: bool,
    /// How many loads wait for it. No command begins meanwhile.
    n_waiting_loads: usize,
    /// How many images were loaded.
    n_loads: u64,
    /// Whether all queues were dropped, so that no command can be issued any more.
    closed: bool,
}

struct Ready {
    /// The position in the order of execution; the smallest key runs first.
    key: u64,
    task: Arc<HostTask>,
}

impl Engine {
    pub(crate) fn new(
        device_name: String,
        latency: Duration,
        seed: Option<u64>,
        checker: Checker,
        attempts: Arc<Mutex<Attempts>>,
    ) -> Self {
        Self {
            device_name,
            latency,
            seed,
            checker,
            attempts,
            generation: AtomicU32::new(0),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        }
    }

    /// Counts a command that is about to be submitted, and starts the thread if needed. Returns the command's number.
    pub(crate) fn expect_command(self: &Arc<Self>) -> Result<u64, BackendError> {
        if self.is_stale() {
            return Err(self.lost("the process was forked after the device's thread had started".to_owned()));
        }
        let mut state = self.state.lock();
        if self.generation.load(Ordering::Relaxed) == 0 {
            crate::panic_hook::install();
            fork::watch();
            let engine = Arc::clone(self);
            let name = self.device_name.replace(' ', "-");
            std::thread::Builder::new()
                .name(name)
                .spawn(move || engine.run())
                .map_err(|error| self.lost(format!("no thread could be started: {error}")))?;
            self.generation.store(fork::generation(), Ordering::Release);
            state.has_thread = true;
        }
        state.live += 1;
        state.submitted += 1;
        Ok(state.submitted)
    }

    /// Reverts `expect_command`, for a command that was refused.
    pub(crate) fn forget_command(&self) {
        self.ended();
    }

    /// Makes the thread end when all commands have ended.
    pub(crate) fn close(&self) {
        if self.is_stale() {
            return;
        }
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Holds back commands that have not begun, or resumes them.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.state.lock().paused = paused;
        self.changed.notify_all();
    }

    /// Counts an image that is loaded. If the load `waits`, returns once no command is being executed.
    pub(crate) fn load(&self, waits: bool) {
        let mut state = self.state.lock();
        state.n_loads += 1;
        if !waits || self.is_stale() {
            return;
        }
        state.n_waiting_loads += 1;
        while state.is_executing {
            self.changed.wait(&mut state);
        }
        state.n_waiting_loads -= 1;
        self.changed.notify_all();
    }

    /// How many images were loaded.
    pub(crate) fn n_loads(&self) -> u64 {
        self.state.lock().n_loads
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn has_thread(&self) -> bool {
        self.state.lock().has_thread
    }

    fn run(&self) {
        while let Some(task) = self.next() {
            self.execute(task);
            self.state.lock().is_executing = false;
            self.changed.notify_all();
        }
        self.state.lock().has_thread = false;
    }

    /// Waits for the next task to run; `None` if there will be none.
    fn next(&self) -> Option<Arc<HostTask>> {
        let mut state = self.state.lock();
        loop {
            if (!state.paused || state.closed) && state.n_waiting_loads == 0 {
                let first = state.ready.iter().enumerate().min_by_key(|(_, ready)| ready.key);
                if let Some((index, _)) = first {
                    state.is_executing = true;
                    return Some(state.ready.swap_remove(index).task);
                }
            }
            if state.closed && state.live == 0 {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    fn execute(&self, task: Arc<HostTask>) {
        task.links().begin();
        let start = task.options().profiling.then(now);
        let begun = Instant::now();
        // SAFETY: the engine's thread owns the tasks that were handed over to it.
        let command = unsafe { task.command() };
        let operation = command.operation();
        let injected = self.attempts.lock().attempt(operation);
        wait_until(begun + self.latency);
        let result = match injected {
            Some(count) => Err(FailureKind::Device(self.injected(operation, count))),
            None => self.carry_out(command),
        };
        let result = match result {
            Ok(()) => Ok(()),
            Err(kind) => Err(task.failure(kind)),
        };
        let times = start.map(|start| ExecutionTimes { start, end: now() });
        task.complete(Outcome { times, ..Outcome::ran(result) }, &mut HandOver);
    }

    fn carry_out(&self, command: &Command) -> Result<(), FailureKind> {
        self.checker.check(command, &self.device_name).map_err(FailureKind::Device)?;
        let work = Work::of(command);
        // SAFETY: these are all units, and the issuer promises that the memory is valid until the task completes.
        unsafe { work.run(0, work.total()) }.map_err(|report| FailureKind::Panic {
            message: report.message,
            location: report.location,
            item: report.item,
        })
    }

    /// Whether the thread is that of the parent process. Then the state may be locked for ever.
    fn is_stale(&self) -> bool {
        let started = self.generation.load(Ordering::Acquire);
        started != 0 && started != fork::generation()
    }

    fn lost(&self, reason: String) -> BackendError {
        BackendError::DeviceLost { device: self.device_name.clone(), reason }
    }

    fn injected(&self, operation: Operation, count: u64) -> BackendError {
        BackendError::InjectedFault { device: self.device_name.clone(), operation, count }
    }
}

impl Executor for Engine {
    fn accept(&self, task: Arc<HostTask>) {
        let number = task.options().sequence;
        let key = self.seed.map_or(number, |seed| scramble(seed ^ number));
        self.state.lock().ready.push(Ready { key, task });
        self.changed.notify_all();
    }

    fn ended(&self) {
        let mut state = self.state.lock();
        state.live -= 1;
        if state.live == 0 {
            self.changed.notify_all();
        }
    }

    fn device_name(&self) -> &str {
        &self.device_name
    }
}

/// Waits until `moment`, with a precision of well below a microsecond if the system schedules the thread.
fn wait_until(moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > ACTIVE_WAIT {
            std::thread::sleep(left - ACTIVE_WAIT);
        } else {
            std::hint::spin_loop();
        }
    }
}

/// A permutation of the 64-bit numbers without visible order (the finaliser of SplitMix64).
fn scramble(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
