//! Images, commands and completions for the tests.

use std::any::TypeId;
use std::panic::Location;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use oxisycl_backend::{
    ArgumentBlock, BackendError, Command, CommandFailure, Completion, Dependency, DependencyKind, Device, Event,
    KernelCommand, KernelOutput, LoadedKernel, Outcome, Queue, QueueOptions,
};
use oxisycl_backend_testing::harness;
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_image::{
    ArgumentFormat, DeviceImage, Form, FormatTrait, ImageTarget, KernelDescriptor, KernelEntry, KernelId, MessagePiece,
    PanicSite, ParameterLayout, SourceLocation,
};
use oxisycl_types::{HostChunk, LaunchRange};

/// Kernels of the fake driver with the sizes of their arguments, and whether they can panic.
const KERNELS: &[(&str, usize, bool)] = &[
    ("affine", 16, false),
    ("failing", 0, true),
    ("gate", 8, false),
    ("large", 8 * 701, false),
    ("empty", 0, false),
    ("crash", 0, true),
    ("printing", 8, false),
    ("call_stack", 8, false),
];

pub(crate) fn location(line: u32) -> SourceLocation {
    SourceLocation { file: "src/main.rs".to_owned(), line, column: 5 }
}

/// An image of all kernels.
pub(crate) fn image() -> DeviceImage {
    let entry = |&(symbol, size, may_panic): &(&str, usize, bool)| KernelEntry {
        location: location(1),
        may_panic,
        may_print: symbol == "printing",
        ..KernelEntry::new(
            symbol,
            [symbol.as_bytes()[0]; 16],
            Form::Range(1),
            ParameterLayout { size, align: if size == 0 { 1 } else { 8 } },
            format!("test::{symbol}"),
        )
    };
    let mut code = ".version 7.0\n.target sm_70\n.address_size 64\n".to_owned();
    for (symbol, ..) in KERNELS {
        code.push_str(&format!(".visible .entry {symbol}(.param .b8 launch[104])\n"));
    }
    let message = vec![MessagePiece::Literal("this kernel always fails".to_owned())];
    let plain = ArgumentFormat::new(FormatTrait::Display);
    let printed = vec![
        MessagePiece::Literal("item ".to_owned()),
        MessagePiece::Argument { index: 0, format: plain },
        MessagePiece::Literal("\n".to_owned()),
    ];
    DeviceImage {
        target: ImageTarget::Ptx { sm: 70 },
        kernels: KERNELS.iter().map(entry).collect(),
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: vec![
            PanicSite { location: Some(location(42)), message },
            PanicSite { location: None, message: printed },
        ],
        code: code.into_bytes(),
    }
}

pub(crate) fn kernel(device: &Arc<dyn Device>, symbol: &str) -> Arc<dyn LoadedKernel> {
    // SAFETY: the fake driver's own kernels.
    let module = unsafe { device.load(&image(), None) }.expect("the image is taken");
    module.kernel(symbol).expect("the image has the kernel")
}

/// A launch.
#[track_caller]
pub(crate) fn launch<K: Copy + Send + Sync + 'static>(
    code: &Arc<dyn LoadedKernel>,
    name: &'static str,
    arguments: &K,
    range: LaunchRange,
) -> Command {
    unsafe fn not_native(_: *const u8, _: &LaunchRange, _: &HostChunk) {}
    let descriptor = KernelDescriptor {
        id: KernelId { type_id: TypeId::of::<K>(), form: Form::Range(1) },
        type_name: name,
        name: Some(name),
        location: Location::caller(),
        parameters: ParameterLayout { size: size_of::<K>(), align: align_of::<K>() },
        arguments: None,
        stated: oxisycl_image::StatedNeeds::NONE,
        host_entry: not_native,
    };
    let arguments = ArgumentBlock::new(arguments);
    Command::from(KernelCommand { descriptor, code: Some(code.clone()), arguments, range, group: None })
}

pub(crate) fn line(n: usize) -> LaunchRange {
    LaunchRange { dimensions: 1, extent: [1, 1, n], offset: [0; 3] }
}

pub(crate) fn queue(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    create_queue(device, &QueueOptions::default()).expect("a queue")
}

pub(crate) fn in_order(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    create_queue(device, &QueueOptions { in_order: true, ..QueueOptions::default() }).expect("a queue")
}

/// Waits for the end of one command.
#[derive(Default)]
pub(crate) struct Probe {
    outcome: Mutex<Option<Outcome>>,
    changed: Condvar,
}

/// What a kernel has printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Printed {
    pub(crate) text: String,
    pub(crate) lost: Option<(u32, u32)>,
    pub(crate) unreadable: usize,
}

impl Completion for Probe {
    unsafe fn complete(self: Arc<Self>, outcome: Outcome) {
        let before = self.outcome.lock().unwrap().replace(outcome);
        assert!(before.is_none(), "a command completed twice");
        self.changed.notify_all();
    }
}

impl Probe {
    /// The outcome, which the backend's own threads bring about.
    pub(crate) fn wait(&self) -> Outcome {
        let mut outcome = self.outcome.lock().unwrap();
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            let (next, timeout) = self.changed.wait_timeout(outcome, Duration::from_secs(30)).unwrap();
            outcome = next;
            assert!(!timeout.timed_out() || outcome.is_some(), "a command did not complete");
        }
    }

    #[track_caller]
    pub(crate) fn succeed(&self) {
        self.wait().result.expect("a command failed");
    }

    #[track_caller]
    pub(crate) fn fail(&self) -> CommandFailure {
        self.wait().result.expect_err("a command succeeded")
    }

    /// What the command has printed, which has ended.
    #[track_caller]
    pub(crate) fn printed(&self) -> Printed {
        self.succeed();
        let mut printed = Printed::default();
        for output in self.wait().output {
            match output {
                KernelOutput::Text(text) => printed.text.push_str(&text),
                KernelOutput::Lost { count, capacity } => printed.lost = Some((count, capacity)),
                KernelOutput::Unreadable { bytes } => printed.unreadable = bytes,
            }
        }
        printed
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.outcome.lock().unwrap().is_some()
    }
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
