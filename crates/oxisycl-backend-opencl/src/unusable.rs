//! A device that cannot be used. It is listed with the reason, and every other call fails with that reason.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_backend::{BackendError, Device, DeviceInfo, Memory, Partition, Queue, QueueOptions, UsmKind};

use crate::info::{self, baseline_target};
use crate::query::Asked;

pub(crate) struct UnusableDevice {
    info: DeviceInfo,
    reason: String,
    memory: Arc<dyn Memory>,
}

impl UnusableDevice {
    pub(crate) fn new(asked: Asked<'_>, reason: String) -> Self {
        // Without any target it would run native code.
        let mut info = info::device_info(asked, None, vec![baseline_target()], None);
        info.unusable = Some(reason.clone());
        let memory = Arc::new(NoMemory { device: info.name.clone(), reason: reason.clone() });
        Self { info, reason, memory }
    }

    fn refusal(&self) -> BackendError {
        refusal(&self.info.name, &self.reason)
    }
}

fn refusal(device: &str, reason: &str) -> BackendError {
    BackendError::Unsupported { device: device.to_owned(), what: format!("kernels: {reason}") }
}

// SAFETY: it makes no queues, and its memory no allocations.
unsafe impl Device for UnusableDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    fn partition(&self, _partition: &Partition) -> Result<Vec<Arc<dyn Device>>, BackendError> {
        Err(self.refusal())
    }

    fn create_queue(&self, _options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        Err(self.refusal())
    }
}

/// A memory without allocations.
struct NoMemory {
    device: String,
    reason: String,
}

// SAFETY: it has no allocations.
unsafe impl Memory for NoMemory {
    fn allocate(&self, _kind: UsmKind, _layout: Layout, _zeroed: bool) -> Result<NonNull<u8>, BackendError> {
        Err(refusal(&self.device, &self.reason))
    }

    unsafe fn free(&self, _pointer: NonNull<u8>, _kind: UsmKind, _layout: Layout) {}
}
