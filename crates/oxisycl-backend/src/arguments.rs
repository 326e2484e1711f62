//! The bytes of a kernel's arguments, copied out of the submitting closure.
//!
//! Bytes are kept as `MaybeUninit` and are never read, compared or hashed, since a closure has padding (rule 8 of the
//! soundness rules). The kernel type is `Copy`, so nothing is ever dropped.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

const INLINE_SIZE: usize = 128;
const INLINE_ALIGN: usize = 16;

#[repr(align(16))]
struct Inline([MaybeUninit<u8>; INLINE_SIZE]);

enum Storage {
    Inline(Inline),
    Heap(NonNull<u8>),
}

/// An owned copy of one value of a kernel type, type-erased.
pub struct ArgumentBlock {
    storage: Storage,
    layout: Layout,
}

// SAFETY: the constructor takes only values that are `Send + Sync`, and the block never hands out more than their address.
unsafe impl Send for ArgumentBlock {}
// SAFETY: as above.
unsafe impl Sync for ArgumentBlock {}

impl ArgumentBlock {
    /// Copies the bytes of `kernel`.
    #[inline]
    pub fn new<K: Copy + Send + Sync>(kernel: &K) -> Self {
        let layout = Layout::new::<K>();
        let source = (&raw const *kernel).cast::<u8>();
        let mut block = if layout.size() <= INLINE_SIZE && layout.align() <= INLINE_ALIGN {
            Self { storage: Storage::Inline(Inline([MaybeUninit::uninit(); INLINE_SIZE])), layout }
        } else {
            // SAFETY: the layout is larger than INLINE_SIZE, or has an alignment above 16 and thus a size above zero: a
            // zero-sized over-aligned type is handled by the maximum below.
            let heap = Layout::from_size_align(layout.size().max(1), layout.align()).expect("layout of a real type");
            // SAFETY: `heap` has a size of at least one.
            let pointer = unsafe { alloc(heap) };
            let Some(pointer) = NonNull::new(pointer) else { handle_alloc_error(heap) };
            Self { storage: Storage::Heap(pointer), layout: heap }
        };
        // SAFETY: the destination was made above for at least `size_of::<K>()` bytes; source and destination are distinct.
        unsafe { source.copy_to_nonoverlapping(block.as_mut_ptr(), size_of::<K>()) };
        block
    }

    /// The address of the value, aligned for its type, valid until the block moves or is dropped.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        match &self.storage {
            Storage::Inline(inline) => inline.0.as_ptr().cast(),
            Storage::Heap(pointer) => pointer.as_ptr(),
        }
    }

    /// Size of the value in bytes.
    pub fn size(&self) -> usize {
        self.layout.size()
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        match &mut self.storage {
            Storage::Inline(inline) => inline.0.as_mut_ptr().cast(),
            Storage::Heap(pointer) => pointer.as_ptr(),
        }
    }
}

impl Drop for ArgumentBlock {
    fn drop(&mut self) {
        if let Storage::Heap(pointer) = self.storage {
            // SAFETY: allocated in `new` with this very layout.
            unsafe { dealloc(pointer.as_ptr(), self.layout) }
        }
    }
}

impl std::fmt::Debug for ArgumentBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArgumentBlock").field("layout", &self.layout).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Wide([u8; 64]);

    fn read_back<K: Copy + Send + Sync>(kernel: K) -> K {
        let moved = Box::new(ArgumentBlock::new(&kernel));
        // SAFETY: the block holds a value of type `K`.
        unsafe { *moved.as_ptr().cast::<K>() }
    }

    #[test]
    fn small_large_and_over_aligned_values_survive_a_move() {
        assert_eq!(read_back(7u8), 7);
        assert_eq!(read_back([3u64; 16]), [3; 16]);
        assert_eq!(read_back([5u32; 400]), [5; 400]);
        assert_eq!(read_back(Wide([9; 64])).0, [9; 64]);
        assert_eq!(read_back(()), ());
        assert_eq!(ArgumentBlock::new(&Wide([0; 64])).as_ptr() as usize % 64, 0);
    }
}
