//! Queues: one queue of the driver each, in order or not.
//!
//! A command is given to the driver when it is enqueued, with the list of events that it waits for. Such a list cannot name events of
//! another context, which is another device: what depends on those is enqueued once they are complete ([`Queue::can_wait_for`]).

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use oxisycl_backend::driver::open_dependencies;
use oxisycl_backend::{
    BackendError, Command, Completion, Dependency, Event, KernelCommand, Priority, Queue, QueueOptions,
};
use oxisycl_types::{DeviceLaunch, DeviceType};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::advance;
use crate::core::Core;
use crate::emitter::Emitter;
use crate::error::check;
use crate::execute::{self, Kept};
use crate::launch_shape::LaunchShape;
use crate::module::ClKernel;
use crate::native;
use crate::print_pool::PrintPool;
use crate::query::Asked;
use crate::recent::Recent;
use crate::sys::{Handle, Object, code};
use crate::task::{Extras, Issued, Task};
use crate::task_pool::TASKS;

/// After so many attempts to help that found nothing, a waiting thread is about to sleep, and relies on the completer.
const MANY_IDLE_HELPS: usize = 20;
/// How many commands of a queue are looked at before others get a turn.
const BATCH: usize = 256;

/// The part of a queue that its tasks need.
pub(crate) struct QueueShared {
    pub(crate) core: Arc<Core>,
    pub(crate) options: QueueOptions,
    pub(crate) raw: Object,
    /// What `raw` was made with.
    properties: Vec<u64>,
    /// Whether code outside of this crate may have `raw`.
    pub(crate) is_known_outside: AtomicBool,
    /// Whether the driver runs commands one after the other: asked for, or all that the device has.
    driver_keeps_order: bool,
    /// Whether there are commands that the driver may hold back until it is told to go on.
    is_unflushed: AtomicBool,
    /// How often in a row a thread has tried to help and found nothing to do.
    idle_helps: AtomicUsize,
    /// The commands that the driver has, as far as nothing is known of their end. In the driver's order, if it keeps one.
    issued: Mutex<VecDeque<Arc<Task>>>,
    pub(crate) prints: PrintPool,
}

pub(crate) struct ClQueue {
    pub(crate) shared: Arc<QueueShared>,
    /// Not shared, since tasks hold what is. In-order queues: locked while a command is put behind the last one.
    recent: Mutex<Recent>,
    /// How long a waiting thread looks itself.
    patience: Duration,
}

impl ClQueue {
    /// The queue, if it is one of this backend.
    pub(crate) fn of(queue: &dyn Queue) -> Option<&Self> {
        queue.native()?.downcast_ref()
    }

    pub(crate) fn new(core: &Arc<Core>, device_type: DeviceType, options: QueueOptions) -> Result<Self, BackendError> {
        let context = &core.context;
        context.check_alive()?;
        let device = Asked::device(&context.functions, context.device);
        let has_out_of_order =
            device.number(code::DEVICE_QUEUE_PROPERTIES) & code::QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0;
        let driver_keeps_order = options.in_order || !has_out_of_order;
        let properties = properties(device, options, driver_keeps_order);
        let raw = context.queues.take(context, &properties).map_err(|error| context.fail(error))?;
        let shared = Arc::new(QueueShared {
            core: core.clone(),
            options,
            raw,
            properties,
            is_known_outside: AtomicBool::new(false),
            driver_keeps_order,
            is_unflushed: AtomicBool::new(false),
            idle_helps: AtomicUsize::new(0),
            issued: Mutex::default(),
            prints: PrintPool::new(context.clone(), options.print_buffer),
        });
        if options.profiling {
            core.clock.set_base(context, raw).map_err(|error| context.fail(error))?;
        }
        crate::ending::watch();
        core.add_queue(&shared);
        // A thread that waits for a device made of the same processors must leave them to it.
        let patience = if device_type == DeviceType::Cpu { 20 } else { 2000 };
        Ok(Self { shared, recent: Mutex::default(), patience: Duration::from_micros(patience) })
    }
}

/// OpenCL's list of properties of a queue.
fn properties(device: Asked<'_>, options: QueueOptions, keeps_order: bool) -> Vec<u64> {
    let extensions = device.text(code::DEVICE_EXTENSIONS);
    let has_priorities = extensions.split_whitespace().any(|name| name == "cl_khr_priority_hints");
    let mut bits = 0;
    if !keeps_order {
        bits |= code::QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    }
    if options.profiling {
        bits |= code::QUEUE_PROFILING_ENABLE;
    }
    let mut properties = vec![code::QUEUE_PROPERTIES, bits];
    match options.priority {
        Priority::Low if has_priorities => properties.extend([code::QUEUE_PRIORITY, code::QUEUE_PRIORITY_LOW]),
        Priority::High if has_priorities => properties.extend([code::QUEUE_PRIORITY, code::QUEUE_PRIORITY_HIGH]),
        _ => {}
    }
    properties.push(0);
    properties
}

