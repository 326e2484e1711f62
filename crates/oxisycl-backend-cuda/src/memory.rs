//! Memory of a device, of the host as devices see it, and memory that moves between the two.

use std::alloc::Layout;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_backend::{BackendError, Memory, MemoryId, UsmKind};
use parking_lot::Mutex;

use crate::context::Context;
use crate::device_state::DeviceState;
use crate::error::DriverError;
use crate::retired::Block;
use crate::sys::{DevicePointer, HOST_ALLOC_PORTABLE_MAPPED, MEM_ATTACH_GLOBAL, code};

/// What every allocation of the driver is aligned to, in bytes.
const ALIGNMENT: usize = 256;

pub(crate) struct CudaMemory {
    core: Arc<DeviceState>,
    has_managed: bool,
    /// Where allocations begin that were made larger for the sake of their alignment.
    bases: Mutex<HashMap<usize, DevicePointer>>,
}

impl CudaMemory {
    pub(crate) fn new(core: Arc<DeviceState>, has_managed: bool) -> Self {
        Self { core, has_managed, bases: Mutex::default() }
    }

    fn zero(&self, kind: UsmKind, pointer: NonNull<u8>, size: usize) -> Result<(), DriverError> {
        if kind == UsmKind::Host {
            // SAFETY: fresh memory of the host of at least that size.
            unsafe { pointer.write_bytes(0, size) };
            return Ok(());
        }
        let (driver, stream) = (&self.core.context.driver, self.core.utility);
        // SAFETY: fresh memory of at least that size; the context is current.
        unsafe {
            driver.memset_d8_async(pointer.as_ptr() as DevicePointer, 0, size, stream)?;
            driver.stream_synchronize(stream)
        }
    }

    fn available(&self) -> Option<usize> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers; the context is current.
        let asked = unsafe { self.core.context.driver.mem_get_info(&raw mut free, &raw mut total) };
        asked.ok().map(|()| free + self.core.retired.device_bytes())
    }
}

/// A retired block, or a new one. The context is current.
pub(crate) fn take_or_make(core: &DeviceState, kind: UsmKind, size: usize) -> Result<DevicePointer, DriverError> {
    if let Some(block) = core.retired.take(kind, size) {
        return Ok(block.base);
    }
    core.with_memory_freed(|| make(&core.context, kind, size))
}

/// Allocates from the driver. The context is current.
fn make(context: &Context, kind: UsmKind, size: usize) -> Result<DevicePointer, DriverError> {
    let driver = &context.driver;
    let mut pointer: DevicePointer = 0;
    let mut host: *mut c_void = ptr::null_mut();
    // SAFETY: the context is current, the size is not zero, and each call writes one address.
    unsafe {
        match kind {
            UsmKind::Device => driver.mem_alloc(&raw mut pointer, size)?,
            UsmKind::Shared => driver.mem_alloc_managed(&raw mut pointer, size, MEM_ATTACH_GLOBAL)?,
            UsmKind::Host => {
                driver.mem_host_alloc(&raw mut host, size, HOST_ALLOC_PORTABLE_MAPPED)?;
                pointer = host as DevicePointer;
            }
        }
    }
    Ok(pointer)
}

/// Gives an allocation back to the driver, which waits for running kernels.
///
/// # Safety
/// It was allocated by `context`'s driver with that kind, and nothing uses it. The context is current.
pub(crate) unsafe fn give(context: &Context, block: Block) {
    let driver = &context.driver;
    // SAFETY: by the contract of this function. An error means that the device is lost or the process ends, and the memory with it.
    let _ = unsafe {
        match block.kind {
            UsmKind::Device | UsmKind::Shared => driver.mem_free(block.base),
            UsmKind::Host => driver.mem_free_host(block.base as *mut c_void),
        }
    };
}

// SAFETY: allocations of the driver, in the device's context, which clears or has filled them.
unsafe impl Memory for CudaMemory {
    fn id(&self) -> MemoryId {
        self.core.context.memory
    }

    fn allocate(&self, kind: UsmKind, layout: Layout, zeroed: bool) -> Result<NonNull<u8>, BackendError> {
        let context = &self.core.context;
        let _entered = context.enter()?;
        if kind == UsmKind::Shared && !self.has_managed {
            return Err(BackendError::UnsupportedUsm { device: context.name.clone(), kind });
        }
        let out_of_memory = || BackendError::OutOfMemory {
            device: context.name.clone(),
            requested: layout.size(),
            available: if kind == UsmKind::Host { None } else { self.available() },
        };
        let extra = if layout.align() > ALIGNMENT { layout.align() } else { 0 };
        let size = layout.size().checked_add(extra).ok_or_else(out_of_memory)?;
        let base = take_or_make(&self.core, kind, size).map_err(|error| match error.code {
            code::OUT_OF_MEMORY => out_of_memory(),
            _ => context.fail(error),
        })?;
        let address = (base as usize).next_multiple_of(layout.align());
        let pointer = NonNull::new(ptr::with_exposed_provenance_mut::<u8>(address)).ok_or_else(out_of_memory)?;
        if zeroed && let Err(error) = self.zero(kind, pointer, layout.size()) {
            // SAFETY: allocated above, and known to nobody; the driver waits for what may still zero it.
            unsafe { give(context, Block { kind, base, size }) };
            return Err(context.fail(error));
        }
        if address != base as usize {
            self.bases.lock().insert(address, base);
        }
        Ok(pointer)
    }

    unsafe fn free(&self, pointer: NonNull<u8>, kind: UsmKind, layout: Layout) {
        let context = &self.core.context;
        if context.is_foreign() {
            return;
        }
        let address = pointer.as_ptr() as usize;
        let moved = if layout.align() > ALIGNMENT { self.bases.lock().remove(&address) } else { None };
        let extra = if layout.align() > ALIGNMENT { layout.align() } else { 0 };
        let base = moved.unwrap_or(address as DevicePointer);
        // By the caller's promise it came from `allocate`, which made it with this size, at this address or the one remembered.
        self.core.retire(Block { kind, base, size: layout.size() + extra });
    }

    fn is_host_accessible(&self) -> bool {
        false
    }
}
