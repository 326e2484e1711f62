//! The panic records of launches: pinned memory that kernels write and the host reads.
//!
//! Invariants: a slot belongs to one launch at a time; a slot in the pool has the state `FREE`. A record's content is never trusted.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_backend::driver;
use oxisycl_types::PanicRecord;
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::DriverError;
use crate::sys::HOST_ALLOC_PORTABLE_MAPPED;

/// Records in the first chunk, which is made with the device; the next ones are as large as all before. They are made by the launch that
/// finds no record, with its stream's lock held. That is rare, twice for the 8192 commands that the runtime submits ahead, and the driver
/// neither waits for running kernels meanwhile nor keeps others from launching (measured, see `benches/results`).
const FIRST_CHUNK: usize = 2048;

/// How many records are taken from the pool at once.
const AT_ONCE: usize = 64;

/// A record of one launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot(NonNull<PanicRecord>);

// SAFETY: the address of pinned memory of the pool, used by one launch at a time.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// The slot with that address, which came from `address`; `None` for 0.
    pub(crate) fn at(address: u64) -> Option<Self> {
        NonNull::new(std::ptr::with_exposed_provenance_mut::<PanicRecord>(address as usize)).map(Self)
    }

    /// The record's address, which is the same for the host and all devices.
    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// What a work-item left, if one panicked. The launch has ended.
    pub(crate) fn take_report(self) -> Option<PanicRecord> {
        // SAFETY: the slot is a live record of this launch (invariant of the pool).
        unsafe { driver::take_report(self.0) }
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

struct Chunk(*mut c_void);

// SAFETY: the address of pinned memory, freed by the pool alone.
unsafe impl Send for Chunk {}

impl RecordPool {
    pub(crate) fn new(context: Arc<Context>) -> Result<Self, DriverError> {
        let pool = Self { context, state: Mutex::default() };
        pool.grow(&mut pool.state.lock())?;
        Ok(pool)
    }

    /// Adds a few free records to `slots`. The context is current.
    pub(crate) fn take(&self, slots: &mut Vec<Slot>) -> Result<(), DriverError> {
        let mut state = self.state.lock();
        if state.free.is_empty() {
            self.grow(&mut state)?;
        }
        let first = state.free.len().saturating_sub(AT_ONCE);
        slots.extend(state.free.drain(first..));
        Ok(())
    }

    /// Takes records back, whose reports were taken.
    pub(crate) fn give_back(&self, slots: &[Slot]) {
        if !slots.is_empty() && !self.context.is_foreign() {
            self.state.lock().free.extend_from_slice(slots);
        }
    }

    fn grow(&self, state: &mut State) -> Result<(), DriverError> {
        let n = state.n_slots.max(FIRST_CHUNK);
        let mut pointer = ptr::null_mut();
        let size = n * size_of::<PanicRecord>();
        // SAFETY: the caller has made the context current.
        unsafe { self.context.driver.mem_host_alloc(&raw mut pointer, size, HOST_ALLOC_PORTABLE_MAPPED) }?;
        let Some(first) = NonNull::new(pointer.cast::<PanicRecord>()) else { return Ok(()) };
        state.chunks.push(Chunk(pointer));
        state.n_slots += n;
        for index in (0..n).rev() {
            // SAFETY: within the chunk of `n` records that was allocated above, at page alignment; nobody else has it.
            let slot = unsafe {
                let record = first.add(index);
                record.write(PanicRecord::EMPTY);
                Slot(record)
            };
            state.free.push(slot);
        }
        Ok(())
    }
}

impl Drop for RecordPool {
    fn drop(&mut self) {
        if self.context.is_foreign() {
            return;
        }
        if let Ok(_entered) = self.context.enter_anyway() {
            for Chunk(pointer) in self.state.get_mut().chunks.drain(..) {
                // SAFETY: allocated by `grow`; launches hold the pool until they have ended.
                let _ = unsafe { self.context.driver.mem_free_host(pointer) };
            }
        }
    }
}
