//! One stream of a device, and how far the device has come with it.
//!
//! Nothing is recorded on the device per task. A *fence* is an event that was recorded behind some task. That happens behind a batch, and
//! when another stream has to wait for the task. It also happens when a stream is polled while work is added all the time. Otherwise the
//! driver is asked whether the stream is empty. A thread that submits without pause polls by itself, once for many tasks. Threads that call
//! the driver at the same time wait for each other, and one that sleeps there returns late.
//!
//! The last tasks may be held (`batch`). The driver does not have them yet, and no fence stands for them. While a stream holds tasks, the thread that
//! submits does not poll: another one calls the driver.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use oxisycl_backend::Priority;
use oxisycl_backend::lane::{Position, Ring};
use parking_lot::Mutex;

use crate::batch::{self, Batch};
use crate::context::Context;
use crate::error::DriverError;
use crate::lane::{Cuda, CudaLane};
use crate::launcher::Launcher;
use crate::sys::{EVENT_DISABLE_TIMING, RawEvent, RawStream, STREAM_NON_BLOCKING, code};

/// After this many tasks, the submitting thread polls the stream.
const POLL_EVERY: usize = 64;
/// How often in a row the poller relies on polls of submitting threads.
const MAX_OMISSIONS: u8 = 4;

/// A stream of the driver.
pub(crate) struct Stream {
    context: Arc<Context>,
    pub(crate) raw: RawStream,
    /// Whether other code made the stream and puts work on it. Each task then counts as work of the device, so that it ends after the work
    /// before it.
    pub(crate) is_borrowed: bool,
    /// How often submitting threads have polled the stream. Changed with the ring locked.
    n_submitter_polls: AtomicU64,
    /// The time since when kernels are held, on the clock of execution times; 0 while none are. Changed with the ring locked.
    pub(crate) held_since: AtomicU64,
    /// Launches the held kernels. Locked after the ring, and by no thread that waits for the ring.
    pub(crate) launcher: Mutex<Launcher>,
    poller: Poller,
}

/// The poller's state of the stream, on a cache line that submitting threads do not need.
#[derive(Default)]
#[repr(align(128))]
struct Poller {
    /// `Stream::n_submitter_polls` and the number of tasks at the poller's last poll.
    seen: [AtomicU64; 2],
    /// How many more polls the poller may omit.
    omissions: AtomicU8,
}

/// An event that was recorded on the stream behind a task.
struct Fence {
    /// The last task before the event that gave the device work.
    position: Position,
    /// [`Progress::n_calls`] when the event was recorded.
    n_calls: u64,
    event: RawEvent,
}

/// How far the device has executed the stream.
#[derive(Default)]
pub(crate) struct Progress {
    /// The last task that gave the device work.
    pub(crate) device_issued: Position,
    /// The device has finished all tasks up to this one.
    finished: Position,
    /// The most driver calls that have given the device work, and how many of those it has finished.
    n_calls: u64,
    n_calls_finished: u64,
    /// The events recorded behind tasks, in order.
    fences: VecDeque<Fence>,
    /// The last task when the driver was last queried whether the stream is empty.
    queried_at: Position,
    /// The last task when a submitting thread last polled.
    polled_at: Position,
    pub(crate) batch: Batch,
}

impl Progress {
    /// Whether the device is known to be idle on this stream, without a query.
    #[inline]
    pub(crate) fn is_known_to_be_idle(&self) -> bool {
        self.device_issued <= self.finished
    }

    /// Records that the tasks up to `position` have given the device work, by at most `n_calls` further calls.
    #[inline]
    pub(crate) fn has_issued(&mut self, position: Position, n_calls: usize) {
        self.device_issued = position;
        self.n_calls += n_calls as u64;
    }

    /// Records that the device has finished all its work.
    fn has_finished_all(&mut self) {
        (self.finished, self.n_calls_finished) = (self.device_issued, self.n_calls);
    }

