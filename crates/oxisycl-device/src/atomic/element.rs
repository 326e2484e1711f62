//! Numbers that have atomic operations: by the standard library in native code, and by builtins on devices.

use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicU32};
// An atomic number must be aligned to its size, which 32-bit x86 does not do for 64-bit numbers.
#[cfg(all(target_has_atomic = "64", not(target_arch = "x86")))]
use core::sync::atomic::{AtomicI64, AtomicU64};

use super::order::code;
use super::{Order, Scope};
use crate::DeviceCopyable;
use crate::builtin::{self, is_device_code};

/// A value that an [`AtomicRef`](super::AtomicRef) leads to: an [`AtomicElement`], or a `u128` for relaxed loads and stores alone.
/// Implemented by this crate only.
///
/// # Safety
/// Loads and stores are atomic with respect to each other.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations",
    note = "use u32, i32, u64, i64, f32 or f64, or u128 for loads and stores"
)]
pub unsafe trait AtomicValue: DeviceCopyable {
    /// Whether no processor and no device needs a lock.
    #[doc(hidden)]
    const IS_ALWAYS_LOCK_FREE: bool = true;
    /// Whether the processor or the device that runs this needs no lock.
    #[doc(hidden)]
    #[inline(always)]
    fn is_lock_free() -> bool {
        Self::IS_ALWAYS_LOCK_FREE
    }
    /// # Safety
    /// For all methods: `pointer` is valid and aligned, and is accessed only atomically at the same time. The type takes the order, which is one
    /// for loads.
    #[doc(hidden)]
    unsafe fn load(pointer: *mut Self, order: Ordering, scope: Scope) -> Self;
    /// # Safety
    /// See [`load`](Self::load). The order is one for stores.
    #[doc(hidden)]
    unsafe fn store(pointer: *mut Self, value: Self, order: Ordering, scope: Scope);
}

/// A value whose atomic loads and stores can have the order `O`: any [`AtomicElement`], and `u128` for [`Relaxed`](super::Relaxed).
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic loads and stores of the order `{O}`",
    note = "those of u128 are `Relaxed`"
)]
pub trait TakesOrder<O: Order>: AtomicValue {}

impl<T: AtomicElement, O: Order> TakesOrder<O> for T {}

