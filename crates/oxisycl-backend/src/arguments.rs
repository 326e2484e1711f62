//! The bytes of a kernel's arguments, copied out of the submitting closure.
//!
//! Bytes are kept as `MaybeUninit` and are never read, compared or hashed, since a closure has padding (rule 8 of the
//! soundness rules). The kernel type is `Copy`, so nothing is ever dropped.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

const INLINE_SIZE: usize = 128;
const INLINE_ALIGN: usize = 16;

#[repr(align(16))]
struct Inline([MaybeUninit<u8>; INLINE_SIZE]);

/// A value of a kernel type that is about to be copied, type-erased.
#[derive(Clone, Copy, Debug)]
pub struct Captures<'k> {
    source: *const u8,
    layout: Layout,
    kernel: PhantomData<&'k ()>,
}

impl<'k> Captures<'k> {
    /// The captures of `kernel`.
    #[inline]
    pub fn of<K: Copy + Send + Sync>(kernel: &'k K) -> Self {
        Self { source: (&raw const *kernel).cast(), layout: Layout::new::<K>(), kernel: PhantomData }
    }

    /// The bytes. Those of padding have no values.
    #[inline]
    pub fn bytes(&self) -> &'k [MaybeUninit<u8>] {
        // SAFETY: `of` took the address of a value of this size, which is borrowed for `'k`.
        unsafe { std::slice::from_raw_parts(self.source.cast(), self.layout.size()) }
    }
}

/// An owned copy of one value of a kernel type, type-erased.
pub struct ArgumentBlock {
    /// The address of a value that is not stored `inline`.
    heap: Option<NonNull<u8>>,
    layout: Layout,
    inline: Inline,
}

// SAFETY: the constructor takes only values that are `Send + Sync`, and the block never hands out more than their address.
unsafe impl Send for ArgumentBlock {}
// SAFETY: as above.
unsafe impl Sync for ArgumentBlock {}

impl ArgumentBlock {
    /// Copies the bytes of `kernel`.
    #[inline]
    pub fn new<K: Copy + Send + Sync>(kernel: &K) -> Self {
        let mut block = MaybeUninit::uninit();
        // SAFETY: valid for writes.
        unsafe { Self::write(block.as_mut_ptr(), Captures::of(kernel)) };
        // SAFETY: written just now.
        unsafe { block.assume_init() }
    }

    /// Writes a block with a copy of the captures to `block`. For a small value, copies only as many bytes as it has.
    ///
    /// # Safety
    /// `block` is valid for writes and aligned.
    #[inline]
    pub(crate) unsafe fn write(block: *mut Self, captures: Captures<'_>) {
        let Captures { source, layout, .. } = captures;
        // SAFETY: by the contract of this function; `inline` needs no value. What the bytes are copied to was made for at least
        // `layout.size()` bytes, and is no part of the value that `source` borrows.
        unsafe {
            let target = if layout.size() <= INLINE_SIZE && layout.align() <= INLINE_ALIGN {
                (&raw mut (*block).heap).write(None);
                (&raw mut (*block).layout).write(layout);
                (&raw mut (*block).inline).cast::<u8>()
            } else {
                let (heap, pointer) = allocate(layout);
                (&raw mut (*block).heap).write(Some(pointer));
                (&raw mut (*block).layout).write(heap);
                pointer.as_ptr()
            };
            source.copy_to_nonoverlapping(target, layout.size());
        }
    }

    /// The address of the value, aligned for its type, valid until the block moves or is dropped.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        match self.heap {
            None => self.inline.0.as_ptr().cast(),
            Some(pointer) => pointer.as_ptr(),
        }
    }

    /// Size of the value in bytes.
    pub fn size(&self) -> usize {
        self.layout.size()
    }
}

/// Allocates memory for a value that is large or has a large alignment.
#[cold]
fn allocate(layout: Layout) -> (Layout, NonNull<u8>) {
    // A type of size zero may have a large alignment.
    let heap = Layout::from_size_align(layout.size().max(1), layout.align()).expect("layout of a real type");
    // SAFETY: `heap` has a size of at least one.
    let pointer = unsafe { alloc(heap) };
    let Some(pointer) = NonNull::new(pointer) else { handle_alloc_error(heap) };
    (heap, pointer)
}

impl Drop for ArgumentBlock {
    fn drop(&mut self) {
        if let Some(pointer) = self.heap {
            // SAFETY: allocated by `allocate` with this very layout.
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
