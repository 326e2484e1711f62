//! What native commands own, on the GPU of a driver without any. The CUDA backend's tests have that driver.

#![cfg(all(target_os = "linux", feature = "cuda"))]

#[path = "support/child.rs"]
mod child_process;
#[path = "support/fake_gpu.rs"]
#[expect(dead_code, reason = "no kernels are launched here")]
mod fake_gpu;
mod support;

use oxisycl::BackendKind;
use oxisycl::observe::counters;
use oxisycl::prelude::*;

use child_process::{role, run};
use fake_gpu::Driver;
use support::{eventually, in_order, watchdog};

/// What this program does when its test starts it again.
#[test]
fn child() {
    let _limit = watchdog();
    match role().as_deref() {
        None => {}
        Some("owner") => own_memory(),
        Some(other) => panic!("no role {other}"),
    }
}

/// Memory is given back by a call that takes the locks of its queue. They are held while a native command is issued.
#[test]
fn a_native_command_may_own_memory_on_queues_in_and_out_of_order() {
    let driver = Driver::new();
    run("owner", &[driver.variable()]).succeeded();
}

fn own_memory() {
    let gpu = Device::all().unwrap().into_iter().find(|device| device.backend() == BackendKind::Cuda).unwrap();
    for queue in [in_order(&gpu), Queue::new(&gpu).unwrap()] {
        let before = counters();
        let left = || {
            let since = counters() - before;
            since.usm_allocations - since.usm_frees
        };
        let mut memory = Some(queue.malloc_device::<u32>(100).unwrap());
        let buffer = Buffer::from_vec(vec![1u32; 4]).unwrap();
        let owner = queue.submit(|cg| {
            let memory = memory.take();
            // SAFETY: nothing is put on the queue.
            unsafe {
                cg.native_command(move |_| {
                    assert_eq!(memory.as_ref().map(oxisycl::usm::UsmSlice::len), Some(100));
                    Ok(())
                })
            }
        });
        let owner = owner.unwrap();
        // Behind it on the same queue.
        let later = queue.submit(|cg| {
            let data = cg.access(&buffer, Write);
            cg.fill(data, 2)
        });
        owner.wait().unwrap();
        later.unwrap().wait().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [2; 4]);
        eventually("the memory is freed", || left() == 0);
        queue.wait().unwrap();
    }
}
