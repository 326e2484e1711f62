//! A handle by which tests observe and disturb simulated devices while they work.
//!
//! Devices are named by their index. A method given an index that does not exist does nothing and reports zero.

use std::sync::Arc;

use oxisycl_backend::Operation;
use parking_lot::Mutex;

use super::check::{Direction, TransferCount, Transfers, slot};
use super::engine::Engine;
use super::fault::Attempts;
use super::memory::Registry;

/// Observes and disturbs the devices of one [`SimulatedBackend`](super::SimulatedBackend). Keeps no device alive.
#[derive(Clone)]
pub struct SimulatedControl {
    pub(crate) devices: Arc<[Handles]>,
    pub(crate) registry: Arc<Registry>,
}

/// The control's references to one device.
pub(crate) struct Handles {
    pub(crate) engine: Arc<Engine>,
    pub(crate) attempts: Arc<Mutex<Attempts>>,
    pub(crate) transfers: Transfers,
}

impl SimulatedControl {
    /// The number of devices.
    pub fn n_devices(&self) -> usize {
        self.devices.len()
    }

    /// Makes the `nth` operation of that class from now on fail; 1 is the next one. For commands the order of execution counts.
    pub fn fail_next(&self, device: usize, operation: Operation, nth: u64) {
        if let Some(device) = self.devices.get(device) {
            device.attempts.lock().fail_next(operation, nth);
        }
    }

    /// The number of attempted operations of that class, including those that failed on request.
    pub fn attempts(&self, device: usize, operation: Operation) -> u64 {
        self.devices.get(device).map_or(0, |device| device.attempts.lock().count(operation))
    }

    /// The number of images that the device has loaded.
    pub fn loads(&self, device: usize) -> u64 {
        self.devices.get(device).map_or(0, |device| device.engine.n_loads())
    }

    /// The bytes in live allocations of all kinds.
    pub fn allocated_bytes(&self, device: usize) -> u64 {
        self.registry.live(device).1
    }

    /// The number of live allocations.
    pub fn live_allocations(&self, device: usize) -> usize {
        self.registry.live(device).0
    }

    /// The copies of the device's queues in that direction.
    pub fn transfers(&self, device: usize, direction: Direction) -> TransferCount {
        self.devices.get(device).map_or_else(TransferCount::default, |device| device.transfers.lock()[slot(direction)])
    }

    /// Holds back all commands that have not begun, until [`resume`](Self::resume). A paused device resumes when its backend, device and
    /// queue objects are all dropped.
    pub fn pause(&self, device: usize) {
        if let Some(device) = self.devices.get(device) {
            device.engine.set_paused(true);
        }
    }

    /// Resumes a paused device.
    pub fn resume(&self, device: usize) {
        if let Some(device) = self.devices.get(device) {
            device.engine.set_paused(false);
        }
    }

    /// Whether a device's thread runs.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn has_thread(&self, device: usize) -> bool {
        self.devices[device].engine.has_thread()
    }
}
