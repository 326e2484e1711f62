//! Algorithms over groups and sub-groups, on work-items of nd-ranges. Results are those of kernels over groups, of which the area `group` tests more.

use oxisycl::group::Fixed1;
use oxisycl::operator::{BitXor, Identity, Max, Min, Operator, Sum};
use oxisycl::prelude::*;

use crate::group::algorithms::sizes;
use crate::harness::{Env, tests};
use crate::model::{Number, for_each_number, matches, scan_of_group};

tests![
    algorithms_of_integers,
    algorithms_of_floats,
    algorithms_of_bytes_with_an_own_operator,
    votes_of_groups,
    values_reach_chosen_work_items,
    values_of_each_type_reach_chosen_work_items,
    one_algorithm_after_the_other,
    algorithms_in_a_loop_that_a_result_ends,
    sub_groups_of_8,
    sub_groups_of_32,
    sub_groups_of_64,
    equal_values_of_work_items_find_each_other,
    an_operator_that_panics,
    a_broadcast_from_nobody_is_a_panic,
];

/// Holds every algorithm of a group against its model, bit by bit.
fn algorithms<T, O>(env: &Env, value: impl Fn(usize) -> T, operator: O, first: T)
where
    T: DeviceCopyable + bytemuck::AnyBitPattern + PartialEq + std::fmt::Debug,
    O: Operator<T> + 'static,
    Sum: Identity<T>,
{
    for size in sizes(env) {
        let values: Vec<T> = (0..2 * size).map(&value).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let output = Buffer::from_vec(vec![[first; 5]; 2 * size]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            let range = NdRange::new(Range::new([2 * size]), Range::new([size]));
            cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                let own = input.get(item.global());
                let mut group = item.group();
                let results = [
                    group.reduce(own, operator),
                    group.inclusive_scan(own, operator),
                    group.exclusive_scan_from(own, first, operator),
                    group.broadcast(own, size / 2),
                    group.exclusive_scan(own, Sum),
                ];
                output.set(item.global(), results);
            })
        });
        submitted.unwrap().wait().unwrap();
        let found = output.to_vec().unwrap();
        for (group, values) in values.chunks(size).enumerate() {
            let sums = scan_of_group(values, |a, b| Sum.combine(a, b));
            let all = scan_of_group(values, |a, b| operator.combine(a, b));
            for (own, inclusive) in all.iter().enumerate() {
                let exclusive = if own == 0 { first } else { operator.combine(first, all[own - 1]) };
                let sum = if own == 0 { Sum.identity() } else { sums[own - 1] };
                let expected = [all[size - 1], *inclusive, exclusive, values[size / 2], sum];
                assert_eq!(found[group * size + own], expected, "work-item {own} of group {group} of {size}");
            }
        }
    }
}

fn algorithms_of_integers(env: &Env) {
    algorithms(env, |i| (i as u32).wrapping_mul(2_654_435_761), Sum, 7);
    algorithms(env, |i| (i as i64 - 100) * 1_000_000_007, Max, -5);
    algorithms(env, |i| (i as i16).wrapping_mul(313), Min, 3);
    algorithms(env, |i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15), BitXor, 1);
    algorithms(env, |i| (i as i32).wrapping_mul(77_777), |a: i32, b: i32| if b & 1 == 1 { b } else { a }, 2);
    algorithms(env, |i| (i as u16).wrapping_mul(40_503), |a: u16, b: u16| a.wrapping_mul(3).wrapping_add(b), 3);
    algorithms(env, |i| (i as i8).wrapping_mul(29), Sum, -4);
}

fn algorithms_of_floats(env: &Env) {
    algorithms(env, |i| 1.0 / (i + 1) as f32, Sum, 0.1);
    algorithms(env, |i| 1.0 / (i + 1) as f64, Sum, 0.1);
}

fn algorithms_of_bytes_with_an_own_operator(env: &Env) {
    // Neither commutative nor with an identity.
    algorithms(env, |i| (i * 7) as u8, |a: u8, b: u8| a.wrapping_mul(4).wrapping_add(b & 3) & !1 | b & 1, 9);
}

