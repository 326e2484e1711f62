//! Batching of small kernels on a busy stream: another thread launches many of them together, instead of the submitting thread one by one.
//!
//! A launch takes the driver 3 us, and so long the thread that makes it. A graph of one kernel with new parameters takes 1.6 to 2.3 us, and
//! on an idle stream the kernel starts 2 us sooner. In a graph of 16 a kernel takes 0.4 to 0.9 us, and the device runs each in 0.9 us
//! instead of 1.5 (`benches/results`). So kernels wait for each other here, as small packets do in Nagle's algorithm.
//!
//! - On a stream that has nothing to do a kernel is launched at once.
//! - On a busy stream a small kernel is *held*: it is put on the ring, and the driver has no part of it. The runtime's flusher thread calls
//!   [`hand_over`], which launches all kernels that were held meanwhile. It locks the ring to look and to record what it did, not while it
//!   calls the driver.
//! - A thread launches all held tasks before it puts anything else on the stream, waits for a held task, or asks for a later event. So does
//!   the thread that submits when [`MAX_HELD`] kernels are held.
//!
//! Invariants:
//! - Held tasks are the last ones of the lane's ring, in order. The driver has everything before them. It has none of them but those that are
//!   just being handed over, which are the first.
//! - The [launcher](Launcher) is locked after the ring, and no thread that has it waits for the ring. So a thread with both locks knows what the driver has.
//! - The ring is locked and the context current in all functions here, unless they say so. [`hand_over`], [`release`] and [`turn_off`] lock and enter
//!   by themselves.
//! - No function here calls code of users, so the thread that hands over is never held up by it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oxisycl_backend::lane::Ring;
use oxisycl_backend::{Batching, now};
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use crate::error::DriverError;
use crate::execute::GraphFitness;
use crate::lane::{Cuda, CudaLane, CudaTask};
use crate::launcher::{Launched, Launcher, MAX_GRAPH_KERNELS, Sizes};
use crate::module::CudaModule;
use crate::stream;

/// How long kernels are held so that more of them are batched. It is about as long as a thread takes to submit as many as a graph has.
const HOLD_TIME: Duration = Duration::from_micros(MAX_GRAPH_KERNELS as u64 * MICROSECONDS_PER_KERNEL);
const MICROSECONDS_PER_KERNEL: u64 = 1;
/// Shortens [`HOLD_TIME`] for the first held kernels, since the device is about to become idle.
const FIRST_HOLD_REDUCTION: Duration = Duration::from_micros(12);
/// After how long [`hand_over`] is called again if the stream has too many unfinished calls.
const RETRY_AFTER: Duration = Duration::from_micros(100);
/// For this long after a launch of held kernels, a kernel is held without asking the driver whether the stream is idle.
const BUSY_WINDOW: Duration = Duration::from_micros(30);
/// At this many held kernels, the submitting thread launches them: the flusher thread is late.
const MAX_HELD: usize = 64;
/// At this many held kernels, the submitting thread launches them in tests.
const MAX_HELD_IN_TESTS: usize = 3;
/// The most driver calls that a stream may be ahead of its device before held kernels wait. If the stream is full, the driver blocks.
const MAX_IN_FLIGHT: u64 = 512;
/// How often a thread that needs held kernels to be launched tries to lock the launcher before it sleeps.
const LAUNCHER_SPINS: usize = 1000;
/// The value of `held_since` if the flusher thread does not launch the held kernels.
const NO_DEADLINE: u64 = 1;

/// The batching state of a stream: the tasks that were submitted to it and not launched yet.
#[derive(Default)]
pub(crate) struct Batch {
    mode: Mode,
    /// How many of the ring's last tasks are held, including those that are just being launched.
    n_held: usize,
    /// How many of the held tasks are just being launched: the driver may have them already.
    n_begun: usize,
    /// When held tasks were last launched, on the clock of execution times.
    launched_at: u64,
    /// Incremented when the held tasks are abandoned.
    epoch: u64,
}

/// Whether a stream holds kernels.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Mode {
    #[default]
    Off,
    On,
    Always,
}

