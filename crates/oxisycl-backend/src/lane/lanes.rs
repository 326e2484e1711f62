//! All lanes of one device.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::{Driver, Lane, RecordPool, Task};
use crate::poller::Counts;

/// The lanes of a device, and what they share.
pub struct Lanes<D: Driver> {
    /// The panic records of all launches.
    pub records: RecordPool<D::Record, D::RecordMemory>,
    /// The counts of the tasks on all lanes.
    pub counts: Counts,
    lanes: Mutex<Vec<Weak<Lane<D>>>>,
}

impl<D: Driver> Default for Lanes<D> {
    fn default() -> Self {
        Self { records: RecordPool::default(), counts: Counts::default(), lanes: Mutex::default() }
    }
}

impl<D: Driver> Lanes<D> {
    pub(super) fn add(&self, lane: &Arc<Lane<D>>) {
        let mut lanes = self.lanes.lock();
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(Arc::downgrade(lane));
    }

    /// The lanes that are still in use.
    pub fn all(&self) -> SmallVec<[Arc<Lane<D>>; 8]> {
        self.lanes.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Polls all lanes, and reports the tasks that are over. Returns whether there were any.
    pub fn poll(&self, device: &D::Device, thorough: bool) -> bool {
        let Some(_guard) = D::begin_poll(device) else { return false };
        let mut progress = false;
        for lane in self.all() {
            if !lane.is_empty() {
                progress |= lane.poll(thorough);
            }
        }
        progress
    }

    /// The task with the lowest number among those that the driver can execute now, or one that was issued soon after it.
    pub fn oldest(&self) -> Option<Arc<Task<D>>> {
        self.all().iter().filter_map(|lane| lane.oldest()).min_by_key(|task| task.number)
    }

    /// The label of the kernel that probably made the device fail: the first one that is not known to have finished. Called without a
    /// ring's lock.
    pub fn suspects(&self) -> Option<String> {
        let kernels: Vec<_> = self.all().iter().flat_map(|lane| lane.kernels()).collect();
        let first = kernels.iter().min_by_key(|task| task.number)?;
        Some(match kernels.len() {
            1 => first.command.to_string(),
            2 => format!("{}, or in the kernel issued after it", first.command),
            n => format!("{}, or in one of the {} kernels issued after it", first.command, n - 1),
        })
    }
}
