//! The tree of a reduction: tiles, and the launches that reduce them.

use bytemuck::Zeroable;

use super::Reductions;
use super::by_group::{are_by_group, is_by_group, reduce_tiles_by_group, sum_of_memory, sum_of_values};
use crate::group::lanes::{BLOCK, Members};
use crate::group::{Fixed1, Group, Shape};
use crate::{Accessor, Item, NoInit, Range, Write, builtin};

/// Elements of a tile.
pub const TILE: usize = 4096;
/// Work-items of a group, which reduce a tile by 32.
#[doc(hidden)]
pub const ITEMS: usize = 256;
/// Tiles of a group whose blocks reduce one each.
#[doc(hidden)]
pub const TILES: usize = ITEMS / BLOCK;
/// Accumulators of a tile, and of one work-item.
pub(super) const ACCUMULATORS: usize = 64;
const OWN: usize = 2;
const _: () = assert!(OWN * BLOCK == ACCUMULATORS);
/// How many rows of accumulators GPUs load together where several reductions share the loop, which LLVM takes for too large to unroll. A loop over
/// single numbers it unrolls as far as is of use.
const fn unrolled_rows<V>() -> u32 {
    const ROWS: usize = 21;
    // None is left over.
    const { assert!((TILE / ACCUMULATORS - 1).is_multiple_of(ROWS)) };
    if size_of::<V>() > size_of::<u64>() { ROWS as u32 } else { 1 }
}

/// Where the sums of tiles are that one launch makes for the next.
#[doc(hidden)]
pub struct Partials<'cg, V> {
    /// Memory of all launches.
    pub memory: Accessor<'cg, V, 1, NoInit<Write>>,
    /// The position of the first one of this launch.
    pub first: usize,
}

impl<V> Clone for Partials<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for Partials<'_, V> {}

impl<V> Partials<'_, V> {
    /// The address of a sum.
    #[inline(always)]
    pub(super) fn at(self, tile: usize) -> *mut V {
        self.memory.as_ptr().wrapping_add(self.first).wrapping_add(tile)
    }
}

/// Reduces what the work-items of a range give, in the first launch of a reduction.
///
/// # Safety
/// As for [`reduce_tiles`], where `n` is the size of the range. Each of its work-items is executed once by the launch.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn reduce_range<'cg, const D: usize, R, K>(
    mut group: Group<'_, 'cg, 1, Fixed1<ITEMS>>,
    range: [usize; D],
    kernel: K,
    reductions: &R,
    partials: Partials<'_, R::Value>,
) where
    R: Reductions,
    K: for<'wi> Fn(Item<'wi, D>, R::Reducers<'wi>),
{
    let value_of = |id: [usize; D]| {
        let mut slots = reductions.start();
        // SAFETY: each id of the range is that of one element.
        kernel(unsafe { Item::new(id, range, [0; D]) }, R::reducers(&mut slots));
        R::end(slots)
    };
    let value = |i: usize| value_of(position(range, i));
    // SAFETY: the kernel is run for work-items, and no code of a user is at group scope.
    unsafe { builtin::begin_phase() };
    // The launch was refused if the range has more work-items than can be counted.
    let n = Range(range).size();
    // SAFETY: by the contract of this function.
    unsafe {
        if builtin::is_device_code() && builtin::has_shuffles() && const { is_by_group::<R::Value>() } {
            let sum_of = |group: &mut Group<'_, 'cg, 1, Fixed1<ITEMS>>, tile: usize, len: usize| {
                sum_of_values(group, len, |i| value(tile * TILE + i), reductions)
            };
            reduce_tiles_by_group(&mut group, n, sum_of, reductions, partials);
        } else {
            reduce_tiles(&mut group, n, value, OfRange { range, value_of: &value_of }, reductions, partials);
        }
    }
}

/// The id of the work-item with that row-major number.
#[inline(always)]
fn position<const D: usize>(range: [usize; D], i: usize) -> [usize; D] {
    let (mut id, mut rest) = ([0; D], i);
    for d in (1..D).rev() {
        id[d] = rest % range[d];
        rest /= range[d];
    }
    id[0] = rest;
    id
}

