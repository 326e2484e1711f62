//! Use of a device in a child process that was forked after the device's threads had started.
#![cfg(unix)]

use std::any::TypeId;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::{ArgumentBlock, Backend, BackendError, Completion, KernelCommand, Outcome, Queue, QueueOptions};
use oxisycl_backend_host::{HostBackend, SimulatedBackend, SimulatedConfig};
use oxisycl_backend_testing::harness::help_once;
use oxisycl_image::{Form, KernelDescriptor, KernelId, ParameterLayout};
use oxisycl_types::{HostChunk, LaunchRange};

#[derive(Default)]
struct Done(AtomicBool);

impl Completion for Done {
    unsafe fn complete(self: Arc<Self>, _: Outcome) {
        self.0.store(true, Ordering::Release);
    }
}

unsafe fn nothing(_: *const u8, _: &LaunchRange, _: &HostChunk) {}

fn submit(queue: &Arc<dyn Queue>) -> Result<Arc<Done>, BackendError> {
    let descriptor = KernelDescriptor {
        id: KernelId { type_id: TypeId::of::<()>(), form: Form::Single },
        type_name: "nothing",
        name: None,
        location: Location::caller(),
        parameters: ParameterLayout { size: 0, align: 1 },
        arguments: None,
        stated: oxisycl_image::StatedNeeds::NONE,
        host_entry: nothing,
    };
    let command = KernelCommand {
        descriptor,
        code: None,
        native: None,
        arguments: ArgumentBlock::new(&()),
        range: LaunchRange::SINGLE,
        group: None,
    };
    let done = Arc::<Done>::default();
    // SAFETY: the command uses no memory.
    unsafe { queue.issue(command.into(), &[], done.clone()) }?;
    Ok(done)
}

fn wait(done: &Done) {
    while !done.0.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
}

/// Runs `child` in a forked process and returns its exit status.
fn in_child(child: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child calls nothing but `child` and `_exit`, and `child` uses only the queues under test, which is what is tested.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = i32::from(!child());
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: `status` lives until the call returns.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    status
}

#[test]
fn a_forked_child_is_told_that_the_device_is_lost_and_the_parent_goes_on() {
    let host = HostBackend::new();
    let simulated = SimulatedBackend::new(SimulatedConfig::new(1));
    let backends: [&dyn Backend; 2] = [&host, &simulated];
    for backend in backends {
        let device = backend.platforms().expect("a platform")[0].devices().remove(0);
        let queue = device.create_queue(&QueueOptions::default()).expect("a queue");
        // Before the threads have started, the child may start its own.
        let fresh = in_child(|| {
            let done = submit(&queue);
            done.is_ok_and(|done| {
                wait(&done);
                true
            })
        });
        assert_eq!(fresh, 0);
        wait(&submit(&queue).expect("the parent works"));
        let status = in_child(|| matches!(submit(&queue), Err(BackendError::DeviceLost { .. })) && !help_once(&*queue));
        assert_eq!(status, 0);
        wait(&submit(&queue).expect("the parent still works"));
    }
}
