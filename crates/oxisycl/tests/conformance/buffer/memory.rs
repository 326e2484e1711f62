//! Deciding where a buffer has memory: reserving, releasing, limits (S-R5, S-R6).

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};

use crate::harness::{Env, queue_on, tests};
use crate::support::{code, counted, iota, plus_one, read_on, touch, update, write_positions};

tests![
    reserve_allocates_at_once_and_moves_nothing,
    reserve_twice_allocates_once,
    release_frees_the_memory_of_one_device,
    release_without_an_allocation_does_nothing,
    release_of_the_only_copy_is_refused,
    release_of_the_only_copy_of_one_page_is_refused,
    release_waits_for_the_commands,
    release_is_refused_inside_a_command_group_that_uses_the_buffer,
    release_is_refused_while_a_host_accessor_exists,
    release_gives_up_memory_that_the_buffer_was_made_from,
    a_released_buffer_is_allocated_again_at_its_next_use,
    memory_is_freed_when_the_buffer_and_its_commands_are_gone,
    exhausted_memory_is_an_error_before_anything_is_enqueued,
    exhausted_memory_is_told_even_if_the_closure_ignores_it,
    is_current_on_follows_the_data,
    ; once:
    exhausted_memory_takes_nothing_from_other_buffers,
    a_buffer_lives_in_at_most_32_memories,
];

fn reserve_allocates_at_once_and_moves_nothing(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    for device in env.devices() {
        assert!(!buffer.is_allocated_on(device) && buffer.usm_pointer(device).is_none());
        let (since, ()) = counted(|| buffer.reserve(device).unwrap());
        assert_eq!((since.buffer_allocations, since.buffer_allocated_bytes, since.transfers()), (1, 400, 0));
        assert!(buffer.is_allocated_on(device));
    }
    let (since, pointer) = counted(|| {
        let pointer = buffer.usm_pointer(env.device());
        write_positions(&env.queue(), &buffer, 0).wait().unwrap();
        pointer
    });
    assert_eq!(since.buffer_allocations, 0);
    assert_eq!(buffer.usm_pointer(env.device()), pointer);
}

fn reserve_twice_allocates_once(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    let (since, ()) = counted(|| {
        buffer.reserve(env.device()).unwrap();
        buffer.reserve(env.device()).unwrap();
    });
    assert_eq!(since.buffer_allocations, 1);
}

fn release_frees_the_memory_of_one_device(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    touch(&env.other_queue(), &buffer).wait().unwrap();
    let kept = buffer.usm_pointer(env.other_device());
    let (since, ()) = counted(|| buffer.release(env.device()).unwrap());
    assert_eq!(since.buffer_frees, 1);
    assert!(!buffer.is_allocated_on(env.device()));
    assert_eq!(buffer.usm_pointer(env.other_device()), kept);
    if let Some(control) = env.control() {
        assert_eq!(control.live_allocations(0), 0);
    }
    assert_eq!(buffer.to_vec().unwrap(), iota(100));
}

fn release_without_an_allocation_does_nothing(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let (since, ()) = counted(|| {
        buffer.release(env.device_apart()).unwrap();
        buffer.release(env.third_device()).unwrap();
    });
    assert_eq!(since.buffer_frees, 0);
    assert_eq!(buffer.to_vec().unwrap(), iota(4));
}

fn release_of_the_only_copy_is_refused(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    write_positions(&env.queue(), &buffer, 1);
    assert_eq!(code(buffer.release(env.device())), ErrorCode::Invalid);
    assert_eq!(read_on(&env.queue(), &buffer), [1, 2, 3, 4]);
    touch(&env.other_queue(), &buffer);
    buffer.release(env.device()).unwrap();
    if env.hops(env.device(), env.other_device()) > 1 {
        // The detour has left a copy on the host. A write makes it outdated.
        update(&env.other_queue(), &buffer, |x| x);
    }
    assert_eq!(code(buffer.release(env.other_device())), ErrorCode::Invalid);
}

