//! Operators over `half::f16` and `half::bf16` in groups, sub-groups and reductions. They round each result once, as plain Rust does.

use half::{bf16, f16};

use oxisycl::group::{Fixed1, Private};
use oxisycl::operator::{Identity, Max, Min, Operator, Product, Sum};
use oxisycl::prelude::*;
use oxisycl::reduction::reduction;

use crate::harness::{Env, fraction, kernels};
use crate::outcome::{Outcome, Tolerance};

kernels![
    groups_combine_halves,
    groups_combine_brain_floats,
    work_items_combine_halves,
    work_items_combine_brain_floats,
    halves_are_reduced,
    brain_floats_are_reduced,
];

/// A type of 16 bits, and its operators as functions of `f32`.
trait Half: Outcome + Default + Into<f32> + bytemuck::AnyBitPattern {
    fn round(exact: f32) -> Self;

    fn sum(self, other: Self) -> Self {
        Self::round(self.into() + other.into())
    }
    fn product(self, other: Self) -> Self {
        Self::round(self.into() * other.into())
    }
    fn min(self, other: Self) -> Self {
        let (left, right): (f32, f32) = (self.into(), other.into());
        if left.is_nan() || (!right.is_nan() && right.total_cmp(&left).is_lt()) { other } else { self }
    }
    fn max(self, other: Self) -> Self {
        let (left, right): (f32, f32) = (self.into(), other.into());
        if left.is_nan() || (!right.is_nan() && right.total_cmp(&left).is_gt()) { other } else { self }
    }
}

impl Half for f16 {
    fn round(exact: f32) -> Self {
        Self::from_f32(exact)
    }
}

impl Half for bf16 {
    fn round(exact: f32) -> Self {
        Self::from_f32(exact)
    }
}

/// Kinds of values: any of a moderate size, some that are special, and only negative zeros, numbers that are none, and zeros of both signs.
const KINDS: usize = 5;

fn value<T: Half>(kind: usize, i: usize) -> T {
    let number = 0.5 + fraction(i);
    let signed = if i % 3 == 0 { -number } else { number };
    T::round(match (kind, i % 19) {
        (1, 4) => f32::NAN,
        (1, 7) => -0.0,
        (1, 9) => 0.0,
        (1, 16) if i % 2 == 0 => f32::INFINITY,
        (2, _) => -0.0,
        (3, _) => f32::NAN,
        (4, place) => [0.0, -0.0][place % 2],
        _ => signed,
    })
}

/// The inclusive scan of values of which each sees those at distances of 1, 2, 4 and so on.
fn scan_of_block<T: Copy>(values: &[T], plain: fn(T, T) -> T) -> Vec<T> {
    let mut now = values.to_vec();
    for step in (0..).map(|n| 1 << n).take_while(|step| *step < values.len()) {
        let old = now.clone();
        (step..now.len()).for_each(|i| now[i] = plain(old[i - step], old[i]));
    }
    now
}

/// The inclusive scan of a group: blocks of 32, each behind all before it.
fn scan_of_group<T: Copy>(values: &[T], plain: fn(T, T) -> T) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for block in values.chunks(32) {
        let left = all.last().copied();
        let block = scan_of_block(block, plain);
        all.extend(block.into_iter().map(|value| left.map_or(value, |left| plain(left, value))));
    }
    all
}

/// The tree of a reduction of one tile: 64 accumulators, of which the upper half goes to the lower one again and again.
fn tree<T: Copy>(values: &[T], plain: fn(T, T) -> T) -> T {
    let mut all: Vec<T> = values[..values.len().min(64)].to_vec();
    values.iter().enumerate().skip(64).for_each(|(i, value)| all[i % 64] = plain(all[i % 64], *value));
    while all.len() > 1 {
        let half = all.len().next_power_of_two() / 2;
        (half..all.len()).for_each(|i| all[i - half] = plain(all[i - half], all[i]));
        all.truncate(half);
    }
    all[0]
}

const SIZE: usize = 70;

/// A group of each kind of values.
fn values_of_groups<T: Half>() -> Vec<T> {
    (0..KINDS * SIZE).map(|i| value(i / SIZE, i)).collect()
}

