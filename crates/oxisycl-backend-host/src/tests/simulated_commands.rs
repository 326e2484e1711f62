//! Commands of simulated devices: separate memory, faults, latency, checks.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxisycl_backend::{
    Backend, BackendError, Command, CopyCommand, Device, FailureKind, FillCommand, FillPattern, Memory, MemoryId,
    Operation, PitchedBox, QueueOptions, UsmKind,
};
use oxisycl_backend_testing::harness::help_once;
use oxisycl_types::{Aspect, BackendKind, DeviceType, HostChunk, LaunchRange};

use super::support::*;
use crate::{Direction, Fault, SimulatedBackend, SimulatedConfig, TransferCount};

const SIZE: usize = 64;

fn layout() -> Layout {
    Layout::from_size_align(SIZE, 8).expect("a layout")
}

pub(super) fn devices(backend: &SimulatedBackend) -> Vec<Arc<dyn Device>> {
    backend.platforms().expect("a platform")[0].devices()
}

fn allocate(device: &Arc<dyn Device>) -> NonNull<u8> {
    device.memory().allocate(UsmKind::Device, layout(), false).expect("memory")
}

fn free(device: &Arc<dyn Device>, pointer: NonNull<u8>) {
    // SAFETY: the tests allocate with `allocate` and have waited for all commands.
    unsafe { device.memory().free(pointer, UsmKind::Device, layout()) }
}

fn place(memory: MemoryId, pointer: *mut u8) -> PitchedBox {
    PitchedBox { memory, pointer, row_pitch: SIZE, slice_pitch: SIZE }
}

fn copy(source: PitchedBox, target: PitchedBox) -> Command {
    Command::from(CopyCommand { source, target, extent: [1, 1, SIZE] })
}

fn fill(target: PitchedBox, byte: u8) -> Command {
    Command::from(FillCommand { target, pattern: FillPattern::from_slice(&[byte]), extent: [1, 1, SIZE] })
}

#[test]
fn data_goes_to_a_device_through_a_kernel_to_another_device_and_back() {
    unsafe fn add_one(arguments: *const u8, _: &LaunchRange, chunk: &HostChunk) {
        // SAFETY: launched with the address of `SIZE` bytes, one per item.
        let bytes = unsafe { *arguments.cast::<usize>() as *mut u8 };
        for item in chunk.begin..chunk.end {
            // SAFETY: as above.
            unsafe { *bytes.add(item) += 1 };
        }
    }
    let backend = SimulatedBackend::new(SimulatedConfig::new(2));
    let devices = devices(&backend);
    let queues: Vec<_> = devices.iter().map(queue_of).collect();
    let (a, b) = (allocate(&devices[0]), allocate(&devices[1]));
    let ids = [devices[0].info().memory.id, devices[1].info().memory.id];
    let mut host = [41u8; SIZE];
    let at_host = place(MemoryId::HOST, host.as_mut_ptr());
    let (at_a, at_b) = (place(ids[0], a.as_ptr()), place(ids[1], b.as_ptr()));
    let probes: Vec<_> = (0..4).map(|_| Probe::new()).collect();
    let up = issue(&queues[0], copy(at_host, at_a), &[], &probes[0]);
    let ran = issue(&queues[0], kernel(&(a.as_ptr() as usize), add_one, range(SIZE)), &[data(&up)], &probes[1]);
    let over = issue(&queues[1], copy(at_a, at_b), &[data(&ran)], &probes[2]);
    issue(&queues[1], copy(at_b, at_host), &[data(&over)], &probes[3]);
    probes.iter().for_each(|probe| probe.succeed());
    assert_eq!(host, [42; SIZE]);
    let control = backend.control();
    let one = TransferCount { copies: 1, bytes: SIZE as u64 };
    assert_eq!(control.transfers(0, Direction::HostToDevice), one);
    assert_eq!(control.transfers(1, Direction::Peer), one);
    assert_eq!(control.transfers(1, Direction::DeviceToHost), one);
    assert_eq!(control.transfers(1, Direction::HostToDevice), TransferCount::default());
    assert_eq!(control.attempts(0, Operation::Copy), 1);
    assert_eq!(control.attempts(0, Operation::Launch), 1);
    free(&devices[0], a);
    free(&devices[1], b);
}

