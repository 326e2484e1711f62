//! Reductions over nd-ranges and groups, into spans and into memory of USM (G2, G5).

use oxisycl::group::{Fixed1, Fixed2, Local, Private};
use oxisycl::operator::{Max, Sum};
use oxisycl::prelude::*;
use oxisycl::reduction::{TILE, reduction, reduction_usm, reduction_usm_without_identity, reduction_without_identity};

use super::tree;
use crate::harness::{Env, tests};

tests![
    a_span_has_a_reduction_for_each_element,
    results_go_to_memory_of_usm,
    nd_ranges_are_reduced_by_the_same_tree,
    elements_of_each_size_are_reduced_by_the_same_tree,
    work_items_of_an_nd_range_meet_before_they_give,
    groups_are_reduced_by_the_same_tree,
    nd_ranges_and_groups_without_work_items_give_the_identity,
    an_nd_range_that_does_not_fit_is_refused,
    a_span_of_another_size_is_refused,
    a_panic_in_an_nd_range_loses_the_result,
];

fn a_span_has_a_reduction_for_each_element(env: &Env) {
    for size in [0usize, 1, 100, TILE + 7, 50_000] {
        let rests = Buffer::from_vec(vec![10u64; 5]).unwrap();
        let sums = Buffer::from_vec(vec![0.0f64; 2]).unwrap();
        let highest = Buffer::from_vec(vec![[0u32; 2]; 3]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let higher = |a: [u32; 2], b: [u32; 2]| a.max(b);
            let into = (
                reduction(cg.access(&rests, ReadWrite), Sum).span::<5>(),
                reduction(cg.access(&sums, Write), Sum).span::<2>(),
                reduction_without_identity(cg.access(&highest, ReadWrite), higher).span::<3>(),
            );
            cg.parallel_reduce(size, into, |item, (rests, sums, highest)| {
                let n = item.index();
                rests[n % 5] += n as u64;
                sums[n % 2] += n as f64 * 0.1;
                highest[n % 3].combine([(n * 7919 % 1000) as u32, n as u32]);
            })
        });
        submitted.unwrap().wait().unwrap();
        let of = |rest: usize, n: usize| (0..size).filter(move |i| i % n == rest);
        let expected: Vec<u64> = (0..5).map(|rest| 10 + of(rest, 5).map(|i| i as u64).sum::<u64>()).collect();
        assert_eq!(rests.to_vec().unwrap(), expected, "{size}");
        // Each work-item is an element of each of the trees, also where it combines nothing.
        let of_tree = |rest: usize| {
            let values: Vec<f64> =
                (0..size).map(|i| if i % 2 == rest { -0.0 + i as f64 * 0.1 } else { -0.0 }).collect();
            if size == 0 { (-0.0f64).to_bits() } else { tree(&values, |a, b| a + b).to_bits() }
        };
        let bits: Vec<u64> = sums.to_vec().unwrap().iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, [of_tree(0), of_tree(1)], "{size}");
        let expected: Vec<[u32; 2]> = (0..3)
            .map(|rest| of(rest, 3).map(|n| [(n * 7919 % 1000) as u32, n as u32]).fold([0; 2], Ord::max))
            .collect();
        assert_eq!(highest.to_vec().unwrap(), expected, "{size}");
    }
}

fn results_go_to_memory_of_usm(env: &Env) {
    let queue = env.queue();
    let mut memory = queue.malloc_device::<i64>(5).unwrap();
    memory.copy_from_slice(&queue, &[100, 200, 300, 7, -7]).unwrap();
    let first = memory.pointer().as_ptr();
    // SAFETY: the allocation has five elements, which nothing else uses until the event is complete.
    let into = unsafe {
        (
            reduction_usm(first, Sum),
            reduction_usm(first.wrapping_add(1), Sum).initialize_to_identity(),
            reduction_usm_without_identity(first.wrapping_add(2), |a: i64, b: i64| a ^ b),
            reduction_usm(first.wrapping_add(3), Max).span::<2>(),
        )
    };
    let submitted = queue.submit(|cg| {
        cg.parallel_reduce(10_000, into, |item, (added, replaced, mixed, largest)| {
            let n = item.index() as i64;
            *added += n;
            *replaced += n;
            mixed.combine(n * 77);
            largest[usize::from(n % 2 == 0)].combine(n);
        })
    });
    submitted.unwrap().wait().unwrap();
    let mixed = (0..10_000).fold(300, |all, n: i64| all ^ (n * 77));
    assert_eq!(memory.to_vec(&queue).unwrap(), [49_995_000 + 100, 49_995_000, mixed, 9999, 9998]);
}

