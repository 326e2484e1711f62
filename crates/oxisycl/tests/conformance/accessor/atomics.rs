//! Atomic accessors: any element from any work-item.

use oxisycl::prelude::*;
use oxisycl::{AtomicElement, float};

use crate::harness::{Env, tests};
use crate::support::{Gate, assert_held_back, code, doubled, iota, read_on, update};

tests![
    fetch_add_loses_no_update,
    fetch_add_loses_no_update_of_floats,
    strict_sums_keep_subnormal_numbers,
    fetch_sub_loses_no_update,
    integers_wrap,
    fetch_min_and_max_find_the_extremes_of_integers,
    fetch_min_and_max_find_the_extremes_of_floats,
    exchange_hands_each_value_on_once,
    compare_exchange_lets_one_of_all_win,
    compare_exchange_of_floats_compares_bits,
    loads_and_stores_are_whole,
    fetch_update_applies_any_function,
    a_histogram_counts_every_element,
    the_old_values_of_fetch_add_are_all_different,
    atomics_of_a_part_are_relative_to_its_offset,
    an_atomic_index_outside_the_range_is_an_error,
    a_single_task_may_use_atomics,
    atomic_access_counts_as_writing,
];

const N: usize = 10_000;

/// Runs `f` in `N` work-items on an atomic accessor to `start`, and gives what the buffer holds then.
fn atomically<T: AtomicElement>(
    env: &Env,
    start: Vec<T>,
    f: impl for<'a, 'wi> Fn(Accessor<'a, T, 1, Atomic>, Item<'wi, 1>) + Copy + Send + Sync + 'static,
) -> Vec<T> {
    let length = start.len();
    let buffer = Buffer::from_vec_nd(start, length).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Atomic);
        cg.parallel_for(N, move |item| f(data, item))
    });
    kernel.unwrap().wait().unwrap();
    buffer.to_vec().unwrap()
}

fn fetch_add_loses_no_update(env: &Env) {
    fn check<T: AtomicElement + From<u8> + TryFrom<usize, Error: std::fmt::Debug> + std::fmt::Debug>(env: &Env) {
        let sums = atomically(env, vec![T::from(0); 3], |data, item| {
            data.fetch_add(item, item.index() % 3, T::from(2));
        });
        assert_eq!(sums, [3334, 3333, 3333].map(|n: usize| T::try_from(2 * n).unwrap()));
    }
    check::<u32>(env);
    check::<i32>(env);
    check::<u64>(env);
    check::<i64>(env);
}

fn fetch_add_loses_no_update_of_floats(env: &Env) {
    let sums = atomically(env, vec![0.0f32; 2], |data, item| {
        data.fetch_add(item, item.index() % 2, 0.5);
    });
    assert_eq!(sums, [2500.0; 2]);
    let sums = atomically(env, vec![1.0f64], |data, item| {
        data.fetch_add(item, 0, item.index() as f64);
    });
    assert_eq!(sums, [1.0 + (N * (N - 1) / 2) as f64]);
}

fn strict_sums_keep_subnormal_numbers(env: &Env) {
    let least = f32::from_bits(1);
    let buffer = Buffer::from_vec(vec![0.0f32; 2]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let sums = cg.access(&buffer, Atomic);
        let kernel = move |item: Item<1>| {
            sums.fetch_add(item, 0, least);
            sums.fetch_sub(item, 1, least);
        };
        cg.parallel_for(N, float::strict(kernel))
    });
    kernel.unwrap().wait().unwrap();
    let sum = f32::from_bits(N as u32);
    assert_eq!(buffer.to_vec().unwrap(), [sum, -sum]);
}

fn fetch_sub_loses_no_update(env: &Env) {
    let left = atomically(env, vec![0i32, 5], |data, item| {
        data.fetch_sub(item, item.index() % 2, 3);
    });
    assert_eq!(left, [-15_000, -14_995]);
    let left = atomically(env, vec![0.0f32], |data, item| {
        data.fetch_sub(item, 0, 0.25);
    });
    assert_eq!(left, [-2500.0]);
}