/// Runs a work-item, and keeps what it gives to its reducers for the launches that reduce it.
///
/// # Safety
/// `partials` have that place, which no other call of the launch has.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn give<R: Reductions>(
    reductions: &R,
    partials: Partials<'_, R::Value>,
    place: usize,
    run: impl FnOnce(R::Reducers<'_>),
) {
    let mut slots = reductions.start();
    run(R::reducers(&mut slots));
    // SAFETY: by the contract of this function.
    unsafe { partials.at(place).write(R::end(slots)) };
}

/// Runs the group scope of a group, and keeps what it gives to its reducers for the launches that reduce it.
///
/// # Safety
/// `partials` have a place for each group of the launch.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn give_of_group<'wg, 'cg: 'wg, const D: usize, S: Shape<D>, R: Reductions>(
    reductions: &R,
    partials: Partials<'_, R::Value>,
    group: Group<'wg, 'cg, D, S>,
    run: impl FnOnce(Group<'wg, 'cg, D, S>, R::Reducers<'_>),
) {
    let place = group.linear_id();
    // On devices each work-item has the group scope's values.
    let writes = !builtin::is_device_code() || group.local_linear_id() == 0;
    let mut slots = reductions.start();
    run(group, R::reducers(&mut slots));
    if writes {
        // SAFETY: by the contract of this function.
        unsafe { partials.at(place).write(R::end(slots)) };
    }
}

/// Reduces what the launch before has left, `n` values from `source` on.
///
/// # Safety
/// As for [`reduce_tiles`]. The launch before has ended.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn reduce_partials<R: Reductions>(
    mut group: Group<'_, '_, 1, Fixed1<ITEMS>>,
    n: usize,
    source: Partials<'_, R::Value>,
    reductions: &R,
    partials: Partials<'_, R::Value>,
) {
    // SAFETY: by the contract of this function.
    unsafe {
        if builtin::is_device_code() && builtin::has_shuffles() && const { are_by_group::<R::Value>() } {
            let sum_of = |group: &mut Group<'_, '_, 1, Fixed1<ITEMS>>, tile: usize, len: usize| {
                sum_of_memory(group, len, source.at(tile * TILE), reductions)
            };
            reduce_tiles_by_group(&mut group, n, sum_of, reductions, partials);
        } else {
            reduce_tiles(&mut group, n, |i| source.at(i).read(), OfMemory(source), reductions, partials);
        }
    }
}

/// Groups of so many tiles each that reduce `n` elements.
#[doc(hidden)]
pub const fn groups(n: usize, tiles_of_group: usize) -> usize {
    let groups = n.div_ceil(TILE).div_ceil(tiles_of_group);
    if groups == 0 { 1 } else { groups }
}

/// Reduces the tiles of one group. The only group of a launch finishes; others leave the sums of their tiles.
///
/// # Safety
/// The kernel of a launch of `groups(n, _)` groups. `partials` are as many values as the launch has tiles, which no other launch uses meanwhile.
#[inline(always)]
unsafe fn reduce_tiles<'wg, 'cg: 'wg, R: Reductions>(
    group: &mut Group<'wg, 'cg, 1, Fixed1<ITEMS>>,
    n: usize,
    value: impl Fn(usize) -> R::Value,
    elements: impl Elements<R>,
    reductions: &R,
    partials: Partials<'_, R::Value>,
) {
    let tiles = n.div_ceil(TILE);
    let first_tile = group.linear_id() * TILES;
    let put = |tile: usize, sum: R::Value| {
        // SAFETY: each tile of the launch has a place of its own.
        unsafe { partials.at(tile).write(sum) };
    };
    let is_alone = group.group_range() == Range([1]);
    // SAFETY: see below.
    unsafe {
        if builtin::is_device_code() {
            let team = group.local_linear_id() / BLOCK;
            let tile = first_tile + team;
            let len = n.saturating_sub(tile * TILE).min(TILE);
            let sum = tile_on_device(group, len, |i| value(tile * TILE + i), reductions);
            let is_first = group.local_linear_id().is_multiple_of(BLOCK);
            if is_first && len > 0 {
                put(tile, sum);
            }
            if is_alone {
                // What others of the group wrote is visible behind the meeting.
                group.meet();
                let sum =
                    tile_on_device(group, if team == 0 { tiles } else { 0 }, |i| partials.at(i).read(), reductions);
                if group.local_linear_id() == 0 {
                    finish(reductions, tiles, sum);
                }
            }
            return;
        }
        for tile in first_tile..tiles.min(first_tile + TILES) {
            let len = (n - tile * TILE).min(TILE);
            put(tile, tile_on_host(tile * TILE, len, &elements, reductions));
        }
        if is_alone {
            let sum = if tiles == 0 {
                R::end(reductions.start())
            } else {
                tile_on_host(0, tiles, &OfMemory(partials), reductions)
            };
            finish(reductions, tiles, sum);
        }
    }
}