/// Values whose sum depends on the order.
fn rough(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32).sin() * 10f32.powi(i as i32 % 9)).collect()
}

fn nd_ranges_are_reduced_by_the_same_tree(env: &Env) {
    for n in [64, 640, TILE, 12 * TILE + 64, 400_000] {
        let values = rough(n);
        let expected = tree(&values, |a, b| a + b).to_bits();
        let numbers = Buffer::from_vec(values).unwrap();
        let (sum, count) = (Buffer::from_vec(vec![0.0f32]).unwrap(), Buffer::from_vec(vec![1u64]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let numbers = cg.access(&numbers, Read);
            let into = (reduction(cg.access(&sum, Write), Sum), reduction(cg.access(&count, ReadWrite), Sum));
            cg.parallel_reduce_nd_range((n, Fixed1::<64>), (), into, move |item, (), (sum, count)| {
                *sum += numbers.get(item.global());
                *count += 1;
            })
        });
        submitted.unwrap().wait().unwrap();
        assert_eq!(sum.to_vec().unwrap()[0].to_bits(), expected, "{n}");
        assert_eq!(count.to_vec().unwrap(), [n as u64 + 1], "{n}");
    }
}

/// GPUs load a tile of small elements at once, parts of it of larger ones, and single rows of very large ones.
fn elements_of_each_size_are_reduced_by_the_same_tree(env: &Env) {
    macro_rules! check {
        ($($t:ty: $($n:literal)*;)*) => { $($(
            for size in [16, 64, 80, 1040, 2096, TILE - 16, TILE, TILE + 16, 3 * TILE + 320] {
                let values: Vec<$t> = rough(size).into_iter().map(|x| x as $t).collect();
                let expected = tree(&values, |a, b| a + b);
                let (numbers, sums) = (Buffer::from_vec(values).unwrap(), Buffer::from_vec(vec![0 as $t; $n]).unwrap());
                let submitted = env.queue().submit(|cg| {
                    let numbers = cg.access(&numbers, Read);
                    let into = reduction(cg.access(&sums, Write), Sum).span::<$n>();
                    cg.parallel_reduce_nd_range((size, Fixed1::<16>), (), into, move |item, (), sums| {
                        let value = numbers.get(item.global());
                        for (k, sum) in sums.iter_mut().enumerate() {
                            *sum += value * (1u32 << k) as $t;
                        }
                    })
                });
                submitted.unwrap().wait().unwrap();
                // Powers of two change no digits.
                let expected: Vec<_> = (0..$n).map(|k| (expected * (1u32 << k) as $t).to_bits()).collect();
                let found: Vec<_> = sums.to_vec().unwrap().into_iter().map(<$t>::to_bits).collect();
                assert_eq!(found, expected, "{size} elements of {} {}", $n, stringify!($t));
            }
        )*)* };
    }
    check! { f32: 1 2 3 5; f64: 2 3 5 9 16 17; }
}

