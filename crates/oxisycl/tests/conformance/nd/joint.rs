//! Algorithms of work-items of nd-ranges over elements of memory. Results are those of kernels over groups, to the bit.

use oxisycl::group::{Fixed1, Local, LocalSlice};
use oxisycl::operator::{Identity, Operator, Sum};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::model::{Joint, Number, joint_of_group, of_each_number};

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
    for (len, odd) in [(1, vec![]), (1, vec![0]), (39, vec![38]), (200, vec![199]), (200, (0..200).collect())] {
        let mut values = vec![2u16; len];
        odd.iter().for_each(|index: &usize| values[*index] = 3);
        let (input, output) = (Buffer::from_vec(values).unwrap(), Buffer::from_vec(vec![[false; 3]; 2 * N]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            cg.parallel_for_nd_range((2 * N, Fixed1::<N>), (), move |mut item, ()| {
                let all = input.view(item.global());
                let (all, is_odd) = (all.as_slice(), |value: u16| value % 2 == 1);
                let mut group = item.group();
                let found = [group.joint_any(all, is_odd), group.joint_all(all, is_odd), group.joint_none(all, is_odd)];
                output.set(item.global(), found);
            })
        });
        submitted.unwrap().wait().unwrap();
        let expected = [!odd.is_empty(), odd.len() == len, odd.is_empty()];
        assert_eq!(output.to_vec().unwrap(), vec![expected; 2 * N], "{len} elements, of which {} are odd", odd.len());
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
