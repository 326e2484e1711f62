//! The device under test, and what the tests need to talk to it.

use std::alloc::Layout;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use oxisycl_image::KernelDescriptor;
use oxisycl_types::LaunchRange;

use super::kernels::{Affine, Gate, native};
use crate::harness::{self, PATIENCE};
use oxisycl_backend::{
    ArgumentBlock, Batching, Command, CommandFailure, Completion, CopyCommand, Dependency, DependencyKind, Device,
    Event, EventStatus, KernelCommand, LoadedKernel, MemoryId, Outcome, PitchedBox, Queue, QueueOptions, UsmKind,
};

/// A device under test, and kernels that it can run.
///
/// The kernels do what the functions of the same name in this module do when compiled natively. A backend that runs device images passes
/// its own descriptors, which take the same arguments.
pub struct Subject {
    device: Arc<dyn Device>,
    affine: TestKernel,
    failing: Option<TestKernel>,
    gate: Option<TestKernel>,
    runs_ahead: bool,
    batching: Batching,
}

/// A kernel of the tests, and its code where it is not native.
type TestKernel = (KernelDescriptor, Option<Arc<dyn LoadedKernel>>);

impl Subject {
    /// A device that runs the program's own native code on threads of its own, or on those that help it.
    pub fn native(device: Arc<dyn Device>) -> Self {
        let [affine, failing, gate] = native().map(|descriptor| (descriptor, None));
        Self {
            device,
            affine,
            failing: Some(failing),
            gate: Some(gate),
            runs_ahead: false,
            batching: Batching::default(),
        }
    }

    /// A device that runs code it was given: what [`affine_entry`](super::affine_entry), [`failing_entry`](super::failing_entry)
    /// and [`gate_entry`](super::gate_entry) do, compiled for it.
    ///
    /// # Safety
    /// The kernels do that, with the arguments of these functions.
    pub unsafe fn loaded(
        device: Arc<dyn Device>,
        affine: Arc<dyn LoadedKernel>,
        failing: Option<Arc<dyn LoadedKernel>>,
        gate: Option<Arc<dyn LoadedKernel>>,
    ) -> Self {
        let [affine_descriptor, failing_descriptor, gate_descriptor] = native();
        Self {
            device,
            affine: (affine_descriptor, Some(affine)),
            failing: failing.map(|code| (failing_descriptor, Some(code))),
            gate: gate.map(|code| (gate_descriptor, Some(code))),
            runs_ahead: false,
            batching: Batching::default(),
        }
    }

    /// A device that is given commands before their dependencies have ended. It may run a command of which a dependency fails:
    /// the outcome says so ([`Outcome::has_run`]), and the values that it wrote are not looked at. It may report a command before those that the
    /// command came after.
    #[must_use]
    pub fn running_ahead(mut self) -> Self {
        self.runs_ahead = true;
        self
    }

    /// Queues that hand kernels over in this way.
    #[must_use]
    pub fn batching(mut self, batching: Batching) -> Self {
        self.batching = batching;
        self
    }

    pub(super) fn runs_ahead(&self) -> bool {
        self.runs_ahead
    }

    /// Without tests that need a kernel that fails and leaves the device usable.
    #[must_use]
    pub fn without_failing_kernels(mut self) -> Self {
        self.failing = None;
        self
    }

    /// Without tests that need a kernel that runs until the host lets it end, for devices that run commands within `issue`.
    #[must_use]
    pub fn without_endless_kernels(mut self) -> Self {
        self.gate = None;
        self
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    pub(super) fn queue(&self) -> TestQueue {
        self.queue_with(QueueOptions::default())
    }

    pub(super) fn queue_with(&self, options: QueueOptions) -> TestQueue {
        let options = QueueOptions { batching: self.batching, ..options };
        let queue = harness::create_queue(&self.device, &options).expect("a device makes queues");
        TestQueue { queue, runs_ahead: self.runs_ahead }
    }

    /// Changes `n` numbers in memory of the device.
    pub(super) fn affine(&self, arguments: Affine, range: LaunchRange) -> Command {
        kernel(&self.affine, &arguments, range)
    }

    /// A queue that keeps its commands in order. Whether the device does it itself is [`Need::OrderKept`].
    pub(super) fn in_order_queue(&self) -> TestQueue {
        self.queue_with(QueueOptions { in_order: true, ..QueueOptions::default() })
    }

    /// Fails. For tests that say [`Need::FailingKernel`].
    pub(super) fn failing(&self) -> Command {
        let failing = self.failing.as_ref().expect("the test says that it needs the kernel");
        kernel(failing, &(), LaunchRange::SINGLE)
    }

    /// Runs until the gate is opened. For tests that say [`Need::EndlessKernel`].
    pub(super) fn gate(&self, gate: &Arc<Gate>) -> Command {
        let code = self.gate.as_ref().expect("the test says that it needs the kernel");
        // The tests open the gate and see the completion before they drop it.
        kernel(code, &Gate::address(gate), LaunchRange::SINGLE)
    }

    /// Whether the device has what a test needs.
    pub(super) fn has(&self, need: Need) -> bool {
        match need {
            Need::FailingKernel => self.failing.is_some(),
            Need::EndlessKernel => self.gate.is_some(),
            Need::OrderKept => self.in_order_queue().info().keeps_order,
            Need::Profiling => self.device.info().has(oxisycl_types::Aspect::QueueProfiling),
        }
    }
}

/// A queue of the device under test.
#[derive(Clone)]
pub(super) struct TestQueue {
    queue: Arc<dyn Queue>,
    runs_ahead: bool,
}

impl Deref for TestQueue {
    type Target = dyn Queue;

