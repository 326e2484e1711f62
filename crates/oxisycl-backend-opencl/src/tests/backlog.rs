//! Commands that are held back because the driver has enough of them.

use std::alloc::Layout;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::{
    BackendError, Command, Dependency, DependencyKind, Device, Event, FailureKind, FillCommand, FillPattern,
    PitchedBox, Queue, QueueOptions, UsmKind,
};
use oxisycl_backend_testing::harness::create_queue;
use parking_lot::Mutex;

use super::losses::{Probe, Status, event_info};
use super::usable_devices;
use crate::backlog::DEPTH;
use crate::lane::ClTask;
use crate::native::native_queue;
use crate::sys::{Code, Handle, code};

const N: usize = 3 * DEPTH;
const LAYOUT: Layout = Layout::new::<[u64; 8]>();

/// Fills of the same memory, each behind the one before.
fn fills(device: &Arc<dyn Device>, queue: &Arc<dyn Queue>, memory: NonNull<u8>) -> Vec<(Arc<dyn Event>, Arc<Probe>)> {
    let target = PitchedBox { memory: device.memory().id(), pointer: memory.as_ptr(), row_pitch: 0, slice_pitch: 0 };
    let mut fills: Vec<(Arc<dyn Event>, Arc<Probe>)> = Vec::new();
    for number in 0..N {
        let before = fills.last().map(|(event, _)| Dependency { event: event.clone(), kind: DependencyKind::Data });
        let pattern = FillPattern::from_slice(&[number as u8]);
        let command = Command::Fill(FillCommand { target, pattern, extent: [1, 1, 64] });
        let probe = Arc::new(Probe::default());
        // SAFETY: the tests keep the memory until the commands have ended.
        let event = unsafe { queue.issue(command, before.as_slice(), probe.clone()) }.expect("accepted");
        fills.push((event, probe));
    }
    fills
}

#[test]
fn a_task_is_small() {
    // Every command that has not ended is one.
    assert!(size_of::<ClTask>() <= 320, "{} bytes", size_of::<ClTask>());
}

