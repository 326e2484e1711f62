//! Algorithms of a group over elements of tiles and slices.

use oxisycl::group::{Fixed1, Local, LocalSlice, Shares};
use oxisycl::operator::{Identity, Max, Operator, Product, Sum};
use oxisycl::prelude::*;

use super::algorithms::sizes;
use crate::harness::{Env, tests};
use crate::model::{Joint, Number, for_each_number, joint_of_group, of_each_number};

tests![
    tiles_and_slices_are_reduced_together,
    tiles_and_slices_are_scanned_together,
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
    sums_of_floats_are_scanned_in_the_documented_order,
    results_beyond_the_elements_stay,
    fewer_results_than_elements_are_a_panic,
    elements_are_asked_together,
    elements_by_groups_of_each_size,
];

fn tiles_and_slices_are_reduced_together(env: &Env) {
    const N: usize = 40;
    for len in [1, 39, 40, 41, 200] {
        let (values, sums) =
            (Buffer::from_vec((1..=len as u64).collect()).unwrap(), Buffer::from_vec(vec![[0u64; 4]; N]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let (values, sums) = (cg.access(&values, Read), cg.access(&sums, Write));
            let memory = (Local::<u64, 33>::new(), LocalSlice::<u64>::new(len));
            cg.parallel_for_work_group(1, Fixed1::<N>, memory, move |mut group, (mut tile, mut slice)| {
                let view = values.view(group.uniform());
                group.for_each(Shares(&mut slice), move |_, share| {
                    for (i, place) in share {
                        *place = *view.at(i);
                    }
                });
                group.for_each(Shares(&mut tile), |_, share| share.for_each(|(i, place)| *place = i as u64));
                let of_view = view.to_slice().map_or(0, |all| group.joint_reduce(all, 5, Sum));
                let of_slice = group.joint_reduce(&slice, 0, Max);
                let all = [
                    of_view,
                    of_slice,
                    group.joint_reduce(&tile, 7, Sum),
                    group.joint_reduce(&[0u64; 0][..], 9, Product),
                ];
                group.for_each((), move |item, ()| sums.set(item.global(), all));
            })
        });
        submitted.unwrap().wait().unwrap();
        let len = len as u64;
        assert_eq!(sums.to_vec().unwrap(), vec![[5 + len * (len + 1) / 2, len, 7 + 32 * 33 / 2, 9]; N]);
    }
}

/// Both scans of `values` by groups of `N`, each of which computes all of them.
fn scans<const N: usize, T, O>(env: &Env, values: &[T], operator: O, first: T) -> Vec<[T; 2]>
where
    T: DeviceCopyable + bytemuck::AnyBitPattern,
    O: Operator<T> + 'static,
{
    let len = values.len();
    let groups = len.div_ceil(N);
    let input = Buffer::from_vec(values.to_vec()).unwrap();
    let output = Buffer::from_vec(vec![[first; 2]; groups * N]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        let memory = (LocalSlice::<T>::new(len), LocalSlice::<T>::new(len));
        cg.parallel_for_work_group(groups, Fixed1::<N>, memory, move |mut group, (mut inclusive, mut exclusive)| {
            let view = input.view(group.uniform());
            if let Some(all) = view.to_slice() {
                group.joint_inclusive_scan(all, &mut inclusive, operator);
                group.joint_exclusive_scan(all, &mut exclusive, first, operator);
            }
            group.for_each((&inclusive, &exclusive), move |item, (inclusive, exclusive)| {
                let index = item.global().index();
                if index < len {
                    output.set(item.global(), [inclusive[index], exclusive[index]]);
                }
            });
        })
    });
    submitted.unwrap().wait().unwrap();
    output.to_vec().unwrap()[..len].to_vec()
}

