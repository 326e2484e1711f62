//! Algorithms of work-items of nd-ranges over elements of memory. Results are those of kernels over groups, to the bit.

use oxisycl::group::{Fixed1, Local, LocalSlice};
use oxisycl::operator::{Identity, Operator, Sum};
use oxisycl::prelude::*;

use crate::group::algorithms::sizes;
use crate::harness::{Env, tests};
use crate::model::{Joint, Number, for_each_number, joint_of_group, of_each_number};

tests![
    elements_of_u8,
    elements_of_i8,
    elements_of_u16,
    elements_of_i16,
    elements_of_u32,
    elements_of_i32,
    elements_of_u64,
    elements_of_i64,
    elements_of_f32,
    elements_of_f64,
    elements_are_asked_together,
    elements_by_groups_of_each_size,
    a_scan_in_place,
    no_elements,
];

/// Holds a reduction of elements by groups of `N`, and both scans, against what the documentation says of them.
fn all_forms<const N: usize, T, O>(env: &Env, operator: O)
where
    T: Number,
    O: Operator<T> + 'static,
    Sum: Identity<T>,
{
    let first = T::FIRST;
    for len in [1, 31, 32, 33, 255, 256, 1000] {
        let values: Vec<T> = (0..len).map(T::at).collect();
        let groups = len.div_ceil(N);
        let input = Buffer::from_vec(values.clone()).unwrap();
        let output = Buffer::from_vec(vec![[first; 3]; groups * N]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            let memory = (LocalSlice::<T>::new(len), LocalSlice::<T>::new(len));
            cg.parallel_for_nd_range((groups * N, Fixed1::<N>), memory, move |mut item, (inclusive, exclusive)| {
                let all = input.view(item.global());
                let (all, index) = (all.as_slice(), item.global_linear_id());
                let mut group = item.group();
                let total = group.joint_reduce(all, first, operator);
                // SAFETY: there is room for all results, which nothing else writes, and which are read behind the scans.
                let scans = unsafe {
                    group.joint_inclusive_scan(all.as_ptr(), all.len(), inclusive.as_ptr(), operator);
                    group.joint_exclusive_scan(all.as_ptr(), all.len(), exclusive.as_ptr(), first, operator);
                    (index < len).then(|| [inclusive.get(index), exclusive.get(index)])
                };
                let [inclusive, exclusive] = scans.unwrap_or([first; 2]);
                output.set(item.global(), [total, inclusive, exclusive]);
            })
        });
        submitted.unwrap().wait().unwrap();
        let Joint { total, inclusive, exclusive } = joint_of_group(&values, N, operator, first);
        for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
            let expected = match index < len {
                true => [total, inclusive[index], exclusive[index]],
                false => [total, first, first],
            };
            assert_eq!(found, expected, "element {index} of {len} by groups of {N}");
        }
    }
}

fn elements<T: Number>(env: &Env)
where
    Sum: Identity<T>,
{
    all_forms::<64, T, _>(env, Sum);
    all_forms::<40, T, _>(env, T::commuting);
}

of_each_number! {
    elements:
    fn elements_of_u8: u8;
    fn elements_of_i8: i8;
    fn elements_of_u16: u16;
    fn elements_of_i16: i16;
    fn elements_of_u32: u32;
    fn elements_of_i32: i32;
    fn elements_of_u64: u64;
    fn elements_of_i64: i64;
    fn elements_of_f32: f32;
    fn elements_of_f64: f64;
}

fn elements_are_asked_together(env: &Env) {
    const N: usize = 40;
    fn check<T: Number>(env: &Env)
    where
        Sum: Identity<T>,
    {
        // Elements of which some are the first one of their type, and no other is.
        for (len, firsts) in [(1, vec![]), (1, vec![0]), (39, vec![38]), (1000, vec![999]), (200, (0..200).collect())] {
            let mut values = vec![T::at(0); len];
            firsts.iter().for_each(|index: &usize| values[*index] = T::FIRST);
            let (input, output) =
                (Buffer::from_vec(values).unwrap(), Buffer::from_vec(vec![[false; 3]; 2 * N]).unwrap());
            let submitted = env.queue().submit(|cg| {
                let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
                cg.parallel_for_nd_range((2 * N, Fixed1::<N>), (), move |mut item, ()| {
                    let all = input.view(item.global());
                    let (all, is_first) = (all.as_slice(), |value: T| value == T::FIRST);
                    let mut group = item.group();
                    let any = group.joint_any(all, is_first);
                    let found = [any, group.joint_all(all, is_first), group.joint_none(all, is_first)];
                    output.set(item.global(), found);
                })
            });
            submitted.unwrap().wait().unwrap();
            let n = firsts.len();
            let expected = [n > 0, n == len, n == 0];
            assert_eq!(output.to_vec().unwrap(), vec![expected; 2 * N], "{len} elements, {n} of them");
        }
    }
    for_each_number!(check(env));
}