impl QueueShared {
    /// Gives a task to the driver, behind `dependencies`, which the driver has. On an error the driver has nothing of it.
    fn issue(&self, task: &Arc<Task>, dependencies: &[&Task]) -> Result<(), BackendError> {
        let context = &self.core.context;
        context.check_alive()?;
        let mut waits: SmallVec<[Handle; 4]> = SmallVec::new();
        // Borrowed until the driver has the list.
        let mut borrowed: SmallVec<[_; 4]> = SmallVec::new();
        for dependency in dependencies {
            let is_own = std::ptr::eq(&*dependency.queue, self);
            if !is_own {
                // Commands of another queue may be waited for once that was flushed.
                dependency.queue.flush()?;
            }
            // The driver's own order is enough within a queue that has one.
            if !(is_own && self.driver_keeps_order)
                && let Some(emitted) = dependency.issued().map(Issued::emitted)
            {
                waits.extend(emitted.events.iter().map(|event| event.0));
                borrowed.push(emitted);
            }
        }
        let follows = self.options.in_order || !dependencies.is_empty();
        let mut emitter = Emitter::new(context, self.raw, self.driver_keeps_order, self.options.profiling, waits);
        let mut kept = Kept::default();
        let error = execute::emit(task, follows, &mut emitter, &mut kept).err();
        if let Some(error) = error
            && !emitter.has_begun()
        {
            return Err(context.fail(error));
        }
        let has_begun = emitter.has_begun();
        task.set_issued(Issued::new(emitter.finish(), error, kept));
        if has_begun {
            self.is_unflushed.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Takes commands out that are over by what `ending` says of each, and gives them with that.
    pub(crate) fn take_over<E>(&self, ending: impl Fn(&Task) -> Option<E>) -> Vec<(Arc<Task>, E)> {
        let mut over = Vec::new();
        if self.driver_keeps_order {
            // Those behind one that runs have not ended.
            while over.len() < BATCH
                && let Some(first) = { self.issued.lock().front().cloned() }
                && let Some(end) = ending(&first)
            {
                let mut issued = self.issued.lock();
                // Otherwise another thread was faster.
                if issued.front().is_some_and(|task| Arc::ptr_eq(task, &first)) {
                    issued.pop_front();
                    over.push((first, end));
                }
            }
            return over;
        }
        let taken: Vec<_> = {
            let mut issued = self.issued.lock();
            let n = issued.len().min(BATCH);
            issued.drain(..n).collect()
        };
        let mut waiting = Vec::new();
        for task in taken {
            match ending(&task) {
                Some(end) => over.push((task, end)),
                None => waiting.push(task),
            }
        }
        if !waiting.is_empty() {
            // Others come first the next time.
            self.issued.lock().extend(waiting);
        }
        over
    }

    /// The commands that the driver has and may be executing.
    pub(crate) fn running(&self) -> Vec<Arc<Task>> {
        let issued = self.issued.lock();
        let n = if self.driver_keeps_order { 1 } else { issued.len() };
        issued.iter().take(n).cloned().collect()
    }

    /// The number of the first kernel, its command, and how many kernels there are.
    pub(crate) fn kernels(&self) -> Option<(u64, String, usize)> {
        let issued = self.issued.lock();
        let kernels = || issued.iter().filter(|task| task.shape.is_some());
        let first = kernels().min_by_key(|task| task.number)?;
        Some((first.number, first.command.to_string(), kernels().count()))
    }

    /// Has the driver go on with everything that it was given.
    pub(crate) fn flush(&self) -> Result<(), BackendError> {
        if !self.is_unflushed.load(Ordering::Acquire) || !self.is_unflushed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let context = &self.core.context;
        // SAFETY: the queue lives as long as `self`.
        check("clFlush", unsafe { (context.functions.clFlush)(self.raw.0) }).map_err(|error| context.fail(error))
    }
}

impl Drop for QueueShared {
    fn drop(&mut self) {
        let context = &self.core.context;
        if context.is_foreign() {
            return;
        }
        let queues = &context.queues;
        // Tasks hold their queue until they have ended, but for those of a lost device.
        if context.is_lost() || *self.is_known_outside.get_mut() {
            queues.retire(self.raw);
        } else {
            queues.give_back(std::mem::take(&mut self.properties), self.raw);
        }
    }
}

// SAFETY: commands are enqueued behind their dependencies, by events or by the host, and end when the driver says so.
unsafe impl Queue for ClQueue {
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
        let open = open_dependencies(dependencies, &core.context.name)?;
        let kernel = kernel_of(&command);
        let (may_panic, may_print) = kernel.map_or((false, false), |kernel| (kernel.may_panic, kernel.may_print));
        let print = if may_print { Some(queue.prints.take()?) } else { None };
        let give_print_back = || print.iter().for_each(|buffer| queue.prints.give_back(buffer.clone()));
        let record = if may_panic { Some(core.records.take().inspect_err(|_| give_print_back())?) } else { None };
        let give_back = || {
            record.into_iter().for_each(|slot| core.records.give_back(slot));
            give_print_back();
        };
        let number = core.expect_task().inspect_err(|_| give_back())?;
        // The order of `issued` is the driver's.
        let recent = queue.options.in_order.then(|| self.recent.lock());
        let (owner, extras) = (queue.clone(), Extras { shape, record, print: print.clone() });
        let task = TASKS.make(|| Task::new(owner, number, command, extras, completion));
        if let Err(error) = queue.issue(&task, &open) {
            core.forget_task();
            give_back();
            return Err(error);
        }
        queue.issued.lock().push_back(task.clone());
        let mut recent = recent.unwrap_or_else(|| self.recent.lock());
        let old = recent.push(task.clone());
        drop(recent);
        if let Some(old) = old {
            old.settle();
        }
        Ok(task)
    }

    fn keeps_order(&self) -> bool {
        self.shared.options.in_order
    }

    fn can_wait_for(&self, event: &dyn Event) -> bool {
        let event: &dyn Any = event;
        let task = event.downcast_ref::<Task>();
        task.is_none_or(|task| Arc::ptr_eq(&task.queue.core.context, &self.shared.core.context))
    }

    fn flush(&self) -> Result<(), BackendError> {
        self.shared.core.context.check_alive()?;
        self.shared.flush()
    }

    fn help(&self) -> bool {
        let queue = &self.shared;
        let core = &queue.core;
        if core.context.is_foreign() {
            return false;
        }
        if advance::look(core) {
            queue.idle_helps.store(0, Ordering::Relaxed);
            return true;
        }
        if queue.idle_helps.fetch_add(1, Ordering::Relaxed) == MANY_IDLE_HELPS {
            core.completer().hurry();
        }
        false
    }

    fn patience(&self) -> Duration {
        self.patience
    }

    fn native_queue(&self) -> Option<*mut c_void> {
        native::native_queue(self)
    }

    fn native(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

fn kernel_of(command: &Command) -> Option<&ClKernel> {
    let Command::Kernel(command) = command else { return None };
    command.code.as_deref().and_then(ClKernel::of)
}

/// How a kernel is launched, after a check of what the driver would not check, or not with names.
fn shape_of(core: &Core, command: &Command) -> Result<Option<LaunchShape>, BackendError> {
    let Command::Kernel(command) = command else { return Ok(None) };
    let unsupported = |what: String| BackendError::Unsupported { device: core.context.name.clone(), what };
    // Found where it is wanted: this is done for each launch.
    let name = || command.descriptor.display_name();
    let Some(kernel) = command.code.as_deref().and_then(ClKernel::of) else {
        let what = format!("kernel \"{}\" without an image that was loaded on an OpenCL device", name());
        return Err(unsupported(what));
    };
    if !Arc::ptr_eq(&kernel.module.context, &core.context) {
        let (name, other) = (name(), &kernel.module.context.name);
        let what = format!("kernel \"{name}\", whose image was loaded on another device (\"{other}\")");
        return Err(unsupported(what));
    }
    check_arguments(core, command, kernel).map_err(unsupported)?;
    match LaunchShape::new(&command.range, &kernel.limits) {
        Some(shape) => Ok(Some(shape)),
        None => {
            let (name, extent) = (name(), command.range.extent);
            Err(unsupported(format!("a launch of kernel \"{name}\" over {extent:?} work-items")))
        }
    }
}

fn check_arguments(core: &Core, command: &KernelCommand, kernel: &ClKernel) -> Result<(), String> {
    let (expected, found) = (kernel.parameters.size, command.descriptor.parameters.size);
    let name = || command.descriptor.display_name();
    // The driver reads as many bytes as the image says.
    if expected != found || command.arguments.size() < expected {
        let (name, symbol) = (name(), &kernel.symbol);
        return Err(format!(
            "kernel \"{name}\": its argument is {found} bytes, but {expected} in the image (symbol {symbol})"
        ));
    }
    let all = size_of::<DeviceLaunch>() + expected;
    if all > core.max_arguments {
        let name = name();
        return Err(format!(
            "kernel \"{name}\": its captures and what comes with a launch are {all} bytes; the device takes {} bytes of \
             arguments (CL_DEVICE_MAX_PARAMETER_SIZE)",
            core.max_arguments
        ));
    }
    Ok(())
}
