//! One lane: the tasks on it, in the order in which the driver got them.
//!
//! Launching must cost no more than the driver's own call, so nothing is recorded per task but its place.
//!
//! Invariants:
//! - `over` and then `pending` hold the tasks that were issued and not yet taken off; on a lane that keeps its order in that order.
//! - The ring is locked as seldom as can be by other threads than those that submit.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::turn::Turn;
use super::{Driver, Position, Task};
use crate::BackendError;

/// How often a thread tries to lock a ring that other threads submit to.
const POLL_SPINS: usize = 2000;
/// How often a submitting thread tries to lock the ring before it sleeps. Others hold the lock for a few microseconds, and waking a thread
/// takes longer.
const SUBMIT_SPINS: usize = 200;

/// One stream or queue of a driver.
pub struct Lane<D: Driver> {
    /// The device.
    pub device: Arc<D::Device>,
    /// The driver's handle.
    pub stream: D::Stream,
    /// Whether the driver executes the lane's tasks one after the other.
    pub keeps_order: bool,
    ring: Mutex<Ring<D>>,
    /// How many tasks were issued.
    issued: AtomicU64,
    pub(super) polled: Polled<D>,
}

impl<D: Driver> fmt::Debug for Lane<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("issued", &self.issued).finish_non_exhaustive()
    }
}

/// The state that the polling thread writes for each task, on cache lines that submitting threads do not need.
#[repr(align(128))]
pub(super) struct Polled<D: Driver> {
    /// Tasks that are over and not yet reported. The flag tells whether the device has finished them.
    pub(super) over: Mutex<VecDeque<(Arc<Task<D>>, bool)>>,
    pub(super) turn: Turn,
    /// How many tasks were removed from the lane.
    pub(super) ended: AtomicU64,
}

/// The state that is locked while a task is issued.
pub struct Ring<D: Driver> {
    /// Tasks that are not known to be over.
    pub pending: VecDeque<Arc<Task<D>>>,
    /// The driver's state of the lane.
    pub part: D::Ring,
    last: Position,
    /// Free panic records, so that a launch needs no other lock.
    records: Vec<D::Record>,
}

impl<D: Driver> Ring<D> {
    /// The position of the last task.
    pub fn last(&self) -> Position {
        self.last
    }
}

impl<D: Driver> Lane<D> {
    /// An empty lane of the device.
    pub fn new(device: &Arc<D::Device>, stream: D::Stream, keeps_order: bool) -> Arc<Self> {
        let ring =
            Ring { pending: VecDeque::new(), part: D::Ring::default(), last: Position::default(), records: Vec::new() };
        let polled = Polled { over: Mutex::default(), turn: Turn::default(), ended: AtomicU64::new(0) };
        let lane = Arc::new(Self {
            device: device.clone(),
            stream,
            keeps_order,
            ring: Mutex::new(ring),
            issued: AtomicU64::new(0),
            polled,
        });
        D::lanes(device).add(&lane);
        lane
    }

