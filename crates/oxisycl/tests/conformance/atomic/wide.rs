//! Loads and stores of 128 bits, which are never seen in parts. A device without them refuses such a kernel.

use oxisycl::BackendKind;
use oxisycl::atomic::{Acquire, AtomicRef, Relaxed, Release, Scope, atomic_fence};
use oxisycl::group::{Atomically, Fixed1, Local, Shares};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};

tests![
    wide_values_are_stored_and_loaded,
    wide_values_say_whether_they_need_a_lock,
    wide_values_are_never_seen_in_parts,
    wide_values_of_local_memory_are_whole,
    wide_values_of_usm_are_whole,
    each_block_finds_what_is_before_it,
];

const N: usize = 4096;
/// A work-item that finds nothing looks that often, and then gives up: no work-item may wait for another one.
const LOOKS: usize = 100;

/// A number in both halves, so that a part of it is no such value.
const fn twice(number: u64) -> u128 {
    (number as u128) << 64 | number as u128
}

const fn is_whole(value: u128) -> bool {
    (value >> 64) as u64 == value as u64
}

/// Waits for a kernel with such operations. On a device without them it must have been refused; then the result is false.
#[track_caller]
fn has_run(env: &Env, submitted: oxisycl::Result<Event>) -> bool {
    if env.device().has(Aspect::ExtOxisyclAtomic128) {
        submitted.unwrap().wait().unwrap();
        return true;
    }
    let error = submitted.unwrap_err();
    assert_eq!(error.code(), ErrorCode::KernelNotSupported);
    assert!(error.to_string().contains("128"), "{error}");
    false
}

fn wide_values_are_stored_and_loaded(env: &Env) {
    let (from, to) = (
        Buffer::from_vec((0..N as u128).map(|i| i << 70 | i).collect()).unwrap(),
        Buffer::from_vec(vec![0u128; N]).unwrap(),
    );
    let submitted = env.queue().submit(|cg| {
        let (from, to) = (cg.access(&from, Atomic), cg.access(&to, Atomic));
        cg.parallel_for(N, move |item| {
            let index = N - 1 - item.index();
            to.store(item, item.index(), from.load(item, index) + 1);
        })
    });
    if has_run(env, submitted) {
        let expected: Vec<u128> = (0..N as u128).rev().map(|i| (i << 70 | i) + 1).collect();
        assert_eq!(to.to_vec().unwrap(), expected);
    }
}

fn wide_values_say_whether_they_need_a_lock(env: &Env) {
    const { assert!(!AtomicRef::<u128>::IS_ALWAYS_LOCK_FREE && AtomicRef::<u128>::REQUIRED_ALIGNMENT == 16) };
    let (value, found) = (Buffer::from_vec(vec![5u128]).unwrap(), Buffer::from_vec(vec![[2u8; 2]; 32]).unwrap());
    let submitted = env.queue().submit(|cg| {
        let (value, found) = (cg.access(&value, Atomic), cg.access(&found, Write));
        cg.parallel_for_work_group(2, Fixed1::<16>, Local::<u128, 4>::new(), move |mut group, mut tile| {
            group.for_each(Atomically(&mut tile), move |item, tile| {
                let (value, own) = (value.atomic_ref(item.global(), 0), tile.atomic_ref(0));
                own.store(value.load(Relaxed), Relaxed);
                found.set(item.global(), [value.is_lock_free(), own.is_lock_free()].map(u8::from));
            });
        })
    });
    if has_run(env, submitted) {
        #[cfg(target_arch = "x86_64")]
        let has_instruction = std::arch::is_x86_feature_detected!("cmpxchg16b");
        #[cfg(not(target_arch = "x86_64"))]
        let has_instruction = false;
        // Other devices have instructions. In native code one thread has all of a group's local memory.
        let is_native = matches!(env.device().backend(), BackendKind::Host | BackendKind::Simulated);
        let has_instruction = has_instruction || !is_native;
        assert_eq!(found.to_vec().unwrap(), [[has_instruction.into(), 1]; 32]);
    }
}

