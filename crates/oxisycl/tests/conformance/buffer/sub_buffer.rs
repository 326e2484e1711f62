//! Sub-buffers: a part of a buffer as a buffer (H9).

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{
    Gate, assert_completes, assert_held_back, code, iota, negated, plus_one, read_on, update, update_range,
    write_positions,
};

tests![
    a_sub_buffer_is_a_part_with_indices_of_its_own,
    a_sub_buffer_of_whole_rows_or_slices_is_contiguous,
    a_sub_buffer_may_be_empty,
    a_misaligned_sub_buffer_is_refused_by_the_accessor,
    a_sub_buffer_keeps_the_buffer_alive,
    a_sub_buffer_moves_only_its_own_data,
    commands_on_disjoint_sub_buffers_are_independent,
    commands_on_overlapping_sub_buffers_are_ordered,
    an_accessor_to_the_buffer_waits_for_all_sub_buffers,
    overlapping_sub_buffers_in_one_group_are_refused,
    ranged_accessors_to_a_sub_buffer_are_relative_to_it,
    strided_accessors_to_a_sub_buffer_name_the_right_elements,
    ; once:
    a_sub_buffer_that_is_not_contiguous_is_refused,
    a_sub_buffer_must_lie_inside,
    a_sub_buffer_of_a_sub_buffer_is_refused,
    a_sub_buffer_is_not_equal_to_its_buffer,
];

/// The least number of `i32` that a sub-buffer's offset must be a multiple of, for all devices.
pub(crate) fn step(env: &Env) -> usize {
    let bits = env.devices().iter().map(|device| device.info().mem_base_addr_align).max().unwrap();
    (bits as usize / 8).div_ceil(size_of::<i32>())
}

fn a_sub_buffer_is_a_part_with_indices_of_its_own(env: &Env) {
    let step = step(env);
    let buffer = Buffer::from_vec(iota(4 * step)).unwrap();
    let part = buffer.sub_buffer(step, 2 * step).unwrap();
    assert!(part.is_sub_buffer() && !buffer.is_sub_buffer());
    assert_eq!((part.size(), part.byte_size(), part.range()), (2 * step, 8 * step, Range([2 * step])));
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&part, ReadWrite);
        cg.parallel_for(part.range(), move |item| data.update(item, |x| x * 100 + item.index() as i32))
    });
    kernel.unwrap();
    let at = |i: usize| (if i < step || i >= 3 * step { i } else { i * 100 + i - step }) as i32;
    assert_eq!(buffer.to_vec().unwrap(), (0..4 * step).map(at).collect::<Vec<_>>());
    assert_eq!(part.host_access(Read).unwrap()[1], at(step + 1));
    assert_eq!(part.to_vec().unwrap().len(), 2 * step);
}

fn a_sub_buffer_of_whole_rows_or_slices_is_contiguous(env: &Env) {
    let step = step(env);
    let queue = env.queue();
    let rows = Buffer::from_vec_nd(iota(6 * step), [6, step]).unwrap();
    update(&queue, &rows.sub_buffer([2, 0], [3, step]).unwrap(), negated);
    let at = |i: usize| if (2 * step..5 * step).contains(&i) { -(i as i32) } else { i as i32 };
    assert_eq!(rows.to_vec().unwrap(), (0..6 * step).map(at).collect::<Vec<_>>());

    let slices = Buffer::from_vec_nd(iota(4 * 3 * step), [4, 3, step]).unwrap();
    update(&queue, &slices.sub_buffer([1, 0, 0], [2, 3, step]).unwrap(), negated);
    update(&queue, &slices.sub_buffer([3, 1, 0], [1, 1, step]).unwrap(), |x| x + 1000);
    let at = |i: usize| match i / step {
        3..=8 => -(i as i32),
        10 => i as i32 + 1000,
        _ => i as i32,
    };
    assert_eq!(slices.to_vec().unwrap(), (0..12 * step).map(at).collect::<Vec<_>>());
}

fn a_sub_buffer_that_is_not_contiguous_is_refused() {
    let buffer = Buffer::from_vec_nd(iota(64 * 4), [4, 64]).unwrap();
    assert_eq!(code(buffer.sub_buffer([0, 0], [2, 32])), ErrorCode::Invalid);
    assert!(buffer.sub_buffer([1, 32], [1, 16]).is_ok());
    assert!(buffer.sub_buffer([1, 0], [3, 64]).is_ok());
    let buffer = Buffer::from_vec_nd(iota(4 * 4 * 16), [4, 4, 16]).unwrap();
    assert_eq!(code(buffer.sub_buffer([0, 0, 0], [2, 2, 16])), ErrorCode::Invalid);
    assert_eq!(code(buffer.sub_buffer([0, 0, 0], [1, 2, 8])), ErrorCode::Invalid);
    assert!(buffer.sub_buffer([2, 1, 0], [1, 3, 16]).is_ok());
}