/// A number that atomic operations exist for: `u32 i32 u64 i64 f32 f64`, the 64-bit ones where the processor has them.
/// Implemented by this crate only.
///
/// # Safety
/// The operations are atomic with respect to each other and to the same operations on other devices' views of the memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations",
    note = "use u32, i32, u64, i64, f32 or f64"
)]
pub unsafe trait AtomicElement: AtomicValue + PartialOrd {
    /// The sum, as `fetch_add` stores it.
    #[doc(hidden)]
    fn sum(self, other: Self) -> Self;
    /// The difference, as `fetch_sub` stores it.
    #[doc(hidden)]
    fn difference(self, other: Self) -> Self;
    /// # Safety
    /// See [`load`](AtomicValue::load).
    #[doc(hidden)]
    unsafe fn exchange(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self;
    /// # Safety
    /// See [`load`](AtomicValue::load); the second order is one for loads.
    #[doc(hidden)]
    unsafe fn compare_exchange(
        pointer: *mut Self,
        current: Self,
        new: Self,
        orders: (Ordering, Ordering),
        scope: Scope,
    ) -> Result<Self, Self>;
    /// May fail without a reason.
    ///
    /// # Safety
    /// See [`compare_exchange`](Self::compare_exchange).
    #[doc(hidden)]
    unsafe fn compare_exchange_weak(
        pointer: *mut Self,
        current: Self,
        new: Self,
        orders: (Ordering, Ordering),
        scope: Scope,
    ) -> Result<Self, Self>;
    /// # Safety
    /// See [`load`](AtomicValue::load).
    #[doc(hidden)]
    unsafe fn fetch_add(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self;
    /// # Safety
    /// See [`load`](AtomicValue::load).
    #[doc(hidden)]
    unsafe fn fetch_sub(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self;

    /// # Safety
    /// See [`load`](AtomicValue::load).
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn fetch_min(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self {
        // SAFETY: by the caller's contract.
        unsafe { Self::fetch_update(pointer, order, scope, |old| if value < old { value } else { old }) }
    }

    /// # Safety
    /// See [`load`](AtomicValue::load).
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn fetch_max(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self {
        // SAFETY: by the caller's contract.
        unsafe { Self::fetch_update(pointer, order, scope, |old| if value > old { value } else { old }) }
    }

    /// # Safety
    /// See [`load`](AtomicValue::load).
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn fetch_update(pointer: *mut Self, order: Ordering, scope: Scope, mut f: impl FnMut(Self) -> Self) -> Self {
        // SAFETY: the caller's contract is that of both operations.
        unsafe {
            let mut current = Self::load(pointer, Relaxed, scope);
            loop {
                match Self::compare_exchange_weak(pointer, current, f(current), (order, Relaxed), scope) {
                    Ok(old) => return old,
                    Err(now) => current = now,
                }
            }
        }
    }
}

/// An integer that atomic operations on bits exist for: `u32 i32 u64 i64`, the 64-bit ones where the processor has them. Implemented by
/// this crate only.
///
/// # Safety
/// As for [`AtomicElement`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations on bits",
    note = "use u32, i32, u64 or i64"
)]
pub unsafe trait AtomicInteger: AtomicElement {
    /// # Safety
    /// See [`AtomicValue::load`].
    #[doc(hidden)]
    unsafe fn fetch_and(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self;
    /// # Safety
    /// See [`AtomicValue::load`].
    #[doc(hidden)]
    unsafe fn fetch_or(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self;
    /// # Safety
    /// See [`AtomicValue::load`].
    #[doc(hidden)]
    unsafe fn fetch_xor(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self;
    /// The bits that both have.
    #[doc(hidden)]
    fn and(self, other: Self) -> Self;
    /// The bits that one of them has, or both.
    #[doc(hidden)]
    fn or(self, other: Self) -> Self;
    /// The bits that one of them has.
    #[doc(hidden)]
    fn xor(self, other: Self) -> Self;
}

/// Read-modify-write operations: the function, the standard library's, the builtin, and what it makes of the operand before.
macro_rules! changes {
    ($t:ty, $bits:ty, $atomic:ty: $($name:ident $native:ident $builtin:ident |$value:ident| $operand:expr;)*) => { $(
        #[inline(always)]
        unsafe fn $name(pointer: *mut Self, $value: Self, order: Ordering, scope: Scope) -> Self {
            if is_device_code() {
                // SAFETY: the caller's contract, and this is no native code.
                return unsafe {
                    builtin::$builtin(pointer.cast(), $operand as $bits, code(order), scope.code()) as $t
                };
            }
            // SAFETY: the caller's contract is that of `from_ptr`.
            unsafe { <$atomic>::from_ptr(pointer) }.$native($value, order)
        }
    )* };
}

macro_rules! compare_exchanges {
    ($t:ty, $bits:ty, $atomic:ty, $builtin:ident: $($name:ident)*) => { $(
        #[inline(always)]
        unsafe fn $name(
            pointer: *mut Self,
            current: Self,
            new: Self,
            (success, failure): (Ordering, Ordering),
            scope: Scope,
        ) -> Result<Self, Self> {
            if is_device_code() {
                let (success, failure) = (code(success), code(failure));
                // SAFETY: the caller's contract, and this is no native code.
                let old = unsafe {
                    builtin::$builtin(pointer.cast(), current as $bits, new as $bits, success, failure, scope.code())
                } as $t;
                return if old == current { Ok(old) } else { Err(old) };
            }
            // SAFETY: the caller's contract is that of `from_ptr`.
            unsafe { <$atomic>::from_ptr(pointer) }.$name(current, new, success, failure)
        }
    )* };
}

macro_rules! integers {
    ($(
        $t:ty, $bits:ty, $atomic:ty, $load:ident $store:ident $exchange:ident $compare_exchange:ident $add:ident $min:ident
        $max:ident $and:ident $or:ident $xor:ident;
    )*) => { $(
        // SAFETY: as below.
        unsafe impl AtomicValue for $t {
            #[inline(always)]
            unsafe fn load(pointer: *mut Self, order: Ordering, scope: Scope) -> Self {
                if is_device_code() {
                    // SAFETY: the caller's contract, and this is no native code.
                    return unsafe { builtin::$load(pointer.cast(), code(order), scope.code()) as $t };
                }
                // SAFETY: the caller's contract is that of `from_ptr`.
                unsafe { <$atomic>::from_ptr(pointer) }.load(order)
            }
            #[inline(always)]
            unsafe fn store(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) {
                if is_device_code() {
                    // SAFETY: the caller's contract, and this is no native code.
                    return unsafe { builtin::$store(pointer.cast(), value as $bits, code(order), scope.code()) };
                }
                // SAFETY: the caller's contract is that of `from_ptr`.
                unsafe { <$atomic>::from_ptr(pointer) }.store(value, order);
            }
        }
        // SAFETY: every operation is one operation of the standard library's atomic type of the same width, or of the device.
        unsafe impl AtomicElement for $t {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn difference(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            compare_exchanges! { $t, $bits, $atomic, $compare_exchange: compare_exchange compare_exchange_weak }
            changes! { $t, $bits, $atomic:
                exchange swap $exchange |value| value;
                fetch_add fetch_add $add |value| value;
                fetch_sub fetch_sub $add |value| value.wrapping_neg();
                fetch_min fetch_min $min |value| value;
                fetch_max fetch_max $max |value| value;
            }
        }

        // SAFETY: as above.
        unsafe impl AtomicInteger for $t {
            changes! { $t, $bits, $atomic:
                fetch_and fetch_and $and |value| value;
                fetch_or fetch_or $or |value| value;
                fetch_xor fetch_xor $xor |value| value;
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
        }
    )* };
}

integers! {
    u32, u32, AtomicU32, atomic_load_u32 atomic_store_u32 atomic_exchange_u32 atomic_compare_exchange_u32 atomic_add_u32 atomic_min_u32
    atomic_max_u32 atomic_and_u32 atomic_or_u32 atomic_xor_u32;
    i32, u32, AtomicI32, atomic_load_u32 atomic_store_u32 atomic_exchange_u32 atomic_compare_exchange_u32 atomic_add_u32 atomic_min_i32
    atomic_max_i32 atomic_and_u32 atomic_or_u32 atomic_xor_u32;
}
#[cfg(all(target_has_atomic = "64", not(target_arch = "x86")))]
integers! {
    u64, u64, AtomicU64, atomic_load_u64 atomic_store_u64 atomic_exchange_u64 atomic_compare_exchange_u64 atomic_add_u64 atomic_min_u64
    atomic_max_u64 atomic_and_u64 atomic_or_u64 atomic_xor_u64;
    i64, u64, AtomicI64, atomic_load_u64 atomic_store_u64 atomic_exchange_u64 atomic_compare_exchange_u64 atomic_add_u64 atomic_min_i64
    atomic_max_i64 atomic_and_u64 atomic_or_u64 atomic_xor_u64;
}

macro_rules! floats {
    ($($t:ty, $bits:ty, $add:path;)*) => { $(
        // SAFETY: as below.
        unsafe impl AtomicValue for $t {
            #[inline(always)]
            unsafe fn load(pointer: *mut Self, order: Ordering, scope: Scope) -> Self {
                // SAFETY: the caller's contract; the bits have the float's size and alignment.
                Self::from_bits(unsafe { <$bits>::load(pointer.cast(), order, scope) })
            }
            #[inline(always)]
            unsafe fn store(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) {
                // SAFETY: as in `load`.
                unsafe { <$bits>::store(pointer.cast(), value.to_bits(), order, scope) }
            }
        }
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
            unsafe fn exchange(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self {
                // SAFETY: as in `load`.
                Self::from_bits(unsafe { <$bits>::exchange(pointer.cast(), value.to_bits(), order, scope) })
            }
            #[inline(always)]
            unsafe fn compare_exchange(
                pointer: *mut Self,
                current: Self,
                new: Self,
                orders: (Ordering, Ordering),
                scope: Scope,
            ) -> Result<Self, Self> {
                let (current, new) = (current.to_bits(), new.to_bits());
                // SAFETY: as in `load`.
                unsafe { <$bits>::compare_exchange(pointer.cast(), current, new, orders, scope) }
                    .map(Self::from_bits)
                    .map_err(Self::from_bits)
            }
            #[inline(always)]
            unsafe fn compare_exchange_weak(
                pointer: *mut Self,
                current: Self,
                new: Self,
                orders: (Ordering, Ordering),
                scope: Scope,
            ) -> Result<Self, Self> {
                let (current, new) = (current.to_bits(), new.to_bits());
                // SAFETY: as in `load`.
                unsafe { <$bits>::compare_exchange_weak(pointer.cast(), current, new, orders, scope) }
                    .map(Self::from_bits)
                    .map_err(Self::from_bits)
            }
            #[inline(always)]
            unsafe fn fetch_add(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self {
                if is_device_code() {
                    // SAFETY: the caller's contract, and this is no native code.
                    return unsafe { $add(pointer, value, code(order), scope.code()) };
                }
                // SAFETY: as in `load`.
                unsafe { Self::fetch_update(pointer, order, scope, |old| old + value) }
            }
            #[inline(always)]
            unsafe fn fetch_sub(pointer: *mut Self, value: Self, order: Ordering, scope: Scope) -> Self {
                if is_device_code() {
                    // SAFETY: as in `fetch_add`. A difference is a sum, to the bit.
                    return unsafe { $add(pointer, -value, code(order), scope.code()) };
                }
                // SAFETY: as in `load`.
                unsafe { Self::fetch_update(pointer, order, scope, |old| old - value) }
            }
        }
    )* };
}

floats! { f32, u32, builtin::atomic_add_f32; }
#[cfg(all(target_has_atomic = "64", not(target_arch = "x86")))]
floats! { f64, u64, builtin::atomic_add_f64; }
