//! Atomic accessors: relaxed atomic operations at any index from any work-item.

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
// An atomic number must be aligned to its size, which 32-bit x86 does not do for 64-bit numbers.
#[cfg(all(target_has_atomic = "64", not(target_arch = "x86")))]
use core::sync::atomic::{AtomicI64, AtomicU64};

use oxisycl_types::Id;

use crate::builtin::{self, is_device_code};
use crate::{Accessor, Atomic, DeviceCopyable, InItem};

/// A number that atomic operations exist for: `u32 i32 u64 i64 f32 f64`, the 64-bit ones where the processor has them.
/// Implemented by this crate only.
///
/// # Safety
/// The operations are atomic with respect to each other and to the same operations on other devices' views of the memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations",
    note = "use u32, i32, u64, i64, f32 or f64"
)]
pub unsafe trait AtomicElement: DeviceCopyable + PartialOrd {
    /// # Safety
    /// For all methods: `pointer` is valid and aligned, and is accessed only atomically at the same time.
    #[doc(hidden)]
    unsafe fn load(pointer: *mut Self) -> Self;
    /// The sum, as `fetch_add` stores it.
    #[doc(hidden)]
    fn sum(self, other: Self) -> Self;
    /// The difference, as `fetch_sub` stores it.
    #[doc(hidden)]
    fn difference(self, other: Self) -> Self;
    /// # Safety
    /// See [`load`](Self::load).
    #[doc(hidden)]
    unsafe fn store(pointer: *mut Self, value: Self);
    /// # Safety
    /// See [`load`](Self::load).
    #[doc(hidden)]
    unsafe fn exchange(pointer: *mut Self, value: Self) -> Self;
    /// # Safety
    /// See [`load`](Self::load).
    #[doc(hidden)]
    unsafe fn compare_exchange(pointer: *mut Self, current: Self, new: Self) -> Result<Self, Self>;
    /// # Safety
    /// See [`load`](Self::load).
    #[doc(hidden)]
    unsafe fn fetch_add(pointer: *mut Self, value: Self) -> Self;
    /// # Safety
    /// See [`load`](Self::load).
    #[doc(hidden)]
    unsafe fn fetch_sub(pointer: *mut Self, value: Self) -> Self;

    /// # Safety
    /// See [`load`](Self::load).
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn fetch_min(pointer: *mut Self, value: Self) -> Self {
        // SAFETY: by the caller's contract.
        unsafe { Self::fetch_update(pointer, |old| if value < old { value } else { old }) }
    }

    /// # Safety
    /// See [`load`](Self::load).
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn fetch_max(pointer: *mut Self, value: Self) -> Self {
        // SAFETY: by the caller's contract.
        unsafe { Self::fetch_update(pointer, |old| if value > old { value } else { old }) }
    }

    /// # Safety
    /// See [`load`](Self::load).
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn fetch_update(pointer: *mut Self, mut f: impl FnMut(Self) -> Self) -> Self {
        // SAFETY: the caller's contract is that of both operations.
        unsafe {
            let mut current = Self::load(pointer);
            loop {
                match Self::compare_exchange(pointer, current, f(current)) {
                    Ok(old) => return old,
                    Err(now) => current = now,
                }
            }
        }
    }
}

