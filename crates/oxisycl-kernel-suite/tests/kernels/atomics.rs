//! Atomic operations of `core::sync::atomic` of every width and order, on memory that all work-items share.
//!
//! What is compared is the memory when all have run, which is the same whatever their order.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, compiler_fence, fence,
};

use oxisycl::Aspect;

use crate::harness::{Env, kernels, scramble};

kernels![
    sums_of_32_bits_in_every_order,
    bits_of_32_bits,
    extremes_of_32_bits,
    sums_and_bits_of_64_bits,
    extremes_of_64_bits,
    compare_exchange_in_a_loop,
    weak_compare_exchange_in_a_loop,
    bytes_share_a_word,
    halves_of_a_word,
    flags_and_updates,
    a_spin_lock_guards_a_sum,
    variables_of_a_work_item_are_atomic_types,
];

const ITEMS: usize = 5000;

/// The atomic number at a place of the shared memory.
macro_rules! shared {
    ($type:ty, $memory:expr, $index:expr) => {
        // SAFETY: the place is inside the memory, which is aligned for its numbers and lives for the whole launch. While it runs, the
        // memory is only accessed atomically.
        unsafe { <$type>::from_ptr($memory.add($index)) }
    };
}

fn sums_of_32_bits_in_every_order(env: &Env) {
    env.compare_memory(ITEMS, vec![3_u32; 10], |memory, i| {
        let add = |place, order| _ = shared!(AtomicU32, memory, place).fetch_add(scramble(i), order);
        [Relaxed, Acquire, Release, AcqRel, SeqCst].into_iter().enumerate().for_each(|(place, order)| match order {
            Relaxed => add(place, Relaxed),
            Acquire => add(place, Acquire),
            Release => add(place, Release),
            AcqRel => add(place, AcqRel),
            _ => add(place, SeqCst),
        });
        shared!(AtomicU32, memory, 5).fetch_sub(i as u32, Relaxed);
        shared!(AtomicU32, memory, 6 + i % 4).fetch_sub(1, SeqCst);
    });
}

fn bits_of_32_bits(env: &Env) {
    env.compare_memory(ITEMS, vec![0xFFFF_0000_u32; 4], |memory, i| {
        shared!(AtomicU32, memory, 0).fetch_and(!(1 << (16 + i % 7)), AcqRel);
        shared!(AtomicU32, memory, 1).fetch_or(1 << (i % 13), Release);
        shared!(AtomicU32, memory, 2).fetch_xor(scramble(i), Acquire);
        // All write the same number, so that it does not matter who is last.
        shared!(AtomicU32, memory, 3).swap(42, SeqCst);
    });
}

fn extremes_of_32_bits(env: &Env) {
    env.compare_memory(ITEMS, vec![0_i32; 4], |memory, i| {
        let value = scramble(i) as i32;
        shared!(AtomicI32, memory, 0).fetch_max(value, Relaxed);
        shared!(AtomicI32, memory, 1).fetch_min(value, AcqRel);
        shared!(AtomicU32, memory.cast::<u32>(), 2).fetch_max(value as u32, SeqCst);
        shared!(AtomicI32, memory, 3).fetch_add(value >> 16, Relaxed);
    });
}

fn sums_and_bits_of_64_bits(env: &Env) {
    require_wide(env);
    env.compare_memory(ITEMS, vec![1_u64 << 40; 6], |memory, i| {
        let value = u64::from(scramble(i)) << 20;
        shared!(AtomicU64, memory, 0).fetch_add(value, Relaxed);
        shared!(AtomicU64, memory, 1).fetch_sub(value, Release);
        shared!(AtomicU64, memory, 2).fetch_and(!(1 << (i % 64)) | 0xFF, AcqRel);
        shared!(AtomicU64, memory, 3).fetch_or(1 << (i % 50), SeqCst);
        shared!(AtomicU64, memory, 4).fetch_xor(value, Acquire);
        shared!(AtomicU64, memory, 5).swap(u64::MAX - 1, AcqRel);
    });
}

fn extremes_of_64_bits(env: &Env) {
    require_wide(env);
    env.compare_memory(ITEMS, vec![0_i64; 3], |memory, i| {
        let value = i64::from(scramble(i) as i32) << 22;
        shared!(AtomicI64, memory, 0).fetch_max(value, AcqRel);
        shared!(AtomicI64, memory, 1).fetch_min(value, Relaxed);
        shared!(AtomicU64, memory.cast::<u64>(), 2).fetch_max(value as u64, SeqCst);
    });
}

/// Ends the test on devices whose atomic operations are of 32 bits at most.
fn require_wide(env: &Env) {
    if !env.has(Aspect::Atomic64) {
        env.skip("the device has no atomic operations of 64 bits");
    }
}

fn compare_exchange_in_a_loop(env: &Env) {
    env.compare_memory(ITEMS, vec![1_u32; 2], |memory, i| {
        // Products commute, and no device has an instruction for them.
        let factor = scramble(i) | 1;
        let product = shared!(AtomicU32, memory, 0);
        let mut current = product.load(Acquire);
        while let Err(now) = product.compare_exchange(current, current.wrapping_mul(factor), AcqRel, Acquire) {
            current = now;
        }
        let sum = shared!(AtomicU32, memory, 1);
        loop {
            let current = sum.load(Relaxed);
            if sum.compare_exchange(current, current.wrapping_add(factor), SeqCst, Relaxed) == Ok(current) {
                break;
            }
        }
    });
}

