//! Small kernels that are staged while their stream is busy, and launched together as a graph.
//!
//! A launch takes the driver 3 us, and so long the thread that submits. A graph of up to 16 kernels takes it 1.2 to 1.5 us, and 0.2 us for each
//! kernel whose parameters are set anew; the device runs each in 0.9 us instead of 1.5 (`benches/results`). So kernels wait for each other here,
//! as small packets do in Nagle's algorithm.
//!
//! - On a stream that has nothing to do a kernel is launched at once.
//! - On a busy stream a small kernel is *staged*: its parameters are set in the next node of an [`Executable`], a linear graph.
//! - What is staged is launched when the executable is full, or [`BOUND`] after its first kernel. It is launched before anything else is put on
//!   the stream, and before somebody waits for it or asks for an event behind it. For what a thread has staged last, another one comes.
//! - A graph has a fixed number of kernels, since to turn nodes off makes its launch several times as long. What does not fill its executable
//!   is split, and set in smaller ones.
//!
//! Invariants:
//! - Staged tasks are the last ones of the lane's ring, in order. The driver has everything before them and nothing of them.
//! - The ring is locked and the context current in all functions here but [`hand_over`], [`release`] and [`turn_off`], which do that.
//! - No function here calls code of users, so the thread that keeps the bound is never held up by it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oxisycl_backend::lane::Ring;
use oxisycl_backend::{Batching, driver};
use smallvec::SmallVec;

use crate::context::Context;
use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::executable::{Executable, NodeLaunch};
use crate::execute;
use crate::lane::{Cuda, CudaLane, CudaTask};
use crate::module::CudaModule;
use crate::stream;

/// How long a staged kernel may wait while its stream has other work.
const BOUND: Duration = Duration::from_micros(20);
/// How many kernels the executables of a queue have, from few to many.
const SIZES: &[usize] = &[1, 2, 4, 8, 16];
/// The index of the size that a stream begins with.
const FIRST_SIZE: usize = 2;
/// The sizes where all small kernels are staged, for tests.
const SIZES_FOR_TESTS: &[usize] = &[1, 3];
/// The most executables of a size. One that runs is begun anew when it has ended.
const EXECUTABLES: usize = 4;
/// After so many kernels that could have been staged, the stream gets executables. It takes 50 us to make one.
const CANDIDATES: u32 = 32;
/// A stream that is this far ahead of its device is not handed more by age: when it is full, the driver waits.
const MOST_AHEAD: u64 = 512;
/// Stands for the time of what is staged where there is no bound.
const UNBOUND: u64 = 1;

/// The staged kernels of a stream, and what they are launched with.
#[derive(Default)]
pub(crate) struct Batch {
    mode: Mode,
    /// By size.
    executables: [Vec<Executable>; SIZES.len()],
    /// The executable of each size whose turn it is.
    next: [usize; SIZES.len()],
    /// Which size is tried first.
    size: usize,
    n_candidates: u32,
    staged: Option<Staged>,
    /// Why nothing is staged any more, until the poller has told it.
    refusal: Option<DriverError>,
}

/// Whether a stream stages kernels.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Mode {
    #[default]
    Off,
    On,
    Always,
}

impl Mode {
    fn sizes(self) -> &'static [usize] {
        if self == Self::Always { SIZES_FOR_TESTS } else { SIZES }
    }
}

/// Which executable is being filled, and how far.
struct Staged {
    size: usize,
    index: usize,
    n_tasks: usize,
    /// When the first was staged, on the clock of execution times.
    since: u64,
}

impl Batch {
    /// How many tasks of the ring the driver does not have yet.
    #[inline]
    pub(crate) fn n_staged(&self) -> usize {
        self.staged.as_ref().map_or(0, |staged| staged.n_tasks)
    }

    /// Why the driver makes no graphs, once.
    pub(crate) fn take_refusal(&mut self) -> Option<DriverError> {
        self.refusal.take()
    }

    /// An executable of that size, for kernels of which `launch` is the first. `None` if none can be made: then nothing is staged any more.
    fn executable(&mut self, context: &Arc<Context>, size: usize, launch: &NodeLaunch<'_>) -> Option<usize> {
        let made = &mut self.executables[size];
        let next = self.next[size];
        if made.len() < EXECUTABLES {
            match Executable::new(context, launch, self.mode.sizes()[size]) {
                Ok(executable) => made.push(executable),
                Err(error) => {
                    self.refusal = Some(error);
                    self.mode = Mode::Off;
                    return None;
                }
            }
            self.next[size] = made.len() % EXECUTABLES;
            return Some(made.len() - 1);
        }
        // Another function in a node costs as much as its launch saves.
        let fits = |index: &usize| made[*index].begins_with(launch);
        let index = (next..EXECUTABLES).chain(0..next).find(fits).unwrap_or(next);
        self.next[size] = (index + 1) % EXECUTABLES;
        Some(index)
    }
}