fn wide_values_are_never_seen_in_parts(env: &Env) {
    let cells = Buffer::from_vec(vec![0u128; 4]).unwrap();
    let parts = Buffer::from_vec(vec![0u32; 2]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (cells, parts) = (cg.access(&cells, Atomic), cg.access(&parts, Atomic));
        cg.parallel_for(16 * N, move |item| {
            let own = item.index() as u64 + 1;
            let cell = cells.atomic_ref(item, item.index() % 4);
            for round in 0..16 {
                cell.store(twice(own << 8 | round), Relaxed);
                let seen = cell.load(Relaxed);
                parts.fetch_add(item, usize::from(is_whole(seen)), 1);
            }
        })
    });
    if has_run(env, submitted) {
        assert_eq!(parts.to_vec().unwrap(), [0, 16 * 16 * N as u32]);
        assert!(cells.to_vec().unwrap().into_iter().all(|cell| cell != 0 && is_whole(cell)));
    }
}

fn wide_values_of_local_memory_are_whole(env: &Env) {
    let parts = Buffer::from_vec(vec![0u32; 2]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let parts = cg.access(&parts, Atomic);
        cg.parallel_for_work_group(64, Fixed1::<128>, Local::<u128, 2>::new(), move |mut group, mut cells| {
            group.for_each(Shares(&mut cells), |_, share| share.for_each(|(_, cell)| *cell = 0));
            group.for_each(Atomically(&mut cells), move |item, cells| {
                let own = item.global().index() as u64 + 1;
                for round in 0..16 {
                    cells.store(0, twice(own << 8 | round));
                    cells.atomic_ref(1).store(cells.load(0), Relaxed);
                    let seen = [cells.load(0), cells.atomic_ref(1).load(Relaxed)];
                    seen.iter().for_each(|seen| _ = parts.fetch_add(item, usize::from(is_whole(*seen)), 1));
                }
            });
        })
    });
    if has_run(env, submitted) {
        assert_eq!(parts.to_vec().unwrap(), [0, 64 * 128 * 32]);
    }
}

fn wide_values_of_usm_are_whole(env: &Env) {
    let queue = env.queue();
    let mut cells = queue.malloc_device::<u128>(2).unwrap();
    cells.copy_from_slice(&queue, &[7, 0]).unwrap();
    let pointer = cells.pointer();
    let event = queue.parallel_for(N, move |item: Item<1>| {
        // SAFETY: elements of the allocation, which are accessed by atomic operations only until the event is complete.
        let [from, to] = unsafe { [pointer.atomic_ref(item, 0), pointer.atomic_ref(item, 1)] };
        to.store(from.load(Relaxed) << 100, Relaxed);
    });
    if has_run(env, event) {
        assert_eq!(cells.to_vec(&queue).unwrap(), [7, 7 << 100]);
    }
}

/// The way of a scan in one pass. One value has a block's state and its sum, or the sum of all blocks up to it.
fn each_block_finds_what_is_before_it(env: &Env) {
    const BLOCKS: usize = 1000;
    const SUM: u128 = 1 << 64;
    const TOTAL: u128 = 2 << 64;
    let states = Buffer::from_vec(vec![0u128; BLOCKS]).unwrap();
    let found = Buffer::from_vec(vec![[0u64; 2]; BLOCKS]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (states, found) = (cg.access(&states, Atomic), cg.access(&found, Write));
        cg.parallel_for(BLOCKS, move |item| {
            let (block, sum) = (item.index(), item.index() as u64 * 3 + 1);
            states.store(item, block, SUM | u128::from(sum));
            atomic_fence(Release, Scope::Device);
            let (mut before, mut at, mut looks) = (0u64, block, 0);
            while at > 0 && looks < LOOKS {
                let state = states.load(item, at - 1);
                looks += 1;
                if state == 0 {
                    continue;
                }
                atomic_fence(Acquire, Scope::Device);
                (before, looks) = (before + state as u64, 0);
                at = if state >= TOTAL { 0 } else { at - 1 };
            }
            if at == 0 {
                states.store(item, block, TOTAL | u128::from(before + sum));
            }
            found.set(item, [u64::from(at == 0), before]);
        })
    });
    if has_run(env, submitted) {
        let found = found.to_vec().unwrap();
        let n_found = found.iter().filter(|[is_found, _]| *is_found == 1).count();
        println!("{n_found} of {BLOCKS} blocks have found what is before them");
        // Beside the first one, which looks for nothing.
        assert!(n_found > 1, "no block sees another one's state");
        for (block, [is_found, before]) in found.into_iter().enumerate() {
            let all = (0..block as u64).map(|block| block * 3 + 1).sum::<u64>();
            assert!(is_found == 0 || before == all, "block {block}: {before}, not {all}");
            assert!(block > 0 || is_found == 1);
        }
    }
}
