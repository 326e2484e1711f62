//! Fills of accessors.

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{Gate, Random, assert_held_back, code, counted, iota, read_on, write_positions};

tests![
    a_whole_buffer_is_filled,
    elements_of_every_width_are_filled,
    a_part_of_a_line_is_filled_and_nothing_else,
    random_boxes_are_filled_and_nothing_else,
    values_of_all_types_are_filled,
    an_empty_fill_does_nothing,
    a_fill_with_no_init_moves_no_data,
    a_fill_without_no_init_keeps_the_rest,
    a_fill_takes_part_in_the_order,
    a_fill_of_a_read_buffer_waits_for_the_readers,
    a_fill_beside_another_command_is_refused,
];

fn a_whole_buffer_is_filled(env: &Env) {
    for queue in [env.queue(), env.in_order_queue()] {
        let buffer = Buffer::from_vec_nd(iota(60), [3, 4, 5]).unwrap();
        let (since, ()) = counted(|| queue.fill(&buffer, 7).unwrap().wait().unwrap());
        assert_eq!((since.fills, since.kernels), (1, 0));
        assert_eq!(buffer.to_vec().unwrap(), [7; 60]);
    }
}

/// Fills a part of a buffer of `N`-byte elements, in one and in two dimensions.
fn check_width<const N: usize>(env: &Env) {
    let (old, new): ([u8; N], [u8; N]) = ([0xEE; N], std::array::from_fn(|i| 1 + 3 * i as u8));
    for (range, offset) in [(97, 0), (1, 0), (1, 96), (50, 13), (2, 95)] {
        let buffer = Buffer::from_vec(vec![old; 97]).unwrap();
        let fill = env.queue().submit(|cg| {
            let target = cg.access_range(&buffer, Write, offset, range);
            cg.fill(target, new)
        });
        fill.unwrap();
        let expected = (0..97).map(|i| if (offset..offset + range).contains(&i) { new } else { old });
        assert!(buffer.to_vec().unwrap().into_iter().eq(expected), "{N} {range} {offset}");
    }
    let buffer = Buffer::from_vec_nd(vec![old; 35], [5, 7]).unwrap();
    let fill = env.queue().submit(|cg| {
        let target = cg.access_range(&buffer, Write, [1, 2], [3, 4]);
        cg.fill(target, new)
    });
    fill.unwrap();
    let inside = |i: usize| (1..4).contains(&(i / 7)) && (2..6).contains(&(i % 7));
    assert!(buffer.to_vec().unwrap().into_iter().eq((0..35).map(|i| if inside(i) { new } else { old })), "{N}");
}

fn elements_of_every_width_are_filled(env: &Env) {
    check_width::<1>(env);
    check_width::<2>(env);
    check_width::<3>(env);
    check_width::<4>(env);
    check_width::<5>(env);
    check_width::<8>(env);
    check_width::<12>(env);
    check_width::<16>(env);
    check_width::<17>(env);
    check_width::<32>(env);
    check_width::<64>(env);
}

fn a_part_of_a_line_is_filled_and_nothing_else(env: &Env) {
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let fill = env.queue().submit(|cg| {
        let target = cg.access_range(&buffer, ReadWrite, 3, 4);
        cg.fill(target, -1)
    });
    fill.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 2, -1, -1, -1, -1, 7, 8, 9]);
}

