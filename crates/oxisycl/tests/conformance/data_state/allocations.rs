//! Allocations: lazy, of the full size, persistent, one per memory (S-R4 to S-R7, S-R13 to S-R16).

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};

use crate::harness::{Env, queue_on, tests};
use crate::support::{
    code, counted, doubled, iota, negated, plus_one, read_on, touch, touch_range, update, update_range, write_positions,
};

tests![
    construction_allocates_nothing,
    the_first_use_allocates_on_that_device_only,
    every_way_to_use_a_device_allocates_there_once,
    an_allocation_has_the_full_size_for_one_element,
    an_allocation_has_the_full_size_for_an_empty_range,
    the_host_allocation_is_lazy_and_full_as_well,
    the_address_never_changes,
    allocations_are_freed_only_with_the_buffer,
    kernels_copies_fills_and_host_tasks_use_one_allocation,
    different_devices_have_different_allocations,
    a_write_is_not_seen_elsewhere_before_a_transfer,
    parts_of_one_device_share_its_allocation,
    a_copying_constructor_does_not_look_at_the_source_again,
    all_queues_of_a_device_share_the_allocation,
    ; once:
    memory_pressure_neither_moves_nor_frees_an_allocation,
];

fn construction_allocates_nothing(env: &Env) {
    let (since, buffers) = counted(|| {
        let borrowed = &mut [0; 4];
        drop(Buffer::from_slice_mut_nd(borrowed, 4).unwrap());
        (
            Buffer::<i32, 1>::uninit(1000).unwrap(),
            Buffer::from_vec(iota(10)).unwrap(),
            Buffer::from_slice(&iota(10)).unwrap(),
            BufferOptions::new().page_size([2, 2]).uninit::<f64>([50, 50]).unwrap(),
        )
    });
    assert_eq!((since.buffer_allocations, since.transfers(), since.nodes_completed - since.nodes), (0, 0, 0));
    for device in env.devices() {
        assert!(!buffers.0.is_allocated_on(device) && !buffers.3.is_allocated_on(device));
        assert_eq!(buffers.1.is_allocated_on(device), device.backend() == oxisycl::BackendKind::Host);
    }
    if let Some(control) = env.control() {
        assert_eq!((0..3).map(|device| control.live_allocations(device)).sum::<usize>(), 0);
    }
}

/// The allocations that are made if the three devices write data one after the other. Each device makes its own, and the first detour makes
/// one on the host.
fn allocations_in_turn(env: &Env) -> [u64; 3] {
    let [first, second, third] = env.devices() else { unreachable!() };
    let detours = [env.hops(first, second) > 1, env.hops(second, third) > 1];
    [1, 1 + u64::from(detours[0]), 1 + u64::from(detours[1] && !detours[0])]
}

fn the_first_use_allocates_on_that_device_only(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    let expected = allocations_in_turn(env);
    for (i, device) in env.devices().iter().enumerate() {
        let queue = queue_on(device);
        let (since, ()) = counted(|| {
            update(&queue, &buffer, plus_one).wait().unwrap();
        });
        assert_eq!((since.buffer_allocations, since.buffer_allocated_bytes), (expected[i], 400 * expected[i]));
        for (j, other) in env.devices().iter().enumerate() {
            assert_eq!(buffer.is_allocated_on(other), j <= i);
        }
        if let Some(control) = env.control() {
            let bytes = [0, 1, 2].map(|device| control.allocated_bytes(device));
            assert_eq!(bytes, [0, 1, 2].map(|device| if device <= i { 400 } else { 0 }));
        }
    }
}

fn every_way_to_use_a_device_allocates_there_once(env: &Env) {
    let queue = env.queue();
    type Use = fn(&Queue, &Buffer<i32, 1>);
    let uses: [(&str, Use); 6] = [
        ("kernel", |queue, buffer| drop(touch(queue, buffer))),
        ("fill", |queue, buffer| drop(queue.fill(buffer, 1).unwrap())),
        ("copy from the host", |queue, buffer| drop(queue.copy_from_host(iota(8), buffer).unwrap())),
        ("copy to the host", |queue, buffer| drop(queue.copy_to_host(buffer, iota(8)).unwrap())),
        ("reserve", |queue, buffer| buffer.reserve(queue.device()).unwrap()),
        ("host task with a device accessor", |queue, buffer| {
            let task = queue.submit(|cg| {
                cg.access(buffer, Read);
                cg.host_task(|_| {})
            });
            task.unwrap();
        }),
    ];
    for (name, use_it) in uses {
        let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
        let (since, ()) = counted(|| {
            use_it(&queue, &buffer);
            use_it(&queue, &buffer);
            queue.wait().unwrap();
        });
        assert_eq!((since.buffer_allocations, since.buffer_frees), (1, 0), "{name}");
        assert!(buffer.is_allocated_on(env.device()) && !buffer.is_allocated_on(env.third_device()), "{name}");
    }
}

