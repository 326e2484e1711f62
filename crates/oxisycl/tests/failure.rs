//! Commands that fail on simulated devices: what fails with them, what does not, and how a program goes on.

mod support;

use std::sync::Arc;

use oxisycl::observe::counters;
use oxisycl::prelude::*;
use oxisycl::simulated::{Operation, SimulatedControl};
use oxisycl::{BufferOptions, UsmKind};

use support::{Gate, alone, assert_error, collecting, eventually, in_order, refused, root_says, simulated, watchdog};

const FAULT: &str = "injected fault";

fn filled(n_elements: usize) -> Buffer<i32, 1> {
    Buffer::from_vec(vec![7; n_elements]).unwrap()
}

fn add_one(queue: &Queue, buffer: &Buffer<i32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        cg.name("add one");
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(buffer.range(), move |item| data.update(item, |x| x + 1))
    })
}

/// Nothing of the devices is left, and the counters balance.
fn assert_nothing_leaks(control: &SimulatedControl, live_before: u64) {
    let is_clean = || (0..control.n_devices()).all(|device| control.live_allocations(device) == 0);
    eventually("all allocations of the devices are freed", is_clean);
    eventually("every node has ended", || counters().live_nodes() == live_before);
}

/// A buffer whose last writer failed.
fn lost(queue: &Queue) -> Buffer<i32, 1> {
    let buffer = filled(8);
    let event = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| {
            data.set(item, 0);
            panic!("writer")
        })
    });
    event.unwrap().wait().unwrap_err();
    buffer
}