fn release_of_the_only_copy_of_one_page_is_refused(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(16).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    touch(&env.other_queue(), &buffer);
    crate::support::update_range(&env.queue(), &buffer, 9, 1, |_| -9);
    assert_eq!(code(buffer.release(env.device())), ErrorCode::Invalid);
    let mut expected = iota(16);
    expected[9] = -9;
    assert_eq!(read_on(&env.other_queue(), &buffer), expected);
    buffer.release(env.device()).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn release_waits_for_the_commands(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    write_positions(&env.third_queue(), &buffer, 0);
    let gate = crate::support::Gate::new(&queue, |cg| {
        cg.access(&buffer, Read);
    });
    let reader = touch(&queue, &buffer);
    gate.open_later();
    buffer.release(env.device()).unwrap();
    assert!(reader.is_complete());
    assert!(!buffer.is_allocated_on(env.device()));
}

fn release_is_refused_inside_a_command_group_that_uses_the_buffer(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Write);
        assert_eq!(code(buffer.release(env.device())), ErrorCode::Invalid);
        cg.parallel_for(4, move |item| data.set(item, 3))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [3; 4]);
}

fn release_is_refused_while_a_host_accessor_exists(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    let host = buffer.host_access(Read).unwrap();
    assert_eq!(code(buffer.release(env.device())), ErrorCode::Invalid);
    assert_eq!(host[3], 3);
}

fn release_gives_up_memory_that_the_buffer_was_made_from(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_device::<i32>(4).unwrap();
    let buffer = BufferOptions::new().from_usm_nd(slice, 4).unwrap();
    write_positions(&queue, &buffer, 0);
    assert_eq!(code(buffer.release(env.device())), ErrorCode::Invalid);
    touch(&env.other_queue(), &buffer).wait().unwrap();
    buffer.release(env.device()).unwrap();
    assert!(!buffer.is_allocated_on(env.device()));
    assert_eq!(read_on(&queue, &buffer), iota(4));
    assert_eq!(code(buffer.into_usm()), ErrorCode::Invalid);

    // Memory of somebody else is left as it is.
    let raw = queue.malloc_device::<i32>(4).unwrap();
    // SAFETY: the allocation outlives the buffer and its commands, and nobody else uses it.
    let buffer = unsafe { BufferOptions::new().from_usm_pointer(raw.as_ptr(), 4, env.device(), false) }.unwrap();
    write_positions(&queue, &buffer, 0);
    touch(&env.other_queue(), &buffer).wait().unwrap();
    let (since, ()) = counted(|| buffer.release(env.device()).unwrap());
    assert_eq!((since.usm_frees, since.buffer_frees), (0, 0));
    update(&queue, &buffer, plus_one).wait().unwrap();
    assert_ne!(buffer.usm_pointer(env.device()), Some(raw.as_ptr()));
    assert_eq!(raw.to_vec(&queue).unwrap(), iota(4));

    // A vector is gone, and `into_vec` makes a new one.
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    update(&env.other_queue(), &buffer, plus_one);
    if env.is_host() {
        buffer.release(env.device()).unwrap();
        assert!(!buffer.is_allocated_on(env.device()));
    }
    assert_eq!(buffer.into_vec().unwrap(), [1, 2, 3, 4]);
}

fn a_released_buffer_is_allocated_again_at_its_next_use(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    touch(&env.other_queue(), &buffer);
    buffer.release(env.device()).unwrap();
    let (since, ()) = counted(|| update(&env.queue(), &buffer, plus_one).wait().unwrap());
    assert_eq!((since.buffer_allocations, since.transfers(), since.transferred_bytes()), (1, 1, 16));
    assert_eq!(buffer.to_vec().unwrap(), [1, 2, 3, 4]);
}

fn memory_is_freed_when_the_buffer_and_its_commands_are_gone(env: &Env) {
    let queue = env.queue();
    let before = oxisycl::observe::counters();
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    let gate = crate::support::Gate::writing(&queue, &buffer);
    let last = write_positions(&queue, &buffer, 0);
    drop(buffer);
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!((oxisycl::observe::counters() - before).buffer_frees, 0);
    gate.open();
    last.wait().unwrap();
    // Whoever sees the last command complete sees its memory freed.
    assert_eq!((oxisycl::observe::counters() - before).buffer_frees, 1);
}

