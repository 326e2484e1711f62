//! Reductions: the fixed tree, targets, operators, and what fails (G1, G3, G4, G5).

pub(crate) mod forms;
pub(crate) mod own;

use oxisycl::operator::{And, BitAnd, BitOr, BitXor, Identity, Max, Min, Or, Product, Sum};
use oxisycl::prelude::*;
use oxisycl::reduction::{TILE, reduction, reduction_without_identity};

use crate::copy::host::block_on;
use crate::harness::{Env, tests};
use crate::support::{Random, code, counted, plus_one, update};

tests![
    numbers_of_each_type_are_summed,
    integers_of_each_type_are_combined_by_bits_and_truth,
    sums_of_floats_have_the_bits_of_the_tree,
    fifty_random_sums_of_floats_have_the_bits_of_the_tree,
    the_same_sum_has_the_same_bits_each_time,
    a_target_that_is_read_is_part_of_the_result,
    a_reduction_over_nothing_gives_the_identity,
    work_items_combine_none_or_several_values,
    an_operator_needs_no_identity,
    several_reductions_share_a_launch,
    ranges_of_two_and_three_dimensions_are_reduced,
    one_call_reduces_a_buffer,
    a_result_is_awaited,
    a_result_may_stay_on_the_device,
    reductions_wait_for_what_they_read,
    a_target_of_another_size_is_refused,
    two_reductions_into_one_target_are_refused,
    a_panic_loses_the_result,
    the_next_reduction_after_a_panic_is_right,
    a_reduction_behind_a_panic_that_is_not_known_is_right,
    an_operator_that_panics_loses_the_result,
];

/// Sizes around those of tiles and of groups, and some that take two launches.
const SIZES: [usize; 14] =
    [1, 2, 31, 63, 64, 65, 1000, TILE - 1, TILE, TILE + 1, 8 * TILE, 8 * TILE + 1, 100_000, 300_001];

/// The tree as the documentation has it.
fn tree<T: Copy>(values: &[T], combine: impl Fn(T, T) -> T + Copy) -> T {
    let sums: Vec<T> = values
        .chunks(TILE)
        .map(|tile| {
            let mut sums: Vec<T> = tile[..tile.len().min(64)].to_vec();
            for (i, value) in tile.iter().enumerate().skip(64) {
                sums[i % 64] = combine(sums[i % 64], *value);
            }
            for half in [32, 16, 8, 4, 2, 1] {
                for i in 0..half.min(sums.len().saturating_sub(half)) {
                    sums[i] = combine(sums[i], sums[i + half]);
                }
                sums.truncate(half.max(1));
            }
            sums[0]
        })
        .collect();
    if sums.len() == 1 { sums[0] } else { tree(&sums, combine) }
}

fn reduced<T, O>(env: &Env, values: &[T], operator: O) -> T
where
    T: DeviceCopyable + bytemuck::AnyBitPattern,
    O: Identity<T> + 'static,
{
    env.queue().reduce(&Buffer::from_vec(values.to_vec()).unwrap(), operator).unwrap().get().unwrap()
}

fn numbers_of_each_type_are_summed(env: &Env) {
    macro_rules! check {
        ($($t:ty)*) => { $(
            for size in [1, 100, 5000, 40_000] {
                let values: Vec<$t> = (0..size).map(|i| (i as $t).wrapping_mul(77).wrapping_add(3)).collect();
                let sum = values.iter().fold(0, |a: $t, b| a.wrapping_add(*b));
                assert_eq!(reduced(env, &values, Sum), sum, "{size} values of {}", stringify!($t));
            }
        )* };
    }
    check! { u8 i8 u16 i16 u32 i32 u64 i64 }
    assert_eq!(reduced(env, &[3u32, 5, 7], Product), 105);
    let values: Vec<i32> = (0..40_000).map(|i: i32| i.wrapping_mul(77_777) ^ -5).collect();
    assert_eq!(reduced(env, &values, Min), values.iter().copied().min().unwrap());
    assert_eq!(reduced(env, &values, BitXor), values.iter().fold(0, |a, b| a ^ b));
}

