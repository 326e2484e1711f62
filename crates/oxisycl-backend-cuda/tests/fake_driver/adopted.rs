//! Streams and events that other code has made.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxisycl_backend::{BackendError, Command, Device, NativeHandle, Queue, QueueOptions};

use crate::fake::Fake;
use crate::support::{in_order, issue, kernel, queue};
use crate::words::Words;

type Handle = *mut c_void;

/// Other code that uses the driver.
struct User<'f> {
    fake: &'f Fake,
    context: Handle,
}

impl<'f> User<'f> {
    fn new(fake: &'f Fake, device: &Arc<dyn Device>) -> Self {
        Self { fake, context: in_order(device).native_handle(NativeHandle::Context).expect("a context") }
    }

    /// Calls a function of the driver with the context current.
    ///
    /// # Safety
    /// `call` calls the function with what it takes.
    unsafe fn call<T: Copy>(&self, name: &str, call: impl FnOnce(T) -> i32) {
        // SAFETY: the types of the driver's functions; the context is live.
        unsafe {
            let push = self.fake.call::<unsafe extern "system" fn(Handle) -> i32>("cuCtxPushCurrent_v2").expect("push");
            let pop =
                self.fake.call::<unsafe extern "system" fn(*mut Handle) -> i32>("cuCtxPopCurrent_v2").expect("pop");
            assert_eq!(push(self.context), 0);
            assert_eq!(call(self.fake.call::<T>(name).expect("the call")), 0, "{name}");
            let mut popped = ptr::null_mut();
            assert_eq!(pop(&raw mut popped), 0);
        }
    }

    fn stream(&self) -> Handle {
        let mut stream = ptr::null_mut();
        // SAFETY: the driver's type; writes a handle.
        unsafe {
            self.call::<unsafe extern "system" fn(*mut Handle, u32, i32) -> i32>(
                "cuStreamCreateWithPriority",
                |make| make(&raw mut stream, 1, 0),
            );
        }
        stream
    }

    /// An event behind what is on the stream.
    fn record(&self, stream: Handle) -> Handle {
        let mut event = ptr::null_mut();
        // SAFETY: the driver's types, and a live stream; writes a handle.
        unsafe {
            self.call::<unsafe extern "system" fn(*mut Handle, u32) -> i32>("cuEventCreate", |make| {
                make(&raw mut event, 2)
            });
            self.call::<unsafe extern "system" fn(Handle, Handle) -> i32>("cuEventRecord", |record| {
                record(event, stream)
            });
        }
        event
    }

    fn wait(&self, stream: Handle, event: Handle) {
        // SAFETY: the driver's type, and live handles.
        unsafe {
            self.call::<unsafe extern "system" fn(Handle, Handle, u32) -> i32>("cuStreamWaitEvent", |wait| {
                wait(stream, event, 0)
            });
        }
    }

    fn memset(&self, stream: Handle, words: &Words, value: u32) {
        let target = words.at(0).as_ptr() as u64;
        // SAFETY: the driver's type, a live stream, and memory that the test keeps.
        unsafe {
            self.call::<unsafe extern "system" fn(u64, u32, usize, Handle) -> i32>("cuMemsetD32Async", |memset| {
                memset(target, value, 1, stream)
            });
        }
    }
}

fn adopt(device: &Arc<dyn Device>, stream: Handle, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
    // SAFETY: null, or a stream of the fake driver, which lives as long as the process.
    let queue = unsafe { device.adopt_queue(stream, options) }?;
    oxisycl_backend::poller::start(&queue.info()).expect("a thread");
    Ok(queue)
}

/// Issues a command that waits for the event.
fn wait_for(queue: &Arc<dyn Queue>, event: Handle) -> Command {
    // SAFETY: an event of the fake driver, which lives as long as the process.
    unsafe { queue.native_wait(event) }.expect("a live event")
}

