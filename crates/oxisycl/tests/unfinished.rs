//! What a command that has not ended costs in memory (S-F23): counted by the allocator, since commands are held back until all are there.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use oxisycl::prelude::*;

use support::{Gate, alone, eventually, in_order, simulated, watchdog};

/// The system's allocator with a count of the bytes that are in use.
struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call is the system allocator's with the same arguments; counting touches no memory of theirs.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const N_COMMANDS: usize = 10_000;
/// The most bytes: a little above what was counted.
const LIMIT: usize = 936;

/// Who keeps the commands that wait.
#[derive(Clone, Copy, Debug)]
enum Kept {
    /// The first is a host task, so that the runtime keeps the others.
    ByTheRuntime,
    /// The first is a kernel, so that the device has the others.
    ByTheDevice,
}

/// Bytes per command while many of them wait for the first.
fn per_command(queue: &Queue, buffer: &Buffer<i32, 1>, kept: Kept) -> usize {
    let gate: &'static Gate = Box::leak(Box::new(Gate::new()));
    let first = queue.submit(|cg| match kept {
        Kept::ByTheRuntime => {
            let _data = cg.access_host(buffer, ReadWrite);
            cg.host_task(move |_| gate.pass())
        }
        Kept::ByTheDevice => {
            let data = cg.access(buffer, ReadWrite);
            cg.single_task(move |task| {
                gate.pass();
                data.set_at(task, 0, 0);
            })
        }
    });
    let submit = || {
        let submitted = queue.submit(|cg| {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(buffer.range(), move |item| data.update(item, |x| x + 1))
        });
        submitted.unwrap();
    };
    // Lists that grow by doubling are as long as they get.
    (0..N_COMMANDS).for_each(|_| submit());
    let before = BYTES.load(Ordering::Relaxed);
    (0..N_COMMANDS).for_each(|_| submit());
    let bytes = BYTES.load(Ordering::Relaxed) - before;
    gate.open();
    first.unwrap().wait().unwrap();
    queue.wait().unwrap();
    usize::try_from(bytes).unwrap() / N_COMMANDS
}

#[test]
fn an_unfinished_command_has_a_bounded_cost() {
    let _watchdog = watchdog();
    let _alone = alone();
    let host = Queue::builder().device(&Device::select(oxisycl::selector::cpu_selector).unwrap()).build().unwrap();
    let (devices, _) = simulated(1);
    for (name, queue) in [
        ("host", host.clone()),
        ("host, in order", in_order(host.device())),
        ("simulated", Queue::new(&devices[0]).unwrap()),
    ] {
        for kept in [Kept::ByTheRuntime, Kept::ByTheDevice] {
            let buffer = Buffer::from_vec(vec![0; 64]).unwrap();
            let bytes = per_command(&queue, &buffer, kept);
            println!("{name}: {bytes} bytes per unfinished command, kept {kept:?}");
            assert!(bytes <= LIMIT, "{name}: {bytes} bytes per unfinished command, at most {LIMIT}");
            // What has ended costs nothing.
            eventually("nothing is live", || oxisycl::observe::counters().live_nodes() == 0);
            assert_eq!(buffer.to_vec().unwrap(), [2 * N_COMMANDS as i32; 64]);
        }
    }
}
