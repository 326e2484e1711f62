//! Reproducers of what drivers get wrong. Each passes, and fails where its quirk is switched off.

use std::alloc::Layout;
use std::process::{Command as Process, Stdio};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use oxisycl_backend::{Command, Device, Queue, QueueOptions, UsmKind};
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_types::DeviceType;

use super::kernels::{kernel, launch};
use super::losses::Probe;
use super::usable_devices;

/// How long a process may take that ends while a kernel runs on: more than the 5 s for which commands are waited for.
const LIMIT: Duration = Duration::from_secs(12);

/// A device that is the processors of this machine.
fn processor() -> Arc<dyn Device> {
    let devices = usable_devices(|_| {});
    let is_processor = |device: &Arc<dyn Device>| device.info().device_type == DeviceType::Cpu;
    devices.into_iter().find(is_processor).expect("there is a processor among the OpenCL devices")
}

fn allocate(device: &Arc<dyn Device>, kind: UsmKind, layout: Layout) -> NonNull<u8> {
    device.memory().allocate(kind, layout, true).expect("there is memory")
}

/// Issues a command, which the tests let end, with memory that they do not free before.
fn start(queue: &Arc<dyn Queue>, command: Command) -> Arc<Probe> {
    let probe = Arc::new(Probe::default());
    // SAFETY: the memory lives as long as the process or the command.
    unsafe { queue.issue(command, &[], probe.clone()) }.expect("the command is accepted");
    queue.flush().expect("the queue goes on");
    probe
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn two_work_items_of_a_command_run_at_a_time() {
    let device = processor();
    let queue = create_queue(&device, &QueueOptions::default()).expect("a queue");
    let places = allocate(&device, UsmKind::Host, Layout::new::<u64>());
    // The first work-item waits for the last one, but not for ever.
    start(&queue, launch(&kernel(&device, "meeting"), places.as_ptr(), 1 << 16)).wait().result.expect("it succeeds");
    // SAFETY: two bytes of the allocation, and the kernel has ended.
    let found = unsafe { [*places.as_ptr(), *places.as_ptr().add(1)] };
    // SAFETY: allocated above, and not used any more.
    unsafe { device.memory().free(places, UsmKind::Host, Layout::new::<u64>()) };
    assert_eq!(found, [1, 1], "the last work-item came, and the first one saw it");
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn positions_are_compared_as_numbers_without_a_sign() {
    let device = processor();
    let queue = create_queue(&device, &QueueOptions::default()).expect("a queue");
    let places = allocate(&device, UsmKind::Host, Layout::new::<u64>());
    let n = (1 << 31) + 100;
    start(&queue, launch(&kernel(&device, "around"), places.as_ptr(), n)).wait().result.expect("it succeeds");
    // SAFETY: the allocation has two numbers, and the kernel has ended.
    let [above, between] = unsafe { places.cast::<[u32; 2]>().read() };
    // SAFETY: allocated above, and not used any more.
    unsafe { device.memory().free(places, UsmKind::Host, Layout::new::<u64>()) };
    // A grid may have no such positions.
    assert_eq!(between, above.min(20), "of {above} positions from 2^31 - 10 on");
}

/// Set for the process that ends while a kernel runs.
const ENDS: &str = "OXISYCL_TEST_ENDS";

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_process_ends_with_its_own_status_while_a_kernel_runs_on() {
    if std::env::var_os(ENDS).is_some() {
        let device = processor();
        let queue = create_queue(&device, &QueueOptions::default()).expect("a queue");
        // A gate that is never opened.
        let gate = allocate(&device, UsmKind::Host, Layout::new::<u64>());
        start(&queue, launch(&kernel(&device, "gate"), gate.as_ptr(), 1));
        return std::mem::forget((device, queue));
    }
    let (_, module) = module_path!().split_once("::").expect("a module of a crate");
    let this = format!("{module}::a_process_ends_with_its_own_status_while_a_kernel_runs_on");
    let mut child = Process::new(std::env::current_exe().expect("the test has a path"));
    child.args([&*this, "--exact", "--include-ignored"]).env(ENDS, "1").stdout(Stdio::null());
    let mut child = child.spawn().expect("it can be started");
    let began = Instant::now();
    let status = loop {
        match child.try_wait().expect("a child") {
            None if began.elapsed() < LIMIT => thread::sleep(Duration::from_millis(20)),
            ended => break ended,
        }
    };
    if status.is_none() {
        child.kill().and_then(|()| child.wait()).expect("it can be ended");
    }
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn large_arrays_do_not_lie_their_size_apart() {
    const SIZE: usize = 128 << 20;
    let device = processor();
    let layout = Layout::from_size_align(SIZE, 64).expect("a layout");
    let all: Vec<_> =
        (0..3).map(|_| device.memory().allocate(UsmKind::Device, layout, false).expect("there is memory")).collect();
    let mut addresses: Vec<_> = all.iter().map(|pointer| pointer.as_ptr() as usize).collect();
    addresses.sort_unstable();
    for pointer in all {
        // SAFETY: allocated above, and not used.
        unsafe { device.memory().free(pointer, UsmKind::Device, layout) };
    }
    assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] != SIZE), "{addresses:x?}");
}
