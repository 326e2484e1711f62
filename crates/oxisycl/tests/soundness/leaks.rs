//! `std::mem::forget` of everything leaves memory safe, and other objects usable.

use std::mem::forget;

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::{BufferOptions, FinalData};

use super::{add_one, devices, filled, host, refused, slow};

#[test]
fn forgotten_events_queues_and_contexts_leave_their_commands_alone() {
    for device in devices() {
        let buffer = filled(100);
        let queue = Queue::new(&device).unwrap();
        forget(add_one(&queue, &buffer).unwrap());
        forget(queue.clone());
        forget(queue);
        let context = Context::new(std::slice::from_ref(&device)).unwrap();
        let queue = Queue::builder().device(&device).context(&context).build().unwrap();
        add_one(&queue, &buffer).unwrap();
        forget((context, queue, device));
        assert_eq!(buffer.into_vec().unwrap(), [9; 100]);
    }
}

#[test]
fn forgotten_handles_of_a_buffer_keep_its_vector() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(16);
    forget(buffer.sub_buffer(0, 8).unwrap());
    let buffer = buffer.into_vec().unwrap_err();
    assert_eq!(buffer.error().code(), ErrorCode::Invalid);
    let buffer = buffer.into_buffer();
    add_one(&queue, &buffer).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [8; 16]);
    forget(buffer.placeholder(ReadWrite));
    forget(buffer.reinterpret::<i32, 1>(16).unwrap());
    let failed = buffer.into_vec().unwrap_err();
    forget(failed);
    let unseen = filled(4);
    unseen.set_final_data(FinalData::call(|_| panic!("delivered although a handle was forgotten")));
    forget(unseen.clone());
    drop(unseen);
}

#[test]
fn a_forgotten_borrowed_buffer_writes_nothing_and_its_data_may_go() {
    let queue = Queue::new(&slow(30)).unwrap();
    let mut data = vec![7u32; 64];
    let buffer = Buffer::from_slice_mut_nd(&mut data, 64).unwrap();
    let event = add_one(&queue, &buffer).unwrap();
    forget(buffer);
    assert_eq!(data, [7; 64]);
    data[0] = 1;
    // The command runs on a copy, and so survives the data.
    drop(data);
    event.wait().unwrap();
}

#[test]
fn a_forgotten_host_accessor_of_another_thread_holds_commands_back_for_ever() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let (buffer, other) = (filled(16), filled(16));
        let clone = buffer.clone();
        std::thread::spawn(move || forget(clone.host_access(ReadWrite).unwrap())).join().unwrap();
        let stuck = add_one(&queue, &buffer).unwrap();
        add_one(&queue, &other).unwrap().wait().unwrap();
        assert_eq!(other.into_vec().unwrap(), [8; 16]);
        assert!(!stuck.is_complete());
        refused(buffer.release(&device), ErrorCode::Invalid, "host accessor");
        let buffer = buffer.into_vec().unwrap_err().into_buffer();
        // The memory stays, also if every handle goes.
        drop(buffer);
        assert!(!stuck.is_complete());
    }
}

#[test]
fn a_forgotten_host_accessor_of_this_thread_is_noticed() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(16);
    forget(buffer.host_access(ReadWrite).unwrap());
    refused(buffer.host_access(Read), ErrorCode::Invalid, "this thread holds a host accessor");
    let stuck = add_one(&queue, &buffer).unwrap();
    refused(stuck.wait(), ErrorCode::Invalid, "this thread holds a host accessor");
    refused(buffer.to_vec(), ErrorCode::Invalid, "this thread holds a host accessor");
    // One for reading does not disturb other readers.
    let buffer = filled(16);
    forget(buffer.host_access(Read).unwrap());
    assert_eq!(buffer.to_vec().unwrap(), [7; 16]);
}

#[test]
fn forgotten_copies_keep_their_memory() {
    let queue = Queue::new(&slow(20)).unwrap();
    let buffer = filled(64);
    let copy = queue.copy_to_host(&buffer, vec![0; 64]).unwrap();
    let event = copy.event().clone();
    forget(copy);
    let (copy, slot) = queue
        .submit_with(|cg| {
            let data = cg.access(&buffer, Write);
            cg.copy_from_host(vec![3; 64], data)
        })
        .unwrap();
    forget(slot);
    drop(queue.copy_to_host(&buffer, vec![0; 64]).unwrap());
    event.wait().unwrap();
    copy.wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [3; 64]);
    queue.wait().unwrap();
}

#[test]
fn forgotten_usm_and_simulators_cost_memory_and_nothing_else() {
    let simulator = Simulator::new(SimulatedConfig::new(1)).unwrap();
    let device = simulator.devices().remove(0);
    forget(simulator);
    let queue = Queue::new(&device).unwrap();
    forget(queue.malloc_device::<u32>(8).unwrap());
    let mut slice = queue.malloc_shared::<u32>(8).unwrap();
    slice.copy_from_slice(&queue, &[5; 8]).unwrap();
    let buffer = BufferOptions::new().from_usm_nd(slice, 8).unwrap();
    add_one(&queue, &buffer).unwrap();
    forget(buffer.clone());
    assert_eq!(buffer.to_vec().unwrap(), [6; 8]);
    forget(buffer);
    queue.wait().unwrap();
}

#[test]
fn what_a_host_task_forgets_is_not_freed() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(8);
    let event = queue.submit(|cg| {
        let mut data = cg.access_host(&buffer, ReadWrite);
        cg.host_task(move |scope| {
            data.slice_mut(scope)[0] = 1;
            // A slice that lives as long as the group, and which nobody can reach any more.
            let data = Box::leak(Box::new(data));
            data.slice_mut(scope)[1] = 2;
        })
    });
    event.unwrap().wait().unwrap();
    assert_eq!(buffer.into_vec().unwrap()[..3], [1, 2, 7]);
}

#[test]
fn a_host_accessor_in_a_thread_local_ends_with_its_thread() {
    use std::cell::RefCell;
    thread_local!(static KEPT: RefCell<Vec<oxisycl::HostAccessor<u32, 1, ReadWrite>>> = const { RefCell::new(Vec::new()) });
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(8);
    let clone = buffer.clone();
    let thread = std::thread::spawn(move || {
        KEPT.with_borrow_mut(|kept| {
            kept.push(clone.host_access(ReadWrite).unwrap());
            kept[0][0] = 1;
        });
        add_one(&queue, &clone).unwrap()
    });
    thread.join().unwrap().wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap()[..2], [2, 8]);
}
