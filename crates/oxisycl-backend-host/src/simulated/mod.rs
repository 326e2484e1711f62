//! Simulated discrete devices.
//!
//! Each has a memory of its own, a thread of its own, and any latency, limits and faults that a test asks for. Kernels are the program's
//! native code, as on the host device. Nothing here is fast: the point is that mistakes show. Fresh memory is poisoned, addresses are
//! checked, waiting threads cannot help, and ready commands may run in another order than they were submitted in.

mod check;
mod config;
mod control;
mod device;
mod engine;
mod fault;
mod memory;
mod module;

use std::sync::Arc;

use oxisycl_backend::{Backend, BackendError, Device, MemoryId, MemoryInfo, Platform, PlatformInfo};
use oxisycl_types::BackendKind;
use parking_lot::Mutex;

pub use check::{Direction, TransferCount};
pub use config::SimulatedConfig;
pub use control::SimulatedControl;
pub use fault::Fault;

use check::{Checker, Transfers};
use control::Handles;
use device::{EngineHandle, SimulatedDevice, simulated_info};
use engine::Engine;
use fault::Attempts;
use memory::{Registry, SimulatedMemory};

/// A backend with any number of simulated devices on one platform.
pub struct SimulatedBackend {
    platform: Arc<Platform>,
    control: SimulatedControl,
}

impl SimulatedBackend {
    /// Makes the devices. Their threads start with their first commands.
    pub fn new(config: SimulatedConfig) -> Self {
        let registry = Arc::new(Registry::default());
        let names: Vec<_> = (0..config.count).map(|index| format!("simulated device {index}")).collect();
        let attempts: Vec<_> = (0..config.count)
            .map(|index| {
                let of_device = |fault: &&Fault| fault.device.is_none_or(|device| device == index);
                Arc::new(Mutex::new(Attempts::new(config.faults.iter().filter(of_device).copied())))
            })
            .collect();
        let memories: Vec<MemoryInfo> = (0..config.count).map(|_| MemoryInfo::unique()).collect();
        let ids: Arc<[MemoryId]> = memories.iter().map(|memory| memory.id).collect();
        let mut devices: Vec<Arc<dyn Device>> = Vec::new();
        let mut handles = Vec::new();
        for (index, memory_info) in memories.into_iter().enumerate() {
            let transfers = Transfers::default();
            let checker = Checker {
                device: index,
                peer_copies: config.peer_copies,
                memories: Arc::clone(&ids),
                registry: Arc::clone(&registry),
                transfers: Arc::clone(&transfers),
            };
            let (name, attempts) = (names[index].clone(), Arc::clone(&attempts[index]));
            let engine = Arc::new(Engine::new(name, config.latency, config.seed, checker, Arc::clone(&attempts)));
            let (name, registry) = (names[index].clone(), Arc::clone(&registry));
            let attempts_of_memory = Arc::clone(&attempts);
            let mut info = simulated_info(&config, name.clone(), memory_info);
            if config.peer_copies {
                info.peer_memories = ids.to_vec();
            }
            let (usm, limit) = (config.usm.clone(), config.memory);
            devices.push(Arc::new(SimulatedDevice {
                engine: Arc::new(EngineHandle(Arc::clone(&engine))),
                memory: Arc::new(SimulatedMemory::new(index, name, usm, limit, registry, attempts_of_memory)),
                info,
            }));
            handles.push(Handles { engine, attempts, transfers });
        }
        let info = PlatformInfo {
            backend: BackendKind::Simulated,
            name: "OxiSYCL simulated".to_owned(),
            vendor: "OxiSYCL".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let control = SimulatedControl { devices: handles.into(), registry };
        Self { platform: Arc::new(Platform::new(info, devices)), control }
    }

    /// A handle to observe and disturb the devices.
    pub fn control(&self) -> SimulatedControl {
        self.control.clone()
    }
}

impl Backend for SimulatedBackend {
    fn platforms(&self) -> Result<Vec<Arc<Platform>>, BackendError> {
        Ok(vec![Arc::clone(&self.platform)])
    }
}