/// Values by `And`, `Or`, `BitAnd` and `BitOr`, in one launch.
fn by_bits_and_truth<T>(env: &Env, values: &[T]) -> [T; 4]
where
    T: DeviceCopyable + bytemuck::AnyBitPattern,
    And: Identity<T>,
    Or: Identity<T>,
    BitAnd: Identity<T>,
    BitOr: Identity<T>,
{
    let input = Buffer::from_vec(values.to_vec()).unwrap();
    let targets: [Buffer<T, 1>; 4] = std::array::from_fn(|_| Buffer::from_vec(vec![values[0]]).unwrap());
    let submitted = env.queue().submit(|cg| {
        let (input, [all, any, common, joined]) = (cg.access(&input, Read), &targets);
        let truth = (reduction(cg.access(all, Write), And), reduction(cg.access(any, Write), Or));
        let bits = (reduction(cg.access(common, Write), BitAnd), reduction(cg.access(joined, Write), BitOr));
        let into = (truth.0, truth.1, bits.0, bits.1);
        cg.parallel_reduce(values.len(), into, move |item, (all, any, common, joined)| {
            let value = input.get(item);
            all.combine(value);
            any.combine(value);
            *common &= value;
            *joined |= value;
        })
    });
    submitted.unwrap().wait().unwrap();
    targets.map(|target| target.to_vec().unwrap()[0])
}

fn integers_of_each_type_are_combined_by_bits_and_truth(env: &Env) {
    macro_rules! check {
        ($($t:ty)*) => { $(
            for size in [1, 100, 5000, 40_000] {
                // All true values have bit 5, and none has bit 3. None is 1.
                let truth = |i: usize| [33 as $t, 34, 36][i % 3];
                let check = |values: Vec<$t>| {
                    let (all, any) = (values.iter().all(|x| *x != 0), values.iter().any(|x| *x != 0));
                    let (common, joined) = (values.iter().fold(!0, |a, b| a & b), values.iter().fold(0, |a, b| a | b));
                    let expected = [<$t>::from(all), <$t>::from(any), common, joined];
                    assert_eq!(by_bits_and_truth(env, &values), expected, "{size} values of {}", stringify!($t));
                };
                check((0..size).map(truth).collect());
                check(vec![0; size]);
                for one in [0, size / 2, size - 1] {
                    check((0..size).map(|i| if i == one { 0 } else { truth(i) }).collect());
                    check((0..size).map(|i| if i == one { truth(i) } else { 0 }).collect());
                }
            }
        )* };
    }
    check! { u8 i8 u16 i16 u32 i32 u64 i64 }
}

fn sums_of_floats_have_the_bits_of_the_tree(env: &Env) {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    for size in SIZES {
        let doubles: Vec<f64> = (0..size).map(|i| random() * if i % 97 == 0 { 1.0e12 } else { 1.0 }).collect();
        let floats: Vec<f32> = doubles.iter().map(|x| *x as f32).collect();
        let (of_doubles, of_floats) = (tree(&doubles, |a, b| a + b), tree(&floats, |a, b| a + b));
        assert_eq!(reduced(env, &doubles, Sum).to_bits(), of_doubles.to_bits(), "{size} of f64");
        assert_eq!(reduced(env, &floats, Sum).to_bits(), of_floats.to_bits(), "{size} of f32");
    }
    // What is special stays so.
    assert!(reduced(env, &[1.0f32, f32::NAN, 2.0], Sum).is_nan());
    assert_eq!(reduced(env, &[f64::INFINITY, 1.0], Sum), f64::INFINITY);
    assert_eq!(reduced(env, &[-0.0f32; 5000], Sum).to_bits(), (-0.0f32).to_bits());
    assert_eq!(reduced(env, &[f32::MIN_POSITIVE / 4.0; 4], Sum), f32::MIN_POSITIVE);
    let values: Vec<f32> = (0..9000).map(|i| if i % 2 == 0 { f32::NAN } else { i as f32 }).collect();
    assert_eq!((reduced(env, &values, Min), reduced(env, &values, Max)), (1.0, 8999.0));
    let (none, ends) = ([f32::NAN; 70], (f32::INFINITY, f32::NEG_INFINITY));
    assert_eq!((reduced(env, &none, Min), reduced(env, &none, Max)), ends);
}

