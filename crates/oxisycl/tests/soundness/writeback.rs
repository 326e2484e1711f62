//! Data is written back as a whole and only if all of it is right.

use std::sync::{Arc, Mutex};

use oxisycl::FinalData;
use oxisycl::prelude::*;
use oxisycl::simulated::Operation;

use super::{add_one, devices, fail, filled, refused, simulated};

#[test]
fn borrowed_data_is_written_back_if_everything_went_well() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let mut data = [7u32; 16];
        let buffer = Buffer::from_slice_mut_nd(&mut data, 16).unwrap();
        add_one(&queue, &buffer).unwrap();
        buffer.finish().unwrap();
        assert_eq!(data, [8; 16]);
        drop({
            let buffer = Buffer::from_slice_mut_nd(&mut data, 16).unwrap();
            add_one(&queue, &buffer).unwrap();
            buffer
        });
        assert_eq!(data, [9; 16]);
        let buffer = Buffer::from_slice_mut_nd(&mut data, 16).unwrap();
        add_one(&queue, &buffer).unwrap();
        buffer.discard();
        assert_eq!(data, [9; 16]);
    }
}

#[test]
fn borrowed_data_stays_as_it_was_if_anything_failed() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let mut data = [7u32; 16];
        let buffer = Buffer::from_slice_mut_nd(&mut data, 16).unwrap();
        add_one(&queue, &buffer).unwrap();
        fail(&queue, &buffer).unwrap();
        refused(buffer.finish(), ErrorCode::Kernel, "on purpose");
        assert_eq!(data, [7; 16]);
        let buffer = Buffer::from_slice_mut_nd(&mut data, 16).unwrap();
        fail(&queue, &buffer).unwrap();
        drop(buffer);
        assert_eq!(data, [7; 16]);
        _ = queue.take_errors();
    }
}

#[test]
fn a_failed_transfer_writes_nothing_back() {
    let (devices, control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let mut data = [7u32; 16];
    let buffer = Buffer::from_slice_mut_nd(&mut data, 16).unwrap();
    add_one(&queue, &buffer).unwrap().wait().unwrap();
    control.fail_next(0, Operation::Copy, 1);
    assert!(buffer.finish().is_err());
    assert_eq!(data, [7; 16]);
    let vector = Arc::new(Mutex::new(vec![1u32]));
    let buffer = filled(4);
    buffer.set_final_data(FinalData::weak(Arc::downgrade(&vector)));
    add_one(&queue, &buffer).unwrap().wait().unwrap();
    control.fail_next(0, Operation::Copy, 1);
    drop(buffer);
    assert_eq!(*vector.lock().unwrap(), [1]);
}

#[test]
fn final_data_is_delivered_whole_or_not_at_all() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let vector = Arc::new(Mutex::new(vec![1u32]));
        let buffer = filled(4);
        buffer.set_final_data(FinalData::weak(Arc::downgrade(&vector)));
        add_one(&queue, &buffer).unwrap();
        drop(buffer);
        assert_eq!(*vector.lock().unwrap(), [8; 4]);
        let buffer = filled(4);
        buffer.set_final_data(FinalData::weak(Arc::downgrade(&vector)));
        fail(&queue, &buffer).unwrap();
        drop(buffer);
        assert_eq!(*vector.lock().unwrap(), [8; 4]);
        let buffer = filled(4);
        let told = Arc::new(Mutex::new(None));
        let tell = told.clone();
        buffer.set_final_data(FinalData::call(move |data| *tell.lock().unwrap() = Some(data)));
        fail(&queue, &buffer).unwrap();
        drop(buffer);
        refused(told.lock().unwrap().take().unwrap(), ErrorCode::Kernel, "on purpose");
        _ = queue.take_errors();
    }
}

#[test]
fn lost_data_is_an_error_until_it_is_overwritten() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(8);
        let failing = fail(&queue, &buffer).unwrap();
        assert!(failing.wait().is_err());
        refused(buffer.to_vec(), ErrorCode::Kernel, "on purpose");
        refused(buffer.host_access(ReadWrite), ErrorCode::Kernel, "on purpose");
        refused(add_one(&queue, &buffer), ErrorCode::Kernel, "on purpose");
        let buffer = buffer.into_vec().unwrap_err().into_buffer();
        // Half of it is not enough.
        let event = queue.submit(|cg| {
            let data = cg.access_range(&buffer, Write.no_init(), 0, 4);
            cg.parallel_for(4, move |item| data.set(item, 1))
        });
        event.unwrap().wait().unwrap();
        refused(buffer.to_vec(), ErrorCode::Kernel, "on purpose");
        queue.fill(&buffer, 2).unwrap();
        assert_eq!(buffer.into_vec().unwrap(), [2; 8]);
        _ = queue.take_errors();
    }
}

#[test]
fn a_partial_overwrite_does_not_hide_a_failure_that_is_still_to_come() {
    use super::Gate;
    static GATE: Gate = Gate::new();
    let (devices, control) = simulated(1);
    let (queue, other) = (Queue::new(&devices[0]).unwrap(), Queue::new(&super::host()).unwrap());
    let buffer = filled(8);
    let gate = other.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let doomed = queue.submit(|cg| {
        cg.depends_on(&gate);
        let _data = cg.access(&buffer, ReadWrite);
        cg.single_task(|_| std::panic::resume_unwind(Box::new("on purpose")))
    });
    let part = queue.submit(|cg| {
        let data = cg.access_range(&buffer, Write.no_init(), 0, 4);
        cg.parallel_for(4, move |item| data.set(item, 1))
    });
    GATE.open();
    assert!(doomed.unwrap().wait().is_err());
    _ = part.unwrap().wait();
    // The other half is what a failed kernel left, in memory that may never have held it.
    refused(buffer.to_vec(), ErrorCode::Kernel, "on purpose");
    _ = queue.take_errors();
    drop(control);
}
