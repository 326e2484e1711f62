//! Algorithms over all work-items of a group: reductions, scans, votes and broadcasts.

use oxisycl::group::{Fixed1, Fixed2, Local, Private};
use oxisycl::operator::{And, BitAnd, BitOr, BitXor, Identity, Max, Min, Operator, Or, Sum};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::model::{Number, for_each_number, scan_of_group};

tests![
    values_of_u8,
    values_of_i8,
    values_of_u16,
    values_of_i16,
    values_of_u32,
    values_of_i32,
    values_of_u64,
    values_of_i64,
    values_of_f32,
    values_of_f64,
    values_of_a_users_type,
    bits_are_combined,
    words_are_combined_at_once,
    integers_are_true_or_false,
    operands_keep_their_order,
    groups_of_the_devices_largest_size,
    groups_of_two_and_three_dimensions_follow_their_linear_ids,
    votes_are_of_all_work_items,
    any_work_items_value_is_broadcast,
    an_element_of_a_tile_decides_at_group_scope,
    minimum_and_maximum_ignore_what_is_no_number,
    a_loop_ends_when_all_work_items_agree,
    algorithms_over_values_of_several_sizes_share_memory,
];

/// Sizes around those of sub-groups and of usual groups, and a large one.
pub(crate) fn sizes(env: &Env) -> Vec<usize> {
    let info = env.device().info();
    let most = info.max_work_group_size.min(info.max_work_item_sizes[2]).min(1024);
    [1, 2, 31, 32, 33, 255, 256, 1000, most].into_iter().filter(|n| *n <= most).collect()
}

/// What each work-item has: two reductions, the totals of two scans, and its values after an inclusive scan and two exclusive ones.
type Results<T> = ([T; 4], [T; 3]);

/// Runs algorithms over groups of each size, and holds them against the model, bit by bit.
#[track_caller]
fn check<T, P, Q>(env: &Env, value: impl Fn(usize) -> T, plain: P, own: Q, bits: impl Fn(T) -> u128)
where
    T: DeviceCopyable + Default + std::fmt::Debug + bytemuck::AnyBitPattern,
    P: Identity<T> + 'static,
    Q: Operator<T> + 'static,
{
    const GROUPS: usize = 3;
    let queue = env.queue();
    for size in sizes(env) {
        let values: Vec<T> = (0..GROUPS * size).map(&value).collect();
        let first = value(7);
        let input = Buffer::from_vec(values.clone()).unwrap();
        let output = Buffer::from_vec(vec![Results::<T>::default(); values.len()]).unwrap();
        let submitted = queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            let memory = (Private::new(T::default()), Private::new(T::default()), Private::new(T::default()));
            let memory = (memory.0, memory.1, memory.2);
            cg.parallel_for_work_group(GROUPS, Range::new([size]), memory, move |mut group, (mut a, mut b, mut c)| {
                group.for_each((&mut a, &mut b, &mut c), move |item, (a, b, c)| {
                    let value = input.get(item.global());
                    (*a, *b, *c) = (value, value, value);
                });
                let all = [group.reduce(&a, plain), group.reduce(&a, own)];
                let totals = [group.inclusive_scan(&mut a, own), group.exclusive_scan(&mut b, plain)];
                group.exclusive_scan_from(&mut c, first, own);
                group.for_each((&a, &b, &c), move |item, (a, b, c)| {
                    output.set(item.global(), ([all[0], all[1], totals[0], totals[1]], [*a, *b, *c]));
                });
            })
        });
        submitted.unwrap().wait().unwrap();
        let found = output.to_vec().unwrap();
        for (group, values) in values.chunks(size).enumerate() {
            let (with_plain, with_own) =
                (scan_of_group(values, |a, b| plain.combine(a, b)), scan_of_group(values, |a, b| own.combine(a, b)));
            let [of_plain, of_own] = [with_plain[size - 1], with_own[size - 1]];
            let all = [of_plain, of_own, of_own, of_plain];
            for i in 0..size {
                let of_plain = if i == 0 { plain.identity() } else { with_plain[i - 1] };
                let of_own = if i == 0 { first } else { own.combine(first, with_own[i - 1]) };
                let expected: Results<T> = (all, [with_own[i], of_plain, of_own]);
                let found = found[group * size + i];
                let flat = |r: Results<T>| (r.0.map(&bits), r.1.map(&bits));
                assert_eq!(flat(found), flat(expected), "group {group} of {size}, item {i}: {found:?}, {expected:?}");
            }
        }
    }
}