/// The run's seed is printed. Where a sum is no number, its bits are the processor's.
fn fifty_random_sums_of_floats_have_the_bits_of_the_tree(env: &Env) {
    println!("seed {}", env.seed());
    let mut random = Random::new(env.seed());
    for number in 0..50 {
        let size = 1 + random.below([100, 5_000, 70_000][number % 3]);
        let mut values: Vec<f64> =
            (0..size).map(|_| random.below(1 << 31) as f64 * random.below(1 << 32) as f64 - 2.0e18).collect();
        let special = [-0.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE / 8.0];
        match number % 10 {
            kind @ 0..4 => values[random.below(size)] = special[kind],
            4 => values.fill(-0.0),
            _ => {}
        }
        let singles: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        let of_doubles = [reduced(env, &values, Sum), tree(&values, |a, b| a + b)];
        let of_singles = [reduced(env, &singles, Sum), tree(&singles, |a, b| a + b)];
        let are_same = of_doubles[0].to_bits() == of_doubles[1].to_bits() || of_doubles.iter().all(|sum| sum.is_nan());
        assert!(are_same, "sum {number}: {of_doubles:?}");
        let are_same = of_singles[0].to_bits() == of_singles[1].to_bits() || of_singles.iter().all(|sum| sum.is_nan());
        assert!(are_same, "sum {number}: {of_singles:?}");
    }
}

fn the_same_sum_has_the_same_bits_each_time(env: &Env) {
    let values: Vec<f32> = (0..200_000).map(|i| (i as f32).sin() * 1.0e5).collect();
    let buffer = Buffer::from_vec(values.clone()).unwrap();
    let expected = tree(&values, |a, b| a + b).to_bits();
    let queue = env.queue();
    let sums: Vec<_> = (0..50).map(|_| queue.reduce(&buffer, Sum).unwrap()).collect();
    for sum in sums {
        assert_eq!(sum.get().unwrap().to_bits(), expected);
    }
}

fn a_target_that_is_read_is_part_of_the_result(env: &Env) {
    for (size, expected) in [(0usize, 100u32), (5, 110), (50_000, 100u32.wrapping_add(49_999 * 25_000))] {
        let (added, replaced) = (Buffer::from_vec(vec![100u32]).unwrap(), Buffer::from_vec(vec![100u32]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let into = (reduction(cg.access(&added, ReadWrite), Sum), reduction(cg.access(&replaced, Write), Sum));
            cg.parallel_reduce(size, into, |item, (added, replaced)| {
                *added += item.index() as u32;
                *replaced += item.index() as u32;
            })
        });
        submitted.unwrap().wait().unwrap();
        assert_eq!(added.to_vec().unwrap(), [expected], "{size}");
        assert_eq!(replaced.to_vec().unwrap(), [expected.wrapping_sub(100)], "{size}");
    }
}