fn integers_wrap(env: &Env) {
    let ends = atomically(env, vec![u32::MAX, 0], |data, item| {
        if item.index() < 3 {
            data.fetch_add(item, 0, 1);
            data.fetch_sub(item, 1, 1);
        }
    });
    assert_eq!(ends, [2, u32::MAX - 2]);
    let ends = atomically(env, vec![i64::MAX, i64::MIN], |data, item| {
        if item.index() == 0 {
            data.fetch_add(item, 0, 1);
            data.fetch_sub(item, 1, 1);
        }
    });
    assert_eq!(ends, [i64::MIN, i64::MAX]);
}

fn fetch_min_and_max_find_the_extremes_of_integers(env: &Env) {
    let ends = atomically(env, vec![i32::MAX, i32::MIN], |data, item| {
        let value = (item.index() as i32 * 7919) % 10_007 - 5000;
        data.fetch_min(item, 0, value);
        data.fetch_max(item, 1, value);
    });
    let values: Vec<i32> = (0..N as i32).map(|i| (i * 7919) % 10_007 - 5000).collect();
    assert_eq!(ends, [*values.iter().min().unwrap(), *values.iter().max().unwrap()]);
    let ends = atomically(env, vec![u64::MAX, 0], |data, item| {
        data.fetch_min(item, 0, u64::MAX - item.index() as u64);
        data.fetch_max(item, 1, u64::MAX - item.index() as u64);
    });
    assert_eq!(ends, [u64::MAX - 9999, u64::MAX]);
}

fn fetch_min_and_max_find_the_extremes_of_floats(env: &Env) {
    let ends = atomically(env, vec![f32::INFINITY, f32::NEG_INFINITY], |data, item| {
        let value = item.index() as f32 - 1234.5;
        data.fetch_min(item, 0, value);
        data.fetch_max(item, 1, value);
    });
    assert_eq!(ends, [-1234.5, 9999.0 - 1234.5]);
    let ends = atomically(env, vec![0.0f64, 0.0], |data, item| {
        data.fetch_min(item, 0, -(item.index() as f64) / 8.0);
        data.fetch_max(item, 1, item.index() as f64 * 1e300);
    });
    assert_eq!(ends, [-9999.0 / 8.0, 9999.0 * 1e300]);
}

fn exchange_hands_each_value_on_once(env: &Env) {
    // Each work-item puts its own number down and takes another's; all that was taken, and what is left, are all numbers.
    let buffer = Buffer::from_vec(vec![0u32]).unwrap();
    let taken = Buffer::<u32, 1>::uninit(N).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (slot, taken) = (cg.access(&buffer, Atomic), cg.access(&taken, Write));
        cg.parallel_for(N, move |item| taken.set(item, slot.exchange(item, 0, 1 + item.index() as u32)))
    });
    kernel.unwrap();
    let mut all = taken.to_vec().unwrap();
    all.extend(buffer.to_vec().unwrap());
    all.sort_unstable();
    assert_eq!(all, (0..=N as u32).collect::<Vec<_>>());
}

fn compare_exchange_lets_one_of_all_win(env: &Env) {
    let results = atomically(env, vec![-1i64, 0, 0], |data, item| {
        match data.compare_exchange(item, 0, -1, item.index() as i64) {
            Ok(old) => data.fetch_add(item, 1, if old == -1 { 1 } else { 1000 }),
            Err(winner) => data.fetch_add(item, 2, i64::from(winner >= 0)),
        };
    });
    assert!((0..N as i64).contains(&results[0]));
    assert_eq!(results[1..], [1, N as i64 - 1]);
}

fn compare_exchange_of_floats_compares_bits(env: &Env) {
    let results = atomically(env, vec![-0.0f32, f32::NAN, 0.0], |data, item| {
        if item.index() == 0 {
            // Equal as numbers, but not the same bits.
            let zero = data.compare_exchange(item, 0, 0.0, 1.0).is_err();
            // Not equal as numbers, but the same bits.
            let nan = data.compare_exchange(item, 1, f32::NAN, 2.0).is_ok();
            data.store(item, 2, if zero && nan { 3.0 } else { -1.0 });
        }
    });
    assert!(results[0] == 0.0 && results[0].is_sign_negative());
    assert_eq!(results[1..], [2.0, 3.0]);
}

