//! Sub-buffers and reinterpretations: other views of the same bytes (H9, H10).

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{
    Gate, assert_completes, assert_held_back, code, iota, read_on, update, update_range, write_positions,
};

tests![
    a_sub_buffer_is_a_part_with_indices_of_its_own,
    a_sub_buffer_of_whole_rows_or_slices_is_contiguous,
    a_sub_buffer_that_is_not_contiguous_is_refused,
    a_sub_buffer_must_lie_inside,
    a_sub_buffer_of_a_sub_buffer_is_refused,
    a_sub_buffer_may_be_empty,
    a_sub_buffer_is_not_equal_to_its_buffer,
    a_misaligned_sub_buffer_is_refused_by_the_accessor,
    a_sub_buffer_keeps_the_buffer_alive,
    a_sub_buffer_moves_only_its_own_data,
    commands_on_disjoint_sub_buffers_are_independent,
    commands_on_overlapping_sub_buffers_are_ordered,
    an_accessor_to_the_buffer_waits_for_all_sub_buffers,
    overlapping_sub_buffers_in_one_group_are_refused,
    ranged_accessors_to_a_sub_buffer_are_relative_to_it,
    strided_accessors_to_a_sub_buffer_name_the_right_elements,
    a_reinterpretation_has_the_same_bytes,
    a_reinterpretation_may_change_element_size_and_shape,
    a_reinterpretation_is_the_same_buffer,
    a_reinterpretation_needs_the_same_number_of_bytes,
    a_reinterpretation_needs_the_alignment,
    a_reinterpretation_of_a_sub_buffer_keeps_its_offset,
    a_sub_buffer_of_a_reinterpretation_lies_inside_it,
    a_reinterpretation_and_its_buffer_in_one_group_are_refused,
    a_write_through_a_reinterpretation_reaches_every_device,
    a_strided_write_through_a_reinterpretation_loses_nothing,
];

/// The least number of `i32` that a sub-buffer's offset must be a multiple of, for all devices.
fn step(env: &Env) -> usize {
    let bits = env.devices().iter().map(|device| device.info().mem_base_addr_align).max().unwrap();
    (bits as usize / 8).div_ceil(size_of::<i32>())
}

fn a_sub_buffer_is_a_part_with_indices_of_its_own(env: &Env) {
    let step = step(env);
    let buffer = Buffer::from_vec(iota(4 * step), 4 * step).unwrap();
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
    let rows = Buffer::from_vec(iota(6 * step), [6, step]).unwrap();
    update(&queue, &rows.sub_buffer([2, 0], [3, step]).unwrap(), |x| -x);
    let at = |i: usize| if (2 * step..5 * step).contains(&i) { -(i as i32) } else { i as i32 };
    assert_eq!(rows.to_vec().unwrap(), (0..6 * step).map(at).collect::<Vec<_>>());

    let slices = Buffer::from_vec(iota(4 * 3 * step), [4, 3, step]).unwrap();
    update(&queue, &slices.sub_buffer([1, 0, 0], [2, 3, step]).unwrap(), |x| -x);
    update(&queue, &slices.sub_buffer([3, 1, 0], [1, 1, step]).unwrap(), |x| x + 1000);
    let at = |i: usize| match i / step {
        3..=8 => -(i as i32),
        10 => i as i32 + 1000,
        _ => i as i32,
    };
    assert_eq!(slices.to_vec().unwrap(), (0..12 * step).map(at).collect::<Vec<_>>());
}

