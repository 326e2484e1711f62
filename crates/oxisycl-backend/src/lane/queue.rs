//! The contract's queues, on lanes.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::task::Extras;
use super::{Driver, Lane, Task};
use crate::driver::{BlockPool, PrintPool};
use crate::{
    BackendError, Command, Completion, Dependency, Event, KernelCommand, LoadedKernel, NativeHandle, Outcome, Queue,
    QueueInfo, QueueOptions,
};

/// The part of a queue that its tasks need.
pub struct LaneQueue<D: Driver> {
    /// The device.
    pub device: Arc<D::Device>,
    /// How the queue was made.
    pub options: QueueOptions,
    /// One lane if the queue is in order, or if the driver's lanes do not keep an order.
    pub lanes: SmallVec<[Arc<Lane<D>>; 4]>,
    /// The driver's state of the queue.
    pub part: D::Queue,
    pub(super) prints: PrintPool<D::Print>,
    pub(super) blocks: BlockPool<D::Block>,
    /// How often in a row a thread has tried to help and found no finished task.
    idle_helps: AtomicUsize,
}

/// A queue of a backend with a driver.
pub struct DriverQueue<D: Driver> {
    /// The part of the queue that its tasks keep alive.
    pub shared: Arc<LaneQueue<D>>,
    own: D::Own,
}

impl<D: Driver> DriverQueue<D> {
    /// A queue on the given lanes of the device, at least one.
    pub fn new(
        device: &Arc<D::Device>,
        options: QueueOptions,
        lanes: SmallVec<[Arc<Lane<D>>; 4]>,
        part: D::Queue,
    ) -> Self {
        let prints = PrintPool::new(options.print_buffer);
        let idle_helps = AtomicUsize::new(0);
        let shared = LaneQueue {
            device: device.clone(),
            options,
            lanes,
            part,
            prints,
            blocks: BlockPool::default(),
            idle_helps,
        };
        Self { shared: Arc::new(shared), own: D::Own::default() }
    }

    /// Downcasts a queue; `None` if it is not one of this driver.
    pub fn of(queue: &dyn Queue) -> Option<&Self> {
        (queue as &dyn Any).downcast_ref()
    }
}

/// Buffers that are returned to their pools on drop, unless a task has taken them.
struct Reserved<'q, D: Driver> {
    queue: &'q LaneQueue<D>,
    print: Option<D::Print>,
    block: Option<LaunchBlock<D>>,
}

/// Memory for the arguments of a launch, and the number of bytes that it was taken for.
pub(super) type LaunchBlock<D> = (usize, <D as Driver>::Block);

impl<D: Driver> Drop for Reserved<'_, D> {
    fn drop(&mut self) {
        if let Some(print) = self.print.take() {
            self.queue.prints.give_back(print);
        }
        if let Some((size, block)) = self.block.take() {
            self.queue.blocks.give_back(size, block);
        }
    }
}

// SAFETY: commands are issued behind their dependencies, which are on lanes of the driver, and end when the driver says so ([`Driver`]).
unsafe impl<D: Driver> Queue for DriverQueue<D> {
    unsafe fn issue(
        &self,
        command: Command,
        dependencies: &[Dependency],
        completion: Arc<dyn Completion>,
    ) -> Result<Arc<dyn Event>, BackendError> {
        let queue = &self.shared;
        let device = &queue.device;
        let _entered = D::enter_to_issue(device, &command)?;
        let Accepted { launch, may_panic, may_print, block_size } = match &command {
            Command::Kernel(command) => launch_of::<D>(device, command)?,
            _ => Accepted { launch: None, may_panic: false, may_print: false, block_size: None },
        };
        D::prepare(device, &command)?;
        let open = open_dependencies::<D>(dependencies, device)?;
        let take = || queue.prints.take(|capacity| D::print_buffer(device, capacity));
        let print = if may_print { Some(take()?) } else { None };
        let mut reserved = Reserved { queue, print: print.clone(), block: None };
        let block = match block_size {
            Some(size) => Some((size, queue.blocks.take(size, |size| D::block(device, size))?)),
            None => None,
        };
        reserved.block.clone_from(&block);
        let expected = D::lanes(device).counts.expect();
        D::counted(device);
        let (index, waits) = D::choose_lane(queue, &open)?;
        let extras = Extras { number: expected.number, launch, print, block };
        let task = queue.lanes[index].issue(may_panic, waits, |position, record| {
            let place = (index, position, record);
            D::tasks().make(|| Task::new(queue.clone(), command, extras, completion, place))
        })?;
        expected.accept();
        (reserved.print, reserved.block) = (None, None);
        D::submitted(&self.own, &task);
        Ok(task)
    }

    fn info(&self) -> QueueInfo {
        let queue = &self.shared;
        QueueInfo { keeps_order: queue.options.in_order, progress: Some(queue.device.clone()), ..D::info(queue) }
    }

