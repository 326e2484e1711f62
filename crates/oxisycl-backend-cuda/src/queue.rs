//! Queues: one stream if commands run in order, a few otherwise.
//!
//! A command is put on a stream as soon as everything it depends on is on one, and the device keeps the order. It is held back on the
//! host only behind a transfer that the host has to execute, and behind commands that are held back.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl_backend::{
    BackendError, Command, CommandFailure, Completion, Dependency, DependencyKind, Event, KernelCommand, Queue,
    QueueOptions,
};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::advance;
use crate::copier;
use crate::fill;
use crate::gpu::Gpu;
use crate::launch_shape::LaunchShape;
use crate::module::CudaKernel;
use crate::stream::Stream;
use crate::sys::RawEvent;
use crate::task::{CudaTask, Dependencies, TaskDependency};
use crate::transfer;

/// Streams of a queue whose commands may overlap.
const STREAMS: usize = 4;

/// The part of a queue that its tasks need.
pub(crate) struct QueueShared {
    pub(crate) core: Arc<Gpu>,
    pub(crate) options: QueueOptions,
    pub(crate) streams: Vec<Arc<Stream>>,
    next: AtomicUsize,
    /// In-order queues: the last command that was held back, as long as it matters.
    held_back: Mutex<Option<Arc<CudaTask>>>,
}

pub(crate) struct CudaQueue {
    pub(crate) shared: Arc<QueueShared>,
}

