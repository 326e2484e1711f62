//! When a device's driver may load code: only while no kernel of the device runs.
//!
//! Some drivers wait for running kernels when they load code, and begin no other launch until it is done ([`DeviceInfo::load_waits`]). A kernel
//! that waits for the host, which waits for a launch, would then never end. So each command that may run a kernel passes the gate of its
//! device before it is issued. The driver is asked only while the gate is closed and none is behind it. No time-out loads all the same.
//!
//! A thread that keeps the device busy must not keep another thread's first launch from ever starting. So a load that has waited for
//! [`HOLD_AFTER`] closes the gate, and later commands are held back until the device is quiet. What is held back may be what a running
//! kernel waits for, and nothing can tell. So the gate opens again after [`PATIENCE`]. It then stays open until all commands have ended that were
//! before it when it was closed, and the next time it stays closed [longer](GROWTH).
//!
//! Invariants:
//! - While a [`Loading`] exists, no command behind the gate is unfinished. One that comes counts itself first and looks at the gate then. One
//!   that loads closes the gate first and looks at the counts then. So one of them sees the other.
//! - What is held back goes on each time that the gate opens. No lock is held while it does.
//! - Threads that load take turns. None of them waits for a command that the gate holds back.
//!
//! Knows no nodes, and does not know what is loaded.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

#[cfg(doc)]
use oxisycl_backend::DeviceInfo;
use oxisycl_backend::poller::Padded;
use oxisycl_backend::{Device, Queue};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::host_executor;

/// How long a load waits before it holds later commands back.
const HOLD_AFTER: Duration = Duration::from_millis(1);
/// How long commands are held back the first time. With [`HOLD_AFTER`] well below the 10 ms in which a loaded kernel has to start.
const PATIENCE: Duration = Duration::from_millis(5);
/// How much longer commands are held back the next time.
const GROWTH: u32 = 4;
/// How long code is loaded while commands are held back for nothing else.
const MOST_LOADING: Duration = Duration::from_millis(10);
/// How often a thread that waits makes sure that issued commands begin.
const FLUSH_INTERVAL: Duration = Duration::from_millis(2);

/// What waits for a gate, or for code.
pub(super) trait Waits: Send + Sync {
    /// Called once for each time that it has begun to wait, outside of all locks.
    fn go_on(self: Arc<Self>);
}

/// Which of the two counts of commands a command belongs to.
pub(super) type Phase = usize;

/// Work that asks the driver for code. Runs while no kernel does.
type Job = Box<dyn FnOnce() + Send>;

/// The gate of one device.
#[derive(Default)]
pub struct Gate {
    began: [Padded<AtomicU64>; 2],
    ended: [Padded<AtomicU64>; 2],
    /// Changes under the lock of `held` only.
    is_closed: Padded<AtomicBool>,
    /// The phase of commands that come now. Changes only once no command of the other one is unfinished.
    phase: AtomicUsize,
    held: Mutex<Vec<Arc<dyn Waits>>>,
    /// Whether a thread waits for commands to end.
    is_awaited: AtomicBool,
    waiting: Mutex<()>,
    changed: Condvar,
    turn: Mutex<()>,
    jobs: Mutex<Jobs>,
    /// The queues of the device, some of which may be gone.
    queues: Mutex<Vec<Weak<dyn Queue>>>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    /// Whether a thread runs them.
    are_run: bool,
}

/// A device, and its gate.
type OfDevice = (Weak<dyn Device>, Arc<Gate>);

static GATES: Mutex<Vec<OfDevice>> = Mutex::new(Vec::new());

/// The gate of a device; `None` if its driver loads code whenever it is asked to.
pub fn gate_of(device: &Arc<dyn Device>) -> Option<Arc<Gate>> {
    device.info().load_waits.then(|| find(device))
}

#[cold]
fn find(device: &Arc<dyn Device>) -> Arc<Gate> {
    let mut gates = GATES.lock();
    if let Some((_, gate)) = gates.iter().find(|(of, _)| std::ptr::addr_eq(of.as_ptr(), Arc::as_ptr(device))) {
        return gate.clone();
    }
    gates.retain(|(of, _)| of.strong_count() > 0);
    let gate = Arc::new(Gate::default());
    gates.push((Arc::downgrade(device), gate.clone()));
    gate
}

/// No kernel of the device runs, and none begins, as long as this exists.
pub struct Loading<'g> {
    gate: &'g Gate,
    _turn: MutexGuard<'g, ()>,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.gate.open();
    }
}

impl Gate {
    /// Lets a command pass, and returns its phase, unless the gate is closed.
    #[inline]
    pub(super) fn try_enter(&self) -> Option<Phase> {
        let phase = self.phase.load(Ordering::Relaxed);
        self.began[phase].0.fetch_add(1, Ordering::SeqCst);
        if !self.is_closed.0.load(Ordering::SeqCst) {
            return Some(phase);
        }
        self.leave(phase);
        None
    }

    /// Holds a command back until the gate opens. Returns false, and does not, if it is open.
    pub(super) fn wait(&self, command: Arc<dyn Waits>) -> bool {
        let mut held = self.held.lock();
        let is_closed = self.is_closed.0.load(Ordering::SeqCst);
        if is_closed {
            held.push(command);
        }
        is_closed
    }

