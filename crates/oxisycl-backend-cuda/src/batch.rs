//! Small kernels behind a busy stream: the thread that submits leaves their launch to another one, which launches many of them together.
//!
//! A launch takes the driver 3 us, and so long the thread that makes it. A graph of one kernel with new parameters takes 1.6 to 2.3 us, and
//! on an idle stream the kernel starts 2 us sooner. In a graph of 16 a kernel takes 0.4 to 0.9 us, and the device runs each in 0.9 us
//! instead of 1.5 (`benches/results`). So kernels wait for each other here, as small packets do in Nagle's algorithm.
//!
//! - On a stream that has nothing to do a kernel is launched at once.
//! - On a busy stream a small kernel is *held*: it is put on the ring and the driver has nothing of it. The runtime's thread that
//!   [hands over](hand_over) what is held launches all that has come meanwhile. It locks the ring to look and to note what it did, not while it
//!   calls the driver.
//! - A thread launches all held tasks before it puts anything else on the stream, waits for a held task, or asks for a later event. So does
//!   the thread that submits when much is held.
//!
//! Invariants:
//! - Held tasks are the last ones of the lane's ring, in order. The driver has everything before them. It has none of them but those that are
//!   just being handed over, which are the first.
//! - The [launcher](Launcher) is locked after the ring, and no thread that has it waits for the ring. So a thread with both locks knows what the driver has.
//! - The ring is locked and the context current in all functions here but [`hand_over`], [`release`] and [`turn_off`], which do that.
//! - No function here calls code of users, so the thread that hands over is never held up by it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oxisycl_backend::lane::Ring;
use oxisycl_backend::{Batching, driver};
use smallvec::SmallVec;

use crate::error::DriverError;
use crate::lane::{Cuda, CudaLane, CudaTask};
use crate::launcher::{Handed, Launcher, MOST_TOGETHER, Sizes, node_launch};
use crate::module::CudaModule;
use crate::stream;

/// How long kernels are held so that more of them come together. It is about as long as a thread takes to submit as many as a graph has.
const PATIENCE: Duration = Duration::from_micros(MOST_TOGETHER as u64 * MICROSECONDS_EACH);
const MICROSECONDS_EACH: u64 = 1;
/// So much less for the first ones, since the device is about to have nothing to do.
const HASTE: Duration = Duration::from_micros(12);
/// When the thread that hands over is needed again, if the stream is full.
const LATER: Duration = Duration::from_micros(100);
/// For so long after something was handed over a kernel is held without a question to the driver.
const RECENTLY: Duration = Duration::from_micros(30);
/// With so many held kernels, the thread that submits launches them: the other one is late.
const MUCH: usize = 64;
/// How many held kernels are launched at once by the thread that submits, in tests.
const MUCH_IN_TESTS: usize = 3;
/// A stream that is so many calls ahead of its device is not handed more: when it is full, the driver waits.
const MOST_AHEAD: u64 = 512;
/// Stands for the time since which something is held where only who waits hands it over.
const UNBOUND: u64 = 1;

/// What a stream was given and the driver has not.
#[derive(Default)]
pub(crate) struct Batch {
    mode: Mode,
    /// How many of the ring's last tasks are held, those included that are just being handed over.
    n_held: usize,
    /// How many of those are just being handed over: the driver may have them already.
    n_begun: usize,
    /// When something was last handed over, on the clock of execution times.
    handed_at: u64,
    /// Changes when what is held is given up.
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

/// What a stream does with a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// The stream holds the task; the driver does not have it.
    Held,
    /// The driver has the task.
    Launched,
    /// The caller issues the task to the driver. The stream holds nothing, unless the device is lost.
    No,
}

impl Batch {
    /// How many tasks of the ring the driver is not known to have.
    #[inline]
    pub(crate) fn n_held(&self) -> usize {
        self.n_held
    }

    /// How many tasks of the ring the driver surely has nothing of.
    pub(crate) fn n_untouched(&self) -> usize {
        self.n_held - self.n_begun
    }
}

/// Decides whether a new, empty stream holds kernels.
pub(crate) fn set_up(lane: &CudaLane, batching: Batching, has_profiling: bool) {
    let device = &lane.device;
    let mut ring = lane.ring();
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
    if mode == Mode::On {
        device.holds_back.store(true, Ordering::SeqCst);
    }
}

