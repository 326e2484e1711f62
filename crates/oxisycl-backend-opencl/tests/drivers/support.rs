//! Devices, kernels, and commands that are waited for.

use std::io::Write;
use std::process::{Command as Process, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use oxisycl_backend::{
    Backend, Command, Dependency, Device, Event, LoadedKernel, MemoryId, Outcome, PitchedBox, Queue, QueueOptions,
};
use oxisycl_backend_opencl::{OpenClBackend, SharingKind};
use oxisycl_backend_testing::harness;
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_backend_testing::loaded::{self, TestEntry, line};
use oxisycl_image::{DeviceImage, ImageTarget, SourceLocation};
use oxisycl_types::Aspect;

use crate::suite;

pub(crate) use oxisycl_backend_testing::probe::Probe;

/// The kernels of `kernels.spvasm`.
const KERNELS: &[TestEntry] = &[
    TestEntry::new("affine", 16),
    TestEntry::new("failing", 0).panicking(),
    TestEntry::new("gate", 8),
    TestEntry::new("printing", 0).printing(),
    TestEntry::new("empty", 0),
    TestEntry::new("rounded", 8),
];

/// All ways to share memory.
pub(crate) const WAYS: [SharingKind; 3] = [SharingKind::Best, SharingKind::Svm, SharingKind::CoarseSvm];

/// The root devices that can be used, at least one, and there are the kernels to run on them; else the test is ignored.
pub(crate) fn devices(sharing: SharingKind) -> Vec<Arc<dyn Device>> {
    devices_that(sharing, "can be used", |_| true)
}

/// The devices of which something is true; without one the test is ignored, because no device does `what`.
pub(crate) fn devices_that(
    sharing: SharingKind,
    what: &str,
    is_meant: impl Fn(&Arc<dyn Device>) -> bool,
) -> Vec<Arc<dyn Device>> {
    if let Err(reason) = code() {
        skip(reason);
    }
    let platforms = OpenClBackend::new().sharing(sharing).platforms().expect("a loader that can be used, or none");
    let mut devices: Vec<_> = platforms.iter().flat_map(|platform| platform.devices()).collect();
    devices.retain(|device| match &device.info().unusable {
        Some(reason) => {
            println!("left out: {}: {reason}", device.info().name);
            false
        }
        None => true,
    });
    if devices.is_empty() {
        skip("there is no OpenCL loader, or it shows no device that takes SPIR-V");
    }
    devices.retain(is_meant);
    if devices.is_empty() {
        suite::skip(format!("no OpenCL device {what}"));
    }
    devices
}

/// The devices whose memory the host reaches while kernels run.
pub(crate) fn devices_with_host_memory() -> Vec<Arc<dyn Device>> {
    let has = |device: &Arc<dyn Device>| device.info().has(Aspect::UsmHostAllocations);
    devices_that(SharingKind::Best, "has memory that the host reaches while kernels run", has)
}

/// Ends the test as ignored, because the machine lacks something. Where a driver was installed for the tests, that is a failure.
fn skip(reason: &str) -> ! {
    assert!(std::env::var_os("OPENCL_TESTS_MUST_RUN").is_none(), "the tests must run here, but {reason}");
    suite::skip(reason)
}

/// The kernels as SPIR-V, or why there are none.
pub(crate) fn code() -> &'static Result<Vec<u8>, String> {
    static CODE: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    CODE.get_or_init(|| assemble(include_str!("kernels.spvasm")))
}

/// Assembles with `spirv-as`. Panics if it refuses the text.
fn assemble(text: &str) -> Result<Vec<u8>, String> {
    let mut child = Process::new("spirv-as")
        .args(["--target-env", "spv1.2", "-o", "-", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("spirv-as cannot be started: {error}"))?;
    child.stdin.take().expect("it was piped").write_all(text.as_bytes()).expect("spirv-as reads");
    let output = child.wait_with_output().expect("spirv-as ends");
    assert!(output.status.success(), "spirv-as refuses the kernels");
    Ok(output.stdout)
}

/// The image of the kernels.
pub(crate) fn image() -> DeviceImage {
    let location = SourceLocation { file: "kernels.spvasm".to_owned(), line: 7, column: 1 };
    let code = code().clone().expect("a device is there only with the code");
    let mut image = loaded::image(ImageTarget::SpirV { major: 1, minor: 2 }, KERNELS, &location, code);
    image.sites.push(loaded::site(&location, "printed\n"));
    image
}

/// Kernels of the image on a device.
pub(crate) fn kernels<const N: usize>(device: &Arc<dyn Device>, symbols: [&str; N]) -> [Arc<dyn LoadedKernel>; N] {
    // SAFETY: the code of this test.
    unsafe { loaded::load(device, &image(), symbols) }
}

/// Enqueues a command whose memory the test keeps, as the runtime does.
pub(crate) fn issue(
    queue: &Arc<dyn Queue>,
    command: Command,
    dependencies: &[Dependency],
) -> (Arc<dyn Event>, Arc<Probe>) {
    let probe = Arc::new(Probe::default());
    // SAFETY: the tests keep memory until the outcome is there, and order commands that conflict.
    let event =
        unsafe { harness::issue(&**queue, command, dependencies, probe.clone()) }.expect("the command is accepted");
    (event, probe)
}

/// Enqueues a command and waits for it.
pub(crate) fn run(queue: &Arc<dyn Queue>, command: Command) -> Outcome {
    issue(queue, command, &[]).1.wait()
}

#[track_caller]
pub(crate) fn succeed(queue: &Arc<dyn Queue>, command: Command) {
    run(queue, command).result.expect("the command failed");
}

/// A launch of a kernel that captures nothing.
pub(crate) fn launch(code: &Arc<dyn LoadedKernel>, name: &'static str, n: usize) -> Command {
    launch_with(code, name, &(), n)
}

/// A launch of a kernel over a line of work-items.
pub(crate) fn launch_with<K: Copy + Send + Sync>(
    code: &Arc<dyn LoadedKernel>,
    name: &'static str,
    arguments: &K,
    n: usize,
) -> Command {
    loaded::launch(code, name, arguments, line(n))
}

pub(crate) fn in_order(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    create_queue(device, &QueueOptions { in_order: true, ..QueueOptions::default() }).expect("a queue")
}

pub(crate) fn out_of_order(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    create_queue(device, &QueueOptions::default()).expect("a queue")
}

/// One row of bytes.
pub(crate) fn row(memory: MemoryId, pointer: *mut u8) -> PitchedBox {
    PitchedBox { memory, pointer, row_pitch: 0, slice_pitch: 0 }
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
