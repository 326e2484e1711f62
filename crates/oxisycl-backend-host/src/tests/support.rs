//! What the tests share: host devices with pools of their own, commands, and completions that remember.

use std::any::TypeId;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxisycl_backend::{
    ArgumentBlock, Command, CommandFailure, Completion, Dependency, DependencyKind, Device, Event, EventStatus,
    KernelCommand, MemoryId, Outcome, PitchedBox, Queue, QueueOptions,
};
use oxisycl_image::{Form, KernelDescriptor, KernelId, ParameterLayout};
use oxisycl_types::{HostChunk, HostEntry, LaunchRange};
use parking_lot::{Condvar, Mutex};

use crate::device::{HostDevice, PoolHandle, Shared};
use crate::info::{Processor, host_info};
use crate::memory::HostMemory;
use crate::pool::Pool;
use crate::topology::Topology;

/// Nothing may take longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 100_000 } else { 60 });

/// A size that an interpreter can cope with, too.
pub(crate) const fn scaled(size: usize) -> usize {
    if cfg!(miri) { size / 100 } else { size }
}

/// A machine that is what a test wants it to be.
#[derive(Clone, Default)]
pub(crate) struct FakeTopology {
    pub(crate) processors: Vec<usize>,
    pub(crate) numa: Vec<Vec<usize>>,
    pub(crate) l3: Vec<Vec<usize>>,
    pub(crate) l2: Vec<Vec<usize>>,
}

impl Topology for FakeTopology {
    fn processors(&self) -> Vec<usize> {
        self.processors.clone()
    }
    fn numa_nodes(&self) -> Vec<Vec<usize>> {
        self.numa.clone()
    }
    fn l3_groups(&self) -> Vec<Vec<usize>> {
        self.l3.clone()
    }
    fn l2_groups(&self) -> Vec<Vec<usize>> {
        self.l2.clone()
    }
}

/// A host device with that many threads of its own.
pub(crate) fn device(threads: usize) -> Arc<dyn Device> {
    device_on(threads, FakeTopology::default()).0
}

/// A host device on a machine of that form, and its pool.
pub(crate) fn device_on(threads: usize, topology: FakeTopology) -> (Arc<dyn Device>, &'static Pool) {
    let pool = Pool::leak(threads, "test CPU".to_owned());
    let shared = Shared {
        pool: PoolHandle::Own(pool),
        memory: Arc::new(HostMemory::new("test CPU".to_owned())),
        topology: Box::new(topology),
    };
    let info = host_info(&Processor { name: "test CPU".to_owned(), ..Processor::default() }, threads);
    (Arc::new(HostDevice::root(Arc::new(shared), info)), pool)
}

/// A queue of a host device with that many threads of its own.
pub(crate) fn queue(threads: usize) -> Arc<dyn Queue> {
    queue_of(&device(threads))
}

pub(crate) fn queue_of(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    device.create_queue(&QueueOptions::default()).expect("a queue")
}

/// A one-dimensional launch.
pub(crate) fn range(n: usize) -> LaunchRange {
    LaunchRange { dimensions: 1, extent: [1, 1, n], offset: [0; 3] }
}

/// A launch of a hand-written entry.
#[track_caller]
pub(crate) fn kernel<K: Copy + Send + Sync>(arguments: &K, host_entry: HostEntry, range: LaunchRange) -> Command {
    Command::from(KernelCommand {
        descriptor: KernelDescriptor {
            id: KernelId { type_id: TypeId::of::<()>(), form: Form::Range(range.dimensions) },
            type_name: "tests::kernel",
            name: None,
            location: Location::caller(),
            parameters: ParameterLayout { size: size_of::<K>(), align: align_of::<K>() },
            arguments: None,
            stated: oxisycl_image::StatedNeeds::NONE,
            host_entry,
        },
        code: None,
        native: None,
        arguments: ArgumentBlock::new(arguments),
        range,
        group: None,
    })
}

/// The body of most kernels in tests: a function pointer that is called for each item.
pub(crate) type Body = fn(usize);

/// Runs a [`Body`].
///
/// # Safety
/// The arguments are a `Body`.
pub(crate) unsafe fn body_entry(arguments: *const u8, launch: &LaunchRange, chunk: &HostChunk) {
    // SAFETY: by the contract of this function.
    let body = unsafe { *arguments.cast::<Body>() };
    for item in chunk.begin..chunk.end {
        chunk.item.set(id_of(launch, item));
        body(item);
    }
}

