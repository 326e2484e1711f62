//! One buffer on several devices (H3, S-R3, S-R13), and what happens when a device fails.

use oxisycl::prelude::*;
use oxisycl::simulated::{Operation, SimulatedConfig, Simulator};

use crate::harness::{Env, queue_on, tests};
use crate::support::{
    code, counted, doubled, iota, negated, plus_one, read_on, touch, update, update_range, write_positions,
};

tests![
    a_buffer_serves_three_devices_in_turn,
    data_goes_back_and_forth_unharmed,
    several_copies_for_reading_exist_at_the_same_time,
    each_device_writes_its_own_part,
    neighbours_exchange_borders,
    a_kernel_gets_its_buffers_from_different_devices,
    devices_work_at_the_same_time,
    devices_of_different_platforms_share_a_buffer,
    a_slow_device_changes_no_result,
    ; once:
    peers_copy_directly,
    devices_without_peer_copies_go_over_the_host,
    a_detour_over_the_host_makes_the_host_current,
    a_detour_moves_only_what_is_outdated,
    a_peer_is_preferred_to_the_host,
    the_host_is_preferred_to_a_detour,
    a_failed_transfer_fails_the_command_and_keeps_the_source,
    a_failed_launch_leaves_the_other_devices_alone,
    a_failed_allocation_leaves_the_data_where_it_is,
];

fn queues(env: &Env) -> [Queue; 3] {
    [env.queue(), env.other_queue(), env.third_queue()]
}

fn a_buffer_serves_three_devices_in_turn(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(100), [10, 10]).unwrap();
    for (i, queue) in queues(env).iter().enumerate() {
        update(queue, &buffer, move |x| x * 2 + i as i32);
        buffer.host_access(ReadWrite).unwrap().for_each_mut(|_, x| *x += 1);
    }
    let expected: Vec<i32> = iota(100).iter().map(|x| (((x * 2 + 1) * 2 + 1 + 1) * 2 + 2) + 1).collect();
    assert_eq!(buffer.to_vec().unwrap(), expected);
    for queue in &queues(env) {
        assert_eq!(read_on(queue, &buffer), expected);
    }
}

fn data_goes_back_and_forth_unharmed(env: &Env) {
    let queues = queues(env);
    let buffer = Buffer::from_vec(iota(1000)).unwrap();
    for round in 0..60 {
        update(&queues[round % 3], &buffer, plus_one);
    }
    assert_eq!(buffer.to_vec().unwrap(), (60..1060).collect::<Vec<_>>());
}

fn several_copies_for_reading_exist_at_the_same_time(env: &Env) {
    let queues = queues(env);
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    write_positions(&queues[0], &buffer, 0);
    let (since, ()) = counted(|| {
        for _ in 0..5 {
            for queue in &queues {
                touch(queue, &buffer).wait().unwrap();
            }
        }
    });
    let hops = env.hops_in_turn(env.device(), [env.other_device(), env.third_device()]);
    assert_eq!(since.transfers(), hops.iter().sum::<u64>());
    assert!(env.devices().iter().all(|device| buffer.is_current_on(device)));
}

fn each_device_writes_its_own_part(env: &Env) {
    let buffer = BufferOptions::new().page_size([2, 6]).uninit::<i32>([6, 6]).unwrap();
    for (i, queue) in queues(env).iter().enumerate() {
        let kernel = queue.submit(|cg| {
            let data = cg.access_range(&buffer, Write.no_init(), [2 * i, 0], [2, 6]);
            cg.parallel_for([2, 6], move |item| data.set(item, (100 * i + item.linear_id()) as i32))
        });
        kernel.unwrap();
    }
    let expected: Vec<i32> = (0..36).map(|i| i / 12 * 100 + i % 12).collect();
    assert_eq!(buffer.to_vec().unwrap(), expected);
    assert_eq!(read_on(&env.other_queue(), &buffer), expected);
}

fn neighbours_exchange_borders(env: &Env) {
    // A one-dimensional average over three devices, each with a third of the line and its neighbours' last elements.
    const N: usize = 48;
    const STEPS: usize = 10;
    let queues = queues(env);
    let start: Vec<i32> = (0..N as i32).map(|i| (i * i * 37) % 1000).collect();
    let make = || BufferOptions::new().page_size(4).from_vec_nd(start.clone(), N).unwrap();
    let (mut from, mut to) = (make(), make());
    for _ in 0..STEPS {
        for (i, queue) in queues.iter().enumerate() {
            let (first, last) = (i * N / 3, (i + 1) * N / 3);
            let (halo_first, halo_last) = (first.saturating_sub(1), (last + 1).min(N));
            let kernel = queue.submit(|cg| {
                let old = cg.access_range(&from, Read, halo_first, halo_last - halo_first);
                let new = cg.access_range(&to, Write, first, last - first);
                cg.parallel_for(last - first, move |item| {
                    let at = item.index() + first - halo_first;
                    let old = old.view(item);
                    let get = |i: usize| old.get(i).copied().unwrap_or(0);
                    new.set(item, (get(at.wrapping_sub(1)) + get(at) + get(at + 1)) / 3);
                })
            });
            kernel.unwrap();
        }
        std::mem::swap(&mut from, &mut to);
    }
    let mut expected = start;
    for _ in 0..STEPS {
        let old = expected.clone();
        let get = |i: usize| old.get(i).copied().unwrap_or(0);
        expected = (0..N).map(|i| (get(i.wrapping_sub(1)) + get(i) + get(i + 1)) / 3).collect();
    }
    assert_eq!(from.to_vec().unwrap(), expected);
}

