//! Algorithms over groups on work-items of nd-ranges, with values of each type and operators of the user.

use oxisycl::operator::{Identity, Operator, Sum};
use oxisycl::prelude::*;

use crate::group::algorithms::sizes;
use crate::harness::{Env, tests};
use crate::model::{Number, of_each_number, scan_of_group};

tests![
    groups_of_u8,
    groups_of_i8,
    groups_of_u16,
    groups_of_i16,
    groups_of_u32,
    groups_of_i32,
    groups_of_u64,
    groups_of_i64,
    groups_of_f32,
    groups_of_f64,
];

/// Runs the algorithms over groups of each size. Results are those of the model, bit by bit.
#[track_caller]
fn algorithms<T: Number>(env: &Env)
where
    Sum: Identity<T>,
{
    for size in sizes(env) {
        let values: Vec<T> = (0..2 * size).map(T::at).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let output = Buffer::from_vec(vec![[T::default(); 6]; 2 * size]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            let range = NdRange::new(Range::new([2 * size]), Range::new([size]));
            cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                let own = input.get(item.global());
                let mut group = item.group();
                let results = [
                    group.reduce(own, T::commuting),
                    group.reduce(own, T::ordered),
                    group.inclusive_scan(own, T::ordered),
                    group.exclusive_scan_from(own, T::FIRST, T::ordered),
                    group.exclusive_scan(own, Sum),
                    group.broadcast(own, size / 2),
                ];
                output.set(item.global(), results);
            })
        });
        submitted.unwrap().wait().unwrap();
        let found = output.to_vec().unwrap();
        for (group, (values, found)) in values.chunks(size).zip(found.chunks(size)).enumerate() {
            let commuted = scan_of_group(values, T::commuting);
            let ordered = scan_of_group(values, T::ordered);
            let sums = scan_of_group(values, |a, b| Sum.combine(a, b));
            for (own, found) in found.iter().enumerate() {
                let before = own.checked_sub(1);
                let expected = [
                    commuted[size - 1],
                    ordered[size - 1],
                    ordered[own],
                    before.map_or(T::FIRST, |before| T::FIRST.ordered(ordered[before])),
                    before.map_or(Sum.identity(), |before| sums[before]),
                    values[size / 2],
                ];
                assert_eq!(
                    found.map(T::bits),
                    expected.map(T::bits),
                    "work-item {own} of group {group} of {size}: {found:?}, {expected:?}"
                );
            }
        }
    }
}

of_each_number! {
    algorithms:
    fn groups_of_u8: u8;
    fn groups_of_i8: i8;
    fn groups_of_u16: u16;
    fn groups_of_i16: i16;
    fn groups_of_u32: u32;
    fn groups_of_i32: i32;
    fn groups_of_u64: u64;
    fn groups_of_i64: i64;
    fn groups_of_f32: f32;
    fn groups_of_f64: f64;
}