fn an_allocation_has_the_full_size_for_one_element(env: &Env) {
    let buffer = BufferOptions::new().page_size([1, 1, 1]).uninit::<i32>([10, 10, 10]).unwrap();
    for (device, expected) in env.devices().iter().zip(allocations_in_turn(env)) {
        let (since, ()) = counted(|| {
            update_range(&queue_on(device), &buffer, [9, 9, 9], [1, 1, 1], |_| 1).wait().unwrap();
        });
        assert_eq!((since.buffer_allocations, since.buffer_allocated_bytes), (expected, 4000 * expected));
    }
    let (since, ()) = counted(|| {
        for device in env.devices() {
            update(&queue_on(device), &buffer, |x| x).wait().unwrap();
        }
    });
    assert_eq!(since.buffer_allocations, 0);
}

fn an_allocation_has_the_full_size_for_an_empty_range(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(50).unwrap();
    let (since, ()) = counted(|| touch_range(&env.queue(), &buffer, 50, 0).wait().unwrap());
    assert_eq!(since.buffer_allocated_bytes, 200);
}

fn the_host_allocation_is_lazy_and_full_as_well(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(50).unwrap();
    write_positions(&env.queue_apart(), &buffer, 0).wait().unwrap();
    let (since, last) = counted(|| buffer.host_access_range(Read, 49, 1).unwrap()[0]);
    assert_eq!((since.buffer_allocations, since.buffer_allocated_bytes, last), (1, 200, 49));
    let (since, ()) = counted(|| drop(buffer.host_access(ReadWrite).unwrap()));
    assert_eq!(since.buffer_allocations, 0);
}

fn the_address_never_changes(env: &Env) {
    let queues: Vec<Queue> = env.devices().iter().map(queue_on).collect();
    let buffer = BufferOptions::new().page_size(10).from_vec(iota(100)).unwrap();
    let address_on = |queue: &Queue| {
        let seen = Buffer::<u64, 1>::uninit(1).unwrap();
        let kernel = queue.submit(|cg| {
            let (data, seen) = (cg.access(&buffer, ReadWrite), cg.access(&seen, Write));
            cg.single_task(move |task| seen.set_at(task, 0, data.as_ptr() as u64))
        });
        kernel.unwrap();
        seen.to_vec().unwrap()[0]
    };
    let addresses: Vec<u64> = queues.iter().map(address_on).collect();
    for round in 0..5 {
        for queue in queues.iter().rev() {
            update_range(queue, &buffer, 10 * round, 15, plus_one);
            queue.fill(&buffer.clone(), round as i32).unwrap();
            queue.update_host(&buffer).unwrap();
            buffer.host_access(ReadWrite).unwrap()[round] = 7;
            drop(Buffer::<i32, 1>::uninit(1000).map(|other| update(queue, &other, |x| x)));
        }
        assert_eq!(queues.iter().map(address_on).collect::<Vec<_>>(), addresses);
        for (queue, &address) in queues.iter().zip(&addresses) {
            assert_eq!(buffer.usm_pointer(queue.device()).unwrap() as u64, address);
        }
    }
}

fn memory_pressure_neither_moves_nor_frees_an_allocation() {
    let simulator = Simulator::new(SimulatedConfig::new(2).memory(8192)).unwrap();
    let [device, other] = &simulator.devices()[..] else { unreachable!() };
    let queue = queue_on(device);
    let old = Buffer::<i32, 1>::uninit(1024).unwrap();
    write_positions(&queue, &old, 0);
    // The old buffer is also current elsewhere, so that freeing it would lose nothing.
    touch(&queue_on(other), &old).wait().unwrap();
    let address = old.usm_pointer(device);
    let mut failures = 0;
    for _ in 0..10 {
        let new = Buffer::<i32, 1>::uninit(1025).unwrap();
        let result = queue.submit(|cg| {
            cg.access(&new, Write);
            cg.single_task(|_| {})
        });
        failures += i32::from(code(result) == ErrorCode::MemoryAllocation);
    }
    assert_eq!(failures, 10);
    let (since, ()) = counted(|| update(&queue, &old, plus_one).wait().unwrap());
    assert_eq!((since.buffer_allocations, since.transfers()), (0, 0));
    assert_eq!(old.usm_pointer(device), address);
    assert_eq!(old.to_vec().unwrap()[1023], 1024);
}

fn allocations_are_freed_only_with_the_buffer(env: &Env) {
    let (since, ()) = counted(|| {
        let buffer = Buffer::from_vec(iota(100)).unwrap();
        let (since, ()) = counted(|| {
            for _ in 0..10 {
                for device in env.devices() {
                    update(&queue_on(device), &buffer, plus_one);
                }
                drop(buffer.host_access(ReadWrite).unwrap());
            }
        });
        assert_eq!(since.buffer_frees, 0);
        drop(buffer);
    });
    assert_eq!(since.buffer_frees, since.buffer_allocations);
    assert_eq!(since.buffer_allocations, if env.is_host() { 2 } else { 3 });
}