/// A kernel that calls `body` for each of `n` items.
#[track_caller]
pub(crate) fn for_each(n: usize, body: Body) -> Command {
    kernel(&body, body_entry, range(n))
}

/// A single task that does nothing.
#[track_caller]
pub(crate) fn nothing() -> Command {
    let body: Body = |_| {};
    kernel(&body, body_entry, LaunchRange::SINGLE)
}

/// The id of a work-item, offset included.
pub(crate) fn id_of(launch: &LaunchRange, item: usize) -> [usize; 3] {
    let [_, rows, columns] = launch.extent;
    let id = [item / (rows * columns), item / columns % rows, item % columns];
    std::array::from_fn(|d| id[d] + launch.offset[d])
}

/// A completion that keeps the outcome.
#[derive(Default)]
pub(crate) struct Probe {
    outcome: Mutex<Option<Outcome>>,
    changed: Condvar,
    log: Option<(Log, usize)>,
}

/// In which order commands completed.
pub(crate) type Log = Arc<Mutex<Vec<usize>>>;

impl Probe {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A probe that writes its number to a log.
    pub(crate) fn logged(log: &Log, number: usize) -> Arc<Self> {
        Arc::new(Self { log: Some((Arc::clone(log), number)), ..Self::default() })
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.outcome.lock().is_some()
    }

    /// Waits without helping.
    pub(crate) fn wait(&self) -> Outcome {
        let mut outcome = self.outcome.lock();
        while outcome.is_none() {
            assert!(!self.changed.wait_for(&mut outcome, PATIENCE).timed_out(), "a command did not complete");
        }
        outcome.clone().expect("just seen")
    }

    pub(crate) fn succeed(&self) {
        let outcome = self.wait();
        assert!(outcome.has_run && outcome.result.is_ok(), "{outcome:?}");
    }

    /// The command has not run, and reports no failure of its own.
    pub(crate) fn not_run(&self) {
        let outcome = self.wait();
        assert!(!outcome.has_run && outcome.result.is_ok() && outcome.times.is_none(), "{outcome:?}");
    }

    pub(crate) fn fail(&self) -> CommandFailure {
        self.wait().result.expect_err("the command should have failed")
    }

    /// Waits as the runtime does: helping.
    pub(crate) fn help(&self, queue: &Arc<dyn Queue>) -> Outcome {
        let began = Instant::now();
        queue.help(&mut |has_helped| {
            if !has_helped {
                std::thread::yield_now();
            }
            assert!(began.elapsed() < PATIENCE, "a command did not complete");
            !self.is_complete()
        });
        self.wait()
    }
}

impl Completion for Probe {
    unsafe fn complete(self: Arc<Self>, outcome: Outcome) {
        if let Some((log, number)) = &self.log {
            log.lock().push(*number);
        }
        let before = self.outcome.lock().replace(outcome);
        assert!(before.is_none(), "completed twice");
        self.changed.notify_all();
    }
}

/// Issues a command whose memory outlives it.
pub(crate) fn issue(
    queue: &Arc<dyn Queue>,
    command: Command,
    dependencies: &[Dependency],
    probe: &Arc<Probe>,
) -> Arc<dyn Event> {
    // SAFETY: the tests keep memory until they have seen the completion, and order conflicting commands.
    unsafe { queue.issue(command, dependencies, probe.clone()) }.expect("an accepted command")
}

/// Issues a command and waits for it.
pub(crate) fn run(queue: &Arc<dyn Queue>, command: Command) -> Outcome {
    let probe = Probe::new();
    let event = issue(queue, command, &[], &probe);
    let outcome = probe.wait();
    assert_eq!(event.status(), EventStatus::Complete);
    outcome
}

pub(crate) fn data(event: &Arc<dyn Event>) -> Dependency {
    Dependency { event: Arc::clone(event), kind: DependencyKind::Data }
}

pub(crate) fn order(event: &Arc<dyn Event>) -> Dependency {
    Dependency { event: Arc::clone(event), kind: DependencyKind::Order }
}

/// A dense box in host memory.
pub(crate) fn host_bytes(pointer: *const u8) -> PitchedBox {
    PitchedBox { memory: MemoryId::HOST, pointer: pointer.cast_mut(), row_pitch: 0, slice_pitch: 0 }
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn eventually(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < PATIENCE, "it never came true");
        std::thread::sleep(Duration::from_micros(200));
    }
}