/// What a stream did with a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BatchDecision {
    /// The stream holds the task; the driver does not have it.
    Held,
    /// The driver has the task.
    Launched,
    /// The caller issues the task to the driver. The stream holds nothing, unless the device is lost.
    LeftToCaller,
}

impl Batch {
    /// How many of the ring's tasks are not known to have been issued to the driver.
    #[inline]
    pub(crate) fn n_held(&self) -> usize {
        self.n_held
    }

    /// How many of the ring's tasks have certainly not been issued to the driver, not even in part.
    pub(crate) fn n_untouched(&self) -> usize {
        self.n_held - self.n_begun
    }
}

/// Decides whether a new, empty stream holds kernels.
pub(crate) fn set_up(lane: &CudaLane, batching: Batching, has_profiling: bool) {
    let device = &lane.device;
    let mut ring = lane.lock_ring();
    // Asked with the lock held: who shares the device turns off what it finds after that.
    let is_shared = device.is_shared.load(Ordering::SeqCst);
    let mode = match batching {
        _ if has_profiling || is_shared || !device.context.driver.has_graphs() => Mode::Off,
        Batching::Off => Mode::Off,
        Batching::On => Mode::On,
        Batching::Always => Mode::Always,
    };
    ring.part.batch.mode = mode;
    lane.stream.launcher.lock().sizes = if mode == Mode::Always { Sizes::ForTests } else { Sizes::Many };
}

/// Whether the stream holds kernels until the flusher thread launches them.
pub(crate) fn holds_back(lane: &CudaLane) -> bool {
    lane.lock_ring().part.batch.mode == Mode::On
}

/// Holds a small kernel behind others that are held. Returns whether it does. The context need not be current.
#[inline]
pub(crate) fn hold_behind_held(lane: &CudaLane, ring: &mut Ring<Cuda>, task: &CudaTask) -> bool {
    let is_small = task.launch.as_ref().is_some_and(|launch| launch.fitness == GraphFitness::Small);
    // On a lost device nothing is flushed.
    let is_held = is_small && ring.part.batch.n_held > 0 && !lane.device.context.is_lost();
    ring.part.batch.n_held += usize::from(is_held);
    is_held
}

/// Holds a small kernel on a busy stream, or launches a kernel as a graph. A kernel that the driver does not accept as a graph is left to
/// the ordinary launch, which may report an error.
#[inline]
pub(crate) fn hold_or_launch(lane: &CudaLane, ring: &mut Ring<Cuda>, task: &CudaTask) -> BatchDecision {
    // On a lost device nothing is flushed.
    if ring.part.batch.mode == Mode::Off || lane.device.context.is_lost() {
        return BatchDecision::LeftToCaller;
    }
    let fitness = task.launch.as_ref().map_or(GraphFitness::Unfit, |launch| launch.fitness);
    if fitness == GraphFitness::Small && should_hold(lane, ring) {
        ring.part.batch.n_held += 1;
        return BatchDecision::Held;
    }
    flush(lane, ring);
    if fitness == GraphFitness::Unfit || ring.part.batch.n_held > 0 || ring.part.batch.mode != Mode::On {
        return BatchDecision::LeftToCaller;
    }
    let is_launched = lane.stream.launcher.lock().launch_one(lane, task);
    if is_launched { BatchDecision::Launched } else { BatchDecision::LeftToCaller }
}

/// Whether the next small kernel is to be held, since the stream has unfinished work.
#[inline]
fn should_hold(lane: &CudaLane, ring: &mut Ring<Cuda>) -> bool {
    let part = &mut ring.part;
    if part.batch.mode == Mode::Always || part.batch.n_held > 0 {
        return true;
    }
    if part.is_known_to_be_idle() {
        return false;
    }
    now().saturating_sub(part.batch.launched_at) < BUSY_WINDOW.as_nanos() as u64 || !stream::is_idle(lane, part)
}