fn weak_compare_exchange_in_a_loop(env: &Env) {
    require_wide(env);
    env.compare_memory(ITEMS, vec![0_u64; 2], |memory, i| {
        let packed = shared!(AtomicU64, memory, i % 2);
        let mut current = packed.load(Relaxed);
        loop {
            // A count in the upper half, the largest number in the lower one.
            let next = ((current >> 32) + 1) << 32 | (current & 0xFFFF_FFFF).max(u64::from(scramble(i)));
            match packed.compare_exchange_weak(current, next, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => current = now,
            }
        }
    });
}

fn bytes_share_a_word(env: &Env) {
    env.compare_memory(ITEMS, vec![0x81_u8; 8], |memory, i| {
        shared!(AtomicU8, memory, 0).fetch_add(i as u8, Relaxed);
        shared!(AtomicU8, memory, 1).fetch_sub(3, SeqCst);
        shared!(AtomicU8, memory, 2).fetch_xor(scramble(i) as u8, AcqRel);
        shared!(AtomicI8, memory.cast::<i8>(), 3).fetch_max(scramble(i) as i8, Acquire);
        shared!(AtomicU8, memory, 4).fetch_min(scramble(i) as u8 | 5, Release);
        shared!(AtomicU8, memory, 5).fetch_or(1 << (i % 3), Relaxed);
        shared!(AtomicU8, memory, 6).store(9, Release);
        let counter = shared!(AtomicU8, memory, 7);
        while let Err(_now) = counter.compare_exchange_weak(counter.load(Relaxed), 77, AcqRel, Relaxed) {}
    });
}

fn halves_of_a_word(env: &Env) {
    env.compare_memory(ITEMS, vec![1_u16; 4], |memory, i| {
        shared!(AtomicU16, memory, 0).fetch_add(i as u16, AcqRel);
        shared!(AtomicU16, memory, 1).fetch_and(!(1 << (i % 5)), Relaxed);
        let product = shared!(AtomicU16, memory, 2);
        let _ = product.fetch_update(SeqCst, Acquire, |value| Some(value.wrapping_mul(scramble(i) as u16 | 1)));
        shared!(AtomicU16, memory, 3).fetch_max(scramble(i) as u16, Relaxed);
    });
}

fn flags_and_updates(env: &Env) {
    env.compare_memory(ITEMS, vec![0_u8, 1, 0, 0], |memory, i| {
        shared!(AtomicBool, memory.cast::<bool>(), 0).fetch_or(i == 4000, Relaxed);
        shared!(AtomicBool, memory.cast::<bool>(), 1).fetch_and(i != 17, AcqRel);
        fence(AcqRel);
        compiler_fence(SeqCst);
        shared!(AtomicBool, memory.cast::<bool>(), 2).store(true, SeqCst);
        let limited = shared!(AtomicU8, memory, 3);
        let _ = limited.fetch_update(Relaxed, Relaxed, |value| (value < 200).then_some(value + 1));
    });
}

fn a_spin_lock_guards_a_sum(env: &Env) {
    // Work-items of one sub-group may run in lockstep. A work-item without the lock must let the others go on, so each tries once per
    // round.
    env.compare_memory(300, vec![0_u32; 3], |memory, i| {
        let (lock, sum) = (shared!(AtomicU32, memory, 0), shared!(AtomicU32, memory, 1));
        let mut is_done = false;
        while !is_done {
            if lock.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                // Not one operation: only the lock keeps the sum right.
                let old = sum.load(Relaxed);
                sum.store(old.wrapping_add(scramble(i)), Relaxed);
                lock.store(0, Release);
                is_done = true;
            }
            std::hint::spin_loop();
        }
        shared!(AtomicU32, memory, 2).fetch_add(1, Relaxed);
    });
}

/// Devices have no such operations on memory of their own, and need none.
fn variables_of_a_work_item_are_atomic_types(env: &Env) {
    fn counts(values: &[u32; 6], count: &AtomicU32, largest: &AtomicI64) {
        for &value in values {
            count.fetch_add(value & 7, AcqRel);
            largest.fetch_max(i64::from(value) - 1_000_000, Relaxed);
        }
    }
    env.compare(|i| {
        let (count, largest, flag) = (AtomicU32::new(i as u32), AtomicI64::new(i64::MIN), AtomicBool::new(false));
        let values = std::array::from_fn(|step| scramble(i + step));
        counts(&values, &count, &largest);
        let bytes: [AtomicU8; 3] = std::array::from_fn(|step| AtomicU8::new(values[step] as u8));
        let swapped = bytes[values[3] as usize % 3].swap(7, SeqCst);
        let exchanged = count.compare_exchange(i as u32, 1, SeqCst, Acquire).is_ok();
        let was_set = flag.fetch_or(values[4] & 1 == 1, Release);
        fence(SeqCst);
        let bytes = bytes.map(|byte| byte.load(Relaxed));
        (count.into_inner(), largest.load(Acquire), (swapped, bytes), (exchanged, was_set, flag.load(SeqCst)))
    });
}
