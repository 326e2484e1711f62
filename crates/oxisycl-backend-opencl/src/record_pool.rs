//! The panic records of launches: memory that kernels write and the host reads.
//!
//! Where kernels reach memory of the host with atomic operations, a record is there. Elsewhere it is in memory of the device, and copied
//! before and after each launch that may panic.
//!
//! Invariants: a slot belongs to one launch at a time; the host's side of a slot in the pool has the state `FREE`. A record's content is never
//! trusted: it is copied out as plain numbers, and whoever reads it checks them.

use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_backend::{BackendError, UsmKind, driver};
use oxisycl_types::PanicRecord;
use parking_lot::Mutex;

use crate::context::Context;
use crate::emitter::Emitter;
use crate::error::Result;
use crate::transfer::copy_row;

/// Records in the first chunk; the next ones are as large as all before.
const FIRST_CHUNK: usize = 64;

/// What a record is before a launch, where it has to be copied to the device.
static EMPTY: PanicRecord = PanicRecord::EMPTY;

/// A record of one launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Where the host reads it.
    host: NonNull<PanicRecord>,
    /// Where kernels write it: the same place, or memory of the device.
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

    /// What a work-item left, if one panicked. The launch has ended.
    pub(crate) fn take_report(self) -> Option<PanicRecord> {
        // SAFETY: the slot is a live record of this launch (invariant of the pool).
        unsafe { driver::take_report(self.host) }
    }
}

pub(crate) struct RecordPool {
    context: Arc<Context>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    free: Vec<Slot>,
    chunks: Vec<Chunk>,
    n_slots: usize,
}

/// Where the records of some slots are.
struct Chunk {
    /// Allocated by the context.
    shared: NonNull<u8>,
    /// The host's side, where that is another place.
    host: Option<NonNull<[PanicRecord]>>,
}

// SAFETY: addresses of memory that the pool alone frees.
unsafe impl Send for Chunk {}

impl RecordPool {
    /// An empty pool: nothing is allocated before the first launch that may panic.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, state: Mutex::default() }
    }

    /// A free record.
    pub(crate) fn take(&self) -> Result<Slot, BackendError> {
        let mut state = self.state.lock();
        if let Some(slot) = state.free.pop() {
            return Ok(slot);
        }
        self.grow(&mut state)
    }

    /// Takes a record back, whose report was taken, or whose launch was refused.
    pub(crate) fn give_back(&self, slot: Slot) {
        if !self.context.is_foreign() {
            self.state.lock().free.push(slot);
        }
    }

    /// Makes records, and keeps all but one.
    fn grow(&self, state: &mut State) -> Result<Slot, BackendError> {
        let n = state.n_slots.max(FIRST_CHUNK);
        let size = n * size_of::<PanicRecord>();
        let sharing = &self.context.sharing;
        let is_direct = sharing.has(UsmKind::Host) && sharing.has_atomics(UsmKind::Host, false);
        let kind = if is_direct { UsmKind::Host } else { UsmKind::Device };
        let shared = self.context.allocate(kind, size, align_of::<PanicRecord>())?;
        let device = shared.cast::<PanicRecord>();
        let host = (!is_direct).then(|| NonNull::from(Box::leak(vec![PanicRecord::EMPTY; n].into_boxed_slice())));
        let first = host.map_or(device, NonNull::cast);
        if is_direct {
            for index in 0..n {
                // SAFETY: within the chunk that was just allocated, aligned for a record; nobody else has it.
                unsafe { first.add(index).write(PanicRecord::EMPTY) };
            }
        }
        state.chunks.push(Chunk { shared, host });
        state.n_slots += n;
        // SAFETY: both sides have `n` records.
        let slot = |index: usize| unsafe { Slot { host: first.add(index), device: device.add(index) } };
        state.free.extend((1..n).rev().map(slot));
        Ok(slot(0))
    }
}

impl Drop for RecordPool {
    fn drop(&mut self) {
        // A lost device may write still.
        if self.context.is_foreign() || self.context.is_lost() {
            return;
        }
        for Chunk { shared, host } in self.state.get_mut().chunks.drain(..) {
            // SAFETY: allocated by `grow`; launches hold the pool until they have ended.
            unsafe { self.context.free(shared) };
            if let Some(host) = host {
                // SAFETY: leaked by `grow`, and as above.
                drop(unsafe { Box::from_raw(host.as_ptr()) });
            }
        }
    }
}