fn votes_of_groups(env: &Env) {
    // In group 0 none, in group 1 the last one, in group 2 all but the first one, in group 3 all.
    fn holds(group: usize, own: usize, size: usize) -> bool {
        match group {
            0 => false,
            1 => own == size - 1,
            2 => own != 0,
            _ => true,
        }
    }
    for size in sizes(env) {
        let output = Buffer::from_vec(vec![[0u8; 3]; 4 * size]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let output = cg.access(&output, Write);
            let range = NdRange::new(Range::new([4 * size]), Range::new([size]));
            cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                let holds = holds(item.group_linear_id(), item.local_linear_id(), size);
                let mut group = item.group();
                let votes = [group.any(holds), group.all(holds), group.none(holds)];
                output.set(item.global(), votes.map(u8::from));
            })
        });
        submitted.unwrap().wait().unwrap();
        let found = output.to_vec().unwrap();
        for (group, found) in found.chunks(size).enumerate() {
            let of: Vec<bool> = (0..size).map(|own| holds(group, own, size)).collect();
            let expected = [of.contains(&true), !of.contains(&false), !of.contains(&true)].map(u8::from);
            assert!(found.iter().all(|votes| *votes == expected), "group {group} of {size}");
        }
    }
}

fn values_reach_chosen_work_items(env: &Env) {
    const SIZE: usize = 70;
    let output = Buffer::from_vec(vec![[0u64; 2]; 3 * SIZE]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        cg.parallel_for_nd_range((3 * SIZE, Fixed1::<SIZE>), (), move |mut item, ()| {
            let (own, value) = (item.local_linear_id(), [item.global_linear_id() as u64, 5]);
            let found = item.group().select(value, own * 3);
            output.set(item.global(), found);
        })
    });
    submitted.unwrap().wait().unwrap();
    for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
        let own = index % SIZE;
        let from = if own * 3 < SIZE { index - own + own * 3 } else { index };
        assert_eq!(found, [from as u64, 5]);
    }
}

fn values_of_each_type_reach_chosen_work_items(env: &Env) {
    fn check<T: Number>(env: &Env)
    where
        Sum: Identity<T>,
    {
        for size in sizes(env) {
            let values: Vec<T> = (0..2 * size).map(T::at).collect();
            let input = Buffer::from_vec(values.clone()).unwrap();
            let output = Buffer::from_vec(vec![T::default(); 2 * size]).unwrap();
            let submitted = env.queue().submit(|cg| {
                let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
                let range = NdRange::new(Range::new([2 * size]), Range::new([size]));
                cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                    let (own, value) = (item.local_linear_id(), input.get(item.global()));
                    let found = item.group().select(value, own * 3);
                    output.set(item.global(), found);
                })
            });
            submitted.unwrap().wait().unwrap();
            for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
                let own = index % size;
                let from = if own * 3 < size { index - own + own * 3 } else { index };
                assert_eq!(found, values[from], "work-item {index} of groups of {size}");
            }
        }
    }
    for_each_number!(check(env));
}

fn one_algorithm_after_the_other(env: &Env) {
    // Of values of several sizes, so that memory between them is used in different ways.
    const SIZE: usize = 96;
    let output = Buffer::from_vec(vec![0u64; 2 * SIZE]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        cg.parallel_for_nd_range((2 * SIZE, Fixed1::<SIZE>), (), move |mut item, ()| {
            let (own, mut all) = (item.local_linear_id(), 0u64);
            let mut group = item.group();
            for round in 0..5 {
                let (bytes, words) = (group.reduce(own as u8 & 1, Sum), group.inclusive_scan(own as u64 + round, Sum));
                let last = group.broadcast([words, 1, 2], SIZE - 1)[0];
                let half = group.select(own as u16, SIZE - 1 - own);
                group.barrier();
                all += u64::from(bytes) + words + last + u64::from(half) + u64::from(group.any(own == 90));
            }
            output.set(item.global(), all);
        })
    });
    submitted.unwrap().wait().unwrap();
    for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
        let own = (index % SIZE) as u64;
        let of_round = |round: u64| {
            let up_to = |n: u64| n * (n + 1) / 2 + round * (n + 1);
            48 + up_to(own) + up_to(95) + (95 - own) + 1
        };
        assert_eq!(found, (0..5).map(of_round).sum::<u64>(), "{own}");
    }
}