#[test]
fn a_device_describes_itself_as_configured() {
    let config = SimulatedConfig::new(3).device_type(DeviceType::Gpu).usm(&[UsmKind::Device]).memory(4096);
    let backend = SimulatedBackend::new(config);
    let devices = devices(&backend);
    assert_eq!(devices.len(), 3);
    let info = devices[2].info();
    assert_eq!((info.device_type, info.name.as_str()), (DeviceType::Gpu, "simulated device 2"));
    assert!(info.has(Aspect::Gpu) && info.has(Aspect::Emulated) && info.has(Aspect::UsmDeviceAllocations));
    assert!(!info.has(Aspect::Cpu) && !info.has(Aspect::UsmSharedAllocations));
    assert_eq!(info.global_mem_size, 4096);
    assert_eq!(devices[0].info().backend, BackendKind::Simulated);
    assert!(devices[0].partition(&oxisycl_backend::Partition::Equally(1)).is_err());
    assert!(!devices[0].info().memory.is_host_accessible);
    assert_ne!(devices[0].info().memory.id, devices[1].info().memory.id);
}

#[test]
fn profiling_and_native_kernels_can_be_taken_away() {
    let all = SimulatedBackend::new(SimulatedConfig::new(1));
    let less = SimulatedBackend::new(SimulatedConfig::new(1).profiling(false).native_kernels(false));
    let (all, less) = (devices(&all).remove(0), devices(&less).remove(0));
    assert!(all.info().has(Aspect::QueueProfiling) && all.info().image_targets.is_empty());
    assert!(!less.info().has(Aspect::QueueProfiling));
    let targets: Vec<String> = less.info().image_targets.iter().map(ToString::to_string).collect();
    assert_eq!(targets, ["host:simulated"]);
    // A queue that is asked for times all the same, for a trace, has none.
    let options = QueueOptions { profiling: true, ..QueueOptions::default() };
    let queue = less.create_queue(&options).expect("a queue");
    let probe = Probe::new();
    issue(&queue, Command::Marker, &[], &probe);
    assert!(probe.wait().times.is_none());
}

#[test]
fn devices_without_native_kernels_load_images_made_for_them() {
    let target = |triple: &str| oxisycl_image::ImageTarget::Host { triple: triple.to_owned(), level: None };
    let image = |triple| oxisycl_image::DeviceImage {
        target: target(triple),
        kernels: Vec::new(),
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: Vec::new(),
    };
    let backend = SimulatedBackend::new(SimulatedConfig::new(1).native_kernels(false));
    let device = devices(&backend).remove(0);
    // SAFETY: simulated devices run no code of images.
    let load = |triple| unsafe { device.load(&image(triple), None) };
    let module = load("simulated").expect("an image for simulated devices");
    assert!(module.kernel("missing").is_err() && module.binary().is_none());
    assert!(matches!(load("x86_64").map(drop), Err(oxisycl_backend::BackendError::Unsupported { .. })));
}

#[test]
fn peers_are_reached_only_if_allowed() {
    for allowed in [true, false] {
        let backend = SimulatedBackend::new(SimulatedConfig::new(2).peer_copies(allowed));
        let devices = devices(&backend);
        let ids = [devices[0].info().memory.id, devices[1].info().memory.id];
        assert!(
            devices[0].info().can_copy(MemoryId::HOST, ids[0]) && devices[0].info().can_copy(ids[0], MemoryId::HOST)
        );
        assert_eq!(devices[0].info().can_copy(ids[0], ids[1]), allowed);
        assert!(!devices[0].info().can_copy(ids[0], MemoryId::unique()));
        let (a, b) = (allocate(&devices[0]), allocate(&devices[1]));
        let command = copy(place(ids[0], a.as_ptr()), place(ids[1], b.as_ptr()));
        assert_eq!(run(&queue_of(&devices[0]), command).result.is_ok(), allowed);
        free(&devices[0], a);
        free(&devices[1], b);
    }
}