fn a_sub_buffer_that_is_not_contiguous_is_refused(_env: &Env) {
    let buffer = Buffer::from_vec(iota(64 * 4), [4, 64]).unwrap();
    assert_eq!(code(buffer.sub_buffer([0, 0], [2, 32])), ErrorCode::Invalid);
    assert!(buffer.sub_buffer([1, 32], [1, 16]).is_ok());
    assert!(buffer.sub_buffer([1, 0], [3, 64]).is_ok());
    let buffer = Buffer::from_vec(iota(4 * 4 * 16), [4, 4, 16]).unwrap();
    assert_eq!(code(buffer.sub_buffer([0, 0, 0], [2, 2, 16])), ErrorCode::Invalid);
    assert_eq!(code(buffer.sub_buffer([0, 0, 0], [1, 2, 8])), ErrorCode::Invalid);
    assert!(buffer.sub_buffer([2, 1, 0], [1, 3, 16]).is_ok());
}

fn a_sub_buffer_must_lie_inside(_env: &Env) {
    let buffer = Buffer::from_vec(iota(64), [4, 16]).unwrap();
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

fn a_sub_buffer_of_a_sub_buffer_is_refused(_env: &Env) {
    let buffer = Buffer::from_vec(iota(64), 64).unwrap();
    let part = buffer.sub_buffer(0, 32).unwrap();
    assert_eq!(code(part.sub_buffer(0, 16)), ErrorCode::Invalid);
    assert_eq!(code(part.reinterpret::<u32, 1>(32).unwrap().sub_buffer(0, 16)), ErrorCode::Invalid);
    assert_eq!(code(part.clone().sub_buffer(0, 32)), ErrorCode::Invalid);
}

fn a_sub_buffer_may_be_empty(env: &Env) {
    let buffer = Buffer::from_vec(iota(64), 64).unwrap();
    let part = buffer.sub_buffer(64, 0).unwrap();
    let gate = Gate::writing(&env.queue(), &buffer);
    assert_completes(&update(&env.queue(), &part, |x| x + 1));
    gate.open();
    assert!(part.to_vec().unwrap().is_empty());
}

fn a_sub_buffer_is_not_equal_to_its_buffer(_env: &Env) {
    let buffer = Buffer::from_vec(iota(64), 64).unwrap();
    let [first, again, second] = [0, 0, 32].map(|offset| buffer.sub_buffer(offset, 32).unwrap());
    assert!(first == again && first != second && first != buffer);
    assert_eq!(first.id(), buffer.id());
}

fn a_misaligned_sub_buffer_is_refused_by_the_accessor(env: &Env) {
    let align = env.device().info().mem_base_addr_align as usize / 8;
    if align <= size_of::<i32>() {
        env.skip("the device has no requirement");
    }
    let buffer = Buffer::from_vec(iota(64), 64).unwrap();
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
    let buffer = Buffer::from_vec(iota(2 * step), 2 * step).unwrap();
    let part = buffer.sub_buffer(step, step).unwrap();
    drop(buffer);
    update(&env.queue(), &part, |x| x + 1);
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
    // What was read comes home from a simulated device as well.
    let expected = if env.is_host() { moved } else { 2 * moved };
    assert_eq!(since.transferred_bytes(), expected);
}

fn commands_on_disjoint_sub_buffers_are_independent(env: &Env) {
    let step = step(env);
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(2 * step), 2 * step).unwrap();
    let [first, second] = [0, step].map(|offset| buffer.sub_buffer(offset, step).unwrap());
    let gate = Gate::writing(&queue, &first);
    assert_completes(&update(&queue, &second, |x| x + 1));
    assert_held_back(&update(&queue, &first, |x| x + 2));
    gate.open();
    let at = |i: usize| (if i < step { i + 2 } else { i + 1 }) as i32;
    assert_eq!(buffer.to_vec().unwrap(), (0..2 * step).map(at).collect::<Vec<_>>());
}

fn commands_on_overlapping_sub_buffers_are_ordered(env: &Env) {
    let step = step(env);
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![1; 3 * step], 3 * step).unwrap();
    let [first, second] = [0, step].map(|offset| buffer.sub_buffer(offset, 2 * step).unwrap());
    let gate = Gate::writing(&queue, &first);
    let (plus, times) = (update(&queue, &second, |x| x + 1), update(&queue, &first, |x| x * 10));
    assert_held_back(&plus);
    assert_held_back(&times);
    gate.open();
    let data = buffer.to_vec().unwrap();
    assert_eq!([data[0], data[step], data[2 * step]], [10, 20, 2]);
}