fn kernels_copies_fills_and_host_tasks_use_one_allocation(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    write_positions(&queue, &buffer, 0).wait().unwrap();
    let address = buffer.usm_pointer(env.device()).unwrap();
    let raw = |queue: &Queue| {
        queue.wait().unwrap();
        let mut seen = vec![0; 8];
        // SAFETY: both places are valid for 32 bytes, and all commands on the buffer have ended.
        unsafe { queue.memcpy(seen.as_mut_ptr().cast(), address.cast_const().cast(), 32) }.unwrap().wait().unwrap();
        seen
    };
    let (since, ()) = counted(|| {
        assert_eq!(raw(&queue), iota(8));
        update(&queue, &buffer, plus_one);
        assert_eq!(raw(&queue)[7], 8);
        queue.fill(&buffer, 5).unwrap();
        assert_eq!(raw(&queue), [5; 8]);
        queue.copy_from_host(iota(8), &buffer).unwrap().wait().unwrap();
        assert_eq!(raw(&queue), iota(8));
        let (to, native) = std::sync::mpsc::channel();
        let task = queue.submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.host_task(move |scope| to.send(scope.interop().native_memory(data).unwrap() as usize).unwrap())
        });
        task.unwrap();
        assert_eq!(native.recv().unwrap(), address as usize);
        queue.wait().unwrap();
    });
    assert_eq!((since.buffer_allocations, since.buffer_frees), (0, 0));
}

fn different_devices_have_different_allocations(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    let addresses: Vec<usize> = env
        .devices()
        .iter()
        .map(|device| {
            buffer.reserve(device).unwrap();
            buffer.usm_pointer(device).unwrap() as usize
        })
        .collect();
    for (i, &a) in addresses.iter().enumerate() {
        for &b in &addresses[..i] {
            assert!(a.abs_diff(b) >= 400, "two devices share an allocation");
        }
    }
    assert!(!env.device().shares_memory_with(env.other_device()));
}

fn a_write_is_not_seen_elsewhere_before_a_transfer(env: &Env) {
    let (queue, other) = (env.queue(), env.other_queue());
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    write_positions(&queue, &buffer, 0);
    touch(&other, &buffer);
    update(&queue, &buffer, |x| x + 100).wait().unwrap();
    other.wait().unwrap();
    let mut seen = vec![0; 8];
    let theirs = buffer.usm_pointer(env.other_device()).unwrap();
    // SAFETY: both places are valid for 32 bytes, and all commands on the buffer have ended.
    unsafe { other.memcpy(seen.as_mut_ptr().cast(), theirs.cast_const().cast(), 32) }.unwrap().wait().unwrap();
    assert_eq!(seen, iota(8));
    assert_eq!(read_on(&other, &buffer), (100..108).collect::<Vec<_>>());
}

fn parts_of_one_device_share_its_allocation(env: &Env) {
    let parts = match env.device().partition_equally(1) {
        Ok(parts) => parts,
        Err(error) if error.code() == ErrorCode::FeatureNotSupported => env.skip("the device cannot be split"),
        Err(error) => panic!("{error:?}"),
    };
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    write_positions(&env.queue(), &buffer, 0).wait().unwrap();
    let address = buffer.usm_pointer(env.device());
    let (since, ()) = counted(|| {
        for part in &parts {
            assert!(part.shares_memory_with(env.device()));
            update(&queue_on(part), &buffer, plus_one).wait().unwrap();
            assert_eq!(buffer.usm_pointer(part), address);
        }
    });
    assert_eq!((since.buffer_allocations, since.transfers()), (0, 0));
    assert_eq!(buffer.to_vec().unwrap()[0], parts.len() as i32);
}

fn a_copying_constructor_does_not_look_at_the_source_again(env: &Env) {
    let mut source = iota(8);
    let buffer = Buffer::from_slice_nd(&source, 8).unwrap();
    source.fill(-1);
    drop(source);
    assert_eq!(read_on(&env.other_queue(), &buffer), iota(8));
    assert_eq!(read_on(&env.queue(), &buffer), iota(8));
    assert_eq!(buffer.to_vec().unwrap(), iota(8));
}

fn all_queues_of_a_device_share_the_allocation(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(8).unwrap();
    let (since, ()) = counted(|| {
        write_positions(&env.queue(), &buffer, 0);
        update(&env.queue(), &buffer, plus_one);
        update(&env.in_order_queue(), &buffer, doubled);
        let context = Context::new(std::slice::from_ref(env.device())).unwrap();
        let queue = Queue::builder().device(env.device()).context(&context).build().unwrap();
        update(&queue, &buffer, negated).wait().unwrap();
    });
    assert_eq!((since.buffer_allocations, since.transfers()), (1, 0));
    assert_eq!(buffer.to_vec().unwrap(), iota(8).iter().map(|x| -2 * (x + 1)).collect::<Vec<_>>());
}
