//! One stream of a device: the tasks on it, in the order in which the device executes them, and how far it has come.
//!
//! Launching must cost no more than the driver's own call, so nothing is recorded per task. A *fence* is an event that was recorded
//! behind some task: when another stream has to wait for that task, or when somebody wants to know how far a stream has come to which
//! work is added all the time. Otherwise the driver is asked whether the stream is empty. A thread that submits without pause looks itself,
//! once for many tasks: threads that call the driver at the same time wait for each other, and one that sleeps over it comes back late.
//!
//! Invariants:
//! - `over` and then `pending` hold the tasks with the positions after `ended` up to `issued`, in order.
//! - The order of `pending` is the order of the driver's calls: both happen under the lock, which is held as seldom as can be by others
//!   than those who submit.
//! - One thread at a time takes tasks out (`draining`), so that they end in order. It holds no lock while it ends one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use oxisycl_backend::Priority;
use parking_lot::{Mutex, MutexGuard};

use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::execute;
use crate::gpu::Gpu;
use crate::record_pool::Slot;
use crate::sys::{RawEvent, RawStream, STREAM_NON_BLOCKING, code};
use crate::task::{CudaTask, Profile};

/// After so many tasks the thread that submits looks how far the stream has come.
const LOOK_EVERY: u64 = 64;
/// So often in a row the completer relies on such a look.
const MOST_OMISSIONS: u8 = 4;

const IDLE: u8 = 0;
const DRAINING: u8 = 1;
/// Draining, and something has happened meanwhile that may let more tasks end.
const DRAINING_AGAIN: u8 = 2;

pub(crate) struct Stream {
    pub(crate) core: Arc<Gpu>,
    pub(crate) raw: RawStream,
    state: Mutex<State>,
    /// The position of the last task.
    issued: AtomicU64,
    /// How often a thread that submits has looked how far the stream has come. Changed with the lock held.
    n_looks: AtomicU64,
    drained: Drained,
}

/// What the one who drains writes for each task, on cache lines that those who submit do not need.
#[derive(Default)]
#[repr(align(128))]
struct Drained {
    /// Tasks that the device has done with. Touched by the one who drains, and where a device is lost.
    over: Mutex<VecDeque<Arc<CudaTask>>>,
    draining: AtomicU8,
    /// `State::finished` when it was last looked at.
    finished: AtomicU64,
    /// The position of the last task that has ended.
    ended: AtomicU64,
    /// `Stream::n_looks` and `Stream::issued` when the completer last looked.
    seen_by_completer: [AtomicU64; 2],
    /// How often it may still rely on others.
    omissions: AtomicU8,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Arc<CudaTask>>,
    /// The position of the last task.
    issued: u64,
    /// The position of the last task that gave the device something to do.
    device_issued: u64,
    /// The device has finished all tasks up to this position.
    finished: u64,
    /// Positions with the events recorded behind them, in order.
    fences: VecDeque<(u64, RawEvent)>,
    /// Free panic records, so that a launch takes no other lock.
    slots: Vec<Slot>,
    /// `issued` when the driver was last asked whether the stream is empty.
    asked_at: u64,
    /// `issued` when a thread that submits last looked.
    looked_at: u64,
}

impl Stream {
    pub(crate) fn new(core: &Arc<Gpu>, priority: Priority) -> Result<Arc<Self>, DriverError> {
        let driver = &core.context.driver;
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
        let stream = Arc::new(Self {
            core: core.clone(),
            raw,
            state: Mutex::default(),
            issued: AtomicU64::new(0),
            n_looks: AtomicU64::new(0),
            drained: Drained::default(),
        });
        core.add_stream(&stream);
        Ok(stream)
    }

    /// Whether no task is on it.
    pub(crate) fn is_empty(&self) -> bool {
        self.drained.ended.load(Ordering::Acquire) == self.issued.load(Ordering::Acquire)
    }

    /// Whether the task at that position is the first that has not ended.
    pub(crate) fn is_first(&self, position: u64) -> bool {
        self.drained.ended.load(Ordering::Relaxed) + 1 == position
    }

    /// Whether the task at that position is the last.
    pub(crate) fn is_last(&self, position: u64) -> bool {
        self.issued.load(Ordering::Relaxed) == position
    }

    /// The kernels on it that are not known to have finished, oldest first.
    pub(crate) fn suspects(&self) -> Vec<Arc<CudaTask>> {
        let state = self.state.lock();
        state.pending.iter().filter(|task| task.extras.launch.is_some()).cloned().collect()
    }

