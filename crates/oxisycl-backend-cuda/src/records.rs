//! The panic records of launches: pinned memory that kernels write and the host reads.
//!
//! The first ones are made with the device. Later ones are made by the launch that finds none. That is rare: twice for the 8192 commands
//! that the runtime submits ahead. The driver neither waits for running kernels meanwhile nor keeps others from launching (measured, see
//! `benches/results`).

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_types::PanicRecord;

use crate::context::Context;
use crate::error::DriverError;
use crate::sys::HOST_ALLOC_PORTABLE_MAPPED;

/// The panic record of one launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot(pub(crate) NonNull<PanicRecord>);

// SAFETY: the address of pinned memory of the pool, used by one launch at a time.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// The record's address, which is the same for the host and all devices.
    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }
}

/// The memory of some records.
pub(crate) struct RecordMemory {
    context: Arc<Context>,
    pointer: *mut c_void,
}

// SAFETY: the address of pinned memory, which is freed by this object alone.
unsafe impl Send for RecordMemory {}

impl RecordMemory {
    /// Allocates `n` free records. The context is current.
    pub(crate) fn new(context: &Arc<Context>, n: usize) -> Result<(Vec<Slot>, Self), DriverError> {
        let mut pointer = ptr::null_mut();
        let size = n * size_of::<PanicRecord>();
        // SAFETY: the caller has made the context current.
        unsafe { context.driver.mem_host_alloc(&raw mut pointer, size, HOST_ALLOC_PORTABLE_MAPPED) }?;
        let memory = Self { context: context.clone(), pointer };
        let Some(first) = NonNull::new(pointer.cast::<PanicRecord>()) else { return Ok((Vec::new(), memory)) };
        let slot = |index| {
            // SAFETY: within the chunk of `n` records that was allocated above, at page alignment; nothing else has it.
            unsafe {
                let record = first.add(index);
                record.write(PanicRecord::EMPTY);
                Slot(record)
            }
        };
        Ok(((0..n).rev().map(slot).collect(), memory))
    }
}

impl Drop for RecordMemory {
    fn drop(&mut self) {
        if self.context.is_foreign() {
            return;
        }
        if let Ok(_entered) = self.context.enter_anyway() {
            // SAFETY: allocated by `new`; launches hold the device, and with it the pool, until they have ended.
            let _ = unsafe { self.context.driver.mem_free_host(self.pointer) };
        }
    }
}
