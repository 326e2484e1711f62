//! The panic records of launches: memory that kernels write and the host reads.
//!
//! Where kernels reach memory of the host with atomic operations, a record is there. Elsewhere it is in memory of the device, and copied
//! before and after each launch that may panic.

use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_backend::{BackendError, UsmKind};
use oxisycl_types::PanicRecord;

use crate::context::Context;
use crate::emitter::Emitter;
use crate::error::Result;
use crate::transfer::copy_row;

/// A record before a launch, where it has to be copied to the device.
static EMPTY: PanicRecord = PanicRecord::EMPTY;

/// The panic record of one launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The address for the host.
    pub(crate) host: NonNull<PanicRecord>,
    /// The address for kernels: the same one, or device memory.
    device: NonNull<PanicRecord>,
}

// SAFETY: addresses of memory of the pool, used by one launch at a time.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// The record's address for kernels.
    pub(crate) fn address(self) -> u64 {
        self.device.as_ptr().expose_provenance() as u64
    }

    /// Whether the record is copied to the host after the launch.
    pub(crate) fn is_copied(self) -> bool {
        self.host != self.device
    }

    /// Empties the record on the device, before the launch.
    pub(crate) fn clear(self, emitter: &mut Emitter<'_>) -> Result<()> {
        if !self.is_copied() {
            return Ok(());
        }
        let source = (&raw const EMPTY).cast();
        // SAFETY: the record belongs to this launch; the source is never changed.
        unsafe { copy_row(emitter, source, self.device.as_ptr().cast(), size_of::<PanicRecord>()) }
    }

    /// Copies the record to the host, after the launch.
    pub(crate) fn fetch(self, emitter: &mut Emitter<'_>) -> Result<()> {
        if !self.is_copied() {
            return Ok(());
        }
        let target = self.host.as_ptr().cast();
        // SAFETY: both records belong to this launch.
        unsafe { copy_row(emitter, self.device.as_ptr().cast(), target, size_of::<PanicRecord>()) }
    }
}

/// The memory of some records.
pub(crate) struct RecordMemory {
    context: Arc<Context>,
    /// The records' memory, allocated by the context.
    shared: NonNull<u8>,
    /// The records' copy on the host, if they are in device memory.
    host: Option<NonNull<[PanicRecord]>>,
}

// SAFETY: addresses of memory that this object alone frees.
unsafe impl Send for RecordMemory {}

impl RecordMemory {
    /// Allocates `n` free records.
    pub(crate) fn new(context: &Arc<Context>, n: usize) -> Result<(Vec<Slot>, Self), BackendError> {
        let size = n * size_of::<PanicRecord>();
        let sharing = &context.sharing;
        let is_direct = sharing.has(UsmKind::Host) && sharing.has_atomics(UsmKind::Host, false);
        let kind = if is_direct { UsmKind::Host } else { UsmKind::Device };
        let shared = context.allocate(kind, size, align_of::<PanicRecord>())?;
        let device = shared.cast::<PanicRecord>();
        let host = (!is_direct).then(|| NonNull::from(Box::leak(vec![PanicRecord::EMPTY; n].into_boxed_slice())));
        let first = host.map_or(device, NonNull::cast);
        if is_direct {
            for index in 0..n {
                // SAFETY: within the chunk that was just allocated, aligned for a record; no other code has it.
                unsafe { first.add(index).write(PanicRecord::EMPTY) };
            }
        }
        // SAFETY: both sides have `n` records.
        let slot = |index: usize| unsafe { Slot { host: first.add(index), device: device.add(index) } };
        Ok(((0..n).rev().map(slot).collect(), Self { context: context.clone(), shared, host }))
    }
}

impl Drop for RecordMemory {
    fn drop(&mut self) {
        // A lost device may write still.
        if self.context.is_foreign() || self.context.is_lost() {
            return;
        }
        // SAFETY: allocated by `new`; launches hold the device, and with it the pool, until they have ended.
        unsafe { self.context.free(self.shared) };
        if let Some(host) = self.host {
            // SAFETY: leaked by `new`, and as above.
            drop(unsafe { Box::from_raw(host.as_ptr()) });
        }
    }
}
