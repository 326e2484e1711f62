//! Native handles, in host tasks and native commands (L3, L5) and otherwise (L4). The driver takes them, and knows them as what they are given
//! out for.
//!
//! The driver is called through its own library, which the backend has loaded by the same name. Devices without a driver behind them have
//! no handles, which is what their tests ask for.

mod adopted;
mod cuda;
mod opencl;

use std::ffi::c_void;

use oxisycl::prelude::*;
use oxisycl::{BackendKind, InteropHandle, NativeScope};

use crate::harness::{Env, tests};
use adopted::{
    commands_and_the_host_wait_for_native_events, commands_are_in_order_with_the_work_of_others_on_a_native_queue,
    handles_lead_back_to_their_device,
};

tests![
    native_handles_are_those_that_the_driver_knows,
    the_driver_works_on_native_memory_by_the_native_queue,
    the_memory_of_another_group_is_not_given_out,
    native_commands_come_between_other_commands,
    a_native_command_that_fails_is_an_asynchronous_error,
    handles_lead_back_to_their_device,
    commands_are_in_order_with_the_work_of_others_on_a_native_queue,
    commands_and_the_host_wait_for_native_events,
];

const SIZE: usize = 1000;

/// The handles that a host task is given.
struct Handles {
    queue: *mut c_void,
    device: *mut c_void,
    context: *mut c_void,
}

/// The native handles of a command's objects, or for devices without a driver the check that there are none.
fn handles(interop: &InteropHandle) -> Option<Handles> {
    let [queue, device, context] = [interop.native_queue(), interop.native_device(), interop.native_context()];
    match interop.backend() {
        BackendKind::Cuda | BackendKind::OpenCl => {
            Some(Handles { queue: queue.unwrap(), device: device.unwrap(), context: context.unwrap() })
        }
        backend => {
            for (handle, what) in [(queue, "queue"), (device, "device"), (context, "context")] {
                let error = handle.unwrap_err();
                assert_eq!(error.code(), ErrorCode::BackendMismatch);
                assert_eq!(error.to_string(), format!("backend {backend} has no native {what}"));
            }
            None
        }
    }
}

/// Runs `check` in a host task of a queue of each kind, where there is a driver behind the device.
fn in_host_tasks(env: &Env, check: fn(&InteropHandle, &Handles)) {
    for queue in [env.in_order_queue(), env.queue()] {
        let task = queue.submit(|cg| {
            cg.host_task(move |scope| {
                if let Some(handles) = handles(scope.interop()) {
                    check(scope.interop(), &handles);
                }
            })
        });
        task.unwrap().wait().unwrap();
    }
}

fn native_handles_are_those_that_the_driver_knows(env: &Env) {
    in_host_tasks(env, |interop, handles| match interop.backend() {
        BackendKind::Cuda => cuda::check_handles(handles),
        _ => opencl::check_handles(interop, handles),
    });
}

fn the_driver_works_on_native_memory_by_the_native_queue(env: &Env) {
    for queue in [env.in_order_queue(), env.queue()] {
        let buffer = Buffer::from_vec(vec![1_u32; SIZE]).unwrap();
        // So that the newest data are not the host's.
        queue.fill(&buffer, 2).unwrap();
        let has_driver = matches!(queue.device().backend(), BackendKind::Cuda | BackendKind::OpenCl);
        let task = queue.submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.host_task(move |scope| {
                let interop = scope.interop();
                let memory = interop.native_memory(data).unwrap();
                assert!(!memory.is_null());
                // Without a driver it is memory of the process, but the device's.
                let Some(handles) = handles(interop) else { return };
                match interop.backend() {
                    BackendKind::Cuda => cuda::fill(&handles, memory, 7),
                    _ => opencl::fill(&handles, memory, 7),
                }
            })
        });
        task.unwrap();
        // Both the host and other commands of the device see what the driver has done.
        let copied = Buffer::from_vec(vec![0_u32; SIZE]).unwrap();
        queue.copy(&buffer, &copied).unwrap();
        let expected = if has_driver { 7 } else { 2 };
        assert_eq!(copied.into_vec().unwrap(), vec![expected; SIZE]);
        assert_eq!(buffer.into_vec().unwrap(), vec![expected; SIZE]);
    }
}

