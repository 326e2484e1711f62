//! Algorithms over sub-groups on work-items of nd-ranges, with values of each type.

use oxisycl::operator::{Identity, Operator, Sum};
use oxisycl::prelude::*;

use crate::group::sub_groups::blocks;
use crate::harness::{Env, tests};

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
];

/// Sizes of groups, of which some leave the last sub-group with fewer work-items.
const SIZES: [usize; 4] = [1, 33, 64, 100];

/// What a work-item gets by each of the algorithms.
type Results<T> = [T; 8];

/// Runs the algorithms over sub-groups of 32 and of 16 work-items, in groups of each size. Results are those of the model, bit by bit.
#[track_caller]
fn algorithms<T, O>(env: &Env, value: impl Fn(usize) -> T, own: O, bits: fn(T) -> u64)
where
    T: DeviceCopyable + bytemuck::AnyBitPattern + Default + std::fmt::Debug,
    O: Operator<T> + 'static,
    Sum: Identity<T>,
{
    // Of other sizes and with other algorithms, so that no kernel has all: Intel's driver takes minutes to compile one.
    for size in SIZES {
        let values: Vec<T> = (0..2 * size).map(&value).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let output = Buffer::from_vec(vec![[T::default(); 8]; 2 * size]).unwrap();
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
                            let [d, e, f, g] = rest;
                            [a, b, c, selected, d, e, f, g]
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
                        ];
                        output.update(item.global(), |[a, b, c, d, ..]: Results<T>| {
                            let [e, f, g, h] = moved;
                            [a, b, c, d, e, f, g, h]
                        });
                    }),
                }
            });
            submitted.unwrap().wait().unwrap();
        }
        let found = output.to_vec().unwrap();
        for (group, values) in values.chunks(size).enumerate() {
            for (item, &value) in values.iter().enumerate() {
                let (lane, of_32) = (item % 32, values.chunks(32).nth(item / 32).unwrap());
                let of_own = blocks(of_32, |a, b| own.combine(a, b));
                let of_sum = blocks(of_32, |a, b| Sum.combine(a, b));
                let (place, of_16) = (item % 16, values.chunks(16).nth(item / 16).unwrap());
                let from = |all: &[T], lane: usize| all.get(lane).copied().unwrap_or(value);
                let expected: Results<T> = [
                    of_own[of_32.len() - 1],
                    of_own[lane],
                    if lane == 0 { Sum.identity() } else { of_sum[lane - 1] },
                    from(of_32, lane * 7 % 37),
                    from(of_16, place + 3),
                    from(of_16, place.wrapping_sub(1)),
                    from(of_16, place ^ 5),
                    from(of_16, 2),
                ];
                let found = found[group * size + item];
                assert_eq!(
                    found.map(bits),
                    expected.map(bits),
                    "group {group} of {size}, item {item}: {found:?}, {expected:?}"
                );
            }
        }
    }
}

macro_rules! integers {
    ($($name:ident: $t:ty,)*) => { $(
        fn $name(env: &Env) {
            // Does not commute: the later value, unless it is even.
            let own = |a: $t, b: $t| if b & 1 == 1 { b } else { a };
            algorithms(env, |i| (i as $t).wrapping_mul(37).wrapping_add(11), own, |x: $t| x as u64);
        }
    )* };
}

integers! {
    sub_groups_of_u8: u8,
    sub_groups_of_i8: i8,
    sub_groups_of_u16: u16,
    sub_groups_of_i16: i16,
    sub_groups_of_u32: u32,
    sub_groups_of_i32: i32,
    sub_groups_of_u64: u64,
    sub_groups_of_i64: i64,
}

fn sub_groups_of_f32(env: &Env) {
    let value = |i: usize| (i as f32 * 0.37 + 0.1) * if i.is_multiple_of(3) { -1.0e3 } else { 1.0 };
    algorithms(env, value, |a: f32, b: f32| a + b * 0.5, |x| u64::from(x.to_bits()));
}

fn sub_groups_of_f64(env: &Env) {
    let value = |i: usize| (i as f64 * 0.37 + 0.1) * if i.is_multiple_of(3) { -1.0e7 } else { 1.0 };
    algorithms(env, value, |a: f64, b: f64| a + b * 0.5, f64::to_bits);
}
