//! Reductions by operators of the user, over each type of numbers, with an identity that the user tells and without one (G3).

use oxisycl::group::{Fixed1, Private};
use oxisycl::operator::{Identity, Operator, Sum};
use oxisycl::prelude::*;
use oxisycl::reduction::{TILE, reduction, reduction_without_identity};

use super::tree;
use crate::harness::{Env, tests};
use crate::model::{Number, for_each_number, scan_of_group};

tests![
    own_operators_of_each_type_are_reduced,
    own_operators_of_each_type_are_reduced_over_nd_ranges,
    own_operators_of_each_type_are_reduced_over_groups,
    an_own_identity_is_the_result_of_nothing,
];

/// Sizes around those of sub-groups, groups and tiles. The last one takes two launches.
const SIZES: [usize; 9] = [1, 31, 32, 33, 255, 256, 1000, TILE, 8 * TILE + 1];

/// A type with an operator of the user that has an identity, which is not zero.
trait Joins: Number
where
    Sum: Identity<Self>,
{
    const NEUTRAL: Self;
    fn join(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty)*) => { $(
        impl Joins for $t {
            // Even, and no value is less.
            const NEUTRAL: Self = <$t>::MIN;
            fn join(self, other: Self) -> Self {
                self.commuting(other)
            }
        }
    )* };
}

integers! { u8 i8 u16 i16 u32 i32 u64 i64 }

macro_rules! floats {
    ($($t:ty)*) => { $(
        impl Joins for $t {
            const NEUTRAL: Self = -0.0;
            fn join(self, other: Self) -> Self {
                self + other
            }
        }
    )* };
}

floats! { f32 f64 }

/// [`Joins::join`] as an operator.
#[derive(Clone, Copy)]
struct Joined;

impl<T: Joins> Operator<T> for Joined
where
    Sum: Identity<T>,
{
    fn combine(&self, first: T, second: T) -> T {
        first.join(second)
    }
}

impl<T: Joins> Identity<T> for Joined
where
    Sum: Identity<T>,
{
    fn identity(&self) -> T {
        T::NEUTRAL
    }
}

/// What both reductions give. One is of all values by an operator without an identity, and of the old one. The other is of every third value by
/// [`Joined`].
fn expected<T: Joins>(values: &[T], old: T) -> [u64; 2]
where
    Sum: Identity<T>,
{
    let thirds: Vec<T> = values.iter().enumerate().map(|(i, x)| if i % 3 == 1 { *x } else { T::NEUTRAL }).collect();
    [old.commuting(tree(values, T::commuting)).bits(), tree(&thirds, T::join).bits()]
}

#[track_caller]
fn of_range<T: Joins>(env: &Env)
where
    Sum: Identity<T>,
{
    for size in SIZES {
        let values: Vec<T> = (0..size).map(T::at).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let [all, thirds] = [(); 2].map(|()| Buffer::from_vec(vec![T::FIRST]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let input = cg.access(&input, Read);
            let all = reduction_without_identity(cg.access(&all, ReadWrite), T::commuting);
            let into = (all, reduction(cg.access(&thirds, Write), Joined));
            cg.parallel_reduce(size, into, move |item, (all, thirds)| {
                let value = input.get(item);
                all.combine(value);
                if item.index() % 3 == 1 {
                    thirds.combine(value);
                }
            })
        });
        submitted.unwrap().wait().unwrap();
        let found = [all, thirds].map(|target| target.to_vec().unwrap()[0].bits());
        assert_eq!(found, expected(&values, T::FIRST), "{size} of {}", std::any::type_name::<T>());
    }
}

fn own_operators_of_each_type_are_reduced(env: &Env) {
    for_each_number!(of_range(env));
}

#[track_caller]
fn of_nd_range<T: Joins>(env: &Env)
where
    Sum: Identity<T>,
{
    for size in SIZES.map(|size| size.next_multiple_of(16)) {
        let values: Vec<T> = (0..size).map(T::at).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let [all, thirds] = [(); 2].map(|()| Buffer::from_vec(vec![T::FIRST]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let input = cg.access(&input, Read);
            let all = reduction_without_identity(cg.access(&all, ReadWrite), T::commuting);
            let into = (all, reduction(cg.access(&thirds, Write), Joined));
            cg.parallel_reduce_nd_range((size, Fixed1::<16>), (), into, move |item, (), (all, thirds)| {
                let value = input.get(item.global());
                all.combine(value);
                if item.global_linear_id() % 3 == 1 {
                    thirds.combine(value);
                }
            })
        });
        submitted.unwrap().wait().unwrap();
        let found = [all, thirds].map(|target| target.to_vec().unwrap()[0].bits());
        assert_eq!(found, expected(&values, T::FIRST), "{size} of {}", std::any::type_name::<T>());
    }
}

fn own_operators_of_each_type_are_reduced_over_nd_ranges(env: &Env) {
    for_each_number!(of_nd_range(env));
}

/// Each group gives one value, which is that of its work-items by an operator that does not commute.
#[track_caller]
fn of_groups<T: Joins>(env: &Env)
where
    Sum: Identity<T>,
{
    const ITEMS: usize = 5;
    for n_groups in [1, 31, 32, 33, 255, 256, 1000, TILE, TILE + 1] {
        let values: Vec<T> = (0..ITEMS * n_groups).map(T::at).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let [all, thirds] = [(); 2].map(|()| Buffer::from_vec(vec![T::FIRST]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let input = cg.access(&input, Read);
            let all = reduction_without_identity(cg.access(&all, ReadWrite), T::commuting);
            let into = (all, reduction(cg.access(&thirds, Write), Joined));
            let (shape, memory) = (Fixed1::<ITEMS>, Private::new(T::default()));
            cg.parallel_reduce_work_group(n_groups, shape, memory, into, move |mut group, mut own, (all, thirds)| {
                group.for_each(&mut own, move |item, own| *own = input.get(item.global()));
                let value = group.reduce(&own, T::ordered);
                all.combine(value);
                if group.linear_id() % 3 == 1 {
                    thirds.combine(value);
                }
            })
        });
        submitted.unwrap().wait().unwrap();
        let of_groups: Vec<T> = values.chunks(ITEMS).map(|items| scan_of_group(items, T::ordered)[ITEMS - 1]).collect();
        let found = [all, thirds].map(|target| target.to_vec().unwrap()[0].bits());
        assert_eq!(found, expected(&of_groups, T::FIRST), "{n_groups} of {}", std::any::type_name::<T>());
    }
}

fn own_operators_of_each_type_are_reduced_over_groups(env: &Env) {
    for_each_number!(of_groups(env));
}

fn an_own_identity_is_the_result_of_nothing(env: &Env) {
    for size in [0usize, 100] {
        let [replaced, joined] = [(); 2].map(|()| Buffer::from_vec(vec![7i16]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let replaced = reduction(cg.access(&replaced, Write), Joined);
            let into = (replaced, reduction(cg.access(&joined, ReadWrite), Joined));
            cg.parallel_reduce(size, into, |item, (replaced, joined)| {
                if item.index() > 100 {
                    replaced.combine(1);
                    joined.combine(1);
                }
            })
        });
        submitted.unwrap().wait().unwrap();
        assert_eq!([replaced, joined].map(|target| target.to_vec().unwrap()[0]), [i16::MIN, 7], "{size}");
    }
}
