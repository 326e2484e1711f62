//! Algorithms of sub-groups over elements of memory, on work-items of nd-ranges. Each sub-group has elements of its own.

use oxisycl::group::{Fixed1, Local, LocalSlice};
use oxisycl::operator::{Identity, Max, Operator, Sum};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::model::{Joint, Number, for_each_number, joint_of_sub_group, of_each_number};

tests![
    rows_of_u8,
    rows_of_i8,
    rows_of_u16,
    rows_of_i16,
    rows_of_u32,
    rows_of_i32,
    rows_of_u64,
    rows_of_i64,
    rows_of_f32,
    rows_of_f64,
    rows_of_sub_groups_of_64,
    rows_without_a_proof,
    elements_of_rows_are_asked_together,
    a_scan_of_rows_in_place,
    an_operator_sees_elements_alone,
];

/// Where the row of a sub-group begins, of `count` rows that `len` elements are cut into. Each is longer than the one before, which may be empty.
fn start(row: usize, count: usize, len: usize) -> usize {
    len * row * row / (count * count)
}

/// Holds a reduction of rows by sub-groups of `W`, and both scans, against what the documentation says of them.
fn all_forms<const N: usize, const W: usize, T, O>(env: &Env, operator: O)
where
    T: Number,
    O: Operator<T> + 'static,
    Sum: Identity<T>,
{
    let (first, count) = (T::FIRST, N.div_ceil(W));
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
                let mut sub_group = group.sub_group::<W>();
                let (from, to) = (start(sub_group.id(), count, len), start(sub_group.id() + 1, count, len));
                let total = sub_group.joint_reduce(all.get(from..to).unwrap_or(&[]), first, operator);
                // SAFETY: the row of a sub-group, in memory that nothing else writes, and which is read behind the scans.
                let scans = unsafe {
                    let (row, n) = (all.as_ptr().add(from), to - from);
                    sub_group.joint_inclusive_scan(row, n, inclusive.as_ptr().add(from), operator);
                    sub_group.joint_exclusive_scan(row, n, exclusive.as_ptr().add(from), first, operator);
                    (index < len).then(|| [inclusive.get(index), exclusive.get(index)])
                };
                let [inclusive, exclusive] = scans.unwrap_or([first; 2]);
                output.set(item.global(), [total, inclusive, exclusive]);
            })
        });
        submitted.unwrap().wait().unwrap();
        let rows: Vec<Joint<T>> = (0..count)
            .map(|row| {
                let size = W.min(N - row * W);
                let values = &values[start(row, count, len)..start(row + 1, count, len)];
                joint_of_sub_group(values, size, operator, first)
            })
            .collect();
        let inclusive: Vec<T> = rows.iter().flat_map(|row| row.inclusive.clone()).collect();
        let exclusive: Vec<T> = rows.iter().flat_map(|row| row.exclusive.clone()).collect();
        for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
            let total = rows[index % N / W].total;
            let expected = match index < len {
                true => [total, inclusive[index], exclusive[index]],
                false => [total, first, first],
            };
            let place = format!("element {index} of {len}, sub-groups of {W} in groups of {N}");
            assert_eq!(found.map(T::bits), expected.map(T::bits), "{place}: {found:?}, {expected:?}");
        }
    }
}

fn rows<T: Number>(env: &Env)
where
    Sum: Identity<T>,
{
    all_forms::<100, 32, T, _>(env, Sum);
    all_forms::<40, 16, T, _>(env, T::commuting);
}

of_each_number! {
    rows:
    fn rows_of_u8: u8;
    fn rows_of_i8: i8;
    fn rows_of_u16: u16;
    fn rows_of_i16: i16;
    fn rows_of_u32: u32;
    fn rows_of_i32: i32;
    fn rows_of_u64: u64;
    fn rows_of_i64: i64;
    fn rows_of_f32: f32;
    fn rows_of_f64: f64;
}

fn rows_of_sub_groups_of_64(env: &Env) {
    // More than a processor has in its own sub-groups, and a single sub-group, which is smaller.
    all_forms::<100, 64, u32, _>(env, Sum);
    all_forms::<50, 64, f64, _>(env, f64::commuting);
}

fn rows_without_a_proof(env: &Env) {
    const N: usize = 48;
    let sums = Buffer::from_vec(vec![[0u32; 2]; 2 * N]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let sums = cg.access(&sums, Write);
        cg.parallel_for_nd_range((2 * N, Fixed1::<N>), Local::<u32, 200>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: each element is written by one work-item. All come to the barrier and to the algorithms, between which nothing is written.
            let found = unsafe {
                for index in (own..200).step_by(N) {
                    tile.set(index, index as u32);
                }
                let mut group = item.unchecked();
                group.barrier();
                let mut sub_group = group.sub_group::<32>();
                // Of the first sub-group 150 elements, and of the second one 50.
                let (from, len) = if sub_group.id() == 0 { (0, 150) } else { (150, 50) };
                let row = core::slice::from_raw_parts(tile.as_ptr().add(from), len);
                [sub_group.joint_reduce(row, 1, Sum), sub_group.joint_reduce(row, 0, Max)]
            };
            sums.set(item.global(), found);
        })
    });
    submitted.unwrap().wait().unwrap();
    for (index, found) in sums.to_vec().unwrap().into_iter().enumerate() {
        let expected = if index % N < 32 { [1 + 149 * 150 / 2, 149] } else { [1 + (150..200).sum::<u32>(), 199] };
        assert_eq!(found, expected, "work-item {index}");
    }
}