#[test]
fn each_class_of_command_fails_with_its_device_and_number() {
    let _watchdog = watchdog();
    let _alone = alone();
    let live = counters().live_nodes();
    let (devices, control) = simulated(1);
    let (queue, errors) = collecting(&devices[0]);
    let buffer = filled(8);
    type Run<'a> = &'a dyn Fn() -> oxisycl::Result<Event>;
    let cases: [(Operation, &str, Run<'_>); 4] = [
        (Operation::Launch, "kernel \"add one\"", &|| add_one(&queue, &buffer)),
        (Operation::Fill, "fill", &|| queue.fill(&Buffer::uninit(8)?, 3)),
        (Operation::Copy, "copy", &|| queue.copy(&Buffer::<i32, 1>::uninit(8)?, &Buffer::uninit(8)?)),
        (Operation::Other, "", &|| queue.submit_barrier([])),
    ];
    for (i, (operation, name, submit)) in cases.into_iter().enumerate() {
        control.fail_next(0, operation, 1);
        let error = refused(submit().unwrap().wait(), ErrorCode::Runtime, &[name, devices[0].name(), FAULT]);
        assert!(root_says(&error, &format!("{FAULT} in {operation} number")), "{error:?}");
        queue.throw_asynchronous();
        assert_eq!(errors.lock().unwrap().len(), i + 1);
    }
    control.fail_next(0, Operation::Allocate, 1);
    let error = refused(queue.fill(&filled(8), 3), ErrorCode::MemoryAllocation, &[devices[0].name(), FAULT]);
    assert!(root_says(&error, FAULT));
    control.fail_next(0, Operation::Allocate, 1);
    refused(queue.malloc::<u8>(UsmKind::Device, 8), ErrorCode::MemoryAllocation, &[devices[0].name(), FAULT]);
    queue.wait_and_throw().unwrap();
    assert_eq!(errors.lock().unwrap().len(), 4);
    drop((buffer, queue));
    assert_nothing_leaks(&control, live);
}

#[test]
fn dependents_of_a_failed_command_fail_with_it_as_source_and_others_do_not() {
    let _watchdog = watchdog();
    let _alone = alone();
    let (devices, control) = simulated(2);
    let (queue, errors) = collecting(&devices[0]);
    let second = Queue::new(&devices[1]).unwrap();
    let (buffer, other, third) = (filled(8), filled(8), filled(8));
    control.pause(0);
    control.fail_next(0, Operation::Launch, 1);
    let first = add_one(&queue, &buffer).unwrap();
    let on_same_queue = add_one(&queue, &buffer).unwrap();
    let elsewhere = second.submit(|cg| {
        let (from, to) = (cg.access(&buffer, Read), cg.access(&third, ReadWrite));
        cg.parallel_for(8, move |item| to.set(item, from.get(item)))
    });
    let task = queue.submit(|cg| {
        let data = cg.access_host(&buffer, Read);
        cg.host_task(move |scope| assert_eq!(data.slice(scope).len(), 8))
    });
    let unrelated = add_one(&queue, &other).unwrap();
    control.resume(0);
    assert_error(&first.wait().unwrap_err(), ErrorCode::Runtime, &["kernel \"add one\"", "failed", FAULT]);
    for dependent in [on_same_queue, elsewhere.unwrap(), task.unwrap()] {
        let error = refused(dependent.wait(), ErrorCode::Runtime, &["did not run"]);
        assert!(root_says(&error, FAULT), "{error:?}");
    }
    unrelated.wait().unwrap();
    assert_eq!(other.to_vec().unwrap(), [8; 8]);
    for _ in 0..2 {
        let error = refused(buffer.to_vec(), ErrorCode::Runtime, &[FAULT]);
        assert!(root_says(&error, FAULT), "{error:?}");
        let error = refused(add_one(&second, &buffer), ErrorCode::Runtime, &[FAULT]);
        assert!(root_says(&error, FAULT), "{error:?}");
        assert!(buffer.clone().into_vec().is_err());
    }
    // What its writer never touched may be as it was.
    assert!(third.to_vec().is_ok_and(|data| data == [7; 8]) || third.to_vec().is_err());
    queue.throw_asynchronous();
    let n_roots = errors.lock().unwrap().iter().filter(|error| !error.to_string().contains("did not run")).count();
    assert_eq!(n_roots, 1, "{errors:?}");
}

#[test]
fn lost_data_is_an_error_until_it_is_overwritten_whole() {
    let _watchdog = watchdog();
    let _alone = alone();
    let (devices, _control) = simulated(1);
    for device in [Device::default().unwrap(), devices[0].clone()] {
        let queue = Queue::new(&device).unwrap();
        let by_kernel = |buffer: &Buffer<i32, 1>| {
            let event = queue.submit(|cg| {
                let data = cg.access(buffer, Write.no_init());
                cg.parallel_for(8, move |item| data.set(item, 5))
            });
            event.unwrap().wait().unwrap();
        };
        let by_fill = |buffer: &Buffer<i32, 1>| queue.fill(buffer, 5).unwrap().wait().unwrap();
        let by_copy = |buffer: &Buffer<i32, 1>| {
            let source = Buffer::from_vec(vec![5; 8]).unwrap();
            queue.copy(&source, buffer).unwrap().wait().unwrap();
        };
        let from_host =
            |buffer: &Buffer<i32, 1>| drop(queue.copy_from_host(vec![5; 8], buffer).unwrap().wait().unwrap());
        let by_host = |buffer: &Buffer<i32, 1>| buffer.host_access(Write.no_init()).unwrap().as_mut_slice().fill(5);
        type Way<'a> = &'a dyn Fn(&Buffer<i32, 1>);
        let ways: [Way<'_>; 5] = [&by_kernel, &by_fill, &by_copy, &from_host, &by_host];
        for (i, overwrite) in ways.iter().enumerate() {
            let buffer = lost(&queue);
            refused(buffer.host_access(Read), ErrorCode::Kernel, &["writer"]);
            refused(buffer.host_access(ReadWrite), ErrorCode::Kernel, &["writer"]);
            overwrite(&buffer);
            assert_eq!(buffer.to_vec().unwrap(), [5; 8], "way {i}");
            add_one(&queue, &buffer).unwrap();
            assert_eq!(buffer.into_vec().unwrap(), [6; 8], "way {i}");
        }
    }
}

#[test]
fn overwriting_a_part_does_not_bring_the_rest_back() {
    let _watchdog = watchdog();
    let _alone = alone();
    let queue = Queue::default().unwrap();
    for page in [usize::MAX, 4, 1] {
        let buffer = BufferOptions::new().page_size(page).from_vec(vec![7; 8]).unwrap();
        let event = queue.submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(8, move |item| data.update(item, |_| panic!("writer")))
        });
        event.unwrap().wait().unwrap_err();
        let fill = queue.submit(|cg| {
            let front = cg.access_range(&buffer, Write, 0, 4);
            cg.fill(front, 1)
        });
        fill.unwrap().wait().unwrap();
        refused(buffer.to_vec(), ErrorCode::Kernel, &["writer"]);
        let fill = queue.submit(|cg| {
            let back = cg.access_range(&buffer, Write.no_init(), 4, 4);
            cg.fill(back, 2)
        });
        fill.unwrap().wait().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [1, 1, 1, 1, 2, 2, 2, 2], "page size {page}");
    }
}

