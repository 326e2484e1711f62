//! The memories of recording devices, and carrying out commands in them. The only unsafe code of the recording backend.
//!
//! Memory is ordinary memory of the process, so that pointers are valid. [`Allocations`] lists what is allocated. A command's access to an
//! address that it has no right to is found before the address is used. Memory that is freed too early is reported.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_types::HostChunk;

use super::shared::{Shared, lock};
use oxisycl_backend::{
    BackendError, Command, CopyCommand, FailureKind, FillCommand, KernelCommand, Memory, MemoryId, Operation,
    PitchedBox, UsmKind,
};

/// What fresh memory holds that was not asked for zeroed.
const FRESH: u8 = 0xA5;

/// One live allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allocation {
    pub(super) size: usize,
    pub(super) memory: MemoryId,
}

/// The live allocations of a backend by address.
#[derive(Debug, Default)]
pub(super) struct Allocations(BTreeMap<usize, Allocation>);

impl Allocations {
    /// The allocation that holds an address, and its first byte.
    pub(super) fn find(&self, address: usize) -> Option<(usize, Allocation)> {
        let (base, allocation) = self.0.range(..=address).next_back()?;
        (address - base < allocation.size).then_some((*base, *allocation))
    }

    /// Number of allocations in a memory.
    pub(super) fn count(&self, memory: MemoryId) -> usize {
        self.0.values().filter(|allocation| allocation.memory == memory).count()
    }

    /// Says what is wrong with a box in a memory. Of the host's memory nothing is known.
    pub(super) fn check(&self, pitched: &PitchedBox, extent: [usize; 3]) -> Result<(), String> {
        let size = span(pitched, extent);
        if pitched.memory == MemoryId::HOST || size == 0 {
            return Ok(());
        }
        let address = pitched.pointer as usize;
        match self.find(address) {
            Some((base, allocation))
                if allocation.memory == pitched.memory && address + size <= base + allocation.size =>
            {
                Ok(())
            }
            found => Err(format!(
                "{size} bytes at {address:#x} are not in an allocation of memory {} (found: {found:?})",
                pitched.memory.number()
            )),
        }
    }
}

/// Bytes from the first to one past the last of a box.
pub(super) fn span(pitched: &PitchedBox, extent: [usize; 3]) -> usize {
    if extent.contains(&0) {
        return 0;
    }
    (extent[0] - 1) * pitched.slice_pitch + (extent[1] - 1) * pitched.row_pitch + extent[2]
}

pub(super) struct RecordingMemory {
    id: MemoryId,
    device_name: String,
    shared: Arc<Shared>,
}

impl RecordingMemory {
    pub(super) fn new(id: MemoryId, device_name: String, shared: Arc<Shared>) -> Self {
        Self { id, device_name, shared }
    }
}

// SAFETY: blocks of the host's allocator, filled; they are never handed out again before they were freed.
unsafe impl Memory for RecordingMemory {
    fn allocate(&self, kind: UsmKind, layout: Layout, zeroed: bool) -> Result<NonNull<u8>, BackendError> {
        if let Some(count) = self.shared.refuses_allocation() {
            let (device, operation) = (self.device_name.clone(), Operation::Allocate);
            return Err(BackendError::InjectedFault { device, operation, count });
        }
        if layout.size() == 0 {
            return Err(BackendError::Unsupported {
                device: self.device_name.clone(),
                what: "empty allocations".to_owned(),
            });
        }
        // SAFETY: the size is not zero, see above.
        let pointer = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(|| BackendError::OutOfMemory {
            device: self.device_name.clone(),
            requested: layout.size(),
            available: None,
        })?;
        if !zeroed {
            // SAFETY: just allocated with this size, and known to no other code.
            unsafe { ptr::write_bytes(pointer.as_ptr(), FRESH, layout.size()) };
        }
        let memory = if kind == UsmKind::Device { self.id } else { MemoryId::HOST };
        let allocation = Allocation { size: layout.size(), memory };
        lock(&self.shared.allocations).0.insert(pointer.as_ptr() as usize, allocation);
        Ok(pointer)
    }

    unsafe fn free(&self, pointer: NonNull<u8>, _kind: UsmKind, layout: Layout) {
        let base = pointer.as_ptr() as usize;
        self.shared.note_free(base, layout.size());
        lock(&self.shared.allocations).0.remove(&base);
        // SAFETY: the caller promises that it came from `allocate` with this layout, and is not used any more.
        unsafe { dealloc(pointer.as_ptr(), layout) };
    }
}

/// Carries out a command whose rectangles were checked.
///
/// # Safety
/// The promises that `Queue::issue` demands for the command hold.
pub(super) unsafe fn carry_out(command: &Command) -> Result<(), FailureKind> {
    match command {
        // SAFETY: the caller's promise.
        Command::Kernel(kernel) => return unsafe { run(kernel) },
        // SAFETY: as above.
        Command::Copy(copy) => unsafe { copy_box(copy) },
        // SAFETY: as above.
        Command::Fill(fill) => unsafe { fill_box(fill) },
        Command::Marker | Command::Prefetch { .. } | Command::Advise { .. } => {}
        Command::Native(_) => {
            let error =
                BackendError::Unsupported { device: "recording".to_owned(), what: "native commands".to_owned() };
            return Err(FailureKind::Device(error));
        }
    }
    Ok(())
}

/// # Safety
/// The argument block belongs to the descriptor's entry, and its accessors are valid.
unsafe fn run(kernel: &KernelCommand) -> Result<(), FailureKind> {
    let chunk = HostChunk::new(0, kernel.range.size());
    // SAFETY: the caller's promise; the chunk is the whole launch.
    let ended = catch_unwind(AssertUnwindSafe(|| unsafe { kernel.run(&chunk) }));
    ended.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        FailureKind::Panic { message, location: None, item: Some((kernel.range.dimensions, chunk.item.get())) }
    })
}

fn row(pitched: &PitchedBox, slice: usize, row: usize) -> *mut u8 {
    pitched.pointer.wrapping_add(slice * pitched.slice_pitch + row * pitched.row_pitch)
}

/// # Safety
/// Both boxes are valid and do not overlap, and no other code uses the target meanwhile.
unsafe fn copy_box(copy: &CopyCommand) {
    let [slices, rows, bytes] = copy.extent;
    for (slice, line) in (0..slices).flat_map(|slice| (0..rows).map(move |line| (slice, line))) {
        let (source, target) = (row(&copy.source, slice, line), row(&copy.target, slice, line));
        // SAFETY: row `line` of slice `slice` of boxes that are valid by the caller's promise.
        unsafe { ptr::copy_nonoverlapping(source, target, bytes) };
    }
}

/// # Safety
/// The box is valid, and no other code uses it meanwhile.
unsafe fn fill_box(fill: &FillCommand) {
    let [slices, rows, elements] = fill.extent;
    let pattern = &fill.pattern;
    for (slice, line) in (0..slices).flat_map(|slice| (0..rows).map(move |line| (slice, line))) {
        for element in 0..elements {
            let target = row(&fill.target, slice, line).wrapping_add(element * pattern.len());
            // SAFETY: an element of row `line` of slice `slice` of a box that is valid by the caller's promise.
            unsafe { ptr::copy_nonoverlapping(pattern.as_ptr(), target, pattern.len()) };
        }
    }
}
