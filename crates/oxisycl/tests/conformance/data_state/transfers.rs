//! Transfers: which commands cause them, from where, and how often (S-R19, S-R24, S-R25, S-R27 to S-R29).

use oxisycl::prelude::*;
use oxisycl::{ModeFor, Result};

use crate::harness::{Env, tests};
use crate::support::{counted, doubled, iota, plus_one, read_on, touch, touch_range, update, write_positions};

tests![
    data_is_moved_once_for_any_number_of_readers,
    a_read_keeps_the_source_current,
    a_write_outdates_every_other_allocation,
    a_write_accessor_outdates_although_the_kernel_writes_nothing,
    a_no_init_accessor_outdates_although_the_kernel_writes_nothing,
    write_without_no_init_brings_the_old_data,
    no_init_never_causes_a_transfer,
    no_init_on_a_part_of_a_page_causes_no_transfer,
    no_init_keeps_what_lies_outside_its_range,
    no_init_keeps_what_lies_outside_its_range_in_two_dimensions,
    uninitialised_data_is_never_moved,
    uninitialised_pages_are_never_moved,
    commands_on_the_device_that_has_the_data_move_nothing,
    the_first_use_of_owned_data_moves_it_once,
    update_host_moves_what_the_host_lacks,
    host_accessors_move_what_the_host_lacks,
    a_host_write_outdates_the_device,
    a_host_read_outdates_nothing,
    a_fill_of_the_whole_range_still_keeps_the_rest_of_its_page,
    no_transfer_happens_without_a_use,
];

/// Submits a kernel with that accessor which does nothing.
fn idle<M: ModeFor<i32>>(queue: &Queue, buffer: &Buffer<i32, 1>, mode: M) -> Result {
    let kernel = queue.submit(|cg| {
        cg.access(buffer, mode);
        cg.single_task(|_| {})
    })?;
    kernel.wait()
}

fn data_is_moved_once_for_any_number_of_readers(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 64 * hops));
    let (since, ()) = counted(|| {
        for _ in 0..5 {
            touch(&env.queue(), &buffer);
            touch_range(&env.queue(), &buffer, 3, 2);
        }
        touch(&env.queue(), &buffer).wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
}

fn a_read_keeps_the_source_current(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    touch(&env.queue(), &buffer);
    let (since, ()) = counted(|| {
        touch(&env.other_queue(), &buffer).wait().unwrap();
        touch(&env.queue(), &buffer).wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
    assert!(buffer.is_current_on(env.device()) && buffer.is_current_on(env.other_device()));
}

fn a_write_outdates_every_other_allocation(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    touch(&env.other_queue(), &buffer);
    touch(&env.third_queue(), &buffer);
    update(&env.other_queue(), &buffer, plus_one).wait().unwrap();
    assert_eq!(
        [env.device(), env.other_device(), env.third_device()].map(|device| buffer.is_current_on(device)),
        [false, true, false]
    );
    let [to_device, to_third] = env.hops_in_turn(env.other_device(), [env.device(), env.third_device()]);
    for (queue, expected) in [(env.other_queue(), 0), (env.queue(), to_device), (env.third_queue(), to_third)] {
        let (since, ()) = counted(|| touch(&queue, &buffer).wait().unwrap());
        assert_eq!(since.transfers(), expected);
    }
    assert_eq!(read_on(&env.third_queue(), &buffer), (1..17).collect::<Vec<_>>());
}

fn a_write_accessor_outdates_although_the_kernel_writes_nothing(env: &Env) {
    for round in 0..3 {
        let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
        write_positions(&env.queue(), &buffer, 0);
        touch(&env.other_queue(), &buffer);
        let (queue, other) = (env.queue(), env.other_queue());
        match round {
            0 => idle(&other, &buffer, Write).unwrap(),
            1 => idle(&other, &buffer, ReadWrite).unwrap(),
            _ => idle(&other, &buffer, Atomic).unwrap(),
        }
        let (since, ()) = counted(|| touch(&queue, &buffer).wait().unwrap());
        let hops = env.hops(env.other_device(), env.device());
        assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 64 * hops));
        assert_eq!(read_on(&queue, &buffer), iota(16));
    }
}

fn a_no_init_accessor_outdates_although_the_kernel_writes_nothing(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    touch(&env.other_queue(), &buffer);
    idle(&env.other_queue(), &buffer, Write.no_init()).unwrap();
    assert!(!buffer.is_current_on(env.device()));
    let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 64 * hops));
}