fn the_memory_of_another_group_is_not_given_out(env: &Env) {
    let (own, other) = (Buffer::from_vec(vec![0_u8; 4]).unwrap(), Buffer::from_vec(vec![0_u8; 4]).unwrap());
    let (queue, inner) = (env.queue(), env.queue());
    let task = queue.submit(|cg| {
        let own = cg.access(&own, Read);
        cg.host_task(move |scope| {
            let interop = scope.interop();
            assert!(interop.native_memory(own).is_ok());
            let nested = inner.submit(|cg| {
                let other = cg.access(&other, Read);
                assert_eq!(interop.native_memory(other).unwrap_err().code(), ErrorCode::Invalid);
                cg.host_task(|_| {})
            });
            nested.unwrap();
        })
    });
    task.unwrap().wait().unwrap();
}

/// Adds a native command with this work to a group.
fn native<'cg, F>(cg: &mut Handler<'cg>, work: F) -> oxisycl::Result
where
    F: for<'n> FnMut(NativeScope<'n, 'cg>) -> oxisycl::Result + Send + 'cg,
{
    // SAFETY: the functions below fill the accessor's memory on the given queue, and wait for nothing.
    unsafe { cg.native_command(work) }
}

/// Whether the device under test takes native commands; checks the error where it does not.
fn takes_native(queue: &Queue) -> bool {
    let submitted = queue.submit(|cg| native(cg, |_| Ok(())));
    match queue.device().backend() {
        BackendKind::Cuda | BackendKind::OpenCl => {
            submitted.unwrap().wait().unwrap();
            true
        }
        backend => {
            let error = submitted.unwrap_err();
            assert_eq!(error.code(), ErrorCode::BackendMismatch);
            assert!(error.to_string().contains(&format!("backend {backend} has no native queue")), "{error}");
            false
        }
    }
}

fn native_commands_come_between_other_commands(env: &Env) {
    for queue in [env.in_order_queue(), env.queue()] {
        if !takes_native(&queue) {
            return;
        }
        let buffer = Buffer::from_vec(vec![1_u32; SIZE]).unwrap();
        let add = |summand: u32| {
            queue.submit(|cg| {
                let data = cg.access(&buffer, ReadWrite);
                cg.parallel_for(SIZE, move |item| data.update(item, |x| 3 * x + summand))
            })
        };
        for round in 0..20 {
            add(1).unwrap();
            let inner = queue.clone();
            let filled = queue.submit(|cg| {
                let data = cg.access(&buffer, Write);
                native(cg, move |scope| {
                    // Locks are held.
                    assert_eq!(inner.single_task(|_| {}).unwrap_err().code(), ErrorCode::Invalid);
                    let memory = scope.native_memory(data)?;
                    let (queue, device) = (scope.native_queue(), scope.native_device());
                    let handles = Handles { queue, device, context: scope.native_context() };
                    match scope.backend() {
                        BackendKind::Cuda => cuda::enqueue_fill(&handles, memory, round),
                        _ => opencl::release(opencl::enqueue_fill(&handles, memory, round)),
                    }
                    Ok(())
                })
            });
            filled.unwrap();
            add(7).unwrap();
            if round % 3 == 0 {
                assert_eq!(buffer.to_vec().unwrap(), vec![3 * round + 7; SIZE]);
            }
        }
    }
}

fn a_native_command_that_fails_is_an_asynchronous_error(env: &Env) {
    let queue = env.queue();
    if !takes_native(&queue) {
        return;
    }
    let (own, other) = (Buffer::from_vec(vec![0_u8; 4]).unwrap(), Buffer::from_vec(vec![0_u8; 4]).unwrap());
    let fails = queue.submit(|cg| {
        let data = cg.access(&own, ReadWrite);
        native(cg, move |scope| {
            scope.native_memory(data)?;
            Err(Error::invalid("no handle"))
        })
    });
    let error = fails.unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("no handle"), "{error}");
    // The buffer is lost as after a kernel's panic.
    assert!(own.to_vec().is_err());
    queue.fill(&other, 3).unwrap();
    assert_eq!(other.to_vec().unwrap(), [3; 4]);
    assert_eq!(queue.take_errors().len(), 0);
}
