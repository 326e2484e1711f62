//! Relaxed loads and stores of 128 bits. What is packed into one value is never seen in parts, such as a sum and how far it is.
//!
//! In native code on x86-64 they are instructions, if the processor has `cmpxchg16b`. On other processors a lock guards the value. That is enough,
//! because no other operations of the value exist. For the same reason there is no scope of the whole system: a lock orders no device.

use core::sync::atomic::Ordering;

use super::{AtomicValue, Relaxed, Scope, TakesOrder};
use crate::builtin::{self, is_device_code};

// SAFETY: the only operations are those of this file.
unsafe impl AtomicValue for u128 {
    const IS_ALWAYS_LOCK_FREE: bool = false;
    #[inline(always)]
    fn is_lock_free() -> bool {
        // A device without the instructions runs no kernel with such operations.
        is_device_code() || native::is_lock_free()
    }
    #[inline(always)]
    unsafe fn load(pointer: *mut Self, _relaxed: Ordering, scope: Scope) -> Self {
        if is_device_code() {
            // SAFETY: the caller's contract, and this is no native code.
            return unsafe { builtin::atomic_load_u128(pointer, scope.code()) };
        }
        // SAFETY: the caller's contract.
        unsafe { native::load(pointer) }
    }

    #[inline(always)]
    unsafe fn store(pointer: *mut Self, value: Self, _relaxed: Ordering, scope: Scope) {
        if is_device_code() {
            // SAFETY: the caller's contract, and this is no native code.
            return unsafe { builtin::atomic_store_u128(pointer, value, scope.code()) };
        }
        // SAFETY: the caller's contract.
        unsafe { native::store(pointer, value) }
    }
}

impl TakesOrder<Relaxed> for u128 {}

/// Native code.
mod native {
    use super::locked;

    #[inline(always)]
    pub(super) fn is_lock_free() -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let is_lock_free = super::processor::has_exchange();
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let is_lock_free = false;
        is_lock_free
    }

    /// # Safety
    /// The pointer is valid and aligned. As long as another thread may run, the value there is accessed by these functions only.
    #[inline(always)]
    pub(super) unsafe fn load(pointer: *mut u128) -> u128 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if super::processor::has_exchange() {
            // SAFETY: the processor has the instruction; else by the contract of this function.
            return unsafe { super::processor::load(pointer) };
        }
        // SAFETY: by the contract of this function, and the lock.
        locked(pointer, || unsafe { pointer.read() })
    }

    /// # Safety
    /// As for [`load`].
    #[inline(always)]
    pub(super) unsafe fn store(pointer: *mut u128, value: u128) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if super::processor::has_exchange() {
            // SAFETY: the processor has the instruction; else by the contract of this function.
            return unsafe { super::processor::store(pointer, value) };
        }
        // SAFETY: by the contract of this function, and the lock.
        locked(pointer, || unsafe { pointer.write(value) });
    }
}

/// x86-64 processors. All but the very first have the instruction.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod processor {
    use core::arch::asm;
    use core::arch::x86_64::__cpuid;
    use core::sync::atomic::AtomicU8;
    use core::sync::atomic::Ordering::Relaxed;

    /// Whether the processor has the instruction. The question is asked once, because a virtual machine takes long to answer.
    #[inline]
    pub(super) fn has_exchange() -> bool {
        const UNKNOWN: u8 = 0;
        const NO: u8 = 1;
        const YES: u8 = 2;
        static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
        match ANSWER.load(Relaxed) {
            UNKNOWN => {
                const FEATURES: u32 = 1;
                const CMPXCHG16B: u32 = 1 << 13;
                let has = __cpuid(FEATURES).ecx & CMPXCHG16B != 0;
                ANSWER.store(if has { YES } else { NO }, Relaxed);
                has
            }
            answer => answer == YES,
        }
    }

    /// Stores `new` if the value is `current`. Returns the value before.
    ///
    /// Not the function of `core::arch`: without optimisation that calls a library which programs do not link.
    ///
    /// # Safety
    /// [`has_exchange`]. The pointer is valid and aligned, and other threads access the value by this instruction only.
    #[inline]
    unsafe fn exchange(pointer: *mut u128, current: u128, new: u128) -> u128 {
        let (mut low, mut high) = (current as u64, (current >> 64) as u64);
        // SAFETY: by the contract of this function. `rbx` is as before in the end; the compiler keeps it for itself.
        unsafe {
            asm!(
                "xchg {new_low}, rbx",
                "lock cmpxchg16b [rdi]",
                "mov rbx, {new_low}",
                new_low = inout(reg) new as u64 => _,
                in("rdi") pointer,
                in("rcx") (new >> 64) as u64,
                inout("rax") low,
                inout("rdx") high,
                options(nostack),
            );
        }
        u128::from(high) << 64 | u128::from(low)
    }

    /// # Safety
    /// As for [`exchange`].
    pub(super) unsafe fn load(pointer: *mut u128) -> u128 {
        // The old value, whether it is zero and stays so or not.
        // SAFETY: by the contract of this function.
        unsafe { exchange(pointer, 0, 0) }
    }

    /// # Safety
    /// As for [`exchange`].
    pub(super) unsafe fn store(pointer: *mut u128, value: u128) {
        // SAFETY: by the contract of this function.
        unsafe {
            let mut current = load(pointer);
            loop {
                let found = exchange(pointer, current, value);
                if found == current {
                    return;
                }
                current = found;
            }
        }
    }
}

/// Calls `f` while no other thread is in such a call for the same address.
fn locked<R>(pointer: *mut u128, f: impl FnOnce() -> R) -> R {
    use core::sync::atomic::AtomicBool;
    use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

    const LOCKS: usize = 64;
    static LOCKED: [AtomicBool; LOCKS] = [const { AtomicBool::new(false) }; LOCKS];
    let lock = &LOCKED[pointer.addr() / size_of::<u128>() % LOCKS];
    while lock.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
        core::hint::spin_loop();
    }
    let result = f();
    lock.store(false, Release);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_value_is_seen_whole() {
        extern crate std;
        let mut value = 0u128;
        let place = &raw mut value as usize;
        std::thread::scope(|scope| {
            for thread in 1..4u64 {
                scope.spawn(move || {
                    let pointer = place as *mut u128;
                    for round in 0..1000 {
                        let number = u128::from(thread * 1000 + round);
                        // SAFETY: the value outlives the threads, which access it under the lock.
                        locked(pointer, || unsafe { pointer.write(number << 64 | number) });
                        // SAFETY: as above.
                        let seen = locked(pointer, || unsafe { pointer.read() });
                        assert_eq!(seen >> 64, seen & u128::from(u64::MAX));
                    }
                });
            }
        });
    }
}
