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

use super::collective::{BLOCK, Members};
use super::scope::Group;
use super::shape::Fixed1;
use crate::advice::AnyBits;
use crate::operator::{Identity, Operator};
use crate::{Accessor, DeviceCopyable, Item, Loads, Mode, Stores, builtin};

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
pub fn reduction<'cg, T, O, M>(target: Accessor<'cg, T, 1, M>, operator: O) -> Reduction<'cg, T, O, M>
where
    T: DeviceCopyable + AnyBits,
    O: Identity<T> + 'static,
    M: Stores,
{
    Reduction { target, operator }
}

/// A reduction whose operator has no identity, such as a closure. The old value is part of the result, so that there is one where no work-item
/// combines anything.
pub fn reduction_without_identity<'cg, T, O, M>(
    target: Accessor<'cg, T, 1, M>,
    operator: O,
) -> Reduction<'cg, T, Lifted<O>, M>
where
    T: DeviceCopyable + AnyBits,
    O: Operator<T> + 'static,
    M: Stores + Loads,
{
    Reduction { target, operator: Lifted(operator) }
}

/// An operator without an identity, over values that may be missing.
#[derive(Clone, Copy)]
pub struct Lifted<O>(O);

/// What a work-item gives its values to (SYCL 2020 section 4.9.2.3). It may combine none, one or several.
///
/// A reducer stays with its work-item: it is neither `Copy` nor does it outlive the kernel's call.
pub struct Reducer<'wi, T, O> {
    value: T,
    has_value: bool,
    operator: O,
    lifetime: PhantomData<fn(&'wi ()) -> &'wi ()>,
}

impl<T: Copy, O: Operator<T>> Reducer<'_, T, O> {
    /// Adds a value to the result.
    #[inline(always)]
    pub fn combine(&mut self, value: T) {
        self.value = if self.has_value { self.operator.combine(self.value, value) } else { value };
        self.has_value = true;
    }
}

impl<T, O: Identity<T>> Reducer<'_, T, O> {
    /// The value that changes no other.
    #[inline(always)]
    pub fn identity(&self) -> T {
        self.operator.identity()
    }
}

macro_rules! assigning {
    ($($trait:ident $function:ident: $operator:ident;)*) => { $(
        impl<T: Copy> core::ops::$trait<T> for Reducer<'_, T, crate::operator::$operator>
        where
            crate::operator::$operator: Operator<T>,
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
// SAFETY: both parts are, and nothing depends on bytes between them.
unsafe impl<T: bytemuck::AnyBitPattern> bytemuck::AnyBitPattern for Maybe<T> {}
// SAFETY: both parts are.
unsafe impl<T: DeviceCopyable> DeviceCopyable for Maybe<T> {}

impl<T: Copy, O: Operator<T>> Operator<Maybe<T>> for Lifted<O> {
    #[inline(always)]
    fn combine(&self, first: Maybe<T>, second: Maybe<T>) -> Maybe<T> {
        match (first.has_value, second.has_value) {
            (0, _) => second,
            (_, 0) => first,
            _ => Maybe { value: self.0.combine(first.value, second.value), has_value: 1 },
        }
    }
}

/// One reduction, or a tuple of up to six. Implemented by this crate only.
///
/// # Safety
/// `finish` writes to the targets of the reductions only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reduction",
    note = "use `reduction(accessor, Sum)`, or a tuple of up to six of them"
)]
pub unsafe trait Reductions: Copy + Send + Sync {
    /// What a work-item gets.
    type Reducers<'wi>;
    /// What a work-item gives, and all of them together.
    #[doc(hidden)]
    type Value: DeviceCopyable + AnyBits;
    /// Combines such values.
    #[doc(hidden)]
    type Operator: Operator<Self::Value>;

    #[doc(hidden)]
    fn operator(&self) -> Self::Operator;

    /// What work-items that combine nothing give.
    #[doc(hidden)]
    fn nothing(&self) -> Self::Value;

    /// What one work-item gives. `run` gets the reducers.
    #[doc(hidden)]
    fn of_item<'wi>(&self, run: impl FnOnce(Self::Reducers<'wi>) -> Self::Reducers<'wi>) -> Self::Value;

    /// Writes the result.
    ///
    /// # Safety
    /// Called once, by one work-item, in the command that the targets were made for.
    #[doc(hidden)]
    unsafe fn finish(&self, all: Self::Value);

    /// The number of elements of a target that has not one.
    #[doc(hidden)]
    fn wrong_size(&self) -> Option<usize>;
}