macro_rules! integers {
    ($($t:ty, $atomic:ty;)*) => { $(
        // SAFETY: every operation is one operation of the standard library's atomic type of the same width.
        unsafe impl AtomicElement for $t {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn difference(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            unsafe fn load(pointer: *mut Self) -> Self {
                // SAFETY: the caller's contract is that of `from_ptr`.
                unsafe { <$atomic>::from_ptr(pointer) }.load(Relaxed)
            }
            #[inline(always)]
            unsafe fn store(pointer: *mut Self, value: Self) {
                // SAFETY: the caller's contract is that of `from_ptr`.
                unsafe { <$atomic>::from_ptr(pointer) }.store(value, Relaxed);
            }
            #[inline(always)]
            unsafe fn exchange(pointer: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's contract is that of `from_ptr`.
                unsafe { <$atomic>::from_ptr(pointer) }.swap(value, Relaxed)
            }
            #[inline(always)]
            unsafe fn compare_exchange(pointer: *mut Self, current: Self, new: Self) -> Result<Self, Self> {
                // SAFETY: the caller's contract is that of `from_ptr`.
                unsafe { <$atomic>::from_ptr(pointer) }.compare_exchange(current, new, Relaxed, Relaxed)
            }
            #[inline(always)]
            unsafe fn fetch_add(pointer: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's contract is that of `from_ptr`.
                unsafe { <$atomic>::from_ptr(pointer) }.fetch_add(value, Relaxed)
            }
            #[inline(always)]
            unsafe fn fetch_sub(pointer: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's contract is that of `from_ptr`.
                unsafe { <$atomic>::from_ptr(pointer) }.fetch_sub(value, Relaxed)
            }
        }
    )* };
}

integers! { u32, AtomicU32; i32, AtomicI32; }
#[cfg(all(target_has_atomic = "64", not(target_arch = "x86")))]
integers! { u64, AtomicU64; i64, AtomicI64; }

macro_rules! floats {
    ($($t:ty, $bits:ty, $add:path;)*) => { $(
        // SAFETY: every operation is one operation on the float or on the bits of the same width, or a loop of compare-exchanges on them.
        unsafe impl AtomicElement for $t {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn difference(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            unsafe fn load(pointer: *mut Self) -> Self {
                // SAFETY: the caller's contract; the bits have the float's size and alignment.
                Self::from_bits(unsafe { <$bits>::load(pointer.cast()) })
            }
            #[inline(always)]
            unsafe fn store(pointer: *mut Self, value: Self) {
                // SAFETY: as in `load`.
                unsafe { <$bits>::store(pointer.cast(), value.to_bits()) }
            }
            #[inline(always)]
            unsafe fn exchange(pointer: *mut Self, value: Self) -> Self {
                // SAFETY: as in `load`.
                Self::from_bits(unsafe { <$bits>::exchange(pointer.cast(), value.to_bits()) })
            }
            #[inline(always)]
            unsafe fn compare_exchange(pointer: *mut Self, current: Self, new: Self) -> Result<Self, Self> {
                // SAFETY: as in `load`.
                unsafe { <$bits>::compare_exchange(pointer.cast(), current.to_bits(), new.to_bits()) }
                    .map(Self::from_bits)
                    .map_err(Self::from_bits)
            }
            #[inline(always)]
            unsafe fn fetch_add(pointer: *mut Self, value: Self) -> Self {
                if is_device_code() {
                    // SAFETY: the caller's contract, and this is no native code.
                    return unsafe { $add(pointer, value) };
                }
                // SAFETY: as in `load`.
                unsafe { Self::fetch_update(pointer, |old| old + value) }
            }
            #[inline(always)]
            unsafe fn fetch_sub(pointer: *mut Self, value: Self) -> Self {
                if is_device_code() {
                    // SAFETY: as in `fetch_add`. A difference is a sum, to the bit.
                    return unsafe { $add(pointer, -value) };
                }
                // SAFETY: as in `load`.
                unsafe { Self::fetch_update(pointer, |old| old - value) }
            }
        }
    )* };
}

floats! { f32, u32, builtin::atomic_add_f32; }
#[cfg(all(target_has_atomic = "64", not(target_arch = "x86")))]
floats! { f64, u64, builtin::atomic_add_f64; }

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) -> $result:ty;)*) => {
        impl<T: AtomicElement, const D: usize> Accessor<'_, T, D, Atomic> { $(
            $(#[$doc])*
            ///
            /// # Panics
            /// If the index is outside the accessor's range.
            #[inline(always)]
            #[track_caller]
            pub fn $name<'k>(self, _item: impl InItem<'k>, index: impl Into<Id<D>>, $($argument: T),*) -> $result {
                // SAFETY: the element is inside the accessor's range, and an atomic accessor is the only way to it in this
                // command group.
                unsafe { T::$name(self.atomic_element(index), $($argument),*) }
            }
        )* }
    };
}

operations! {
    /// Loads the element.
    load() -> T;
    /// Stores to the element.
    store(value) -> ();
    /// Stores to the element and returns its old value.
    exchange(value) -> T;
    /// Stores `new` if the element equals `current` (floats: has the same bits). `Ok` and `Err` hold the old value.
    compare_exchange(current, new) -> Result<T, T>;
    /// Adds and returns the old value; integers wrap.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![0])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_add(item, 0, item.index() as u64);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [45]);
    /// # Ok(())
    /// # }
    /// ```
    fetch_add(value) -> T;
    /// Subtracts and returns the old value; integers wrap.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![100])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_sub(item, 0, item.index() as u64);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [55]);
    /// # Ok(())
    /// # }
    /// ```
    fetch_sub(value) -> T;
}

impl<T: AtomicElement, const D: usize> Accessor<'_, T, D, Atomic> {
    /// Stores the smaller of the element and `value`, and returns the old value.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![100u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_min(item, 0, 7 + item.index() as u32);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_min<'k>(self, item: impl InItem<'k>, index: impl Into<Id<D>>, value: T) -> T {
        self.fetch_update(item, index, |old| if value < old { value } else { old })
    }

    /// Stores the larger of the element and `value`, and returns the old value.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![0u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_max(item, 0, item.index() as u32);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_max<'k>(self, item: impl InItem<'k>, index: impl Into<Id<D>>, value: T) -> T {
        self.fetch_update(item, index, |old| if value > old { value } else { old })
    }

    /// Stores `f` of the element, and returns the old value. `f` may be called several times.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let total = Buffer::from_vec(vec![1u32])?;
    /// Queue::default()?.submit(|cg| {
    ///     let total = cg.access(&total, Atomic);
    ///     cg.parallel_for(10, move |item| {
    ///         total.fetch_update(item, 0, |old| 2 * old);
    ///     })
    /// })?;
    /// assert_eq!(total.to_vec()?, [1024]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the accessor's range.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_update<'k>(self, _item: impl InItem<'k>, index: impl Into<Id<D>>, f: impl FnMut(T) -> T) -> T {
        // SAFETY: as in the other operations.
        unsafe { T::fetch_update(self.atomic_element(index), f) }
    }
}