#[test]
fn commands_on_a_borrowed_stream_come_between_the_user_s_own_work() {
    let fake = Fake::new();
    let device = fake.device();
    let user = User::new(&fake, &device);
    let (affine, gate) = (kernel(&device, "affine"), kernel(&device, "gate"));
    let stream = user.stream();
    let n_destroyed = fake.count("cuStreamDestroy_v2");
    let queue = adopt(&device, stream, &QueueOptions::default()).expect("a stream of the device");
    assert!(queue.info().keeps_order && !queue.info().holds_back);
    assert_eq!(queue.native_handle(NativeHandle::Queue), Some(stream));
    let words = Words::new(&device);
    issue(&queue, words.gate(&gate), &[]);
    for round in 0..20 {
        issue(&queue, words.affine(&affine, 5, 1), &[]);
        user.memset(stream, &words, 100 + round);
        issue(&queue, words.affine(&affine, 3, 7), &[]);
    }
    let last = issue(&queue, words.affine(&affine, 1, 1), &[]);
    words.open();
    last.probe.succeed();
    // Any other order gives another number.
    assert_eq!(words.at(0).load(Ordering::Acquire), 3 * 119 + 8);
    drop((last, queue));
    user.memset(stream, &words, 9);
    assert_eq!(fake.count("cuStreamDestroy_v2"), n_destroyed, "the stream is the user's");
}

#[test]
fn a_marker_on_a_borrowed_stream_ends_after_the_user_s_work_before_it() {
    let fake = Fake::new();
    let device = fake.device();
    let user = User::new(&fake, &device);
    let (affine, gate) = (kernel(&device, "affine"), kernel(&device, "gate"));
    let (blocked, other) = (in_order(&device), queue(&device));
    let words = Words::new(&device);
    issue(&blocked, words.gate(&gate), &[]);
    let stream = user.stream();
    user.wait(stream, user.record(blocked.native_handle(NativeHandle::Queue).expect("a stream")));
    let queue = adopt(&device, stream, &QueueOptions::default()).expect("a stream of the device");
    let marker = issue(&queue, Command::Marker, &[]);
    let behind = issue(&other, words.affine(&affine, 0, 5), &[marker.data()]);
    for _ in 0..20 {
        let mut n_helps = 0;
        queue.help(&mut |_| {
            n_helps += 1;
            n_helps < 3
        });
    }
    assert!(!marker.probe.is_complete() && !behind.probe.is_complete());
    words.open();
    behind.probe.succeed();
    marker.probe.succeed();
}

#[test]
fn commands_on_a_borrowed_stream_have_times() {
    let fake = Fake::new();
    let device = fake.device();
    let stream = User::new(&fake, &device).stream();
    let options = QueueOptions { profiling: true, ..QueueOptions::default() };
    let queue = adopt(&device, stream, &options).expect("a stream of the device");
    let words = Words::new(&device);
    let ran = issue(&queue, words.affine(&kernel(&device, "affine"), 0, 5), &[]);
    assert!(ran.probe.wait().times.is_some());
}

#[test]
fn commands_of_all_queues_wait_for_a_native_event() {
    let fake = Fake::new();
    let device = fake.device();
    let user = User::new(&fake, &device);
    let (affine, gate) = (kernel(&device, "affine"), kernel(&device, "gate"));
    for (waiting, using) in [(in_order(&device), queue(&device)), (queue(&device), in_order(&device))] {
        let (blocked, words) = (in_order(&device), Words::new(&device));
        issue(&blocked, words.gate(&gate), &[]);
        let event = user.record(blocked.native_handle(NativeHandle::Queue).expect("a stream"));
        let waits = issue(&waiting, wait_for(&waiting, event), &[]);
        let behind = issue(&using, words.affine(&affine, 0, 5), &[waits.data()]);
        issue(&in_order(&device), Command::Marker, &[]).probe.succeed();
        assert!(!waits.probe.is_complete() && !behind.probe.is_complete());
        words.open();
        waits.probe.succeed();
        behind.probe.succeed();
        assert_eq!(words.at(0).load(Ordering::Acquire), 5);
    }
}

