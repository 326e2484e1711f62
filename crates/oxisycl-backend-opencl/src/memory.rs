//! Memory of a device, of the host as devices see it, and memory that moves between the two.

use std::alloc::Layout;
use std::collections::HashMap;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_backend::{BackendError, Memory, UsmKind};
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::{Result, check};
use crate::sharing::ALIGNMENT;

/// Bytes of a huge page, on systems that have them.
const HUGE_PAGE: usize = 2 << 20;

pub(crate) struct ClMemory {
    context: Arc<Context>,
    /// Whether the device's allocations are memory of the host.
    is_host_memory: bool,
    /// The beginning of allocations that were made larger because of their alignment.
    bases: Mutex<HashMap<usize, NonNullAddress>>,
}

/// The first byte of an allocation.
#[derive(Clone, Copy)]
struct NonNullAddress(NonNull<u8>);

// SAFETY: an address that is only given back to the driver.
unsafe impl Send for NonNullAddress {}

impl ClMemory {
    pub(crate) fn new(context: Arc<Context>, is_host_memory: bool) -> Self {
        Self { context, is_host_memory, bases: Mutex::default() }
    }

    /// The alignment of an allocation.
    ///
    /// On processors large ones begin with a large page. The room for that also keeps arrays whose sizes are powers of two from lying at such
    /// distances (the quirk `equal-distances`). Adding two of 128 MiB takes 9.4 ms side by side and 7.4 ms with 2 MiB between.
    fn alignment(&self, kind: UsmKind, layout: Layout) -> usize {
        let is_wanted = self.is_host_memory && self.context.quirks.equal_distances;
        let is_large = is_wanted && kind == UsmKind::Device && layout.size() >= HUGE_PAGE;
        if is_large { layout.align().max(HUGE_PAGE) } else { layout.align() }
    }

    fn zero(&self, kind: UsmKind, pointer: NonNull<u8>, size: usize) -> Result<()> {
        if kind != UsmKind::Device || self.is_host_memory {
            // SAFETY: fresh memory of at least that size, which the host reaches and no kernel knows.
            unsafe { pointer.write_bytes(0, size) };
            return Ok(());
        }
        let (context, functions) = (&self.context, &self.context.functions);
        let properties = [0];
        let queue = context.queues.take(functions, (context.raw, context.device), &properties)?;
        let zero = 0u8;
        // SAFETY: fresh memory of at least that size; the pattern is copied by the call; the queue is live.
        let result = unsafe {
            let (pattern, none) = ((&raw const zero).cast(), ptr::null_mut());
            let (set, name) = (context.sharing.fill, context.sharing.fill_name);
            check(name, set(queue.0, pointer.as_ptr().cast(), pattern, 1, size, 0, ptr::null(), none))
                .and_then(|()| check("clFinish", (functions.clFinish)(queue.0)))
        };
        match result {
            Ok(()) => context.queues.give_back(properties.to_vec(), queue),
            Err(_) => context.queues.retire(queue),
        }
        result
    }
}

// SAFETY: allocations of the driver, in the device's context.
unsafe impl Memory for ClMemory {
    fn allocate(&self, kind: UsmKind, layout: Layout, zeroed: bool) -> Result<NonNull<u8>, BackendError> {
        let context = &self.context;
        context.check_alive()?;
        if !context.sharing.has(kind) {
            return Err(BackendError::UnsupportedUsm { device: context.name.clone(), kind });
        }
        let out_of_memory =
            || BackendError::OutOfMemory { device: context.name.clone(), requested: layout.size(), available: None };
        let alignment = self.alignment(kind, layout);
        let extra = if alignment > ALIGNMENT { alignment } else { 0 };
        let size = layout.size().checked_add(extra).ok_or_else(out_of_memory)?;
        let base = context.allocate(kind, size, alignment.min(ALIGNMENT)).map_err(|error| match error {
            BackendError::OutOfMemory { .. } => out_of_memory(),
            other => other,
        })?;
        let pointer = match base.as_ptr().align_offset(alignment) {
            0 => base,
            // SAFETY: less than the alignment, by which the allocation is larger.
            offset => unsafe { base.add(offset) },
        };
        if self.is_host_memory && kind == UsmKind::Device {
            advise_huge_pages(pointer, layout.size());
        }
        if zeroed && let Err(error) = self.zero(kind, pointer, layout.size()) {
            // SAFETY: allocated above, and known to no other code; the driver has refused to zero it.
            unsafe { context.free(base) };
            return Err(context.fail(error));
        }
        if pointer != base {
            self.bases.lock().insert(pointer.as_ptr() as usize, NonNullAddress(base));
        }
        Ok(pointer)
    }

    unsafe fn free(&self, pointer: NonNull<u8>, kind: UsmKind, layout: Layout) {
        let context = &self.context;
        // What a lost device may use still is not given back.
        if context.is_foreign() || context.is_lost() {
            return;
        }
        let may_have_moved = self.alignment(kind, layout) > ALIGNMENT;
        let moved = if may_have_moved { self.bases.lock().remove(&(pointer.as_ptr() as usize)) } else { None };
        let base = moved.map_or(pointer, |base| base.0);
        // SAFETY: by the caller's promise it came from `allocate`, at this address or the one remembered; no command uses it.
        unsafe { context.free(base) };
    }
}

/// Asks the system for huge pages, as for memory of the host device, since kernels usually read and write all of a buffer.
#[cfg(target_os = "linux")]
fn advise_huge_pages(pointer: NonNull<u8>, size: usize) {
    let head = pointer.as_ptr().align_offset(HUGE_PAGE);
    let Some(length) = size.checked_sub(head).map(|rest| rest / HUGE_PAGE * HUGE_PAGE).filter(|length| *length > 0)
    else {
        return;
    };
    // SAFETY: whole pages within an allocation that is the caller's, none of which changes: without the hint the memory works as well.
    unsafe { libc::madvise(pointer.as_ptr().add(head).cast(), length, libc::MADV_HUGEPAGE) };
}

/// Does nothing: on other systems the page size is left to the system.
#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_pointer: NonNull<u8>, _size: usize) {}
