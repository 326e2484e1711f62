//! Queues: one stream if commands run in order, a few otherwise.
//!
//! A command is put on a stream as soon as everything it depends on is on one, and the device keeps the order. It is held back on the
//! host only behind a transfer that the host has to execute, and behind commands that are held back.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use oxisycl_backend::driver::{DriverTask, Sorted};
use oxisycl_backend::{
    BackendError, Command, Completion, Dependency, DependencyKind, Event, KernelCommand, Queue, QueueOptions,
};
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::advance;
use crate::copier;
use crate::error::DriverError;
use crate::execute::Launch;
use crate::fill;
use crate::gpu::Gpu;
use crate::launch_shape::LaunchShape;
use crate::module::CudaKernel;
use crate::native::native_streams;
use crate::print_pool::{PrintPool, Reservation};
use crate::stream::Stream;
use crate::sys::RawEvent;
use crate::task::{CudaTask, Dependencies, TaskDependency};
use crate::task_pool::TASKS;
use crate::transfer;

/// Streams of a queue whose commands may overlap.
const STREAMS: usize = 4;

/// After so many attempts to help that found nothing, a waiting thread is about to sleep, and relies on the completer.
const MANY_IDLE_HELPS: usize = 20;

/// Events that a stream waits for.
type Waits = SmallVec<[RawEvent; 4]>;

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
        let place = self.place(dependencies);
        let issued = place.and_then(|(index, waits)| self.streams[index].issue(task, index, &waits));
        issued.map_err(|error| context.fail(error))
    }

    /// The stream of a task, and events of other streams that it waits for. The context is current.
    #[inline]
    fn place(&self, dependencies: &Dependencies) -> Result<(usize, Waits), DriverError> {
        if dependencies.is_empty() && self.streams.len() == 1 {
            return Ok((0, Waits::new()));
        }
        let index = self.choose(dependencies);
        Ok((index, fences(&self.streams[index], dependencies)?))
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
fn fences(stream: &Arc<Stream>, dependencies: &Dependencies) -> Result<Waits, DriverError> {
    let mut waits = Waits::new();
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

// SAFETY: commands are issued behind their dependencies, by streams and events or by the host, and end when the driver says so.
unsafe impl Queue for CudaQueue {
    unsafe fn enqueue(
        &self,
        command: Command,
        dependencies: &[Dependency],
        completion: Arc<dyn Completion>,
    ) -> Result<Arc<dyn Event>, BackendError> {
        let queue = &self.shared;
        let core = &queue.core;
        core.context.check_alive()?;
        let launch = launch_of(core, &command)?;
        let is_host_work = transfer::needs_host(&core.context, &command)?;
        if let (Command::Fill(command), false) = (&command, is_host_work) {
            fill::prepare(core, command)?;
        }
        let mut sorted = Sorted::new();
        sorted.add(dependencies, &core.context.name)?;
        let may_print = launch.as_ref().is_some_and(|launch| launch.may_print);
        let mut print = if may_print { Some(queue.prints.reserve()?) } else { None };
        let last_print = print.as_ref().and_then(Reservation::open_user);
        let waits_for_buffer = last_print.is_some();
        if let Some(task) = last_print {
            sorted.open.push(TaskDependency { task, kind: DependencyKind::Order });
        }
        let expected = Expected::new(core)?;
        let until_end = is_host_work || waits_for_buffer || sorted.cause.is_some();
        let are_issued = |open: &Dependencies| open.iter().all(|dependency| dependency.task.is_issued());
        let is_held_back = until_end || !are_issued(&sorted.open);
        let order = queue.order(&mut sorted.open, is_held_back, is_host_work || sorted.cause.is_some());
        // What is held back once stays so: nothing asks again whether it was ordered.
        let can_issue = !is_held_back && (order.is_none() || are_issued(&sorted.open));
        let buffer = print.as_ref().map(Reservation::buffer);
        let number = expected.number;
        if can_issue {
            // The driver's calls may take their time. What was held back is on the stream.
            drop(order);
            let _entered = core.context.enter()?;
            let (index, waits) = queue.place(&sorted.open).map_err(|error| core.context.fail(error))?;
            let (open, queue) = (sorted.open, queue.clone());
            let task = TASKS
                .make(|| CudaTask::new(queue, number, command, launch, buffer, is_host_work, true, open, completion));
            let stream = &task.queue.streams[index];
            stream.issue(&task, index, &waits).map_err(|error| core.context.fail(error))?;
            expected.accept();
            if let Some(print) = &mut print {
                print.set_user(&task);
            }
            return Ok(task);
        }
        let (open, queue) = (sorted.open.clone(), queue.clone());
        let task = TASKS.make(|| {
            CudaTask::new(queue, number, command, launch, buffer, is_host_work, false, sorted.open, completion)
        });
        expected.accept();
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

/// A task that is about to be accepted, and is forgotten if it is not.
struct Expected<'q> {
    core: &'q Gpu,
    number: u64,
}

impl<'q> Expected<'q> {
    fn new(core: &'q Arc<Gpu>) -> Result<Self, BackendError> {
        Ok(Self { core, number: core.expect_task()? })
    }

    fn accept(self) {
        std::mem::forget(self);
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.core.forget_task();
    }
}

/// How a kernel is launched, after a check of what the driver would not check.
fn launch_of(core: &Gpu, command: &Command) -> Result<Option<Launch>, BackendError> {
    let Command::Kernel(command) = command else { return Ok(None) };
    let unsupported = |what: String| BackendError::Unsupported { device: core.context.name.clone(), what };
    let refuse = |what: String| Err(unsupported(what));
    let name = || command.descriptor.display_name();
    let Some(kernel) = command.code.as_deref().and_then(CudaKernel::of) else {
        return refuse(format!("kernel \"{}\" without an image that was loaded on a CUDA device", name()));
    };
    if !Arc::ptr_eq(&kernel.module.context, &core.context) {
        let other = &kernel.module.context.name;
        return refuse(format!("kernel \"{}\", whose image was loaded on another device (\"{other}\")", name()));
    }
    check_arguments(command, kernel).map_err(unsupported)?;
    match LaunchShape::new(&command.range, kernel.block_threads, kernel.is_paired) {
        Some(shape) => {
            let &CudaKernel { function, may_panic, may_print, .. } = kernel;
            Ok(Some(Launch { function, shape, may_panic, may_print }))
        }
        None => refuse(format!("a launch of kernel \"{}\" over {:?} work-items", name(), command.range.extent)),
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