#[test]
fn a_wrong_address_fails_the_command_and_touches_nothing() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(2));
    let devices = devices(&backend);
    let queue = queue_of(&devices[0]);
    let ids = [devices[0].info().memory.id, devices[1].info().memory.id];
    let pointer = allocate(&devices[0]);
    let mut host = [1u8; SIZE];
    let wrong = [
        // Host memory called the device's, device memory called the host's or another device's, and beyond the end.
        place(ids[0], host.as_mut_ptr()),
        place(MemoryId::HOST, pointer.as_ptr()),
        place(ids[1], pointer.as_ptr()),
        place(MemoryId::unique(), host.as_mut_ptr()),
        place(ids[0], pointer.as_ptr().wrapping_add(1)),
        place(ids[0], pointer.as_ptr().wrapping_sub(1)),
    ];
    for target in wrong {
        let failure = run(&queue, fill(target, 9)).result.expect_err("a wrong address");
        assert!(matches!(failure.kind(), FailureKind::Device(BackendError::Unsupported { .. })), "{failure}");
    }
    assert_eq!(host, [1; SIZE]);
    // SAFETY: allocated with this size, and no command is pending.
    assert!(unsafe { std::slice::from_raw_parts(pointer.as_ptr(), SIZE) }.iter().all(|byte| *byte == 0xA5));
    free(&devices[0], pointer);
    let failure = run(&queue, fill(place(ids[0], pointer.as_ptr()), 9)).result.expect_err("freed memory");
    assert!(matches!(failure.kind(), FailureKind::Device(_)));
}

#[test]
fn the_nth_operation_fails_without_effect_and_only_that_one() {
    let fault = Fault { operation: Operation::Fill, count: 2, device: Some(0) };
    let backend = SimulatedBackend::new(SimulatedConfig::new(2).fault(fault));
    let devices = devices(&backend);
    let control = backend.control();
    for (index, device) in devices.iter().enumerate() {
        let queue = queue_of(device);
        let mut host = [0u8; SIZE];
        let target = place(MemoryId::HOST, host.as_mut_ptr());
        let results: Vec<_> = (1..=3).map(|byte| run(&queue, fill(target, byte)).result).collect();
        assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, index == 1, true]);
        assert_eq!(host, [3; SIZE]);
        assert_eq!(control.attempts(index, Operation::Fill), 3);
    }
    control.fail_next(1, Operation::Launch, 2);
    let queue = queue_of(&devices[1]);
    run(&queue, nothing()).result.expect("the first one works");
    let failure = run(&queue, nothing()).result.expect_err("the second one fails");
    let FailureKind::Device(BackendError::InjectedFault { operation, count, .. }) = failure.kind() else {
        panic!("{failure}")
    };
    assert_eq!((*operation, *count), (Operation::Launch, 2));
}

#[test]
fn latency_is_at_least_what_was_asked_for() {
    let latency = Duration::from_millis(3);
    let backend = SimulatedBackend::new(SimulatedConfig::new(1).latency(latency));
    let device = &devices(&backend)[0];
    let queue = device.create_queue(&QueueOptions { profiling: true, ..QueueOptions::default() }).expect("a queue");
    let began = Instant::now();
    let times = run(&queue, Command::Marker).times.expect("times");
    assert!(began.elapsed() >= latency);
    assert!(times.end - times.start >= latency.as_nanos() as u64);
}

#[test]
fn a_waiting_thread_cannot_help() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(1));
    let control = backend.control();
    let queue = queue_of(&devices(&backend)[0]);
    control.pause(0);
    let probe = Probe::new();
    issue(&queue, nothing(), &[], &probe);
    assert!(!help_once(&*queue));
    assert!(!probe.is_complete());
    control.resume(0);
    probe.succeed();
}

#[test]
fn a_panic_on_a_simulated_device_is_reported_like_one_on_the_host() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(1));
    let queue = queue_of(&devices(&backend)[0]);
    let failure = run(&queue, for_each(8, |item| assert!(item != 3, "bad"))).result.expect_err("a panic");
    let FailureKind::Panic { message, location, item } = failure.kind() else { panic!("{failure}") };
    assert_eq!((message.as_str(), *item), ("bad", Some((1, [0, 0, 3]))));
    assert!(location.is_some());
    assert!(run(&queue, nothing()).result.is_ok());
}

#[test]
fn fault_free_memory_kinds_are_usable_by_the_host() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(1));
    let device = &devices(&backend)[0];
    let memory: &Arc<dyn Memory> = device.memory();
    for kind in [UsmKind::Host, UsmKind::Shared] {
        let pointer = memory.allocate(kind, layout(), true).expect("memory");
        for id in [MemoryId::HOST, device.info().memory.id] {
            run(&queue_of(device), fill(place(id, pointer.as_ptr()), 4)).result.expect("success");
        }
        // SAFETY: allocated with this size; the commands have completed.
        assert!(unsafe { std::slice::from_raw_parts(pointer.as_ptr(), SIZE) }.iter().all(|byte| *byte == 4));
        // SAFETY: allocated above with this kind and layout.
        unsafe { memory.free(pointer, kind, layout()) };
    }
}