fn random_boxes_are_filled_and_nothing_else(env: &Env) {
    let mut random = Random::new(env.seed());
    let extent = [5, 6, 7];
    let buffer = BufferOptions::new().page_size([2, 3, 4]).from_vec_nd(vec![0; 210], extent).unwrap();
    let mut expected = vec![0; 210];
    let queues = [env.queue(), env.other_queue(), env.third_queue()];
    for value in 1..60 {
        let part: [(usize, usize); 3] = std::array::from_fn(|d| random.interval(extent[d]));
        let (offset, range) = (part.map(|part| part.0), part.map(|part| part.1));
        let fill = queues[random.below(3)].submit(|cg| {
            let target = cg.access_range(&buffer, Write, offset, range);
            cg.fill(target, value)
        });
        fill.unwrap();
        for z in offset[0]..offset[0] + range[0] {
            for y in offset[1]..offset[1] + range[1] {
                let row = (z * 6 + y) * 7 + offset[2];
                expected[row..row + range[2]].fill(value);
            }
        }
    }
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

#[derive(Clone, Copy, PartialEq, Debug, DeviceCopyable)]
struct Padded {
    flag: bool,
    weight: f64,
    tag: Option<u16>,
}

fn values_of_all_types_are_filled(env: &Env) {
    fn check<T: DeviceCopyable + PartialEq + std::fmt::Debug>(env: &Env, old: T, new: T) {
        let buffer = Buffer::from_vec_nd(vec![old; 9], [3, 3]).unwrap();
        let fill = env.queue().submit(|cg| {
            let target = cg.access_range(&buffer, Write, [1, 1], [2, 2]);
            cg.fill(target, new)
        });
        fill.unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [old, old, old, old, new, new, old, new, new]);
    }
    check(env, false, true);
    check(env, 'a', '€');
    check(env, 0.0f64, -1.25);
    check(env, u128::MAX, 5);
    check(env, None, Some(7u64));
    let padded = Padded { flag: true, weight: 2.5, tag: Some(3) };
    check(env, padded, Padded { flag: false, weight: -0.5, tag: None });
    check(env, [padded; 3], [Padded { weight: 1e300, ..padded }; 3]);
}

fn an_empty_fill_does_nothing(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(12), [3, 4]).unwrap();
    for (range, offset) in [([0, 4], [0, 0]), ([3, 0], [0, 4]), ([0, 0], [3, 4])] {
        let fill = env.queue().submit(|cg| {
            let target = cg.access_range(&buffer, Write, offset, range);
            cg.fill(target, -1)
        });
        fill.unwrap().wait().unwrap();
    }
    assert_eq!(buffer.to_vec().unwrap(), iota(12));
}

fn a_fill_with_no_init_moves_no_data(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
    let (since, ()) = counted(|| {
        let fill = env.queue().submit(|cg| {
            let target = cg.access(&buffer, Write.no_init());
            cg.fill(target, 5)
        });
        fill.unwrap().wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
    assert_eq!(buffer.to_vec().unwrap(), [5; 16]);
}

fn a_fill_without_no_init_keeps_the_rest(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    let fill = env.queue().submit(|cg| {
        let target = cg.access_range(&buffer, Write, 3, 2);
        cg.fill(target, -1)
    });
    fill.unwrap();
    assert_eq!(read_on(&env.queue(), &buffer), [0, 1, 2, -1, -1, 5, 6, 7]);
}

fn a_fill_takes_part_in_the_order(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    let fill = queue.fill(&buffer, 5).unwrap();
    crate::support::update(&env.other_queue(), &buffer, |x| x + 1);
    queue.fill(&buffer.sub_buffer(0, 4).unwrap(), 1).unwrap();
    assert_held_back(&fill);
    gate.open();
    assert_eq!(buffer.to_vec().unwrap(), [1, 1, 1, 1, 6, 6, 6, 6]);
}

fn a_fill_of_a_read_buffer_waits_for_the_readers(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let host = buffer.host_access(Read).unwrap();
    let fill = queue.fill(&buffer, 5).unwrap();
    assert_held_back(&fill);
    assert_eq!(host.as_slice(), iota(8));
    drop(host);
    assert_eq!(buffer.to_vec().unwrap(), [5; 8]);
}

fn a_fill_beside_another_command_is_refused(env: &Env) {
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let result = env.queue().submit(|cg| {
        let (first, second) = (cg.access_range(&buffer, Write, 0, 4), cg.access_range(&buffer, Write, 4, 4));
        cg.fill(first, 1)?;
        cg.fill(second, 2)
    });
    assert_eq!(code(result), ErrorCode::Invalid);
    assert_eq!(buffer.to_vec().unwrap(), iota(8));
}
