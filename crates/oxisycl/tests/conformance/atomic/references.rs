//! References to elements of buffers and of USM allocations: every operation on every type, in every order and scope.

use oxisycl::atomic::{
    AcqRel, Acquire, AtomicElement, AtomicInteger, AtomicRef, LoadOrder, Order, Relaxed, Release, Scope, SeqCst,
    StoreOrder, atomic_fence,
};
use oxisycl::float;
use oxisycl::group::Fixed1;
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::code;

tests![
    every_change_of_every_integer_counts_in_every_order,
    every_change_of_floats_counts_in_every_order,
    numbers_that_are_none_are_neither_stored_nor_replaced,
    loads_and_stores_work_in_every_order,
    one_exchange_of_all_wins_in_every_order,
    weak_exchanges_in_a_loop_lose_nothing,
    old_values_are_all_different,
    updates_by_a_function_lose_nothing,
    strict_sums_with_orders_keep_subnormal_numbers,
    every_scope_counts_the_work_items_that_it_has,
    a_scope_may_be_known_only_at_run_time,
    fences_of_every_order_and_scope_are_accepted,
    relaxed_changes_of_bits_count_on_accessors,
    usm_allocations_have_references,
    no_element_needs_a_lock,
    a_reference_beyond_the_range_is_an_error,
];

const N: usize = 1000;

/// Runs `f` in `N` work-items on an atomic accessor to `start`, and gives what the buffer holds then.
fn atomically<T: AtomicElement>(
    env: &Env,
    start: &[T],
    f: impl for<'a, 'wi> Fn(Accessor<'a, T, 1, Atomic>, Item<'wi, 1>) + Copy + Send + Sync + 'static,
) -> Vec<T> {
    let buffer = Buffer::from_vec(start.to_vec()).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Atomic);
        cg.parallel_for(N, move |item| f(data, item))
    });
    kernel.unwrap().wait().unwrap();
    buffer.to_vec().unwrap()
}

fn every_change_of_every_integer_counts_in_every_order(env: &Env) {
    fn check<T: AtomicInteger + Integer, O: Order + Send + Sync + 'static>(env: &Env, order: O) {
        let start = [3, 2000, 500, 100, -1, 0, 0, 7].map(T::of);
        let ends = atomically(env, &start, move |data, item| {
            let own = item.index() as i64;
            let element = |index| data.atomic_ref(item, index);
            element(0).fetch_add(T::of(2), order);
            element(1).fetch_sub(T::of(2), order);
            element(2).fetch_min(T::of(own - T::BELOW), order);
            element(3).fetch_max(T::of(own - T::BELOW), order);
            element(4).fetch_and(T::of(!(1 << (own % 8))), order);
            element(5).fetch_or(T::of(1 << (own % 13)), order);
            element(6).fetch_xor(T::of(1 << (own % 3)), order);
            element(7).exchange(T::of(42), order);
        });
        // 334 work-items invert the first of three bits, and 333 each of the others.
        let expected = [2003, 0, -T::BELOW, 999 - T::BELOW, !0xFF, 0x1FFF, 0b110, 42].map(T::of);
        assert_eq!(ends, expected, "{:?}", O::ORDER);
    }
    // Which order is which instruction is the compiler's matter, and tested there: each order and each type, and not all pairs.
    check::<u32, _>(env, Relaxed);
    check::<u32, _>(env, Acquire);
    check::<u32, _>(env, AcqRel);
    check::<i32, _>(env, Release);
    check::<i32, _>(env, AcqRel);
    check::<u64, _>(env, AcqRel);
    check::<u64, _>(env, SeqCst);
    check::<i64, _>(env, SeqCst);
    check::<i64, _>(env, Relaxed);
}

/// Integers from numbers that they all have, modulo their size.
trait Integer: std::fmt::Debug {
    /// What is subtracted from positions, so that signed numbers are below zero, too.
    const BELOW: i64;
    fn of(number: i64) -> Self;
}

macro_rules! integers {
    ($($t:ty: $below:expr;)*) => { $(
        impl Integer for $t {
            const BELOW: i64 = $below;
            fn of(number: i64) -> Self {
                number as Self
            }
        }
    )* };
}

integers! { u32: 0; i32: 500; u64: 0; i64: 500; }

