//! A device that is lost: by an event, by a flush, while other devices go on.

use std::alloc::Layout;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use oxisycl_backend::{
    BackendError, Command, Completion, Dependency, DependencyKind, Device, Event, FailureKind, FillCommand,
    FillPattern, Outcome, PitchedBox, Queue, QueueOptions, UsmKind,
};
use oxisycl_backend_testing::harness::create_queue;

use super::{real, usable_devices};
use crate::sys::{Code, Handle, code};

#[derive(Default)]
pub(super) struct Probe {
    outcome: Mutex<Option<Outcome>>,
    changed: Condvar,
}

impl Completion for Probe {
    unsafe fn complete(self: Arc<Self>, outcome: Outcome) {
        *self.outcome.lock().unwrap() = Some(outcome);
        self.changed.notify_all();
    }
}

impl Probe {
    pub(super) fn wait(&self) -> Outcome {
        let outcome = self.outcome.lock().unwrap();
        let limit = Duration::from_secs(30);
        let (outcome, _) = self.changed.wait_timeout_while(outcome, limit, |outcome| outcome.is_none()).unwrap();
        outcome.clone().expect("a command did not complete")
    }
}

const LAYOUT: Layout = Layout::new::<[u64; 8]>();

/// Fills some memory of a device, and waits.
pub(super) fn fill(device: &Arc<dyn Device>, queue: &Arc<dyn Queue>) -> Result<Outcome, BackendError> {
    fill_with(device, queue, &[1]).map(|(outcome, _)| outcome)
}

/// Fills memory of a device with a pattern, waits, and gives the command's event, too.
pub(super) fn fill_with(
    device: &Arc<dyn Device>,
    queue: &Arc<dyn Queue>,
    pattern: &[u8],
) -> Result<(Outcome, Arc<dyn Event>), BackendError> {
    let memory = device.memory().allocate(UsmKind::Device, LAYOUT, false)?;
    let target = PitchedBox { memory: device.info().memory.id, pointer: memory.as_ptr(), row_pitch: 0, slice_pitch: 0 };
    let command = FillCommand { target, pattern: FillPattern::from_slice(pattern), extent: [1, 1, 20] };
    let probe = Arc::new(Probe::default());
    // SAFETY: the memory lives until the command has ended.
    let accepted = unsafe { queue.issue(Command::from(command), &[], probe.clone()) };
    let outcome = accepted.map(|event| (probe.wait(), event));
    // SAFETY: allocated above, and the command has ended or was refused.
    unsafe { device.memory().free(memory, UsmKind::Device, LAYOUT) };
    outcome
}

fn queue(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    create_queue(device, &QueueOptions::default()).expect("a queue")
}

/// What a test says of the state of every command.
pub(super) trait Status {
    /// It, or `None` for what the driver says.
    fn status() -> Option<Code>;
}

/// The driver's function, whose answer is replaced by that of `S`.
pub(super) unsafe extern "system" fn event_info<S: Status>(
    event: Handle,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> Code {
    let get = real().clGetEventInfo;
    // SAFETY: the caller's arguments.
    let result = unsafe { get(event, what, size, value, needed) };
    if let Some(status) = S::status() {
        // SAFETY: the caller asks for a status, which is a number of this size.
        unsafe { value.cast::<Code>().write(status) };
    }
    result
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_command_that_the_driver_ends_with_an_error_costs_the_device_and_names_it() {
    static FAILS: AtomicBool = AtomicBool::new(false);
    struct Fails;
    impl Status for Fails {
        fn status() -> Option<Code> {
            FAILS.load(Ordering::Relaxed).then_some(code::OUT_OF_RESOURCES)
        }
    }
    let devices = usable_devices(|functions| functions.clGetEventInfo = event_info::<Fails>);
    for (device, other) in devices.into_iter().zip(usable_devices(|_| {})) {
        let (queue_of_lost, other_queue) = (queue(&device), queue(&device));
        assert!(fill(&device, &queue_of_lost).expect("accepted").result.is_ok());
        FAILS.store(true, Ordering::Relaxed);
        let failure = fill(&device, &queue_of_lost).expect("accepted").result.expect_err("the driver has ended it");
        FAILS.store(false, Ordering::Relaxed);
        let FailureKind::Device(BackendError::DeviceLost { reason, .. }) = failure.kind() else { panic!("{failure}") };
        assert!(reason.contains("CL_OUT_OF_RESOURCES") && reason.contains("(-5, found by the command)"), "{reason}");
        // Everything else of the device says so, too.
        let refused = fill(&device, &other_queue).expect_err("the device is lost");
        assert!(matches!(refused, BackendError::DeviceLost { .. }), "{refused}");
        assert!(matches!(other_queue.flush(), Err(BackendError::DeviceLost { .. })));
        assert!(device.create_queue(&QueueOptions::default()).is_err());
        // Others go on.
        assert!(fill(&other, &queue(&other)).expect("accepted").result.is_ok());
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn what_waits_for_a_lost_device_ends() {
    static FAILS: AtomicBool = AtomicBool::new(false);
    struct RunsOrFails;
    impl Status for RunsOrFails {
        fn status() -> Option<Code> {
            Some(if FAILS.load(Ordering::Relaxed) { -9999 } else { code::RUNNING })
        }
    }
    for device in usable_devices(|functions| functions.clGetEventInfo = event_info::<RunsOrFails>) {
        let queue = queue(&device);
        let memory = device.memory().allocate(UsmKind::Device, LAYOUT, false).expect("there is memory");
        let target =
            PitchedBox { memory: device.info().memory.id, pointer: memory.as_ptr(), row_pitch: 0, slice_pitch: 0 };
        let command = || {
            let pattern = FillPattern::from_slice(&[1]);
            Command::from(FillCommand { target, pattern, extent: [1, 1, 64] })
        };
        let mut last: Option<Dependency> = None;
        let mut probes = Vec::new();
        for link in 0..64 {
            let before: Vec<Dependency> = last.take().into_iter().collect();
            let probe = Arc::new(Probe::default());
            let command = if link % 2 == 0 { command() } else { Command::Marker };
            // SAFETY: the memory is never freed.
            let event = unsafe { queue.issue(command, &before, probe.clone()) }.expect("accepted");
            last = Some(Dependency { event, kind: DependencyKind::Order });
            probes.push(probe);
        }
        std::thread::sleep(Duration::from_millis(20));
        assert!(probes.iter().all(|probe| probe.outcome.lock().unwrap().is_none()));
        FAILS.store(true, Ordering::Relaxed);
        for probe in probes {
            let failure = probe.wait().result.expect_err("the device is lost");
            assert!(matches!(failure.kind(), FailureKind::Device(BackendError::DeviceLost { .. })), "{failure}");
        }
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn commands_of_a_lost_device_whose_end_is_never_told_are_given_up() {
    struct Runs;
    impl Status for Runs {
        fn status() -> Option<Code> {
            Some(code::RUNNING)
        }
    }
    unsafe extern "system" fn gone(_queue: Handle) -> Code {
        code::INVALID_COMMAND_QUEUE
    }
    for device in usable_devices(|functions| (functions.clGetEventInfo, functions.clFlush) = (event_info::<Runs>, gone))
    {
        let error = fill(&device, &queue(&device)).expect("accepted").result.expect_err("the queue is gone");
        assert!(error.to_string().contains("CL_INVALID_COMMAND_QUEUE"), "{error}");
    }
}
