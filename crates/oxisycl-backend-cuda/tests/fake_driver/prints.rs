//! What kernels print: buffers, their reuse, and what happens when they are full.

use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::{Command, Device, LoadedKernel, MAX_PRINTING, Queue, QueueOptions, UsmKind};
use oxisycl_backend_testing::harness::create_queue;

use crate::fake::Fake;
use crate::support::{Issued, in_order, issue, kernel, launch, line, queue};

/// A launch of `n` work-items each of which prints `times`.
#[track_caller]
fn printing(code: &Arc<dyn LoadedKernel>, n: usize, times: u64) -> Command {
    launch(code, "printing", &times, line(n))
}

fn with_buffer(device: &Arc<dyn Device>, print_buffer: u32) -> Arc<dyn Queue> {
    create_queue(device, &QueueOptions { print_buffer, ..QueueOptions::default() }).expect("a queue")
}

#[test]
fn output_comes_with_the_completion_in_its_order() {
    let fake = Fake::new();
    let device = fake.device();
    let code = kernel(&device, "printing");
    for queue in [queue(&device), in_order(&device)] {
        let printed = issue(&queue, printing(&code, 3, 2), &[]).probe.printed();
        assert_eq!(printed.text, "item 0\nitem 0\nitem 1\nitem 1\nitem 2\nitem 2\n");
        assert_eq!((printed.lost, printed.unreadable), (None, 0));
        assert_eq!(issue(&queue, printing(&code, 3, 0), &[]).probe.printed().text, "", "the buffer was emptied");
    }
}

#[test]
fn kernels_that_never_print_cost_no_buffer() {
    let fake = Fake::new();
    let device = fake.device();
    let counts =
        || ["cuMemAlloc_v2", "cuMemHostAlloc", "cuMemsetD32Async", "cuMemcpyAsync"].map(|call| fake.count(call));
    let (queue, code) = (in_order(&device), kernel(&device, "empty"));
    let before = counts();
    issue(&queue, launch(&code, "empty", &(), line(5)), &[]).probe.succeed();
    assert_eq!(counts(), before);
    let code = kernel(&device, "printing");
    for _ in 0..5 {
        issue(&queue, printing(&code, 1, 1), &[]).probe.succeed();
    }
    let after = counts();
    let added: Vec<_> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    // The next launch may come before the last one has let go of its buffer.
    assert!(added[0] <= 2 && added[1] == added[0], "launches that follow each other share: {added:?}");
    assert_eq!(added[2..], [10, 5]);
}

#[test]
fn what_finds_no_room_is_counted_and_the_rest_is_told() {
    let fake = Fake::new();
    let device = fake.device();
    let code = kernel(&device, "printing");
    let printed = issue(&with_buffer(&device, 100), printing(&code, 5, 1), &[]).probe.printed();
    assert_eq!((printed.text.as_str(), printed.lost), ("item 0\nitem 1\n", Some((3, 100))));
    let printed = issue(&with_buffer(&device, 0), printing(&code, 2, 3), &[]).probe.printed();
    assert_eq!((printed.text.as_str(), printed.lost), ("", Some((6, 0))));
}

#[test]
fn records_that_no_kernel_writes_are_not_believed() {
    let fake = Fake::new();
    let device = fake.device();
    let printed = issue(&queue(&device), printing(&kernel(&device, "printing"), 1, 101), &[]).probe.printed();
    assert_eq!((printed.text.as_str(), printed.unreadable), ("", 4000));
}

#[test]
fn many_launches_use_buffers_again_and_none_loses_a_line() {
    let fake = Fake::with(&[("depth", 1000)]);
    let device = fake.device();
    let layout = Layout::new::<u8>();
    let gate = device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory");
    let code = kernel(&device, "printing");
    // Both queues live to the end, so that neither uses the other's buffers again.
    for queue in &[queue(&device), in_order(&device)] {
        let before = fake.count("cuMemAlloc_v2");
        // SAFETY: the byte is alive, and the kernel reads it as an atomic.
        let is_open = unsafe { &*gate.as_ptr().cast::<AtomicBool>() };
        for round in 0..6 {
            is_open.store(false, Ordering::Release);
            let closed = launch(&kernel(&device, "gate"), "gate", &(gate.as_ptr() as usize), line(1));
            let first = issue(queue, closed, &[]);
            let mut last = first.data();
            // Each depends on the one before, so that none can end before the gate opens.
            let launched: Vec<Issued> = (0..MAX_PRINTING)
                .map(|number| {
                    let launched = issue(queue, printing(&code, 1 + number % 3, 1), &[last.clone()]);
                    last = launched.data();
                    launched
                })
                .collect();
            assert!(launched.iter().all(|launched| !launched.probe.is_complete()), "enqueuing waits for nothing");
            assert_eq!(fake.count("cuMemAlloc_v2") - before, MAX_PRINTING as u64, "round {round}");
            is_open.store(true, Ordering::Release);
            for (number, launched) in launched.iter().enumerate() {
                let expected: String = (0..=number % 3).map(|item| format!("item {item}\n")).collect();
                assert_eq!(launched.probe.printed().text, expected, "launch {number} of round {round}");
            }
        }
    }
    // SAFETY: allocated above; the kernels have ended.
    unsafe { device.memory().free(gate, UsmKind::Host, layout) };
}

#[test]
fn buffers_are_given_back_with_their_queue() {
    let fake = Fake::new();
    let device = fake.device();
    let code = kernel(&device, "printing");
    let before = fake.held();
    let queue = queue(&device);
    issue(&queue, printing(&code, 1, 1), &[]).probe.succeed();
    let held = fake.held();
    assert!(held[0] > before[0], "{held:?}");
    drop(queue);
    for _ in 0..1000 {
        if fake.held()[0] == before[0] {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{:?} is held, and {before:?} was before", fake.held());
}
