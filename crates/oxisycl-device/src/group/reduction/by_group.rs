//! Tiles that all work-items of a group reduce together, on processors that have shuffles.
//!
//! So many loads are under way then that a launch of few groups does not wait for each. Elements pass through local memory: all of a tile, or one part of
//! it after the other. The tree is the same as that of [`tree`](super::tree).

use core::mem::MaybeUninit;

use bytemuck::Zeroable;
use oxisycl_types::GroupSize;

use super::Reductions;
use super::tree::{ACCUMULATORS, ITEMS, Partials, TILE, by_shuffles, finish};
use crate::group::lanes::BLOCK;
use crate::group::{Fixed1, Group};
use crate::{Range, builtin};

/// How many elements each work-item of a group loads at once, where all of it reduce one tile.
const LOADS: usize = TILE / ITEMS;
/// Bytes of local memory that the elements of a tile pass through.
const MEMORY: usize = TILE * size_of::<u64>();

/// Whether all work-items of a group reduce one tile of what a range gives, in code that has shuffles. The elements pass through local memory, which is too
/// slow for many large ones.
#[doc(hidden)]
pub const fn is_by_group<V>() -> bool {
    size_of::<V>() <= size_of::<u64>()
}

/// Whether all work-items of a group reduce one tile of what an earlier launch has left, in code that has shuffles. Those are few, so that local memory
/// may be slow. It has a part of a tile of large elements at a time, with an element for each work-item at least.
#[doc(hidden)]
pub const fn are_by_group<V>() -> bool {
    is_by_group::<V>() || (size_of::<V>() <= MEMORY / ITEMS && align_of::<V>() >= align_of::<u32>())
}

/// How many elements of a tile are in local memory at once for each work-item of a group.
const fn loads<V>() -> usize {
    let mut loads = LOADS;
    while loads > 1 && loads * ITEMS * size_of::<V>() > MEMORY {
        loads /= 2;
    }
    loads
}

/// Reduces the tiles of one group, one after the other. The only group of a launch finishes; others leave the sums of their tiles. `sum_of` gives the sum
/// of a tile of so many elements to the first work-item.
///
/// # Safety
/// As for [`reduce_range`](super::reduce_range), in device code that has shuffles, where [`are_by_group`] holds.
#[inline(always)]
pub(super) unsafe fn reduce_tiles_by_group<'wg, 'cg: 'wg, R: Reductions>(
    group: &mut Group<'wg, 'cg, 1, Fixed1<ITEMS>>,
    n: usize,
    sum_of: impl Fn(&mut Group<'wg, 'cg, 1, Fixed1<ITEMS>>, usize, usize) -> R::Value,
    reductions: &R,
    partials: Partials<'_, R::Value>,
) {
    let tiles = n.div_ceil(TILE);
    let Range([n_groups]) = group.group_range();
    let mut sum = R::Value::zeroed();
    let mut tile = group.linear_id();
    // SAFETY: each tile of the launch has a place of its own. All work-items of the group take the same way.
    unsafe {
        while tile < tiles {
            sum = sum_of(group, tile, (n - tile * TILE).min(TILE));
            if group.local_linear_id() == 0 {
                partials.at(tile).write(sum);
            }
            tile += n_groups;
        }
        if n_groups == 1 {
            if tiles > 1 {
                // What others of the group wrote is visible behind the meeting.
                group.meet();
                sum = sum_of_memory(group, tiles, partials.at(0), reductions);
            }
            if group.local_linear_id() == 0 {
                finish(reductions, tiles, sum);
            }
        }
    }
}

/// The sum of a tile of `len` elements from `first` on, at least one and at most [`TILE`], for the first work-item of the group. Others get a value of no
/// use.
///
/// # Safety
/// As for [`sum_of_values`], where [`are_by_group`] holds. There are so many values, which nothing writes meanwhile.
#[inline(always)]
pub(super) unsafe fn sum_of_memory<'wg, 'cg: 'wg, R: Reductions>(
    group: &mut Group<'wg, 'cg, 1, Fixed1<ITEMS>>,
    len: usize,
    first: *const R::Value,
    reductions: &R,
) -> R::Value {
    // SAFETY: by the contract of this function.
    unsafe {
        if const { loads::<R::Value>() == LOADS } {
            return sum_of_values(group, len, |i| first.add(i).read(), reductions);
        }
        const { assert!(align_of::<R::Value>() <= GroupSize::ALIGNMENT, "local memory is aligned to 64 bytes") };
        let memory = group.scratch::<[u64; LOADS]>().item(0).cast();
        let sum = if const { align_of::<R::Value>() >= align_of::<u64>() } {
            accumulate_parts::<R, u64>(group, len, first, memory, reductions)
        } else {
            accumulate_parts::<R, u32>(group, len, first, memory, reductions)
        };
        join_accumulators(group, len, sum, memory, reductions)
    }
}