    fn is_executed(&self, command: &Command) -> Result<bool, BackendError> {
        D::is_executed(&self.shared.device, command)
    }

    unsafe fn execute(&self, command: &Command) -> Outcome {
        // SAFETY: by the contract of this function.
        unsafe { D::execute(&self.shared, command) }
    }

    fn flush(&self) -> Result<(), BackendError> {
        let _entered = D::enter(&self.shared.device)?;
        self.shared.lanes.iter().for_each(|lane| D::hand_over(lane));
        D::flush(&self.shared)
    }

    fn help(&self, goes_on: &mut dyn FnMut(bool) -> bool) {
        let mut has_helped = false;
        while goes_on(has_helped) {
            has_helped = self.shared.help();
        }
    }

    unsafe fn native_wait(&self, event: *mut c_void) -> Result<Command, BackendError> {
        // SAFETY: by the contract of this function.
        unsafe { D::native_wait(&self.shared, event) }
    }

    fn native_handle(&self, handle: NativeHandle) -> Option<*mut c_void> {
        D::native_handle(&self.shared, handle)
    }
}

impl<D: Driver> LaneQueue<D> {
    /// Polls for tasks of the queue, for a thread that waits. Returns whether any was reported.
    fn help(&self) -> bool {
        let device = &self.device;
        let lanes = D::lanes(device);
        if lanes.counts.is_foreign() {
            return false;
        }
        self.lanes.iter().for_each(|lane| D::hand_over(lane));
        let progress = if D::HELPS_ALL {
            lanes.poll(device, false)
        } else {
            let poll = |progress, lane: &Arc<Lane<D>>| progress | (!lane.is_empty() && lane.poll(false));
            D::begin_poll(device).is_some_and(|_guard| self.lanes.iter().fold(false, poll))
        };
        if progress {
            self.idle_helps.store(0, Ordering::Relaxed);
        } else if self.idle_helps.fetch_add(1, Ordering::Relaxed) == D::IDLE_HELPS {
            lanes.counts.bell().hurry();
        }
        progress
    }
}

/// The dependencies that have not ended. Their failures do not matter to a backend that issues commands ahead.
#[inline]
fn open_dependencies<'d, D: Driver>(
    dependencies: &'d [Dependency],
    device: &D::Device,
) -> Result<SmallVec<[&'d Task<D>; 4]>, BackendError> {
    let mut open = SmallVec::new();
    for Dependency { event, .. } in dependencies {
        let any: &dyn Any = &**event;
        let Some(task) = any.downcast_ref::<Task<D>>() else {
            let what = "waiting for an event of another backend".to_owned();
            return Err(BackendError::Unsupported { device: D::name(device).to_owned(), what });
        };
        if !task.has_ended() {
            open.push(task);
        }
    }
    Ok(open)
}

/// What a launch needs.
struct Accepted<D: Driver> {
    /// The shape of a kernel's launch.
    launch: Option<D::Launch>,
    may_panic: bool,
    may_print: bool,
    /// Bytes of memory for arguments that are passed by their address.
    block_size: Option<usize>,
}

/// What a kernel's launch needs. Checks what the driver does not check, or reports without names.
#[inline]
fn launch_of<D: Driver>(device: &D::Device, command: &KernelCommand) -> Result<Accepted<D>, BackendError> {
    let refuse = |what: String| BackendError::Unsupported { device: D::name(device).to_owned(), what };
    // Found where it is wanted: this is done for each launch.
    let name = || command.descriptor.display_name();
    let Some(kernel) = D::kernel_of(command) else {
        return Err(refuse(format!(
            "kernel \"{}\" without an image that was loaded on a device of its backend",
            name()
        )));
    };
    let facts = D::facts(kernel);
    if !D::is_loaded_on(kernel, device) {
        let other = facts.device;
        return Err(refuse(format!("kernel \"{}\", whose image was loaded on another device (\"{other}\")", name())));
    }
    let (expected, found) = (facts.parameters.size, command.descriptor.parameters.size);
    // The driver reads as many bytes as the image says.
    if expected != found || command.arguments.size() < expected {
        let (name, symbol) = (name(), facts.symbol);
        let what =
            format!("kernel \"{name}\": its argument is {found} bytes, but {expected} in the image (symbol {symbol})");
        return Err(refuse(what));
    }
    let launch = D::launch(device, kernel, command).map_err(refuse)?;
    if launch.is_none() {
        let (name, extent) = (name(), command.range.extent);
        return Err(refuse(format!("a launch of kernel \"{name}\" over {extent:?} work-items")));
    }
    // A block begins where its alignment has a place.
    let block_size = facts.by_address.then(|| expected + facts.parameters.align);
    Ok(Accepted { launch, may_panic: facts.may_panic, may_print: kernel.info().may_print, block_size })
}