macro_rules! integers {
    ($($name:ident: $t:ty,)*) => { $(
        fn $name(env: &Env) {
            // Neither commutes: the later value, unless it is even.
            let own = |a: $t, b: $t| if b & 1 == 1 { b } else { a };
            check(env, |i| (i as $t).wrapping_mul(37).wrapping_add(11), Sum, own, |x| x as u128);
        }
    )* };
}

integers! {
    values_of_u8: u8,
    values_of_i8: i8,
    values_of_u16: u16,
    values_of_i16: i16,
    values_of_u32: u32,
    values_of_i32: i32,
    values_of_u64: u64,
    values_of_i64: i64,
}

fn values_of_f32(env: &Env) {
    let value = |i: usize| (i as f32 * 0.37 + 0.1) * if i.is_multiple_of(3) { -1.0e3 } else { 1.0 };
    check(env, value, Sum, |a: f32, b: f32| a + b * 0.5, |x| u128::from(x.to_bits()));
}

fn values_of_f64(env: &Env) {
    let value = |i: usize| (i as f64 * 0.37 + 0.1) * if i.is_multiple_of(3) { -1.0e7 } else { 1.0 };
    check(env, value, Sum, |a: f64, b: f64| a + b * 0.5, |x| u128::from(x.to_bits()));
}

/// A value of twelve bytes.
#[derive(Clone, Copy, Debug, Default, DeviceCopyable)]
#[repr(C)]
struct Line {
    slope: i32,
    offset: i32,
    n: u32,
}

// SAFETY: three numbers.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: three numbers.
unsafe impl bytemuck::AnyBitPattern for Line {}

/// One line after the other, which does not commute.
#[derive(Clone, Copy)]
struct After;

impl Operator<Line> for After {
    fn combine(&self, first: Line, second: Line) -> Line {
        Line {
            slope: first.slope.wrapping_mul(second.slope),
            offset: second.slope.wrapping_mul(first.offset).wrapping_add(second.offset),
            n: first.n + second.n,
        }
    }
}

impl Identity<Line> for After {
    fn identity(&self) -> Line {
        Line { slope: 1, offset: 0, n: 0 }
    }
}

fn values_of_a_users_type(env: &Env) {
    let bits =
        |line: Line| u128::from(line.slope as u32) << 64 | u128::from(line.offset as u32) << 32 | u128::from(line.n);
    let own = |a: Line, b: Line| Line { slope: a.slope ^ b.slope, offset: b.offset, n: a.n.wrapping_add(b.n) };
    let value = |i: usize| Line { slope: i as i32 * 7 + 3, offset: i as i32 * 13 - 5, n: 1 };
    check(env, value, After, own, bits);
}

fn bits_are_combined(env: &Env) {
    // The own operators are those with the operands exchanged.
    check(env, |i| !(1u64 << (i % 61)), BitAnd, |a: u64, b: u64| b & a, u128::from);
    check(env, |i| 1i16 << (i / 5 % 13), BitOr, |a: i16, b: i16| b | a, |x| x as u128);
}