#[test]
fn handles_that_are_not_the_device_s_are_refused_with_their_values() {
    let fake = Fake::with(&[("devices", 2)]);
    let [device, other] = fake.devices().try_into().ok().expect("two devices");
    let user = User::new(&fake, &device);
    let refused = |handle: Handle| {
        let error = adopt(&device, handle, &QueueOptions::default()).err().expect("an error");
        assert!(matches!(error, BackendError::Handle { what: "queue", .. }), "{error}");
        error.to_string()
    };
    let expected = format!(": expected a stream of context {:p}", user.context);
    assert!(refused(ptr::null_mut()).ends_with(&format!("cannot take the native queue 0x0{expected}")));
    let per_thread = refused(ptr::without_provenance_mut(2));
    assert!(per_thread.contains("another stream on each thread") && per_thread.ends_with(&expected), "{per_thread}");
    let foreign = User::new(&fake, &other);
    let stream = foreign.stream();
    let message = refused(stream);
    let found = format!(
        "device \"{}\" cannot take the native queue {stream:p} of context {:p}",
        device.info().name,
        foreign.context
    );
    assert_eq!(message, format!("{found}{expected}"));
    fake.fail("cuStreamGetCtx", 0, 400);
    let message = refused(user.stream());
    assert!(message.contains("for which cuStreamGetCtx says"), "{message}");

    let queue = in_order(&device);
    // SAFETY: null, and an event of the fake driver.
    let wait = |event| unsafe { queue.native_wait(event) }.expect_err("an error").to_string();
    assert!(wait(ptr::null_mut()).ends_with("cannot take the native event 0x0: expected an event of the driver"));
    let event = user.record(user.stream());
    fake.fail("cuEventQuery", 0, 400);
    let message = wait(event);
    assert!(message.contains(&format!("{event:p}, for which cuEventQuery says")), "{message}");
    issue(&queue, wait_for(&queue, event), &[]).probe.succeed();
}

#[test]
fn an_event_of_a_command_is_the_caller_s_own_and_happens_when_the_command_is_over() {
    let fake = Fake::new();
    let device = fake.device();
    let (affine, gate) = (kernel(&device, "affine"), kernel(&device, "gate"));
    // Before other code has the context: small kernels are held.
    let queue = in_order(&device);
    let words = Words::new(&device);
    issue(&queue, words.gate(&gate), &[]);
    let held = issue(&queue, words.affine(&affine, 0, 5), &[]);
    let last = issue(&queue, words.affine(&affine, 3, 7), &[]);
    let events = held.event.native_events().expect("the driver makes an event");
    let user = User::new(&fake, &device);
    assert_eq!(events.len(), 1);
    let stream = user.stream();
    user.wait(stream, events[0]);
    user.memset(stream, &words, 100);
    let adopted = adopt(&device, stream, &QueueOptions::default()).expect("a stream of the device");
    let behind = issue(&adopted, words.affine(&affine, 3, 1), &[last.data()]);
    assert!(!behind.probe.is_complete());
    words.open();
    [&held, &last, &behind].iter().for_each(|issued| issued.probe.succeed());
    let found = words.at(0).load(Ordering::Acquire);
    // The memset is behind both kernels, which one call has launched, or behind the first.
    assert!([301, 3 * (3 * 100 + 7) + 1].contains(&found), "{found}");
    assert_eq!(held.event.native_events().expect("the command is over"), []);
    let n_destroyed = fake.count("cuEventDestroy_v2");
    // SAFETY: the driver's type, and the caller's event.
    unsafe {
        user.call::<unsafe extern "system" fn(Handle) -> i32>("cuEventDestroy_v2", |destroy| destroy(events[0]));
    }
    assert_eq!(fake.count("cuEventDestroy_v2"), n_destroyed + 1);
    fake.fail("cuEventRecord", 0, 2);
    words.at(3).store(0, Ordering::Release);
    let next = issue(&queue, words.gate(&gate), &[]);
    let error = next.event.native_events().expect_err("the driver refuses");
    assert!(error.to_string().contains("cuEventRecord"), "{error}");
    assert_eq!(fake.count("cuEventDestroy_v2"), n_destroyed + 2, "the event is not lost");
    words.open();
    next.probe.succeed();
}