fn a_sub_buffer_must_lie_inside() {
    let buffer = Buffer::from_vec_nd(iota(64), [4, 16]).unwrap();
    for (offset, range) in [
        ([3, 0], [2, 16]),
        ([4, 0], [1, 16]),
        ([0, 1], [1, 16]),
        ([0, 0], [5, 16]),
        ([usize::MAX, 0], [1, 16]),
        ([1, 0], [usize::MAX, 16]),
        ([5, 0], [0, 16]),
    ] {
        assert_eq!(code(buffer.sub_buffer(offset, range)), ErrorCode::Invalid, "{offset:?} {range:?}");
    }
}

fn a_sub_buffer_of_a_sub_buffer_is_refused() {
    let buffer = Buffer::from_vec(iota(64)).unwrap();
    let part = buffer.sub_buffer(0, 32).unwrap();
    assert_eq!(code(part.sub_buffer(0, 16)), ErrorCode::Invalid);
    assert_eq!(code(part.reinterpret::<u32, 1>(32).unwrap().sub_buffer(0, 16)), ErrorCode::Invalid);
    assert_eq!(code(part.clone().sub_buffer(0, 32)), ErrorCode::Invalid);
}

fn a_sub_buffer_may_be_empty(env: &Env) {
    let buffer = Buffer::from_vec(iota(64)).unwrap();
    let part = buffer.sub_buffer(64, 0).unwrap();
    let gate = Gate::writing(&env.queue(), &buffer);
    assert_completes(&update(&env.queue(), &part, plus_one));
    gate.open();
    assert!(part.to_vec().unwrap().is_empty());
}

fn a_sub_buffer_is_not_equal_to_its_buffer() {
    let buffer = Buffer::from_vec(iota(64)).unwrap();
    let [first, again, second] = [0, 0, 32].map(|offset| buffer.sub_buffer(offset, 32).unwrap());
    assert!(first == again && first != second && first != buffer);
    assert_eq!(first.id(), buffer.id());
}

fn a_misaligned_sub_buffer_is_refused_by_the_accessor(env: &Env) {
    let align = env.device().info().mem_base_addr_align as usize / 8;
    if align <= size_of::<i32>() {
        env.skip("the device has no requirement");
    }
    let buffer = Buffer::from_vec(iota(64)).unwrap();
    let part = buffer.sub_buffer(1, 16).unwrap();
    let result = env.queue().submit(|cg| {
        let data = cg.access(&part, ReadWrite);
        cg.parallel_for(16, move |item| data.set(item, 0))
    });
    assert_eq!(code(result), ErrorCode::Invalid);
    assert_eq!(code(env.queue().fill(&part, 0)), ErrorCode::Invalid);
    // The host has no such requirement.
    assert_eq!(part.host_access(Read).unwrap()[0], 1);
}

fn a_sub_buffer_keeps_the_buffer_alive(env: &Env) {
    let step = step(env);
    let buffer = Buffer::from_vec(iota(2 * step)).unwrap();
    let part = buffer.sub_buffer(step, step).unwrap();
    drop(buffer);
    update(&env.queue(), &part, plus_one);
    assert_eq!(part.to_vec().unwrap()[0], step as i32 + 1);
}

fn a_sub_buffer_moves_only_its_own_data(env: &Env) {
    let step = step(env);
    let buffer = Buffer::<i32, 1>::uninit(4 * step).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    let part = buffer.sub_buffer(step, 2 * step).unwrap();
    let (since, read) = crate::support::counted(|| read_on(&env.queue(), &part));
    assert_eq!(read, (step as i32..3 * step as i32).collect::<Vec<_>>());
    let moved = 4 * 2 * step as u64;
    // What was read comes home from a device as well.
    let expected = (env.hops(env.other_device(), env.device()) + u64::from(!env.is_host())) * moved;
    assert_eq!(since.transferred_bytes(), expected);
}