/// Combines values over groups of each size and over their sub-groups, and holds the results against plain Rust.
fn combined<T, O>(env: &Env, value: fn(u32) -> T, operator: O, plain: fn(T, T) -> T)
where
    T: DeviceCopyable + Default + PartialEq + std::fmt::Debug + bytemuck::AnyBitPattern,
    O: Operator<T> + 'static,
{
    for size in sizes(env) {
        let values: Vec<T> = (0..2 * size as u32).map(value).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let output = Buffer::from_vec(vec![[T::default(); 2]; values.len()]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            cg.parallel_for_work_group(2, Range::new([size]), Private::new(T::default()), move |mut group, mut own| {
                group.for_each(&mut own, move |item, own| *own = input.get(item.global()));
                let all = group.reduce(&own, operator);
                group.sub_groups::<32>().reduce(&mut own, operator);
                group.for_each(&own, move |item, own| output.set(item.global(), [all, *own]));
            })
        });
        submitted.unwrap().wait().unwrap();
        let all = |values: &[T]| values.iter().copied().reduce(plain).unwrap();
        let of_blocks = |group: &[T]| group.chunks(32).flat_map(|b| vec![[all(group), all(b)]; b.len()]).collect();
        let expected: Vec<[T; 2]> = values.chunks(size).flat_map::<Vec<_>, _>(of_blocks).collect();
        assert_eq!(output.to_vec().unwrap(), expected, "groups of {size} by {}", std::any::type_name::<O>());
    }
}

/// Processors that combine the words of a sub-group by one instruction have others for signed words.
fn words_are_combined_at_once(env: &Env) {
    macro_rules! check {
        ($($t:ty)*) => { $(
            // Both signs in nearly every sub-group.
            let mixed = |i: u32| i.wrapping_mul(0x9e37_79b1) as $t;
            combined(env, mixed, Sum, <$t>::wrapping_add);
            combined(env, mixed, Min, |a, b| if b < a { b } else { a });
            combined(env, mixed, Max, |a, b| if b > a { b } else { a });
            combined(env, mixed, BitXor, |a, b| a ^ b);
            combined(env, |i| !(1 << (i % 29)), BitAnd, |a: $t, b| a & b);
            combined(env, |i| 1 << (i % 29), BitOr, |a: $t, b| a | b);
        )* };
    }
    check! { i32 u32 }
}

/// A value that is combined with no other stays what it is, so those of first work-items are not all 0 or 1.
fn integers_are_true_or_false(env: &Env) {
    // True up to some place in the second group of those with 33 work-items, and in the first ones of larger groups.
    check(env, |i| if i == 50 { 0 } else { [2u8, 4][i % 2] }, And, |a: u8, b: u8| u8::from(a * b != 0), u128::from);
    check(
        env,
        |i| if i < 40 { 0 } else { [2i32, 4][i % 2] },
        Or,
        |a: i32, b: i32| i32::from(a + b != 0),
        |x| x as u128,
    );
}

fn operands_keep_their_order(env: &Env) {
    // What is combined is the range of ids that it stands for; two ranges that do not meet give nothing.
    let join = |a: [u32; 2], b: [u32; 2]| if a[1] == b[0] { [a[0], b[1]] } else { [u32::MAX; 2] };
    for size in sizes(env) {
        let output = Buffer::from_vec(vec![[0u32; 2]; size]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let output = cg.access(&output, Write);
            cg.parallel_for_work_group(1, Range::new([size]), Private::new([0u32; 2]), move |mut group, mut ids| {
                group.for_each(&mut ids, |item, ids| {
                    let id = item.local_linear_id() as u32;
                    *ids = [id, id + 1];
                });
                group.inclusive_scan(&mut ids, join);
                group.for_each(&ids, move |item, ids| output.set(item.global(), *ids));
            })
        });
        submitted.unwrap().wait().unwrap();
        let expected: Vec<_> = (0..size as u32).map(|id| [0, id + 1]).collect();
        assert_eq!(output.to_vec().unwrap(), expected);
    }
}