/// Compares both scans with what the documentation says of them.
fn both_scans<const N: usize, T, O>(env: &Env, values: &[T], operator: O, first: T)
where
    T: DeviceCopyable + bytemuck::AnyBitPattern + PartialEq + std::fmt::Debug,
    O: Operator<T> + 'static,
{
    let Joint { inclusive, exclusive, .. } = joint_of_group(values, N, operator, first);
    let found = scans::<N, T, O>(env, values, operator, first);
    for (i, expected) in inclusive.into_iter().zip(exclusive).enumerate() {
        assert_eq!(found[i], [expected.0, expected.1], "element {i} of {} by groups of {N}", values.len());
    }
}

fn tiles_and_slices_are_scanned_together(env: &Env) {
    for len in [1, 31, 33, 64, 65, 200] {
        let values: Vec<u32> = (0..len).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
        both_scans::<64, _, _>(env, &values, Sum, 5);
        both_scans::<33, _, _>(env, &values, Max, 1 << 30);
        both_scans::<1, _, _>(env, &values, Sum, 0);
        // Neither commutative nor with an identity.
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        both_scans::<40, _, _>(env, &bytes, |a: u8, b: u8| a & 0xf0 | b & 15, 3);
    }
}

/// Compares a reduction of elements by groups of `N`, and both scans, with what the documentation says of them.
fn all_forms<const N: usize, T, O>(env: &Env, operator: O)
where
    T: Number,
    O: Operator<T> + 'static,
    Sum: Identity<T>,
{
    let first = T::FIRST;
    for len in [1, 31, 32, 33, 255, 256, 1000] {
        let values: Vec<T> = (0..len).map(T::at).collect();
        both_scans::<N, _, _>(env, &values, operator, first);
        let (input, output) =
            (Buffer::from_vec(values.clone()).unwrap(), Buffer::from_vec(vec![first; 2 * N]).unwrap());
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            cg.parallel_for_work_group(2, Fixed1::<N>, LocalSlice::<T>::new(len), move |mut group, mut slice| {
                let view = input.view(group.uniform());
                group.for_each(Shares(&mut slice), move |_, share| {
                    for (i, place) in share {
                        *place = *view.at(i);
                    }
                });
                let all = group.joint_reduce(&slice, first, operator);
                group.for_each((), move |item, ()| output.set(item.global(), all));
            })
        });
        submitted.unwrap().wait().unwrap();
        let Joint { total, .. } = joint_of_group(&values, N, operator, first);
        assert_eq!(output.to_vec().unwrap(), vec![total; 2 * N], "{len} values by groups of {N}");
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

fn sums_of_floats_are_scanned_in_the_documented_order(env: &Env) {
    let values: Vec<f32> = (0..300).map(|i| 1.0 / (i + 1) as f32).collect();
    let found = scans::<96, _, _>(env, &values, Sum, 0.0);
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    assert_eq!(bits(found.iter().map(|both| both[0]).collect()), bits(joint_of_group(&values, 96, Sum, 0.0).inclusive));
}