fn loads_and_stores_are_whole(env: &Env) {
    // Both halves of what is loaded are always the same.
    let ends = atomically(env, vec![0u64, 0], |data, item| {
        let half = item.index() as u64;
        data.store(item, 0, half << 32 | half);
        let seen = data.load(item, 0);
        if seen >> 32 != seen & 0xFFFF_FFFF {
            data.store(item, 1, 1);
        }
    });
    assert_eq!(ends[1], 0);
    assert_eq!(ends[0] >> 32, ends[0] & 0xFFFF_FFFF);
}

fn fetch_update_applies_any_function(env: &Env) {
    let ends = atomically(env, vec![1u32, 0], |data, item| {
        let old = data.fetch_update(item, 0, |x| (x * 3) % 1009);
        data.fetch_max(item, 1, old);
    });
    let orbit: Vec<u32> = std::iter::successors(Some(1), |x| Some(x * 3 % 1009)).take(N + 1).collect();
    assert_eq!(ends, [orbit[N], *orbit[..N].iter().max().unwrap()]);
}

fn a_histogram_counts_every_element(env: &Env) {
    let pixels = Buffer::from_vec_nd((0..N).map(|i| (i * i % 251) as u8).collect::<Vec<_>>(), [100, N / 100]).unwrap();
    let bins = Buffer::from_vec(vec![0u32; 256]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (pixels, bins) = (cg.access(&pixels, Read), cg.access(&bins, Atomic));
        cg.parallel_for(pixels.range(), move |item| {
            bins.fetch_add(item, usize::from(pixels.get(item)), 1);
        })
    });
    kernel.unwrap();
    let mut expected = vec![0; 256];
    for i in 0..N {
        expected[i * i % 251] += 1;
    }
    assert_eq!(bins.to_vec().unwrap(), expected);
}

fn the_old_values_of_fetch_add_are_all_different(env: &Env) {
    let counter = Buffer::from_vec(vec![0u32]).unwrap();
    let places = Buffer::<u32, 1>::uninit(N).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (counter, places) = (cg.access(&counter, Atomic), cg.access(&places, Write));
        cg.parallel_for(N, move |item| places.set(item, counter.fetch_add(item, 0, 1)))
    });
    kernel.unwrap();
    let mut places = places.to_vec().unwrap();
    places.sort_unstable();
    assert_eq!(places, (0..N as u32).collect::<Vec<_>>());
}

fn atomics_of_a_part_are_relative_to_its_offset(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&buffer, Atomic, [1, 3], [2, 2]);
        cg.parallel_for(400, move |item| {
            data.fetch_add(item, [item.index() / 2 % 2, item.index() % 2], 1);
        })
    });
    kernel.unwrap();
    let mut expected = iota(20);
    for i in [8, 9, 13, 14] {
        expected[i] += 100;
    }
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn an_atomic_index_outside_the_range_is_an_error(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    for index in [[2, 0], [0, 2], [usize::MAX, 0]] {
        let kernel = env.queue().submit(|cg| {
            let data = cg.access_range(&buffer, Atomic, [1, 3], [2, 2]);
            cg.single_task(move |task| data.store(task, index, -1))
        });
        assert_eq!(code(kernel.unwrap().wait()), ErrorCode::Kernel, "{index:?}");
        crate::support::write_positions(&env.queue(), &buffer, 0);
    }
}

fn a_single_task_may_use_atomics(env: &Env) {
    let buffer = Buffer::from_vec(vec![5i32; 3]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Atomic);
        cg.single_task(move |task| {
            data.fetch_add(task, 0, data.load(task, 1));
            data.exchange(task, 2, -1);
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [10, 5, -1]);
}

fn atomic_access_counts_as_writing(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0; 4]).unwrap();
    let gate = Gate::new(&queue, |cg| {
        cg.access(&buffer, Read);
    });
    let kernel = queue.submit(|cg| {
        let data = cg.access(&buffer, Atomic);
        cg.parallel_for(100, move |item| {
            data.fetch_add(item, item.index() % 4, 1);
        })
    });
    let kernel = kernel.unwrap();
    assert_held_back(&kernel);
    gate.open();
    update(&env.other_queue(), &buffer, doubled);
    assert_eq!(read_on(&env.third_queue(), &buffer), [50; 4]);
}
