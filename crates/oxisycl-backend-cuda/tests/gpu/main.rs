//! The backend on real devices. Needs a driver and nothing else; where there is none, its tests are reported as ignored.
//!
//! The kernels are written in PTX by hand (`kernels.ptx`), since the device compiler stands above this crate.

mod quirks;

use std::alloc::Layout;
use std::process::Command as Process;
use std::sync::Arc;

use oxisycl_backend::{
    Backend, BackendError, Batching, Command, CopyCommand, Device, FailureKind, FillCommand, FillPattern, LoadedKernel,
    MemoryId, Outcome, PitchedBox, Queue, QueueOptions, UsmKind,
};
use oxisycl_backend_cuda::CudaBackend;
use oxisycl_backend_testing::contract::{Subject, run_all};
use oxisycl_backend_testing::harness;
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_backend_testing::loaded::{self, TestEntry};
use oxisycl_backend_testing::probe::Probe;
use oxisycl_backend_testing::suite::{self, skip};
use oxisycl_image::{DeviceImage, ImageTarget, SourceLocation};

suite::tests![
    every_device_keeps_the_contract,
    a_panic_is_told_with_message_place_and_item,
    code_that_the_driver_refuses_comes_with_its_log,
    devices_copy_to_each_other,
    a_lost_device_says_so_and_lets_go,
];

fn main() -> std::process::ExitCode {
    suite::main_in_turn(&[("", TESTS), ("quirks", quirks::TESTS)])
}

/// The kernels of `kernels.ptx`.
const KERNELS: &[TestEntry] = &[
    TestEntry::new("affine", 16),
    TestEntry::new("failing", 0).panicking(),
    TestEntry::new("gate", 8),
    TestEntry::new("empty", 0),
    TestEntry::new("crash", 0),
];

/// Set for the process that loses its device.
const CHILD: &str = "CUDA_TEST_LOSES_ITS_DEVICE";

fn devices() -> Vec<Arc<dyn Device>> {
    let platforms = CudaBackend::new().platforms().expect("a driver that can be used, or none");
    let devices: Vec<_> = platforms.iter().flat_map(|platform| platform.devices()).collect();
    if devices.is_empty() {
        skip("there is no CUDA driver, or it shows no device (libcuda.so.1 was not found or is of no use)");
    }
    devices
}

fn image() -> DeviceImage {
    let location = SourceLocation { file: "kernels.ptx".to_owned(), line: 7, column: 1 };
    loaded::image(ImageTarget::Ptx { sm: 70 }, KERNELS, &location, include_bytes!("kernels.ptx").to_vec())
}

fn kernels<const N: usize>(device: &Arc<dyn Device>, symbols: [&str; N]) -> [Arc<dyn LoadedKernel>; N] {
    // SAFETY: the code of this test.
    unsafe { loaded::load(device, &image(), symbols) }
}

/// Enqueues a command and waits for it without helping.
fn run(queue: &Arc<dyn Queue>, command: Command) -> Outcome {
    attempt(queue, command).expect("the command is accepted")
}

/// Runs a command that may be refused, and waits for it.
fn attempt(queue: &Arc<dyn Queue>, command: Command) -> Result<Outcome, BackendError> {
    let probe = Arc::new(Probe::default());
    // SAFETY: the tests keep memory until the outcome is there, and run one command at a time.
    unsafe { harness::issue(&**queue, command, &[], probe.clone()) }?;
    Ok(probe.wait())
}

fn succeed(queue: &Arc<dyn Queue>, command: Command) {
    run(queue, command).result.expect("the command failed");
}

fn launch(device: &Arc<dyn Device>, symbol: &'static str, n: usize) -> Command {
    let [code] = kernels(device, [symbol]);
    loaded::launch(&code, symbol, &(), loaded::line(n))
}

fn in_order(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    create_queue(device, &QueueOptions { in_order: true, ..QueueOptions::default() }).expect("a queue")
}

fn every_device_keeps_the_contract() {
    for device in devices() {
        println!("{:#?}", device.info());
        for batching in [Batching::On, Batching::Always, Batching::Off] {
            let [affine, failing, gate] = kernels(&device, ["affine", "failing", "gate"]);
            // SAFETY: the code was written to do what those functions do.
            let subject = unsafe { Subject::loaded(device.clone(), affine, Some(failing), Some(gate)) };
            let subject = subject.running_ahead().batching(batching);
            assert!(run_all(&subject).is_empty(), "all of the contract applies to GPUs, with batching {batching:?}");
        }
    }
}

fn a_panic_is_told_with_message_place_and_item() {
    for device in devices() {
        let failure = run(&in_order(&device), launch(&device, "failing", 1000)).result.expect_err("the kernel panics");
        let FailureKind::Panic { message, location, item } = failure.kind() else { panic!("{failure}") };
        assert_eq!(message, "this kernel always fails");
        assert_eq!(location.as_deref(), Some("kernels.ptx:7:1"));
        assert!(matches!(item, Some((1, [0, 0, 0..1000]))), "{item:?}");
    }
}

fn code_that_the_driver_refuses_comes_with_its_log() {
    for device in devices() {
        let load = |code: &[u8]| {
            let image = DeviceImage { code: code.to_vec(), ..image() };
            // SAFETY: the driver refuses it.
            unsafe { device.load(&image, None) }.err().expect("not PTX").to_string()
        };
        let error = load(b".version 7.0\n.target sm_70\n.address_size 64\nnonsense\n");
        assert!(error.contains("CUDA_ERROR_INVALID_PTX") && error.contains("nonsense"), "{error}");
        let error = load(b".version 99.0\n.target sm_70\n.address_size 64\n");
        assert!(error.contains("the image is PTX 99.0"), "{error}");
    }
}