fn commands_on_disjoint_sub_buffers_are_independent(env: &Env) {
    let step = step(env);
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(2 * step)).unwrap();
    let [first, second] = [0, step].map(|offset| buffer.sub_buffer(offset, step).unwrap());
    let gate = Gate::writing(&queue, &first);
    assert_completes(&update(&queue, &second, plus_one));
    assert_held_back(&update(&queue, &first, |x| x + 2));
    gate.open();
    let at = |i: usize| (if i < step { i + 2 } else { i + 1 }) as i32;
    assert_eq!(buffer.to_vec().unwrap(), (0..2 * step).map(at).collect::<Vec<_>>());
}

fn commands_on_overlapping_sub_buffers_are_ordered(env: &Env) {
    let step = step(env);
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![1; 3 * step]).unwrap();
    let [first, second] = [0, step].map(|offset| buffer.sub_buffer(offset, 2 * step).unwrap());
    let gate = Gate::writing(&queue, &first);
    let (plus, times) = (update(&queue, &second, plus_one), update(&queue, &first, |x| x * 10));
    assert_held_back(&plus);
    assert_held_back(&times);
    gate.open();
    let data = buffer.to_vec().unwrap();
    assert_eq!([data[0], data[step], data[2 * step]], [10, 20, 2]);
}

fn an_accessor_to_the_buffer_waits_for_all_sub_buffers(env: &Env) {
    let step = step(env);
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![1; 2 * step]).unwrap();
    let second = buffer.sub_buffer(step, step).unwrap();
    let gate = Gate::writing(&queue, &second);
    // By default every accessor to the buffer requires all of it, ranged or not.
    let whole = update_range(&queue, &buffer, 0, 1, plus_one);
    let after = update(&queue, &second, plus_one);
    assert_held_back(&whole);
    assert_held_back(&after);
    gate.open();
    after.wait().unwrap();
    assert!(whole.is_complete());
}

fn overlapping_sub_buffers_in_one_group_are_refused(env: &Env) {
    let step = step(env);
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(3 * step)).unwrap();
    let [first, second, third] =
        [(0, 2), (1, 2), (2, 1)].map(|(offset, length)| buffer.sub_buffer(offset * step, length * step).unwrap());
    let submit = |a: &Buffer<i32, 1>, b: &Buffer<i32, 1>| {
        queue.submit(|cg| {
            let (a, b) = (cg.access(a, Read), cg.access(b, Write));
            cg.parallel_for(step, move |item| b.set(item, a.get(item) + 1))
        })
    };
    assert_eq!(code(submit(&first, &second)), ErrorCode::Accessor);
    assert_eq!(code(submit(&buffer, &third)), ErrorCode::Accessor);
    submit(&first, &third).unwrap();
    let data = buffer.to_vec().unwrap();
    assert_eq!([data[0], data[2 * step], data[2 * step + 1]], [0, 1, 2]);
}

fn ranged_accessors_to_a_sub_buffer_are_relative_to_it(env: &Env) {
    let step = step(env);
    let buffer = Buffer::from_vec_nd(iota(3 * step), [3, step]).unwrap();
    let part = buffer.sub_buffer([1, 0], [2, step]).unwrap();
    update_range(&env.queue(), &part, [1, 2], [1, 3], negated);
    let at = |i: usize| if (2 * step + 2..2 * step + 5).contains(&i) { -(i as i32) } else { i as i32 };
    assert_eq!(buffer.to_vec().unwrap(), (0..3 * step).map(at).collect::<Vec<_>>());
    let host = part.host_access_range(Read, [1, 2], [1, 1]).unwrap();
    assert_eq!(host[[0, 0]], -(2 * step as i32 + 2));
    let result = env.queue().submit(|cg| {
        cg.access_range(&part, Read, [1, 0], [2, 1]);
        cg.single_task(|_| {})
    });
    assert_eq!(code(result), ErrorCode::Invalid);
}

fn strided_accessors_to_a_sub_buffer_name_the_right_elements(env: &Env) {
    let step = step(env);
    let buffer = Buffer::<i32, 2>::uninit([6, step]).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    let part = buffer.sub_buffer([1, 0], [4, step]).unwrap();
    update_range(&env.queue(), &part, [1, 3], [2, 4], negated);
    update_range(&env.third_queue(), &part, [0, 0], [2, 4], |x| x + 10_000);
    let expected = (0..6 * step).map(|i| {
        let (y, x) = (i / step, i % step);
        let negative = if (2..4).contains(&y) && (3..7).contains(&x) { -(i as i32) } else { i as i32 };
        if (1..3).contains(&y) && x < 4 { negative + 10_000 } else { negative }
    });
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<_>>());
}
