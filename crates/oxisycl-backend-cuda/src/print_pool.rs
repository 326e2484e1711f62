//! The print buffers of a queue's launches: memory of the device that kernels write, and pinned memory that it is copied to when the
//! launch has ended.
//!
//! There are as many as launches that may print were unfinished at a time, which the runtime limits (`MOST_PRINTING`).

use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_backend::{BackendError, KernelOutput, UsmKind, driver};
use oxisycl_image::PanicSite;
use oxisycl_types::PrintHeader;

use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::gpu::Gpu;
use crate::memory;
use crate::retired::Block;
use crate::sys::DevicePointer;

/// A print buffer of one launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrintBuffer {
    device: DevicePointer,
    host: NonNull<u8>,
    capacity: u32,
}

// SAFETY: addresses of memory of the pool, used by one launch at a time.
unsafe impl Send for PrintBuffer {}
// SAFETY: as above.
unsafe impl Sync for PrintBuffer {}

impl PrintBuffer {
    /// What the kernel is given.
    pub(crate) fn address(self) -> u64 {
        self.device
    }

    fn size(self) -> usize {
        size_of::<PrintHeader>() + self.capacity as usize
    }

    /// Empties the buffer on the device, before the launch.
    pub(crate) fn clear(self, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
        let words = size_of::<PrintHeader>() / 4;
        let capacity = self.device + std::mem::offset_of!(PrintHeader, capacity) as u64;
        // SAFETY: the header is within the buffer, which belongs to this launch.
        emitter.call(|driver, stream| unsafe { driver.memset_d32_async(self.device, 0, words, stream) })?;
        // SAFETY: as above.
        emitter.call(|driver, stream| unsafe { driver.memset_d32_async(capacity, self.capacity, 1, stream) })
    }

    /// Copies the buffer to the host, after the launch.
    pub(crate) fn fetch(self, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
        let host = self.host.as_ptr() as DevicePointer;
        // SAFETY: both are as large as the buffer, and belong to this launch.
        emitter.call(|driver, stream| unsafe { driver.memcpy_async(host, self.device, self.size(), stream) })
    }

    /// Tells what the launch has printed. It has ended.
    pub(crate) fn read(self, sites: &[PanicSite], tell: &mut dyn FnMut(KernelOutput<'_>)) {
        // SAFETY: pinned memory of the pool of that size, written by the copy, which has ended.
        let bytes = unsafe { std::slice::from_raw_parts(self.host.as_ptr(), self.size()) };
        driver::tell_printed(bytes, self.capacity, sites, tell);
    }
}

/// The buffers of one queue.
pub(crate) struct PrintPool {
    core: Arc<Gpu>,
    buffers: driver::PrintPool<PrintBuffer>,
}

impl PrintPool {
    /// An empty pool of buffers with so many bytes for records.
    pub(crate) fn new(core: Arc<Gpu>, capacity: u32) -> Self {
        Self { core, buffers: driver::PrintPool::new(capacity) }
    }

    /// A buffer for one launch.
    pub(crate) fn take(&self) -> Result<PrintBuffer, BackendError> {
        self.buffers.take(|capacity| self.allocate(capacity))
    }

    /// Takes a buffer back whose launch is over, or never was.
    pub(crate) fn give_back(&self, buffer: PrintBuffer) {
        self.buffers.give_back(buffer);
    }

    fn allocate(&self, capacity: u32) -> Result<PrintBuffer, BackendError> {
        let core = &self.core;
        let _entered = core.context.enter()?;
        let size = size_of::<PrintHeader>() + capacity as usize;
        let make = |kind| memory::take_or_make(core, kind, size).map_err(|error| core.context.fail(error));
        let device = make(UsmKind::Device)?;
        // The device's part is of no use alone.
        let host =
            make(UsmKind::Host).inspect_err(|_| core.retire(Block { kind: UsmKind::Device, base: device, size }))?;
        match NonNull::new(ptr::with_exposed_provenance_mut::<u8>(host as usize)) {
            Some(host) => {
                // The pages are the driver's, with whatever was in them.
                // SAFETY: memory of that size, which nobody else has.
                unsafe { host.write_bytes(0, size) };
                Ok(PrintBuffer { device, host, capacity })
            }
            None => {
                let what = "pinned memory at address zero".to_owned();
                Err(BackendError::Unsupported { device: core.context.name.clone(), what })
            }
        }
    }
}

impl Drop for PrintPool {
    fn drop(&mut self) {
        let buffers = self.buffers.take_all();
        if self.core.context.is_foreign() {
            return;
        }
        // Allocated by `allocate`; launches hold their queue, and with it the pool, until they have ended.
        for buffer in buffers {
            let (size, host) = (buffer.size(), buffer.host.as_ptr() as DevicePointer);
            self.core.retire(Block { kind: UsmKind::Device, base: buffer.device, size });
            self.core.retire(Block { kind: UsmKind::Host, base: host, size });
        }
    }
}
