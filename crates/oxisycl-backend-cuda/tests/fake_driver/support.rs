//! Images, commands and completions for the tests.

use std::sync::Arc;

use oxisycl_backend::{
    BackendError, Command, Dependency, DependencyKind, Device, Event, LoadedKernel, Queue, QueueOptions,
};
use oxisycl_backend_testing::harness;
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_backend_testing::loaded::{self, TestEntry};
use oxisycl_image::{ArgumentFormat, DeviceImage, FormatTrait, ImageTarget, MessagePiece, PanicSite, SourceLocation};

pub(crate) use oxisycl_backend_testing::loaded::{launch, line};
pub(crate) use oxisycl_backend_testing::probe::Probe;

/// Kernels of the fake driver.
const KERNELS: &[TestEntry] = &[
    TestEntry::new("affine", 16),
    TestEntry::new("failing", 0).panicking(),
    TestEntry::new("gate", 8),
    TestEntry::new("large", 8 * 701),
    TestEntry::new("empty", 0),
    TestEntry::new("crash", 0).panicking(),
    TestEntry::new("printing", 8).printing(),
    TestEntry::new("call_stack", 8),
];

pub(crate) fn location(line: u32) -> SourceLocation {
    SourceLocation { file: "src/main.rs".to_owned(), line, column: 5 }
}

/// An image of all kernels.
pub(crate) fn image() -> DeviceImage {
    let mut code = ".version 7.0\n.target sm_70\n.address_size 64\n".to_owned();
    for TestEntry { symbol, .. } in KERNELS {
        code.push_str(&format!(".visible .entry {symbol}(.param .b8 launch[104])\n"));
    }
    let plain = ArgumentFormat::new(FormatTrait::Display);
    let printed = vec![
        MessagePiece::Literal("item ".to_owned()),
        MessagePiece::Argument { index: 0, format: plain },
        MessagePiece::Literal("\n".to_owned()),
    ];
    let mut image = loaded::image(ImageTarget::Ptx { sm: 70 }, KERNELS, &location(1), code.into_bytes());
    image.sites =
        vec![loaded::site(&location(42), "this kernel always fails"), PanicSite { location: None, message: printed }];
    image
}

pub(crate) fn kernel(device: &Arc<dyn Device>, symbol: &str) -> Arc<dyn LoadedKernel> {
    // SAFETY: the fake driver's own kernels.
    let [kernel] = unsafe { loaded::load(device, &image(), [symbol]) };
    kernel
}

pub(crate) fn queue(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    create_queue(device, &QueueOptions::default()).expect("a queue")
}

pub(crate) fn in_order(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    create_queue(device, &QueueOptions { in_order: true, ..QueueOptions::default() }).expect("a queue")
}

pub(crate) struct Issued {
    pub(crate) event: Arc<dyn Event>,
    pub(crate) probe: Arc<Probe>,
}

impl Issued {
    pub(crate) fn data(&self) -> Dependency {
        Dependency { event: self.event.clone(), kind: DependencyKind::Data }
    }

    pub(crate) fn order(&self) -> Dependency {
        Dependency { event: self.event.clone(), kind: DependencyKind::Order }
    }
}

/// Enqueues a command whose memory outlives it, or executes it as the runtime does.
#[track_caller]
pub(crate) fn issue(queue: &Arc<dyn Queue>, command: Command, dependencies: &[Dependency]) -> Issued {
    let probe = Arc::new(Probe::default());
    // SAFETY: the tests keep memory until they have seen the completion, and order what conflicts.
    let event =
        unsafe { harness::issue(&**queue, command, dependencies, probe.clone()) }.expect("the command is accepted");
    Issued { event, probe }
}

/// The error of a command that is not accepted.
#[track_caller]
pub(crate) fn refused(queue: &Arc<dyn Queue>, command: Command) -> BackendError {
    // SAFETY: the command is refused, and so uses no memory.
    let refused = unsafe { queue.issue(command, &[], Arc::new(Probe::default())) };
    refused.err().expect("the command is accepted")
}
