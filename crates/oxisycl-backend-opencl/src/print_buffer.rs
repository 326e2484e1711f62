//! The print buffers of launches: device memory that kernels write, and host memory that it is copied to when the launch has ended.

use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_backend::{BackendError, KernelOutput, UsmKind, driver};
use oxisycl_image::PanicSite;
use oxisycl_types::PrintHeader;

use crate::context::Context;
use crate::emitter::Emitter;
use crate::error::Result;
use crate::transfer::copy_row;

/// A print buffer of one launch.
#[derive(Clone)]
pub(crate) struct PrintBuffer(Arc<Parts>);

struct Parts {
    context: Arc<Context>,
    device: NonNull<u8>,
    /// The buffer's copy on the host, with the same size.
    host: NonNull<[u8]>,
    /// The buffer's header before a launch.
    header: PrintHeader,
}

// SAFETY: addresses of memory that `Parts` alone frees, used by one launch at a time.
unsafe impl Send for Parts {}
// SAFETY: as above.
unsafe impl Sync for Parts {}

impl PrintBuffer {
    pub(crate) fn new(context: &Arc<Context>, capacity: u32) -> Result<Self, BackendError> {
        let size = size_of::<PrintHeader>() + capacity as usize;
        let device = context.allocate(UsmKind::Device, size, align_of::<PrintHeader>())?;
        let host = NonNull::from(Box::leak(vec![0u8; size].into_boxed_slice()));
        let header = PrintHeader { used: 0, capacity, n_lost: 0, reserved: 0 };
        Ok(Self(Arc::new(Parts { context: context.clone(), device, host, header })))
    }

    /// The buffer's address, for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.0.device.as_ptr().expose_provenance() as u64
    }

    /// Empties the buffer on the device, before the launch.
    pub(crate) fn clear(&self, emitter: &mut Emitter<'_>) -> Result<()> {
        let header = (&raw const self.0.header).cast();
        // SAFETY: the buffer belongs to this launch, whose task keeps it and with it the header.
        unsafe { copy_row(emitter, header, self.0.device.as_ptr(), size_of::<PrintHeader>()) }
    }

    /// Copies the buffer to the host, after the launch.
    pub(crate) fn fetch(&self, emitter: &mut Emitter<'_>) -> Result<()> {
        let host = self.0.host;
        // SAFETY: both are as large as the buffer, and belong to this launch, whose task keeps them.
        unsafe { copy_row(emitter, self.0.device.as_ptr(), host.as_ptr().cast(), host.len()) }
    }

    /// The output of a launch that has ended.
    pub(crate) fn read(&self, sites: &[PanicSite]) -> Vec<KernelOutput> {
        // SAFETY: memory of this buffer, written by the copy, which has ended.
        let bytes = unsafe { self.0.host.as_ref() };
        driver::printed(bytes, self.0.header.capacity, sites)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // A lost device may write still.
        if self.context.is_foreign() || self.context.is_lost() {
            return;
        }
        // SAFETY: allocated and leaked by `new`; tasks keep their buffer until they have ended.
        unsafe {
            self.context.free(self.device);
            drop(Box::from_raw(self.host.as_ptr()));
        }
    }
}