impl CudaQueue {
    pub(crate) fn new(core: &Arc<Gpu>, options: QueueOptions) -> Result<Self, BackendError> {
        let context = &core.context;
        let _entered = context.enter()?;
        let n_streams = if options.in_order { 1 } else { STREAMS };
        let streams: Result<Vec<_>, _> = (0..n_streams).map(|_| Stream::new(core, options.priority)).collect();
        let streams = streams.map_err(|error| context.fail(error))?;
        if options.profiling {
            core.clock.renew(context, core.utility).map_err(|error| context.fail(error))?;
        }
        let (next, held_back) = (AtomicUsize::new(0), Mutex::new(None));
        let shared = QueueShared { core: core.clone(), options, streams, next, held_back };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl QueueShared {
    /// Puts a task on a stream, behind its dependencies, which are on streams or have ended.
    pub(crate) fn issue(&self, task: &Arc<CudaTask>, dependencies: &Dependencies) -> Result<(), BackendError> {
        let context = &self.core.context;
        let _entered = context.enter()?;
        let stream = self.choose(dependencies);
        let issued = fences(stream, dependencies).and_then(|waits| stream.issue(task, &waits));
        issued.map_err(|error| {
            let error = context.fail(error);
            if let (Some(slot), false) = (task.record.get(), context.is_lost()) {
                self.core.records.give_back(*slot);
            }
            error
        })
    }

    /// Where a dependency is last, else where nothing is, else the next in turn.
    fn choose(&self, dependencies: &Dependencies) -> &Arc<Stream> {
        if let [only] = &self.streams[..] {
            return only;
        }
        for dependency in dependencies {
            if let Some(place) = dependency.task.place()
                && place.stream.is_last(place.position)
                && let Some(own) = self.streams.iter().find(|stream| Arc::ptr_eq(stream, &place.stream))
            {
                return own;
            }
        }
        self.streams.iter().find(|stream| stream.is_empty()).unwrap_or_else(|| {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            &self.streams[next % self.streams.len()]
        })
    }

    /// In-order queues: a command that does not run from the stream comes after the last one on it, and the other way round.
    fn add_order(&self, dependencies: &mut Dependencies, is_host_work: bool) {
        let mut held_back = self.held_back.lock();
        if held_back.as_ref().is_some_and(|task| task.has_ended()) {
            *held_back = None;
        }
        let last = if is_host_work { self.streams[0].last() } else { None };
        dependencies.extend(
            held_back.iter().cloned().chain(last).map(|task| TaskDependency { task, kind: DependencyKind::Order }),
        );
    }
}

/// Events of other streams that the dependencies are waited for by.
fn fences(
    stream: &Arc<Stream>,
    dependencies: &Dependencies,
) -> Result<SmallVec<[RawEvent; 4]>, crate::error::DriverError> {
    let mut waits = SmallVec::new();
    for dependency in dependencies {
        if let Some(place) = dependency.task.place()
            && !Arc::ptr_eq(&place.stream, stream)
            && let Some(event) = place.stream.fence(place.position)?
            && !waits.contains(&event)
        {
            waits.push(event);
        }
    }
    Ok(waits)
}

impl Queue for CudaQueue {
    unsafe fn enqueue(
        &self,
        command: Command,
        dependencies: &[Dependency],
        completion: Arc<dyn Completion>,
    ) -> Result<Arc<dyn Event>, BackendError> {
        let queue = &self.shared;
        let core = &queue.core;
        core.context.check_alive()?;
        let shape = shape_of(core, &command)?;
        let is_host_work = transfer::needs_host(&core.context, &command)?;
        if let (Command::Fill(command), false) = (&command, is_host_work) {
            fill::prepare(core, command)?;
        }
        let mut sorted = sort(core, dependencies)?;
        if queue.options.in_order {
            queue.add_order(&mut sorted.open, is_host_work || sorted.cause.is_some());
        }
        core.expect_task()?;
        let can_issue =
            sorted.cause.is_none() && !is_host_work && sorted.open.iter().all(|dependency| dependency.task.is_issued());
        let open = sorted.open.clone();
        let task = Arc::new(CudaTask::new(queue.clone(), command, shape, is_host_work, sorted.open, completion));
        if can_issue {
            if let Err(error) = queue.issue(&task, &open) {
                core.forget_task();
                return Err(error);
            }
            task.set_issued_unshared();
            return Ok(task);
        }
        let until_end = is_host_work || sorted.cause.is_some();
        if let Some(cause) = sorted.cause {
            task.doom(task.dependency_failure(&cause));
        }
        if queue.options.in_order {
            *queue.held_back.lock() = Some(task.clone());
        }
        if advance::wait_for(&task, &open, until_end) {
            advance::release_quietly(task.clone());
        }
        Ok(task)
    }

    fn flush(&self) -> Result<(), BackendError> {
        self.shared.core.context.check_alive()
    }

    fn help(&self) -> bool {
        let core = &self.shared.core;
        if core.context.is_foreign() {
            return false;
        }
        let mut progress = advance::tell_dead(core);
        for stream in &self.shared.streams {
            if !stream.is_empty() {
                progress |= advance::drain(stream, false);
            }
        }
        progress || copier::run_one(core)
    }

    fn native(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

struct Sorted {
    /// Dependencies that have not ended.
    open: Dependencies,
    /// The failure of one that must not fail.
    cause: Option<CommandFailure>,
}

fn sort(core: &Gpu, dependencies: &[Dependency]) -> Result<Sorted, BackendError> {
    let mut sorted = Sorted { open: Dependencies::new(), cause: None };
    for dependency in dependencies {
        let kind = dependency.kind;
        let Some(task) = CudaTask::of(dependency) else {
            let what = "waiting for an event of another backend".to_owned();
            return Err(BackendError::Unsupported { device: core.context.name.clone(), what });
        };
        let has_ended = task.has_ended();
        if kind == DependencyKind::Data && sorted.cause.is_none() {
            sorted.cause = if has_ended { task.failure() } else { task.known_failure() };
        }
        if !has_ended {
            sorted.open.push(TaskDependency { task, kind });
        }
    }
    Ok(sorted)
}

/// How a kernel is launched, after a check of what the driver would not check.
fn shape_of(core: &Gpu, command: &Command) -> Result<Option<LaunchShape>, BackendError> {
    let Command::Kernel(command) = command else { return Ok(None) };
    let unsupported = |what: String| BackendError::Unsupported { device: core.context.name.clone(), what };
    let refuse = |what: String| Err(unsupported(what));
    let name = command.descriptor.display_name();
    let Some(kernel) = command.code.as_deref().and_then(CudaKernel::of) else {
        return refuse(format!("kernel \"{name}\" without an image that was loaded on a CUDA device"));
    };
    if !Arc::ptr_eq(&kernel.module.context, &core.context) {
        let other = &kernel.module.context.name;
        return refuse(format!("kernel \"{name}\", whose image was loaded on another device (\"{other}\")"));
    }
    check_arguments(command, kernel).map_err(unsupported)?;
    match LaunchShape::new(&command.range, kernel.block_threads) {
        Some(shape) => Ok(Some(shape)),
        None => refuse(format!("a launch of kernel \"{name}\" over {:?} work-items", command.range.extent)),
    }
}

fn check_arguments(command: &KernelCommand, kernel: &CudaKernel) -> Result<(), String> {
    let (expected, found) = (kernel.parameters.size, command.descriptor.parameters.size);
    // The driver reads as many bytes as the image says.
    if expected == found && command.arguments.size() >= expected {
        return Ok(());
    }
    let (name, symbol) = (command.descriptor.display_name(), &kernel.symbol);
    Err(format!("kernel \"{name}\": its argument is {found} bytes, but {expected} in the image (symbol {symbol})"))
}