fn an_accessor_to_the_buffer_waits_for_all_sub_buffers(env: &Env) {
    let step = step(env);
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![1; 2 * step], 2 * step).unwrap();
    let second = buffer.sub_buffer(step, step).unwrap();
    let gate = Gate::writing(&queue, &second);
    // By default every accessor to the buffer requires all of it, ranged or not.
    let whole = update_range(&queue, &buffer, 0, 1, |x| x + 1);
    let after = update(&queue, &second, |x| x + 1);
    assert_held_back(&whole);
    assert_held_back(&after);
    gate.open();
    after.wait().unwrap();
    assert!(whole.is_complete());
}

fn overlapping_sub_buffers_in_one_group_are_refused(env: &Env) {
    let step = step(env);
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(3 * step), 3 * step).unwrap();
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
    let buffer = Buffer::from_vec(iota(3 * step), [3, step]).unwrap();
    let part = buffer.sub_buffer([1, 0], [2, step]).unwrap();
    update_range(&env.queue(), &part, [1, 2], [1, 3], |x| -x);
    let at = |i: usize| if (2 * step + 2..2 * step + 5).contains(&i) { -(i as i32) } else { i as i32 };
    assert_eq!(buffer.to_vec().unwrap(), (0..3 * step).map(at).collect::<Vec<_>>());
    let host = part.host_access_range(Read, [1, 1], [1, 2]).unwrap();
    assert_eq!(host[[0, 0]], -(2 * step as i32 + 2));
    let result = env.queue().submit(|cg| {
        cg.access_range(&part, Read, [2, 1], [1, 0]);
        cg.single_task(|_| {})
    });
    assert_eq!(code(result), ErrorCode::Invalid);
}

fn strided_accessors_to_a_sub_buffer_name_the_right_elements(env: &Env) {
    let step = step(env);
    let buffer = Buffer::<i32, 2>::uninit([6, step]).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    let part = buffer.sub_buffer([1, 0], [4, step]).unwrap();
    update_range(&env.queue(), &part, [1, 3], [2, 4], |x| -x);
    update_range(&env.third_queue(), &part, [0, 0], [2, 4], |x| x + 10_000);
    let expected = (0..6 * step).map(|i| {
        let (y, x) = (i / step, i % step);
        let negative = if (2..4).contains(&y) && (3..7).contains(&x) { -(i as i32) } else { i as i32 };
        if (1..3).contains(&y) && x < 4 { negative + 10_000 } else { negative }
    });
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<_>>());
}

fn a_reinterpretation_has_the_same_bytes(env: &Env) {
    let buffer = Buffer::from_vec(vec![1.0f32, -2.5, 0.0, f32::INFINITY], 4).unwrap();
    let bits = buffer.reinterpret::<u32, 1>(4).unwrap();
    let kernel = env.queue().submit(|cg| {
        let bits = cg.access(&bits, ReadWrite);
        cg.parallel_for(4, move |item| bits.update(item, |bits| bits ^ 0x8000_0000))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [-1.0, 2.5, -0.0, f32::NEG_INFINITY]);
    assert_eq!(bits.to_vec().unwrap()[0], (-1.0f32).to_bits());
}

fn a_reinterpretation_may_change_element_size_and_shape(env: &Env) {
    let buffer = Buffer::from_vec((0..24u32).collect::<Vec<_>>(), [4, 6]).unwrap();
    let cube = buffer.reinterpret::<u32, 3>([2, 3, 4]).unwrap();
    let halves = buffer.reinterpret::<u16, 1>(48).unwrap();
    let pairs = buffer.reinterpret::<[u32; 2], 2>([6, 2]).unwrap();
    assert_eq!((cube.size(), halves.size(), pairs.size()), (24, 48, 12));
    assert_eq!((cube.byte_size(), halves.byte_size(), pairs.byte_size()), (96, 96, 96));
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&cube, ReadWrite);
        cg.parallel_for([2, 3, 4], move |item| {
            let [z, y, x] = item.id().0;
            data.update(item, |old| old * 1000 + (z * 12 + y * 4 + x) as u32);
        })
    });
    kernel.unwrap();
    assert_eq!(pairs.host_access(Read).unwrap()[[5, 1]], [22 * 1001, 23 * 1001]);
    assert_eq!(u32::from(halves.host_access(Read).unwrap()[2 * 7]), (7 * 1001) & 0xFFFF);
    assert_eq!(buffer.host_access(Read).unwrap()[[3, 5]], 23 * 1001);
}