    fn deref(&self) -> &Self::Target {
        &*self.queue
    }
}

/// What a device may lack, so that a test does not apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A kernel that fails and leaves the device usable.
    FailingKernel,
    /// A kernel that runs until the host lets it end.
    EndlessKernel,
    /// In-order queues that keep the order themselves ([`QueueInfo::keeps_order`](oxisycl_backend::QueueInfo::keeps_order)).
    OrderKept,
    /// Times of commands.
    Profiling,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FailingKernel => "there is no kernel that fails and leaves the device usable",
            Self::EndlessKernel => "there is no kernel that runs until the host lets it end",
            Self::OrderKept => "the runtime keeps the order of its in-order queues",
            Self::Profiling => "it does not measure times",
        })
    }
}

fn kernel<K: Copy + Send + Sync>((descriptor, code): &TestKernel, arguments: &K, range: LaunchRange) -> Command {
    let (descriptor, code, arguments) = (*descriptor, code.clone(), ArgumentBlock::new(arguments));
    Command::from(KernelCommand { descriptor, code, native: None, arguments, range, group: None })
}

/// A one-dimensional range.
pub(super) fn line(n: usize) -> LaunchRange {
    LaunchRange { dimensions: 1, extent: [1, 1, n], offset: [0; 3] }
}

/// Bytes in memory of a device, freed at the end. Every test waits for its commands before.
pub(super) struct DeviceBytes<'a> {
    device: &'a Arc<dyn Device>,
    kind: UsmKind,
    pointer: NonNull<u8>,
    layout: Layout,
}

impl<'a> DeviceBytes<'a> {
    pub(super) fn new(device: &'a Arc<dyn Device>, size: usize) -> Self {
        Self::of_kind(device, UsmKind::Device, size)
    }

    /// A shared allocation, if the device has such.
    pub(super) fn shared(device: &'a Arc<dyn Device>, size: usize) -> Option<Self> {
        let has = device.info().has(oxisycl_types::Aspect::UsmSharedAllocations);
        has.then(|| Self::of_kind(device, UsmKind::Shared, size))
    }

    fn of_kind(device: &'a Arc<dyn Device>, kind: UsmKind, size: usize) -> Self {
        let layout = Layout::from_size_align(size, 64).expect("a small layout");
        let pointer = device.memory().allocate(kind, layout, false).expect("a device has some memory");
        Self { device, kind, pointer, layout }
    }

    /// Memory that holds the bytes.
    pub(super) fn upload(device: &'a Arc<dyn Device>, queue: &TestQueue, bytes: &[u8]) -> Self {
        let this = Self::new(device, bytes.len());
        run(queue, copy(row(MemoryId::HOST, bytes.as_ptr().cast_mut()), this.row(), bytes.len()));
        this
    }

    pub(super) fn download(&self, queue: &TestQueue) -> Vec<u8> {
        let mut bytes = vec![0; self.layout.size()];
        run(queue, copy(self.row(), row(MemoryId::HOST, bytes.as_mut_ptr()), bytes.len()));
        bytes
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// The first bytes as a row.
    pub(super) fn row(&self) -> PitchedBox {
        row(self.device.info().memory.id, self.as_ptr())
    }
}

impl Drop for DeviceBytes<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated in `of_kind` with the same arguments, and the tests wait for the commands that use it.
        unsafe { self.device.memory().free(self.pointer, self.kind, self.layout) }
    }
}