/// Drivers for CPUs take groups of several thousand work-items.
fn groups_of_the_devices_largest_size(env: &Env) {
    let info = env.device().info();
    let size = info.max_work_group_size.min(info.max_work_item_sizes[2]).min(1 << 14);
    let output = Buffer::from_vec(vec![[0u64; 8]; 2 * size]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        let memory = (Private::new(0u64), Private::new(0u64), Private::new(false), Private::new(0u64));
        cg.parallel_for_work_group(
            2,
            Range::new([size]),
            memory,
            move |mut group, (mut a, mut b, mut holds, mut bits)| {
                group.for_each((&mut a, &mut b, &mut holds), move |item, (a, b, holds)| {
                    let id = item.local_linear_id();
                    (*a, *b, *holds) = (item.global().index() as u64 + 1, id as u64, id == size - 1);
                });
                let own = |a: u64, b: u64| a.wrapping_mul(3).wrapping_add(b);
                let all = [
                    group.reduce(&a, Sum),
                    group.reduce(&a, own),
                    group.broadcast(&b, size - 1),
                    u64::from(group.any(&holds)) + 2 * u64::from(group.all(&holds)),
                    group.inclusive_scan(&mut a, Sum),
                ];
                group.sub_groups::<32>().ballot(&holds, &mut bits);
                group.sub_groups::<32>().shift_left(&mut b, 1);
                group.for_each((&a, &b, &bits), move |item, (a, b, bits)| {
                    output.set(item.global(), [all[0], all[1], all[2], all[3], all[4], *a, *b, *bits]);
                });
            },
        )
    });
    submitted.unwrap().wait().unwrap();
    let found = output.to_vec().unwrap();
    for group in 0..2 {
        let values: Vec<u64> = (0..size).map(|i| (group * size + i) as u64 + 1).collect();
        let sums = scan_of_group(&values, |a, b| a + b);
        let own = scan_of_group(&values, |a, b| a.wrapping_mul(3).wrapping_add(b));
        let any = 1 + 2 * u64::from(size == 1);
        for i in 0..size {
            let from = if i % 32 == 31 || i + 1 == size { i } else { i + 1 };
            let bits = if i / 32 == (size - 1) / 32 { 1 << ((size - 1) % 32) } else { 0 };
            let expected =
                [sums[size - 1], own[size - 1], size as u64 - 1, any, sums[size - 1], sums[i], from as u64, bits];
            assert_eq!(found[group * size + i], expected, "work-item {i} of group {group} of {size}");
        }
    }
}

fn groups_of_two_and_three_dimensions_follow_their_linear_ids(env: &Env) {
    let output = Buffer::from_vec_nd(vec![0u32; 4 * 35], [4 * 5, 7]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        cg.parallel_for_work_group([4, 1], Fixed2::<5, 7>, Private::new(0u32), move |mut group, mut own| {
            group.for_each(&mut own, |item, own| *own = item.local_linear_id() as u32);
            group.exclusive_scan(&mut own, Sum);
            group.for_each(&own, move |item, own| output.set(item.global(), *own));
        })
    });
    submitted.unwrap().wait().unwrap();
    let one: Vec<u32> = (0..35).map(|i| (0..i).sum()).collect();
    assert_eq!(output.to_vec().unwrap(), one.repeat(4));
    let output = Buffer::from_vec(vec![0u64; 1]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Atomic);
        cg.parallel_for_work_group([1, 1, 1], Range::new([3, 5, 7]), Private::new(0u64), move |mut group, mut own| {
            group.for_each(&mut own, |item, own| *own = (item.local_id()[0] * 100 + item.local_id()[2]) as u64);
            let sum = group.reduce(&own, Sum);
            group.for_each((), move |item, ()| {
                if item.local_linear_id() == 0 {
                    output.store(item, [0], sum);
                }
            });
        })
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(output.to_vec().unwrap(), [35 * 300 + 15 * 21]);
}

