//! Queues: one stream if commands run in order, a few otherwise.
//!
//! A command is put on a stream as soon as everything it depends on is on one, and the device keeps the order. It is held back on the
//! host only behind a transfer that the host has to execute, and behind commands that are held back.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use oxisycl_backend::{
    BackendError, Command, CommandFailure, Completion, Dependency, DependencyKind, Event, KernelCommand, Queue,
    QueueOptions,
};
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::advance;
use crate::copier;
use crate::error::DriverError;
use crate::fill;
use crate::gpu::Gpu;
use crate::launch_shape::LaunchShape;
use crate::module::CudaKernel;
use crate::native::native_streams;
use crate::print_pool::{PrintPool, Reservation};
use crate::stream::Stream;
use crate::sys::RawEvent;
use crate::task::{CudaTask, Dependencies, TaskDependency};
use crate::task_pool;
use crate::transfer;

/// Streams of a queue whose commands may overlap.
const STREAMS: usize = 4;

/// After so many attempts to help that found nothing, a waiting thread is about to sleep, and relies on the completer.
const MANY_IDLE_HELPS: usize = 20;

/// The part of a queue that its tasks need.
pub(crate) struct QueueShared {
    pub(crate) core: Arc<Gpu>,
    pub(crate) options: QueueOptions,
    pub(crate) streams: Vec<Arc<Stream>>,
    next: AtomicUsize,
    /// How often in a row a thread has tried to help and found nothing to do.
    idle_helps: AtomicUsize,
    /// In-order queues: the last command that was held back, as long as it matters.
    held_back: Mutex<Option<Arc<CudaTask>>>,
    /// Whether there is one, to be read without the lock.
    is_holding_back: AtomicBool,
    prints: PrintPool,
}

/// Where a task goes.
struct Plan {
    /// Which stream.
    index: usize,
    /// Events of other streams that it waits for.
    waits: SmallVec<[RawEvent; 4]>,
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
        // Loading waits for running kernels, which the first fill should not. One that needs them and has none says so itself.
        let _ = core.fill_kernels.prepare(context);
        let shared = QueueShared {
            core: core.clone(),
            options,
            streams,
            next: AtomicUsize::new(0),
            idle_helps: AtomicUsize::new(0),
            held_back: Mutex::new(None),
            is_holding_back: AtomicBool::new(false),
            prints: PrintPool::new(core.clone(), options.print_buffer),
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl QueueShared {
    /// Puts a task on a stream, behind its dependencies, which are on streams or have ended.
    pub(crate) fn issue(&self, task: &Arc<CudaTask>, dependencies: &Dependencies) -> Result<(), BackendError> {
        let context = &self.core.context;
        let _entered = context.enter()?;
        let plan = self.plan(dependencies);
        plan.and_then(|plan| self.put(task, &plan)).map_err(|error| context.fail(error))
    }

    /// Decides where a task goes. The context is current.
    fn plan(&self, dependencies: &Dependencies) -> Result<Plan, DriverError> {
        let index = self.choose(dependencies);
        Ok(Plan { index, waits: fences(&self.streams[index], dependencies)? })
    }

    fn put(&self, task: &Arc<CudaTask>, plan: &Plan) -> Result<(), DriverError> {
        self.streams[plan.index].issue(task, plan.index, &plan.waits)
    }

    /// Where a dependency is last, else where nothing is, else the next in turn.
    fn choose(&self, dependencies: &Dependencies) -> usize {
        if self.streams.len() == 1 {
            return 0;
        }
        for dependency in dependencies {
            if let Some(place) = dependency.task.place()
                && place.stream.is_last(place.position)
                && let Some(own) = self.streams.iter().position(|stream| Arc::ptr_eq(stream, place.stream))
            {
                return own;
            }
        }
        let empty = self.streams.iter().position(|stream| stream.is_empty());
        empty.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed) % self.streams.len())
    }

    /// The task has ended. A queue that kept it would never be dropped, since the task keeps the queue.
    pub(crate) fn let_go(&self, task: &Arc<CudaTask>) {
        if !self.is_holding_back.load(Ordering::Acquire) {
            return;
        }
        let mut held_back = self.held_back.lock();
        let kept = held_back.take_if(|kept| Arc::ptr_eq(kept, task));
        if kept.is_some() {
            self.is_holding_back.store(false, Ordering::Release);
        }
        // Not the last reference, so that nothing is dropped with the lock held.
        drop(held_back);
    }

    /// In-order queues: a command that does not run from the stream comes after the last one on it, and the other way round. `None` if
    /// there is nothing to order: every command of the queue has been on the stream. Otherwise no other command is ordered as long as the
    /// result exists.
    fn order(&self, dependencies: &mut Dependencies, is_held_back: bool, is_from_host: bool) -> Option<Order<'_>> {
        if !self.options.in_order || (!is_held_back && !self.is_holding_back.load(Ordering::Acquire)) {
            return None;
        }
        let order = Order { queue: self, held_back: self.held_back.lock() };
        let earlier = order.held_back.iter().filter(|task| !task.has_ended()).cloned();
        let last = if is_from_host { self.streams[0].last() } else { None };
        dependencies.extend(earlier.chain(last).map(|task| TaskDependency { task, kind: DependencyKind::Order }));
        Some(order)
    }
}