    /// Adds an event that was recorded behind all work of the device.
    pub(crate) fn add_fence(&mut self, event: Option<RawEvent>) {
        let (position, n_calls) = (self.device_issued, self.n_calls);
        self.fences.extend(event.map(|event| Fence { position, n_calls, event }));
    }

    /// The most driver calls whose work the device is not known to have finished. One task may be many calls.
    pub(crate) fn n_in_flight(&self) -> u64 {
        self.n_calls - self.n_calls_finished
    }
}

impl Stream {
    /// A new stream. The context is current.
    pub(crate) fn new(context: &Arc<Context>, priority: Priority) -> Result<Self, DriverError> {
        let driver = &context.driver;
        let (mut least, mut greatest) = (0, 0);
        let mut raw = RawStream::NULL;
        // SAFETY: the caller has made the context current.
        unsafe {
            driver.ctx_get_stream_priority_range(&raw mut least, &raw mut greatest)?;
            let priority = match priority {
                Priority::Low => least,
                Priority::Normal => least.midpoint(greatest),
                Priority::High => greatest,
            };
            driver.stream_create_with_priority(&raw mut raw, STREAM_NON_BLOCKING, priority)?;
        }
        Ok(Self::with(context, raw, false))
    }

    /// A stream of the context that other code has made, and destroys.
    pub(crate) fn borrowed(context: &Arc<Context>, raw: RawStream) -> Self {
        Self::with(context, raw, true)
    }

    fn with(context: &Arc<Context>, raw: RawStream, is_borrowed: bool) -> Self {
        let [n_submitter_polls, held_since] = [0; 2].map(AtomicU64::new);
        let (launcher, poller) = (Mutex::default(), Poller::default());
        Self { context: context.clone(), raw, is_borrowed, n_submitter_polls, held_since, launcher, poller }
    }

    /// Destroys the stream, unless it is borrowed. No task is on it, since tasks hold their stream until they have ended.
    pub(crate) fn close(&mut self, progress: &mut Progress) {
        self.launcher.get_mut().clear();
        for fence in progress.fences.drain(..) {
            self.context.return_plain_event(fence.event);
        }
        if !self.is_borrowed
            && let Ok(_entered) = self.context.enter_anyway()
        {
            // SAFETY: made by `new`, and not used after this.
            let _ = unsafe { self.context.driver.stream_destroy(self.raw) };
        }
    }

    /// Records a fence behind the task at `position`, which is the last that was issued to the driver. The context is current.
    fn record(&self, progress: &mut Progress, position: Position) -> Result<RawEvent, DriverError> {
        let event = self.record_event()?;
        progress.fences.push_back(Fence { position, n_calls: progress.n_calls, event });
        Ok(event)
    }

    /// Records an event behind all issued work. The context is current.
    pub(crate) fn record_event(&self) -> Result<RawEvent, DriverError> {
        let context = &self.context;
        let event = context.take_plain_event()?;
        // SAFETY: event and stream are of this context, which is current.
        if let Err(error) = unsafe { context.driver.event_record(event, self.raw) } {
            context.return_plain_event(event);
            return Err(error);
        }
        Ok(event)
    }

    /// Queries which fences have happened. They happen in order, and a query of one that has happened takes 1.3 us.
    fn query_fences(&self, progress: &mut Progress) -> Result<(), DriverError> {
        let (mut n_past, mut end) = (0, progress.fences.len());
        while n_past < end {
            let middle = n_past.midpoint(end);
            // SAFETY: the event was recorded by `record`.
            match unsafe { self.context.driver.event_query(progress.fences[middle].event) } {
                Ok(()) => n_past = middle + 1,
                Err(error) if error.code == code::NOT_READY => end = middle,
                Err(error) => return Err(error),
            }
        }
        for Fence { position, n_calls, event } in progress.fences.drain(..n_past) {
            progress.finished = progress.finished.max(position);
            progress.n_calls_finished = progress.n_calls_finished.max(n_calls);
            self.context.return_plain_event(event);
        }
        Ok(())
    }

