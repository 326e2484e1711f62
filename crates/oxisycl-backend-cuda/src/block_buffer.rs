//! The arguments of launches whose kernels get their address: memory of the device, and pinned memory that they are copied from.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_backend::{ArgumentBlock, BackendError, UsmKind};
use oxisycl_image::ParameterLayout;

use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::memory::CudaMemory;
use crate::retired::Block;
use crate::sys::DevicePointer;

/// Memory for the arguments of one launch.
#[derive(Clone)]
pub(crate) struct BlockBuffer(Arc<Parts>);

struct Parts {
    memory: Arc<CudaMemory>,
    device: DevicePointer,
    host: NonNull<u8>,
    size: usize,
}

// SAFETY: addresses of memory that `Parts` alone gives back, used by one launch at a time.
unsafe impl Send for Parts {}
// SAFETY: as above.
unsafe impl Sync for Parts {}

impl BlockBuffer {
    pub(crate) fn new(memory: &Arc<CudaMemory>, size: usize) -> Result<Self, BackendError> {
        let context = &memory.context;
        let _entered = context.enter()?;
        let make = |kind| memory.take_or_make(kind, size).map_err(|error| context.fail(error));
        let device = make(UsmKind::Device)?;
        // The device's part is of no use alone.
        let give_back = |_: &BackendError| memory.retire(Block { kind: UsmKind::Device, base: device, size });
        let host = make(UsmKind::Host).inspect_err(give_back)?;
        match NonNull::new(ptr::with_exposed_provenance_mut::<u8>(host as usize)) {
            Some(host) => Ok(Self(Arc::new(Parts { memory: memory.clone(), device, host, size }))),
            None => {
                let what = "pinned memory at address zero".to_owned();
                Err(BackendError::Unsupported { device: context.name.clone(), what })
            }
        }
    }

    /// Copies arguments of that layout to the device, before the launch. Returns their address there. The buffer was taken for them.
    pub(crate) fn fill(
        &self,
        arguments: &ArgumentBlock,
        layout: ParameterLayout,
        emitter: &mut Emitter<'_>,
    ) -> Result<DevicePointer, DriverError> {
        let Parts { device, host, size, .. } = *self.0;
        let address = device.next_multiple_of(layout.align as u64);
        assert!(address - device + layout.size as u64 <= size as u64, "the buffer was taken for these arguments");
        // SAFETY: as many bytes as the block has, which was compared with the layout when the command was accepted. Nothing else uses the pinned memory,
        // which is as large as the device's.
        unsafe { host.as_ptr().copy_from_nonoverlapping(arguments.as_ptr(), layout.size) };
        let source = host.as_ptr() as DevicePointer;
        // SAFETY: both have so many bytes, and belong to this launch, whose task keeps them.
        emitter.call(|driver, stream| unsafe { driver.memcpy_async(address, source, layout.size, stream) })?;
        Ok(address)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // A lost device may read still.
        if self.memory.context.is_foreign() || self.memory.context.is_lost() {
            return;
        }
        // Tasks keep their buffer until they have ended.
        let (size, host) = (self.size, self.host.as_ptr() as DevicePointer);
        self.memory.retire(Block { kind: UsmKind::Device, base: self.device, size });
        self.memory.retire(Block { kind: UsmKind::Host, base: host, size });
    }
}
