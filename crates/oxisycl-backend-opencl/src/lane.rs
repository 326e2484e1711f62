//! OpenCL as the lanes of [`oxisycl_backend::lane`] see it: a queue is one queue of the driver, in order or not.
//!
//! A command is given to the driver when it is issued, with the list of events that it waits for. Such a list cannot name events of
//! another context, which is another device.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxisycl_backend::driver::take_report;
use oxisycl_backend::lane::{Driver, DriverQueue, KernelFacts, Lane, LaneQueue, Lanes, Ring, Task, Tasks};
use oxisycl_backend::pool::{Near, Pool};
use oxisycl_backend::{
    BackendError, Command, EventStatus, ExecutionTimes, KernelCommand, KernelOutput, NativeHandle, Priority, QueueInfo,
    QueueOptions,
};
use oxisycl_image::{KernelEntry, PanicSite, ParameterLayout};
use oxisycl_types::{DeviceType, PanicRecord};
use parking_lot::{Mutex, RwLockReadGuard};
use smallvec::{SmallVec, smallvec};

use crate::block_buffer::BlockBuffer;
use crate::context::Context;
use crate::device_state::DeviceState;
use crate::emitter::Emitter;
use crate::error::{ClError, check};
use crate::execute;
use crate::foreign;
use crate::issued::{Issued, Reached, Resources};
use crate::launch_shape::LaunchShape;
use crate::module::ClKernel;
use crate::print_buffer::PrintBuffer;
use crate::process_exit;
use crate::query::Asked;
use crate::records::{RecordMemory, Slot};
use crate::submit_polling::SubmitPolling;
use crate::sys::{Handle, Object, code};

/// The most unfinished commands of a queue. A driver needs memory for each command that it has. Intel's for CPUs takes 2.3 KB for a launch,
/// and the panic record is 1 KiB more. The shortest commands take that driver 10 ms, and polls are 0.5 ms apart at most.
const MAX_UNFINISHED: usize = 4096;
/// How many commands of a queue are queried before other queues are polled.
const BATCH: usize = 256;

/// The OpenCL driver.
pub(crate) struct OpenCl;

pub(crate) type ClQueue = DriverQueue<OpenCl>;
pub(crate) type ClTask = Task<OpenCl>;
pub(crate) type ClLane = Lane<OpenCl>;

/// A driver queue, until it is returned to its pool.
pub(crate) struct Stream {
    pub(crate) raw: Object,
    /// Whether the driver may hold commands back until a flush.
    is_unflushed: AtomicBool,
}

/// The driver's state of a queue, beside its lane.
pub(crate) struct QueuePart {
    context: Arc<Context>,
    raw: Object,
    /// The properties that `raw` was made with; `None` if other code has made it. The part then holds one reference.
    properties: Option<Vec<u64>>,
    /// Whether code outside of this crate may have `raw`.
    is_known_outside: AtomicBool,
    /// How long a waiting thread polls before it sleeps.
    help_timeout: Duration,
}

/// The dependencies that a task waits for.
pub(crate) struct Waits<'t> {
    /// Tasks that the queue's own order does not cover. Those on other lanes were flushed to the driver.
    pub(crate) open: SmallVec<[&'t ClTask; 4]>,
    /// Whether the task has to come after others that have not ended.
    pub(crate) follows: bool,
}

thread_local! {
    static NEAR: Near<Arc<MaybeUninit<ClTask>>> = const { Near::new() };
}

/// Tasks are made by threads that submit, and end on another thread.
static TASKS: Tasks<OpenCl> = Pool::new(&NEAR);

/// Creates a queue of the device.
pub(crate) fn create_queue(
    device: &Arc<DeviceState>,
    device_type: DeviceType,
    options: QueueOptions,
) -> Result<ClQueue, BackendError> {
    let context = &device.context;
    context.check_alive()?;
    let asked = Asked::device(&context.functions, context.device);
    let has_out_of_order = asked.number(code::DEVICE_QUEUE_PROPERTIES) & code::QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0;
    let keeps_order = options.in_order || !has_out_of_order;
    let properties = properties(asked, options, keeps_order);
    let raw = context
        .queues
        .take(&context.functions, (context.raw, context.device), &properties)
        .map_err(|error| context.fail(error))?;
    let part = QueuePart::new(context, raw, Some(properties), device_type);
    if options.profiling {
        device.clock.set_base(context, raw).map_err(|error| context.fail(error))?;
    }
    Ok(on_lane(device, options, part, keeps_order))
}