fn n_held_back(fills: &[(Arc<dyn Event>, Arc<Probe>)]) -> usize {
    let is_held_back = |event: &dyn Event| {
        let event: &dyn Any = event;
        event.downcast_ref::<ClTask>().expect("an event of OpenCL").issued.is_held_back()
    };
    fills.iter().filter(|(event, _)| is_held_back(&**event)).count()
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn the_driver_has_a_bounded_number_of_commands_of_a_queue_unless_others_may_use_it() {
    static RUNS: AtomicBool = AtomicBool::new(false);
    struct Runs;
    impl Status for Runs {
        fn status() -> Option<Code> {
            RUNS.load(Ordering::Relaxed).then_some(code::RUNNING)
        }
    }
    for device in usable_devices(|functions| functions.clGetEventInfo = event_info::<Runs>) {
        for in_order in [true, false] {
            let queue = create_queue(&device, &QueueOptions { in_order, ..QueueOptions::default() }).expect("a queue");
            let memory = device.memory().allocate(UsmKind::Device, LAYOUT, true).expect("memory");
            RUNS.store(true, Ordering::Relaxed);
            let held_back = fills(&device, &queue, memory);
            assert_eq!(n_held_back(&held_back), N - DEPTH);
            RUNS.store(false, Ordering::Relaxed);
            held_back.iter().for_each(|(_, probe)| probe.wait().result.expect("it is a fill"));
            RUNS.store(true, Ordering::Relaxed);
            let known_outside = fills(&device, &queue, memory);
            native_queue(&*queue).expect("a queue of OpenCL");
            assert_eq!(n_held_back(&known_outside), 0);
            let later = fills(&device, &queue, memory);
            assert_eq!(n_held_back(&later), 0);
            RUNS.store(false, Ordering::Relaxed);
            known_outside.iter().chain(&later).for_each(|(_, probe)| probe.wait().result.expect("it is a fill"));
            // SAFETY: allocated above, and all commands have ended.
            unsafe { device.memory().free(memory, UsmKind::Device, LAYOUT) };
        }
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_command_that_the_driver_refuses_when_it_is_handed_over_fails_alone() {
    static RUNS: AtomicBool = AtomicBool::new(true);
    struct Runs;
    impl Status for Runs {
        fn status() -> Option<Code> {
            RUNS.load(Ordering::Relaxed).then_some(code::RUNNING)
        }
    }
    unsafe extern "system" fn no_marker(_queue: Handle, _n: u32, _events: *const Handle, _event: *mut Handle) -> Code {
        code::OUT_OF_RESOURCES
    }
    for device in usable_devices(|functions| {
        (functions.clGetEventInfo, functions.clEnqueueMarkerWithWaitList) = (event_info::<Runs>, no_marker);
    }) {
        let queue =
            create_queue(&device, &QueueOptions { in_order: true, ..QueueOptions::default() }).expect("a queue");
        let memory = device.memory().allocate(UsmKind::Device, LAYOUT, true).expect("memory");
        RUNS.store(true, Ordering::Relaxed);
        let before = fills(&device, &queue, memory);
        let refused = Arc::new(Probe::default());
        // SAFETY: a marker uses no memory.
        unsafe { queue.issue(Command::Marker, &[], refused.clone()) }.expect("accepted");
        let behind = fills(&device, &queue, memory);
        RUNS.store(false, Ordering::Relaxed);
        let failure = refused.wait().result.expect_err("the driver has refused it");
        let FailureKind::Device(BackendError::Driver { call, .. }) = failure.kind() else { panic!("{failure}") };
        assert_eq!(*call, "clEnqueueMarkerWithWaitList");
        before.iter().chain(&behind).for_each(|(_, probe)| probe.wait().result.expect("it is a fill"));
        // SAFETY: allocated above, and all commands have ended.
        unsafe { device.memory().free(memory, UsmKind::Device, LAYOUT) };
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn queues_whose_commands_wait_for_each_others_go_on() {
    for device in usable_devices(|_| {}) {
        for in_order in [true, false] {
            let options = QueueOptions { in_order, ..QueueOptions::default() };
            let queues = [0, 1].map(|_| create_queue(&device, &options).expect("a queue"));
            let memory = device.memory().allocate(UsmKind::Device, LAYOUT, true).expect("memory");
            let address = memory.as_ptr().expose_provenance();
            let last: [Mutex<Option<Arc<dyn Event>>>; 2] = Default::default();
            let submit = &|own: usize| {
                let pointer = std::ptr::with_exposed_provenance_mut(address);
                let target = PitchedBox { memory: device.memory().id(), pointer, row_pitch: 0, slice_pitch: 0 };
                let issue = |number: usize| {
                    let other = if number.is_multiple_of(20) { 1 - own } else { own };
                    let event = last[other].lock().clone();
                    let before = event.map(|event| Dependency { event, kind: DependencyKind::Order });
                    let pattern = FillPattern::from_slice(&[7]);
                    let command = Command::Fill(FillCommand { target, pattern, extent: [1, 1, 64] });
                    let probe = Arc::new(Probe::default());
                    // SAFETY: the memory lives until all commands have ended; they write the same bytes.
                    let event = unsafe { queues[own].issue(command, before.as_slice(), probe.clone()) };
                    *last[own].lock() = Some(event.expect("accepted"));
                    probe
                };
                let probes: Vec<_> = (0..20 * DEPTH).map(issue).collect();
                probes.iter().for_each(|probe| probe.wait().result.expect("it is a fill"));
            };
            std::thread::scope(|scope| [0, 1].map(|own| scope.spawn(move || submit(own))).map(drop));
            // SAFETY: allocated above, and all commands have ended.
            unsafe { device.memory().free(memory, UsmKind::Device, LAYOUT) };
        }
    }
}