fn a_reduction_over_nothing_gives_the_identity(env: &Env) {
    assert_eq!(reduced::<i32, _>(env, &[7], Max), 7);
    let (largest, sum) = (Buffer::from_vec(vec![5i32]).unwrap(), Buffer::from_vec(vec![5.0f32]).unwrap());
    let submitted = env.queue().submit(|cg| {
        let into = (reduction(cg.access(&largest, Write.no_init()), Max), reduction(cg.access(&sum, Write), Sum));
        cg.parallel_reduce([0, 3], into, |_, (largest, sum)| {
            largest.combine(1);
            *sum += 1.0;
        })
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(largest.to_vec().unwrap(), [i32::MIN]);
    assert_eq!(sum.to_vec().unwrap()[0].to_bits(), (-0.0f32).to_bits());
}

fn work_items_combine_none_or_several_values(env: &Env) {
    for size in SIZES {
        let target = Buffer::from_vec(vec![0u64]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let into = reduction(cg.access(&target, ReadWrite), Sum);
            cg.parallel_reduce(size, into, |item, sum| {
                for n in 0..item.index() % 3 {
                    sum.combine((item.index() * 10 + n) as u64);
                }
            })
        });
        submitted.unwrap().wait().unwrap();
        let expected = (0..size).map(|i| (0..i % 3).map(|n| (i * 10 + n) as u64).sum::<u64>()).sum::<u64>();
        assert_eq!(target.to_vec().unwrap(), [expected], "{size}");
    }
}

fn an_operator_needs_no_identity(env: &Env) {
    // The pair with the larger second number, and of equal ones that with the smaller first.
    let better = |a: [u32; 2], b: [u32; 2]| if (a[1], b[0]) >= (b[1], a[0]) { a } else { b };
    for size in SIZES.into_iter().chain([0]) {
        for step in [1, 5, usize::MAX] {
            let old = [9_999_999, 17];
            let best = Buffer::from_vec(vec![old]).unwrap();
            let value = |i: usize| [i as u32, (i as u32).wrapping_mul(2_654_435_761) % 1000];
            let submitted = env.queue().submit(|cg| {
                let into = reduction_without_identity(cg.access(&best, ReadWrite), better);
                cg.parallel_reduce(size, into, move |item, best| {
                    let i = item.index();
                    if i % step == step / 2 {
                        best.combine([i as u32, (i as u32).wrapping_mul(2_654_435_761) % 1000]);
                    }
                })
            });
            submitted.unwrap().wait().unwrap();
            let expected = (0..size).filter(|i| i % step == step / 2).map(value).fold(old, better);
            assert_eq!(best.to_vec().unwrap(), [expected], "{size} by {step}");
        }
    }
}

fn several_reductions_share_a_launch(env: &Env) {
    let n = 123_457usize;
    let values: Vec<f32> = (0..n).map(|i| ((i * 7919) % 10_007) as f32 - 5000.0).collect();
    let input = Buffer::from_vec(values.clone()).unwrap();
    let (sum, squares) = (Buffer::from_vec(vec![0.0f32]).unwrap(), Buffer::from_vec(vec![0.0f64]).unwrap());
    let (least, most) = (Buffer::from_vec(vec![0.0f32]).unwrap(), Buffer::from_vec(vec![0.0f32]).unwrap());
    let (count, bits) = (Buffer::from_vec(vec![0u16]).unwrap(), Buffer::from_vec(vec![0u64]).unwrap());
    let (since, submitted) = counted(|| {
        env.queue().submit(|cg| {
            let input = cg.access(&input, Read);
            let into = (
                reduction(cg.access(&sum, Write), Sum),
                reduction(cg.access(&squares, Write), Sum),
                reduction(cg.access(&least, Write), Min),
                reduction(cg.access(&most, Write), Max),
                reduction(cg.access(&count, Write), Sum),
                reduction(cg.access(&bits, Write), BitXor),
            );
            cg.parallel_reduce(n, into, move |item, (sum, squares, least, most, count, bits)| {
                let x = input.get(item);
                *sum += x;
                *squares += f64::from(x) * f64::from(x);
                least.combine(x);
                most.combine(x);
                *count += 1;
                *bits ^= u64::from(x.to_bits()) << (item.index() % 32);
            })
        })
    });
    submitted.unwrap().wait().unwrap();
    // One of as many elements has as many launches.
    let (alone, reduced) = counted(|| env.queue().reduce(&input, Sum));
    assert!(alone.kernels > 0 && since.kernels == alone.kernels, "{} launches, not {}", since.kernels, alone.kernels);
    assert_eq!(reduced.unwrap().get().unwrap().to_bits(), tree(&values, |a, b| a + b).to_bits());
    assert_eq!(sum.to_vec().unwrap()[0].to_bits(), tree(&values, |a, b| a + b).to_bits());
    // Whole numbers below 2^53: each order of sums is exact.
    let of_squares: f64 = values.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    assert_eq!(squares.to_vec().unwrap(), [of_squares]);
    assert_eq!((least.to_vec().unwrap()[0], most.to_vec().unwrap()[0]), (-5000.0, 5006.0));
    assert_eq!(count.to_vec().unwrap(), [n as u16]);
    let of_bits = values.iter().enumerate().fold(0, |all, (i, x)| all ^ u64::from(x.to_bits()) << (i % 32));
    assert_eq!(bits.to_vec().unwrap(), [of_bits]);
}

fn ranges_of_two_and_three_dimensions_are_reduced(env: &Env) {
    let target = Buffer::from_vec(vec![0u64; 1]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let into = reduction(cg.access(&target, Write), Sum);
        cg.parallel_reduce([77, 131], into, |item, sum| {
            let Id([y, x]) = item.id();
            *sum += (y * 1000 + x) as u64;
        })
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(target.to_vec().unwrap(), [(0..77u64).map(|y| (0..131).map(|x| y * 1000 + x).sum::<u64>()).sum()]);
    let values: Vec<u32> = (0..9 * 32 * 64).collect();
    let buffer = Buffer::from_vec_nd(values.clone(), [9, 32, 64]).unwrap();
    assert_eq!(env.queue().reduce(&buffer, Sum).unwrap().get().unwrap(), values.iter().sum());
    // A part of a larger buffer, which begins where each device lets one begin.
    let part = buffer.sub_buffer([2, 0, 0], [3, 32, 64]).unwrap();
    let places = 2 * 32 * 64..5 * 32 * 64;
    assert_eq!(env.queue().reduce(&part, Sum).unwrap().get().unwrap(), places.sum::<u32>());
}

fn one_call_reduces_a_buffer(env: &Env) {
    let values: Vec<f32> = (0..70_000).map(|i| i as f32 * 0.25).collect();
    let buffer = Buffer::from_vec(values.clone()).unwrap();
    let queue = env.queue();
    let squares = queue.transform_reduce(&buffer, f64::from, Sum).unwrap();
    let largest = queue.transform_reduce(&buffer, |x| x as u32 % 1000, Max).unwrap();
    let doubles: Vec<f64> = values.iter().map(|x| f64::from(*x)).collect();
    assert_eq!(squares.get().unwrap(), tree(&doubles, |a, b| a + b));
    assert_eq!(largest.get().unwrap(), 999);
    // As often as anybody asks.
    assert_eq!(largest.get().unwrap(), 999);
}

fn a_result_is_awaited(env: &Env) {
    let buffer = Buffer::from_vec((0..100_000u32).collect()).unwrap();
    let queue = env.queue();
    let results = block_on(async {
        let sum = queue.reduce(&buffer, Sum)?;
        let most = queue.transform_reduce(&buffer, |x| x % 1000, Max)?;
        let failing = queue.transform_reduce(&buffer, |x| if x == 77_777 { panic!("no sevens") } else { x }, Max)?;
        Ok::<_, oxisycl::Error>((sum.await?, most.await?, failing.await))
    });
    let (sum, most, failed) = results.unwrap();
    assert_eq!((sum, most), ((0..100_000u32).fold(0, u32::wrapping_add), 999));
    let error = failed.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    assert!(error.to_string().contains("no sevens"), "{error}");
}

fn a_result_may_stay_on_the_device(env: &Env) {
    let buffer = Buffer::from_vec(vec![2.0f32; 10_000]).unwrap();
    let queue = env.queue();
    let sum = queue.reduce(&buffer, Sum).unwrap();
    let event = queue.submit(|cg| {
        let (sum, buffer) = (cg.access(sum.buffer(), Read), cg.access(&buffer, ReadWrite));
        cg.parallel_for(10_000, move |item| buffer.update(item, |x| x / sum.view(item)[0]))
    });
    event.unwrap().wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), vec![2.0 / 20_000.0; 10_000]);
    sum.event().wait().unwrap();
}