fn elements_of_rows_are_asked_together(env: &Env) {
    const N: usize = 80;
    // Rows of three sub-groups of 32, 32 and 16. Of the first one all elements are `FIRST`, of the next one the last, and the third row is empty.
    fn check<T: Number>(env: &Env)
    where
        Sum: Identity<T>,
    {
        let values: Vec<T> = (0..100).map(|i| if i < 40 || i == 99 { T::FIRST } else { T::at(0) }).collect();
        let (input, output) = (Buffer::from_vec(values).unwrap(), Buffer::from_vec(vec![[false; 3]; 2 * N]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            cg.parallel_for_nd_range((2 * N, Fixed1::<N>), (), move |mut item, ()| {
                let all = input.view(item.global());
                let (all, is_first) = (all.as_slice(), |value: T| value == T::FIRST);
                let mut group = item.group();
                let mut sub_group = group.sub_group::<32>();
                let row = match sub_group.id() {
                    0 => all.get(..40),
                    1 => all.get(40..),
                    _ => None,
                };
                let row = row.unwrap_or(&[]);
                let any = sub_group.joint_any(row, is_first);
                let found = [any, sub_group.joint_all(row, is_first), sub_group.joint_none(row, is_first)];
                output.set(item.global(), found);
            })
        });
        submitted.unwrap().wait().unwrap();
        for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
            let expected = [[true, true, false], [true, false, false], [false, true, true]][index % N / 32];
            assert_eq!(found, expected, "work-item {index}");
        }
    }
    for_each_number!(check(env));
}

fn a_scan_of_rows_in_place(env: &Env) {
    const N: usize = 48;
    let output = Buffer::from_vec(vec![[0u32; 2]; 2 * N]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        cg.parallel_for_nd_range((2 * N, Fixed1::<N>), Local::<u32, 96>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: each element is written by one work-item, and barriers or scans lie between these writes and reads. The scans are of the tile alone,
            // each sub-group's of a third.
            unsafe {
                for index in (own..96).step_by(N) {
                    tile.set(index, 1);
                }
                item.group().barrier();
                let mut group = item.group();
                let mut sub_group = group.sub_group::<16>();
                let row = tile.as_ptr().add(32 * sub_group.id());
                sub_group.joint_inclusive_scan(row, 32, row, Sum);
                let inclusive = tile.get(2 * own);
                item.group().barrier();
                item.group().sub_group::<16>().joint_exclusive_scan(row, 32, row, 7, Sum);
                output.set(item.global(), [inclusive, tile.get(2 * own)]);
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
        let at = 2 * (index % 16) as u32;
        assert_eq!(found, [at + 1, 7 + at * (at + 1) / 2], "work-item {index}");
    }
}

fn an_operator_sees_elements_alone(env: &Env) {
    const N: usize = 40;
    // No number is zero, so that the operator panics if it gets what is no element.
    let numbers = Buffer::from_vec((1..=N as u32).collect()).unwrap();
    let output = Buffer::from_vec(vec![[0u32; 2]; N]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (numbers, output) = (cg.access(&numbers, Read), cg.access(&output, Write));
        cg.parallel_for_nd_range((N, Fixed1::<N>), Local::<u32, N>::new(), move |mut item, results| {
            let operator = |a: u32, b: u32| {
                assert!(a > 0 && b > 0, "{a} and {b}");
                a.max(b)
            };
            let (own, all) = (item.local_linear_id(), numbers.view(item.global()));
            let all = all.as_slice();
            let mut group = item.group();
            let mut sub_group = group.sub_group::<32>();
            // Of the first sub-group 11 elements, of the second one three.
            let (from, len) = if sub_group.id() == 0 { (5, 11) } else { (20, 3) };
            let most = sub_group.joint_reduce(all.get(from..from + len).unwrap_or(&[]), 2, operator);
            // SAFETY: elements of the sub-group, in memory that nothing else writes. The results of both are read behind the scan.
            let scanned = unsafe {
                sub_group.joint_inclusive_scan(all.as_ptr().add(from), len, results.as_ptr().add(from), operator);
                matches!(own, 5..16 | 20..23).then(|| results.get(own))
            };
            output.set(item.global(), [most, scanned.unwrap_or(0)]);
        })
    });
    submitted.unwrap().wait().unwrap();
    for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
        let most = if index < 32 { 16 } else { 23 };
        let scanned = if matches!(index, 5..16 | 20..23) { index as u32 + 1 } else { 0 };
        assert_eq!(found, [most, scanned], "work-item {index}");
    }
}
