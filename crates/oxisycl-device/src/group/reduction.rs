//! Reductions (SYCL 2020 section 4.9.2): many values become one, by one fixed tree.
//!
//! # The tree
//!
//! Elements form tiles of [`TILE`], by their row-major numbers. Element `i` of a tile belongs to accumulator `i mod 128`, which combines its elements from
//! left to right. Accumulators are then combined by halves: `a` with `a + 64` for each `a` below 64, then with `a + 32`, and so on down to 1, where there
//! is one. The sums of tiles are elements again, until one is left. A target whose old value counts is combined with the result, on the left.
//!
//! Nothing of this depends on the device, on the number of threads, or on which of them is faster. So a sum of floats has the same bits everywhere,
//! if its elements have.

use core::marker::PhantomData;

use bytemuck::Zeroable;
use oxisycl_types::AccessMode;

use super::collective::{BLOCK, Members};
use super::scope::Group;
use super::shape::Fixed1;
use crate::advice::AnyBits;
use crate::item::NotSend;
use crate::operator::{self, Identity, Operator};
use crate::{Accessor, DeviceCopyable, Item, Loads, ModeFor, Range, Stores, builtin};

/// Elements of a tile.
pub const TILE: usize = 4096;
/// Work-items of a group, which reduce a tile by 32.
#[doc(hidden)]
pub const ITEMS: usize = 256;
/// Tiles of a group.
#[doc(hidden)]
pub const TILES: usize = ITEMS / BLOCK;
/// Accumulators of a tile, and of one work-item.
const ACCUMULATORS: usize = 128;
const OWN: usize = ACCUMULATORS / BLOCK;

/// One reduction: where its result goes, and what it is made by. See [`reduction`].
pub struct Reduction<'cg, T, O, M> {
    target: Accessor<'cg, T, 1, M>,
    operator: O,
}

impl<T, O: Clone, M> Clone for Reduction<'_, T, O, M> {
    fn clone(&self) -> Self {
        Self { target: self.target, operator: self.operator.clone() }
    }
}
impl<T, O: Copy, M> Copy for Reduction<'_, T, O, M> {}

/// A reduction into an accessor of one element, whose operator has an identity (SYCL 2020 section 4.9.2.1).
///
/// With mode `ReadWrite`, the old value is part of the result. With `Write`, the result replaces it.
pub fn reduction<'cg, T, O, M>(target: Accessor<'cg, T, 1, M>, operator: O) -> Reduction<'cg, T, WithIdentity<O>, M>
where
    T: DeviceCopyable + AnyBits,
    O: Identity<T> + 'static,
    M: ModeFor<T> + Stores,
{
    Reduction { target, operator: WithIdentity(operator) }
}

/// A reduction whose operator has no identity, such as a closure. The old value is part of the result, so that there is one where no work-item
/// combines anything.
pub fn reduction_without_identity<'cg, T, O, M>(
    target: Accessor<'cg, T, 1, M>,
    operator: O,
) -> Reduction<'cg, T, WithoutIdentity<O>, M>
where
    T: DeviceCopyable + AnyBits,
    O: Operator<T> + 'static,
    M: ModeFor<T> + Stores + Loads,
{
    Reduction { target, operator: WithoutIdentity(operator) }
}

/// What a work-item gives its values to (SYCL 2020 section 4.9.2.3). It may combine none, one or several.
///
/// A reducer stays with its work-item: nobody but the launch makes one, and it is neither copied nor kept.
pub struct Reducer<T, O> {
    value: T,
    has_value: bool,
    operator: O,
    not_send: NotSend,
}

impl<T: Copy, O: Combine<T>> Reducer<T, O> {
    /// Adds a value to the result.
    #[inline(always)]
    pub fn combine(&mut self, value: T) {
        self.value = if self.has_value { self.operator.join(self.value, value) } else { value };
        self.has_value = true;
    }
}

impl<T, O: Identity<T>> Reducer<T, WithIdentity<O>> {
    /// The value that changes no other.
    #[inline(always)]
    pub fn identity(&self) -> T {
        self.operator.0.identity()
    }
}

