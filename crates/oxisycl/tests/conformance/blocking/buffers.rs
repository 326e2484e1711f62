//! Rows 8.12 to 8.24: buffers while they live.

use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};

use oxisycl::prelude::*;
use oxisycl::{FinalData, Result};

use super::hold::{Hold, eight, ways};
use crate::harness::{Env, tests};
use crate::support::{Gate, iota, plus_one, read_on, touch, update, write_positions};

tests![
    row_8_12_making_buffers_and_views_never_blocks,
    row_8_13_dropping_a_handle_that_is_not_the_last_never_blocks,
    row_8_20_access_on_the_host_blocks_until_conflicting_commands_have_ended,
    row_8_21_dropping_a_host_accessor_never_blocks,
    row_8_22_into_vec_and_into_usm_block_until_no_command_uses_the_buffer,
    row_8_23_release_blocks_until_no_command_uses_the_buffer,
    row_8_24_asking_for_and_about_allocations_never_blocks,
];

fn row_8_12_making_buffers_and_views_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.in_order_queue();
        let buffer = eight();
        let slice = queue.malloc_device::<i32>(8).unwrap();
        let mut borrowed = iota(8);
        let hold = Hold::writing(env, way, &queue, &buffer);
        let last = update(&queue, &buffer, plus_one);
        drop([
            Buffer::from_vec(iota(8)).unwrap(),
            Buffer::from_slice(&iota(8)).unwrap(),
            Buffer::from_shared_nd(Arc::from(iota(8)), 8).unwrap(),
            Buffer::from_elements(iota(8)).unwrap(),
            Buffer::uninit(8).unwrap(),
            BufferOptions::new().from_usm_nd(slice, 8).unwrap(),
        ]);
        Buffer::from_slice_mut_nd(&mut borrowed, 8).unwrap().discard();
        let views = (
            buffer.sub_buffer(0, 4).unwrap(),
            buffer.reinterpret::<u32, 1>(8).unwrap(),
            buffer.placeholder(Read),
            buffer.placeholder_range(Write, 4, 4),
        );
        buffer.set_final_data(FinalData::call(|_| {}));
        buffer.set_final_data(FinalData::none());
        assert!(!last.is_complete());
        drop(views);
        hold.open();
        last.wait().unwrap();
    }
}

fn row_8_13_dropping_a_handle_that_is_not_the_last_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let buffer = eight();
        let (to, delivered) = mpsc::channel();
        buffer.set_final_data(FinalData::call(move |data| to.send(data.unwrap()).unwrap()));
        let last = buffer.clone();
        let views =
            (buffer.sub_buffer(0, 4).unwrap(), buffer.reinterpret::<u32, 1>(8).unwrap(), buffer.placeholder(Read));
        let hold = Hold::writing(env, way, &queue, &buffer);
        let after = update(&queue, &buffer, plus_one);
        drop(views);
        drop(buffer);
        assert_eq!(delivered.try_recv(), Err(TryRecvError::Empty));
        assert!(!after.is_complete());
        hold.open();
        drop(last);
        assert_eq!(delivered.try_recv().unwrap()[7], 8);
    }
}

fn row_8_20_access_on_the_host_blocks_until_conflicting_commands_have_ended(env: &Env) {
    type Access = fn(&Buffer<i32, 1>) -> Result<i32>;
    let accesses: [Access; 4] = [
        |buffer| Ok(buffer.host_access(Read)?[7]),
        |buffer| Ok(buffer.host_access_range(Read, 4, 4)?[3]),
        |buffer| Ok(buffer.to_vec()?[7]),
        |buffer| Ok(buffer.sub_buffer(4, 4)?.to_vec()?[3]),
    ];
    for &way in ways(env) {
        for access in accesses {
            let queue = env.queue();
            let (buffer, other) = (eight(), eight());
            let beside = Gate::writing(&queue, &other);
            let hold = Hold::writing(env, way, &queue, &buffer);
            let writer = update(&queue, &buffer, plus_one);
            // Does not conflict with what only reads.
            let reader = Gate::new(&queue, |cg| {
                cg.access(&buffer, Read);
            });
            hold.open_later();
            assert_eq!(access(&buffer).unwrap(), 8, "{way:?}");
            assert!(writer.is_complete());
            assert!(!beside.event().is_complete() && !reader.event().is_complete());
        }
        // What writes on the host also waits for what reads.
        let queue = env.in_order_queue();
        let buffer = eight();
        let hold = Hold::new(env, way, &queue);
        let reader = touch(&queue, &buffer);
        hold.open_later();
        buffer.host_access(Write).unwrap()[0] = 1;
        assert!(reader.is_complete(), "{way:?}");
    }
}

