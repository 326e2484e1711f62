//! Queues of the driver are made once and used again, and go on though they wait for each other.

use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl_backend::{
    Command, Dependency, DependencyKind, Event, FillCommand, FillPattern, PitchedBox, QueueOptions, UsmKind,
};
use oxisycl_backend_testing::harness::create_queue;
use parking_lot::Mutex;

use super::losses::{Probe, fill};
use super::{real, state, usable_devices};
use crate::lane::{ClQueue, ClTask};
use crate::native::native_queue;
use crate::sys::{Code, Handle};

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_queue_that_is_dropped_is_used_again_unless_its_handle_was_given_out() {
    static N_MADE: AtomicUsize = AtomicUsize::new(0);
    static N_RELEASED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "system" fn make(
        context: Handle,
        device: Handle,
        properties: *const u64,
        result: *mut Code,
    ) -> Handle {
        N_MADE.fetch_add(1, Ordering::Relaxed);
        let make = real().clCreateCommandQueueWithProperties;
        // SAFETY: the caller's arguments.
        unsafe { make(context, device, properties, result) }
    }
    unsafe extern "system" fn release(queue: Handle) -> Code {
        N_RELEASED.fetch_add(1, Ordering::Relaxed);
        let release = real().clReleaseCommandQueue;
        // SAFETY: the caller's argument.
        unsafe { release(queue) }
    }
    let replaced = usable_devices(|functions| {
        functions.clCreateCommandQueueWithProperties = make;
        functions.clReleaseCommandQueue = release;
    });
    for device in &replaced {
        let in_order = QueueOptions { in_order: true, ..QueueOptions::default() };
        let before = N_MADE.load(Ordering::Relaxed);
        for _ in 0..20 {
            let queue = create_queue(device, &in_order).expect("a queue");
            let outcome = fill(device, &queue).expect("the command is accepted");
            outcome.result.expect("the command succeeds");
            let shared = Arc::downgrade(&ClQueue::of(&*queue).expect("a queue of OpenCL").shared);
            drop(queue);
            // The thread that called the completion releases the task after that.
            while shared.strong_count() > 0 {
                std::thread::yield_now();
            }
        }
        assert_eq!(N_MADE.load(Ordering::Relaxed) - before, 1, "one queue serves one after the other");
        let queues = [0, 1].map(|_| create_queue(device, &in_order).expect("a queue"));
        assert_eq!(N_MADE.load(Ordering::Relaxed) - before, 2, "queues of the same time are two");
        let known = native_queue(&*queues[0]);
        drop(queues);
        let others = [0, 1].map(|_| create_queue(device, &in_order).expect("a queue"));
        assert_eq!(N_MADE.load(Ordering::Relaxed) - before, 3, "a queue that others know is not used again");
        for other in &others {
            assert_ne!(native_queue(&**other), known);
        }
        // Queues of other properties are others.
        drop(create_queue(device, &QueueOptions { profiling: true, ..in_order }).expect("a queue"));
        assert_eq!(N_MADE.load(Ordering::Relaxed) - before, 4);
    }
    let all_rest = replaced.iter().all(|device| state(device).context.quirks.queue_release);
    drop(replaced);
    if all_rest {
        assert_eq!(N_RELEASED.load(Ordering::Relaxed), 0, "queues that have just worked are not released");
    }
}

#[test]
fn a_task_is_small() {
    // Every command that has not ended is one.
    assert!(size_of::<ClTask>() <= 320, "{} bytes", size_of::<ClTask>());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn queues_whose_commands_wait_for_each_others_go_on() {
    const LAYOUT: Layout = Layout::new::<[u64; 8]>();
    for device in usable_devices(|_| {}) {
        for in_order in [true, false] {
            let options = QueueOptions { in_order, ..QueueOptions::default() };
            let queues = [0, 1].map(|_| create_queue(&device, &options).expect("a queue"));
            let memory = device.memory().allocate(UsmKind::Device, LAYOUT, true).expect("memory");
            let address = memory.as_ptr().expose_provenance();
            let last: [Mutex<Option<Arc<dyn Event>>>; 2] = Default::default();
            let submit = &|own: usize| {
                let pointer = std::ptr::with_exposed_provenance_mut(address);
                let target = PitchedBox { memory: device.info().memory.id, pointer, row_pitch: 0, slice_pitch: 0 };
                let issue = |number: usize| {
                    let other = if number.is_multiple_of(20) { 1 - own } else { own };
                    let event = last[other].lock().clone();
                    let before = event.map(|event| Dependency { event, kind: DependencyKind::Order });
                    let pattern = FillPattern::from_slice(&[7]);
                    let command = Command::from(FillCommand { target, pattern, extent: [1, 1, 64] });
                    let probe = Arc::new(Probe::default());
                    // SAFETY: the memory lives until all commands have ended; they write the same bytes.
                    let event = unsafe { queues[own].issue(command, before.as_slice(), probe.clone()) };
                    *last[own].lock() = Some(event.expect("accepted"));
                    probe
                };
                let probes: Vec<_> = (0..640).map(issue).collect();
                probes.iter().for_each(|probe| probe.wait().result.expect("it is a fill"));
            };
            std::thread::scope(|scope| [0, 1].map(|own| scope.spawn(move || submit(own))).map(drop));
            // SAFETY: allocated above, and all commands have ended.
            unsafe { device.memory().free(memory, UsmKind::Device, LAYOUT) };
        }
    }
}
