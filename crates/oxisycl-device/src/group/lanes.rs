//! How values of work-items pass from one to another on devices: through local memory, or without memory in the processor's own sub-groups.

use oxisycl_types::GroupSize;

use crate::advice::AnyBits;
use crate::operator::Operator;
use crate::{DeviceCopyable, builtin};

/// Work-items of a block, and of a sub-group of processors that have shuffles.
pub(super) const BLOCK: usize = GroupSize::BLOCK;

/// Memory of the group that algorithms use: one element for each work-item, and two for each block.
pub(super) struct Scratch<T> {
    first: *mut T,
    items: usize,
}

impl<T> Scratch<T> {
    /// The memory of a group of so many work-items, from `first` on.
    #[inline(always)]
    pub(super) fn new(first: *mut T, items: usize) -> Self {
        Self { first, items }
    }

    /// The element of a work-item.
    #[inline(always)]
    pub(super) fn item(&self, linear: usize) -> *mut T {
        self.first.wrapping_add(linear)
    }

    /// What a block of work-items has together.
    #[inline(always)]
    pub(super) fn of_block(&self, block: usize) -> *mut T {
        self.first.wrapping_add(self.items + block)
    }

    /// What all work-items up to the end of a block have together.
    #[inline(always)]
    pub(super) fn up_to_block(&self, block: usize) -> *mut T {
        self.of_block(blocks(self.items) + block)
    }
}

/// The blocks of a group.
#[inline(always)]
pub(super) fn blocks(items: usize) -> usize {
    items.div_ceil(BLOCK)
}

/// The work-items of a sub-group of the processor that exist, as a number with a bit for each.
#[derive(Clone, Copy)]
pub(super) struct Members(u32);

impl Members {
    /// The members of a block of a group.
    #[inline(always)]
    pub(super) fn of_block(items: usize, block: usize) -> Self {
        let n = items.wrapping_sub(block * BLOCK).min(BLOCK);
        Self(u32::MAX >> ((BLOCK - n) % BLOCK))
    }

    /// The value of a lane of the block. What a lane without a value gives is some value.
    ///
    /// # Safety
    /// All members call it from the same place, in device code that has shuffles.
    #[inline(always)]
    pub(super) unsafe fn shuffle<T: DeviceCopyable + AnyBits>(self, value: T, lane: usize) -> T {
        let mut result = T::zeroed();
        let (from, to) = ((&raw const value).cast::<u8>(), (&raw mut result).cast::<u8>());
        let mut at = 0;
        while at < size_of::<T>() {
            let bytes = (size_of::<T>() - at).min(size_of::<u32>());
            let mut piece = core::mem::MaybeUninit::<u32>::zeroed();
            // SAFETY: within both values, of which every bit pattern is valid; the call is as the contract of this function says.
            unsafe {
                core::ptr::copy_nonoverlapping(from.add(at), piece.as_mut_ptr().cast(), bytes);
                piece = builtin::shuffle_among_u32(self.0, piece, lane as u32);
                core::ptr::copy_nonoverlapping(piece.as_ptr().cast(), to.add(at), bytes);
            }
            at += size_of::<u32>();
        }
        result
    }

    /// The members for which it holds.
    ///
    /// # Safety
    /// As [`shuffle`](Self::shuffle).
    #[inline(always)]
    pub(super) unsafe fn ballot(self, holds: bool) -> u32 {
        // SAFETY: by the contract of this function.
        unsafe { builtin::ballot_among(self.0, holds) }
    }

    /// The inclusive scan of the values of `n` lanes side by side, of at most `W`. `lane` is the calling one's position in the block, `own` that among
    /// the `n` lanes. A lane at or behind `n` keeps its value.
    ///
    /// # Safety
    /// As [`shuffle`](Self::shuffle).
    #[inline(always)]
    pub(super) unsafe fn scan<T, O, const W: usize>(
        self,
        value: T,
        lane: usize,
        own: usize,
        n: usize,
        operator: &O,
    ) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        let mut value = value;
        let mut step = 1;
        while step < W {
            // SAFETY: by the contract of this function.
            let other = unsafe { self.shuffle(value, lane.wrapping_sub(step)) };
            if own >= step && own < n {
                value = operator.combine(other, value);
            }
            step *= 2;
        }
        value
    }
}