macro_rules! assigning {
    ($($trait:ident $function:ident: $operator:ident;)*) => { $(
        impl<T: Copy> core::ops::$trait<T> for Reducer<T, WithIdentity<operator::$operator>>
        where
            T: DeviceCopyable + AnyBits,
            operator::$operator: Identity<T>,
        {
            #[inline(always)]
            fn $function(&mut self, value: T) {
                self.combine(value);
            }
        }
    )* };
}

assigning! {
    AddAssign add_assign: Sum;
    MulAssign mul_assign: Product;
    BitAndAssign bitand_assign: BitAnd;
    BitOrAssign bitor_assign: BitOr;
    BitXorAssign bitxor_assign: BitXor;
}

/// A value, or none.
#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Maybe<T> {
    value: T,
    /// 0 if there is none.
    has_value: u8,
}

// SAFETY: both parts are.
unsafe impl<T: bytemuck::Zeroable> bytemuck::Zeroable for Maybe<T> {}
// SAFETY: both parts are, and bytes between them are not read.
unsafe impl<T: bytemuck::AnyBitPattern> bytemuck::AnyBitPattern for Maybe<T> {}
// SAFETY: both parts are.
unsafe impl<T: DeviceCopyable> DeviceCopyable for Maybe<T> {}

/// How the operator of a reduction is used: with an identity, or without. Implemented by this crate only.
#[doc(hidden)]
pub trait Combine<T>: Copy + Send + Sync {
    /// What is combined.
    type Value: DeviceCopyable + AnyBits;
    /// Combines two values of work-items.
    fn join(&self, first: T, second: T) -> T;
    /// Combines two results.
    fn join_results(&self, first: Self::Value, second: Self::Value) -> Self::Value;
    /// The reducer of a work-item.
    fn start(&self) -> Reducer<T, Self>;
    /// What the reducer has.
    fn end(reducer: Reducer<T, Self>) -> Self::Value;
    /// What the target has at the end: `all`, with its old value if there is one.
    fn finish(&self, old: Option<T>, all: Self::Value) -> T;
}

/// An operator that is used with its identity.
#[derive(Clone, Copy, Debug)]
pub struct WithIdentity<O>(O);

impl<T: DeviceCopyable + AnyBits, O: Identity<T>> Combine<T> for WithIdentity<O> {
    type Value = T;

    #[inline(always)]
    fn join(&self, first: T, second: T) -> T {
        self.0.combine(first, second)
    }

    #[inline(always)]
    fn join_results(&self, first: T, second: T) -> T {
        self.0.combine(first, second)
    }

    #[inline(always)]
    fn start(&self) -> Reducer<T, Self> {
        Reducer { value: self.0.identity(), has_value: true, operator: *self, not_send: PhantomData }
    }

    #[inline(always)]
    fn end(reducer: Reducer<T, Self>) -> T {
        reducer.value
    }

    #[inline(always)]
    fn finish(&self, old: Option<T>, all: T) -> T {
        old.map_or(all, |old| self.0.combine(old, all))
    }
}

/// An operator that is used without an identity.
#[derive(Clone, Copy, Debug)]
pub struct WithoutIdentity<O>(O);

impl<T: DeviceCopyable + AnyBits, O: Operator<T>> Combine<T> for WithoutIdentity<O> {
    type Value = Maybe<T>;

    #[inline(always)]
    fn join(&self, first: T, second: T) -> T {
        self.0.combine(first, second)
    }

    #[inline(always)]
    fn join_results(&self, first: Maybe<T>, second: Maybe<T>) -> Maybe<T> {
        match (first.has_value, second.has_value) {
            (0, _) => second,
            (_, 0) => first,
            _ => Maybe { value: self.0.combine(first.value, second.value), has_value: 1 },
        }
    }

    #[inline(always)]
    fn start(&self) -> Reducer<T, Self> {
        Reducer { value: T::zeroed(), has_value: false, operator: *self, not_send: PhantomData }
    }