fn results_beyond_the_elements_stay(env: &Env) {
    let output = Buffer::from_vec(vec![0u32; 8]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        let memory = (Local::<u32, 5>::new(), Local::<u32, 8>::new());
        cg.parallel_for_work_group(1, Fixed1::<8>, memory, move |mut group, (mut tile, mut results)| {
            group.for_each(Shares(&mut tile), |_, share| share.for_each(|(_, place)| *place = 1));
            group.for_each(&mut results, |_, result| *result = 77);
            group.joint_inclusive_scan(&tile, &mut results, Sum);
            group.joint_inclusive_scan(&[0u32; 0][..], &mut results, Product);
            group.for_each(&mut results, move |item, result| output.set(item.global(), *result));
        })
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(output.to_vec().unwrap(), [1, 2, 3, 4, 5, 77, 77, 77]);
}

fn fewer_results_than_elements_are_a_panic(env: &Env) {
    let event = env.queue().submit(|cg| {
        let memory = (Local::<u32, 9>::new(), Local::<u32, 8>::new());
        cg.parallel_for_work_group(1, Fixed1::<8>, memory, move |mut group, (mut tile, mut results)| {
            group.for_each(Shares(&mut tile), |_, share| share.for_each(|(_, place)| *place = 1));
            group.joint_inclusive_scan(&tile, &mut results, Sum);
        })
    });
    let error = event.unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    assert!(error.to_string().contains("8 results of a scan of 9 elements"), "{error}");
}

fn elements_are_asked_together(env: &Env) {
    const N: usize = 40;
    fn check<T: Number>(env: &Env)
    where
        Sum: Identity<T>,
    {
        // Elements of which some are the first one of their type, and no other is.
        for (len, firsts) in
            [(0, vec![]), (1, vec![]), (1, vec![0]), (39, vec![38]), (1000, vec![999]), (200, (0..200).collect())]
        {
            let mut values = vec![T::at(0); len.max(1)];
            firsts.iter().for_each(|index: &usize| values[*index] = T::FIRST);
            let (input, output) =
                (Buffer::from_vec(values).unwrap(), Buffer::from_vec(vec![[false; 4]; 2 * N]).unwrap());
            let submitted = env.queue().submit(|cg| {
                let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
                let memory = LocalSlice::<T>::new(len);
                cg.parallel_for_work_group(2, Fixed1::<N>, memory, move |mut group, mut slice| {
                    let view = input.view(group.uniform());
                    group.for_each(Shares(&mut slice), move |_, share| {
                        share.for_each(|(i, place)| *place = *view.at(i));
                    });
                    let is_first = |value: T| value == T::FIRST;
                    let found = [
                        group.joint_any(&slice, is_first),
                        group.joint_all(&slice, is_first),
                        group.joint_none(&slice, is_first),
                        // A decision at group scope, which is the same in all work-items.
                        len > 0 && group.joint_any(&[group.linear_id()][..], |id: usize| id == 1),
                    ];
                    group.for_each((), move |item, ()| output.set(item.global(), found));
                })
            });
            submitted.unwrap().wait().unwrap();
            let n = firsts.len();
            let expected = |group: usize| [n > 0, n == len, n == 0, len > 0 && group == 1];
            let all: Vec<_> = (0..2 * N).map(|item| expected(item / N)).collect();
            assert_eq!(output.to_vec().unwrap(), all, "{len} elements, {n} of them");
        }
    }
    for_each_number!(check(env));
}

/// The largest size is among them. Elements are more than work-items, and not a multiple of them.
fn elements_by_groups_of_each_size(env: &Env) {
    let own = |a: u16, b: u16| a.wrapping_mul(3).wrapping_add(b);
    for size in sizes(env) {
        let len = 2 * size + 3;
        let values: Vec<u16> = (0..len).map(u16::at).collect();
        let input = Buffer::from_vec(values.clone()).unwrap();
        let output = Buffer::from_vec(vec![[0u16; 3]; 3 * size]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            let memory = (LocalSlice::<u16>::new(len), LocalSlice::<u16>::new(len));
            cg.parallel_for_work_group(
                3,
                Range::new([size]),
                memory,
                move |mut group, (mut inclusive, mut exclusive)| {
                    let view = input.view(group.uniform());
                    let mut total = 0;
                    if let Some(all) = view.to_slice() {
                        total = group.joint_reduce(all, 9, own);
                        group.joint_inclusive_scan(all, &mut inclusive, own);
                        group.joint_exclusive_scan(all, &mut exclusive, 9, own);
                    }
                    group.for_each((&inclusive, &exclusive), move |item, (inclusive, exclusive)| {
                        let index = item.global().index();
                        let both = if index < len { [inclusive[index], exclusive[index]] } else { [0; 2] };
                        output.set(item.global(), [total, both[0], both[1]]);
                    });
                },
            )
        });
        submitted.unwrap().wait().unwrap();
        let Joint { total, inclusive, exclusive } = joint_of_group(&values, size, own, 9);
        for (index, found) in output.to_vec().unwrap().into_iter().enumerate() {
            let both = if index < len { [inclusive[index], exclusive[index]] } else { [0; 2] };
            assert_eq!(found, [total, both[0], both[1]], "element {index} of {len} by groups of {size}");
        }
    }
}
