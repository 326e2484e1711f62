//! Reducers, and how operators with and without an identity combine what they get.

use core::marker::PhantomData;

use super::tree::ACCUMULATORS;
use crate::DeviceCopyable;
use crate::advice::AnyBits;
use crate::item::NotSend;
use crate::operator::{self, Identity, Operator};

/// What a work-item gives its values to (SYCL 2020 section 4.9.2.3). It may combine none, one or several.
///
/// A reducer stays with its work-item: only the launch makes one, and it is neither copied nor kept.
pub struct Reducer<T, O> {
    value: T,
    has_value: bool,
    operator: O,
    not_send: NotSend,
}

impl<T: Copy, O: Combine<T>> Reducer<T, O> {
    /// Adds a value to the result.
    ///
    /// ```
    /// use oxisycl::operator::Min;
    /// use oxisycl::prelude::*;
    /// use oxisycl::reduction::reduction;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![8u32, 3, 5, 12])?;
    /// let smallest_even = Buffer::from_vec(vec![u32::MAX])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, Read);
    ///     let smallest = reduction(cg.access(&smallest_even, Write), Min);
    ///     cg.parallel_reduce(4, smallest, move |item, smallest| {
    ///         let number = numbers.get(item);
    ///         if number % 2 == 0 {
    ///             smallest.combine(number);
    ///         }
    ///     })
    /// })?;
    /// assert_eq!(smallest_even.to_vec()?, [8]);
    /// # Ok(())
    /// # }
    /// ```
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

    /// The accumulators of a tile in native code. Each part of a value has an array, so that neighbours are loaded at once.
    type Sums;
    /// Accumulators that have nothing yet.
    fn no_sums() -> Self::Sums;
    /// What an accumulator has.
    ///
    /// # Safety
    /// `index` is below [`ACCUMULATORS`]. Nothing else accesses that accumulator meanwhile.
    unsafe fn sum(sums: *const Self::Sums, index: usize) -> Self::Value;
    /// Has an accumulator hold a value.
    ///
    /// # Safety
    /// As for [`sum`](Self::sum).
    unsafe fn set_sum(sums: *mut Self::Sums, index: usize, value: Self::Value);
}

/// An operator that is used with its identity.
#[derive(Clone, Copy, Debug)]
pub struct WithIdentity<O>(O);

impl<O> WithIdentity<O> {
    pub(super) fn new(operator: O) -> Self {
        Self(operator)
    }
}

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

    type Sums = [T; ACCUMULATORS];

    #[inline(always)]
    fn no_sums() -> Self::Sums {
        [T::zeroed(); ACCUMULATORS]
    }

    #[inline(always)]
    unsafe fn sum(sums: *const Self::Sums, index: usize) -> T {
        // SAFETY: by the contract of this function.
        unsafe { sums.cast::<T>().add(index).read() }
    }

    #[inline(always)]
    unsafe fn set_sum(sums: *mut Self::Sums, index: usize, value: T) {
        // SAFETY: by the contract of this function.
        unsafe { sums.cast::<T>().add(index).write(value) };
    }
}

/// An operator that is used without an identity.
#[derive(Clone, Copy, Debug)]
pub struct WithoutIdentity<O>(O);

impl<O> WithoutIdentity<O> {
    pub(super) fn new(operator: O) -> Self {
        Self(operator)
    }
}

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

    type Sums = ([T; ACCUMULATORS], [u8; ACCUMULATORS]);

    #[inline(always)]
    fn no_sums() -> Self::Sums {
        ([T::zeroed(); ACCUMULATORS], [0; ACCUMULATORS])
    }

    #[inline(always)]
    unsafe fn sum(sums: *const Self::Sums, index: usize) -> Maybe<T> {
        // SAFETY: by the contract of this function.
        unsafe {
            let (values, has_values) = (&raw const (*sums).0, &raw const (*sums).1);
            Maybe { value: values.cast::<T>().add(index).read(), has_value: has_values.cast::<u8>().add(index).read() }
        }
    }

    #[inline(always)]
    unsafe fn set_sum(sums: *mut Self::Sums, index: usize, value: Maybe<T>) {
        // SAFETY: by the contract of this function.
        unsafe {
            let (values, has_values) = (&raw mut (*sums).0, &raw mut (*sums).1);
            values.cast::<T>().add(index).write(value.value);
            has_values.cast::<u8>().add(index).write(value.has_value);
        }
    }
}
