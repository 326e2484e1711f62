//! Devices, kernels, and commands that are waited for.

use std::io::Write;
use std::process::{Command as Process, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use oxisycl_backend::{
    ArgumentBlock, Backend, Command, Completion, Dependency, Device, Event, KernelCommand, KernelOutput, LoadedKernel,
    MemoryId, Outcome, PitchedBox, Queue, QueueOptions,
};
use oxisycl_backend_opencl::{OpenClBackend, SharingKind};
use oxisycl_backend_testing::harness;
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_image::{
    DeviceImage, Form, ImageTarget, KernelEntry, MessagePiece, PanicSite, ParameterLayout, SourceLocation,
};
use oxisycl_types::{Aspect, LaunchRange};

use crate::suite;

/// Kernels with the sizes of their arguments, and whether they can panic or print.
const KERNELS: &[(&str, usize, bool, bool)] = &[
    ("affine", 16, false, false),
    ("failing", 0, true, false),
    ("gate", 8, false, false),
    ("printing", 0, false, true),
    ("empty", 0, false, false),
    ("rounded", 8, false, false),
];

/// All ways to share memory.
pub(crate) const WAYS: [SharingKind; 3] = [SharingKind::Best, SharingKind::Svm, SharingKind::CoarseSvm];

/// The root devices that can be used, at least one, and there are the kernels to run on them; else the test is ignored.
pub(crate) fn devices(sharing: SharingKind) -> Vec<Arc<dyn Device>> {
    devices_that(sharing, "can be used", |_| true)
}

/// Those of them of which something is true; without one the test is ignored, because no device does `what`.
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

/// Those whose memory the host reaches while kernels run.
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
    let entry = |&(symbol, size, may_panic, may_print): &(&str, usize, bool, bool)| KernelEntry {
        location: location.clone(),
        may_panic,
        may_print,
        ..KernelEntry::new(
            symbol,
            [symbol.as_bytes()[0]; 16],
            Form::Range(1),
            ParameterLayout { size, align: if size == 0 { 1 } else { 8 } },
            format!("test::{symbol}"),
        )
    };
    let site = |text: &str| PanicSite {
        location: Some(location.clone()),
        message: vec![MessagePiece::Literal(text.to_owned())],
    };
    DeviceImage {
        target: ImageTarget::SpirV { major: 1, minor: 2 },
        kernels: KERNELS.iter().map(entry).collect(),
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: vec![site("this kernel always fails"), site("printed\n")],
        code: code().clone().expect("whoever has a device has the code"),
    }
}

/// Kernels of the image on a device.
pub(crate) fn kernels<const N: usize>(device: &Arc<dyn Device>, symbols: [&str; N]) -> [Arc<dyn LoadedKernel>; N] {
    // SAFETY: the code of this test.
    let module = unsafe { device.load(&image(), None) }.expect("the driver takes the image");
    symbols.map(|symbol| module.kernel(symbol).expect("the image has the kernel"))
}

/// Waits for one command, without helping.
#[derive(Default)]
pub(crate) struct Probe {
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
    pub(crate) fn wait(&self) -> Outcome {
        let outcome = self.outcome.lock().unwrap();
        let limit = Duration::from_secs(60);
        let (outcome, _) = self.changed.wait_timeout_while(outcome, limit, |outcome| outcome.is_none()).unwrap();
        outcome.clone().expect("a command did not complete")
    }

    /// What the command has printed.
    pub(crate) fn output(&self) -> String {
        let text = |output| match output {
            KernelOutput::Text(text) => text,
            other => format!("{other:?}\n"),
        };
        self.wait().output.into_iter().map(text).collect()
    }
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
    let mut descriptor = oxisycl_backend_testing::contract::native()[1];
    descriptor.name = Some(name);
    descriptor.parameters = ParameterLayout { size: size_of::<K>(), align: align_of::<K>() };
    let range = LaunchRange { dimensions: 1, extent: [1, 1, n], offset: [0; 3] };
    let arguments = ArgumentBlock::new(arguments);
    Command::from(KernelCommand { descriptor, code: Some(code.clone()), arguments, range, group: None })
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