    #[inline(always)]
    fn end(reducer: Reducer<T, Self>) -> Maybe<T> {
        Maybe { value: reducer.value, has_value: u8::from(reducer.has_value) }
    }

    #[inline(always)]
    fn finish(&self, old: Option<T>, all: Maybe<T>) -> T {
        match (old, all.has_value) {
            (Some(old), 0) => old,
            (Some(old), _) => self.0.combine(old, all.value),
            (None, _) => all.value,
        }
    }
}

/// One reduction, or a tuple of up to six of them. Implemented by this crate only.
///
/// # Safety
/// `finish` writes to the targets of the reductions only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reduction",
    note = "use `reduction(accessor, Sum)`, or a tuple of up to six of them"
)]
pub unsafe trait Reductions: Copy + Send + Sync {
    /// What a work-item gets: `&mut Reducer`, or a tuple of them.
    type Reducers<'wi>;
    /// What work-items give.
    #[doc(hidden)]
    type Value: DeviceCopyable + AnyBits;

    /// Combines what work-items gave.
    #[doc(hidden)]
    fn join(&self, first: Self::Value, second: Self::Value) -> Self::Value;

    /// The reducers of a work-item, while it runs.
    #[doc(hidden)]
    type Slots;

    #[doc(hidden)]
    fn start(&self) -> Self::Slots;

    #[doc(hidden)]
    fn reducers(slots: &mut Self::Slots) -> Self::Reducers<'_>;

    #[doc(hidden)]
    fn end(slots: Self::Slots) -> Self::Value;

    /// Writes the results.
    ///
    /// # Safety
    /// Called once, by one work-item, in the command that the targets were made for.
    #[doc(hidden)]
    unsafe fn finish(&self, all: Self::Value);

    /// The number of elements of a target that has not one.
    #[doc(hidden)]
    fn wrong_size(&self) -> Option<usize>;
}

// SAFETY: it writes to its target's element.
unsafe impl<T, O, M> Reductions for Reduction<'_, T, O, M>
where
    T: DeviceCopyable + AnyBits,
    O: Combine<T> + 'static,
    M: ModeFor<T> + Stores,
{
    type Reducers<'wi> = &'wi mut Reducer<T, O>;
    type Value = O::Value;
    type Slots = Reducer<T, O>;

    #[inline(always)]
    fn join(&self, first: O::Value, second: O::Value) -> O::Value {
        self.operator.join_results(first, second)
    }

    #[inline(always)]
    fn start(&self) -> Reducer<T, O> {
        self.operator.start()
    }

    #[inline(always)]
    fn reducers(slots: &mut Reducer<T, O>) -> &mut Reducer<T, O> {
        slots
    }

    #[inline(always)]
    fn end(slots: Reducer<T, O>) -> O::Value {
        O::end(slots)
    }

    #[inline(always)]
    unsafe fn finish(&self, all: O::Value) {
        let target = self.target.as_ptr();
        // SAFETY: the accessor has one element, which no other code of the command uses; with a mode that loads, it has a value.
        unsafe {
            let old = (M::MODE == AccessMode::ReadWrite && !M::NO_INIT).then(|| target.read());
            target.write(self.operator.finish(old, all));
        }
    }

    fn wrong_size(&self) -> Option<usize> {
        Some(self.target.size()).filter(|size| *size != 1)
    }
}

