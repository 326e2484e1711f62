//! Reductions (SYCL 2020 section 4.9.2): many values become one, by one fixed tree.
//!
//! # The tree
//!
//! Elements form tiles of [`TILE`], by their row-major numbers. Element `i` of a tile belongs to accumulator `i mod 64`, which combines its elements from
//! left to right. Accumulators are then combined by halves: first `a` with `a + 32` for each `a` below 32, then with `a + 16`, down to
//! `a + 1`. Missing ones are skipped. The sums of tiles are elements again, until one is left. A target whose old value counts is combined
//! with the result, on the left.
//!
//! Nothing of this depends on the device, on the number of threads, or on which of them is faster. So a sum of floats has the same bits everywhere,
//! if its elements have.

mod by_group;
mod reducer;
mod span;
mod target;
mod tree;

use core::marker::PhantomData;

use crate::advice::AnyBits;
use crate::operator::{Identity, Operator};
use crate::{Accessor, DeviceCopyable, Loads, ModeFor, Stores};

#[doc(hidden)]
pub use by_group::{are_by_group, is_by_group};
#[doc(hidden)]
pub use reducer::{Combine, Maybe};
pub use reducer::{Reducer, WithIdentity, WithoutIdentity};
pub use span::SpanReduction;
pub use target::{Target, UsmTarget};
pub use tree::TILE;
#[doc(hidden)]
pub use tree::{ITEMS, Partials, TILES, give, give_of_group, groups, reduce_partials, reduce_range};

/// One reduction: where its result goes, and what it is made by. See [`reduction`].
pub struct Reduction<T, O, G> {
    target: G,
    operator: O,
    element: PhantomData<fn() -> T>,
}

impl<T, O: Clone, G: Clone> Clone for Reduction<T, O, G> {
    fn clone(&self) -> Self {
        Self { target: self.target.clone(), operator: self.operator.clone(), element: PhantomData }
    }
}
impl<T, O: Copy, G: Copy> Copy for Reduction<T, O, G> {}

/// A reduction into an accessor of one element, whose operator has an identity (SYCL 2020 section 4.9.2.1).
///
/// With mode `ReadWrite`, the old value is part of the result. With `Write`, the result replaces it.
///
/// ```
/// use oxisycl::operator::Sum;
/// use oxisycl::prelude::*;
/// use oxisycl::reduction::reduction;
///
/// # fn main() -> oxisycl::Result {
/// let account = Buffer::from_vec(vec![1000u64])?;
/// Queue::default()?.submit(|cg| {
///     let account = reduction(cg.access(&account, ReadWrite), Sum);
///     cg.parallel_reduce(100, account, |item, account| *account += item.linear_id() as u64)
/// })?;
/// assert_eq!(account.to_vec()?, [1000 + 4950]);
/// # Ok(())
/// # }
/// ```
pub fn reduction<'cg, T, O, M>(
    target: Accessor<'cg, T, 1, M>,
    operator: O,
) -> Reduction<T, WithIdentity<O>, Accessor<'cg, T, 1, M>>
where
    T: DeviceCopyable + AnyBits,
    O: Identity<T> + 'static,
    M: ModeFor<T> + Stores,
{
    Reduction { target, operator: WithIdentity::new(operator), element: PhantomData }
}

/// A reduction whose operator has no identity, such as a closure. The old value is part of the result: it is the result where work-items combine
/// nothing.
///
/// ```
/// use oxisycl::prelude::*;
/// use oxisycl::reduction::reduction_without_identity;
///
/// # fn main() -> oxisycl::Result {
/// // The lowest reading, and its number; of equal ones the first.
/// let readings = Buffer::from_vec(vec![17u32, 12, 30, 12])?;
/// let lowest = Buffer::from_vec(vec![[u32::MAX; 2]])?;
/// Queue::default()?.submit(|cg| {
///     let readings = cg.access(&readings, Read);
///     let lower = |a: [u32; 2], b: [u32; 2]| a.min(b);
///     let lowest = reduction_without_identity(cg.access(&lowest, ReadWrite), lower);
///     cg.parallel_reduce(4, lowest, move |item, lowest| {
///         lowest.combine([readings.get(item), item.linear_id() as u32]);
///     })
/// })?;
/// assert_eq!(lowest.to_vec()?, [[12, 1]]);
/// # Ok(())
/// # }
/// ```
pub fn reduction_without_identity<'cg, T, O, M>(
    target: Accessor<'cg, T, 1, M>,
    operator: O,
) -> Reduction<T, WithoutIdentity<O>, Accessor<'cg, T, 1, M>>
where
    T: DeviceCopyable + AnyBits,
    O: Operator<T> + 'static,
    M: ModeFor<T> + Stores + Loads,
{
    Reduction { target, operator: WithoutIdentity::new(operator), element: PhantomData }
}

