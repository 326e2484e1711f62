//! Host memory.
//!
//! All kinds of allocations are ordinary memory of the process, zeroed, and aligned to at least a cache line. Large ones come straight
//! from the operating system, which zeroes pages when they are first touched, and ask for huge pages. Owns no memory: who allocates
//! frees.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use oxisycl_backend::{BackendError, Memory, UsmKind};

/// Least alignment of an allocation, in bytes: a cache line, and the widest vector.
pub(crate) const MIN_ALIGN: usize = 64;

/// The memory of the host device, and of all its sub-devices.
pub(crate) struct HostMemory {
    device_name: String,
}

impl HostMemory {
    pub(crate) fn new(device_name: String) -> Self {
        Self { device_name }
    }
}

// SAFETY: blocks of the host's allocator, zeroed.
unsafe impl Memory for HostMemory {
    fn allocate(&self, _kind: UsmKind, layout: Layout, _zeroed: bool) -> Result<NonNull<u8>, BackendError> {
        allocate(layout).ok_or_else(|| BackendError::OutOfMemory {
            device: self.device_name.clone(),
            requested: layout.size(),
            available: None,
        })
    }

    unsafe fn free(&self, pointer: NonNull<u8>, _kind: UsmKind, layout: Layout) {
        // SAFETY: the caller promises that the pointer came from `allocate` with this layout and is freed once.
        unsafe { free(pointer, layout) }
    }
}

/// The layout of the real allocation, or `None` if it would be too large.
fn actual(layout: Layout) -> Option<Layout> {
    Layout::from_size_align(layout.size().max(1), layout.align().max(MIN_ALIGN)).ok()
}

/// Allocates zeroed memory of at least that layout; `None` if there is no memory left.
pub(crate) fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    let layout = actual(layout)?;
    if large::takes(layout) {
        return large::allocate(layout);
    }
    // SAFETY: the size is at least one.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// Frees memory from [`allocate`].
///
/// # Safety
/// `pointer` came from [`allocate`] with the same layout, and is not used any more.
pub(crate) unsafe fn free(pointer: NonNull<u8>, layout: Layout) {
    let Some(layout) = actual(layout) else { return };
    if large::takes(layout) {
        // SAFETY: `takes` depends on the layout alone, so the allocation came from `large::allocate`.
        return unsafe { large::free(pointer, layout) };
    }
    // SAFETY: as above, from `alloc_zeroed` with this layout.
    unsafe { dealloc(pointer.as_ptr(), layout) }
}

/// Large allocations by `mmap`: lazily zeroed, whole huge pages.
#[cfg(all(target_os = "linux", not(miri)))]
mod large {
    use std::alloc::Layout;
    use std::ptr::{self, NonNull};

    const HUGE_PAGE: usize = 2 << 20;
    /// Lengths are multiples of the largest ordinary page of any processor, and so of the page in use.
    const LARGEST_PAGE: usize = 64 << 10;

    pub(super) fn takes(layout: Layout) -> bool {
        layout.size() >= HUGE_PAGE && layout.align() <= HUGE_PAGE
    }

    fn length(layout: Layout) -> Option<usize> {
        layout.size().checked_next_multiple_of(LARGEST_PAGE)
    }

    pub(super) fn allocate(layout: Layout) -> Option<NonNull<u8>> {
        let length = length(layout)?;
        let reserved = length.checked_add(HUGE_PAGE)?;
        // SAFETY: a new private mapping at an address of the system's choice touches no memory in use.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                reserved,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        let base = base.cast::<u8>();
        let head = base.align_offset(HUGE_PAGE).min(HUGE_PAGE);
        let tail = HUGE_PAGE - head;
        let start = base.wrapping_add(head);
        // SAFETY: head and tail are the ends of the mapping made above, whole pages that nothing uses; the rest stays mapped.
        unsafe {
            if head > 0 {
                libc::munmap(base.cast(), head);
            }
            if tail > 0 {
                libc::munmap(start.wrapping_add(length).cast(), tail);
            }
            // A hint: without it the memory works as well.
            libc::madvise(start.cast(), length, libc::MADV_HUGEPAGE);
        }
        NonNull::new(start)
    }

    /// # Safety
    /// `pointer` came from [`allocate`] with the same layout, and is not used any more.
    pub(super) unsafe fn free(pointer: NonNull<u8>, layout: Layout) {
        let Some(length) = length(layout) else { return };
        // SAFETY: this is the whole of the mapping that `allocate` left.
        unsafe { libc::munmap(pointer.as_ptr().cast(), length) };
    }
}

/// On other systems, Rust's allocator serves large allocations, too.
#[cfg(any(not(target_os = "linux"), miri))]
mod large {
    use std::alloc::Layout;
    use std::ptr::NonNull;

    pub(super) fn takes(_layout: Layout) -> bool {
        false
    }

    pub(super) fn allocate(_layout: Layout) -> Option<NonNull<u8>> {
        None
    }

    /// # Safety
    /// Never called, since `takes` is false.
    pub(super) unsafe fn free(_pointer: NonNull<u8>, _layout: Layout) {}
}