fn every_change_of_floats_counts_in_every_order(env: &Env) {
    fn single<O: Order + Send + Sync + 'static>(env: &Env, order: O) {
        let ends = atomically(env, &[1.0f32, 1.0, 7.0, 7.0, 0.0], move |data, item| {
            let own = item.index() as f32 - 500.0;
            let element = |index| data.atomic_ref(item, index);
            element(0).fetch_add(0.5, order);
            element(1).fetch_sub(0.25, order);
            element(2).fetch_min(own, order);
            element(3).fetch_max(own, order);
            element(4).exchange(2.5, order);
        });
        assert_eq!(ends, [501.0, -249.0, -500.0, 499.0, 2.5], "{:?}", O::ORDER);
    }
    fn double<O: Order + Send + Sync + 'static>(env: &Env, order: O) {
        let ends = atomically(env, &[1.0f64, 1.0, 7.0, 7.0, 0.0], move |data, item| {
            let own = item.index() as f64 * 1e300;
            let element = |index| data.atomic_ref(item, index);
            element(0).fetch_add(0.5, order);
            element(1).fetch_sub(0.25, order);
            element(2).fetch_min(-own, order);
            element(3).fetch_max(own, order);
            element(4).exchange(2.5, order);
        });
        assert_eq!(ends, [501.0, -249.0, -999.0 * 1e300, 999.0 * 1e300, 2.5], "{:?}", O::ORDER);
    }
    single(env, Relaxed);
    single(env, Acquire);
    single(env, AcqRel);
    double(env, Release);
    double(env, AcqRel);
    double(env, SeqCst);
}

fn numbers_that_are_none_are_neither_stored_nor_replaced(env: &Env) {
    let ends = atomically(env, &[f32::NAN, f32::NAN, 1.0, 1.0], |data, item| {
        data.atomic_ref(item, 0).fetch_min(-5.0, AcqRel);
        data.atomic_ref(item, 1).fetch_max(5.0, AcqRel);
        data.atomic_ref(item, 2).fetch_min(f32::NAN, AcqRel);
        data.atomic_ref(item, 3).fetch_max(f32::NAN, AcqRel);
    });
    assert!(ends[0].is_nan() && ends[1].is_nan());
    assert_eq!(ends[2..], [1.0, 1.0]);
}

fn loads_and_stores_work_in_every_order(env: &Env) {
    fn check<T, L, S>(env: &Env, load: L, store: S, values: [T; 2])
    where
        T: AtomicElement + std::fmt::Debug,
        L: LoadOrder + Send + Sync + 'static,
        S: StoreOrder + Send + Sync + 'static,
    {
        let (source, target) =
            (Buffer::from_vec(values.to_vec()).unwrap(), Buffer::from_vec(vec![values[0]; N]).unwrap());
        let kernel = env.queue().submit(|cg| {
            let (source, target) = (cg.access(&source, Atomic), cg.access(&target, Atomic));
            cg.parallel_for(N, move |item| {
                let value = source.atomic_ref(item, item.index() % 2).load(load);
                target.atomic_ref(item, item.index()).store(value, store);
            })
        });
        kernel.unwrap().wait().unwrap();
        let expected: Vec<T> = (0..N).map(|i| values[i % 2]).collect();
        assert_eq!(target.to_vec().unwrap(), expected);
    }
    check(env, Relaxed, Relaxed, [1u32, u32::MAX]);
    check(env, Acquire, Release, [i32::MIN, -1]);
    check(env, SeqCst, SeqCst, [1u64 << 40, u64::MAX]);
    check(env, Acquire, Release, [i64::MIN, 3]);
    check(env, Relaxed, SeqCst, [-0.5f32, f32::INFINITY]);
    check(env, SeqCst, Relaxed, [1e300f64, -3.0]);
}

fn one_exchange_of_all_wins_in_every_order(env: &Env) {
    fn once<T, O, F>(env: &Env, order: O, failure: F, [nobody, start]: [T; 2], own: fn(usize) -> T)
    where
        T: AtomicElement + std::fmt::Debug,
        O: Order + Send + Sync + 'static,
        F: LoadOrder + Send + Sync + 'static,
    {
        let (winner, results) = (Buffer::from_vec(vec![start]).unwrap(), Buffer::from_vec(vec![0u32; N]).unwrap());
        let numbers = Buffer::from_vec((0..N).map(own).collect::<Vec<T>>()).unwrap();
        let kernel = env.queue().submit(|cg| {
            let (winner, results) = (cg.access(&winner, Atomic), cg.access(&results, Write));
            let numbers = cg.access(&numbers, Read);
            cg.parallel_for(N, move |item| {
                let winner = winner.atomic_ref(item, 0);
                let refused = winner.compare_exchange(nobody, numbers.get(item), order, failure);
                let result = match winner.compare_exchange(start, numbers.get(item), order, failure) {
                    Ok(_) if refused.is_err() => 1,
                    Err(_) if refused.is_err() => 2,
                    _ => 3,
                };
                results.set(item, result);
            })
        });
        kernel.unwrap().wait().unwrap();
        let results = results.to_vec().unwrap();
        let won: Vec<usize> = (0..N).filter(|i| results[*i] == 1).collect();
        assert_eq!((won.len(), results.iter().filter(|result| **result == 2).count()), (1, N - 1));
        assert_eq!(winner.to_vec().unwrap(), [own(won[0])]);
    }
    once(env, Relaxed, Relaxed, [1 << 30, 1 << 31], |i| i as u32);
    once(env, Acquire, Acquire, [-1, i32::MIN], |i| i as i32);
    once(env, Release, SeqCst, [1 << 50, 1 << 60], |i| i as u64);
    once(env, AcqRel, Relaxed, [-1i64, -2], |i| i as i64);
    once(env, SeqCst, Relaxed, [0.0f32, -0.0], |i| 1.0 + i as f32);
    once(env, SeqCst, SeqCst, [0.0f64, f64::NAN], |i| 1.0 + i as f64);
}