fn write_without_no_init_brings_the_old_data(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    let (since, ()) = counted(|| idle(&env.queue(), &buffer, Write).unwrap());
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 64 * hops));
    assert_eq!(read_on(&env.queue(), &buffer), iota(16));
}

fn no_init_never_causes_a_transfer(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
    let (since, ()) = counted(|| {
        idle(&env.queue(), &buffer, Write.no_init()).unwrap();
        idle(&env.third_queue(), &buffer, ReadWrite.no_init()).unwrap();
        drop(buffer.host_access(Write.no_init()).unwrap());
        drop(buffer.host_access(ReadWrite.no_init()).unwrap());
        write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
        let task = env.queue().submit(|cg| {
            let mut host = cg.access_host(&buffer, Write.no_init());
            cg.host_task(move |scope| host.slice_mut(scope).fill(4))
        });
        task.unwrap().wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
    assert_eq!(buffer.to_vec().unwrap(), [4; 16]);
}

fn no_init_on_a_part_of_a_page_causes_no_transfer(env: &Env) {
    let buffer = BufferOptions::new().page_size(8).uninit::<i32>(32).unwrap();
    write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
    let (since, ()) = counted(|| {
        let kernel = env.queue().submit(|cg| {
            let data = cg.access_range(&buffer, Write.no_init(), 5, 10);
            cg.parallel_for(10, move |item| data.set(item, -1))
        });
        kernel.unwrap().wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
    let mut expected = iota(32);
    expected[5..15].fill(-1);
    let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
    assert_eq!(since.transferred_bytes(), 4 * 22 * env.hops(env.other_device(), env.device()));
    assert_eq!(read_on(&env.queue(), &buffer), expected);
    assert_eq!(read_on(&env.third_queue(), &buffer), expected);
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn no_init_keeps_what_lies_outside_its_range(env: &Env) {
    let buffer = Buffer::from_vec(iota(16)).unwrap();
    for (i, queue) in [env.queue(), env.other_queue(), env.third_queue()].iter().enumerate() {
        let kernel = queue.submit(|cg| {
            let data = cg.access_range(&buffer, Write.no_init(), i * 5, 4);
            cg.parallel_for(4, move |item| data.set(item, -1 - i as i32))
        });
        kernel.unwrap();
    }
    let mut host = buffer.host_access_range(Write.no_init(), 15, 1).unwrap();
    host[0] = -9;
    drop(host);
    let expected = [-1, -1, -1, -1, 4, -2, -2, -2, -2, 9, -3, -3, -3, -3, 14, -9];
    assert_eq!(read_on(&env.other_queue(), &buffer), expected);
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn no_init_keeps_what_lies_outside_its_range_in_two_dimensions(env: &Env) {
    let buffer = BufferOptions::new().page_size([3, 3]).uninit::<i32>([7, 8]).unwrap();
    write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
    let (since, ()) = counted(|| {
        let kernel = env.queue().submit(|cg| {
            let data = cg.access_range(&buffer, ReadWrite.no_init(), [2, 4], [4, 3]);
            cg.parallel_for([4, 3], move |item| data.set(item, -1))
        });
        kernel.unwrap().wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
    let expected: Vec<i32> =
        (0..56).map(|i| if (2..6).contains(&(i / 8)) && (4..7).contains(&(i % 8)) { -1 } else { i }).collect();
    assert_eq!(read_on(&env.other_queue(), &buffer), expected);
    assert_eq!(read_on(&env.queue(), &buffer), expected);
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn uninitialised_data_is_never_moved(env: &Env) {
    let (since, ()) = counted(|| {
        for round in 0..5 {
            let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
            for queue in [env.queue(), env.other_queue(), env.third_queue()] {
                touch(&queue, &buffer).wait().unwrap();
            }
            drop(buffer.host_access(Read).unwrap());
            env.queue().update_host(&buffer).unwrap().wait().unwrap();
            let queue = env.other_queue();
            match round {
                0 => idle(&queue, &buffer, Write).unwrap(),
                1 => idle(&queue, &buffer, ReadWrite).unwrap(),
                2 => idle(&queue, &buffer, Atomic).unwrap(),
                3 => idle(&queue, &buffer, Write.no_init()).unwrap(),
                _ => drop(buffer.host_access(ReadWrite).unwrap()),
            }
        }
    });
    assert_eq!(since.transfers(), 0);
}

fn uninitialised_pages_are_never_moved(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(16).unwrap();
    crate::support::update_range(&env.other_queue(), &buffer, 4, 4, |_| 7).wait().unwrap();
    let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 16 * hops));
}

fn commands_on_the_device_that_has_the_data_move_nothing(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    let (since, ()) = counted(|| {
        write_positions(&env.queue(), &buffer, 0);
        for _ in 0..10 {
            update(&env.queue(), &buffer, plus_one);
            env.queue().fill(&buffer, 3).unwrap();
            update(&env.in_order_queue(), &buffer, doubled);
        }
        env.queue().wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
    assert_eq!(buffer.to_vec().unwrap(), [6; 16]);
}

fn the_first_use_of_owned_data_moves_it_once(env: &Env) {
    let buffer = Buffer::from_vec(iota(16)).unwrap();
    let (since, ()) = counted(|| {
        touch(&env.queue(), &buffer).wait().unwrap();
        touch(&env.queue(), &buffer).wait().unwrap();
    });
    let expected = if env.is_host() { (0, 0) } else { (1, 64) };
    assert_eq!((since.transfers_to_device, since.bytes_to_device), expected);
    assert_eq!(since.transfers(), expected.0);
    assert_eq!(since.buffer_allocations, expected.0);
}

fn update_host_moves_what_the_host_lacks(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.queue_apart(), &buffer, 0).wait().unwrap();
    let (since, ()) = counted(|| env.queue_apart().update_host(&buffer).unwrap().wait().unwrap());
    assert_eq!((since.transfers_to_host, since.bytes_to_host, since.transfers()), (1, 64, 1));
    let (since, ()) = counted(|| {
        env.queue_apart().update_host(&buffer).unwrap().wait().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), iota(16));
        touch(&env.queue_apart(), &buffer).wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
}

fn host_accessors_move_what_the_host_lacks(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(16).unwrap();
    write_positions(&env.queue_apart(), &buffer, 0).wait().unwrap();
    let moved = |first: usize, length: usize| {
        let (since, ()) = counted(|| drop(buffer.host_access_range(Read, first, length).unwrap()));
        (since.transfers_to_host, since.bytes_to_host)
    };
    assert_eq!(moved(5, 1), (1, 16));
    assert_eq!(moved(4, 4), (0, 0));
    assert_eq!(moved(7, 2), (1, 16));
    assert_eq!(moved(0, 16), (2, 32));
    assert_eq!(moved(0, 16), (0, 0));
}

fn a_host_write_outdates_the_device(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(16).unwrap();
    write_positions(&env.queue_apart(), &buffer, 0);
    buffer.host_access_range(ReadWrite, 5, 1).unwrap()[0] = 50;
    assert!(!buffer.is_current_on(env.device_apart()));
    let (since, ()) = counted(|| touch(&env.queue_apart(), &buffer).wait().unwrap());
    assert_eq!((since.transfers_to_device, since.bytes_to_device, since.transfers()), (1, 16, 1));
    assert_eq!(read_on(&env.queue_apart(), &buffer)[4..7], [4, 50, 6]);
}

fn a_host_read_outdates_nothing(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.queue_apart(), &buffer, 0);
    assert_eq!(buffer.host_access(Read).unwrap()[15], 15);
    let (since, ()) = counted(|| {
        touch(&env.queue_apart(), &buffer).wait().unwrap();
        assert_eq!(buffer.host_access(Read).unwrap()[15], 15);
    });
    assert_eq!(since.transfers(), 0);
}

fn a_fill_of_the_whole_range_still_keeps_the_rest_of_its_page(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(16).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    let fill = env.queue().submit(|cg| {
        let target = cg.access_range(&buffer, Write.no_init(), 8, 4);
        cg.fill(target, -1)
    });
    fill.unwrap();
    let mut expected = iota(16);
    expected[8..12].fill(-1);
    assert_eq!(read_on(&env.third_queue(), &buffer), expected);
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn no_transfer_happens_without_a_use(env: &Env) {
    let (since, ()) = counted(|| {
        let buffer = Buffer::from_vec(iota(16)).unwrap();
        buffer.reserve(env.device()).unwrap();
        buffer.reserve(env.other_device()).unwrap();
        let copies = (buffer.clone(), buffer.sub_buffer(0, 4).unwrap(), buffer.placeholder(Read));
        drop(copies);
        let written = Buffer::<i32, 1>::uninit(16).unwrap();
        write_positions(&env.other_queue(), &written, 0).wait().unwrap();
        touch_range(&env.queue(), &written, 7, 0).wait().unwrap();
        drop(written);
    });
    assert_eq!(since.transfers(), 0);
}