    /// Puts a task behind all others, and has it wait for `waits`. `index` is the stream's in the task's queue. The context is current. On an error nothing was put on the stream
    /// that uses the task's memory.
    pub(crate) fn issue(&self, task: &Arc<CudaTask>, index: usize, waits: &[RawEvent]) -> Result<(), DriverError> {
        let driver = &self.core.context.driver;
        let mut state = self.state.lock();
        for &event in waits {
            // SAFETY: stream and event are alive: events are destroyed with their context only.
            unsafe { driver.stream_wait_event(self.raw, event, 0) }?;
        }
        let profile = self.begin_profile(task)?;
        if task.extras.launch.as_ref().is_some_and(|launch| launch.may_panic) {
            if state.slots.is_empty() {
                self.core.records.take(&mut state.slots)?;
            }
            task.set_record(state.slots.pop());
        }
        let mut emitter = Emitter::new(driver, self.raw);
        if let Err(error) = execute::emit(task, &mut emitter) {
            if emitter.n_calls() == 0 {
                state.slots.extend(task.record());
                task.set_record(None);
                return Err(error);
            }
            let _ = task.issue_error.set(error);
        }
        let mut has_device_work = emitter.n_calls() > 0 || !waits.is_empty();
        if let Some(profile) = profile {
            // SAFETY: as above.
            let recorded = unsafe { driver.event_record(profile.end, self.raw) };
            if let Err(error) = recorded {
                let _ = task.issue_error.set(error);
            }
            task.set_profile(profile);
            has_device_work = true;
        }
        state.issued += 1;
        if has_device_work {
            state.device_issued = state.issued;
        }
        task.set_place(index, state.issued);
        state.pending.push_back(task.clone());
        self.issued.store(state.issued, Ordering::Release);
        if state.issued - state.looked_at >= LOOK_EVERY {
            self.look(&mut state);
        }
        Ok(())
    }