fn algorithms_in_a_loop_that_a_result_ends(env: &Env) {
    // Each step halves the values that are not 1 yet; it ends when all are.
    const SIZE: usize = 64;
    let output = Buffer::from_vec(vec![0u32; 4 * SIZE]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        cg.parallel_for_nd_range((4 * SIZE, Fixed1::<SIZE>), (), move |mut item, ()| {
            let (mut value, mut steps) = (item.global_linear_id() + 1, 0);
            while item.group().any(value > 1) {
                value = value.div_ceil(2);
                steps += 1;
            }
            output.set(item.global(), steps);
        })
    });
    submitted.unwrap().wait().unwrap();
    for (index, steps) in output.to_vec().unwrap().into_iter().enumerate() {
        let largest = (index / SIZE + 1) * SIZE;
        assert_eq!(steps, largest.next_power_of_two().ilog2());
    }
}

fn sub_groups<const W: usize>(env: &Env) {
    let own_operator = |a: u64, b: u64| a.wrapping_mul(3).wrapping_add(b);
    for size in sizes(env) {
        let values: Vec<u64> = (0..2 * size as u64).map(|i| i * i + 1).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let output = Buffer::from_vec(vec![[0u64; 12]; 2 * size]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            let range = NdRange::new(Range::new([2 * size]), Range::new([size]));
            cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                let own = input.get(item.global());
                let mut group = item.group();
                let mut sub_group = group.sub_group::<W>();
                let lane = sub_group.local_id();
                let results = [
                    sub_group.reduce(own, own_operator),
                    sub_group.inclusive_scan(own, own_operator),
                    sub_group.exclusive_scan(own, Sum),
                    // Each sub-group begins with another value.
                    sub_group.exclusive_scan_from(own, 10 * sub_group.id() as u64, own_operator),
                    sub_group.shift_left(own, 3),
                    sub_group.shift_right(own, 1),
                    sub_group.permute_by_xor(own, 5),
                    sub_group.select(own, lane * 7 % 67),
                    sub_group.broadcast(own, 2),
                    sub_group.ballot(own % 3 == 1),
                    u64::from(sub_group.none(own > 5000)) << 2
                        | u64::from(sub_group.all(own > 1)) << 1
                        | u64::from(sub_group.any(own > 5000)),
                    (sub_group.id() * 1000 + sub_group.count() * 100_000 + lane) as u64
                        + u64::from(sub_group.is_leader()) * 100_000_000
                        + sub_group.size() as u64 * 1_000_000_000,
                ];
                output.set(item.global(), results);
            })
        });
        submitted.unwrap().wait().unwrap();
        let found = output.to_vec().unwrap();
        for (group, values) in values.chunks(size).enumerate() {
            for (number, values) in values.chunks(W).enumerate() {
                let block = |combine: &dyn Fn(u64, u64) -> u64| {
                    let mut now = values.to_vec();
                    let mut step = 1;
                    while step < W {
                        let old = now.clone();
                        (step..now.len()).for_each(|i| now[i] = combine(old[i - step], old[i]));
                        step *= 2;
                    }
                    now
                };
                let (of_own, of_sum) = (block(&own_operator), block(&|a, b| a + b));
                let bits = |f: &dyn Fn(u64) -> bool| {
                    values.iter().enumerate().fold(0u64, |bits, (lane, value)| bits | u64::from(f(*value)) << lane)
                };
                let (all, row) = (u64::from(values.iter().all(|value| *value > 1)), 10 * number as u64);
                let any = u64::from(values.iter().any(|value| *value > 5000));
                for (lane, &value) in values.iter().enumerate() {
                    let from = |lane: usize| values.get(lane).copied().unwrap_or(value);
                    let expected = [
                        of_own[values.len() - 1],
                        of_own[lane],
                        if lane == 0 { 0 } else { of_sum[lane - 1] },
                        if lane == 0 { row } else { own_operator(row, of_own[lane - 1]) },
                        from(lane + 3),
                        from(lane.wrapping_sub(1)),
                        from(lane ^ 5),
                        from(lane * 7 % 67),
                        from(2),
                        bits(&|value| value % 3 == 1),
                        (1 - any) << 2 | all << 1 | any,
                        (number * 1000 + size.div_ceil(W) * 100_000 + lane) as u64
                            + u64::from(lane == 0) * 100_000_000
                            + values.len() as u64 * 1_000_000_000,
                    ];
                    let item = number * W + lane;
                    assert_eq!(
                        found[group * size + item],
                        expected,
                        "{W}: work-item {item} of group {group} of {size}"
                    );
                }
            }
        }
    }
}