/// A command of an in-order queue is being ordered. What it comes after was asked for under the same lock under which it becomes what others
/// come after: of two threads that enqueue at the same time, one is ordered behind the other.
struct Order<'q> {
    queue: &'q QueueShared,
    held_back: MutexGuard<'q, Option<Arc<CudaTask>>>,
}

impl Order<'_> {
    /// The command is held back: later ones come after it.
    fn hold_back(mut self, task: &Arc<CudaTask>) {
        let earlier = self.held_back.replace(task.clone());
        self.queue.is_holding_back.store(true, Ordering::Release);
        drop(self);
        // With the lock held, it would be dropped with all that it keeps.
        drop(earlier);
    }
}

/// Events of other streams that the dependencies are waited for by.
fn fences(stream: &Arc<Stream>, dependencies: &Dependencies) -> Result<SmallVec<[RawEvent; 4]>, DriverError> {
    let mut waits = SmallVec::new();
    for dependency in dependencies {
        if let Some(place) = dependency.task.place()
            && !Arc::ptr_eq(place.stream, stream)
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
        let mut print = if may_print(&command) { Some(queue.prints.reserve()?) } else { None };
        let last_print = print.as_ref().and_then(Reservation::open_user);
        let waits_for_buffer = last_print.is_some();
        sorted.open.extend(last_print.map(|task| TaskDependency { task, kind: DependencyKind::Order }));
        let number = core.expect_task()?;
        let until_end = is_host_work || waits_for_buffer || sorted.cause.is_some();
        let are_issued = |open: &Dependencies| open.iter().all(|dependency| dependency.task.is_issued());
        let is_held_back = until_end || !are_issued(&sorted.open);
        let order = queue.order(&mut sorted.open, is_held_back, is_host_work || sorted.cause.is_some());
        // What is held back once stays so: nothing asks again whether it was ordered.
        let can_issue = !is_held_back && (order.is_none() || are_issued(&sorted.open));
        let buffer = print.as_ref().map(Reservation::buffer);
        let make = |dependencies| {
            task_pool::make(|| {
                let queue = queue.clone();
                CudaTask::new(queue, number, command, shape, buffer, is_host_work, can_issue, dependencies, completion)
            })
        };
        if can_issue {
            // The driver's calls may take their time. What was held back is on the stream.
            drop(order);
            let issue = || {
                let _entered = core.context.enter()?;
                let issued = queue.plan(&sorted.open).and_then(|plan| {
                    let task = make(sorted.open);
                    queue.put(&task, &plan)?;
                    Ok(task)
                });
                issued.map_err(|error| core.context.fail(error))
            };
            return match issue() {
                Ok(task) => {
                    if let Some(print) = &mut print {
                        print.set_user(&task);
                    }
                    Ok(task)
                }
                Err(error) => {
                    core.forget_task();
                    Err(error)
                }
            };
        }
        let open = sorted.open.clone();
        let task = make(sorted.open);
        if let Some(print) = &mut print {
            print.set_user(&task);
        }
        drop(print);
        if let Some(cause) = sorted.cause {
            task.doom(task.dependency_failure(&cause));
        }
        if let Some(order) = order {
            order.hold_back(&task);
        }
        if advance::wait_for(&task, &open, until_end) {
            advance::release_quietly(task.clone());
        }
        Ok(task)
    }

    fn keeps_order(&self) -> bool {
        self.shared.options.in_order
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
        if progress || copier::run_one(core) {
            self.shared.idle_helps.store(0, Ordering::Relaxed);
            return true;
        }
        if self.shared.idle_helps.fetch_add(1, Ordering::Relaxed) == MANY_IDLE_HELPS {
            core.completer().hurry();
        }
        false
    }

    fn patience(&self) -> Duration {
        // The completer naps between its looks; a wait as long as a large kernel would end late by some percent of it.
        Duration::from_millis(2)
    }

    fn native_queue(&self) -> Option<*mut c_void> {
        native_streams(self)?.first().copied()
    }

    fn native(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

fn may_print(command: &Command) -> bool {
    let Command::Kernel(command) = command else { return false };
    command.code.as_deref().and_then(CudaKernel::of).is_some_and(|kernel| kernel.may_print)
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
        let Some(task) = CudaTask::look_at(dependency) else {
            let what = "waiting for an event of another backend".to_owned();
            return Err(BackendError::Unsupported { device: core.context.name.clone(), what });
        };
        let has_ended = task.has_ended();
        if kind == DependencyKind::Data && sorted.cause.is_none() {
            sorted.cause = if has_ended { task.failure() } else { task.known_failure() };
        }
        if let (false, Some(task)) = (has_ended, CudaTask::of(dependency)) {
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
    match LaunchShape::new(&command.range, kernel.block_threads, kernel.is_paired) {
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