/// # Safety
/// As for [`Reductions::finish`].
#[inline(always)]
pub(super) unsafe fn finish<R: Reductions>(reductions: &R, tiles: usize, sum: R::Value) {
    // SAFETY: by the contract of this function.
    unsafe { reductions.finish(if tiles == 0 { R::end(reductions.start()) } else { sum }) };
}

/// Where native code has the elements of a tile from.
trait Elements<R: Reductions> {
    /// Has the first `n` accumulators hold the elements from number `first` on, or combines both.
    ///
    /// # Safety
    /// There are so many elements, and accumulators, which nothing else accesses.
    unsafe fn give(&self, reductions: &R, sums: *mut R::Sums, first: usize, n: usize, is_first: bool);
}

/// Has an accumulator hold a value, or combines both.
///
/// # Safety
/// As for [`Reductions::sum`].
#[inline(always)]
unsafe fn add<R: Reductions>(reductions: &R, sums: *mut R::Sums, index: usize, value: R::Value, is_first: bool) {
    // SAFETY: by the contract of this function.
    unsafe {
        let sum = R::sum(sums, index);
        R::set_sum(sums, index, if is_first { value } else { reductions.join(sum, value) });
    }
}

/// The work-items of a range.
struct OfRange<const D: usize, F> {
    range: [usize; D],
    value_of: F,
}

impl<const D: usize, R: Reductions, F: Fn([usize; D]) -> R::Value> Elements<R> for OfRange<D, F> {
    #[inline(always)]
    unsafe fn give(&self, reductions: &R, sums: *mut R::Sums, first: usize, n: usize, is_first: bool) {
        // SAFETY: by the contract of this function.
        unsafe { give_of_range(self.range, &self.value_of, reductions, sums, (first, n, is_first)) };
    }
}

/// What work-items of a range give, by an item loop for each of its rows. The kernel has one such loop, whether or not it is the first row.
///
/// # Safety
/// As for [`Elements::give`].
#[inline(always)]
unsafe fn give_of_range<const D: usize, R: Reductions>(
    range: [usize; D],
    value_of: &impl Fn([usize; D]) -> R::Value,
    reductions: &R,
    sums: *mut R::Sums,
    (first, n, is_first): (usize, usize, bool),
) {
    let mut done = 0;
    while done < n {
        let (begin, left) = (position(range, first + done), n - done);
        let row = if D == 1 { left } else { left.min(range[D - 1] - begin[D - 1]) };
        builtin::each_item(row, move |x| {
            let mut id = begin;
            id[D - 1] += x;
            let value = value_of(id);
            // SAFETY: by the contract of this function. Work-items have accumulators of their own, so that they may run at the same time.
            unsafe { add(reductions, sums, done + x, value, is_first) };
        });
        done += row;
    }
}

/// What a launch has left.
struct OfMemory<'cg, V>(Partials<'cg, V>);

impl<R: Reductions> Elements<R> for OfMemory<'_, R::Value> {
    #[inline(always)]
    unsafe fn give(&self, reductions: &R, sums: *mut R::Sums, first: usize, n: usize, is_first: bool) {
        for i in 0..n {
            // SAFETY: by the contract of this function.
            unsafe { add(reductions, sums, i, self.0.at(first + i).read(), is_first) };
        }
    }
}

