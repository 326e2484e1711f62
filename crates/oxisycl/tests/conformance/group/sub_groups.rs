//! Algorithms over sub-groups of each size that a kernel may name.

use oxisycl::group::{Private, Shape};
use oxisycl::operator::{Identity, Operator, Sum};
use oxisycl::prelude::*;

use super::algorithms::sizes;
use crate::harness::{Env, tests};
use crate::model::{Number, Operation, check_operations, for_each_number, matches, of_each_number};

tests![
    sub_groups_of_1,
    sub_groups_of_8,
    sub_groups_of_16,
    sub_groups_of_32,
    sub_groups_of_64,
    sub_groups_of_u8,
    sub_groups_of_i8,
    sub_groups_of_u16,
    sub_groups_of_i16,
    sub_groups_of_u32,
    sub_groups_of_i32,
    sub_groups_of_u64,
    sub_groups_of_i64,
    sub_groups_of_f32,
    sub_groups_of_f64,
    votes_of_sub_groups_of_8,
    votes_of_sub_groups_of_32,
    votes_of_sub_groups_of_64,
    equal_values_find_each_other,
    wide_values_move_whole,
];

/// Runs every operation over sub-groups of `W` work-items, in groups of each size, and holds the values against the model, bit by bit.
#[track_caller]
fn operations<const W: usize, T, O>(env: &Env, value: impl Fn(usize) -> T, own: O)
where
    T: Number,
    O: Operator<T> + 'static,
    Sum: Identity<T>,
{
    let first = T::FIRST;
    for size in sizes(env) {
        let values: Vec<T> = (0..2 * size).map(&value).collect();
        let (input, output) =
            (Buffer::from_vec(values.clone()).unwrap(), Buffer::from_vec(vec![[T::default(); 9]; 2 * size]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            let memory = (Private::new(T::default()), Private::new(0u32), Private::new([T::default(); 9]));
            cg.parallel_for_work_group(
                2,
                Range::new([size]),
                memory,
                move |mut group, (mut value, mut index, mut results)| {
                    group.for_each(&mut index, |item, index| *index = item.local_linear_id() as u32 * 7 % 67);
                    for step in 0..9 {
                        group.for_each(&mut value, move |item, value| *value = input.get(item.global()));
                        let mut sub_groups = group.sub_groups::<W>();
                        match step {
                            0 => sub_groups.reduce(&mut value, own),
                            1 => sub_groups.inclusive_scan(&mut value, own),
                            2 => sub_groups.exclusive_scan(&mut value, Sum),
                            3 => sub_groups.exclusive_scan_from(&mut value, first, own),
                            4 => sub_groups.shift_left(&mut value, 3),
                            5 => sub_groups.shift_right(&mut value, 1),
                            6 => sub_groups.permute_by_xor(&mut value, 5),
                            7 => sub_groups.select(&mut value, &index),
                            _ => sub_groups.broadcast(&mut value, 2),
                        }
                        group.for_each((&value, &mut results), move |_, (value, results)| results[step] = *value);
                    }
                    group.for_each(&results, move |item, results| output.set(item.global(), *results));
                },
            )
        });
        submitted.unwrap().wait().unwrap();
        let operations = [
            Operation::Reduce,
            Operation::InclusiveScan,
            Operation::ExclusiveScan,
            Operation::ExclusiveScanFrom,
            Operation::From(|lane, _| lane + 3),
            Operation::From(|lane, _| lane.wrapping_sub(1)),
            Operation::From(|lane, _| lane ^ 5),
            Operation::From(|_, item| item * 7 % 67),
            Operation::From(|_, _| 2),
        ];
        let operations = operations.map(|operation| (W, operation));
        check_operations(operations, (&values, size), (own, first), &output.to_vec().unwrap());
    }
}

/// Operations over 64-bit numbers by an operator that does not commute.
fn of_u64<const W: usize>(env: &Env) {
    let own = |a: u64, b: u64| a.wrapping_mul(3).wrapping_add(b);
    operations::<W, _, _>(env, |i| (i * i + 1) as u64, own);
}

fn of_number<T: Number>(env: &Env)
where
    Sum: Identity<T>,
{
    operations::<32, _, _>(env, T::at, T::ordered);
}

of_each_number! {
    of_number:
    fn sub_groups_of_u8: u8;
    fn sub_groups_of_i8: i8;
    fn sub_groups_of_u16: u16;
    fn sub_groups_of_i16: i16;
    fn sub_groups_of_u32: u32;
    fn sub_groups_of_i32: i32;
    fn sub_groups_of_u64: u64;
    fn sub_groups_of_i64: i64;
    fn sub_groups_of_f32: f32;
    fn sub_groups_of_f64: f64;
}

fn sub_groups_of_1(env: &Env) {
    of_u64::<1>(env);
}

fn sub_groups_of_8(env: &Env) {
    of_u64::<8>(env);
}