fn a_reinterpretation_is_the_same_buffer(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8), 8).unwrap();
    let view = buffer.reinterpret::<i32, 2>([2, 4]).unwrap();
    assert_eq!(view.id(), buffer.id());
    let gate = Gate::writing(&queue, &view);
    let after = update(&queue, &buffer, |x| x + 1);
    assert_held_back(&after);
    gate.open();
    after.wait().unwrap();
    assert_eq!(view.usm_pointer(env.device()), buffer.usm_pointer(env.device()));
    assert_eq!(view.to_vec().unwrap(), (1..9).collect::<Vec<_>>());
}

fn a_reinterpretation_needs_the_same_number_of_bytes(_env: &Env) {
    let buffer = Buffer::from_vec(iota(6), 6).unwrap();
    assert_eq!(code(buffer.reinterpret::<i32, 1>(5)), ErrorCode::Invalid);
    assert_eq!(code(buffer.reinterpret::<i32, 1>(7)), ErrorCode::Invalid);
    assert_eq!(code(buffer.reinterpret::<i32, 2>([2, 2])), ErrorCode::Invalid);
    assert_eq!(code(buffer.reinterpret::<i64, 1>(6)), ErrorCode::Invalid);
    assert_eq!(code(buffer.reinterpret::<[u8; 16], 1>(2)), ErrorCode::Invalid);
    assert_eq!(code(buffer.reinterpret::<u8, 2>([usize::MAX, 24])), ErrorCode::Invalid);
    assert_eq!(code(buffer.reinterpret::<u64, 1>(usize::MAX / 8 + 4)), ErrorCode::Invalid);
    assert!(buffer.reinterpret::<i64, 1>(3).is_ok());
}

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(C, align(1024))]
struct Block([u8; 1024]);
// SAFETY: an array of bytes whose length is its alignment: no padding, and every bit pattern is a value.
unsafe impl bytemuck::Zeroable for Block {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Block {}

fn a_reinterpretation_needs_the_alignment(_env: &Env) {
    let bytes = Buffer::from_vec(vec![0u8; 1024], 1024).unwrap();
    assert_eq!(code(bytes.reinterpret::<Block, 1>(1)), ErrorCode::Invalid);
    let part = bytes.sub_buffer(1, 8).unwrap();
    assert_eq!(code(part.reinterpret::<u32, 1>(2)), ErrorCode::Invalid);
    assert!(part.reinterpret::<i8, 1>(8).is_ok());
    let blocks = Buffer::from_vec(vec![Block([7; 1024])], 1).unwrap();
    let words = blocks.reinterpret::<u64, 1>(128).unwrap();
    assert_eq!(words.reinterpret::<Block, 1>(1).unwrap().to_vec().unwrap()[0].0, [7; 1024]);
}

fn a_reinterpretation_of_a_sub_buffer_keeps_its_offset(env: &Env) {
    let step = step(env);
    let buffer = Buffer::from_vec(iota(3 * step), 3 * step).unwrap();
    let part = buffer.sub_buffer(step, 2 * step).unwrap();
    let view = part.reinterpret::<u32, 2>([2, step]).unwrap();
    assert!(view.is_sub_buffer());
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&view, Write, [1, 2], [1, 1]);
        cg.parallel_for([1, 2], move |item| data.set(item, 7_000_000 + item.id()[1] as u32))
    });
    kernel.unwrap();
    let mut expected = iota(3 * step);
    expected[2 * step + 1] = 7_000_000;
    expected[2 * step + 2] = 7_000_001;
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn a_sub_buffer_of_a_reinterpretation_lies_inside_it(env: &Env) {
    let step = step(env);
    let buffer = Buffer::from_vec(iota(4 * step), [4, step]).unwrap();
    let bytes = buffer.reinterpret::<u8, 1>(16 * step).unwrap();
    let part = bytes.sub_buffer(4 * step, 8 * step).unwrap();
    env.queue().fill(&part, 0).unwrap();
    let at = |i: usize| if (step..3 * step).contains(&i) { 0 } else { i as i32 };
    assert_eq!(buffer.to_vec().unwrap(), (0..4 * step).map(at).collect::<Vec<_>>());
}

