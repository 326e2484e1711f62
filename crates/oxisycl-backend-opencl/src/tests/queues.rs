//! Queues of the driver are made once and used again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl_backend::QueueOptions;
use oxisycl_backend_testing::harness::create_queue;

use super::losses::fill;
use super::{real, state, usable_devices};
use crate::lane::ClQueue;
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