/// Whether the failure is known when the part is overwritten makes no difference: the rest is lost, the part is good (5.4, 9.9).
#[test]
fn a_part_overwritten_behind_a_writer_that_fails_later_is_good() {
    let _watchdog = watchdog();
    let (devices, _) = simulated(2);
    let [first, second] = [0, 1].map(|i| collecting(&devices[i]).0);
    let buffer = filled(8);
    let gate = Arc::new(Gate::new());
    let held = gate.clone();
    let holds = first.submit(|cg| cg.host_task(move |_| held.pass())).unwrap();
    let failing = first.submit(|cg| {
        cg.depends_on(&holds);
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| {
            data.set(item, 0);
            panic!("writer")
        })
    });
    let overwrite = |offset: usize| {
        second.submit(|cg| {
            let data = cg.access_range(&buffer, Write.no_init(), offset, 4);
            cg.parallel_for(4, move |item| data.set(item, 5))
        })
    };
    let of_a_part = overwrite(4).unwrap();
    let of_the_rest_too = [overwrite(0).unwrap(), overwrite(4).unwrap()];
    gate.open();
    failing.unwrap().wait().unwrap_err();
    of_a_part.wait().unwrap();
    for event in of_the_rest_too {
        event.wait().unwrap();
    }
    assert_eq!(buffer.to_vec().unwrap(), [5; 8]);
}