    /// A command that has passed has ended, or was refused.
    #[inline]
    pub(super) fn leave(&self, phase: Phase) {
        self.ended[phase].0.fetch_add(1, Ordering::SeqCst);
        if self.is_awaited.load(Ordering::SeqCst) {
            self.wake(phase);
        }
    }

    #[cold]
    fn wake(&self, phase: Phase) {
        if self.is_over(phase) {
            drop(self.waiting.lock());
            self.changed.notify_all();
        }
    }

    /// A queue whose commands pass the gate.
    pub(super) fn add(&self, queue: &Arc<dyn Queue>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// Closes the gate, if no kernel runs and no other thread is loading code.
    pub fn try_begin(&self) -> Option<Loading<'_>> {
        let turn = self.turn.try_lock()?;
        self.close_if_quiet().then(|| Loading { gate: self, _turn: turn })
    }

    /// Closes the gate once no kernel runs and no other thread is loading code, and waits for that.
    pub fn begin(&self) -> Loading<'_> {
        let turn = self.turn.lock();
        if !self.close_if_quiet() {
            self.is_awaited.store(true, Ordering::SeqCst);
            self.close_when_quiet();
            self.is_awaited.store(false, Ordering::SeqCst);
        }
        Loading { gate: self, _turn: turn }
    }

    /// Has a thread run `job` while no kernel of the device does.
    ///
    /// # Errors
    /// If there is no thread for it; then it is dropped.
    pub fn ask(self: &Arc<Self>, job: Job) -> io::Result<()> {
        let mut jobs = self.jobs.lock();
        jobs.waiting.push_back(job);
        if !jobs.are_run {
            jobs.are_run = true;
            let gate = self.clone();
            if let Err((_, error)) = host_executor::spawn(Box::new(move || gate.run())) {
                jobs.are_run = false;
                let unused = jobs.waiting.pop_back();
                drop(jobs);
                drop(unused);
                return Err(error);
            }
        }
        Ok(())
    }

    fn run(&self) {
        loop {
            let loading = self.begin();
            let began = Instant::now();
            loop {
                let job = {
                    let mut jobs = self.jobs.lock();
                    let job = jobs.waiting.pop_front();
                    jobs.are_run = job.is_some();
                    job
                };
                let Some(job) = job else { return };
                job();
                if began.elapsed() > MOST_LOADING && !self.held.lock().is_empty() {
                    break;
                }
            }
            drop(loading);
        }
    }

    /// Whether all commands of a phase have ended.
    fn is_over(&self, phase: Phase) -> bool {
        let ended = self.ended[phase].0.load(Ordering::SeqCst);
        // In this order: no command is unfinished if there are as many as had ended before.
        self.began[phase].0.load(Ordering::SeqCst) == ended
    }

    /// Whether no command behind the gate is unfinished. Holds on only while the gate is closed.
    fn is_quiet(&self) -> bool {
        // A command that comes meanwhile finds the gate closed, where that matters.
        self.is_over(0) && self.is_over(1)
    }

    fn close(&self) {
        let _held = self.held.lock();
        self.is_closed.0.store(true, Ordering::SeqCst);
    }

    fn open(&self) {
        let held = {
            let mut held = self.held.lock();
            self.is_closed.0.store(false, Ordering::SeqCst);
            std::mem::take(&mut *held)
        };
        held.into_iter().for_each(|command| command.go_on());
    }

    fn close_if_quiet(&self) -> bool {
        if !self.is_quiet() {
            return false;
        }
        self.close();
        let is_quiet = self.is_quiet();
        if !is_quiet {
            self.open();
        }
        is_quiet
    }

    /// See the module's documentation.
    fn close_when_quiet(&self) {
        let mut patience = PATIENCE;
        self.wait_until(Some(HOLD_AFTER), || self.is_quiet());
        loop {
            if self.close_if_quiet() {
                return;
            }
            self.close();
            if self.wait_until(Some(patience), || self.is_quiet()) {
                return;
            }
            // Commands of the other phase have ended: it was so when this one began.
            let before = self.phase.fetch_xor(1, Ordering::Relaxed);
            self.open();
            patience = patience.saturating_mul(GROWTH);
            self.wait_until(None, || self.is_over(before));
        }
    }

    /// Waits until `is_done`, which becomes true when a command ends. Returns whether it has within `limit`.
    fn wait_until(&self, limit: Option<Duration>, is_done: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        loop {
            let left = limit.map_or(FLUSH_INTERVAL, |limit| limit.saturating_sub(began.elapsed()).min(FLUSH_INTERVAL));
            {
                let mut waiting = self.waiting.lock();
                if is_done() {
                    return true;
                }
                if left.is_zero() {
                    return false;
                }
                self.changed.wait_for(&mut waiting, left);
            }
            self.flush();
        }
    }

    /// Commands that are issued and not begun would keep the device busy for ever.
    fn flush(&self) {
        let queues: Vec<_> = self.queues.lock().iter().filter_map(Weak::upgrade).collect();
        for queue in queues {
            // A queue that fails says so by its commands.
            let _ = queue.flush();
        }
    }
}