fn devices_copy_to_each_other() {
    let devices = devices();
    let [first, second, ..] = &devices[..] else { skip("needs two devices") };
    let ids = [first, second].map(|device| device.info().memory.id);
    if !first.info().can_copy(ids[0], ids[1]) {
        skip("the devices cannot copy to each other");
    }
    let layout = Layout::from_size_align(1 << 20, 256).expect("a layout");
    let pointers = [first, second]
        .map(|device| device.memory().allocate(UsmKind::Device, layout, true).expect("there is memory").as_ptr());
    let pitched = |index: usize, row_pitch, slice_pitch| PitchedBox {
        memory: ids[index],
        pointer: pointers[index],
        row_pitch,
        slice_pitch,
    };
    let queues = [in_order(first), in_order(second)];
    let pattern = FillPattern::from_slice(&[1, 2, 3]);
    succeed(&queues[0], Command::from(FillCommand { target: pitched(0, 0, 0), pattern, extent: [1, 1, 300_000] }));
    let across = CopyCommand { source: pitched(0, 0, 0), target: pitched(1, 0, 0), extent: [1, 1, 900_000] };
    succeed(&queues[1], Command::from(across));
    let boxes = CopyCommand { source: pitched(1, 30, 300), target: pitched(0, 30, 300), extent: [9, 7, 21] };
    succeed(&queues[0], Command::from(boxes));
    let mut bytes = vec![0u8; 900_000];
    let target = PitchedBox { memory: MemoryId::HOST, pointer: bytes.as_mut_ptr(), row_pitch: 0, slice_pitch: 0 };
    let download = CopyCommand { source: pitched(0, 0, 0), target, extent: [1, 1, 900_000] };
    succeed(&queues[0], Command::from(download));
    assert!(bytes.chunks_exact(3).all(|bytes| bytes == [1, 2, 3]));
    for (device, pointer) in [first, second].into_iter().zip(pointers) {
        let pointer = std::ptr::NonNull::new(pointer).expect("not null");
        // SAFETY: allocated above; the commands have ended.
        unsafe { device.memory().free(pointer, UsmKind::Device, layout) };
    }
}

fn a_lost_device_says_so_and_lets_go() {
    if std::env::var_os(CHILD).is_some() {
        return lose_a_device();
    }
    // Without one the test is ignored.
    devices();
    println!("{}", lose_in_child());
}

/// Loses the first device in a process of its own, since it stays lost there. Returns what the process has found.
fn lose_in_child() -> String {
    let child = Process::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "a_lost_device_says_so_and_lets_go", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("the test can be started");
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{text}\n{}", String::from_utf8_lossy(&child.stderr));
    text
}

fn lose_a_device() {
    let devices = devices();
    // Made before the loss.
    let others: Vec<_> = devices[1..].iter().map(|device| (in_order(device), launch(device, "empty", 1))).collect();
    let device = &devices[0];
    let (queue, other) = (in_order(device), in_order(device));
    let layout = Layout::new::<[u64; 8]>();
    let memory = device.memory().allocate(UsmKind::Device, layout, false).expect("there is memory");
    let failure = run(&queue, launch(device, "crash", 1)).result.expect_err("the device is lost");
    println!("{failure}");
    let FailureKind::Device(BackendError::DeviceLost { reason, .. }) = failure.kind() else { panic!("{failure}") };
    assert!(reason.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && reason.contains("kernel \"crash\""), "{reason}");
    // SAFETY: a marker uses no memory.
    let refused = unsafe { other.issue(Command::Marker, &[], Arc::new(Probe::default())) };
    assert!(matches!(refused.err(), Some(BackendError::DeviceLost { .. })));
    assert!(matches!(device.memory().allocate(UsmKind::Device, layout, false), Err(BackendError::DeviceLost { .. })));
    // SAFETY: allocated above, and not used.
    unsafe { device.memory().free(memory, UsmKind::Device, layout) };
    // A driver may give up all contexts of the process (the quirk `shared-loss`). Either another device works as before, or it is lost, too, and
    // every call names the kernel of the first. In no case does a command hang, which `attempt` sees to.
    for ((queue, command), device) in others.into_iter().zip(&devices[1..]) {
        let name = &device.info().name;
        let failure = match attempt(&queue, command) {
            Ok(outcome) => outcome.result.err().map(|failure| failure.to_string()),
            Err(error) => Some(error.to_string()),
        };
        let Some(failure) = failure else {
            println!("\"{name}\" goes on");
            succeed(&queue, launch(device, "empty", 1));
            assert!(device.memory().allocate(UsmKind::Device, layout, false).is_ok());
            continue;
        };
        println!("\"{name}\": {failure}");
        // SAFETY: a marker uses no memory.
        let refused = unsafe { queue.issue(Command::Marker, &[], Arc::new(Probe::default())) }.err();
        let unallocated = device.memory().allocate(UsmKind::Device, layout, false).err();
        for error in [refused, unallocated] {
            let Some(error @ BackendError::DeviceLost { .. }) = error else { panic!("a lost device works: {error:?}") };
            assert!(error.to_string().contains("kernel \"crash\""), "{error}");
        }
        assert!(failure.contains("kernel \"crash\""), "{failure}");
    }
}