    /// Queries the driver how far the device has executed the stream. `last` is the last task that was issued to the driver.
    fn query(&self, progress: &mut Progress, last: Position, thorough: bool) -> Result<(), DriverError> {
        self.query_fences(progress)?;
        if progress.device_issued > progress.finished && progress.fences.is_empty() {
            // SAFETY: the stream lives as long as `self`.
            match unsafe { self.context.driver.stream_query(self.raw) } {
                Ok(()) => progress.has_finished_all(),
                Err(error) if error.code == code::NOT_READY => {
                    if thorough && progress.queried_at != last {
                        progress.queried_at = last;
                        // Without a fence, it is asked again whether the stream is empty.
                        self.record(progress, last).map(drop).or_else(ignore_non_sticky)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if progress.device_issued <= progress.finished {
            progress.finished = last;
        }
        Ok(())
    }
}

/// An event that happens when the task at `position` is finished, or later. `None` if the task is finished. Makes the context current.
pub(crate) fn fence(lane: &CudaLane, position: Position) -> Result<Option<RawEvent>, DriverError> {
    let _entered = lane.device.context.enter_anyway()?;
    let mut ring = lane.lock_ring();
    if position > last_issued(&ring) {
        batch::flush(lane, &mut ring);
    }
    let last = last_issued(&ring);
    let progress = &mut ring.part;
    // Whatever gave the device nothing to do is finished with what was before it.
    if position <= progress.finished || progress.device_issued <= progress.finished {
        return Ok(None);
    }
    match progress.fences.iter().find(|fence| fence.position >= position.min(progress.device_issued)) {
        Some(fence) => Ok(Some(fence.event)),
        None => lane.stream.record(progress, last).map(Some),
    }
}

/// A new event that happens when the task at `position` is finished, or later. `None` if the task is finished. The context is current.
///
/// Held kernels are launched if the task is one of them. Batching stays on: who has the event can put nothing on this stream with it.
pub(crate) fn event_behind(lane: &CudaLane, position: Position) -> Result<Option<RawEvent>, DriverError> {
    let mut ring = lane.lock_ring();
    if position > last_issued(&ring) {
        batch::flush(lane, &mut ring);
    }
    let progress = &ring.part;
    if position <= progress.finished || progress.device_issued <= progress.finished {
        return Ok(None);
    }
    let driver = &lane.device.context.driver;
    let mut event = RawEvent::NULL;
    // SAFETY: the context is current, and stream and event are of it. An event that was not recorded is destroyed here.
    unsafe {
        driver.event_create(&raw mut event, EVENT_DISABLE_TIMING)?;
        if let Err(error) = driver.event_record(event, lane.stream.raw) {
            let _ = driver.event_destroy(event);
            return Err(error);
        }
    }
    Ok(Some(event))
}

/// Polls the stream after every [`POLL_EVERY`] tasks. Called by the thread that submits to it.
#[inline]
pub(crate) fn poll_sometimes(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    if ring.last().since(ring.part.polled_at) >= POLL_EVERY && ring.part.batch.n_held() == 0 {
        poll_from_submitter(lane, ring);
    }
}

/// Moves finished tasks off the ring, and records a fence for the next poll. After a failure the poll does not count, and other threads find
/// the error.
#[cold]
fn poll_from_submitter(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    if lane.device.context.is_lost() {
        return;
    }
    let Ok(_entered) = lane.device.context.enter_anyway() else { return };
    let (stream, last) = (&lane.stream, last_issued(ring));
    ring.part.polled_at = ring.last();
    let has_fence = ring.part.fences.back().is_some_and(|fence| fence.position >= ring.part.device_issued);
    let is_recorded = has_fence || stream.record(&mut ring.part, last).is_ok();
    if is_recorded && stream.query_fences(&mut ring.part).is_ok() {
        let n_finished = n_finished(ring);
        lane.try_retire(ring, n_finished);
        stream.n_submitter_polls.fetch_add(1, Ordering::Release);
    }
}

/// The last task that was issued to the driver.
fn last_issued(ring: &Ring<Cuda>) -> Position {
    ring.last().before(ring.part.batch.n_held())
}

/// Queries whether the device is idle on this stream. The context is current. Errors count as not idle; other threads find them.
pub(crate) fn is_idle(lane: &CudaLane, progress: &mut Progress) -> bool {
    if progress.is_known_to_be_idle() {
        return true;
    }
    let driver = &lane.device.context.driver;
    let asked = match progress.fences.back() {
        // SAFETY: the event was recorded by `record`.
        Some(fence) if fence.position >= progress.device_issued => unsafe { driver.event_query(fence.event) },
        // SAFETY: the stream is alive.
        _ => unsafe { driver.stream_query(lane.stream.raw) },
    };
    if asked.is_ok() {
        progress.has_finished_all();
        progress.fences.drain(..).for_each(|fence| lane.device.context.return_plain_event(fence.event));
    }
    asked.is_ok()
}

/// Queries how far the device has executed the stream, without reporting tasks. The context is current. Errors are ignored; other threads
/// find them.
pub(crate) fn catch_up(lane: &CudaLane, ring: &mut Ring<Cuda>) {
    let last = last_issued(ring);
    if !lane.device.context.is_lost() {
        let _ = lane.stream.query(&mut ring.part, last, true);
    }
}

/// How many of the pending tasks are finished.
fn n_finished(ring: &Ring<Cuda>) -> usize {
    ring.part.finished.since(ring.last().before(ring.pending.len()))
}

/// Polls the stream, and moves tasks that are over off the ring. With `thorough`, also records a fence for the next poll if work is being
/// added, and does nothing if submitting threads poll often enough.
pub(crate) fn poll(lane: &CudaLane, thorough: bool) {
    if let Err(error) = try_poll(lane, thorough) {
        // The driver does not even tell how far the device has come.
        lane.device.context.give_up(error);
        // That asks the driver nothing any more.
        let _ = try_poll(lane, thorough);
    }
}

fn try_poll(lane: &CudaLane, thorough: bool) -> Result<(), DriverError> {
    let context = &lane.device.context;
    if thorough && is_polled_enough(lane) && !context.is_lost() {
        return Ok(());
    }
    let Some(mut ring) = lane.try_lock_ring() else { return Ok(()) };
    // Asked with the lock held: what a lost device was not given has not run.
    let is_lost = context.is_lost();
    if !is_lost && ring.part.finished < ring.last() {
        let _entered = context.enter_anyway()?;
        if thorough {
            batch::flush_without_deadline(lane, &mut ring);
        }
        let last = last_issued(&ring);
        if ring.part.finished < last {
            lane.stream.query(&mut ring.part, last, thorough)?;
        }
    }
    let n_tasks = n_finished(&ring);
    lane.retire(&mut ring, n_tasks, true);
    if is_lost {
        batch::abandon_held(lane, &mut ring);
        let n_tasks = ring.pending.len();
        lane.retire(&mut ring, n_tasks, false);
    }
    drop(ring);
    if let Some(error) = batch::take_refusal(lane) {
        tracing::debug!(device = %context.name, "kernels are launched one by one: {} failed with {}", error.call, error.code);
    }
    Ok(())
}

/// Whether submitting threads poll often enough. Called by the poller before each of its own polls.
fn is_polled_enough(lane: &CudaLane) -> bool {
    let Poller { seen, omissions } = &lane.stream.poller;
    let now = [lane.stream.n_submitter_polls.load(Ordering::Acquire), lane.n_issued()];
    let [has_polled, is_fed] = [0, 1].map(|index| seen[index].swap(now[index], Ordering::Relaxed) != now[index]);
    let left = if has_polled { MAX_OMISSIONS } else { omissions.load(Ordering::Relaxed) };
    omissions.store(left.saturating_sub(1), Ordering::Relaxed);
    is_fed && left > 0
}

/// Ignores an error that does not mean the loss of the device.
fn ignore_non_sticky(error: DriverError) -> Result<(), DriverError> {
    if error.is_sticky() { Err(error) } else { Ok(()) }
}