/// Holds a task, or launches it as a graph, if it is a launch. What the driver does not take as a graph is for its own launch to take or to refuse.
#[inline]
pub(crate) fn take(lane: &CudaLane, ring: &mut Ring<Cuda>, task: &CudaTask) -> Taken {
    // On a lost device nothing is flushed.
    if ring.part.batch.mode == Mode::Off || lane.device.context.is_lost() {
        return Taken::No;
    }
    let Some(launch) = node_launch(task) else {
        flush(lane, ring);
        return Taken::No;
    };
    if launch.is_small && is_to_wait(lane, ring) {
        ring.part.batch.n_held += 1;
        return Taken::Held;
    }
    flush(lane, ring);
    if ring.part.batch.n_held > 0 || ring.part.batch.mode != Mode::On {
        return Taken::No;
    }
    let is_launched = lane.stream.launcher.lock().launch_one(lane, &launch);
    if is_launched { Taken::Launched } else { Taken::No }
}

/// Whether the next small kernel is better held, since the stream has other work.
#[inline]
fn is_to_wait(lane: &CudaLane, ring: &mut Ring<Cuda>) -> bool {
    let part = &mut ring.part;
    if part.batch.mode == Mode::Always || part.batch.n_held > 0 {
        return true;
    }
    if part.is_known_to_be_idle() {
        return false;
    }
    driver::now().saturating_sub(part.batch.handed_at) < RECENTLY.as_nanos() as u64 || !stream::is_idle(lane, part)
}

/// Called when a task was put on the ring: sees to it that what is held is handed over.
#[inline]
pub(crate) fn held(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    let Batch { mode, n_held, .. } = ring.part.batch;
    let much = if mode == Mode::Always { MUCH_IN_TESTS } else { MUCH };
    if n_held == 1 {
        let since = if mode == Mode::Always { UNBOUND } else { before(driver::now(), HASTE) };
        lane.stream.held_since.store(since, Ordering::SeqCst);
        if mode == Mode::On {
            lane.device.is_holding.0.store(true, Ordering::SeqCst);
            lane.device.lanes.counts.flusher().ring();
        }
    } else if n_held >= much {
        flush(lane, ring);
    }
}

/// Launches what is held. A failure is that of the tasks.
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
    let mut launcher = lane.stream.launcher.lock();
    note(lane, ring, &mut launcher);
    let n_tasks = ring.part.batch.n_held;
    if n_tasks == 0 {
        return;
    }
    let first = ring.pending.len() - n_tasks;
    let tasks: SmallVec<[&CudaTask; MUCH]> = ring.pending.range(first..).map(|task| &**task).collect();
    launcher.launch(lane, &tasks);
    drop(tasks);
    let fence = lane.stream.record_event().ok();
    launcher.done = Some(Handed { n_tasks, fence, epoch: ring.part.batch.epoch });
    note(lane, ring, &mut launcher);
}

/// Notes in the ring what was handed over.
fn note(lane: &CudaLane, ring: &mut Ring<Cuda>, launcher: &mut Launcher) {
    let Some(Handed { n_tasks, fence, epoch }) = launcher.done.take() else { return };
    let last = ring.last();
    let part = &mut ring.part;
    if epoch != part.batch.epoch {
        fence.into_iter().for_each(|event| lane.device.context.return_plain_event(event));
        return;
    }
    let now = driver::now();
    part.batch.n_held -= n_tasks;
    part.batch.n_begun = 0;
    let since = match (part.batch.n_held, part.batch.mode) {
        (0, _) => 0,
        (_, Mode::Always) => UNBOUND,
        (n_held, _) => before(now, Duration::from_micros(n_held as u64 * MICROSECONDS_EACH)),
    };
    lane.stream.held_since.store(since, Ordering::SeqCst);
    part.batch.handed_at = now;
    part.has_issued(last.before(part.batch.n_held), n_tasks);
    // Without a fence, it is asked whether the stream is empty.
    part.add_fence(fence);
}

/// A time on the clock of execution times, as a point since which something is held.
fn before(now: u64, time: Duration) -> u64 {
    now.saturating_sub(time.as_nanos() as u64).max(UNBOUND + 1)
}

