//! The arguments of launches whose kernels get their address: memory of the device that they are copied to.

use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_backend::{ArgumentBlock, BackendError, UsmKind};
use oxisycl_image::ParameterLayout;

use crate::context::Context;
use crate::emitter::Emitter;
use crate::error::Result;
use crate::transfer::copy_row;

/// The alignment of a buffer.
const ALIGN: usize = 64;

/// Memory for the arguments of one launch.
#[derive(Clone)]
pub(crate) struct BlockBuffer(Arc<Parts>);

struct Parts {
    context: Arc<Context>,
    device: NonNull<u8>,
    size: usize,
}

// SAFETY: an address of memory that `Parts` alone frees, used by one launch at a time.
unsafe impl Send for Parts {}
// SAFETY: as above.
unsafe impl Sync for Parts {}

impl BlockBuffer {
    pub(crate) fn new(context: &Arc<Context>, size: usize) -> Result<Self, BackendError> {
        let device = context.allocate(UsmKind::Device, size, ALIGN)?;
        Ok(Self(Arc::new(Parts { context: context.clone(), device, size })))
    }

    /// Copies arguments of that layout to the device, before the launch. Returns their address there. The buffer was taken for them.
    ///
    /// # Safety
    /// The arguments are those of the task that keeps the buffer, and have so many bytes.
    pub(crate) unsafe fn fill(
        &self,
        arguments: &ArgumentBlock,
        layout: ParameterLayout,
        emitter: &mut Emitter<'_>,
    ) -> Result<u64> {
        let Parts { device, size, .. } = *self.0;
        let offset = device.as_ptr().align_offset(layout.align);
        assert!(offset.saturating_add(layout.size) <= size, "the buffer was taken for these arguments");
        // SAFETY: within the buffer, as was compared.
        let target = unsafe { device.add(offset) }.as_ptr();
        // SAFETY: the task keeps both until the command has ended. A block that is passed by address is on the heap, and does not move.
        unsafe { copy_row(emitter, arguments.as_ptr(), target, layout.size) }?;
        Ok(target.expose_provenance() as u64)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // A lost device may read still.
        if self.context.is_foreign() || self.context.is_lost() {
            return;
        }
        // SAFETY: allocated by `new`; tasks keep their buffer until they have ended.
        unsafe { self.context.free(self.device) };
    }
}