fn a_reinterpretation_and_its_buffer_in_one_group_are_refused(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0u32; 8], 8).unwrap();
    let bytes = buffer.reinterpret::<u8, 1>(32).unwrap();
    let submit = |words: usize, first_byte: usize| {
        queue.submit(|cg| {
            cg.access_range(&buffer, Read, words, 0);
            let bytes = cg.access_range(&bytes, Write, 2, first_byte);
            cg.parallel_for(2, move |item| bytes.set(item, 1))
        })
    };
    assert_eq!(code(submit(8, 0)), ErrorCode::Accessor);
    assert_eq!(code(submit(3, 11)), ErrorCode::Accessor);
    submit(3, 12).unwrap();
    assert_eq!(buffer.to_vec().unwrap()[3], 0x0101);
}

fn a_write_through_a_reinterpretation_reaches_every_device(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(16), 16).unwrap();
    for queue in [env.queue(), env.other_queue(), env.third_queue()] {
        read_on(&queue, &buffer);
    }
    let view = buffer.reinterpret::<u16, 2>([8, 4]).unwrap();
    let kernel = env.other_queue().submit(|cg| {
        let data = cg.access_range(&view, ReadWrite, [2, 4], [3, 0]);
        cg.parallel_for([2, 4], move |item| data.set(item, 1))
    });
    kernel.unwrap();
    let mut expected = iota(16);
    expected[6..10].fill(0x1_0001);
    for queue in [env.queue(), env.third_queue(), env.other_queue()] {
        assert_eq!(read_on(&queue, &buffer), expected);
    }
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn a_strided_write_through_a_reinterpretation_loses_nothing(env: &Env) {
    // The boxes of a shape that does not divide the buffer's rows: page ranges may only be larger than needed (S-R26).
    let buffer = BufferOptions::new().page_size([2, 5]).from_vec(iota(6 * 10), [6, 10]).unwrap();
    let view = buffer.reinterpret::<i32, 2>([15, 4]).unwrap();
    let mut expected = iota(60);
    for (round, queue) in [env.queue(), env.other_queue(), env.third_queue(), env.queue()].iter().enumerate() {
        update_range(queue, &view, [round * 3, 1], [4, 2], |x| x + 1000);
        update_range(queue, &buffer, [1, round], [4, 3], |x| -x);
        for y in round * 3..round * 3 + 4 {
            for x in 1..3 {
                expected[y * 4 + x] += 1000;
            }
        }
        for y in 1..5 {
            for x in round..round + 3 {
                expected[y * 10 + x] *= -1;
            }
        }
    }
    assert_eq!(read_on(&env.other_queue(), &view), expected);
    assert_eq!(buffer.to_vec().unwrap(), expected);
}