fn weak_exchanges_in_a_loop_lose_nothing(env: &Env) {
    let ends = atomically(env, &[0u64, 0], |data, item| {
        let sum = data.atomic_ref(item, 0);
        let mut seen = sum.load(Relaxed);
        while let Err(now) = sum.compare_exchange_weak(seen, seen + item.index() as u64, AcqRel, Acquire) {
            seen = now;
        }
        let mut seen = data.load(item, 1);
        while let Err(now) = data.compare_exchange_weak(item, 1, seen, seen + 1) {
            seen = now;
        }
    });
    assert_eq!(ends, [(N * (N - 1) / 2) as u64, N as u64]);
}

fn old_values_are_all_different(env: &Env) {
    let (next, tickets) = (Buffer::from_vec(vec![5i64]).unwrap(), Buffer::from_vec(vec![0i64; N]).unwrap());
    let kernel = env.queue().submit(|cg| {
        let (next, tickets) = (cg.access(&next, Atomic), cg.access(&tickets, Write));
        cg.parallel_for(N, move |item| tickets.set(item, next.atomic_ref(item, 0).fetch_add(1, AcqRel)))
    });
    kernel.unwrap();
    let mut tickets = tickets.to_vec().unwrap();
    tickets.sort_unstable();
    assert_eq!(tickets, (5..5 + N as i64).collect::<Vec<_>>());
}

fn updates_by_a_function_lose_nothing(env: &Env) {
    let ends = atomically(env, &[1u32], |data, item| {
        data.atomic_ref(item, 0).fetch_update(SeqCst, |old| old * 3 % 1009);
    });
    let expected = (0..N).fold(1, |value, _| value * 3 % 1009);
    assert_eq!(ends, [expected]);
}

fn strict_sums_with_orders_keep_subnormal_numbers(env: &Env) {
    fn check<O: Order + Send + Sync + 'static>(env: &Env, order: O) {
        let least = f32::from_bits(1);
        let buffer = Buffer::from_vec(vec![0.0f32; 2]).unwrap();
        let kernel = env.queue().submit(|cg| {
            let sums = cg.access(&buffer, Atomic);
            let kernel = move |item: Item<1>| {
                sums.atomic_ref(item, 0).fetch_add(least, order);
                sums.atomic_ref(item, 1).with_scope(Scope::System).fetch_sub(least, order);
            };
            cg.parallel_for(N, float::strict(kernel))
        });
        kernel.unwrap().wait().unwrap();
        let sum = f32::from_bits(N as u32);
        assert_eq!(buffer.to_vec().unwrap(), [sum, -sum]);
    }
    check(env, Relaxed);
    check(env, AcqRel);
    check(env, SeqCst);
}

fn every_scope_counts_the_work_items_that_it_has(env: &Env) {
    const GROUPS: usize = 8;
    const ITEMS: usize = 64;
    let counts = Buffer::from_vec(vec![0u32; 2 + GROUPS + GROUPS * ITEMS / 32]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let counts = cg.access(&counts, Atomic);
        cg.parallel_for_work_group(GROUPS, Fixed1::<ITEMS>, (), move |mut group, ()| {
            let number = group.linear_id();
            group.for_each((), move |item, ()| {
                counts.atomic_ref(item, 0).with_scope(Scope::System).fetch_add(1, AcqRel);
                counts.atomic_ref(item, 1).with_scope(Scope::WorkGroup).fetch_add(1, AcqRel);
                let narrow = |index: usize, scope| {
                    // SAFETY: only the group, and only the sub-group of 32, accesses the element.
                    unsafe { counts.atomic_ref(item, index).with_narrow_scope(scope) }.fetch_add(1, AcqRel);
                };
                narrow(2 + number, Scope::WorkGroup);
                narrow(2 + GROUPS + 2 * number + item.local_linear_id() / 32, Scope::SubGroup);
            });
        })
    });
    kernel.unwrap().wait().unwrap();
    let mut expected = vec![(GROUPS * ITEMS) as u32; 2];
    expected.extend([ITEMS as u32; GROUPS]);
    expected.extend([32; GROUPS * ITEMS / 32]);
    assert_eq!(counts.to_vec().unwrap(), expected);
}