/// The sum of a tile of `len` elements, at least one and at most [`TILE`], for the first work-item of the group. Others get a value of no use. Each
/// accumulator is a work-item's, which combines what all have loaded.
///
/// # Safety
/// Device code that has shuffles, at group scope, which all work-items of the group call with the same `len`. [`is_by_group`] holds.
#[inline(always)]
pub(super) unsafe fn sum_of_values<'wg, 'cg: 'wg, R: Reductions>(
    group: &mut Group<'wg, 'cg, 1, Fixed1<ITEMS>>,
    len: usize,
    value: impl Fn(usize) -> R::Value,
    reductions: &R,
) -> R::Value {
    let linear = group.local_linear_id();
    let memory = group.scratch::<[R::Value; LOADS]>().item(0).cast::<R::Value>();
    let own = memory.wrapping_add(linear);
    let mut sum = R::Value::zeroed();
    // SAFETY: the memory has `TILE` elements. Between two meetings each is written by one work-item, or read by one.
    unsafe {
        // Where a tile before this one is still read.
        builtin::group_barrier();
        if len == TILE {
            for step in 0..LOADS {
                builtin::unroll_loop(LOADS as u32);
                own.add(step * ITEMS).write(value(step * ITEMS + linear));
            }
        } else {
            let mut i = linear;
            while i < len {
                memory.add(i).write(value(i));
                i += ITEMS;
            }
        }
        group.meet();
        if linear < ACCUMULATORS && linear < len {
            sum = own.read();
            if len == TILE {
                for row in 1..TILE / ACCUMULATORS {
                    sum = reductions.join(sum, own.add(row * ACCUMULATORS).read());
                }
            } else {
                let mut i = linear + ACCUMULATORS;
                while i < len {
                    sum = reductions.join(sum, memory.add(i).read());
                    i += ACCUMULATORS;
                }
            }
        }
        join_accumulators(group, len, sum, memory, reductions)
    }
}

/// The sum of the accumulators that the first work-items have, for the first one.
///
/// # Safety
/// As for [`sum_of_values`]. The memory has an element for each work-item, which that work-item alone uses since the last meeting.
#[inline(always)]
unsafe fn join_accumulators<'wg, 'cg: 'wg, R: Reductions>(
    group: &mut Group<'wg, 'cg, 1, Fixed1<ITEMS>>,
    len: usize,
    sum: R::Value,
    memory: *mut R::Value,
    reductions: &R,
) -> R::Value {
    let linear = group.local_linear_id();
    let own = memory.wrapping_add(linear);
    let mut sum = sum;
    // SAFETY: by the contract of this function. Behind the meeting each is read by one work-item.
    unsafe {
        // The accumulators of the second block come to those of the first.
        if (BLOCK..ACCUMULATORS).contains(&linear) {
            own.write(sum);
        }
        group.meet();
        if linear < BLOCK {
            if BLOCK + linear < len {
                sum = reductions.join(sum, own.add(BLOCK).read());
            }
            sum = by_shuffles(sum, linear, len, reductions);
        }
    }
    sum
}

/// Runs a statement for each number below `n`, without a loop, so that elements of an array are variables.
macro_rules! for_each_below {
    ($n:expr, $k:ident => $body:expr) => {
        for_each_below!(@ $n, $k => $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    (@ $n:expr, $k:ident => $body:expr, $($i:literal)*) => { $(
        if $i < $n {
            const $k: usize = $i;
            $body;
        }
    )* };
}

/// Words that a work-item loads for one part of a tile, at most: those of 32 bits.
const WORDS: usize = MEMORY / ITEMS / size_of::<u32>();

/// The accumulators of a tile, of whose elements a part is in local memory at a time. The next part is loaded while one is combined, by words `W`, of which
/// work-items side by side have those side by side.
///
/// # Safety
/// As for [`sum_of_memory`]. The memory has `loads() * ITEMS` elements. They are aligned as words are.
#[inline(always)]
unsafe fn accumulate_parts<'wg, 'cg: 'wg, R: Reductions, W: Copy>(
    group: &mut Group<'wg, 'cg, 1, Fixed1<ITEMS>>,
    len: usize,
    first: *const R::Value,
    memory: *mut R::Value,
    reductions: &R,
) -> R::Value {
    let words_of_element = const { size_of::<R::Value>() / size_of::<W>() };
    let own_words = const { loads::<R::Value>() * size_of::<R::Value>() / size_of::<W>() };
    let part = const { loads::<R::Value>() * ITEMS };
    let linear = group.local_linear_id();
    let (from, to) = (first.cast::<MaybeUninit<W>>(), memory.cast::<MaybeUninit<W>>());
    let last = len * words_of_element - 1;
    let mut words = [MaybeUninit::<W>::uninit(); WORDS];
    // Words behind the last one are combined by none.
    let load = |words: &mut [MaybeUninit<W>; WORDS], begin: usize| {
        let begin = begin * words_of_element + linear;
        // SAFETY: a word of the elements.
        for_each_below!(own_words, K => words[K] = unsafe { from.add((begin + K * ITEMS).min(last)).read() });
    };
    let mut sum = R::Value::zeroed();
    load(&mut words, 0);
    let mut begin = 0;
    while begin < len {
        // SAFETY: a part has so many words. Between two meetings each is written by one work-item, and each element read by one.
        unsafe {
            // Where elements before these are still read.
            builtin::group_barrier();
            for_each_below!(own_words, K => to.add(K * ITEMS + linear).write(words[K]));
            group.meet();
            let n = (len - begin).min(part);
            if begin + part < len {
                load(&mut words, begin + part);
            }
            if linear < ACCUMULATORS && linear < n {
                let mut i = linear;
                if begin == 0 {
                    sum = memory.add(i).read();
                    i += ACCUMULATORS;
                }
                while i < n {
                    builtin::unroll_loop(4);
                    sum = reductions.join(sum, memory.add(i).read());
                    i += ACCUMULATORS;
                }
            }
        }
        begin += part;
    }
    sum
}
