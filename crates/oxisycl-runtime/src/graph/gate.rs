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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_loaded_while_a_command_is_behind_the_gate() {
        const N_ROUNDS: usize = if cfg!(miri) { 50 } else { 20_000 };
        // Long enough for the other thread to come to its next step.
        let pause = || (0..100).for_each(|_| std::hint::spin_loop());
        let (gate, is_inside, is_over) = (Gate::default(), AtomicBool::new(false), AtomicBool::new(false));
        let mut n_loads = 0;
        thread::scope(|scope| {
            let loading = scope.spawn(|| {
                let mut n_loads = 0;
                let mut load = |_: Loading<'_>| {
                    for _ in 0..100 {
                        assert!(!is_inside.load(Ordering::SeqCst), "a command is behind the gate");
                        std::hint::spin_loop();
                    }
                    n_loads += 1;
                };
                while !is_over.load(Ordering::Relaxed) {
                    match gate.try_begin() {
                        Some(loading) => load(loading),
                        None => thread::yield_now(),
                    }
                }
                load(gate.begin());
                n_loads
            });
            let mut n_passed = 0;
            while n_passed < N_ROUNDS {
                match gate.try_enter() {
                    Some(phase) => {
                        is_inside.store(true, Ordering::SeqCst);
                        pause();
                        is_inside.store(false, Ordering::SeqCst);
                        gate.leave(phase);
                        n_passed += 1;
                    }
                    None => thread::yield_now(),
                }
                pause();
            }
            is_over.store(true, Ordering::Relaxed);
            n_loads = loading.join().unwrap();
        });
        assert!(n_loads > 0 && gate.is_quiet() && gate.try_enter().is_some(), "it is open again");
    }

    /// Counts how often it goes on.
    #[derive(Default)]
    struct Held(AtomicUsize);

    impl Waits for Held {
        fn go_on(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_is_held_back_goes_on_when_the_gate_opens_and_once() {
        let (gate, held) = (Gate::default(), Arc::new(Held::default()));
        assert!(!gate.wait(held.clone()), "it is open");
        for n in 1..4 {
            let loading = gate.try_begin().expect("nothing is behind it");
            assert!(gate.try_begin().is_none(), "another thread is loading");
            assert!(gate.try_enter().is_none() && gate.wait(held.clone()));
            assert_eq!(held.0.load(Ordering::SeqCst), n - 1);
            drop(loading);
            assert_eq!(held.0.load(Ordering::SeqCst), n);
        }
        let phase = gate.try_enter().expect("it is open");
        assert!(gate.try_begin().is_none(), "a command is behind it");
        gate.leave(phase);
        assert!(gate.try_begin().is_some());
    }

    #[test]
    fn a_command_that_does_not_end_holds_others_back_once() {
        let gate = Gate::default();
        let running = gate.try_enter().expect("it is open");
        let n_held = AtomicUsize::new(0);
        thread::scope(|scope| {
            let loading = scope.spawn(|| drop(gate.begin()));
            let began = Instant::now();
            // Until it has been closed, and has opened again.
            while n_held.load(Ordering::Relaxed) == 0 || gate.try_enter().map(|phase| gate.leave(phase)).is_none() {
                let held = Arc::new(Held::default());
                if gate.wait(held.clone()) {
                    n_held.fetch_add(1, Ordering::Relaxed);
                    while held.0.load(Ordering::SeqCst) == 0 {
                        assert!(began.elapsed() < Duration::from_secs(60), "it stays closed");
                        thread::yield_now();
                    }
                }
            }
            for _ in 0..20 {
                thread::sleep(2 * PATIENCE / 5);
                let phase = gate.try_enter().expect("it stays open as long as the command runs");
                gate.leave(phase);
            }
            assert!(!loading.is_finished());
            gate.leave(running);
            loading.join().unwrap();
        });
        assert_eq!(n_held.load(Ordering::Relaxed), 1);
    }
}
