//! Copies between accessors: shapes, parts, and what is refused.

use oxisycl::prelude::*;
use oxisycl::{Loads, ModeFor, Result, Stores};

use crate::harness::{Env, tests};
use crate::support::{Gate, Random, assert_held_back, code, counted, iota, plus_one, read_on, update, write_positions};

tests![
    whole_buffers_are_copied,
    shapes_may_differ,
    parts_are_copied,
    strided_parts_are_copied_in_row_major_order,
    planes_are_cut_out_of_cubes,
    a_larger_target_keeps_its_rest,
    a_smaller_target_is_refused,
    random_boxes_are_copied_in_row_major_order,
    a_buffer_is_copied_within_itself,
    overlapping_copies_are_refused,
    empty_copies_do_nothing,
    newest_data_is_copied_wherever_it_is,
    copies_with_no_init_move_no_old_data,
    every_mode_that_can_be_copied_is,
    copies_take_part_in_the_order,
    elements_of_every_width_are_copied,
    a_copy_within_a_device_crosses_no_border,
    the_shortcut_copies_whole_buffers,
];

/// Copies a part of one buffer to a part of another.
fn copy_part<const D: usize, const E: usize>(
    queue: &Queue,
    (from, from_offset, from_range): (&Buffer<i32, D>, [usize; D], [usize; D]),
    (to, to_offset, to_range): (&Buffer<i32, E>, [usize; E], [usize; E]),
) -> Result<Event> {
    queue.submit(|cg| {
        let from = cg.access_range(from, Read, from_offset, from_range);
        let to = cg.access_range(to, Write, to_offset, to_range);
        cg.copy(from, to)
    })
}

fn whole_buffers_are_copied(env: &Env) {
    let from = Buffer::from_vec_nd(iota(60), [3, 4, 5]).unwrap();
    let to = Buffer::<i32, 3>::uninit([3, 4, 5]).unwrap();
    copy_part(&env.queue(), (&from, [0; 3], [3, 4, 5]), (&to, [0; 3], [3, 4, 5])).unwrap();
    assert_eq!(to.to_vec().unwrap(), iota(60));
    assert_eq!(from.to_vec().unwrap(), iota(60));
}

fn shapes_may_differ(env: &Env) {
    let queue = env.queue();
    let line = Buffer::from_vec(iota(24)).unwrap();
    let plane = Buffer::<i32, 2>::uninit([4, 6]).unwrap();
    let other = Buffer::<i32, 2>::uninit([3, 8]).unwrap();
    let cube = Buffer::<i32, 3>::uninit([2, 3, 4]).unwrap();
    queue.copy(&line, &plane).unwrap();
    queue.copy(&plane, &other).unwrap();
    queue.copy(&other, &cube).unwrap();
    for all in [plane.to_vec(), other.to_vec(), cube.to_vec()] {
        assert_eq!(all.unwrap(), iota(24));
    }
}

fn parts_are_copied(env: &Env) {
    let from = Buffer::from_vec(iota(10)).unwrap();
    let to = Buffer::from_vec(vec![-1; 10]).unwrap();
    copy_part(&env.queue(), (&from, [2], [4]), (&to, [5], [4])).unwrap();
    assert_eq!(to.to_vec().unwrap(), [-1, -1, -1, -1, -1, 2, 3, 4, 5, -1]);
}

fn strided_parts_are_copied_in_row_major_order(env: &Env) {
    let queue = env.queue();
    let from = Buffer::from_vec_nd(iota(30), [5, 6]).unwrap();
    let line = Buffer::from_vec(vec![-1; 8]).unwrap();
    copy_part(&queue, (&from, [1, 2], [2, 3]), (&line, [1], [6])).unwrap();
    assert_eq!(line.to_vec().unwrap(), [-1, 8, 9, 10, 14, 15, 16, -1]);
    // The same box elsewhere, and another box of as many elements.
    let to = Buffer::from_vec_nd(vec![-1; 20], [4, 5]).unwrap();
    copy_part(&queue, (&from, [1, 2], [2, 3]), (&to, [2, 2], [2, 3])).unwrap();
    copy_part(&queue, (&from, [3, 0], [2, 3]), (&to, [0, 0], [3, 2])).unwrap();
    let expected = [18, 19, -1, -1, -1, 20, 24, -1, -1, -1, 25, 26, 8, 9, 10, -1, -1, 14, 15, 16];
    assert_eq!(to.to_vec().unwrap(), expected);
    // And back from a line.
    let back = Buffer::from_vec_nd(vec![0; 12], [3, 4]).unwrap();
    copy_part(&queue, (&line, [1], [6]), (&back, [0, 1], [3, 2])).unwrap();
    assert_eq!(back.to_vec().unwrap(), [0, 8, 9, 0, 0, 10, 14, 0, 0, 15, 16, 0]);
}