/// Launches what is held on the lane, if a thread `waits` for it, or if it is held for others to hand over. In how long that is to be done again:
/// at once, if there may be more.
pub(crate) fn hand_over(lane: &CudaLane, waits: bool) -> Option<Duration> {
    let since = lane.stream.held_since.load(Ordering::SeqCst);
    if since == 0 || since == UNBOUND && !waits {
        return None;
    }
    let age = Duration::from_nanos(driver::now().saturating_sub(since));
    if !waits && age < PATIENCE {
        return Some(PATIENCE - age);
    }
    // Who has the lock holds more, or hands it over.
    let Some(mut ring) = lane.ring_politely() else { return Some(PATIENCE) };
    let Ok(_entered) = lane.device.context.enter_anyway() else { return None };
    if waits {
        flush(lane, &mut ring);
        return None;
    }
    if lane.device.context.is_lost() {
        return None;
    }
    let mut launcher = lane.stream.launcher.lock();
    note(lane, &mut ring, &mut launcher);
    if ring.part.batch.n_held == 0 {
        return None;
    }
    if ring.part.n_ahead() > MOST_AHEAD {
        // No other thread may have asked since.
        stream::catch_up(lane, &mut ring);
        if ring.part.n_ahead() > MOST_AHEAD {
            return Some(LATER);
        }
    }
    let (n_held, epoch) = (ring.part.batch.n_held, ring.part.batch.epoch);
    let n_tasks = n_held.min(MOST_TOGETHER);
    let first = ring.pending.len() - n_held;
    let tasks: SmallVec<[Arc<CudaTask>; MOST_TOGETHER]> = ring.pending.range(first..first + n_tasks).cloned().collect();
    ring.part.batch.n_begun = n_tasks;
    drop(ring);
    let references: SmallVec<[&CudaTask; MOST_TOGETHER]> = tasks.iter().map(|task| &**task).collect();
    launcher.launch(lane, &references);
    let fence = lane.stream.record_event().ok();
    launcher.done = Some(Handed { n_tasks, fence, epoch });
    // A thread with the ring may wait for the launcher.
    drop(launcher);
    // Who has the lock may be waiting in the driver, until the stream has room. It is noted the next time then, or by who comes before.
    let Some(mut ring) = lane.ring_politely() else { return Some(PATIENCE) };
    let mut launcher = lane.stream.launcher.lock();
    note(lane, &mut ring, &mut launcher);
    drop(launcher);
    drop(ring);
    Some(Duration::ZERO)
}

/// What is held is not launched any more: the device is lost.
pub(crate) fn forget(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    (ring.part.batch.n_held, ring.part.batch.n_begun) = (0, 0);
    ring.part.batch.epoch += 1;
    lane.stream.held_since.store(0, Ordering::SeqCst);
}

/// Launches what only those hand over who wait for it. The poller does that, so that all of it is launched at some time.
pub(crate) fn flush_unbound(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    if ring.part.batch.mode == Mode::Always {
        flush(lane, ring);
    }
}

/// Why the driver makes no graphs, once. `None` also while a thread is handing over.
pub(crate) fn take_refusal(lane: &CudaLane) -> Option<DriverError> {
    lane.stream.launcher.try_lock()?.take_refusal()
}

/// Launches what is held, and holds nothing from now on: code outside of this backend puts work on the stream.
pub(crate) fn turn_off(lane: &CudaLane) {
    if lane.device.context.is_foreign() {
        return;
    }
    let entered = lane.device.context.enter_anyway();
    let mut ring = lane.ring();
    if entered.is_ok() {
        flush(lane, &mut ring);
    }
    // Where the driver is dead, what is held stays so until the poller finds that.
    if ring.part.batch.n_held == 0 {
        ring.part.batch.mode = Mode::Off;
    }
}

/// Releases a module that is to be unloaded.
pub(crate) fn release(lane: &CudaLane, module: &Arc<CudaModule>) {
    if lane.device.context.is_foreign() {
        return;
    }
    let Ok(_entered) = lane.device.context.enter_anyway() else { return };
    // What is held keeps its own modules.
    let old = lane.stream.launcher.lock().release(module);
    drop(old);
}