/// A queue of the device whose commands go on a driver queue of other code. Takes over one reference of that.
pub(crate) fn adopt_queue(
    device: &Arc<DeviceState>,
    device_type: DeviceType,
    raw: Object,
    options: QueueOptions,
) -> Result<ClQueue, BackendError> {
    let context = &device.context;
    let part = QueuePart::new(context, raw, None, device_type);
    if options.profiling {
        // By another queue: the other code's work may take any time.
        let properties = vec![code::QUEUE_PROPERTIES, code::QUEUE_PROFILING_ENABLE, 0];
        let own = (context.raw, context.device);
        let other = context.queues.take(&context.functions, own, &properties).map_err(|error| context.fail(error))?;
        let based = device.clock.set_base(context, other);
        context.queues.give_back(properties, other);
        based.map_err(|error| context.fail(error))?;
    }
    Ok(on_lane(device, options, part, options.in_order))
}

fn on_lane(device: &Arc<DeviceState>, options: QueueOptions, part: QueuePart, keeps_order: bool) -> ClQueue {
    process_exit::watch();
    let lane = Lane::new(device, Stream { raw: part.raw, is_unflushed: AtomicBool::new(false) }, keeps_order);
    ClQueue::new(device, options, smallvec![lane], part)
}

/// OpenCL's list of properties for a queue.
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

impl QueuePart {
    fn new(context: &Arc<Context>, raw: Object, properties: Option<Vec<u64>>, device_type: DeviceType) -> Self {
        // A thread that waits for a device made of the same processors must leave them to it.
        let help_timeout = Duration::from_micros(if device_type == DeviceType::Cpu { 20 } else { 2000 });
        Self { context: context.clone(), raw, properties, is_known_outside: AtomicBool::new(false), help_timeout }
    }
}

impl Drop for QueuePart {
    fn drop(&mut self) {
        let context = &self.context;
        if context.is_foreign() {
            return;
        }
        // Tasks hold their queue until they have ended, but for those of a lost device.
        let is_reusable = !context.is_lost() && !*self.is_known_outside.get_mut();
        match self.properties.take() {
            Some(properties) if is_reusable => context.queues.give_back(properties, self.raw),
            None if !context.is_lost() && !context.quirks.queue_release => {
                // SAFETY: the reference that `adopt_queue` took over.
                unsafe { (context.functions.clReleaseCommandQueue)(self.raw.0) };
            }
            _ => context.queues.retire(self.raw),
        }
    }
}

// SAFETY: `poll` reports a task as finished when the driver says that all its events are complete, and as lost otherwise. The memory of a
// lost device is not freed.
unsafe impl Driver for OpenCl {
    type Device = DeviceState;
    type Queue = QueuePart;
    type Own = Mutex<SubmitPolling>;
    type Stream = Stream;
    /// The position in the ring where the next poll of an out-of-order lane begins.
    type Ring = usize;
    type Kernel = ClKernel;
    type Launch = LaunchShape;
    type Record = Slot;
    type RecordMemory = RecordMemory;
    type Block = BlockBuffer;
    type Print = PrintBuffer;
    type Issued = Issued;
    type Error = ClError;
    type Waits<'t> = Waits<'t>;
    type Entered<'d> = ();
    type PollGuard = RwLockReadGuard<'static, ()>;

    const FIRST_RECORDS: usize = 64;
    /// The dependencies of a wait may be on any queue, and are cheap to query.
    const HELPS_ALL: bool = true;