/// Decides whether a new, empty stream stages kernels.
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
    ring.part.batch.size = FIRST_SIZE.min(mode.sizes().len() - 1);
    if mode == Mode::On {
        device.holds_back.store(true, Ordering::SeqCst);
    }
}

/// Stages a task, if it is a launch of a small kernel and the stream is busy. Whether it did; else nothing is staged any more, unless the device
/// is lost. A launch that the driver does not take as a node is for the driver's own launch to take or to refuse.
#[inline]
pub(crate) fn stage(lane: &CudaLane, ring: &mut Ring<Cuda>, task: &CudaTask) -> bool {
    // On a lost device nothing is flushed, so an executable may be full.
    if ring.part.batch.mode == Mode::Off || lane.device.context.is_lost() {
        return false;
    }
    let launch = NodeLaunch::of(task);
    let Some(launch) = launch.filter(|launch| ring.part.batch.staged.is_some() || begin(lane, ring, launch)) else {
        flush(lane, ring);
        return false;
    };
    let Batch { staged, executables, .. } = &mut ring.part.batch;
    let Some(staging) = staged else { return false };
    let is_set = executables[staging.size][staging.index].set(staging.n_tasks, &launch).is_ok();
    if is_set {
        staging.n_tasks += 1;
    } else if staging.n_tasks == 0 {
        forget(lane, ring);
    } else {
        flush(lane, ring);
    }
    is_set
}

/// Begins a batch with a launch, unless it can as well go out alone.
fn begin(lane: &CudaLane, ring: &mut Ring<Cuda>, launch: &NodeLaunch<'_>) -> bool {
    let part = &mut ring.part;
    let mode = part.batch.mode;
    if mode == Mode::On {
        if part.is_known_to_be_idle() {
            return false;
        }
        if part.batch.n_candidates < CANDIDATES {
            part.batch.n_candidates += 1;
            return false;
        }
        if stream::is_idle(lane, part) {
            return false;
        }
    }
    let size = part.batch.size;
    let Some(index) = part.batch.executable(&lane.device.context, size, launch) else { return false };
    let now = driver::now().max(UNBOUND + 1);
    part.batch.staged = Some(Staged { size, index, n_tasks: 0, since: now });
    lane.stream.staged_last.store(now, Ordering::Relaxed);
    lane.stream.staged_since.store(if mode == Mode::On { now } else { UNBOUND }, Ordering::SeqCst);
    if mode == Mode::On {
        lane.device.lanes.counts.flusher().ring();
    }
    true
}

/// Called when a task was put on the ring: launches what is staged if that is enough or old. Whether the device waits for it is not asked: it
/// made batches smaller, and the thread that submits slower (`benches/LOG.md`).
#[inline]
pub(crate) fn staged(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    let batch = &mut ring.part.batch;
    let Some(Staged { size, n_tasks, since, .. }) = batch.staged else { return };
    let (mode, sizes) = (batch.mode, batch.mode.sizes());
    let now = if mode == Mode::On { driver::now() } else { since };
    let age = Duration::from_nanos(now.saturating_sub(since));
    if n_tasks == sizes[size] {
        // A larger one would have to be full in time, too.
        if 2 * age <= BOUND {
            batch.size = (size + 1).min(sizes.len() - 1);
        }
        flush(lane, ring);
    } else if mode == Mode::On && age >= BOUND {
        flush(lane, ring);
    } else {
        lane.stream.staged_last.store(now, Ordering::Relaxed);
    }
}

/// Launches what is staged. A failure is that of the tasks.
#[inline]
pub(crate) fn flush(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    if ring.part.batch.staged.is_some() {
        flush_staged(lane, ring);
    }
}

fn flush_staged(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    if lane.device.context.is_lost() {
        // They stay what the driver does not have, until the lane is polled.
        return;
    }
    let last = ring.n_issued();
    let Some(Staged { size, index, n_tasks, .. }) = ring.part.batch.staged.take() else { return };
    lane.stream.staged_since.store(0, Ordering::SeqCst);
    let first = ring.pending.len() - n_tasks;
    let tasks: SmallVec<[&CudaTask; 16]> = ring.pending.range(first..).map(|task| &**task).collect();
    let batch = &mut ring.part.batch;
    let sizes = batch.mode.sizes();
    if n_tasks == sizes[size] {
        launch_graph(&batch.executables[size][index], lane, &tasks);
    } else {
        batch.size = sizes.iter().rposition(|size| *size <= n_tasks).unwrap_or(0);
        let mut rest = &tasks[..];
        while !rest.is_empty() {
            let size = sizes.iter().rposition(|size| *size <= rest.len()).unwrap_or(0);
            let (part, after) = rest.split_at(sizes[size]);
            if !launch_together(batch, size, lane, part) {
                part.iter().for_each(|task| launch_alone(lane, task));
            }
            rest = after;
        }
    }
    ring.part.device_issued = last;
    // Without it, it is asked whether the stream is empty.
    let _ = lane.stream.record(&mut ring.part, last);
}