fn row_8_21_dropping_a_host_accessor_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.in_order_queue();
        let buffer = eight();
        let hold = Hold::new(env, way, &queue);
        let mut host = buffer.host_access(ReadWrite).unwrap();
        // Held by the accessor, and then by what comes before it.
        let blocked = update(&queue, &buffer, plus_one);
        host[7] = 50;
        drop(host);
        assert!(!blocked.is_complete());
        hold.open();
        blocked.wait().unwrap();
        assert_eq!(buffer.to_vec().unwrap()[7], 51);
    }
}

/// A command that reads the buffer, and ends when the hold does.
fn held_reader(queue: &Queue, hold: &Hold, buffer: &Buffer<i32, 1>) -> Event {
    let reader = queue.submit(|cg| {
        cg.depends_on(hold.event());
        cg.access(buffer, Read);
        cg.single_task(|_| {})
    });
    reader.unwrap()
}

fn row_8_22_into_vec_and_into_usm_block_until_no_command_uses_the_buffer(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let of_slice = || BufferOptions::new().from_usm_nd(queue.malloc_device::<i32>(8).unwrap(), 8).unwrap();
        for (buffer, has_usm) in [(eight(), false), (of_slice(), false), (of_slice(), true)] {
            write_positions(&queue, &buffer, 0);
            let beside = Gate::new(&queue, |_| {});
            let hold = Hold::new(env, way, &queue);
            let reader = held_reader(&queue, &hold, &buffer);
            hold.open_later();
            let data = match has_usm {
                true => buffer.into_usm().unwrap().to_vec(&queue).unwrap(),
                false => buffer.into_vec().unwrap(),
            };
            assert!(reader.is_complete() && !beside.event().is_complete(), "{way:?}");
            assert_eq!(data, iota(8));
        }
    }
}

fn row_8_23_release_blocks_until_no_command_uses_the_buffer(env: &Env) {
    for &way in ways(env) {
        // A command uses the buffer also if it does so on another device.
        for user in [env.queue(), env.other_queue()] {
            let queue = env.queue();
            let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
            write_positions(&env.third_queue(), &buffer, 0);
            touch(&queue, &buffer).wait().unwrap();
            touch(&user, &buffer).wait().unwrap();
            let beside = Gate::new(&queue, |_| {});
            let hold = Hold::new(env, way, &queue);
            let reader = held_reader(&user, &hold, &buffer);
            hold.open_later();
            buffer.release(env.device()).unwrap();
            assert!(reader.is_complete() && !beside.event().is_complete(), "{way:?}");
            assert!(!buffer.is_allocated_on(env.device()));
            assert_eq!(read_on(&env.third_queue(), &buffer), iota(8));
        }
    }
}

fn row_8_24_asking_for_and_about_allocations_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let buffer = eight();
        let hold = Hold::writing(env, way, &queue, &buffer);
        let last = update(&queue, &buffer, plus_one);
        for device in env.devices() {
            buffer.reserve(device).unwrap();
            assert!(buffer.is_allocated_on(device) && buffer.usm_pointer(device).is_some());
            assert_eq!(buffer.is_current_on(device), device == env.device());
        }
        assert!(!last.is_complete());
        hold.open();
        last.wait().unwrap();
    }
}
