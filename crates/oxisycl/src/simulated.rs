//! Simulated discrete devices: devices with memory of their own, asynchronous queues and injectable faults, on any machine.
//!
//! For tests of programs that use several devices. Off unless asked for: `OXISYCL_SIMULATED=3` adds three to the process's
//! platforms; [`Simulator`] makes a platform that only its owner sees.

use std::sync::Arc;

use oxisycl_backend::Backend;
pub use oxisycl_backend::Operation;
pub use oxisycl_backend_host::{Direction, Fault, SimulatedConfig, SimulatedControl, TransferCount};
use oxisycl_types::ErrorCode;

use crate::wiring::runtime;
use crate::{Device, Error, Platform, Result};

/// A platform of simulated devices of one's own.
pub struct Simulator {
    backend: oxisycl_backend_host::SimulatedBackend,
    platform: Platform,
}

impl Simulator {
    /// A simulator with `config`.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    /// use oxisycl::simulated::{SimulatedConfig, Simulator};
    ///
    /// # fn main() -> oxisycl::Result {
    /// // Two devices with memories of their own, between which buffers move.
    /// let simulator = Simulator::new(SimulatedConfig::new(2))?;
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// for device in simulator.devices() {
    ///     Queue::new(&device)?.submit(|cg| {
    ///         let numbers = cg.access(&numbers, ReadWrite);
    ///         cg.parallel_for(3, move |item| numbers.update(item, |x| 10 * x))
    ///     })?;
    /// }
    /// assert_eq!(numbers.to_vec()?, [100, 200, 300]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(config: SimulatedConfig) -> Result<Self> {
        runtime()?;
        let backend = oxisycl_backend_host::SimulatedBackend::new(config);
        let platforms: Vec<Arc<oxisycl_backend::Platform>> = backend.platforms()?;
        let first = platforms.into_iter().next();
        let platform = first.ok_or_else(|| Error::new(ErrorCode::Platform, "the simulator has no platform"))?;
        Ok(Self { backend, platform: Platform::new(platform) })
    }

    /// The platform.
    pub fn platform(&self) -> Platform {
        self.platform.clone()
    }

    /// The platform's devices.
    pub fn devices(&self) -> Vec<Device> {
        self.platform.devices()
    }

    /// Injects faults and tells what the devices did.
    pub fn control(&self) -> SimulatedControl {
        self.backend.control()
    }
}

/// The backend that the environment asks for.
pub(crate) fn from_env() -> Result<Option<Box<dyn Backend>>> {
    let config = SimulatedConfig::from_env().map_err(|message| Error::new(ErrorCode::Platform, message))?;
    Ok(config.map(|config| Box::new(oxisycl_backend_host::SimulatedBackend::new(config)) as Box<dyn Backend>))
}