fn sub_groups_of_8(env: &Env) {
    sub_groups::<8>(env);
}

fn sub_groups_of_32(env: &Env) {
    sub_groups::<32>(env);
}

fn sub_groups_of_64(env: &Env) {
    sub_groups::<64>(env);
}

/// A kernel of its own: Intel's driver takes minutes to compile one that has all algorithms of sub-groups.
fn equal_values_of_work_items_find_each_other(env: &Env) {
    fn check<const W: usize, T>(env: &Env, value: impl Fn(usize) -> T)
    where
        T: DeviceCopyable + bytemuck::AnyBitPattern + PartialEq,
    {
        for size in sizes(env) {
            let values: Vec<T> = (0..2 * size).map(&value).collect();
            let input = Buffer::from_vec(values.clone()).unwrap();
            let output = Buffer::from_vec(vec![0u64; 2 * size]).unwrap();
            let submitted = env.queue().submit(|cg| {
                let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
                let range = NdRange::new(Range::new([2 * size]), Range::new([size]));
                cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                    let own = input.get(item.global());
                    let matches = item.group().sub_group::<W>().match_any(own);
                    output.set(item.global(), matches);
                })
            });
            submitted.unwrap().wait().unwrap();
            let expected = values.chunks(size).flat_map(|group| group.chunks(W)).flat_map(matches);
            assert_eq!(output.to_vec().unwrap(), expected.collect::<Vec<_>>(), "{W}: {size}");
        }
    }
    fn of_32<T: Number>(env: &Env)
    where
        Sum: Identity<T>,
    {
        check::<32, T>(env, |i| T::at(i * 5 % 7));
    }
    for_each_number!(of_32(env));
    check::<8, u16>(env, |i| (i * 5 % 7) as u16);
    check::<32, u64>(env, |i| (i as u64 * i as u64 % 11) << 32);
    // NaN equals nothing, itself included. Both zeros are equal.
    check::<64, f32>(env, |i| [f32::NAN, 0.0, -0.0, 1.5, 2.5][i * 3 % 5]);
}

fn an_operator_that_panics(env: &Env) {
    let event = env.queue().submit(|cg| {
        cg.parallel_for_nd_range((140, Fixed1::<70>), (), move |mut item, ()| {
            let total = item.group().reduce(200u8, |a: u8, b: u8| match a.checked_add(b) {
                Some(sum) => sum,
                None => panic!("{a} and {b} are too much"),
            });
            assert!(total > 0);
        })
    });
    let error = event.unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    assert!(error.to_string().contains("200 and 200 are too much"), "{error}");
}

fn a_broadcast_from_nobody_is_a_panic(env: &Env) {
    let event = env.queue().submit(|cg| {
        cg.parallel_for_nd_range((16, Fixed1::<8>), (), move |mut item, ()| {
            let value = item.group().broadcast(1u32, 8);
            assert!(value == 1);
        })
    });
    let text = event.unwrap().wait().unwrap_err().to_string();
    assert!(text.contains("work-item 8 of a group of 8"), "{text}");
}