fn launch_graph(executable: &Executable, lane: &CudaLane, tasks: &[&CudaTask]) {
    if let Err(error) = executable.launch(lane.stream.raw) {
        // Nobody knows how many of them were begun.
        tasks.iter().for_each(|task| task.set_error(error));
    }
}

/// Sets tasks in an executable of their number, and launches it. False if they cannot be set in one.
fn launch_together(batch: &mut Batch, size: usize, lane: &CudaLane, tasks: &[&CudaTask]) -> bool {
    let Some(launch) = NodeLaunch::of(tasks[0]) else { return false };
    let Some(index) = batch.executable(&lane.device.context, size, &launch) else { return false };
    let executable = &mut batch.executables[size][index];
    for (index, task) in tasks.iter().enumerate() {
        let is_set = NodeLaunch::of(task).is_some_and(|launch| executable.set(index, &launch).is_ok());
        if !is_set {
            return false;
        }
    }
    launch_graph(executable, lane, tasks);
    true
}

fn launch_alone(lane: &CudaLane, task: &CudaTask) {
    let mut emitter = Emitter::new(&lane.device.context.driver, lane.stream.raw);
    if let Err(error) = execute::emit(task, &mut emitter) {
        task.set_error(error);
    }
}

/// Launches what is staged on the lane and has reached its age, or whatever its age if somebody `waits`. In how long that is to be done again, if
/// something is left. A thread that goes on staging hands it over itself.
pub(crate) fn hand_over(lane: &CudaLane, waits: bool) -> Option<Duration> {
    let since = lane.stream.staged_since.load(Ordering::SeqCst);
    if since == 0 || since == UNBOUND && !waits {
        return None;
    }
    let now = driver::now();
    let age = Duration::from_nanos(now.saturating_sub(since));
    if !waits && age < BOUND {
        return Some(BOUND - age);
    }
    let pause = Duration::from_nanos(now.saturating_sub(lane.stream.staged_last.load(Ordering::Relaxed)));
    if !waits && pause < BOUND / 2 {
        return Some(BOUND / 2);
    }
    // Who has the lock stages more, or hands it over.
    let Some(mut ring) = lane.ring_politely() else { return Some(BOUND) };
    let Ok(_entered) = lane.device.context.enter_anyway() else { return None };
    if !waits && ring.part.n_ahead() > MOST_AHEAD {
        // Nobody else may have asked since.
        stream::catch_up(lane, &mut ring);
        if ring.part.n_ahead() > MOST_AHEAD {
            return Some(BOUND);
        }
    }
    // What was staged meanwhile is younger.
    if waits || lane.stream.staged_since.load(Ordering::SeqCst) == since {
        flush(lane, &mut ring);
    }
    None
}

/// What is staged is not launched any more: the device is lost, or it is nothing.
pub(crate) fn forget(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    ring.part.batch.staged = None;
    lane.stream.staged_since.store(0, Ordering::SeqCst);
}

/// Launches what is staged without a bound on its age. The poller does that, so that all of it is launched at some time.
pub(crate) fn flush_unbound(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    if ring.part.batch.mode == Mode::Always {
        flush(lane, ring);
    }
}

/// Launches what is staged, and stages nothing from now on: somebody else puts work on the stream.
pub(crate) fn turn_off(lane: &CudaLane) {
    if lane.device.context.is_foreign() {
        return;
    }
    let entered = lane.device.context.enter_anyway();
    let mut ring = lane.ring();
    if entered.is_ok() {
        flush(lane, &mut ring);
    }
    // Where the driver is dead, what is staged stays so until the poller finds that.
    if ring.part.batch.staged.is_none() {
        ring.part.batch.mode = Mode::Off;
    }
}

/// Lets go of a module that is to be unloaded.
pub(crate) fn release(lane: &CudaLane, module: &Arc<CudaModule>) {
    if lane.device.context.is_foreign() {
        return;
    }
    let Ok(_entered) = lane.device.context.enter_anyway() else { return };
    let mut ring = lane.ring();
    let has_it = |executable: &Executable| executable.holds(module);
    if !ring.part.batch.executables.iter().flatten().any(has_it) {
        return;
    }
    flush(lane, &mut ring);
    let batch = &mut ring.part.batch;
    let old = batch
        .executables
        .each_mut()
        .map(|made| made.extract_if(.., |executable| has_it(executable)).collect::<Vec<_>>());
    batch.next = [0; SIZES.len()];
    drop(ring);
    drop(old);
}
