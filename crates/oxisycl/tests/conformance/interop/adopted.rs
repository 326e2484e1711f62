//! Queues and events of the driver that a test makes itself, as other code would. Memory is that of USM, which both know by its address.

use std::ffi::c_void;

use oxisycl::BackendKind;
use oxisycl::interop::{NativeContext, NativeDevice, NativeEvent, NativeQueue};
use oxisycl::prelude::*;

use super::{Handles, SIZE, cuda, opencl};
use crate::harness::Env;

/// The handles of the device, with a queue that other code has made; `None` where there is no driver.
fn made(device: &Device) -> Option<Handles> {
    let (native, context) = (device.native_device().ok()?, device.native_context().unwrap());
    Some(match (native, context) {
        (NativeDevice::Cuda(number), NativeContext::Cuda(context)) => {
            let device = std::ptr::without_provenance_mut(number as usize);
            Handles { queue: cuda::new_stream(context), device, context }
        }
        (NativeDevice::OpenCl(device), NativeContext::OpenCl(context)) => {
            Handles { queue: opencl::new_queue(device, context), device, context }
        }
        handles => panic!("handles of two backends: {handles:?}"),
    })
}

fn native_queue(device: &Device, handle: *mut c_void) -> NativeQueue {
    if device.backend() == BackendKind::Cuda { NativeQueue::Cuda(handle) } else { NativeQueue::OpenCl(handle) }
}

/// Has the driver fill the memory. The result is an event that the caller releases.
fn fill(device: &Device, handles: &Handles, memory: *mut u32, value: u32) -> NativeEvent {
    if device.backend() == BackendKind::Cuda {
        cuda::enqueue_fill(handles, memory, value);
        NativeEvent::Cuda(cuda::record(handles))
    } else {
        NativeEvent::OpenCl(opencl::enqueue_fill(handles, memory, value))
    }
}

fn release(handles: &Handles, event: NativeEvent) {
    match event {
        NativeEvent::Cuda(event) => cuda::destroy(handles.context, event),
        event => opencl::release(event.as_ptr()),
    }
}

pub(super) fn handles_lead_back_to_their_device(env: &Env) {
    let device = env.device();
    match device.native_device() {
        Ok(native) => {
            let native_queue = env.queue().native_queue().unwrap();
            assert_eq!(native_queue.backend(), device.backend());
            // Such as a sub-device that the test made is not listed.
            if Device::all().unwrap().contains(device) {
                assert_eq!(Device::from_native(native).unwrap(), *device);
            }
        }
        Err(error) => {
            assert_eq!(error.code(), ErrorCode::BackendMismatch);
            let queue = env.queue();
            let errors = [device.native_context().unwrap_err(), queue.native_queue().unwrap_err()];
            assert!(errors.iter().all(|error| error.code() == ErrorCode::BackendMismatch));
            let handle = std::ptr::without_provenance_mut(64);
            // SAFETY: refused because of its backend, before any use.
            let error = unsafe { Queue::from_native(device, NativeQueue::Cuda(handle)) }.unwrap_err();
            assert_eq!(error.code(), ErrorCode::BackendMismatch);
            assert!(error.to_string().contains("cannot take the native queue 0x40 of backend cuda"), "{error}");
            // SAFETY: as above.
            let error = unsafe { Event::from_native(&queue, NativeEvent::OpenCl(handle)) }.unwrap_err();
            assert_eq!(error.code(), ErrorCode::BackendMismatch);
        }
    }
}

pub(super) fn commands_are_in_order_with_the_work_of_others_on_a_native_queue(env: &Env) {
    let device = env.device();
    let Some(handles) = made(device) else { return };
    // SAFETY: a live queue of the device's context, which is never destroyed.
    let queue = unsafe { Queue::from_native(device, native_queue(device, handles.queue)) }.unwrap();
    assert!(queue.is_in_order());
    assert_eq!(queue.native_queue().unwrap().as_ptr(), handles.queue);
    let memory = queue.malloc_device::<u32>(SIZE).unwrap();
    for round in 0..20 {
        let copies = [2 * round, 2 * round + 1].map(|value| {
            let copy = queue.malloc_device::<u32>(SIZE).unwrap();
            release(&handles, fill(device, &handles, memory.as_ptr(), value));
            // SAFETY: both live until the commands have ended, and what changes them is on the same queue.
            unsafe { queue.memcpy(copy.as_ptr().cast(), memory.as_ptr().cast(), 4 * SIZE) }.unwrap();
            (copy, value)
        });
        for (copy, value) in copies {
            assert_eq!(copy.to_vec(&queue).unwrap(), vec![value; SIZE]);
        }
    }
    queue.wait().unwrap();
}

pub(super) fn commands_and_the_host_wait_for_native_events(env: &Env) {
    let device = env.device();
    let Some(handles) = made(device) else { return };
    for queue in [env.in_order_queue(), env.queue()] {
        let [memory, copy] = [0; 2].map(|_| queue.malloc_device::<u32>(SIZE).unwrap());
        for round in 0..20 {
            let native = fill(device, &handles, memory.as_ptr(), round);
            // SAFETY: a live event, which is released once it is complete.
            let event = unsafe { Event::from_native(&queue, native) }.unwrap();
            let copied = queue.submit(|cg| {
                cg.depends_on(&event);
                // SAFETY: both live until the commands have ended, and the next fill comes after this copy.
                unsafe { cg.memcpy(copy.as_ptr().cast(), memory.as_ptr().cast(), 4 * SIZE) }
            });
            let copied = copied.unwrap();
            if round % 2 == 0 {
                event.wait().unwrap();
            }
            let events = copied.native_events().unwrap();
            copied.wait().unwrap();
            assert!(event.is_complete());
            events.into_iter().chain([native]).for_each(|event| release(&handles, event));
            assert_eq!(copy.to_vec(&queue).unwrap(), vec![round; SIZE]);
        }
    }
}