/// Called after a held task was added to the ring; the context need not be current. Wakes the flusher thread, or launches the held tasks if there are many.
#[inline]
pub(crate) fn held(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    let Batch { mode, n_held, .. } = ring.part.batch;
    let max_held = if mode == Mode::Always { MAX_HELD_IN_TESTS } else { MAX_HELD };
    if n_held == 1 {
        let since = if mode == Mode::Always { NO_DEADLINE } else { before(now(), FIRST_HOLD_REDUCTION) };
        lane.stream.held_since.store(since, Ordering::SeqCst);
        if mode == Mode::On {
            lane.device.is_holding.0.store(true, Ordering::SeqCst);
            lane.device.lanes.counts.flusher().ring();
        }
    } else if n_held >= max_held
        && let Ok(_entered) = lane.device.context.enter_anyway()
    {
        flush(lane, ring);
    }
}

/// Launches all held tasks. An error of the launch becomes the failure of the tasks.
#[inline]
pub(crate) fn flush(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    if ring.part.batch.n_held > 0 {
        flush_held(lane, ring);
    }
}

fn flush_held(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    if lane.device.context.is_lost() {
        // They stay what the driver does not have, until the lane is polled.
        return;
    }
    // Waits for a thread that is just handing over some of them.
    let mut launcher = lock_launcher(lane);
    record_launched(lane, ring, &mut launcher);
    let n_tasks = ring.part.batch.n_held;
    if n_tasks == 0 {
        return;
    }
    let first = ring.pending.len() - n_tasks;
    let tasks: SmallVec<[&CudaTask; MAX_HELD]> = ring.pending.range(first..).map(|task| &**task).collect();
    launcher.launch(lane, &tasks);
    drop(tasks);
    let fence = lane.stream.record_event().ok();
    launcher.unrecorded = Some(Launched { n_tasks, fence, epoch: ring.part.batch.epoch });
    record_launched(lane, ring, &mut launcher);
}

/// Locks the launcher. The other thread has it for as long as some calls of the driver take, and to be woken takes 7 us.
fn lock_launcher(lane: &CudaLane) -> MutexGuard<'_, Launcher> {
    let launcher = &lane.stream.launcher;
    for _ in 0..LAUNCHER_SPINS {
        if let Some(launcher) = launcher.try_lock() {
            return launcher;
        }
        std::hint::spin_loop();
    }
    launcher.lock()
}

/// Records in the ring which held tasks were launched.
fn record_launched(lane: &CudaLane, ring: &mut Ring<Cuda>, launcher: &mut Launcher) {
    let Some(Launched { n_tasks, fence, epoch }) = launcher.unrecorded.take() else { return };
    let last = ring.last();
    let part = &mut ring.part;
    if epoch != part.batch.epoch {
        fence.into_iter().for_each(|event| lane.device.context.return_plain_event(event));
        return;
    }
    let now = now();
    part.batch.n_held -= n_tasks;
    part.batch.n_begun = 0;
    let since = match (part.batch.n_held, part.batch.mode) {
        (0, _) => 0,
        (_, Mode::Always) => NO_DEADLINE,
        (n_held, _) => before(now, Duration::from_micros(n_held as u64 * MICROSECONDS_PER_KERNEL)),
    };
    lane.stream.held_since.store(since, Ordering::SeqCst);
    part.batch.launched_at = now;
    part.has_issued(last.before(part.batch.n_held), n_tasks);
    // Without a fence, it is asked whether the stream is empty.
    part.add_fence(fence);
}

/// `time` before `now`, as a value of `held_since`.
fn before(now: u64, time: Duration) -> u64 {
    now.saturating_sub(time.as_nanos() as u64).max(NO_DEADLINE + 1)
}