fn planes_are_cut_out_of_cubes(env: &Env) {
    let queue = env.queue();
    let cube = Buffer::from_vec_nd(iota(60), [3, 4, 5]).unwrap();
    let plane = Buffer::<i32, 2>::uninit([3, 4]).unwrap();
    copy_part(&queue, (&cube, [0, 0, 2], [3, 4, 1]), (&plane, [0, 0], [3, 4])).unwrap();
    assert_eq!(plane.to_vec().unwrap(), (0..12).map(|i| i / 4 * 20 + i % 4 * 5 + 2).collect::<Vec<i32>>());
    let box_of = Buffer::from_vec_nd(vec![0; 2 * 2 * 4], [2, 2, 4]).unwrap();
    copy_part(&queue, (&cube, [1, 2, 1], [2, 2, 3]), (&box_of, [0, 0, 1], [2, 2, 3])).unwrap();
    assert_eq!(box_of.to_vec().unwrap(), [0, 31, 32, 33, 0, 36, 37, 38, 0, 51, 52, 53, 0, 56, 57, 58]);
}

fn a_larger_target_keeps_its_rest(env: &Env) {
    let from = Buffer::from_vec(iota(5)).unwrap();
    let line = Buffer::from_vec(vec![-1; 8]).unwrap();
    env.queue().copy(&from, &line).unwrap();
    assert_eq!(line.to_vec().unwrap(), [0, 1, 2, 3, 4, -1, -1, -1]);
    let plane = Buffer::from_vec_nd(vec![-1; 12], [3, 4]).unwrap();
    copy_part(&env.queue(), (&from, [0], [5]), (&plane, [0, 1], [3, 3])).unwrap();
    assert_eq!(plane.to_vec().unwrap(), [-1, 0, 1, 2, -1, 3, 4, -1, -1, -1, -1, -1]);
}

fn a_smaller_target_is_refused(env: &Env) {
    let (from, to) = (Buffer::from_vec_nd(iota(12), [3, 4]).unwrap(), Buffer::from_vec(iota(11)).unwrap());
    let (since, result) = counted(|| env.queue().copy(&from, &to));
    assert_eq!((code(result), since.nodes), (ErrorCode::Invalid, 0));
    let result = copy_part(&env.queue(), (&from, [0, 0], [3, 4]), (&from.clone(), [0, 0], [0, 4]));
    assert_eq!(code(result), ErrorCode::Invalid);
    assert_eq!(to.to_vec().unwrap(), iota(11));
}

fn random_boxes_are_copied_in_row_major_order(env: &Env) {
    let mut random = Random::new(env.seed());
    let queue = env.queue();
    let (from_extent, to_extent) = ([4, 5, 6], [7, 9]);
    let from = Buffer::from_vec_nd(iota(120), from_extent).unwrap();
    let to = Buffer::from_vec_nd(vec![-1; 63], to_extent).unwrap();
    let mut expected = vec![-1; 63];
    let mut n_copies = 0;
    while n_copies < 60 {
        let source: [(usize, usize); 3] = std::array::from_fn(|d| random.interval(from_extent[d]));
        let target: [(usize, usize); 2] = std::array::from_fn(|d| random.interval(to_extent[d]));
        let (from_offset, from_range) = (source.map(|part| part.0), source.map(|part| part.1));
        let (to_offset, to_range) = (target.map(|part| part.0), target.map(|part| part.1));
        if from_range.iter().product::<usize>() > to_range.iter().product::<usize>() {
            continue;
        }
        n_copies += 1;
        copy_part(&queue, (&from, from_offset, from_range), (&to, to_offset, to_range)).unwrap();
        let [_, rows, row] = from_range;
        for i in 0..from_range.iter().product() {
            let at = [i / row / rows, i / row % rows, i % row];
            let element: usize = (0..3).fold(0, |position, d| position * from_extent[d] + from_offset[d] + at[d]);
            let (y, x) = (to_offset[0] + i / to_range[1], to_offset[1] + i % to_range[1]);
            expected[y * 9 + x] = element as i32;
        }
    }
    assert_eq!(to.to_vec().unwrap(), expected);
}

fn a_buffer_is_copied_within_itself(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(12), [3, 4]).unwrap();
    copy_part(&env.queue(), (&buffer, [0, 0], [3, 2]), (&buffer, [0, 2], [3, 2])).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9]);
}

fn overlapping_copies_are_refused(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(12), [3, 4]).unwrap();
    let result = copy_part(&env.queue(), (&buffer, [0, 0], [3, 2]), (&buffer, [0, 1], [3, 2]));
    assert_eq!(code(result), ErrorCode::Accessor);
    assert_eq!(code(env.queue().copy(&buffer, &buffer.clone())), ErrorCode::Accessor);
    assert_eq!(buffer.to_vec().unwrap(), iota(12));
}

fn empty_copies_do_nothing(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec_nd(iota(12), [3, 4]).unwrap();
    let other = Buffer::from_vec(iota(3)).unwrap();
    copy_part(&queue, (&buffer, [0, 0], [0, 4]), (&other, [0], [3])).unwrap().wait().unwrap();
    copy_part(&queue, (&buffer, [3, 4], [0, 0]), (&other, [3], [0])).unwrap().wait().unwrap();
    assert_eq!(other.to_vec().unwrap(), iota(3));
}

