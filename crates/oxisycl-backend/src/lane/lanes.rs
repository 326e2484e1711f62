//! All lanes of one device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Driver, Lane, RecordPool, Task};
use crate::driver::Worker;

/// A value on a cache line of its own: threads that submit and threads that report write different ones.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

/// The lanes of a device, and what they share.
pub struct Lanes<D: Driver> {
    /// The panic records of all launches.
    pub records: RecordPool<D::Record, D::RecordMemory>,
    bell: Arc<Worker>,
    lanes: Mutex<Vec<Weak<Lane<D>>>>,
    n_accepted: Padded<AtomicU64>,
    n_ended: Padded<AtomicU64>,
}

impl<D: Driver> Default for Lanes<D> {
    fn default() -> Self {
        Self {
            records: RecordPool::default(),
            bell: Arc::default(),
            lanes: Mutex::default(),
            n_accepted: Padded(AtomicU64::new(0)),
            n_ended: Padded(AtomicU64::new(0)),
        }
    }
}

/// A task that is about to be accepted, and is forgotten if it is not.
pub(super) struct Expected<'l, D: Driver> {
    lanes: &'l Lanes<D>,
    pub(super) number: u64,
}

impl<D: Driver> Expected<'_, D> {
    pub(super) fn accept(self) {
        std::mem::forget(self);
    }
}

impl<D: Driver> Drop for Expected<'_, D> {
    fn drop(&mut self) {
        self.lanes.forget();
    }
}

impl<D: Driver> Lanes<D> {
    /// See [`Progress::bell`](crate::poller::Progress::bell).
    pub fn bell(&self) -> &Arc<Worker> {
        &self.bell
    }

    pub(super) fn add(&self, lane: &Arc<Lane<D>>) {
        let mut lanes = self.lanes.lock();
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(Arc::downgrade(lane));
    }

    /// The lanes that are still needed.
    pub fn all(&self) -> Vec<Arc<Lane<D>>> {
        self.lanes.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Counts a task that is about to be accepted, and sees to it that it is polled for.
    #[inline]
    pub(super) fn expect(&self) -> Expected<'_, D> {
        // Sequentially consistent with the poller's going to sleep: it sees the task, or is seen to sleep.
        let number = self.n_accepted.0.fetch_add(1, Ordering::SeqCst);
        self.bell.ring();
        Expected { lanes: self, number }
    }

    /// A task has ended, or was refused.
    pub(super) fn forget(&self) {
        self.n_ended.0.fetch_add(1, Ordering::SeqCst);
    }

    /// How many tasks were expected so far.
    pub fn n_accepted(&self) -> u64 {
        self.n_accepted.0.load(Ordering::SeqCst)
    }

    /// Whether there are tasks that have not ended.
    pub fn has_tasks(&self) -> bool {
        // The ended first: a task is accepted before it ends.
        self.n_ended.0.load(Ordering::SeqCst) != self.n_accepted()
    }

    /// Reports what has ended on any lane. Whether anything had.
    pub fn poll(&self, device: &D::Device, thorough: bool) -> bool {
        let Some(_looking) = D::begin_look(device) else { return false };
        let mut progress = false;
        for lane in self.all() {
            if !lane.is_empty() {
                progress |= lane.drain(thorough);
            }
        }
        progress
    }

    /// The task that was issued first of those that the driver can execute now, or one that was issued soon after it.
    pub fn oldest(&self) -> Option<Arc<Task<D>>> {
        self.all().iter().filter_map(|lane| lane.oldest()).min_by_key(|task| task.number)
    }

    /// The kernel that made the device fail, as far as that can be told: the first one that is not known to have finished. Called without a
    /// ring's lock.
    pub fn suspects(&self) -> Option<String> {
        let kernels: Vec<_> = self.all().iter().flat_map(|lane| lane.kernels()).collect();
        let first = kernels.iter().min_by_key(|task| task.number)?;
        Some(match kernels.len() {
            1 => first.command.to_string(),
            2 => format!("{}, or in the kernel enqueued after it", first.command),
            n => format!("{}, or in one of the {} kernels enqueued after it", first.command, n - 1),
        })
    }
}
