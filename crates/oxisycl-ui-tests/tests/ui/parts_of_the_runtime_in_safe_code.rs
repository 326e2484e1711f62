//! What the crates below the facade believe, safe code cannot tell them.
#![forbid(unsafe_code)]

use oxisycl_backend::{Completion, Outcome};
use oxisycl_runtime::graph::current_host_task;
use oxisycl_runtime::memory::BufferCore;
use oxisycl_runtime::runtime::{Wiring, get_or_init};
use oxisycl_backend_opencl::bare;

/// A task that says that it has ended, and goes on.
fn a_command_that_ends_early() {
    if let Some(node) = current_host_task() {
        node.complete(Outcome::ran(Ok(())));
    }
}

/// Lets commands write what the thread of a host accessor still reads.
fn a_host_accessor_that_somebody_else_ends() {
    if let Some(accessor) = current_host_task().and_then(|task| task.blockers().pop()) {
        accessor.end_host_access();
    }
}

/// Lets a kernel submit, with a token of a work-item at hand.
fn a_runtime_that_does_not_see_kernels() {
    drop(get_or_init(|| Ok(Wiring { backends: Vec::new(), in_kernel: || false })));
}

/// Whose state can be exchanged for that of a larger one.
fn a_buffer_without_its_facade() {
    drop(BufferCore::new([1, 1, 64], None, 64));
}

fn code_that_is_none(device: &bare::Device) {
    drop(device.build(&[0; 64]));
}

fn main() {}