fn sub_groups_of_16(env: &Env) {
    of_u64::<16>(env);
}

fn sub_groups_of_32(env: &Env) {
    of_u64::<32>(env);
}

fn sub_groups_of_64(env: &Env) {
    of_u64::<64>(env);
}

fn votes<const W: usize>(env: &Env) {
    for size in sizes(env) {
        let output = Buffer::from_vec(vec![(0u64, [false; 3]); size]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let output = cg.access(&output, Write);
            let memory = (Private::new([false; 4]), Private::new(false), Private::new(0u64));
            cg.parallel_for_work_group(
                1,
                Range::new([size]),
                memory,
                move |mut group, (mut all, mut holds, mut bits)| {
                    for step in 0..4 {
                        group.for_each(&mut holds, |item, holds| *holds = holds_for(item.local_linear_id()));
                        let mut sub_groups = group.sub_groups::<W>();
                        match step {
                            0 => sub_groups.any(&mut holds),
                            1 => sub_groups.all(&mut holds),
                            2 => sub_groups.none(&mut holds),
                            _ => sub_groups.ballot(&holds, &mut bits),
                        }
                        group.for_each((&holds, &mut all), move |_, (holds, all)| all[step] = *holds);
                    }
                    group.for_each((&all, &bits), move |item, (all, bits)| {
                        output.set(item.global(), (*bits, [all[0], all[1], all[2]]));
                    });
                },
            )
        });
        submitted.unwrap().wait().unwrap();
        let holds: Vec<bool> = (0..size).map(holds_for).collect();
        let expected = holds.chunks(W).flat_map(|of| {
            let bits = of.iter().enumerate().fold(0u64, |all, (lane, holds)| all | u64::from(*holds) << lane);
            vec![(bits, [of.contains(&true), !of.contains(&false), !of.contains(&true)]); of.len()]
        });
        assert_eq!(output.to_vec().unwrap(), expected.collect::<Vec<_>>(), "{W}: {size}");
    }
}

/// All of the first 64, none of the next, and some of the others.
fn holds_for(item: usize) -> bool {
    item < 64 || (item >= 128 && item.is_multiple_of(3))
}

fn votes_of_sub_groups_of_8(env: &Env) {
    votes::<8>(env);
}

fn votes_of_sub_groups_of_32(env: &Env) {
    votes::<32>(env);
}

fn votes_of_sub_groups_of_64(env: &Env) {
    votes::<64>(env);
}

fn equal_values_find_each_other(env: &Env) {
    fn check<const W: usize, T: Number>(env: &Env)
    where
        Sum: Identity<T>,
    {
        for size in sizes(env) {
            let values: Vec<T> = (0..size).map(|i| T::at(i * 5 % 7)).collect();
            let (input, output) =
                (Buffer::from_vec(values.clone()).unwrap(), Buffer::from_vec(vec![0u64; size]).unwrap());
            let submitted = env.queue().submit(|cg| {
                let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
                let memory = (Private::new(T::default()), Private::new(0u64));
                cg.parallel_for_work_group(1, Range::new([size]), memory, move |mut group, (mut value, mut bits)| {
                    group.for_each(&mut value, move |item, value| *value = input.get(item.global()));
                    group.sub_groups::<W>().match_any(&value, &mut bits);
                    group.for_each(&bits, move |item, bits| output.set(item.global(), *bits));
                })
            });
            submitted.unwrap().wait().unwrap();
            let expected: Vec<u64> = values.chunks(W).flat_map(matches).collect();
            assert_eq!(output.to_vec().unwrap(), expected, "{W}: {size}");
        }
    }
    fn of_32<T: Number>(env: &Env)
    where
        Sum: Identity<T>,
    {
        check::<32, T>(env);
    }
    for_each_number!(of_32(env));
    check::<16, u16>(env);
    check::<64, u16>(env);
}

fn wide_values_move_whole(env: &Env) {
    // Thirteen bytes: no multiple of what processors move at once.
    let output = Buffer::from_vec(vec![[0u8; 13]; 64]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        cg.parallel_for_work_group(1, Range::new([64]), Private::new([0u8; 13]), move |mut group, mut value| {
            group.for_each(&mut value, |item, value| {
                *value = std::array::from_fn(|i| (item.local_linear_id() * 13 + i) as u8);
            });
            group.sub_groups::<32>().shift_left(&mut value, 1);
            group.for_each(&value, move |item, value| output.set(item.global(), *value));
        })
    });
    submitted.unwrap().wait().unwrap();
    for (item, found) in output.to_vec().unwrap().into_iter().enumerate() {
        let from = if item % 32 == 31 { item } else { item + 1 };
        assert_eq!(found, std::array::from_fn(|i| (from * 13 + i) as u8), "item {item}");
    }
    assert_eq!(Range::new([64]).extent(), [64]);
}
