//! Reinterpretations: the same bytes with other elements or in another shape (H10).

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{Gate, assert_held_back, code, iota, negated, plus_one, read_on, update, update_range};

use super::sub_buffer::step;

tests![
    a_reinterpretation_has_the_same_bytes,
    a_reinterpretation_may_change_element_size_and_shape,
    a_reinterpretation_is_the_same_buffer,
    a_reinterpretation_of_a_sub_buffer_keeps_its_offset,
    a_sub_buffer_of_a_reinterpretation_lies_inside_it,
    a_reinterpretation_and_its_buffer_in_one_group_are_refused,
    a_write_through_a_reinterpretation_reaches_every_device,
    a_strided_write_through_a_reinterpretation_loses_nothing,
    a_write_of_more_rows_than_are_listed_loses_nothing,
    ; once:
    a_reinterpretation_needs_the_same_number_of_bytes,
    a_reinterpretation_needs_the_alignment,
];

fn a_reinterpretation_has_the_same_bytes(env: &Env) {
    let buffer = Buffer::from_vec(vec![1.0f32, -2.5, 0.0, f32::INFINITY]).unwrap();
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
    let buffer = Buffer::from_vec_nd((0..24u32).collect::<Vec<_>>(), [4, 6]).unwrap();
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
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let view = buffer.reinterpret::<i32, 2>([2, 4]).unwrap();
    assert_eq!(view.id(), buffer.id());
    let gate = Gate::writing(&queue, &view);
    let after = update(&queue, &buffer, plus_one);
    assert_held_back(&after);
    gate.open();
    after.wait().unwrap();
    assert_eq!(view.usm_pointer(env.device()), buffer.usm_pointer(env.device()));
    assert_eq!(view.to_vec().unwrap(), (1..9).collect::<Vec<_>>());
}

fn a_reinterpretation_needs_the_same_number_of_bytes() {
    let buffer = Buffer::from_vec(iota(6)).unwrap();
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

fn a_reinterpretation_needs_the_alignment() {
    let bytes = Buffer::from_vec(vec![0u8; 1024]).unwrap();
    assert_eq!(code(bytes.reinterpret::<Block, 1>(1)), ErrorCode::Invalid);
    let part = bytes.sub_buffer(1, 8).unwrap();
    assert_eq!(code(part.reinterpret::<u32, 1>(2)), ErrorCode::Invalid);
    assert!(part.reinterpret::<i8, 1>(8).is_ok());
    let blocks = Buffer::from_vec_nd(vec![Block([7; 1024])], 1).unwrap();
    let words = blocks.reinterpret::<u64, 1>(128).unwrap();
    assert_eq!(words.reinterpret::<Block, 1>(1).unwrap().to_vec().unwrap()[0].0, [7; 1024]);
}

fn a_reinterpretation_of_a_sub_buffer_keeps_its_offset(env: &Env) {
    let step = step(env);
    let buffer = Buffer::from_vec(iota(3 * step)).unwrap();
    let part = buffer.sub_buffer(step, 2 * step).unwrap();
    let view = part.reinterpret::<u32, 2>([2, step]).unwrap();
    assert!(view.is_sub_buffer());
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&view, Write, [1, 1], [1, 2]);
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
    let buffer = Buffer::from_vec_nd(iota(4 * step), [4, step]).unwrap();
    let bytes = buffer.reinterpret::<u8, 1>(16 * step).unwrap();
    let part = bytes.sub_buffer(4 * step, 8 * step).unwrap();
    env.queue().fill(&part, 0).unwrap();
    let at = |i: usize| if (step..3 * step).contains(&i) { 0 } else { i as i32 };
    assert_eq!(buffer.to_vec().unwrap(), (0..4 * step).map(at).collect::<Vec<_>>());
}

fn a_reinterpretation_and_its_buffer_in_one_group_are_refused(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0u32; 8]).unwrap();
    let bytes = buffer.reinterpret::<u8, 1>(32).unwrap();
    let submit = |words: usize, first_byte: usize| {
        queue.submit(|cg| {
            cg.access_range(&buffer, Read, 0, words);
            let bytes = cg.access_range(&bytes, Write, first_byte, 2);
            cg.parallel_for(2, move |item| bytes.set(item, 1))
        })
    };
    assert_eq!(code(submit(8, 0)), ErrorCode::Accessor);
    assert_eq!(code(submit(3, 11)), ErrorCode::Accessor);
    submit(3, 12).unwrap();
    assert_eq!(buffer.to_vec().unwrap()[3], 0x0101);
}

fn a_write_through_a_reinterpretation_reaches_every_device(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(16)).unwrap();
    for queue in [env.queue(), env.other_queue(), env.third_queue()] {
        read_on(&queue, &buffer);
    }
    let view = buffer.reinterpret::<u16, 2>([8, 4]).unwrap();
    let kernel = env.other_queue().submit(|cg| {
        let data = cg.access_range(&view, ReadWrite, [3, 0], [2, 4]);
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
    let buffer = BufferOptions::new().page_size([2, 5]).from_vec_nd(iota(6 * 10), [6, 10]).unwrap();
    let view = buffer.reinterpret::<i32, 2>([15, 4]).unwrap();
    let mut expected = iota(60);
    for (round, queue) in [env.queue(), env.other_queue(), env.third_queue(), env.queue()].iter().enumerate() {
        update_range(queue, &view, [round * 3, 1], [4, 2], |x| x + 1000);
        update_range(queue, &buffer, [1, round], [4, 3], negated);
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

/// A box of more than 1024 rows is taken for the interval around it. So `no_init` of its half of each row must not drop the other half
/// (S-R26, S-R27).
fn a_write_of_more_rows_than_are_listed_loses_nothing(env: &Env) {
    for rows in [1024, 1025, 3000] {
        let buffer = BufferOptions::new().page_size([2]).from_vec(iota(4 * rows)).unwrap();
        let view = buffer.reinterpret::<i32, 2>([rows, 4]).unwrap();
        update_range(&env.other_queue(), &view, [0, 2], [rows, 2], |x| x + 100_000);
        let submitted = env.queue().submit(|cg| {
            let data = cg.access_range(&view, Write.no_init(), [0, 0], [rows, 2]);
            cg.parallel_for([rows, 2], move |item| data.set(item, -1))
        });
        submitted.unwrap();
        let expected: Vec<i32> = (0..4 * rows as i32).map(|i| if i % 4 < 2 { -1 } else { i + 100_000 }).collect();
        assert_eq!(read_on(&env.third_queue(), &view), expected, "{rows} rows");
        assert_eq!(buffer.to_vec().unwrap(), expected, "{rows} rows");
    }
}
