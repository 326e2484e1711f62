//! How values of work-items pass from one to another on devices: through local memory, or without memory in the processor's own sub-groups.

use core::mem::MaybeUninit;

use oxisycl_types::GroupSize;

use crate::advice::AnyBits;
use crate::operator::{AtOnce, Operator};
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

    /// What a block has together on processors that have shuffles, in one of two places. Two algorithms that follow each other have one each. So the
    /// second one writes nothing that the first one still reads; a third one comes behind the meeting of the second.
    #[inline(always)]
    pub(super) fn in_turn(&self, turn: u32, block: usize) -> *mut T {
        if turn.is_multiple_of(2) { self.of_block(block) } else { self.up_to_block(block) }
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
        // SAFETY: by the contract of this function.
        by_words(value, |word| unsafe { builtin::shuffle_among_u32(self.0, word, lane as u32) })
    }

    /// The value of the lane `distance` places before; the own one if there is none.
    ///
    /// # Safety
    /// All members call it from the same place, in device code that has shuffles.
    #[inline(always)]
    unsafe fn shuffle_up<T: DeviceCopyable + AnyBits>(self, value: T, distance: u32) -> T {
        // SAFETY: by the contract of this function.
        by_words(value, |word| unsafe { builtin::shuffle_up_among_u32(self.0, word, distance) })
    }

    /// The members for which it holds.
    ///
    /// # Safety
    /// All members call it from the same place, in device code that has shuffles.
    #[inline(always)]
    pub(super) unsafe fn ballot(self, holds: bool) -> u32 {
        // SAFETY: by the contract of this function.
        unsafe { builtin::ballot_among(self.0, holds) }
    }

    /// The values of the first `n` lanes of the block together, for all lanes at once, where the processor can do that by the operator. It is what the
    /// last of these lanes has after [`scan`](Self::scan). `own` is the calling one's position. The identity, if `n` is 0.
    ///
    /// # Safety
    /// All members call it from the same place, in device code that has shuffles.
    #[inline(always)]
    pub(super) unsafe fn at_once<T, O>(self, value: T, own: u32, n: u32) -> Option<T>
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        let operation = const { if size_of::<T>() == size_of::<u32>() { O::AT_ONCE } else { None } };
        if !builtin::has_reductions() {
            return None;
        }
        let operation: AtOnce = operation?;
        let identity = MaybeUninit::new(operation.identity());
        Some(by_words(value, |word| {
            let word = if own < n { word } else { identity };
            // SAFETY: by the contract of this function. The device has reductions.
            unsafe { builtin::reduce_among_u32(self.0, word, operation as u32) }
        }))
    }

    /// The inclusive scan of the values of `n` lanes side by side, of at most `W`. `own` is the calling one's position among them. A lane at or behind `n`
    /// keeps its value.
    ///
    /// # Safety
    /// All members call it from the same place, in device code that has shuffles.
    #[inline(always)]
    pub(super) unsafe fn scan<T, O, const W: usize>(self, value: T, own: u32, n: u32, operator: &O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        let mut value = value;
        let mut step = 1;
        while step < W as u32 {
            // SAFETY: by the contract of this function.
            let other = unsafe { self.shuffle_up(value, step) };
            if own >= step && own < n {
                value = operator.combine(other, value);
            }
            step *= 2;
        }
        value
    }
}

/// Passes the words of a value, of which every bit pattern is valid, and gives the value that comes of it.
#[inline(always)]
fn by_words<T: DeviceCopyable + AnyBits>(value: T, pass: impl Fn(MaybeUninit<u32>) -> MaybeUninit<u32>) -> T {
    let mut result = T::zeroed();
    let (from, to) = ((&raw const value).cast::<u8>(), (&raw mut result).cast::<u8>());
    let mut at = 0;
    while at < size_of::<T>() {
        let bytes = (size_of::<T>() - at).min(size_of::<u32>());
        let mut word = MaybeUninit::<u32>::zeroed();
        // SAFETY: within both values.
        unsafe {
            core::ptr::copy_nonoverlapping(from.add(at), word.as_mut_ptr().cast(), bytes);
            word = pass(word);
            core::ptr::copy_nonoverlapping(word.as_ptr().cast(), to.add(at), bytes);
        }
        at += size_of::<u32>();
    }
    result
}