/// Launches held tasks of the lane. If a thread `waits` for one, launches all of them, else a batch of those that were held long enough.
/// Returns after how long the call is to be repeated, which is zero if there may be more.
pub(crate) fn hand_over(lane: &CudaLane, waits: bool) -> Option<Duration> {
    let since = lane.stream.held_since.load(Ordering::SeqCst);
    if since == 0 || since == NO_DEADLINE && !waits {
        return None;
    }
    let age = Duration::from_nanos(now().saturating_sub(since));
    if !waits && age < HOLD_TIME {
        return Some(HOLD_TIME - age);
    }
    // Who has the lock holds more, or hands it over.
    let Some(mut ring) = lane.try_lock_ring() else { return Some(HOLD_TIME) };
    let Ok(_entered) = lane.device.context.enter_anyway() else { return None };
    if waits {
        flush(lane, &mut ring);
        return None;
    }
    if lane.device.context.is_lost() {
        return None;
    }
    let mut launcher = lane.stream.launcher.lock();
    record_launched(lane, &mut ring, &mut launcher);
    if ring.part.batch.n_held == 0 {
        return None;
    }
    if ring.part.n_in_flight() > MAX_IN_FLIGHT {
        // No other thread may have asked since.
        stream::catch_up(lane, &mut ring);
        if ring.part.n_in_flight() > MAX_IN_FLIGHT {
            return Some(RETRY_AFTER);
        }
    }
    let (n_held, epoch) = (ring.part.batch.n_held, ring.part.batch.epoch);
    let n_tasks = n_held.min(MAX_GRAPH_KERNELS);
    let first = ring.pending.len() - n_held;
    let tasks: SmallVec<[Arc<CudaTask>; MAX_GRAPH_KERNELS]> =
        ring.pending.range(first..first + n_tasks).cloned().collect();
    ring.part.batch.n_begun = n_tasks;
    drop(ring);
    let references: SmallVec<[&CudaTask; MAX_GRAPH_KERNELS]> = tasks.iter().map(|task| &**task).collect();
    launcher.launch(lane, &references);
    let fence = lane.stream.record_event().ok();
    launcher.unrecorded = Some(Launched { n_tasks, fence, epoch });
    // A thread with the ring may wait for the launcher.
    drop(launcher);
    // Who has the lock may be waiting in the driver, until the stream has room. Then the launch is recorded at the next call, or by another
    // thread before that.
    let Some(mut ring) = lane.try_lock_ring() else { return Some(HOLD_TIME) };
    let mut launcher = lane.stream.launcher.lock();
    record_launched(lane, &mut ring, &mut launcher);
    drop(launcher);
    drop(ring);
    Some(Duration::ZERO)
}

/// Abandons all held tasks, since the device is lost.
pub(crate) fn abandon_held(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    (ring.part.batch.n_held, ring.part.batch.n_begun) = (0, 0);
    ring.part.batch.epoch += 1;
    lane.stream.held_since.store(0, Ordering::SeqCst);
}

/// Launches held tasks that the flusher thread does not launch. The poller calls this, so that all of them are launched at some time.
pub(crate) fn flush_without_deadline(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    if ring.part.batch.mode == Mode::Always {
        flush(lane, ring);
    }
}

/// The error with which the driver refused to make a graph; returned once. `None` also while a thread is launching.
pub(crate) fn take_refusal(lane: &CudaLane) -> Option<DriverError> {
    lane.stream.launcher.try_lock()?.take_refusal()
}

/// Launches all held tasks, and holds none from now on. Called when code outside of this backend may put work on the stream.
pub(crate) fn turn_off(lane: &CudaLane) {
    if lane.device.context.is_foreign() {
        return;
    }
    let entered = lane.device.context.enter_anyway();
    let mut ring = lane.lock_ring();
    if entered.is_ok() {
        flush(lane, &mut ring);
    }
    // Where the driver is dead, what is held stays so until the poller finds that.
    if ring.part.batch.n_held == 0 {
        ring.part.batch.mode = Mode::Off;
    }
}

/// Releases a stream's graphs of a module that is about to be unloaded.
pub(crate) fn release(lane: &CudaLane, module: &Arc<CudaModule>) {
    if lane.device.context.is_foreign() {
        return;
    }
    let Ok(_entered) = lane.device.context.enter_anyway() else { return };
    // What is held keeps its own modules.
    let old = lane.stream.launcher.lock().release(module);
    drop(old);
}