    fn tasks() -> &'static Tasks<Self> {
        &TASKS
    }

    fn lanes(device: &DeviceState) -> &Lanes<Self> {
        &device.lanes
    }

    fn name(device: &DeviceState) -> &str {
        &device.context.name
    }

    fn enter(device: &DeviceState) -> Result<(), BackendError> {
        device.context.check_alive()
    }

    fn lost_error(device: &DeviceState) -> BackendError {
        device.context.lost_error()
    }

    fn fail(device: &DeviceState, error: ClError) -> BackendError {
        device.context.fail(error)
    }

    fn facts(kernel: &ClKernel) -> KernelFacts<'_> {
        let &ClKernel { ref entry, ref module, by_address, .. } = kernel;
        let &KernelEntry { ref symbol, parameters, may_panic, .. } = entry;
        KernelFacts { device: &module.context.name, symbol, parameters, may_panic, by_address }
    }

    fn sites(kernel: &ClKernel) -> &[PanicSite] {
        kernel.module.sites()
    }

    fn is_loaded_on(kernel: &ClKernel, device: &DeviceState) -> bool {
        Arc::ptr_eq(&kernel.module.context, &device.context)
    }

    fn launch(
        _device: &DeviceState,
        kernel: &ClKernel,
        command: &KernelCommand,
    ) -> Result<Option<LaunchShape>, String> {
        let (size, limit) = (kernel.entry.parameters.size, ParameterLayout::MAX_SIZE);
        if size > limit {
            let name = command.descriptor.display_name();
            return Err(format!("kernel \"{name}\": its captures are {size} bytes, the limit is {limit}"));
        }
        Ok(match &command.group {
            Some(group) => LaunchShape::of_groups(&command.range, group),
            None if kernel.entry.groups.local != [0; 3] => {
                LaunchShape::in_groups_of(&command.range, kernel.entry.groups.local)
            }
            None => LaunchShape::new(&command.range, &kernel.limits),
        })
    }

    fn block(device: &Arc<DeviceState>, size: usize) -> Result<BlockBuffer, BackendError> {
        BlockBuffer::new(&device.context, size)
    }

    fn print_buffer(device: &Arc<DeviceState>, capacity: u32) -> Result<PrintBuffer, BackendError> {
        PrintBuffer::new(&device.context, capacity)
    }

    fn records(device: &DeviceState, n: usize) -> Result<(Vec<Slot>, RecordMemory), BackendError> {
        RecordMemory::new(&device.context, n)
    }

    fn choose_lane<'t>(queue: &LaneQueue<Self>, open: &[&'t ClTask]) -> Result<(usize, Waits<'t>), BackendError> {
        let follows = queue.options.in_order || !open.is_empty();
        let mut waits = Waits { open: SmallVec::new(), follows };
        for dependency in open {
            let is_own = std::ptr::eq(&*dependency.queue, queue);
            if !is_own {
                // Commands of another queue may be waited for once that was flushed.
                flush(&dependency.queue.lanes[0])?;
            }
            // The driver's own order is enough within a queue that has one.
            if !(is_own && queue.lanes[0].keeps_order) {
                waits.open.push(*dependency);
            }
        }
        Ok((0, waits))
    }

    fn issue(lane: &ClLane, _ring: &mut Ring<Self>, task: &ClTask, waits: Waits<'_>) -> Result<(), ClError> {
        // Borrowed until the driver has the list.
        let borrowed: SmallVec<[_; 4]> = waits.open.iter().map(|task| task.issued.emitted()).collect();
        let events = borrowed.iter().flat_map(|emitted| &emitted.events).map(|event| event.0).collect();
        issue_to_driver(lane, task, events, waits.follows)
    }

    fn submitted(own: &Mutex<SubmitPolling>, task: &Arc<ClTask>) {
        let batch = own.lock().push(task.clone());
        if let Some(batch) = batch {
            batch.poll();
        }
    }

    fn begin_poll(_device: &DeviceState) -> Option<RwLockReadGuard<'static, ()>> {
        process_exit::begin_driver_call()
    }

    fn poll(lane: &ClLane, _thorough: bool) {
        // The next command to be issued gets an error.
        let _ = flush(lane);
        if lane.keeps_order {
            poll_first(lane);
        } else {
            poll_batch(lane);
        }
    }

    fn take_report(record: Slot) -> Option<PanicRecord> {
        // SAFETY: a live record of a launch that has ended (invariant of the pool).
        unsafe { take_report(record.host) }
    }

    fn read_print(print: &PrintBuffer, sites: &[PanicSite]) -> Vec<KernelOutput> {
        print.read(sites)
    }

    fn times(task: &ClTask, is_finished: bool) -> Option<ExecutionTimes> {
        let device = &task.queue.device;
        is_finished.then(|| device.clock.times(&device.context, task.submitted, &task.issued.emitted()))
    }

    fn release(task: &ClTask) {
        task.issued.release_resources();
    }

    fn dropped(task: &mut ClTask) {
        let (context, issued) = (&task.queue.device.context, &mut task.issued);
        issued.release(context);
    }

    fn status(task: &ClTask) -> EventStatus {
        if task.queue.device.context.is_foreign() {
            return EventStatus::Submitted;
        }
        match task.issued.reached(&task.queue.device.context) {
            Reached::Waiting => EventStatus::Submitted,
            // Over is not complete before that was reported.
            Reached::Running | Reached::Over | Reached::Failed(_) => EventStatus::Running,
        }
    }

    fn info(queue: &LaneQueue<Self>) -> QueueInfo {
        QueueInfo {
            max_unfinished: MAX_UNFINISHED,
            event_domain: queue.device.context.event_domain,
            takes_native: true,
            help_timeout: queue.part.help_timeout,
            ..QueueInfo::default()
        }
    }

    fn flush(queue: &LaneQueue<Self>) -> Result<(), BackendError> {
        flush(&queue.lanes[0])
    }

    fn native_events(task: &ClTask) -> Result<Vec<*mut c_void>, BackendError> {
        // Who waits for them need not have the queue.
        flush(&task.queue.lanes[0])?;
        let context = &task.queue.device.context;
        task.issued.retain_events(context).map_err(|error| context.fail(error))
    }

    unsafe fn native_wait(queue: &LaneQueue<Self>, event: *mut c_void) -> Result<Command, BackendError> {
        // SAFETY: by the contract of this function.
        unsafe { foreign::wait(&queue.device.context, Object(event)) }
    }

    fn native_handle(queue: &LaneQueue<Self>, handle: NativeHandle) -> Option<*mut c_void> {
        let object = match handle {
            NativeHandle::Queue => {
                queue.part.is_known_outside.store(true, Ordering::Relaxed);
                queue.part.raw
            }
            NativeHandle::Device => queue.device.context.device,
            NativeHandle::Context => queue.device.context.raw,
        };
        Some(object.0)
    }
}