/// Numbers as bytes.
pub(super) fn bytes_of(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// Bytes as numbers.
pub(super) fn numbers_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("four bytes"))).collect()
}

/// One row of bytes.
pub(super) fn row(memory: MemoryId, pointer: *mut u8) -> PitchedBox {
    PitchedBox { memory, pointer, row_pitch: 0, slice_pitch: 0 }
}

/// A copy of one row.
pub(super) fn copy(source: PitchedBox, target: PitchedBox, bytes: usize) -> Command {
    Command::from(CopyCommand { source, target, extent: [1, 1, bytes] })
}

/// The end of one command.
#[derive(Default)]
pub(super) struct Probe {
    ends: Mutex<Vec<Outcome>>,
    changed: Condvar,
    /// Events that have to be complete when the command completes: none where commands are reported in any order.
    earlier: Vec<Arc<dyn Event>>,
}

impl Probe {
    /// The outcome, once there is one. Helps the device meanwhile.
    pub(super) fn wait(&self, queue: &TestQueue) -> Outcome {
        queue.flush().expect("a queue can be flushed");
        let began = Instant::now();
        queue.help(&mut |has_helped| {
            let ends = self.ends();
            if !ends.is_empty() {
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "a command did not complete");
            if !has_helped {
                drop(self.changed.wait_timeout(ends, Duration::from_micros(200)));
            }
            true
        });
        self.ends().first().cloned().expect("the wait has ended")
    }

    #[track_caller]
    pub(super) fn succeed(&self, queue: &TestQueue) -> Outcome {
        let outcome = self.wait(queue);
        assert!(outcome.result.is_ok(), "a command failed: {:?}", outcome.result);
        outcome
    }

    #[track_caller]
    pub(super) fn fail(&self, queue: &TestQueue) -> CommandFailure {
        self.wait(queue).result.expect_err("a command succeeded that should have failed")
    }

    /// How often the command has completed.
    pub(super) fn count(&self) -> usize {
        self.ends().len()
    }

    fn ends(&self) -> std::sync::MutexGuard<'_, Vec<Outcome>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completion for Probe {
    unsafe fn complete(self: Arc<Self>, mut outcome: Outcome) {
        if self.earlier.iter().any(|event| event.status() != EventStatus::Complete) {
            // A panic here would be in the backend's thread.
            let device = "the contract";
            let error = oxisycl_backend::BackendError::Unsupported {
                device: device.to_owned(),
                what: "a completion before the dependencies have ended".to_owned(),
            };
            outcome.result = Err(CommandFailure::new("a command", device, oxisycl_backend::FailureKind::Device(error)));
        }
        self.ends().push(outcome);
        self.changed.notify_all();
    }
}

/// A command that was accepted.
pub(super) struct Issued {
    pub(super) event: Arc<dyn Event>,
    pub(super) probe: Arc<Probe>,
}

impl Issued {
    /// As a dependency that must not fail.
    pub(super) fn data(&self) -> Dependency {
        Dependency { event: self.event.clone(), kind: DependencyKind::Data }
    }

    /// As a dependency that only has to end.
    pub(super) fn order(&self) -> Dependency {
        Dependency { event: self.event.clone(), kind: DependencyKind::Order }
    }
}

/// Issues a command whose memory the test keeps until it has seen the completion.
pub(super) fn issue(queue: &TestQueue, command: Command, dependencies: &[Dependency]) -> Issued {
    issue_after(queue, command, dependencies, None)
}

/// Issues a command that comes after another one by the order of the queue, as [`issue`] does.
pub(super) fn issue_after(
    queue: &TestQueue,
    command: Command,
    dependencies: &[Dependency],
    earlier: Option<Arc<dyn Event>>,
) -> Issued {
    let earlier = dependencies.iter().map(|dependency| dependency.event.clone()).chain(earlier);
    let earlier = if queue.runs_ahead { Vec::new() } else { earlier.collect() };
    let probe = Arc::new(Probe { earlier, ..Probe::default() });
    // SAFETY: the tests keep memory until they have seen the completion, and order commands that conflict. The arguments fit the kernels by
    // the contract of `Subject`.
    let event = unsafe { harness::issue(&**queue, command, dependencies, probe.clone()) };
    Issued { event: event.expect("a queue accepts commands"), probe }
}

/// Issues a command and waits for its success.
#[track_caller]
pub(super) fn run(queue: &TestQueue, command: Command) -> Outcome {
    let issued = issue(queue, command, &[]);
    let outcome = issued.probe.succeed(queue);
    assert_eq!(issued.event.status(), EventStatus::Complete, "a completed command's event is complete");
    outcome
}