    /// Sets tasks apart that are over, and leaves a fence for the next time. The context is current. A failure is left for others to find,
    /// who are not told then that somebody has looked.
    #[cold]
    fn look(&self, state: &mut State) {
        state.looked_at = state.issued;
        if self.record(state).is_ok() && self.ask_fences(state).is_ok() {
            // Another time, if the one who drains is just taking a task out.
            if let Some(over) = self.drained.over.try_lock() {
                self.set_apart(state, state.finished, over);
            }
            self.n_looks.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether a thread that submits looks often enough. Called by the completer, once for each of its own looks.
    fn is_looked_at(&self) -> bool {
        let drained = &self.drained;
        let now = [&self.n_looks, &self.issued].map(|number| number.load(Ordering::Acquire));
        let is_new =
            [0, 1].map(|index| drained.seen_by_completer[index].swap(now[index], Ordering::Relaxed) != now[index]);
        let [has_looked, is_fed] = is_new;
        let left = if has_looked { MOST_OMISSIONS } else { drained.omissions.load(Ordering::Relaxed) };
        drained.omissions.store(left.saturating_sub(1), Ordering::Relaxed);
        is_fed && left > 0
    }

    fn begin_profile(&self, task: &CudaTask) -> Result<Option<Profile>, DriverError> {
        if !task.queue.options.profiling {
            return Ok(None);
        }
        let context = &self.core.context;
        let Some(base) = self.core.clock.base() else { return Ok(None) };
        let (start, end) = (context.take_timed_event()?, context.take_timed_event()?);
        // SAFETY: event and stream are of this context, which the caller of `issue` has made current.
        unsafe { context.driver.event_record(start, self.raw) }?;
        Ok(Some(Profile { base, start, end }))
    }

    /// An event that happens when the task at that position is finished, or later. `None` if it is finished. Enters the context.
    pub(crate) fn fence(&self, position: u64) -> Result<Option<RawEvent>, DriverError> {
        let _entered = self.core.context.enter_anyway()?;
        let mut state = self.state.lock();
        // Whatever gave the device nothing to do is finished with what was before it.
        if position <= state.finished || state.device_issued <= state.finished {
            return Ok(None);
        }
        match state.fences.iter().find(|(fenced, _)| *fenced >= position.min(state.device_issued)) {
            Some((_, event)) => Ok(Some(*event)),
            None => self.record(&mut state).map(Some),
        }
    }

    /// Records a fence behind the last task. The context is current.
    fn record(&self, state: &mut State) -> Result<RawEvent, DriverError> {
        let context = &self.core.context;
        let event = context.take_plain_event()?;
        // SAFETY: event and stream are of this context, which is current.
        if let Err(error) = unsafe { context.driver.event_record(event, self.raw) } {
            context.return_plain_event(event);
            return Err(error);
        }
        state.fences.push_back((state.issued, event));
        Ok(event)
    }

    /// Asks the driver how far the stream has come, and sets the tasks apart that are over. With `thorough`, also leaves a fence for the
    /// next time if work is being added, and does nothing if a thread that submits looks itself. Called by the one who drains.
    pub(crate) fn poll(&self, thorough: bool) -> Result<(), DriverError> {
        let context = &self.core.context;
        let is_lost = context.is_lost();
        if thorough && self.is_looked_at() && !is_lost {
            return Ok(());
        }
        let Some(mut state) = self.lock_politely() else { return Ok(()) };
        if !is_lost && state.finished < state.issued {
            let _entered = context.enter_anyway()?;
            self.ask(&mut state, thorough)?;
        }
        let end = if is_lost { state.issued } else { state.finished };
        self.set_apart(&mut state, end, self.drained.over.lock());
        Ok(())
    }

    /// Sets the tasks apart up to the position `end`.
    fn set_apart(&self, state: &mut State, end: u64, mut over: MutexGuard<'_, VecDeque<Arc<CudaTask>>>) {
        let first = state.issued - state.pending.len() as u64;
        let n_over = end.saturating_sub(first) as usize;
        // Before the tasks: who takes one out asks whether it has finished.
        self.drained.finished.store(state.finished, Ordering::Release);
        over.extend(state.pending.drain(..n_over));
    }

    /// Whether the device has finished the task at that position, which is over. If not, it was lost.
    pub(crate) fn has_finished(&self, position: u64) -> bool {
        position <= self.drained.finished.load(Ordering::Acquire)
    }

    fn ask_fences(&self, state: &mut State) -> Result<(), DriverError> {
        let context = &self.core.context;
        while let Some(&(position, event)) = state.fences.front() {
            // SAFETY: the event was recorded by `record`.
            match unsafe { context.driver.event_query(event) } {
                Ok(()) => {
                    state.finished = state.finished.max(position);
                    state.fences.pop_front();
                    context.return_plain_event(event);
                }
                Err(error) if error.code == code::NOT_READY => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn ask(&self, state: &mut State, thorough: bool) -> Result<(), DriverError> {
        let context = &self.core.context;
        self.ask_fences(state)?;
        if state.device_issued > state.finished && state.fences.is_empty() {
            // SAFETY: the stream lives as long as `self`.
            match unsafe { context.driver.stream_query(self.raw) } {
                Ok(()) => state.finished = state.device_issued,
                Err(error) if error.code == code::NOT_READY => {
                    if thorough && state.asked_at != state.issued {
                        state.asked_at = state.issued;
                        // Without a fence, it is asked again whether the stream is empty.
                        self.record(state).map(drop).or_else(tolerate)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if state.device_issued <= state.finished {
            state.finished = state.issued;
        }
        Ok(())
    }

    /// The lock, if it can be had soon, without making those who submit wake a sleeping thread when they let go of it. A stream that
    /// is full keeps them waiting with the lock held, and then the other streams should not wait, too.
    fn lock_politely(&self) -> Option<MutexGuard<'_, State>> {
        for _ in 0..2000 {
            if let Some(state) = self.state.try_lock() {
                return Some(state);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Takes the first task out that is over, to be ended. Called by the one who drains.
    pub(crate) fn take_first_over(&self) -> Option<Arc<CudaTask>> {
        let task = self.drained.over.lock().pop_front()?;
        self.drained.ended.fetch_add(1, Ordering::Release);
        Some(task)
    }

    /// Begins to drain, unless somebody else does: that one will look again.
    pub(crate) fn begin_drain(&self) -> bool {
        loop {
            match self.drained.draining.compare_exchange(IDLE, DRAINING, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(DRAINING) => {
                    let asked = self.drained.draining.compare_exchange(
                        DRAINING,
                        DRAINING_AGAIN,
                        Ordering::AcqRel,
                        Ordering::Acquire,
                    );
                    if asked.is_ok() {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
    }

    /// Ends draining. False if it has to be done again.
    pub(crate) fn end_drain(&self) -> bool {
        if self.drained.draining.compare_exchange(DRAINING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return true;
        }
        self.drained.draining.store(DRAINING, Ordering::Release);
        false
    }
}

/// An error that says nothing of the device is none.
fn tolerate(error: DriverError) -> Result<(), DriverError> {
    if error.is_sticky() { Err(error) } else { Ok(()) }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let context = &self.core.context;
        if context.is_foreign() {
            return;
        }
        let state = self.state.get_mut();
        for (_, event) in state.fences.drain(..) {
            context.return_plain_event(event);
        }
        self.core.records.give_back(&state.slots);
        if let Ok(_entered) = context.enter_anyway() {
            // SAFETY: made by `new`; no task is on it, since tasks hold their stream until they have ended.
            let _ = unsafe { context.driver.stream_destroy(self.raw) };
        }
    }
}