#[test]
fn other_pages_of_a_buffer_survive_a_failure() {
    let _watchdog = watchdog();
    let _alone = alone();
    let (devices, control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = BufferOptions::new().page_size(4).from_vec(vec![7; 16]).unwrap();
    let add_to_page = |page: usize| {
        let event = queue.submit(|cg| {
            let data = cg.access_range(&buffer, ReadWrite, 4 * page, 4);
            cg.parallel_for(4, move |item| data.update(item, |x| x + 1))
        });
        event.unwrap().wait()
    };
    for page in [0, 1, 3] {
        add_to_page(page).unwrap();
    }
    control.fail_next(0, Operation::Launch, 1);
    add_to_page(1).unwrap_err();
    assert_eq!(buffer.host_access_range(Read, 0, 4).unwrap().as_slice(), [8; 4]);
    assert_eq!(buffer.host_access_range(Read, 8, 8).unwrap().as_slice(), [7, 7, 7, 7, 8, 8, 8, 8]);
    refused(buffer.host_access_range(Read, 5, 1), ErrorCode::Runtime, &[FAULT]);
    add_to_page(3).unwrap();
    assert_eq!(buffer.host_access_range(Read, 12, 4).unwrap().as_slice(), [9; 4]);
}

#[test]
fn a_failed_transfer_can_be_tried_again() {
    let _watchdog = watchdog();
    let _alone = alone();
    let live = counters().live_nodes();
    let (devices, control) = simulated(2);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = filled(8);
    // To the device: what wanted the data fails, the data is still on the host.
    control.fail_next(0, Operation::Copy, 1);
    let sum = Buffer::<i32, 1>::uninit(1).unwrap();
    let add_up = || {
        queue.submit(|cg| {
            let (data, sum) = (cg.access(&buffer, Read), cg.access(&sum, Write.no_init()));
            cg.single_task(move |task| sum.set_at(task, 0, data.view(task).iter().sum()))
        })
    };
    let error = refused(add_up().unwrap().wait(), ErrorCode::Runtime, &["did not run", FAULT]);
    assert!(root_says(&error, FAULT));
    assert!(!buffer.is_current_on(&devices[0]));
    add_up().unwrap().wait().unwrap();
    assert_eq!(sum.to_vec().unwrap(), [56]);
    // Back to the host.
    add_one(&queue, &buffer).unwrap().wait().unwrap();
    control.fail_next(0, Operation::Copy, 1);
    refused(buffer.to_vec(), ErrorCode::Runtime, &[FAULT]);
    assert_eq!(buffer.to_vec().unwrap(), [8; 8]);
    // Between devices, on whichever queue the copy goes.
    add_one(&queue, &buffer).unwrap().wait().unwrap();
    for device in 0..2 {
        control.fail_next(device, Operation::Copy, 1);
    }
    let second = Queue::new(&devices[1]).unwrap();
    let target = filled(8);
    let copied = second.submit(|cg| {
        let (from, to) = (cg.access(&buffer, Read), cg.access(&target, Write.no_init()));
        cg.parallel_for(8, move |item| to.set(item, from.get(item)))
    });
    refused(copied.unwrap().wait(), ErrorCode::Runtime, &[FAULT]);
    assert_eq!((0..8).find_map(|_| buffer.to_vec().ok()), Some(vec![9; 8]), "the data is where it was");
    drop((buffer, sum, target, queue, second));
    assert_nothing_leaks(&control, live);
}

#[test]
fn into_vec_gives_the_buffer_back_when_the_transfer_fails() {
    let _watchdog = watchdog();
    let _alone = alone();
    let (devices, control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = filled(8);
    add_one(&queue, &buffer).unwrap().wait().unwrap();
    control.fail_next(0, Operation::Copy, 1);
    let failed = buffer.into_vec().unwrap_err();
    assert_error(failed.error(), ErrorCode::Runtime, &[FAULT]);
    assert_eq!(failed.into_buffer().into_vec().unwrap(), [8; 8]);
}

#[test]
fn an_in_order_queue_goes_on_after_a_failure() {
    let _watchdog = watchdog();
    let _alone = alone();
    let (devices, control) = simulated(1);
    let queue = in_order(&devices[0]);
    let (first, second) = (filled(8), filled(8));
    control.fail_next(0, Operation::Launch, 2);
    add_one(&queue, &first).unwrap();
    let failing = add_one(&queue, &first).unwrap();
    let after = add_one(&queue, &second).unwrap();
    after.wait().unwrap();
    refused(failing.wait(), ErrorCode::Runtime, &[FAULT]);
    assert_eq!(second.to_vec().unwrap(), [8; 8]);
}

#[test]
fn destinations_hear_of_a_failure_and_borrowed_data_stays_as_it_was() {
    let _watchdog = watchdog();
    let _alone = alone();
    let (devices, control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let (told, hear) = std::sync::mpsc::channel();
    let buffer = filled(8);
    buffer.set_final_data(oxisycl::FinalData::call(move |data| told.send(data).unwrap()));
    control.fail_next(0, Operation::Launch, 1);
    add_one(&queue, &buffer).unwrap();
    drop(buffer);
    refused(hear.recv().unwrap(), ErrorCode::Runtime, &[FAULT]);
    let mut data = [1, 2, 3];
    let borrowed = Buffer::from_slice_mut_nd(&mut data, 3).unwrap();
    control.fail_next(0, Operation::Launch, 1);
    add_one(&queue, &borrowed).unwrap();
    refused(borrowed.finish(), ErrorCode::Runtime, &[FAULT]);
    assert_eq!(data, [1, 2, 3]);
}