    /// Whether no task is on it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.polled.ended.load(Ordering::Acquire) == self.n_issued()
    }

    /// How many tasks were issued. May be outdated, unless the calling thread issues.
    #[inline]
    pub fn n_issued(&self) -> u64 {
        self.issued.load(Ordering::Acquire)
    }

    /// Whether the task at `position` was reported, on a lane that keeps its order. May be outdated.
    #[inline]
    pub fn is_reported(&self, position: Position) -> bool {
        // A task is counted before it is reported, and reported before the next one is counted.
        position.n_tasks() < self.polled.ended.load(Ordering::Acquire)
    }

    /// Whether the task at `position` is the first that has not ended, on a lane that keeps its order.
    pub fn is_first(&self, position: Position) -> bool {
        self.polled.ended.load(Ordering::Relaxed) + 1 == position.n_tasks()
    }

    /// Whether the task at `position` is the last.
    pub fn is_last(&self, position: Position) -> bool {
        self.issued.load(Ordering::Relaxed) == position.n_tasks()
    }

    /// Locks the ring.
    pub fn lock_ring(&self) -> MutexGuard<'_, Ring<D>> {
        self.ring.lock()
    }

    /// Locks the ring if the lock is free soon, so that submitting threads need not wake a sleeping thread at their unlock. A submitting
    /// thread holds the lock of a full lane for long, and other lanes should not wait for that.
    pub fn try_lock_ring(&self) -> Option<MutexGuard<'_, Ring<D>>> {
        self.spin_for_ring(POLL_SPINS)
    }

    /// Locks the ring, for a thread that submits.
    #[inline]
    fn lock_ring_to_submit(&self) -> MutexGuard<'_, Ring<D>> {
        self.spin_for_ring(SUBMIT_SPINS).unwrap_or_else(|| self.ring.lock())
    }

    #[inline]
    fn spin_for_ring(&self, n_spins: usize) -> Option<MutexGuard<'_, Ring<D>>> {
        for _ in 0..n_spins {
            if let Some(ring) = self.ring.try_lock() {
                return Some(ring);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Makes a task by calling `make` with its position and record, issues it to the driver, and adds it to the ring. On an error the
    /// driver has no part of the task.
    #[inline(always)]
    pub(super) fn issue(
        &self,
        may_panic: bool,
        waits: D::Waits<'_>,
        make: impl FnOnce(Position, Option<D::Record>) -> Arc<Task<D>>,
    ) -> Result<Arc<Task<D>>, BackendError> {
        let mut ring = self.lock_ring_to_submit();
        if may_panic && ring.records.is_empty() {
            ring = self.lock_ring_with_record(ring)?;
        }
        let record = if may_panic { ring.records.pop() } else { None };
        let task = make(ring.last.next(), record);
        if let Err(error) = D::issue(self, &mut ring, &task, waits) {
            ring.records.extend(record);
            drop(ring);
            return Err(D::fail(&self.device, error));
        }
        ring.last = ring.last.next();
        ring.pending.push_back(task.clone());
        self.issued.store(ring.last.n_tasks(), Ordering::Release);
        D::issued(self, &mut ring);
        Ok(task)
    }

    /// Unlocks the ring, adds free panic records, and locks it again.
    ///
    /// # Errors
    /// The errors of an allocation.
    #[cold]
    fn lock_ring_with_record<'r>(
        &'r self,
        mut ring: MutexGuard<'r, Ring<D>>,
    ) -> Result<MutexGuard<'r, Ring<D>>, BackendError> {
        while ring.records.is_empty() {
            // An allocation may find that the device is lost.
            drop(ring);
            let mut records = Vec::new();
            D::lanes(&self.device).records.take(&mut records, D::FIRST_RECORDS, |n| D::records(&self.device, n))?;
            ring = self.ring.lock();
            ring.records.append(&mut records);
        }
        Ok(ring)
    }

    /// Moves the first `n_tasks` tasks off the ring to the list of tasks that are over. If `is_finished` is false, the device was lost
    /// before it finished them.
    pub fn retire(&self, ring: &mut Ring<D>, n_tasks: usize, is_finished: bool) {
        let tasks = ring.pending.drain(..n_tasks);
        self.polled.over.lock().extend(tasks.map(|task| (task, is_finished)));
    }

    /// Moves finished tasks off the ring like [`retire`](Self::retire), unless the polling thread has the list locked. For threads
    /// that submit.
    pub fn try_retire(&self, ring: &mut Ring<D>, n_tasks: usize) {
        if let Some(mut over) = self.polled.over.try_lock() {
            over.extend(ring.pending.drain(..n_tasks).map(|task| (task, true)));
        }
    }

    /// Adds one task, already taken off the ring, to the list of tasks that are over.
    pub fn retire_task(&self, task: Arc<Task<D>>, is_finished: bool) {
        self.polled.over.lock().push_back((task, is_finished));
    }

    /// The task with the lowest number among those that are not known to be over.
    pub(super) fn oldest(&self) -> Option<Arc<Task<D>>> {
        let ring = self.ring.lock();
        if self.keeps_order {
            return ring.pending.front().cloned();
        }
        ring.pending.iter().min_by_key(|task| task.number).cloned()
    }

    /// The launches that were issued to the driver and are not known to have finished.
    pub(super) fn kernels(&self) -> Vec<Arc<Task<D>>> {
        let ring = self.ring.lock();
        let n_tasks = ring.pending.len() - D::n_held_back(&ring);
        ring.pending.iter().take(n_tasks).filter(|task| task.launch.is_some()).cloned().collect()
    }
}

impl<D: Driver> Drop for Lane<D> {
    fn drop(&mut self) {
        if D::lanes(&self.device).counts.is_foreign() {
            return;
        }
        let ring = self.ring.get_mut();
        D::lanes(&self.device).records.give_back(&ring.records);
        D::close(&mut self.stream, &mut ring.part);
    }
}