fn work_items_of_an_nd_range_meet_before_they_give(env: &Env) {
    let numbers = Buffer::from_vec_nd((0..96u32).map(|n| n * 37 % 101).collect(), [8, 12]).unwrap();
    let (sum, leaders) = (Buffer::from_vec(vec![0u32]).unwrap(), Buffer::from_vec(vec![0u32]).unwrap());
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, Read);
        let into = (reduction(cg.access(&sum, Write), Sum), reduction(cg.access(&leaders, Write), Sum));
        let (range, memory) = (([8, 12], Fixed2::<4, 3>), Local::<u32, 12>::new());
        cg.parallel_reduce_nd_range(range, memory, into, move |mut item, tile, (sum, leaders)| {
            let own = item.local_linear_id();
            // SAFETY: each work-item writes its own element before the barrier, and all only read behind it.
            unsafe {
                tile.set(own, numbers.get(item.global()));
                item.group().barrier();
                *sum += tile.get(own) * tile.get(11 - own);
            }
            if item.is_leader() {
                *leaders += 1;
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    let at = |y: usize, x: usize| ((y * 12 + x) as u32) * 37 % 101;
    let expected: u32 = (0..8)
        .flat_map(|y| (0..12).map(move |x| (y, x)))
        .map(|(y, x)| at(y, x) * at(y / 4 * 4 + 3 - y % 4, x / 3 * 3 + 2 - x % 3))
        .sum();
    assert_eq!((sum.to_vec().unwrap(), leaders.to_vec().unwrap()), (vec![expected], vec![8]));
}

fn groups_are_reduced_by_the_same_tree(env: &Env) {
    for n_groups in [1, 5, 70, TILE + 3] {
        let values = rough(n_groups * 16);
        let sums: Vec<f32> = values.chunks(16).map(|block| block[3] - block[5]).collect();
        let expected = tree(&sums, |a, b| a + b).to_bits();
        let numbers = Buffer::from_vec(values).unwrap();
        let (sum, largest) = (Buffer::from_vec(vec![0.0f32]).unwrap(), Buffer::from_vec(vec![0u32]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let numbers = cg.access(&numbers, Read);
            let into = (reduction(cg.access(&sum, Write), Sum), reduction(cg.access(&largest, Write), Max));
            let memory = (Local::<f32, 16>::new(), Private::new(0u32));
            cg.parallel_reduce_work_group(
                n_groups,
                Fixed1::<16>,
                memory,
                into,
                move |mut group, memory, (sum, largest)| {
                    let (mut tile, mut own) = memory;
                    group.for_each((&mut tile, &mut own), move |item, (slot, own)| {
                        *slot = numbers.get(item.global());
                        *own = item.global().index() as u32;
                    });
                    *sum += group.read(&tile, 3) - group.read(&tile, 5);
                    largest.combine(group.reduce(&own, Max));
                },
            )
        });
        submitted.unwrap().wait().unwrap();
        assert_eq!(sum.to_vec().unwrap()[0].to_bits(), expected, "{n_groups}");
        assert_eq!(largest.to_vec().unwrap(), [n_groups as u32 * 16 - 1], "{n_groups}");
    }
}

fn nd_ranges_and_groups_without_work_items_give_the_identity(env: &Env) {
    let queue = env.queue();
    let [first, second] = [5i32, 5].map(|n| Buffer::from_vec(vec![n]).unwrap());
    let submitted = queue.submit(|cg| {
        let into = reduction(cg.access(&first, Write), Max);
        cg.parallel_reduce_nd_range((0, Fixed1::<64>), (), into, |_, (), largest| largest.combine(1))
    });
    submitted.unwrap();
    let submitted = queue.submit(|cg| {
        let into = reduction(cg.access(&second, ReadWrite), Sum);
        cg.parallel_reduce_work_group(0, Fixed1::<64>, (), into, |_, (), sum| *sum += 1)
    });
    submitted.unwrap();
    assert_eq!((first.to_vec().unwrap(), second.to_vec().unwrap()), (vec![i32::MIN], vec![5]));
}

fn an_nd_range_that_does_not_fit_is_refused(env: &Env) {
    let sum = Buffer::from_vec(vec![5u32]).unwrap();
    let refused = |range: usize| {
        let submitted = env.queue().submit(|cg| {
            let into = reduction(cg.access(&sum, Write), Sum);
            cg.parallel_reduce_nd_range((range, Fixed1::<64>), (), into, |_, (), sum| *sum += 1)
        });
        let error = submitted.expect_err("refused");
        assert_eq!(error.code(), ErrorCode::NdRange, "{error}");
        error.to_string()
    };
    let text = refused(100);
    assert!(text.contains("the global extent 100 in dimension 0 is no multiple of the local extent 64"), "{text}");
    let text = refused(usize::MAX - 63);
    assert!(text.contains("than can be counted"), "{text}");
    assert_eq!(sum.to_vec().unwrap(), [5], "nothing was enqueued");
}

fn a_span_of_another_size_is_refused(env: &Env) {
    let sums = Buffer::from_vec(vec![5u32; 3]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let into = reduction(cg.access(&sums, Write), Sum).span::<4>();
        cg.parallel_reduce(10, into, |_, sums| sums[0] += 1)
    });
    let error = submitted.expect_err("refused");
    assert_eq!(error.code(), ErrorCode::Invalid, "{error}");
    assert!(error.to_string().contains("has 3 elements, and must have 4"), "{error}");
    assert_eq!(sums.to_vec().unwrap(), [5; 3]);
}

fn a_panic_in_an_nd_range_loses_the_result(env: &Env) {
    let sum = Buffer::from_vec(vec![5u32]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let into = reduction(cg.access(&sum, Write), Sum);
        cg.parallel_reduce_nd_range((640, Fixed1::<64>), (), into, |item, (), sum| {
            assert!(item.global_linear_id() != 345, "item 345");
            *sum += 1;
        })
    });
    let error = submitted.unwrap().wait().expect_err("a work-item panics");
    assert!(error.to_string().contains("item 345") && error.to_string().contains("work-item [345]"), "{error}");
    assert!(sum.to_vec().is_err(), "the result is lost");
}