/// A reduction into an element in memory of USM, whose operator has an identity. The old value is part of the result, unless the reduction is to
/// [`initialize_to_identity`](Reduction::initialize_to_identity).
///
/// ```
/// use oxisycl::operator::Sum;
/// use oxisycl::prelude::*;
/// use oxisycl::reduction::reduction_usm;
///
/// # fn main() -> oxisycl::Result {
/// let queue = Queue::default()?;
/// let mut account = queue.malloc_device::<u64>(1)?;
/// account.copy_from_slice(&queue, &[1000])?;
/// // SAFETY: the allocation has one element, and nothing else uses it until the event is complete.
/// let into = unsafe { reduction_usm(account.pointer().as_ptr(), Sum) };
/// queue.submit(|cg| {
///     cg.parallel_reduce(100, into, |item, account| *account += item.linear_id() as u64)
/// })?.wait()?;
/// assert_eq!(account.to_vec(&queue)?, [1000 + 4950]);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// While a command that has the reduction is under way, the element lies in an allocation that the command's device can use. Nothing else
/// accesses the element. It holds a value, unless that is replaced. For a [span](Reduction::span), this holds for as many elements.
pub unsafe fn reduction_usm<T, O>(target: *mut T, operator: O) -> Reduction<T, WithIdentity<O>, UsmTarget<T, true>>
where
    T: DeviceCopyable + AnyBits,
    O: Identity<T> + 'static,
{
    Reduction { target: UsmTarget(target), operator: WithIdentity::new(operator), element: PhantomData }
}

/// A reduction into an element in memory of USM, whose operator has no identity, such as a closure. The old value is part of the result.
///
/// # Safety
/// As for [`reduction_usm`].
pub unsafe fn reduction_usm_without_identity<T, O>(
    target: *mut T,
    operator: O,
) -> Reduction<T, WithoutIdentity<O>, UsmTarget<T, true>>
where
    T: DeviceCopyable + AnyBits,
    O: Operator<T> + 'static,
{
    Reduction { target: UsmTarget(target), operator: WithoutIdentity::new(operator), element: PhantomData }
}

impl<T, O> Reduction<T, WithIdentity<O>, UsmTarget<T, true>> {
    /// The reduction whose result replaces the old value (SYCL 2020 `property::reduction::initialize_to_identity`). For an accessor, its mode says that.
    #[must_use]
    pub fn initialize_to_identity(self) -> Reduction<T, WithIdentity<O>, UsmTarget<T, false>> {
        Reduction { target: UsmTarget(self.target.0), operator: self.operator, element: PhantomData }
    }
}

impl<T, O: Combine<T>, G: Target<T>> Reduction<T, O, G> {
    /// Writes a result.
    ///
    /// # Safety
    /// As for [`Reductions::finish`]. The target has an element of that index.
    #[inline(always)]
    unsafe fn finish_at(&self, index: usize, all: O::Value) {
        // SAFETY: by the contracts of this function and of [`Target`].
        unsafe {
            let target = self.target.first().add(index);
            let old = G::INCLUDES_OLD.then(|| target.read());
            target.write(self.operator.finish(old, all));
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

    /// The accumulators of a tile in native code.
    #[doc(hidden)]
    type Sums;

    #[doc(hidden)]
    fn no_sums() -> Self::Sums;

    /// What an accumulator has.
    ///
    /// # Safety
    /// There is an accumulator of that index, which nothing else accesses meanwhile.
    #[doc(hidden)]
    unsafe fn sum(sums: *const Self::Sums, index: usize) -> Self::Value;

    /// Has an accumulator hold a value.
    ///
    /// # Safety
    /// As for [`sum`](Self::sum).
    #[doc(hidden)]
    unsafe fn set_sum(sums: *mut Self::Sums, index: usize, value: Self::Value);

    /// Writes the results.
    ///
    /// # Safety
    /// Called once, by one work-item, in the command that the targets were made for.
    #[doc(hidden)]
    unsafe fn finish(&self, all: Self::Value);

    /// How many elements a target has, and should have, if that differs.
    #[doc(hidden)]
    fn wrong_size(&self) -> Option<(usize, usize)>;
}

// SAFETY: it writes to its target's element.
unsafe impl<T, O, G> Reductions for Reduction<T, O, G>
where
    T: DeviceCopyable + AnyBits,
    O: Combine<T> + 'static,
    G: Target<T>,
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

    type Sums = O::Sums;

    #[inline(always)]
    fn no_sums() -> O::Sums {
        O::no_sums()
    }

    #[inline(always)]
    unsafe fn sum(sums: *const O::Sums, index: usize) -> O::Value {
        // SAFETY: by the contract of this function.
        unsafe { O::sum(sums, index) }
    }

    #[inline(always)]
    unsafe fn set_sum(sums: *mut O::Sums, index: usize, value: O::Value) {
        // SAFETY: by the contract of this function.
        unsafe { O::set_sum(sums, index, value) };
    }

    #[inline(always)]
    unsafe fn finish(&self, all: O::Value) {
        // SAFETY: by the contract of this function; the target has an element.
        unsafe { self.finish_at(0, all) };
    }

    fn wrong_size(&self) -> Option<(usize, usize)> {
        self.target.size().filter(|size| *size != 1).map(|size| (size, 1))
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

            type Sums = ($($name::Sums,)*);

            #[inline(always)]
            fn no_sums() -> Self::Sums {
                ($($name::no_sums(),)*)
            }

            #[inline(always)]
            unsafe fn sum(sums: *const Self::Sums, index: usize) -> Self::Value {
                // SAFETY: by the contract of this function.
                unsafe { $values($($name::sum(&raw const (*sums).$index, index)),*) }
            }

            #[inline(always)]
            unsafe fn set_sum(sums: *mut Self::Sums, index: usize, value: Self::Value) {
                // SAFETY: by the contract of this function.
                unsafe { $($name::set_sum(&raw mut (*sums).$index, index, value.$index);)* }
            }

            #[inline(always)]
            unsafe fn finish(&self, all: Self::Value) {
                // SAFETY: by the contract of this function.
                unsafe { $(self.$index.finish(all.$index);)* }
            }

            fn wrong_size(&self) -> Option<(usize, usize)> {
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