/// The largest size is among them. Elements are more than work-items, and not a multiple of them. Results of the one group are in global memory.
fn elements_by_groups_of_each_size(env: &Env) {
    let own = |a: u16, b: u16| a.wrapping_mul(3).wrapping_add(b);
    for size in sizes(env) {
        let len = 2 * size + 3;
        let values: Vec<u16> = (0..len).map(u16::at).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let totals = Buffer::from_vec(vec![0u16; size]).unwrap();
        let results = [Buffer::from_vec(vec![0u16; len]).unwrap(), Buffer::from_vec(vec![0u16; len]).unwrap()];
        let submitted = env.queue().submit(|cg| {
            let (input, totals) = (cg.access(&input, Read), cg.access(&totals, Write));
            let [inclusive, exclusive] = [cg.access(&results[0], Write), cg.access(&results[1], Write)];
            let range = NdRange::new(Range::new([size]), Range::new([size]));
            cg.parallel_for_nd_range(range, (), move |mut item, ()| {
                let all = input.view(item.global());
                let all = all.as_slice();
                let mut group = item.group();
                let total = group.joint_reduce(all, 9, own);
                // SAFETY: there is room for all results, which nothing else accesses.
                unsafe {
                    group.joint_inclusive_scan(all.as_ptr(), all.len(), inclusive.as_ptr(), own);
                    group.joint_exclusive_scan(all.as_ptr(), all.len(), exclusive.as_ptr(), 9, own);
                }
                totals.set(item.global(), total);
            })
        });
        submitted.unwrap().wait().unwrap();
        let Joint { total, inclusive, exclusive } = joint_of_group(&values, size, own, 9);
        assert_eq!(totals.to_vec().unwrap(), vec![total; size]);
        assert_eq!(results[0].to_vec().unwrap(), inclusive, "by groups of {size}");
        assert_eq!(results[1].to_vec().unwrap(), exclusive, "by groups of {size}");
    }
}

fn a_scan_in_place(env: &Env) {
    const N: usize = 48;
    let output = Buffer::from_vec(vec![[0u32; 2]; 2 * N]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        cg.parallel_for_nd_range((2 * N, Fixed1::<N>), Local::<u32, 100>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: each element is written by one work-item, barriers or scans lie between these writes and reads, and both scans are of the tile alone.
            unsafe {
                for index in (own..100).step_by(N) {
                    tile.set(index, 1);
                }
                item.group().barrier();
                item.group().joint_inclusive_scan(tile.as_ptr(), 100, tile.as_ptr(), Sum);
                let inclusive = tile.get(2 * own);
                item.group().barrier();
                item.group().joint_exclusive_scan(tile.as_ptr(), 100, tile.as_ptr(), 7, Sum);
                output.set(item.global(), [inclusive, tile.get(2 * own)]);
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
        let at = 2 * (index % N) as u32;
        assert_eq!(found, [at + 1, 7 + at * (at + 1) / 2], "element {at}");
    }
}

fn no_elements(env: &Env) {
    const N: usize = 16;
    let output = Buffer::from_vec(vec![(0u32, [0u8; 3]); 2 * N]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        cg.parallel_for_nd_range((2 * N, Fixed1::<N>), Local::<u32, 1>::new(), move |mut item, tile| {
            let mut group = item.group();
            // SAFETY: no element is touched.
            unsafe { group.joint_inclusive_scan(core::ptr::null(), 0, tile.as_ptr(), Sum) };
            let total = group.joint_reduce(&[], 9, Sum);
            let votes = [group.joint_any(&[], |_: u8| true), group.joint_all(&[], |_: u8| false)];
            let none = group.joint_none(&[], |_: u8| true);
            output.set(item.global(), (total, [votes[0], votes[1], none].map(u8::from)));
        })
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(output.to_vec().unwrap(), vec![(9, [0, 1, 1]); 2 * N]);
}