/// Issues a task to the driver. `events` are valid until this returns. On an error the driver has no part of the task.
fn issue_to_driver(lane: &ClLane, task: &ClTask, events: SmallVec<[Handle; 4]>, follows: bool) -> Result<(), ClError> {
    let (context, raw) = (&lane.device.context, lane.stream.raw);
    let mut emitter = Emitter::new(context, raw, lane.keeps_order, task.queue.options.profiling, events);
    let mut resources = Resources::default();
    let emitted = execute::emit(task, follows, &mut emitter, &mut resources);
    let has_begun = emitter.has_begun();
    if let Err(error) = emitted {
        if !has_begun {
            return Err(error);
        }
        task.set_error(error);
    }
    task.issued.set(emitter.finish(), resources);
    if has_begun {
        lane.stream.is_unflushed.store(true, Ordering::Release);
    }
    Ok(())
}

/// Flushes the lane's queue, so that the driver executes everything that was issued.
fn flush(lane: &ClLane) -> Result<(), BackendError> {
    let Stream { raw, is_unflushed } = &lane.stream;
    if !is_unflushed.load(Ordering::Acquire) || !is_unflushed.swap(false, Ordering::AcqRel) {
        return Ok(());
    }
    let context = &lane.device.context;
    // SAFETY: the queue lives as long as its tasks, and its handle or one of them is what the lane was found by.
    check("clFlush", unsafe { (context.functions.clFlush)(raw.0) }).map_err(|error| context.fail(error))
}

/// Moves the first tasks that are over off the ring, on an in-order lane. Tasks behind an unfinished one have not ended.
fn poll_first(lane: &ClLane) {
    for _ in 0..BATCH {
        let Some(first) = lane.lock_ring().pending.front().cloned() else { return };
        let Some(is_finished) = query_end(&first) else { return };
        drop(first);
        // Still the first: one thread at a time polls.
        let task = lane.lock_ring().pending.pop_front();
        if let Some(task) = task {
            lane.retire_task(task, is_finished);
        }
    }
}

/// Moves those of the next [`BATCH`] tasks that are over off the ring, on an out-of-order lane.
fn poll_batch(lane: &ClLane) {
    let (first, batch): (usize, Vec<_>) = {
        let mut ring = lane.lock_ring();
        let n_tasks = ring.pending.len();
        let first = if ring.part < n_tasks { ring.part } else { 0 };
        let end = n_tasks.min(first + BATCH);
        // Others come first the next time.
        ring.part = end;
        (first, ring.pending.range(first..end).cloned().collect())
    };
    let ends: Vec<_> = batch.iter().map(|task| query_end(task)).collect();
    drop(batch);
    let mut ring = lane.lock_ring();
    // Others have put tasks behind these meanwhile, and one thread at a time polls.
    let mut index = first;
    for is_finished in ends {
        let Some(is_finished) = is_finished else {
            index += 1;
            continue;
        };
        // The first one takes its place, which is one further to the front from then on.
        ring.pending.swap(0, index);
        if let Some(task) = ring.pending.pop_front() {
            ring.part -= 1;
            lane.retire_task(task, is_finished);
        }
    }
}

/// Whether an issued task is over, and if so, whether it is finished. If it is not finished, the device is lost.
fn query_end(task: &ClTask) -> Option<bool> {
    let device = &task.queue.device;
    let error = match task.issued.reached(&device.context) {
        Reached::Over => return Some(true),
        Reached::Failed(error) => error,
        Reached::Waiting | Reached::Running if device.has_given_up() => {
            ClError { call: "the command", code: code::DEVICE_NOT_AVAILABLE }
        }
        Reached::Waiting | Reached::Running => return None,
    };
    device.context.mark_lost(error, task.launch.is_some().then(|| task.command.to_string()));
    Some(false)
}
