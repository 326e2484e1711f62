//! Native commands: other code's work on a stream, in order with kernels.

use std::sync::Arc;

use oxisycl_backend::{
    BackendError, Batching, Command, FailureKind, NativeCommand, NativeHandle, NativeQueue, Queue, QueueOptions,
};
use oxisycl_backend_testing::harness::create_queue;

use crate::fake::Fake;
use crate::support::{issue, kernel};
use crate::words::Words;

type Memset = unsafe extern "system" fn(u64, u32, usize, *mut std::ffi::c_void) -> i32;

fn native(work: impl FnOnce(NativeQueue) -> Result<(), BackendError> + Send + 'static) -> Command {
    Command::Native(Box::new(NativeCommand::new("memset".to_owned(), Box::new(work))))
}

/// Sets a word to a number on the stream that the command is given.
fn memset(fake: &Fake, words: &Words, value: u32) -> Command {
    // SAFETY: the type of the driver's function.
    let memset = unsafe { fake.call::<Memset>("cuMemsetD32Async") }.expect("the call");
    let target = words.at(0).as_ptr() as u64;
    native(move |native| {
        assert!(!native.context.is_null() && native.device.addr() == 0);
        // SAFETY: a live stream and memory; the context is current.
        assert_eq!(unsafe { memset(target, value, 1, native.queue) }, 0);
        Ok(())
    })
}

fn queues(device: &Arc<dyn oxisycl_backend::Device>) -> Vec<Arc<dyn Queue>> {
    let options = [(false, Batching::On), (true, Batching::On), (true, Batching::Always), (true, Batching::Off)];
    let options = options.map(|(in_order, batching)| QueueOptions { in_order, batching, ..QueueOptions::default() });
    options.iter().map(|options| create_queue(device, options).expect("a queue")).collect()
}

#[test]
fn native_work_comes_between_the_kernels_before_and_after_it() {
    let fake = Fake::new();
    let device = fake.device();
    let affine = kernel(&device, "affine");
    for queue in queues(&device) {
        assert!(queue.info().takes_native);
        let words = Words::new(&device);
        let gate = issue(&queue, words.gate(&kernel(&device, "gate")), &[]);
        let first = issue(&queue, words.affine(&affine, 0, 5), &[gate.data()]);
        let set = issue(&queue, memset(&fake, &words, 100), &[first.data()]);
        let last = issue(&queue, words.affine(&affine, 3, 7), &[set.data()]);
        assert!(!set.probe.is_complete(), "the call has returned, and its work waits");
        words.open();
        last.probe.succeed();
        set.probe.succeed();
        // Any other order gives another number.
        assert_eq!(words.at(0).load(std::sync::atomic::Ordering::Acquire), 307);
    }
}

#[test]
fn work_that_fails_or_panics_fails_its_command_alone_after_what_it_has_enqueued() {
    let fake = Fake::new();
    let device = fake.device();
    let affine = kernel(&device, "affine");
    for queue in queues(&device) {
        let words = Words::new(&device);
        let fails = native(|_| Err(BackendError::NotCompiled { reason: "no handle".to_owned() }));
        let failure = issue(&queue, fails, &[]).probe.fail();
        assert!(failure.to_string().contains("no handle") && failure.to_string().contains("memset"), "{failure}");
        let failure = issue(&queue, native(|_| panic!("a mistake")), &[]).probe.fail();
        assert!(matches!(failure.kind(), FailureKind::Panic { message, .. } if message == "a mistake"), "{failure}");
        issue(&queue, words.affine(&affine, 0, 5), &[]).probe.succeed();
    }
}

#[test]
fn a_native_command_needs_no_handle_that_ends_batching() {
    let fake = Fake::new();
    let device = fake.device();
    let options = QueueOptions { in_order: true, ..QueueOptions::default() };
    let queue = create_queue(&device, &options).expect("a queue");
    let words = Words::new(&device);
    issue(&queue, memset(&fake, &words, 1), &[]).probe.succeed();
    assert!(queue.info().holds_back);
    assert!(queue.native_handle(NativeHandle::Queue).is_some());
    assert!(!queue.info().holds_back, "a stream that is given out for good ends it");
}