/// The sum of a tile of `len` elements from number `first` on, at least one, in native code.
///
/// # Safety
/// There are so many elements.
#[inline(always)]
unsafe fn tile_on_host<R: Reductions>(
    first: usize,
    len: usize,
    elements: &impl Elements<R>,
    reductions: &R,
) -> R::Value {
    let mut sums = R::no_sums();
    let sums = &raw mut sums;
    let (filled, rows) = (len.min(ACCUMULATORS), len / ACCUMULATORS);
    // SAFETY: by the contract of this function. No row has more elements than there are accumulators, and no step has a sum behind the last one.
    unsafe {
        elements.give(reductions, sums, first, filled, true);
        for row in 1..rows {
            elements.give(reductions, sums, first + row * ACCUMULATORS, ACCUMULATORS, false);
        }
        if rows > 0 {
            elements.give(reductions, sums, first + rows * ACCUMULATORS, len % ACCUMULATORS, false);
        }
        let mut half = ACCUMULATORS / 2;
        while half > 0 {
            for i in 0..half {
                if half + i < filled {
                    R::set_sum(sums, i, reductions.join(R::sum(sums, i), R::sum(sums, half + i)));
                }
            }
            half /= 2;
        }
        R::sum(sums, 0)
    }
}

/// The sum of what the work-items of a block have, of those below `len`, for the first one.
///
/// # Safety
/// Device code that has shuffles, which all work-items of the block call.
#[inline(always)]
pub(super) unsafe fn by_shuffles<R: Reductions>(sum: R::Value, lane: usize, len: usize, reductions: &R) -> R::Value {
    let (mut sum, members) = (sum, Members::of_block(ITEMS, 0));
    let mut half = BLOCK / 2;
    while half > 0 {
        // SAFETY: by the contract of this function.
        let right = unsafe { members.shuffle(sum, lane + half) };
        if lane < half && lane + half < len {
            sum = reductions.join(sum, right);
        }
        half /= 2;
    }
    sum
}

/// The sum of a tile of `len` elements, for the first of the 32 work-items that call it together. Others, and all if there are none, get a value of
/// no use.
///
/// # Safety
/// Device code at group scope, which all work-items of the group call; `len` is the same for the 32 work-items of a block.
#[inline(always)]
unsafe fn tile_on_device<'wg, 'cg: 'wg, R: Reductions>(
    group: &mut Group<'wg, 'cg, 1, Fixed1<ITEMS>>,
    len: usize,
    value: impl Fn(usize) -> R::Value,
    reductions: &R,
) -> R::Value {
    let lane = group.local_linear_id() % BLOCK;
    let mut sums = [R::Value::zeroed(); OWN];
    if len == TILE {
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum = value(k * BLOCK + lane);
        }
        for row in 1..TILE / ACCUMULATORS {
            builtin::unroll_loop(const { unrolled_rows::<R::Value>() });
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum = reductions.join(*sum, value(row * ACCUMULATORS + k * BLOCK + lane));
            }
        }
    } else {
        for (k, sum) in sums.iter_mut().enumerate() {
            let mut i = k * BLOCK + lane;
            if i < len {
                *sum = value(i);
                i += ACCUMULATORS;
                while i < len {
                    builtin::unroll_loop(const { unrolled_rows::<R::Value>() });
                    *sum = reductions.join(*sum, value(i));
                    i += ACCUMULATORS;
                }
            }
        }
    }
    let mut sum = sums[0];
    if BLOCK + lane < len {
        sum = reductions.join(sum, sums[1]);
    }
    // SAFETY: by the contract of this function. Between two meetings each place is written by one work-item, and read by the first of its block.
    unsafe {
        if builtin::has_shuffles() {
            sum = by_shuffles(sum, lane, len, reductions);
        } else {
            let scratch = group.scratch::<R::Value>();
            let own = scratch.item(group.local_linear_id());
            own.write(sum);
            group.meet();
            if lane == 0 {
                let mut half = BLOCK / 2;
                while half > 0 {
                    for i in 0..half {
                        if half + i < len {
                            own.add(i).write(reductions.join(own.add(i).read(), own.add(half + i).read()));
                        }
                    }
                    half /= 2;
                }
                sum = own.read();
            }
            // The next tile is written there.
            builtin::group_barrier();
        }
    }
    sum
}