fn reductions_wait_for_what_they_read(env: &Env) {
    let buffer = Buffer::from_vec(vec![1i32; 50_000]).unwrap();
    let queue = env.queue();
    let mut sums = Vec::new();
    for _ in 0..10 {
        update(&queue, &buffer, plus_one);
        sums.push(queue.reduce(&buffer, Sum).unwrap());
    }
    for (i, sum) in sums.into_iter().enumerate() {
        assert_eq!(sum.get().unwrap(), 50_000 * (i as i32 + 2));
    }
}

fn a_target_of_another_size_is_refused(env: &Env) {
    for size in [2usize, 3] {
        let target = Buffer::from_vec(vec![0u32; size]).unwrap();
        let (since, submitted) = counted(|| {
            env.queue().submit(|cg| {
                cg.name("total");
                let into = reduction(cg.access(&target, ReadWrite), Sum);
                cg.parallel_reduce(10, into, |_, sum| *sum += 1)
            })
        });
        assert_eq!(since.nodes, 0);
        let error = submitted.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid);
        let (text, device) = (error.to_string(), env.device().name());
        let expected = format!(
            "kernel \"total\" on device \"{device}\": the target of a reduction has {size} elements, and must have 1"
        );
        assert!(text.ends_with(&expected), "{text}");
    }
}