fn a_kernel_gets_its_buffers_from_different_devices(env: &Env) {
    let [first, second, third] = queues(env);
    let [a, b, c] = [(); 3].map(|()| Buffer::<i32, 1>::uninit(16).unwrap());
    write_positions(&first, &a, 0);
    write_positions(&second, &b, 100);
    let kernel = third.submit(|cg| {
        let (a, b, c) = (cg.access(&a, Read), cg.access(&b, Read), cg.access(&c, Write.no_init()));
        cg.parallel_for(16, move |item| c.set(item, a.get(item) * b.get(item)))
    });
    kernel.unwrap();
    assert_eq!(read_on(&first, &c), (0..16).map(|i| i * (100 + i)).collect::<Vec<_>>());
}

fn devices_work_at_the_same_time(env: &Env) {
    let meeting = std::sync::Arc::new(std::sync::Barrier::new(3));
    let events: Vec<Event> = queues(env)
        .iter()
        .map(|queue| {
            let buffer = Buffer::from_vec(iota(8)).unwrap();
            update(queue, &buffer, plus_one);
            let meeting = meeting.clone();
            let task = queue.submit(|cg| {
                let data = cg.access_host(&buffer, Read);
                cg.host_task(move |scope| {
                    assert_eq!(data.slice(scope)[7], 8);
                    meeting.wait();
                })
            });
            task.unwrap()
        })
        .collect();
    Event::wait_all(&events).unwrap();
}

fn devices_of_different_platforms_share_a_buffer(env: &Env) {
    let simulators = [1, 2].map(|n| Simulator::new(SimulatedConfig::new(n)).unwrap());
    let devices = [simulators[0].devices()[0].clone(), simulators[1].devices()[1].clone(), env.device().clone()];
    let buffer = BufferOptions::new().page_size(8).from_vec(iota(32)).unwrap();
    for round in 0..4 {
        for device in &devices {
            let queue = queue_on(device);
            update(&queue, &buffer, plus_one);
            update_range(&queue, &buffer, 8 * round, 8, doubled);
        }
    }
    let expected = (0..32).map(|i: i32| {
        (0..4).fold(i, |x, round| (0..3).fold(x, |x, _| if i / 8 == round { (x + 1) * 2 } else { x + 1 }))
    });
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<_>>());
}

/// Two simulated devices.
fn pair(config: SimulatedConfig) -> (Simulator, Queue, Queue) {
    let simulator = Simulator::new(config).unwrap();
    let queues = simulator.devices().iter().map(queue_on).collect::<Vec<_>>();
    let [first, second] = <[Queue; 2]>::try_from(queues).unwrap();
    (simulator, first, second)
}

fn peers_copy_directly() {
    let (_simulator, first, second) = pair(SimulatedConfig::new(2));
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    write_positions(&first, &buffer, 0).wait().unwrap();
    let (since, ()) = counted(|| touch(&second, &buffer).wait().unwrap());
    assert_eq!((since.transfers_between_devices, since.bytes_between_devices), (1, 400));
    assert_eq!((since.transfers(), since.buffer_allocations), (1, 1));
    assert_eq!(read_on(&second, &buffer), iota(100));
}

fn devices_without_peer_copies_go_over_the_host() {
    let (_simulator, first, second) = pair(SimulatedConfig::new(2).peer_copies(false));
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    write_positions(&first, &buffer, 0).wait().unwrap();
    let (since, ()) = counted(|| touch(&second, &buffer).wait().unwrap());
    assert_eq!((since.transfers_between_devices, since.transfers_to_host, since.transfers_to_device), (0, 1, 1));
    assert_eq!((since.bytes_to_host, since.bytes_to_device), (400, 400));
    assert_eq!(read_on(&second, &buffer), iota(100));
    for round in 0..10 {
        update(if round % 2 == 0 { &first } else { &second }, &buffer, plus_one);
    }
    assert_eq!(buffer.to_vec().unwrap(), (10..110).collect::<Vec<_>>());
}

fn a_detour_over_the_host_makes_the_host_current() {
    let (_simulator, first, second) = pair(SimulatedConfig::new(2).peer_copies(false));
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    write_positions(&first, &buffer, 0);
    touch(&second, &buffer).wait().unwrap();
    let (since, data) = counted(|| buffer.to_vec().unwrap());
    assert_eq!((since.transfers(), data), (0, iota(100)));
}