fn exhausted_memory_is_an_error_before_anything_is_enqueued(env: &Env) {
    let queue = env.queue();
    let huge = Buffer::<u8, 1>::uninit(1 << 55).unwrap();
    let (since, result) = counted(|| {
        queue.submit(|cg| {
            let data = cg.access_range(&huge, Write, 0, 1);
            cg.parallel_for(1, move |item| data.set(item, 1))
        })
    });
    assert_eq!(code(result), ErrorCode::MemoryAllocation);
    assert_eq!((since.kernels, since.nodes), (0, 0));
    assert_eq!(code(huge.reserve(env.device())), ErrorCode::MemoryAllocation);
    assert_eq!(code(huge.host_access(Write)), ErrorCode::MemoryAllocation);
    assert!(!huge.is_allocated_on(env.device()));
    queue.wait().unwrap();
}

fn exhausted_memory_is_told_even_if_the_closure_ignores_it(env: &Env) {
    let huge = Buffer::<u8, 1>::uninit(1 << 55).unwrap();
    let small = Buffer::from_vec(iota(4)).unwrap();
    let result = env.queue().submit(|cg| {
        cg.access(&huge, Write);
        let data = cg.access(&small, ReadWrite);
        let _ = cg.parallel_for(4, move |item| data.set(item, 9));
        Ok(())
    });
    assert_eq!(code(result), ErrorCode::MemoryAllocation);
    assert_eq!(small.to_vec().unwrap(), iota(4));
}

fn exhausted_memory_takes_nothing_from_other_buffers() {
    let simulator = Simulator::new(SimulatedConfig::new(1).memory(10_000)).unwrap();
    let queue = queue_on(&simulator.devices()[0]);
    let device = queue.device();
    let buffers: Vec<Buffer<i32, 1>> = (0..2).map(|_| Buffer::uninit(1000).unwrap()).collect();
    for buffer in &buffers {
        write_positions(&queue, buffer, 0);
    }
    let pointers: Vec<_> = buffers.iter().map(|buffer| buffer.usm_pointer(device)).collect();
    let third = Buffer::<i32, 1>::uninit(1000).unwrap();
    for _ in 0..3 {
        let result = queue.submit(|cg| {
            cg.access(&third, Write);
            cg.single_task(|_| {})
        });
        assert_eq!(code(result), ErrorCode::MemoryAllocation);
    }
    assert_eq!(buffers.iter().map(|buffer| buffer.usm_pointer(device)).collect::<Vec<_>>(), pointers);
    for buffer in &buffers {
        update(&queue, buffer, plus_one);
        assert_eq!(buffer.to_vec().unwrap()[999], 1000);
    }
    // What the user asks for makes room.
    buffers[0].release(device).unwrap();
    write_positions(&queue, &third, 0).wait().unwrap();
}

fn a_buffer_lives_in_at_most_32_memories() {
    let simulator = Simulator::new(SimulatedConfig::new(33)).unwrap();
    let devices = simulator.devices();
    let buffer = Buffer::<u8, 1>::uninit(1).unwrap();
    for device in &devices[..32] {
        buffer.reserve(device).unwrap();
    }
    let (since, result) = counted(|| buffer.reserve(&devices[32]));
    assert_eq!(code(result), ErrorCode::MemoryAllocation);
    assert_eq!(since.buffer_allocations - since.buffer_frees, 0);
    buffer.release(&devices[3]).unwrap();
    buffer.reserve(&devices[32]).unwrap();
    assert!(buffer.is_allocated_on(&devices[32]) && !buffer.is_allocated_on(&devices[3]));
}

fn is_current_on_follows_the_data(env: &Env) {
    let [device, other, third] = env.devices() else { unreachable!() };
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    assert!(!buffer.is_current_on(device));
    write_positions(&env.queue(), &buffer, 0);
    let current = || [device, other, third].map(|device| buffer.is_current_on(device));
    assert_eq!(current(), [true, false, false]);
    touch(&env.other_queue(), &buffer);
    assert_eq!(current(), [true, true, false]);
    update(&env.third_queue(), &buffer, plus_one);
    assert_eq!(current(), [false, false, true]);
    update(&env.queue(), &buffer, plus_one);
    assert_eq!(current(), [true, false, false]);
}