fn votes_are_of_all_work_items(env: &Env) {
    for size in sizes(env) {
        // None, the first, the last, all but the last, all.
        let last = size - 1;
        let cases: [fn(usize, usize) -> bool; 5] =
            [|_, _| false, |i, _| i == 0, |i, last| i == last, |i, last| i != last, |_, _| true];
        for (case, holds) in cases.into_iter().enumerate() {
            let input = Buffer::from_vec((0..size).map(|i| holds(i, last)).collect()).unwrap();
            let output = Buffer::from_vec(vec![[false; 3]; size]).unwrap();
            let submitted = env.queue().submit(|cg| {
                let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
                cg.parallel_for_work_group(1, Range::new([size]), Private::new(false), move |mut group, mut own| {
                    group.for_each(&mut own, move |item, own| *own = input.get(item.global()));
                    let votes = [group.any(&own), group.all(&own), group.none(&own)];
                    group.for_each((), move |item, ()| output.set(item.global(), votes));
                })
            });
            submitted.unwrap().wait().unwrap();
            let of: Vec<bool> = (0..size).map(|i| holds(i, last)).collect();
            let expected = [of.contains(&true), !of.contains(&false), !of.contains(&true)];
            assert_eq!(output.to_vec().unwrap(), vec![expected; size], "case {case} of {size}");
        }
    }
}

fn any_work_items_value_is_broadcast(env: &Env) {
    fn check<T: Number>(env: &Env)
    where
        Sum: Identity<T>,
    {
        for size in sizes(env) {
            let values: Vec<T> = (0..size).map(T::at).collect();
            let input = Buffer::from_vec(values.clone()).unwrap();
            for from in [0, size / 2, size - 1] {
                let output = Buffer::from_vec(vec![(T::default(), 0u8); size]).unwrap();
                let submitted = env.queue().submit(|cg| {
                    let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
                    let memory = (Private::new(T::default()), Private::new(0u8));
                    cg.parallel_for_work_group(1, Range::new([size]), memory, move |mut group, (mut a, mut b)| {
                        group.for_each((&mut a, &mut b), move |item, (a, b)| {
                            (*a, *b) = (input.get(item.global()), item.local_linear_id() as u8);
                        });
                        let both = (group.broadcast(&a, from), group.broadcast(&b, from));
                        group.for_each((), move |item, ()| output.set(item.global(), both));
                    })
                });
                submitted.unwrap().wait().unwrap();
                assert_eq!(output.to_vec().unwrap(), vec![(values[from], from as u8); size]);
            }
        }
    }
    for_each_number!(check(env));
}

fn an_element_of_a_tile_decides_at_group_scope(env: &Env) {
    // Follows a chain of indices in a tile, one phase for each step.
    const N: usize = 64;
    let chain: Vec<u32> = (0..N as u32).map(|i| (i * 5 + 3) % N as u32).collect();
    let (links, steps) = (Buffer::from_vec(chain.clone()).unwrap(), Buffer::from_vec(vec![0u32; N]).unwrap());
    let submitted = env.queue().submit(|cg| {
        let (links, steps) = (cg.access(&links, Read), cg.access(&steps, Write));
        let memory = (Local::<u32, N>::new(), Private::new(0u32));
        cg.parallel_for_work_group(1, Fixed1::<N>, memory, move |mut group, (mut tile, mut n)| {
            group.for_each(&mut tile, move |item, slot| *slot = links.get(item.global()));
            let mut at = group.read(&tile, 0);
            while at != 0 {
                group.for_each((&mut n, &mut tile), move |_, (n, slot)| {
                    *n += 1;
                    *slot = slot.wrapping_add(0);
                });
                at = group.read(&tile, at as usize);
            }
            group.for_each(&n, move |item, n| steps.set(item.global(), *n));
        })
    });
    submitted.unwrap().wait().unwrap();
    let (mut at, mut n) = (chain[0], 0);
    while at != 0 {
        at = chain[at as usize];
        n += 1;
    }
    assert!(n > 1);
    assert_eq!(steps.to_vec().unwrap(), vec![n; N]);
}

