//! Memory of a device, of the host as devices see it, and memory that moves between the two.
//!
//! Freed memory is retired (`retired.rs`). It goes back to the driver when the device is idle, when memory is exhausted, or with its owner.

use std::alloc::Layout;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_backend::driver::Worker;
use oxisycl_backend::{BackendError, Memory, UsmKind};
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::{DriverError, version_text};
use crate::peers::Peers;
use crate::quirks::Quirks;
use crate::retired::{Block, Retired};
use crate::sys::{DevicePointer, HOST_ALLOC_PORTABLE_MAPPED, MEM_ATTACH_GLOBAL, RawStream, STREAM_NON_BLOCKING, code};

/// The alignment of every allocation of the driver, in bytes.
const ALIGNMENT: usize = 256;

pub(crate) struct CudaMemory {
    pub(crate) context: Arc<Context>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) retired: Retired,
    /// A stream for work that is waited for at once: transfers that the host executes, zeroing, and the clock.
    pub(crate) utility: RawStream,
    /// Wakes the device's poller.
    bell: Arc<Worker>,
    quirks: Quirks,
    has_managed: bool,
    /// The driver's address of allocations that were made larger because of their alignment.
    bases: Mutex<HashMap<usize, DevicePointer>>,
}

impl CudaMemory {
    /// Memory of a device. The context is current.
    pub(crate) fn new(
        context: &Arc<Context>,
        peers: Arc<Peers>,
        bell: Arc<Worker>,
        has_managed: bool,
    ) -> Result<Self, DriverError> {
        let mut utility = RawStream::NULL;
        // SAFETY: the context is current.
        unsafe { context.driver.stream_create_with_priority(&raw mut utility, STREAM_NON_BLOCKING, 0) }?;
        Ok(Self {
            context: context.clone(),
            peers,
            retired: Retired::default(),
            utility,
            bell,
            quirks: Quirks::of(&version_text(context.driver.version)),
            has_managed,
            bases: Mutex::default(),
        })
    }

    /// Takes a retired block of that size, or allocates a new one. The context is current.
    pub(crate) fn take_or_make(&self, kind: UsmKind, size: usize) -> Result<DevicePointer, DriverError> {
        if let Some(block) = self.retired.take(kind, size) {
            return Ok(block.base);
        }
        make(&self.context, kind, size).or_else(|error| {
            if error.code != code::OUT_OF_MEMORY {
                return Err(error);
            }
            self.free_retired();
            self.retired.wait_until_freed();
            make(&self.context, kind, size)
        })
    }

    /// Retires an unused block. Waits for running kernels only if too much memory is retired already.
    pub(crate) fn retire(&self, block: Block) {
        if !self.quirks.waiting_free {
            return self.free_block(block);
        }
        if let Err(block) = self.retired.put(block) {
            return self.free_block(block);
        }
        if self.bell.is_running() {
            self.bell.ring();
        } else {
            // No queue was made, and no kernel runs.
            self.free_retired();
        }
    }

    /// Frees all retired blocks, also while kernels run.
    pub(crate) fn free_retired(&self) {
        while let Some(block) = self.retired.take_any() {
            self.free_block(block);
        }
    }

    /// Frees retired blocks as long as `is_idle` returns true.
    pub(crate) fn free_retired_while(&self, is_idle: impl Fn() -> bool) {
        self.retired.free_while(is_idle, |block| self.free_block(block));
    }

    /// Returns a block to the driver, which waits for running kernels.
    fn free_block(&self, block: Block) {
        let Ok(_entered) = self.context.enter_anyway() else { return };
        let driver = &self.context.driver;
        // SAFETY: `make` allocated the block with that kind, nothing uses it, and this call alone has it. An error means that the device is lost or
        // the process ends, and the memory with it.
        let _ = unsafe {
            match block.kind {
                UsmKind::Device | UsmKind::Shared => driver.mem_free(block.base),
                UsmKind::Host => driver.mem_free_host(block.base as *mut c_void),
            }
        };
    }

    fn zero(&self, kind: UsmKind, pointer: NonNull<u8>, size: usize) -> Result<(), DriverError> {
        if kind == UsmKind::Host {
            // SAFETY: fresh memory of the host of at least that size.
            unsafe { pointer.write_bytes(0, size) };
            return Ok(());
        }
        let (driver, stream) = (&self.context.driver, self.utility);
        // SAFETY: fresh memory of at least that size; the context is current.
        unsafe {
            driver.memset_d8_async(pointer.as_ptr() as DevicePointer, 0, size, stream)?;
            driver.stream_synchronize(stream)
        }
    }

    fn available(&self) -> Option<usize> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers; the context is current.
        let asked = unsafe { self.context.driver.mem_get_info(&raw mut free, &raw mut total) };
        asked.ok().map(|()| free + self.retired.device_bytes())
    }
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

// SAFETY: allocations of the driver, in the device's context, which clears or has filled them.
unsafe impl Memory for CudaMemory {
    fn allocate(&self, kind: UsmKind, layout: Layout, zeroed: bool) -> Result<NonNull<u8>, BackendError> {
        let context = &self.context;
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
        let base = self.take_or_make(kind, size).map_err(|error| match error.code {
            code::OUT_OF_MEMORY => out_of_memory(),
            _ => context.fail(error),
        })?;
        let address = (base as usize).next_multiple_of(layout.align());
        let pointer = NonNull::new(ptr::with_exposed_provenance_mut::<u8>(address)).ok_or_else(out_of_memory)?;
        if zeroed && let Err(error) = self.zero(kind, pointer, layout.size()) {
            // The driver waits for what may still zero it.
            self.free_block(Block { kind, base, size });
            return Err(context.fail(error));
        }
        if address != base as usize {
            self.bases.lock().insert(address, base);
        }
        Ok(pointer)
    }

    unsafe fn free(&self, pointer: NonNull<u8>, kind: UsmKind, layout: Layout) {
        let context = &self.context;
        if context.is_foreign() {
            return;
        }
        let address = pointer.as_ptr() as usize;
        let moved = if layout.align() > ALIGNMENT { self.bases.lock().remove(&address) } else { None };
        let extra = if layout.align() > ALIGNMENT { layout.align() } else { 0 };
        let base = moved.unwrap_or(address as DevicePointer);
        // By the caller's promise it came from `allocate`, which made it with this size, at this address or the one remembered.
        self.retire(Block { kind, base, size: layout.size() + extra });
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        // In a forked child the locks may be held for ever.
        if self.context.is_foreign() {
            return;
        }
        self.free_retired();
        if let Ok(_entered) = self.context.enter_anyway() {
            // SAFETY: made by `new`; each user waits for its own work on it.
            let _ = unsafe { self.context.driver.stream_destroy(self.utility) };
        }
    }
}