fn in_groups<T: Half, O: Identity<T> + 'static>(env: &Env, operator: O, plain: fn(T, T) -> T, identity: f32) {
    let values = values_of_groups::<T>();
    let input = Buffer::from_vec(values.clone()).expect("a buffer");
    let output = Buffer::from_vec(vec![[T::NOTHING; 4]; values.len()]).expect("a buffer");
    env.finish(env.queue().submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        let memory = (Private::new(T::default()), Private::new(T::default()), Private::new(T::default()));
        cg.parallel_for_work_group(KINDS, Fixed1::<SIZE>, memory, move |mut group, (mut a, mut b, mut c)| {
            group.for_each((&mut a, &mut b, &mut c), move |item, (a, b, c)| {
                *a = input.get(item.global());
                (*b, *c) = (*a, *a);
            });
            let all = group.reduce(&a, operator);
            group.inclusive_scan(&mut a, operator);
            group.exclusive_scan(&mut b, operator);
            group.sub_groups::<16>().reduce(&mut c, operator);
            group.for_each((&a, &b, &c), move |item, (a, b, c)| output.set(item.global(), [all, *a, *b, *c]));
        })
    }));
    let expected = values.chunks(SIZE).flat_map(|values| {
        let scan = scan_of_group(values, plain);
        let of_blocks: Vec<T> = values.chunks(16).map(|block| scan_of_block(block, plain)[block.len() - 1]).collect();
        (0..SIZE).map(move |i| {
            let before = if i == 0 { T::round(identity) } else { scan[i - 1] };
            [scan[SIZE - 1], scan[i], before, of_blocks[i / 16]]
        })
    });
    let expected: Vec<[T; 4]> = expected.collect();
    env.agree(&output.to_vec().expect("the results"), &expected, Tolerance::Exact);
}

fn all_in_groups<T: Half>(env: &Env)
where
    Sum: Identity<T>,
    Product: Identity<T>,
    Min: Identity<T>,
    Max: Identity<T>,
{
    in_groups(env, Sum, T::sum, -0.0);
    in_groups(env, Product, T::product, 1.0);
    in_groups(env, Min, T::min, f32::INFINITY);
    in_groups(env, Max, T::max, f32::NEG_INFINITY);
}

fn groups_combine_halves(env: &Env) {
    all_in_groups::<f16>(env);
}

fn groups_combine_brain_floats(env: &Env) {
    all_in_groups::<bf16>(env);
}

fn of_work_items<T: Half>(env: &Env)
where
    Sum: Operator<T>,
    Product: Operator<T>,
    Min: Operator<T>,
    Max: Operator<T>,
{
    let values = values_of_groups::<T>();
    let input = Buffer::from_vec(values.clone()).expect("a buffer");
    let output = Buffer::from_vec(vec![[T::NOTHING; 4]; values.len()]).expect("a buffer");
    env.finish(env.queue().submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        cg.parallel_for_nd_range((KINDS * SIZE, Fixed1::<SIZE>), (), move |mut item, ()| {
            let own = input.get(item.global());
            let mut group = item.group();
            let all =
                [group.reduce(own, Sum), group.reduce(own, Product), group.reduce(own, Min), group.reduce(own, Max)];
            output.set(item.global(), all);
        })
    }));
    let expected = values.chunks(SIZE).flat_map(|values| {
        [[T::sum, T::product, T::min, T::max].map(|plain: fn(T, T) -> T| scan_of_group(values, plain)[SIZE - 1]); SIZE]
    });
    let expected: Vec<[T; 4]> = expected.collect();
    env.agree(&output.to_vec().expect("the results"), &expected, Tolerance::Exact);
}

fn work_items_combine_halves(env: &Env) {
    of_work_items::<f16>(env);
}

fn work_items_combine_brain_floats(env: &Env) {
    of_work_items::<bf16>(env);
}

fn reduced<T: Half, O: Identity<T> + 'static>(env: &Env, operator: O, plain: fn(T, T) -> T, identity: f32) {
    for kind in 0..KINDS {
        for size in [1, 3, 64, 1000] {
            let values: Vec<T> = (0..size).map(|i| value(kind, i + size)).collect();
            let buffer = Buffer::from_vec(values.clone()).expect("a buffer");
            let found = env.queue().reduce(&buffer, operator).and_then(|result| result.get()).expect("a result");
            // Each work-item begins with the identity, so that extremes of what is no number are infinities.
            let elements: Vec<T> = values.iter().map(|value| plain(T::round(identity), *value)).collect();
            env.agree(&[found], &[tree(&elements, plain)], Tolerance::Exact);
        }
    }
    // Without work-items, and with some that combine nothing.
    for size in [0, 50] {
        let target = Buffer::from_vec(vec![T::NOTHING]).expect("a buffer");
        env.finish(env.queue().submit(|cg| {
            let into = reduction(cg.access(&target, Write), operator);
            cg.parallel_reduce(size, into, move |item, all| {
                if item.index() >= size {
                    all.combine(T::default());
                }
            })
        }));
        env.agree(&target.to_vec().expect("a result"), &[T::round(identity)], Tolerance::Exact);
    }
}

fn all_reduced<T: Half>(env: &Env)
where
    Sum: Identity<T>,
    Product: Identity<T>,
    Min: Identity<T>,
    Max: Identity<T>,
{
    reduced(env, Sum, T::sum, -0.0);
    reduced(env, Product, T::product, 1.0);
    reduced(env, Min, T::min, f32::INFINITY);
    reduced(env, Max, T::max, f32::NEG_INFINITY);
}

fn halves_are_reduced(env: &Env) {
    all_reduced::<f16>(env);
}

fn brain_floats_are_reduced(env: &Env) {
    all_reduced::<bf16>(env);
}
