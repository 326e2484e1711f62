//! When memory goes back to the driver, which would wait for running kernels.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxisycl_backend::{Command, CopyCommand, Device, MemoryId, PitchedBox, Queue, UsmKind};

use crate::fake::Fake;
use crate::support::{Issued, in_order, issue, kernel, launch, line};

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 64).expect("a layout")
}

/// A kernel that runs until it is let go.
struct Running {
    gate: NonNull<u8>,
    command: Issued,
}

impl Running {
    fn start(device: &Arc<dyn Device>, queue: &Arc<dyn Queue>) -> Self {
        let gate = device.memory().allocate(UsmKind::Host, Layout::new::<u8>(), true).expect("there is memory");
        let code = kernel(device, "gate");
        let command = issue(queue, launch(&code, "gate", &(gate.as_ptr() as usize), line(1)), &[]);
        Self { gate, command }
    }

    fn end(self, device: &Arc<dyn Device>) {
        // SAFETY: the byte is alive, and the kernel reads it as an atomic.
        unsafe { (*self.gate.as_ptr().cast::<AtomicBool>()).store(true, Ordering::Release) };
        self.command.probe.succeed();
        // SAFETY: allocated above; the kernel has ended.
        unsafe { device.memory().free(self.gate, UsmKind::Host, Layout::new::<u8>()) };
    }
}

fn n_freed(fake: &Fake) -> u64 {
    fake.count("cuMemFree_v2") + fake.count("cuMemFreeHost")
}

#[test]
fn memory_is_not_freed_while_a_kernel_runs() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = in_order(&device);
    let before = fake.held()[0];
    let running = Running::start(&device, &queue);
    for kind in [UsmKind::Device, UsmKind::Host, UsmKind::Shared] {
        let memory = device.memory().allocate(kind, layout(1 << 16), false).expect("there is memory");
        // SAFETY: allocated above, and not used.
        unsafe { device.memory().free(memory, kind, layout(1 << 16)) };
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(n_freed(&fake), 0);
    running.end(&device);
    for _ in 0..1000 {
        if fake.held()[0] <= before {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} bytes are left, {before} before", fake.held()[0]);
}

#[test]
fn retired_memory_is_used_again_and_zeroed_where_asked() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = in_order(&device);
    let running = Running::start(&device, &queue);
    let allocate = |kind, zeroed| device.memory().allocate(kind, layout(4096), zeroed).expect("there is memory");
    for kind in [UsmKind::Device, UsmKind::Host] {
        let first = allocate(kind, false);
        // SAFETY: allocated above; the fake driver's memory is the process's.
        unsafe {
            first.as_ptr().write_bytes(0xAB, 4096);
            device.memory().free(first, kind, layout(4096));
        }
        let second = allocate(kind, true);
        assert_eq!(second, first);
        // SAFETY: as above.
        assert!(unsafe { std::slice::from_raw_parts(second.as_ptr(), 4096) }.iter().all(|byte| *byte == 0));
        // SAFETY: as above.
        unsafe { device.memory().free(second, kind, layout(4096)) };
    }
    running.end(&device);
}

#[test]
fn exhausted_memory_is_freed_at_once() {
    let fake = Fake::with(&[("memory", 1 << 20)]);
    let device = fake.device();
    let queue = in_order(&device);
    let running = Running::start(&device, &queue);
    let allocate = |size| device.memory().allocate(UsmKind::Device, layout(size), false);
    let half = allocate(1 << 19).expect("there is memory");
    // SAFETY: allocated above, and not used.
    unsafe { device.memory().free(half, UsmKind::Device, layout(1 << 19)) };
    assert_eq!(n_freed(&fake), 0);
    let all = allocate(1 << 20).expect("the memory is free again");
    assert_eq!(n_freed(&fake), 1);
    // SAFETY: as above.
    unsafe { device.memory().free(all, UsmKind::Device, layout(1 << 20)) };
    running.end(&device);
}

#[test]
fn an_idle_device_that_ran_nothing_frees_memory_too() {
    let fake = Fake::new();
    let device = fake.device();
    let before = fake.held()[0];
    let memory = device.memory().allocate(UsmKind::Device, layout(4096), false).expect("there is memory");
    // SAFETY: allocated above, and not used.
    unsafe { device.memory().free(memory, UsmKind::Device, layout(4096)) };
    for _ in 0..1000 {
        if fake.held()[0] == before {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} bytes are left, {before} before", fake.held()[0]);
}

#[test]
fn an_in_order_queue_that_ended_with_work_of_the_host_is_let_go() {
    let fake = Fake::new();
    let weak = {
        let device = fake.device();
        let queue = in_order(&device);
        let memory = device.memory().allocate(UsmKind::Device, layout(64), false).expect("there is memory");
        let source = [7u8; 64];
        let row = |memory, pointer| PitchedBox { memory, pointer, row_pitch: 0, slice_pitch: 0 };
        let copy = CopyCommand {
            source: row(MemoryId::HOST, source.as_ptr().cast_mut()),
            target: row(device.info().memory.id, memory.as_ptr()),
            extent: [1, 1, 64],
        };
        issue(&queue, Command::from(copy), &[]).probe.succeed();
        // SAFETY: allocated above; the copy has ended.
        unsafe { device.memory().free(memory, UsmKind::Device, layout(64)) };
        Arc::downgrade(&queue)
    };
    assert_eq!(weak.strong_count(), 0);
    for _ in 0..1000 {
        if fake.held() == [0; 3] {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("bytes, modules and contexts left: {:?}", fake.held());
}
