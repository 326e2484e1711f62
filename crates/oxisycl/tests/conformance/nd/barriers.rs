//! Barriers, local memory, and panics between barriers.

use std::time::Instant;

use oxisycl::atomic::Scope;
use oxisycl::group::nd::NdItem;
use oxisycl::group::{Fixed1, Fixed2, Local, LocalSlice};
use oxisycl::prelude::*;

use crate::group::panics::LIMIT;
use crate::harness::{Env, tests};
use crate::support::iota;

tests![
    a_barrier_in_a_loop,
    a_barrier_in_a_function,
    barriers_in_both_arms_that_a_group_decides,
    a_group_that_ends_early,
    nested_loops_of_barriers,
    two_dimensions_transpose,
    private_values_survive_barriers,
    private_arrays_are_swapped_over_barriers,
    atomic_local_memory,
    groups_are_isolated,
    a_kernel_without_barriers,
    work_items_at_a_barrier_hold_back_no_others,
    global_memory_is_visible_behind_a_barrier,
    barriers_of_every_scope_are_of_the_whole_group,
    a_panic_between_barriers_names_its_work_item,
    a_panic_in_the_last_work_item,
    the_queue_goes_on_after_a_panic,
];

/// The sums of all numbers up to each, of each block.
fn scanned(numbers: &[i32], block: usize) -> Vec<i32> {
    let scan = |sum: &mut i32, n: &i32| {
        *sum += n;
        Some(*sum)
    };
    numbers.chunks(block).flat_map(|block| block.iter().scan(0, scan)).collect()
}