macro_rules! tuples {
    ($($values:ident: $($name:ident $index:tt),*;)*) => { $(
        /// What the reductions of a tuple give.
        #[doc(hidden)]
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub struct $values<$($name),*>($($name),*);

        // SAFETY: all parts are.
        unsafe impl<$($name: bytemuck::Zeroable),*> bytemuck::Zeroable for $values<$($name),*> {}
        // SAFETY: all parts are, and bytes between them are not read.
        unsafe impl<$($name: bytemuck::AnyBitPattern),*> bytemuck::AnyBitPattern for $values<$($name),*> {}
        // SAFETY: all parts are.
        unsafe impl<$($name: DeviceCopyable),*> DeviceCopyable for $values<$($name),*> {}

        // SAFETY: each part writes to its own target.
        unsafe impl<$($name: Reductions),*> Reductions for ($($name,)*) {
            type Reducers<'wi> = ($($name::Reducers<'wi>,)*);
            type Value = $values<$($name::Value),*>;
            type Slots = ($($name::Slots,)*);

            #[inline(always)]
            fn join(&self, first: Self::Value, second: Self::Value) -> Self::Value {
                $values($(self.$index.join(first.$index, second.$index)),*)
            }

            #[inline(always)]
            fn start(&self) -> Self::Slots {
                ($(self.$index.start(),)*)
            }

            #[inline(always)]
            fn reducers(slots: &mut Self::Slots) -> Self::Reducers<'_> {
                ($($name::reducers(&mut slots.$index),)*)
            }

            #[inline(always)]
            fn end(slots: Self::Slots) -> Self::Value {
                $values($($name::end(slots.$index)),*)
            }

            #[inline(always)]
            unsafe fn finish(&self, all: Self::Value) {
                // SAFETY: by the contract of this function.
                unsafe { $(self.$index.finish(all.$index);)* }
            }

            fn wrong_size(&self) -> Option<usize> {
                None$(.or(self.$index.wrong_size()))*
            }
        }
    )* };
}

tuples! {
    Values1: A 0;
    Values2: A 0, B 1;
    Values3: A 0, B 1, C 2;
    Values4: A 0, B 1, C 2, E 3;
    Values5: A 0, B 1, C 2, E 3, G 4;
    Values6: A 0, B 1, C 2, E 3, G 4, H 5;
}

/// Where the sums of tiles are that one launch makes for the next.
#[doc(hidden)]
pub struct Partials<V> {
    /// The first one of this launch.
    pub first: *mut V,
}

impl<V> Clone for Partials<V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for Partials<V> {}
// SAFETY: an address in memory of the command.
unsafe impl<V: Send> Send for Partials<V> {}
// SAFETY: as above.
unsafe impl<V: Sync> Sync for Partials<V> {}

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
    partials: Partials<R::Value>,
) where
    R: Reductions,
    K: for<'wi> Fn(Item<'wi, D>, R::Reducers<'wi>),
{
    let value = |i: usize| {
        let (mut id, mut rest) = ([0; D], i);
        for d in (1..D).rev() {
            id[d] = rest % range[d];
            rest /= range[d];
        }
        id[0] = rest;
        let mut slots = reductions.start();
        // SAFETY: each id of the range is that of one element.
        kernel(unsafe { Item::new(id, range, [0; D]) }, R::reducers(&mut slots));
        R::end(slots)
    };
    // The launch was refused if the range has more work-items than can be counted.
    let n = Range(range).size();
    // SAFETY: by the contract of this function.
    unsafe { reduce_tiles(&mut group, n, value, reductions, partials) };
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
    source: Partials<R::Value>,
    reductions: &R,
    partials: Partials<R::Value>,
) {
    // SAFETY: by the contract of this function.
    unsafe { reduce_tiles(&mut group, n, |i| source.first.add(i).read(), reductions, partials) };
}

/// Groups that reduce `n` elements.
#[doc(hidden)]
pub const fn groups(n: usize) -> usize {
    let groups = n.div_ceil(TILE).div_ceil(TILES);
    if groups == 0 { 1 } else { groups }
}

