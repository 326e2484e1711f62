//! The entrance to the host backend.

use std::sync::{Arc, OnceLock};

use oxisycl_backend::{Backend, BackendError, Platform, PlatformInfo};
use oxisycl_types::BackendKind;

use crate::device::{HostDevice, PoolHandle, Shared};
use crate::info::{Processor, host_info};
use crate::memory::HostMemory;
use crate::pool::process_pool;
use crate::topology::SysfsTopology;

/// The host CPU as a backend: one platform with one device.
///
/// All objects of this type share the threads of the process. Their number is that of the processors that the program may use, or
/// the value of `OXISYCL_HOST_THREADS`.
#[derive(Default)]
pub struct HostBackend {
    platform: OnceLock<Result<Arc<Platform>, BackendError>>,
}

impl HostBackend {
    /// Makes the backend. It queries the system when `platforms` is first called; threads start with the first command.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Backend for HostBackend {
    fn platforms(&self) -> Result<Vec<Arc<Platform>>, BackendError> {
        let platform = self.platform.get_or_init(|| {
            let processor = Processor::detect();
            let pool = process_pool(&processor.name)?;
            let shared = Shared {
                pool: PoolHandle::OfTheProcess(pool),
                memory: Arc::new(HostMemory::new(processor.name.clone())),
                topology: Box::new(SysfsTopology::default()),
            };
            let info = host_info(&processor, pool.threads());
            let device = HostDevice::root(Arc::new(shared), info);
            let info = PlatformInfo {
                backend: BackendKind::Host,
                name: "OxiSYCL host".to_owned(),
                vendor: "OxiSYCL".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            };
            Ok(Arc::new(Platform::new(info, vec![Arc::new(device)])))
        });
        platform.clone().map(|platform| vec![platform])
    }
}
