//! Algorithms over sub-groups on work-items of nd-ranges, with values of each type.

use oxisycl::atomic::Scope;
use oxisycl::group::{Fixed1, Local};
use oxisycl::operator::{Identity, Sum};
use oxisycl::prelude::*;

use crate::group::algorithms::sizes;
use crate::harness::{Env, tests};
use crate::model::{Number, Operation, check_operations, of_each_number};
use crate::support::iota;

tests![
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
    sub_groups_wait_for_each_other_at_their_barriers,
];

fn sub_groups_wait_for_each_other_at_their_barriers(env: &Env) {
    const SIZE: usize = 96;
    const ROUNDS: usize = 4;
    for scope in [None, Some(Scope::SubGroup), Some(Scope::Device)] {
        let numbers = Buffer::from_vec(iota(3 * SIZE)).unwrap();
        let submitted = env.queue().submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            cg.parallel_for_nd_range((3 * SIZE, Fixed1::<SIZE>), Local::<i32, SIZE>::new(), move |mut item, tile| {
                let own = item.local_linear_id();
                let mut value = numbers.get(item.global());
                let mut group = item.group();
                let mut sub_group = group.sub_group::<16>();
                for _ in 0..ROUNDS {
                    // SAFETY: each writes its own element. A barrier stands between that and the reads of others, and one behind these.
                    unsafe {
                        tile.set(own, value);
                        match scope {
                            None => sub_group.barrier(),
                            Some(scope) => sub_group.barrier_in(scope),
                        }
                        // Of the sub-group before.
                        value = tile.get((own + SIZE - 16) % SIZE) + 1;
                        sub_group.barrier();
                    }
                }
                numbers.set(item.global(), value);
            })
        });
        submitted.unwrap().wait().unwrap();
        let moved = |i: usize| (i / SIZE * SIZE + (i % SIZE + SIZE - 16 * ROUNDS) % SIZE + ROUNDS) as i32;
        assert_eq!(numbers.to_vec().unwrap(), (0..3 * SIZE).map(moved).collect::<Vec<_>>(), "{scope:?}");
    }
}

/// What a work-item gets by each of the algorithms.
type Results<T> = [T; 9];

/// Runs the algorithms over sub-groups of 32 and of 16 work-items, in groups of each size. Results are those of the model, bit by bit.
#[track_caller]
fn algorithms<T: Number>(env: &Env)
where
    Sum: Identity<T>,
{
    let own = T::ordered;
    // Of other sizes and with other algorithms, so that no kernel has all: Intel's driver takes minutes to compile one.
    for size in sizes(env) {
        let values: Vec<T> = (0..2 * size).map(T::at).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let output = Buffer::from_vec(vec![[T::default(); 9]; 2 * size]).unwrap();
        for half in [0, 1] {
            let submitted = env.queue().submit(|cg| {
                let (input, output) = (cg.access(&input, Read), cg.access(&output, ReadWrite));
                let range = NdRange::new(Range::new([2 * size]), Range::new([size]));
                match half {
                    0 => cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                        let value = input.get(item.global());
                        let mut group = item.group();
                        let mut of_32 = group.sub_group::<32>();
                        let lane = of_32.local_id();
                        let combined = [
                            of_32.reduce(value, own),
                            of_32.inclusive_scan(value, own),
                            of_32.exclusive_scan(value, Sum),
                        ];
                        let [a, b, c] = combined;
                        let selected = of_32.select(value, lane * 7 % 37);
                        output.update(item.global(), |[_, _, _, _, rest @ ..]: Results<T>| {
                            let [d, e, f, g, h] = rest;
                            [a, b, c, selected, d, e, f, g, h]
                        });
                    }),
                    _ => cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                        let value = input.get(item.global());
                        let mut group = item.group();
                        let mut of_16 = group.sub_group::<16>();
                        let moved = [
                            of_16.shift_left(value, 3),
                            of_16.shift_right(value, 1),
                            of_16.permute_by_xor(value, 5),
                            of_16.broadcast(value, 2),
                            of_16.exclusive_scan_from(value, T::FIRST, own),
                        ];
                        output.update(item.global(), |[a, b, c, d, ..]: Results<T>| {
                            let [e, f, g, h, i] = moved;
                            [a, b, c, d, e, f, g, h, i]
                        });
                    }),
                }
            });
            submitted.unwrap().wait().unwrap();
        }
        let operations = [
            (32, Operation::Reduce),
            (32, Operation::InclusiveScan),
            (32, Operation::ExclusiveScan),
            (32, Operation::From(|lane, _| lane * 7 % 37)),
            (16, Operation::From(|lane, _| lane + 3)),
            (16, Operation::From(|lane, _| lane.wrapping_sub(1))),
            (16, Operation::From(|lane, _| lane ^ 5)),
            (16, Operation::From(|_, _| 2)),
            (16, Operation::ExclusiveScanFrom),
        ];
        check_operations(operations, (&values, size), (own, T::FIRST), &output.to_vec().unwrap());
    }
}

of_each_number! {
    algorithms:
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