fn a_scope_may_be_known_only_at_run_time(env: &Env) {
    let scopes = Buffer::from_vec((0..N as u32).map(|i| i % 3).collect()).unwrap();
    let sums = Buffer::from_vec(vec![0u32, u32::MAX]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (scopes, sums) = (cg.access(&scopes, Read), cg.access(&sums, Atomic));
        cg.parallel_for(N, move |item| {
            let scope = [Scope::Device, Scope::System, Scope::System][scopes.get(item) as usize];
            let sum = sums.atomic_ref(item, 0).with_scope(scope);
            sum.fetch_add(2, SeqCst);
            atomic_fence(AcqRel, scope);
            sums.atomic_ref(item, 1).with_scope(scope).fetch_min(item.index() as u32 + 9, Release);
        })
    });
    kernel.unwrap().wait().unwrap();
    assert_eq!(sums.to_vec().unwrap(), [2 * N as u32, 9]);
}

fn fences_of_every_order_and_scope_are_accepted(env: &Env) {
    let ends = atomically(env, &[0u32], |data, item| {
        for scope in [Scope::SubGroup, Scope::WorkGroup, Scope::Device, Scope::System] {
            data.fetch_add(item, 0, 1);
            atomic_fence(Relaxed, scope);
            atomic_fence(Acquire, scope);
            atomic_fence(Release, scope);
            atomic_fence(AcqRel, scope);
            atomic_fence(SeqCst, scope);
        }
    });
    assert_eq!(ends, [4 * N as u32]);
    // Outside kernels it is the fence of the language.
    atomic_fence(SeqCst, Scope::System);
}

fn relaxed_changes_of_bits_count_on_accessors(env: &Env) {
    let ends = atomically(env, &[-1i32, 0, 0], |data, item| {
        data.fetch_and(item, 0, !(1 << (item.index() % 8)));
        data.fetch_or(item, 1, 1 << (item.index() % 13));
        data.fetch_xor(item, 2, 1 << (item.index() % 3));
    });
    assert_eq!(ends, [!0xFF, 0x1FFF, 0b110]);
}

fn usm_allocations_have_references(env: &Env) {
    let queue = env.queue();
    let mut sums = queue.malloc_device::<u64>(4).unwrap();
    sums.copy_from_slice(&queue, &[0, 1, 2, 3]).unwrap();
    let pointer = sums.pointer();
    let event = queue.parallel_for(N, move |item: Item<1>| {
        let index = item.index() % 4;
        // SAFETY: an element of the allocation, which is accessed by atomic operations only until the event is complete.
        let element = unsafe { pointer.atomic_ref(item, index) };
        element.with_scope(Scope::System).fetch_add(1, AcqRel);
        element.fetch_add(1, Relaxed);
    });
    event.unwrap().wait().unwrap();
    assert_eq!(sums.to_vec(&queue).unwrap(), [0, 1, 2, 3].map(|start| start + 2 * N as u64 / 4));
}

fn no_element_needs_a_lock(env: &Env) {
    fn check<T: AtomicElement + DeviceCopyable>(env: &Env, value: T) {
        const { assert!(AtomicRef::<T>::IS_ALWAYS_LOCK_FREE && AtomicRef::<T>::REQUIRED_ALIGNMENT == size_of::<T>()) };
        let (value, found) = (Buffer::from_vec(vec![value]).unwrap(), Buffer::from_vec(vec![0u8; N]).unwrap());
        let kernel = env.queue().submit(|cg| {
            let (value, found) = (cg.access(&value, Atomic), cg.access(&found, Write));
            cg.parallel_for(N, move |item| found.set(item, value.atomic_ref(item, 0).is_lock_free().into()))
        });
        kernel.unwrap().wait().unwrap();
        assert_eq!(found.to_vec().unwrap(), [1; N], "{}", std::any::type_name::<T>());
    }
    check(env, 1u32);
    check(env, 1i64);
    check(env, 1.0f32);
}

fn a_reference_beyond_the_range_is_an_error(env: &Env) {
    let buffer = Buffer::from_vec(vec![0u32; 8]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&buffer, Atomic, 2, 4);
        cg.single_task(move |task| data.atomic_ref(task, 4).store(1, Relaxed))
    });
    assert_eq!(code(kernel.unwrap().wait()), ErrorCode::Kernel);
}