fn minimum_and_maximum_ignore_what_is_no_number(env: &Env) {
    let cases = [
        ([1.0, f32::NAN, -2.0, f32::NAN], -2.0f32, 1.0f32),
        ([f32::NAN, 0.0, -0.0, f32::NAN], -0.0, 0.0),
        ([-0.0, 0.0, -0.0, 0.0], -0.0, 0.0),
        ([f32::INFINITY, f32::NAN, f32::NEG_INFINITY, 3.0], f32::NEG_INFINITY, f32::INFINITY),
    ];
    for (values, smallest, largest) in cases {
        let input = Buffer::from_vec(values.to_vec()).unwrap();
        let output = Buffer::from_vec(vec![[0.0f32; 2]; 4]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            cg.parallel_for_work_group(1, Fixed1::<4>, Private::new(0.0f32), move |mut group, mut own| {
                group.for_each(&mut own, move |item, own| *own = input.get(item.global()));
                let both = [group.reduce(&own, Min), group.reduce(&own, Max)];
                group.for_each((), move |item, ()| output.set(item.global(), both));
            })
        });
        submitted.unwrap().wait().unwrap();
        let bits = |pair: [f32; 2]| pair.map(f32::to_bits);
        let found: Vec<_> = output.to_vec().unwrap().into_iter().map(bits).collect();
        assert_eq!(found, vec![bits([smallest, largest]); 4], "{values:?}");
    }
}

fn a_loop_ends_when_all_work_items_agree(env: &Env) {
    for size in sizes(env) {
        let rounds = Buffer::from_vec(vec![0u32; 2 * size]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let rounds = cg.access(&rounds, Write);
            let memory = (Private::new(0u32), Private::new(0u32));
            cg.parallel_for_work_group(2, Range::new([size]), memory, move |mut group, (mut left, mut n)| {
                group.for_each(&mut left, |item, left| *left = item.global().index() as u32 % 13);
                while group.reduce(&left, Sum) > 0 {
                    group.for_each((&mut left, &mut n), |_, (left, n)| {
                        *left = left.saturating_sub(1);
                        *n += 1;
                    });
                }
                group.for_each(&n, move |item, n| rounds.set(item.global(), *n));
            })
        });
        submitted.unwrap().wait().unwrap();
        let expected = |group: usize| (0..size).map(|i| (group * size + i) as u32 % 13).max().unwrap_or(0);
        let found = rounds.to_vec().unwrap();
        for group in 0..2 {
            assert_eq!(found[group * size..][..size], vec![expected(group); size], "group {group} of {size}");
        }
    }
}

fn algorithms_over_values_of_several_sizes_share_memory(env: &Env) {
    const N: usize = 96;
    let output = Buffer::from_vec(vec![(0u8, 0u64, 0u32); N]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        let memory = (Local::<u32, N>::new(), Private::new(1u8), Private::new([1u64; 4]), Private::new(0u32));
        cg.parallel_for_work_group(1, Fixed1::<N>, memory, move |mut group, (mut tile, small, mut large, mut seen)| {
            group.for_each(&mut tile, |item, slot| *slot = item.local_linear_id() as u32);
            for _ in 0..3 {
                let n = group.reduce(&small, Sum);
                group.inclusive_scan(&mut large, |a: [u64; 4], b: [u64; 4]| {
                    std::array::from_fn(|i| a[i].wrapping_add(b[i]))
                });
                group.for_each(&mut seen, move |_, seen| *seen += u32::from(n));
            }
            // The tile is not where algorithms are.
            group.for_each((&tile, &large, &seen), move |item, (tile, large, seen)| {
                let own = item.local_linear_id();
                output.set(item.global(), (u8::from(tile[own] == own as u32), large[3], *seen));
            });
        })
    });
    submitted.unwrap().wait().unwrap();
    let mut expected = vec![1u64; N];
    for _ in 0..3 {
        expected = scan_of_group(&expected, u64::wrapping_add);
    }
    let expected: Vec<_> = expected.into_iter().map(|n| (1, n, 3 * N as u32)).collect();
    assert_eq!(output.to_vec().unwrap(), expected);
}