fn a_barrier_in_a_loop(env: &Env) {
    const SIZE: usize = 128;
    let numbers = Buffer::from_vec(iota(4 * SIZE)).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        let tiles = (Local::<i32, SIZE>::new(), Local::<i32, SIZE>::new());
        cg.parallel_for_nd_range((4 * SIZE, Fixed1::<SIZE>), tiles, move |mut item, (mut from, mut to)| {
            let own = item.local_linear_id();
            // SAFETY: each writes its own element of one tile and reads the other, which nobody writes before the barrier. All come to each barrier.
            unsafe {
                from.set(own, numbers.get(item.global()));
                item.group().barrier();
                let mut step = 1;
                while step < SIZE {
                    let left = if own >= step { from.get(own - step) } else { 0 };
                    to.set(own, from.get(own) + left);
                    item.group().barrier();
                    std::mem::swap(&mut from, &mut to);
                    step *= 2;
                }
                numbers.set(item.global(), from.get(own));
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(numbers.to_vec().unwrap(), scanned(&iota(4 * SIZE), SIZE));
}

/// Turns a tile round by a barrier that is not in the kernel itself.
///
/// # Safety
/// All work-items of the group call it.
unsafe fn turn_round<'wi>(
    item: &mut NdItem<'wi, '_, 1>,
    tile: oxisycl::group::nd::LocalAccessor<'wi, i32>,
    value: i32,
) -> i32 {
    let own = item.local_linear_id();
    // SAFETY: own elements before the first barrier, read only before the second.
    unsafe {
        tile.set(own, value);
        item.group().barrier();
        let value = tile.get(tile.len() - 1 - own);
        item.group().barrier();
        value
    }
}

fn a_barrier_in_a_function(env: &Env) {
    let numbers = Buffer::from_vec(iota(60)).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        let range = NdRange::new(Range::new([60]), Range::new([10]));
        cg.parallel_for_nd_range(range, LocalSlice::<i32>::new(10), move |mut item, tile| {
            let own = numbers.get(item.global());
            // SAFETY: all call it.
            let value = unsafe { turn_round(&mut item, tile, own) };
            // SAFETY: as above.
            let same = unsafe { turn_round(&mut item, tile, value) };
            assert!(same == own);
            numbers.set(item.global(), value);
        })
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<i32> = (0..60).map(|i| i / 10 * 10 + 9 - i % 10).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn barriers_in_both_arms_that_a_group_decides(env: &Env) {
    let numbers = Buffer::from_vec(iota(96)).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for_nd_range((96, Fixed1::<16>), Local::<i32, 16>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: own elements before a barrier, and only reads behind it. The condition is the same for a group.
            unsafe {
                tile.set(own, numbers.get(item.global()));
                let value = if item.group_id()[0] % 2 == 0 {
                    item.group().barrier();
                    tile.get(15 - own)
                } else {
                    item.group().barrier();
                    tile.get(own ^ 1)
                };
                numbers.set(item.global(), value);
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<i32> = (0..96).map(|i| if i / 16 % 2 == 0 { i / 16 * 16 + 15 - i % 16 } else { i ^ 1 }).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn a_group_that_ends_early(env: &Env) {
    let numbers = Buffer::from_vec(iota(64)).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for_nd_range((64, Fixed1::<8>), Local::<i32, 8>::new(), move |mut item, tile| {
            if item.group_id()[0] % 3 == 1 {
                return;
            }
            let own = item.local_linear_id();
            // SAFETY: own elements before the barrier, only reads behind it. A whole group returns above, or none of it.
            unsafe {
                tile.set(own, numbers.get(item.global()));
                item.group().barrier();
                numbers.set(item.global(), -tile.get(7 - own));
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<i32> = (0..64).map(|i| if i / 8 % 3 == 1 { i } else { -(i / 8 * 8 + 7 - i % 8) }).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn nested_loops_of_barriers(env: &Env) {
    // Bitonic sort of each block.
    const SIZE: usize = 64;
    let values: Vec<u32> = (0..5 * SIZE as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
    let numbers = Buffer::from_vec(values.clone()).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for_nd_range((5 * SIZE, Fixed1::<SIZE>), Local::<u32, SIZE>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: of each pair, the lower one accesses both elements between two barriers. All come to each of them.
            unsafe {
                tile.set(own, numbers.get(item.global()));
                item.group().barrier();
                let mut width = 2;
                while width <= SIZE {
                    let mut distance = width / 2;
                    while distance > 0 {
                        let other = own ^ distance;
                        if other > own {
                            let (a, b) = (tile.get(own), tile.get(other));
                            if (a > b) == (own & width == 0) {
                                tile.set(own, b);
                                tile.set(other, a);
                            }
                        }
                        item.group().barrier();
                        distance /= 2;
                    }
                    width *= 2;
                }
                numbers.set(item.global(), tile.get(own));
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    let mut expected = values;
    expected.chunks_mut(SIZE).for_each(|block| block.sort_unstable());
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn two_dimensions_transpose(env: &Env) {
    const TILE: usize = 8;
    let (rows, columns) = (3 * TILE, 5 * TILE);
    let input = Buffer::from_vec_nd(iota(rows * columns), [rows, columns]).unwrap();
    let output = Buffer::from_vec_nd(vec![0; rows * columns], [columns, rows]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        let range = (Range::new([columns, rows]), Fixed2::<TILE, TILE>);
        cg.parallel_for_nd_range(range, Local::<i32, { TILE * TILE }>::new(), move |mut item, tile| {
            let (Id([y, x]), Id([group_y, group_x])) = (item.local_id(), item.group_id());
            let value = input.view(item.global())[[group_x * TILE + y, group_y * TILE + x]];
            // SAFETY: own elements before the barrier, only reads behind it. All come to it.
            unsafe {
                tile.set(y * TILE + x, value);
                item.group().barrier();
                output.set(item.global(), tile.get(x * TILE + y));
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    for (index, value) in output.to_vec().unwrap().into_iter().enumerate() {
        let (y, x) = (index / rows, index % rows);
        assert_eq!(value as usize, x * columns + y);
    }
}

fn private_values_survive_barriers(env: &Env) {
    let numbers = Buffer::from_vec(vec![0u64; 300]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        let range = NdRange::new(Range::new([300]), Range::new([100]));
        cg.parallel_for_nd_range(range, (), move |mut item, ()| {
            let first = item.global_linear_id() as u64;
            let mut own = [0u64; 40];
            for (i, value) in own.iter_mut().enumerate() {
                *value = first * 100 + i as u64;
                if i % 8 == 3 {
                    item.group().barrier();
                }
            }
            assert!(own.iter().enumerate().all(|(i, value)| *value == first * 100 + i as u64));
            numbers.set(item.global(), own.iter().sum());
        })
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<u64> = (0..300).map(|i| i * 4000 + 780).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn private_arrays_are_swapped_over_barriers(env: &Env) {
    let numbers = Buffer::from_vec(vec![0u64; 300]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        let range = NdRange::new(Range::new([300]), Range::new([100]));
        cg.parallel_for_nd_range(range, (), move |mut item, ()| {
            let first = item.global_linear_id() as u64;
            let (mut one, mut other) = ([first; 8], [0u64; 8]);
            let (mut from, mut to) = (&mut one, &mut other);
            for turn in 0..11 {
                for (i, value) in to.iter_mut().enumerate() {
                    *value = from[(i + 1) % 8] + i as u64;
                }
                if turn % 4 == 2 {
                    item.group().barrier();
                }
                std::mem::swap(&mut from, &mut to);
            }
            numbers.set(item.global(), from.iter().sum());
        })
    });
    submitted.unwrap().wait().unwrap();
    // Each turn adds the numbers below eight.
    let expected: Vec<u64> = (0..300).map(|i| i * 8 + 11 * 28).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn atomic_local_memory(env: &Env) {
    let values: Vec<u32> = (0..1000u32).map(|i| i.wrapping_mul(2_654_435_761) >> 28).collect();
    let (input, bins) = (Buffer::from_vec(values.clone()).unwrap(), Buffer::from_vec(vec![0u32; 16]).unwrap());
    let submitted = env.queue().submit(|cg| {
        let (input, bins) = (cg.access(&input, Read), cg.access(&bins, Atomic));
        cg.parallel_for_nd_range((1000, Fixed1::<50>), Local::<u32, 16>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: own elements before the first barrier, atomic accesses up to the second, reads behind it. All come to both.
            unsafe {
                if own < 16 {
                    tile.set(own, 0);
                }
                item.group().barrier();
                tile.atomically().fetch_add(input.get(item.global()) as usize, 1);
                item.group().barrier();
                if own < 16 {
                    bins.fetch_add(item.global(), own, tile.get(own));
                }
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    let mut expected = vec![0; 16];
    values.iter().for_each(|value| expected[*value as usize] += 1);
    assert_eq!(bins.to_vec().unwrap(), expected);
}

fn groups_are_isolated(env: &Env) {
    // Each group fills its memory with its own number and finds nothing else in it, whatever runs at the same time.
    let wrong = Buffer::from_vec(vec![0u32]).unwrap();
    let queues = [env.queue(), env.queue()];
    for round in 0..4 {
        for queue in &queues {
            let submitted = queue.submit(|cg| {
                let wrong = cg.access(&wrong, Atomic);
                cg.parallel_for_nd_range((64 * 32, Fixed1::<64>), Local::<usize, 64>::new(), move |mut item, tile| {
                    let (own, number) = (item.local_linear_id(), 1000 * round + item.group_linear_id());
                    for step in 0..3 {
                        // SAFETY: own elements between two barriers, then only reads. All come to each.
                        unsafe {
                            tile.set(own, number + step);
                            item.group().barrier();
                            let found = (0..64).filter(|i| tile.get(*i) != number + step).count();
                            item.group().barrier();
                            if found > 0 {
                                wrong.fetch_add(item.global(), 0, 1);
                            }
                        }
                    }
                })
            });
            submitted.unwrap();
        }
    }
    queues.iter().for_each(|queue| queue.wait().unwrap());
    assert_eq!(wrong.to_vec().unwrap(), [0]);
}

fn a_kernel_without_barriers(env: &Env) {
    let numbers = Buffer::from_vec(iota(1200)).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for_nd_range((1200, Fixed1::<24>), (), move |item, ()| numbers.update(item.global(), |n| 3 * n))
    });
    submitted.unwrap().wait().unwrap();
    assert!(numbers.to_vec().unwrap().into_iter().enumerate().all(|(i, n)| n as usize == 3 * i));
}

fn work_items_at_a_barrier_hold_back_no_others(env: &Env) {
    const SIZE: usize = 32;
    /// The later a work-item comes to the barrier, the larger its position.
    fn work(position: usize) -> u32 {
        let mut x = position as u32 + 1;
        for _ in 0..position * position * 20 {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
        }
        x
    }
    let turned = Buffer::from_vec(vec![0u32; 2 * SIZE]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let turned = cg.access(&turned, Write);
        cg.parallel_for_nd_range((2 * SIZE, Fixed1::<SIZE>), Local::<u32, SIZE>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: each work-item writes its own element before the barrier, and all only read behind it.
            unsafe {
                tile.set(own, work(own));
                item.group().barrier();
                turned.set(item.global(), tile.get(SIZE - 1 - own));
            }
        })
    });
    submitted.unwrap();
    let expected: Vec<u32> = (0..2 * SIZE).map(|i| work(SIZE - 1 - i % SIZE)).collect();
    assert_eq!(turned.to_vec().unwrap(), expected);
}

fn global_memory_is_visible_behind_a_barrier(env: &Env) {
    let numbers = Buffer::from_vec(vec![0u32; 256]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, Atomic);
        cg.parallel_for_nd_range((256, Fixed1::<32>), (), move |mut item, ()| {
            let (own, first) = (item.local_linear_id(), 32 * item.group_linear_id());
            numbers.store(item.global(), first + own, own as u32 + 1);
            item.group().barrier();
            let other = numbers.load(item.global(), first + (own + 7) % 32);
            item.group().barrier();
            numbers.store(item.global(), first + own, other);
        })
    });
    submitted.unwrap().wait().unwrap();
    for (i, n) in numbers.to_vec().unwrap().into_iter().enumerate() {
        assert_eq!(n as usize, (i % 32 + 7) % 32 + 1);
    }
}

/// The error of a launch of eight groups of 32 in which work-item `at` panics before barrier number `barrier` of three.
fn panicking(env: &Env, at: usize, barrier: usize) -> oxisycl::Error {
    let launch = |at: usize| {
        env.queue().submit(|cg| {
            cg.name("between");
            cg.parallel_for_nd_range((256, Fixed1::<32>), Local::<u32, 32>::new(), move |mut item, tile| {
                for number in 0..3 {
                    assert!(item.global_linear_id() != at || number != barrier, "work-item {at} at barrier {barrier}");
                    // SAFETY: own elements, and all come to each barrier that have not panicked.
                    unsafe {
                        tile.set(item.local_linear_id(), number as u32);
                        item.group().barrier();
                    }
                }
            })
        })
    };
    // The driver compiles the kernel.
    launch(usize::MAX).unwrap().wait().unwrap();
    let start = Instant::now();
    let error = launch(at).unwrap().wait().unwrap_err();
    let elapsed = start.elapsed();
    assert!(elapsed < LIMIT, "{elapsed:?} until the panic was known");
    error
}

/// A scope narrower than the group orders no less: local memory is exchanged between work-items that are far from each other.
fn barriers_of_every_scope_are_of_the_whole_group(env: &Env) {
    const SIZE: usize = 96;
    const ROUNDS: usize = 5;
    for scope in [Scope::SubGroup, Scope::WorkGroup, Scope::Device, Scope::System] {
        let numbers = Buffer::from_vec(iota(4 * SIZE)).unwrap();
        let submitted = env.queue().submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            cg.parallel_for_nd_range((4 * SIZE, Fixed1::<SIZE>), Local::<i32, SIZE>::new(), move |mut item, tile| {
                let own = item.local_linear_id();
                let mut value = numbers.get(item.global());
                for round in 0..ROUNDS {
                    // SAFETY: each writes its own element. A barrier stands between that and the reads of others, and one behind these.
                    unsafe {
                        tile.set(own, value);
                        item.group().barrier_in(scope);
                        value = tile.get((own + SIZE / 2 + round) % SIZE);
                        item.group().barrier_in(scope);
                    }
                }
                numbers.set(item.global(), value);
            })
        });
        submitted.unwrap().wait().unwrap();
        let shift = ROUNDS * (SIZE / 2) + (0..ROUNDS).sum::<usize>();
        let moved = |index: usize| (index / SIZE * SIZE + (index % SIZE + shift) % SIZE) as i32;
        assert_eq!(numbers.to_vec().unwrap(), (0..4 * SIZE).map(moved).collect::<Vec<_>>(), "{scope:?}");
    }
}

fn a_panic_between_barriers_names_its_work_item(env: &Env) {
    for at in [0, 1, 31, 32, 77, 200] {
        for barrier in 0..3 {
            let error = panicking(env, at, barrier);
            assert_eq!(error.code(), ErrorCode::Kernel);
            let text = error.to_string();
            assert!(text.contains("between") && text.contains(&format!("[{at}]")), "{at}, {barrier}: {text}");
            assert!(text.contains(&format!("work-item {at} at barrier {barrier}")), "{text}");
        }
    }
}

fn a_panic_in_the_last_work_item(env: &Env) {
    let text = panicking(env, 255, 2).to_string();
    assert!(text.contains("[255]"), "{text}");
}

fn the_queue_goes_on_after_a_panic(env: &Env) {
    panicking(env, 40, 1);
    a_barrier_in_a_loop(env);
    panicking(env, 0, 0);
    nested_loops_of_barriers(env);
}
