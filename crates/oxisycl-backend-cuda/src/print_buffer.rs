//! The print buffers of launches: memory of the device that kernels write, and pinned memory that it is copied to when the launch has ended.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_backend::{BackendError, KernelOutput, UsmKind, driver};
use oxisycl_image::PanicSite;
use oxisycl_types::PrintHeader;

use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::memory::CudaMemory;
use crate::retired::Block;
use crate::sys::DevicePointer;

/// A print buffer of one launch.
#[derive(Clone)]
pub(crate) struct PrintBuffer(Arc<Parts>);

struct Parts {
    memory: Arc<CudaMemory>,
    device: DevicePointer,
    host: NonNull<u8>,
    capacity: u32,
}

// SAFETY: addresses of memory that `Parts` alone gives back, used by one launch at a time.
unsafe impl Send for Parts {}
// SAFETY: as above.
unsafe impl Sync for Parts {}

impl PrintBuffer {
    pub(crate) fn new(memory: &Arc<CudaMemory>, capacity: u32) -> Result<Self, BackendError> {
        let context = &memory.context;
        let _entered = context.enter()?;
        let size = size_of::<PrintHeader>() + capacity as usize;
        let make = |kind| memory.take_or_make(kind, size).map_err(|error| context.fail(error));
        let device = make(UsmKind::Device)?;
        // The device's part is of no use alone.
        let give_back = |_: &BackendError| memory.retire(Block { kind: UsmKind::Device, base: device, size });
        let host = make(UsmKind::Host).inspect_err(give_back)?;
        match NonNull::new(ptr::with_exposed_provenance_mut::<u8>(host as usize)) {
            Some(host) => {
                // The pages are the driver's, with whatever was in them.
                // SAFETY: memory of that size, to which there is no other pointer.
                unsafe { host.write_bytes(0, size) };
                Ok(Self(Arc::new(Parts { memory: memory.clone(), device, host, capacity })))
            }
            None => {
                let what = "pinned memory at address zero".to_owned();
                Err(BackendError::Unsupported { device: context.name.clone(), what })
            }
        }
    }

    /// The buffer's address, for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.0.device
    }

    /// Empties the buffer on the device, before the launch.
    pub(crate) fn clear(&self, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
        let Parts { device, capacity, .. } = *self.0;
        let words = size_of::<PrintHeader>() / 4;
        let capacity_at = device + std::mem::offset_of!(PrintHeader, capacity) as u64;
        // SAFETY: the header is within the buffer, which belongs to this launch.
        emitter.call(|driver, stream| unsafe { driver.memset_d32_async(device, 0, words, stream) })?;
        // SAFETY: as above.
        emitter.call(|driver, stream| unsafe { driver.memset_d32_async(capacity_at, capacity, 1, stream) })
    }

    /// Copies the buffer to the host, after the launch.
    pub(crate) fn fetch(&self, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
        let (host, device, size) = (self.0.host.as_ptr() as DevicePointer, self.0.device, self.0.size());
        // SAFETY: both are as large as the buffer, and belong to this launch, whose task keeps them.
        emitter.call(|driver, stream| unsafe { driver.memcpy_async(host, device, size, stream) })
    }

    /// The output of a launch that has ended.
    pub(crate) fn read(&self, sites: &[PanicSite]) -> Vec<KernelOutput> {
        // SAFETY: pinned memory of that size, written by the copy, which has ended.
        let bytes = unsafe { std::slice::from_raw_parts(self.0.host.as_ptr(), self.0.size()) };
        driver::printed(bytes, self.0.capacity, sites)
    }
}

impl Parts {
    fn size(&self) -> usize {
        size_of::<PrintHeader>() + self.capacity as usize
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // A lost device may write still.
        if self.memory.context.is_foreign() || self.memory.context.is_lost() {
            return;
        }
        // Tasks keep their buffer until they have ended.
        let (size, host) = (self.size(), self.host.as_ptr() as DevicePointer);
        self.memory.retire(Block { kind: UsmKind::Device, base: self.device, size });
        self.memory.retire(Block { kind: UsmKind::Host, base: host, size });
    }
}