fn a_detour_moves_only_what_is_outdated() {
    let (_simulator, first, second) = pair(SimulatedConfig::new(2).peer_copies(false));
    let buffer = BufferOptions::new().page_size(10).uninit::<i32>(100).unwrap();
    write_positions(&first, &buffer, 0);
    touch(&second, &buffer);
    update_range(&first, &buffer, 30, 20, negated).wait().unwrap();
    let (since, ()) = counted(|| touch(&second, &buffer).wait().unwrap());
    assert_eq!((since.bytes_to_host, since.bytes_to_device, since.transfers()), (80, 80, 2));
    let expected = (0..100).map(|i| if (30..50).contains(&i) { -i } else { i }).collect::<Vec<_>>();
    assert_eq!(read_on(&second, &buffer), expected);
}

fn a_peer_is_preferred_to_the_host() {
    let (_simulator, first, second) = pair(SimulatedConfig::new(2));
    let buffer = Buffer::from_vec(iota(100)).unwrap();
    touch(&first, &buffer).wait().unwrap();
    let (since, ()) = counted(|| touch(&second, &buffer).wait().unwrap());
    assert_eq!((since.transfers_between_devices, since.transfers_to_device), (1, 0));
}

fn the_host_is_preferred_to_a_detour() {
    let (_simulator, first, second) = pair(SimulatedConfig::new(2).peer_copies(false));
    let buffer = Buffer::from_vec(iota(100)).unwrap();
    touch(&first, &buffer).wait().unwrap();
    let (since, ()) = counted(|| touch(&second, &buffer).wait().unwrap());
    assert_eq!((since.transfers_to_host, since.transfers_to_device), (0, 1));
}

fn a_failed_transfer_fails_the_command_and_keeps_the_source() {
    let (simulator, first, second) = pair(SimulatedConfig::new(2));
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    write_positions(&first, &buffer, 0).wait().unwrap();
    simulator.control().fail_next(1, Operation::Copy, 1);
    let failed = update(&second, &buffer, plus_one);
    let error = failed.wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Runtime);
    assert!(format!("{error:?}").contains("injected fault"), "{error:?}");
    // The command did not run, so what it was to write is as it was, and only where it was.
    assert!(buffer.is_current_on(first.device()) && !buffer.is_current_on(second.device()));
    assert_eq!(buffer.to_vec().unwrap(), iota(100));
    let (since, ()) = counted(|| update(&second, &buffer, plus_one).wait().unwrap());
    assert_eq!(since.transfers(), 1);
    assert_eq!(buffer.to_vec().unwrap(), (1..101).collect::<Vec<_>>());
    write_positions(&first, &buffer, 5).wait().unwrap();
    simulator.control().fail_next(1, Operation::Copy, 1);
    assert_eq!(code(touch(&second, &buffer).wait()), ErrorCode::Runtime);
    let (since, ()) = counted(|| touch(&second, &buffer).wait().unwrap());
    assert_eq!(since.transfers(), 1);
    assert_eq!(read_on(&second, &buffer), (5..105).collect::<Vec<_>>());
}

fn a_failed_launch_leaves_the_other_devices_alone() {
    let (simulator, first, second) = pair(SimulatedConfig::new(2));
    let [a, b] = [(); 2].map(|()| Buffer::from_vec(iota(100)).unwrap());
    simulator.control().fail_next(0, Operation::Launch, 1);
    let failed = update(&first, &a, plus_one);
    let fine = update(&second, &b, plus_one);
    assert_eq!(code(failed.wait()), ErrorCode::Runtime);
    fine.wait().unwrap();
    update(&first, &b, plus_one);
    assert_eq!(b.to_vec().unwrap(), (2..102).collect::<Vec<_>>());
    assert!(a.to_vec().is_err());
    write_positions(&second, &a, 0);
    assert_eq!(read_on(&first, &a), iota(100));
}

fn a_failed_allocation_leaves_the_data_where_it_is() {
    let (simulator, first, second) = pair(SimulatedConfig::new(2));
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    write_positions(&first, &buffer, 0);
    simulator.control().fail_next(1, Operation::Allocate, 1);
    let result = second.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(100, move |item| data.update(item, |x| x + 1))
    });
    assert_eq!(code(result), ErrorCode::MemoryAllocation);
    assert_eq!(read_on(&first, &buffer), iota(100));
    update(&second, &buffer, plus_one);
    assert_eq!(buffer.to_vec().unwrap(), (1..101).collect::<Vec<_>>());
}

fn a_slow_device_changes_no_result(env: &Env) {
    let simulator = Simulator::new(SimulatedConfig::new(1).latency(std::time::Duration::from_micros(500))).unwrap();
    let (slow, fast) = (queue_on(&simulator.devices()[0]), env.queue());
    let buffer = Buffer::from_vec(iota(16)).unwrap();
    let mut expected = iota(16);
    for i in 0..20 {
        update(&slow, &buffer, move |x| x.wrapping_mul(3) + i);
        update(&fast, &buffer, |x| x ^ 1);
        fast.update_host(&buffer).unwrap();
        expected.iter_mut().for_each(|x| *x = (x.wrapping_mul(3) + i) ^ 1);
    }
    assert_eq!(buffer.to_vec().unwrap(), expected);
}