fn two_reductions_into_one_target_are_refused(env: &Env) {
    let target = Buffer::from_vec(vec![0u32]).unwrap();
    let (since, submitted) = counted(|| {
        env.queue().submit(|cg| {
            let into = (reduction(cg.access(&target, ReadWrite), Sum), reduction(cg.access(&target, ReadWrite), Max));
            cg.parallel_reduce(10, into, |_, (sum, _)| *sum += 1)
        })
    });
    assert_eq!(since.nodes, 0);
    assert_eq!(submitted.unwrap_err().code(), ErrorCode::Accessor);
}

/// A sum whose work-item 50 123 panics.
fn failing(queue: &Queue, target: &Buffer<u32, 1>) -> Event {
    let submitted = queue.submit(|cg| {
        let into = reduction(cg.access(target, Write), Sum);
        cg.parallel_reduce(100_000, into, |item, sum| {
            assert!(item.index() != 50_123, "no value for {}", item.index());
            *sum += 1;
        })
    });
    submitted.unwrap()
}

fn a_panic_loses_the_result(env: &Env) {
    let target = Buffer::from_vec(vec![1u32]).unwrap();
    let error = failing(&env.queue(), &target).wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    let text = error.to_string();
    let device = env.device().name();
    // No work-item: that of the launch is none of the range.
    let expected = format!("on device \"{device}\" panicked at crates/oxisycl/tests/conformance/reduce/mod.rs:");
    assert!(text.ends_with("no value for 50123") && text.contains(&expected), "{text}");
    assert!(text.contains("kernel \"conformance::reduce::failing\""), "{text}");
    assert!(target.to_vec().is_err());
}

fn the_next_reduction_after_a_panic_is_right(env: &Env) {
    let values = Buffer::from_vec((0..100_000u32).collect()).unwrap();
    for _ in 0..3 {
        let target = Buffer::from_vec(vec![1u32]).unwrap();
        failing(&env.queue(), &target).wait().unwrap_err();
        let sum = env.queue().reduce(&values, Sum);
        assert_eq!(sum.unwrap().get().unwrap(), (0..100_000u32).fold(0, u32::wrapping_add));
    }
}

/// One queue runs them in order, and the later ones are there before the panic is reported.
fn a_reduction_behind_a_panic_that_is_not_known_is_right(env: &Env) {
    let values = Buffer::from_vec((0..100_000u32).collect()).unwrap();
    let queue = env.in_order_queue();
    for round in 0..20 {
        let [lost, kept] = [1u32, 1].map(|old| Buffer::from_vec(vec![old]).unwrap());
        let failed = failing(&queue, &lost);
        let sum = queue.reduce(&values, Sum);
        let few = queue.submit(|cg| {
            let into = reduction(cg.access(&kept, ReadWrite), Sum);
            cg.parallel_reduce(3, into, |item, sum| *sum += item.index() as u32)
        });
        assert_eq!(sum.unwrap().get().unwrap(), (0..100_000u32).fold(0, u32::wrapping_add), "round {round}");
        few.unwrap().wait().unwrap();
        assert_eq!(kept.to_vec().unwrap(), [4], "round {round}");
        assert_eq!(code(failed.wait()), ErrorCode::Kernel, "round {round}");
    }
}

fn an_operator_that_panics_loses_the_result(env: &Env) {
    let values = Buffer::from_vec((0..100_000u32).collect()).unwrap();
    // In a tile, and where the sums of tiles are combined.
    for limit in [100, 5_000] {
        let target = Buffer::from_vec(vec![1u32]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let bounded = move |a: u32, b: u32| {
                assert!(a + b <= limit, "{} is too much", a + b);
                a + b
            };
            let into = reduction_without_identity(cg.access(&target, ReadWrite), bounded);
            cg.parallel_reduce(100_000, into, |_, sum| sum.combine(1))
        });
        let error = submitted.unwrap().wait().unwrap_err();
        assert_eq!(error.code(), ErrorCode::Kernel, "{limit}");
        let text = error.to_string();
        assert!(text.ends_with(" is too much") && text.contains("conformance/reduce/mod.rs:"), "{limit}: {text}");
        assert!(target.to_vec().is_err(), "{limit}");
        let sum = env.queue().reduce(&values, Sum);
        assert_eq!(sum.unwrap().get().unwrap(), (0..100_000u32).fold(0, u32::wrapping_add), "{limit}");
    }
}
