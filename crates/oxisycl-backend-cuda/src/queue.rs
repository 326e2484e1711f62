//! Queues: one stream if commands run in order, a few otherwise.
//!
//! A command is put on a stream when it is enqueued, and the device keeps the order, by the stream and by events. Transfers of memory that
//! the driver does not know are left to the host ([`Queue::is_executed`]).

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oxisycl_backend::driver::open_dependencies;
use oxisycl_backend::{
    BackendError, Command, Completion, Dependency, Event, KernelCommand, Outcome, Queue, QueueOptions,
};
use smallvec::SmallVec;

use crate::advance;
use crate::error::DriverError;
use crate::execute::Launch;
use crate::fill;
use crate::gpu::Gpu;
use crate::host_transfer;
use crate::launch_shape::LaunchShape;
use crate::module::CudaKernel;
use crate::native::native_streams;
use crate::print_pool::PrintPool;
use crate::stream::Stream;
use crate::sys::RawEvent;
use crate::task::{CudaTask, Extras};
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
    pub(crate) prints: PrintPool,
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
            prints: PrintPool::new(core.clone(), options.print_buffer),
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl QueueShared {
    /// The stream of a task, and events of other streams that it waits for. The context is current.
    #[inline]
    fn place(&self, dependencies: &[&CudaTask]) -> Result<(usize, Waits), DriverError> {
        if dependencies.is_empty() && self.streams.len() == 1 {
            return Ok((0, Waits::new()));
        }
        let index = self.choose(dependencies);
        Ok((index, fences(&self.streams[index], dependencies)?))
    }

    /// Where a dependency is last, else where nothing is, else the next in turn.
    fn choose(&self, dependencies: &[&CudaTask]) -> usize {
        if self.streams.len() == 1 {
            return 0;
        }
        for dependency in dependencies {
            if let Some(place) = dependency.place()
                && place.stream.is_last(place.position)
                && let Some(own) = self.streams.iter().position(|stream| Arc::ptr_eq(stream, place.stream))
            {
                return own;
            }
        }
        let empty = self.streams.iter().position(|stream| stream.is_empty());
        empty.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed) % self.streams.len())
    }
}

/// Events of other streams that the dependencies are waited for by.
fn fences(stream: &Arc<Stream>, dependencies: &[&CudaTask]) -> Result<Waits, DriverError> {
    let mut waits = Waits::new();
    for dependency in dependencies {
        if let Some(place) = dependency.place()
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
        if let Command::Fill(command) = &command {
            fill::prepare(core, command)?;
        }
        let open = open_dependencies(dependencies, &core.context.name)?;
        let may_print = launch.as_ref().is_some_and(|launch| launch.may_print);
        let print = if may_print { Some(queue.prints.take()?) } else { None };
        let issue = || {
            let expected = Expected::new(core)?;
            let _entered = core.context.enter()?;
            let (index, waits) = queue.place(&open).map_err(|error| core.context.fail(error))?;
            let (owner, extras) = (queue.clone(), Extras { number: expected.number, launch, print });
            let task = TASKS.make(|| CudaTask::new(owner, command, extras, completion));
            let stream = &task.queue.streams[index];
            stream.issue(&task, index, &waits).map_err(|error| core.context.fail(error))?;
            expected.accept();
            Ok(task)
        };
        let issued: Result<Arc<CudaTask>, BackendError> = issue();
        if issued.is_err() {
            print.into_iter().for_each(|buffer| queue.prints.give_back(buffer));
        }
        Ok(issued?)
    }

    fn keeps_order(&self) -> bool {
        self.shared.options.in_order
    }

    fn is_executed(&self, command: &Command) -> Result<bool, BackendError> {
        transfer::needs_host(&self.shared.core.context, command)
    }

    unsafe fn execute(&self, command: &Command) -> Outcome {
        // SAFETY: by the contract of this function.
        unsafe { host_transfer::execute(&self.shared.core, command, self.shared.options.profiling) }
    }

    fn flush(&self) -> Result<(), BackendError> {
        self.shared.core.context.check_alive()
    }

    fn help(&self) -> bool {
        let core = &self.shared.core;
        if core.context.is_foreign() {
            return false;
        }
        let mut progress = false;
        for stream in &self.shared.streams {
            if !stream.is_empty() {
                progress |= advance::drain(stream, false);
            }
        }
        if progress {
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