/// Reduces the tiles of one group. The only group of a launch finishes; others leave the sums of their tiles.
///
/// # Safety
/// The kernel of a launch of `groups(n)` groups. `partials` are as many values as the launch has tiles, which no other launch uses meanwhile.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn reduce_tiles<'wg, 'cg: 'wg, R: Reductions>(
    group: &mut Group<'wg, 'cg, 1, Fixed1<ITEMS>>,
    n: usize,
    value: impl Fn(usize) -> R::Value,
    reductions: &R,
    partials: Partials<R::Value>,
) {
    let tiles = n.div_ceil(TILE);
    let first_tile = group.linear_id() * TILES;
    let put = |tile: usize, sum: R::Value| {
        // SAFETY: each tile of the launch has a place of its own.
        unsafe { partials.first.add(tile).write(sum) };
    };
    let is_alone = tiles <= TILES;
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
                let sum = tile_on_device(
                    group,
                    if team == 0 { tiles } else { 0 },
                    |i| partials.first.add(i).read(),
                    reductions,
                );
                if group.local_linear_id() == 0 {
                    finish(reductions, tiles, sum);
                }
            }
            return;
        }
        for tile in first_tile..tiles.min(first_tile + TILES) {
            let len = (n - tile * TILE).min(TILE);
            put(tile, tile_on_host(len, |i| value(tile * TILE + i), reductions));
        }
        if is_alone {
            let sum = if tiles == 0 {
                R::end(reductions.start())
            } else {
                tile_on_host(tiles, |i| partials.first.add(i).read(), reductions)
            };
            finish(reductions, tiles, sum);
        }
    }
}

/// # Safety
/// As for [`Reductions::finish`].
#[inline(always)]
unsafe fn finish<R: Reductions>(reductions: &R, tiles: usize, sum: R::Value) {
    // SAFETY: by the contract of this function.
    unsafe { reductions.finish(if tiles == 0 { R::end(reductions.start()) } else { sum }) };
}

/// The sum of a tile of `len` elements, at least one, in native code.
#[inline(always)]
fn tile_on_host<R: Reductions>(len: usize, value: impl Fn(usize) -> R::Value, reductions: &R) -> R::Value {
    let mut sums = [R::Value::zeroed(); ACCUMULATORS];
    let filled = len.min(ACCUMULATORS);
    for (i, sum) in sums[..filled].iter_mut().enumerate() {
        *sum = value(i);
    }
    let rows = len / ACCUMULATORS;
    for row in 1..rows {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = reductions.join(*sum, value(row * ACCUMULATORS + i));
        }
    }
    if rows > 0 {
        for (i, sum) in sums[..len % ACCUMULATORS].iter_mut().enumerate() {
            *sum = reductions.join(*sum, value(rows * ACCUMULATORS + i));
        }
    }
    let mut half = ACCUMULATORS / 2;
    while half > 0 {
        let (left, right) = sums.split_at_mut(half);
        for (i, (left, right)) in left.iter_mut().zip(&right[..half]).enumerate() {
            if half + i < filled {
                *left = reductions.join(*left, *right);
            }
        }
        half /= 2;
    }
    sums[0]
}

/// The sum of a tile of `len` elements, for the first of the 32 work-items that call it together. Others, and all if there are none, get a value of
/// no use.
///
/// # Safety
/// Device code at group scope, which all work-items of the group call; `len` is the same for the 32 work-items of a block.
#[inline(always)]
unsafe fn tile_on_device<'wg, 'cg: 'wg, R: Reductions>(
    group: &Group<'wg, 'cg, 1, Fixed1<ITEMS>>,
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
                    *sum = reductions.join(*sum, value(i));
                    i += ACCUMULATORS;
                }
            }
        }
    }
    let join_if =
        |holds: bool, left: R::Value, right: R::Value| if holds { reductions.join(left, right) } else { left };
    for k in 0..OWN / 2 {
        sums[k] = join_if((k + OWN / 2) * BLOCK + lane < len, sums[k], sums[k + OWN / 2]);
    }
    let mut sum = join_if(BLOCK + lane < len, sums[0], sums[1]);
    // SAFETY: by the contract of this function. Between two meetings each place is written by one work-item, and read by the first of its block.
    unsafe {
        if builtin::has_shuffles() {
            let members = Members::of_block(ITEMS, 0);
            let mut half = BLOCK / 2;
            while half > 0 {
                let right = members.shuffle(sum, lane + half);
                sum = join_if(lane < half && lane + half < len, sum, right);
                half /= 2;
            }
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