fn newest_data_is_copied_wherever_it_is(env: &Env) {
    let from = Buffer::<i32, 1>::uninit(16).unwrap();
    let to = BufferOptions::new().page_size(4).uninit::<i32>(16).unwrap();
    write_positions(&env.other_queue(), &from, 0);
    write_positions(&env.third_queue(), &to, 100);
    copy_part(&env.queue(), (&from, [3], [5]), (&to, [6], [5])).unwrap();
    let mut expected: Vec<i32> = (100..116).collect();
    expected[6..11].copy_from_slice(&[3, 4, 5, 6, 7]);
    assert_eq!(read_on(&env.other_queue(), &to), expected);
    assert_eq!(to.to_vec().unwrap(), expected);
}

fn copies_with_no_init_move_no_old_data(env: &Env) {
    let queue = env.queue();
    let from = Buffer::<i32, 1>::uninit(16).unwrap();
    let to = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&queue, &from, 0);
    write_positions(&env.other_queue(), &to, 100).wait().unwrap();
    let (since, ()) = counted(|| {
        let copy = queue.submit(|cg| {
            let (from, to) = (cg.access(&from, Read), cg.access(&to, Write.no_init()));
            cg.copy(from, to)
        });
        copy.unwrap().wait().unwrap();
    });
    assert_eq!((since.transfers(), since.copies_within_memory), (0, 1));
    assert_eq!(to.to_vec().unwrap(), iota(16));
}

fn check_modes<M: ModeFor<i32> + Loads, N: ModeFor<i32> + Stores>(env: &Env, from_mode: M, to_mode: N) {
    let from = Buffer::from_vec(iota(4)).unwrap();
    let to = Buffer::from_vec(vec![-1; 4]).unwrap();
    let copy = env.queue().submit(|cg| {
        let (from, to) = (cg.access(&from, from_mode), cg.access(&to, to_mode));
        cg.copy(from, to)
    });
    copy.unwrap();
    assert_eq!(to.to_vec().unwrap(), iota(4));
}

fn every_mode_that_can_be_copied_is(env: &Env) {
    check_modes(env, Read, Write);
    check_modes(env, Read, ReadWrite);
    check_modes(env, Read, Write.no_init());
    check_modes(env, ReadWrite, Write);
    check_modes(env, ReadWrite, ReadWrite.no_init());
}

fn copies_take_part_in_the_order(env: &Env) {
    let queue = env.queue();
    let [a, b] = [0, 10].map(|base| Buffer::from_vec_nd((base..base + 4).collect::<Vec<i32>>(), 4).unwrap());
    let gate = Gate::writing(&queue, &a);
    let copy = queue.copy(&a, &b).unwrap();
    update(&queue, &a, |x| x + 100);
    update(&queue, &b, |x| x + 1000);
    assert_held_back(&copy);
    gate.open();
    assert_eq!(b.to_vec().unwrap(), [1000, 1001, 1002, 1003]);
    assert_eq!(a.to_vec().unwrap(), [100, 101, 102, 103]);
}

fn elements_of_every_width_are_copied(env: &Env) {
    fn check<const N: usize>(env: &Env) {
        let data: Vec<[u8; N]> =
            (0..35u8).map(|i| std::array::from_fn(|byte| i.wrapping_mul(7).wrapping_add(byte as u8))).collect();
        let from = Buffer::from_vec_nd(data.clone(), [5, 7]).unwrap();
        let to = Buffer::<[u8; N], 1>::uninit(12).unwrap();
        let copy = env.queue().submit(|cg| {
            let (from, to) = (cg.access_range(&from, Read, [1, 2], [3, 4]), cg.access(&to, Write));
            cg.copy(from, to)
        });
        copy.unwrap();
        let expected = (0..12).map(|i| data[(1 + i / 4) * 7 + 2 + i % 4]);
        assert_eq!(to.to_vec().unwrap(), expected.collect::<Vec<_>>(), "{N}");
    }
    check::<1>(env);
    check::<2>(env);
    check::<3>(env);
    check::<4>(env);
    check::<8>(env);
    check::<12>(env);
    check::<16>(env);
    check::<33>(env);
}

fn a_copy_within_a_device_crosses_no_border(env: &Env) {
    let queue = env.queue();
    let [a, b] = [(); 2].map(|()| Buffer::<i32, 1>::uninit(100).unwrap());
    write_positions(&queue, &a, 0).wait().unwrap();
    let (since, ()) = counted(|| queue.copy(&a, &b).unwrap().wait().unwrap());
    assert_eq!((since.transfers(), since.copies_within_memory, since.bytes_within_memory), (0, 1, 400));
}

fn the_shortcut_copies_whole_buffers(env: &Env) {
    let from = Buffer::from_vec_nd(iota(6), [2, 3]).unwrap();
    let to = Buffer::from_vec(vec![0; 6]).unwrap();
    update(&env.other_queue(), &from, plus_one);
    env.queue().copy(&from, &to).unwrap();
    assert_eq!(to.to_vec().unwrap(), [1, 2, 3, 4, 5, 6]);
}
