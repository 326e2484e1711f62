//! The CUDA driver as the lanes of [`oxisycl_backend::lane`] see it: a queue is one stream if its commands run in order, a few otherwise.
//!
//! A command is put on a stream when it is issued, or a little later with others (`batch`). The device keeps the order, by the stream and by
//! events. Transfers of memory that
//! the driver does not know are left to the host.

use std::ffi::c_void;
use std::ptr;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;

use oxisycl_backend::driver::take_report;
use oxisycl_backend::lane::{Driver, DriverQueue, KernelFacts, Lane, LaneQueue, Lanes, Ring, Task, Tasks};
use oxisycl_backend::pool::{Near, Pool};
use oxisycl_backend::{
    BackendError, Batching, Command, EventStatus, ExecutionTimes, KernelCommand, KernelOutput, NativeHandle, Outcome,
    QueueInfo, QueueOptions, now,
};
use oxisycl_image::{KernelEntry, PanicSite};
use oxisycl_types::PanicRecord;
use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};

use crate::batch::{self, BatchDecision};
use crate::block_buffer::BlockBuffer;
use crate::clock::Base;
use crate::context::{Context, Entered};
use crate::device_state::DeviceState;
use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::execute::{self, Launch};
use crate::fill;
use crate::foreign;
use crate::host_transfer;
use crate::launch_shape::LaunchShape;
use crate::launcher;
use crate::module::CudaKernel;
use crate::print_buffer::PrintBuffer;
use crate::records::{RecordMemory, Slot};
use crate::stream::{self, Progress, Stream};
use crate::sys::{RawEvent, RawStream};
use crate::transfer;

/// Streams of a queue whose commands may overlap.
const STREAMS: usize = 4;

/// The CUDA driver.
pub(crate) struct Cuda;

pub(crate) type CudaQueue = DriverQueue<Cuda>;
pub(crate) type CudaTask = Task<Cuda>;
pub(crate) type CudaLane = Lane<Cuda>;

/// The events that a stream waits for before a task.
pub(crate) type Waits = SmallVec<[RawEvent; 4]>;

/// The events and the base of a profiled command.
pub(crate) struct Profile {
    base: Arc<Base>,
    start: RawEvent,
    end: RawEvent,
}

/// What the backend knows of an issued task.
#[derive(Default)]
pub(crate) struct Issued {
    /// The profile of a profiled command.
    profile: Mutex<Option<Profile>>,
    /// The panic record that the launch uses instead of the task's own, or null.
    lent: AtomicPtr<PanicRecord>,
}

impl Issued {
    /// Lets the launch use the record of a graph's node, which no other launch uses until the task is reported.
    pub(crate) fn lend(&self, slot: Slot) {
        // The ring's lock or the launcher's is taken between this and each use.
        self.lent.store(slot.0.as_ptr(), Ordering::Relaxed);
    }
}

/// The panic record of a launch.
pub(crate) fn record_of(task: &CudaTask) -> Option<Slot> {
    let lent = NonNull::new(task.issued.lent.load(Ordering::Relaxed));
    lent.map(Slot).or_else(|| task.record())
}

impl Profile {
    fn give_back(&self, context: &Context) {
        context.return_timed_event(self.start);
        context.return_timed_event(self.end);
    }
}

thread_local! {
    static NEAR: Near<Arc<std::mem::MaybeUninit<CudaTask>>> = const { Near::new() };
}

/// Tasks are made by threads that submit, and end on another thread.
static TASKS: Tasks<Cuda> = Pool::new(&NEAR);

/// A queue of the device.
pub(crate) fn create_queue(device: &Arc<DeviceState>, options: QueueOptions) -> Result<CudaQueue, BackendError> {
    let context = &device.context;
    let _entered = context.enter()?;
    let n_streams = if options.in_order { 1 } else { STREAMS };
    let lane = |_| Ok(Lane::new(device, Stream::new(context, options.priority)?, true));
    let lanes: Result<SmallVec<[Arc<CudaLane>; 4]>, _> = (0..n_streams).map(lane).collect();
    let lanes = lanes.map_err(|error| context.fail(error))?;
    on_lanes(device, options, lanes)
}

/// A queue of the device whose commands go on a stream of other code.
pub(crate) fn adopt_queue(
    device: &Arc<DeviceState>,
    raw: RawStream,
    options: QueueOptions,
) -> Result<CudaQueue, BackendError> {
    let _entered = device.context.enter()?;
    // What is held would come after work that the other code puts on the stream meanwhile.
    let options = QueueOptions { in_order: true, batching: Batching::Off, ..options };
    on_lanes(device, options, smallvec![Lane::new(device, Stream::borrowed(&device.context, raw), true)])
}

/// The context is current.
fn on_lanes(
    device: &Arc<DeviceState>,
    options: QueueOptions,
    lanes: SmallVec<[Arc<CudaLane>; 4]>,
) -> Result<CudaQueue, BackendError> {
    let context = &device.context;
    for lane in &lanes {
        batch::set_up(lane, options.batching, options.profiling);
    }
    if options.profiling {
        device.clock.renew(context, device.memory.utility).map_err(|error| context.fail(error))?;
    }
    // Loading waits for running kernels, which the first fill should not. One that needs them and has none says so itself.
    let _ = device.fill_kernels.prepare(context);
    Ok(CudaQueue::new(device, options, lanes, AtomicUsize::new(0)))
}

// SAFETY: `stream` reports tasks as finished when the driver says that the stream has passed them. After a loss, only the device's own
// pools use its memory again, and lost launches keep theirs.
unsafe impl Driver for Cuda {
    type Device = DeviceState;
    /// The index of the next lane, for round-robin.
    type Queue = AtomicUsize;
    type Own = ();
    type Stream = Stream;
    type Ring = Progress;
    type Kernel = CudaKernel;
    type Launch = Launch;
    type Record = Slot;
    type RecordMemory = RecordMemory;
    type Block = BlockBuffer;
    type Print = PrintBuffer;
    type Issued = Issued;
    type Error = DriverError;
    type Waits<'t> = Waits;
    type Entered<'d> = Entered<'d>;
    type PollGuard = ();

    const FIRST_RECORDS: usize = 2048;
    const HELPS_ALL: bool = false;
    // Each of them asks the driver, which takes 0.15 to 0.4 us. A poller that is woken sooner takes the waiting thread's turn.
    const IDLE_HELPS: usize = 5000;

    fn tasks() -> &'static Tasks<Self> {
        &TASKS
    }

    fn lanes(device: &DeviceState) -> &Lanes<Self> {
        &device.lanes
    }

    fn name(device: &DeviceState) -> &str {
        &device.context.name
    }

    fn enter(device: &DeviceState) -> Result<Entered<'_>, BackendError> {
        device.context.enter()
    }

    #[inline]
    fn enter_to_issue<'d>(device: &'d DeviceState, command: &Command) -> Result<Option<Entered<'d>>, BackendError> {
        match command {
            // Most kernels are only held.
            Command::Kernel(_) => device.context.check_alive().map(|()| None),
            _ => device.context.enter().map(Some),
        }
    }

    fn lost_error(device: &DeviceState) -> BackendError {
        device.context.lost_error()
    }

    fn fail(device: &DeviceState, error: DriverError) -> BackendError {
        device.context.fail(error)
    }

    fn facts(kernel: &CudaKernel) -> KernelFacts<'_> {
        let &CudaKernel { ref entry, ref module, by_address, .. } = kernel;
        let &KernelEntry { ref symbol, parameters, may_panic, .. } = entry;
        KernelFacts { device: &module.context.name, symbol, parameters, may_panic, by_address }
    }

    fn sites(kernel: &CudaKernel) -> &[PanicSite] {
        kernel.module.sites()
    }

    fn is_loaded_on(kernel: &CudaKernel, device: &DeviceState) -> bool {
        Arc::ptr_eq(&kernel.module.context, &device.context)
    }

    #[inline]
    fn launch(device: &DeviceState, kernel: &CudaKernel, command: &KernelCommand) -> Result<Option<Launch>, String> {
        let of_line = match &command.group {
            Some(group) => {
                let bytes = group.local_bytes;
                kernel.allow_local_bytes(bytes).map_err(|error| {
                    let symbol = &kernel.entry.symbol;
                    format!("kernel \"{symbol}\" with {bytes} bytes of local memory for each work-group: {error}")
                })?;
                None
            }
            None if kernel.entry.groups.local != [0; 3] => None,
            None => LaunchShape::n_threads_of_line(&command.range, kernel.block_threads, kernel.entry.is_paired),
        };
        let n_threads = match of_line {
            Some(n_threads) => Some(n_threads),
            None => match LaunchShape::of(kernel, command) {
                Some(shape) => shape.n_threads(),
                None => return Ok(None),
            },
        };
        let fitness = launcher::fitness(device, kernel, n_threads);
        Ok(Some(Launch { function: kernel.function, fitness }))
    }

    fn prepare(device: &DeviceState, command: &Command) -> Result<(), BackendError> {
        match command {
            Command::Fill(command) => fill::prepare(&device.fill_kernels, &device.context, command),
            _ => Ok(()),
        }
    }

    fn counted(device: &DeviceState) {
        device.memory.retired.step_aside();
    }

    fn block(device: &Arc<DeviceState>, size: usize) -> Result<BlockBuffer, BackendError> {
        BlockBuffer::new(&device.memory, size)
    }

    fn print_buffer(device: &Arc<DeviceState>, capacity: u32) -> Result<PrintBuffer, BackendError> {
        PrintBuffer::new(&device.memory, capacity)
    }

    fn records(device: &DeviceState, n: usize) -> Result<(Vec<Slot>, RecordMemory), BackendError> {
        let _entered = device.context.enter()?;
        RecordMemory::new(&device.context, n).map_err(|error| device.context.fail(error))
    }

    #[inline]
    fn choose_lane(queue: &LaneQueue<Self>, open: &[&CudaTask]) -> Result<(usize, Waits), BackendError> {
        if open.is_empty() && queue.lanes.len() == 1 {
            return Ok((0, Waits::new()));
        }
        let index = choose(queue, open);
        let waits = fences(&queue.lanes[index], open).map_err(|error| queue.device.context.fail(error))?;
        Ok((index, waits))
    }

    #[inline]
    fn issue(lane: &CudaLane, ring: &mut Ring<Self>, task: &CudaTask, waits: Waits) -> Result<(), DriverError> {
        if waits.is_empty() && batch::hold_behind_held(lane, ring, task) {
            Ok(())
        } else {
            issue(lane, ring, task, waits)
        }
    }

    #[inline]
    fn issued(lane: &CudaLane, ring: &mut Ring<Self>) {
        batch::held(lane, ring);
        stream::poll_sometimes(lane, ring);
    }

    fn n_held_back(ring: &Ring<Self>) -> usize {
        ring.part.batch.n_untouched()
    }

    fn hand_over(lane: &CudaLane) {
        batch::hand_over(lane, true);
    }

    fn begin_poll(_device: &DeviceState) -> Option<()> {
        Some(())
    }

    fn poll(lane: &CudaLane, thorough: bool) {
        stream::poll(lane, thorough);
    }

    fn written_record(task: &CudaTask) -> Option<Slot> {
        record_of(task)
    }

    fn take_report(record: Slot) -> Option<PanicRecord> {
        // SAFETY: a live record of a launch that has ended (invariant of the pool).
        unsafe { take_report(record.0) }
    }

    fn read_print(print: &PrintBuffer, sites: &[PanicSite]) -> Vec<KernelOutput> {
        print.read(sites)
    }

    fn times(task: &CudaTask, is_finished: bool) -> Option<ExecutionTimes> {
        let profile = task.issued.profile.lock().take()?;
        let context = &task.queue.device.context;
        let read = || {
            let _entered = context.enter().ok()?;
            let times = profile.base.times_of(profile.start, profile.end).ok()?;
            // The two clocks are not exactly together.
            Some(times.moved_between(task.submitted, now()))
        };
        let times = if is_finished { read() } else { None };
        profile.give_back(context);
        times
    }

    fn status(task: &CudaTask) -> EventStatus {
        let place = task.place();
        if place.lane.is_first(place.position) { EventStatus::Running } else { EventStatus::Submitted }
    }

    fn close(stream: &mut Stream, progress: &mut Progress) {
        stream.close(progress);
    }

    fn is_executed(device: &DeviceState, command: &Command) -> Result<bool, BackendError> {
        transfer::needs_host(&device.context, command)
    }

    unsafe fn execute(queue: &LaneQueue<Self>, command: &Command) -> Outcome {
        // SAFETY: by the contract of this function.
        unsafe { host_transfer::execute(&queue.device.memory, command, queue.options.profiling) }
    }

    fn info(queue: &LaneQueue<Self>) -> QueueInfo {
        // The poller naps between its polls; a wait as long as a large kernel would end late by some percent of it.
        let help_timeout = Duration::from_millis(2);
        let holds_back = batch::holds_back(&queue.lanes[0]);
        QueueInfo { holds_back, help_timeout, takes_native: true, ..QueueInfo::default() }
    }

    fn native_events(task: &CudaTask) -> Result<Vec<*mut c_void>, BackendError> {
        let place = task.place();
        let event = stream::event_behind(place.lane, place.position);
        let event = event.map_err(|error| task.queue.device.context.fail(error))?;
        Ok(event.into_iter().map(|event| event.0).collect())
    }

    unsafe fn native_wait(queue: &LaneQueue<Self>, event: *mut c_void) -> Result<Command, BackendError> {
        // SAFETY: by the contract of this function.
        unsafe { foreign::wait(&queue.device.context, RawEvent(event)) }
    }

    fn native_handle(queue: &LaneQueue<Self>, handle: NativeHandle) -> Option<*mut c_void> {
        match handle {
            NativeHandle::Queue => streams_of(queue).first().copied(),
            NativeHandle::Device => Some(ptr::without_provenance_mut(queue.device.context.device as usize)),
            NativeHandle::Context => Some(queue.device.share()),
        }
    }
}

/// The queue's streams, for code outside of this backend. All earlier submissions are launched, and later ones are launched at once.
pub(crate) fn streams_of(queue: &LaneQueue<Cuda>) -> Vec<*mut c_void> {
    queue.lanes.iter().for_each(|lane| batch::turn_off(lane));
    queue.lanes.iter().map(|lane| lane.stream.raw.0).collect()
}

/// The index of a stream on which a dependency is the last task, else of an empty stream, else of the next one in turn.
fn choose(queue: &LaneQueue<Cuda>, dependencies: &[&CudaTask]) -> usize {
    let lanes = &queue.lanes;
    if lanes.len() == 1 {
        return 0;
    }
    for dependency in dependencies {
        let place = dependency.place();
        if place.lane.is_last(place.position)
            && let Some(own) = lanes.iter().position(|lane| Arc::ptr_eq(lane, place.lane))
        {
            return own;
        }
    }
    let empty = lanes.iter().position(|lane| lane.is_empty());
    empty.unwrap_or_else(|| queue.part.fetch_add(1, Ordering::Relaxed) % lanes.len())
}

/// Events on other streams that the task must wait for, because of its dependencies.
fn fences(lane: &Arc<CudaLane>, dependencies: &[&CudaTask]) -> Result<Waits, DriverError> {
    let mut waits = Waits::new();
    for dependency in dependencies {
        let place = dependency.place();
        if !Arc::ptr_eq(place.lane, lane)
            && let Some(event) = stream::fence(place.lane, place.position)?
            && !waits.contains(&event)
        {
            waits.push(event);
        }
    }
    Ok(waits)
}

/// Issues a task to the driver, or holds it.
fn issue(lane: &CudaLane, ring: &mut Ring<Cuda>, task: &CudaTask, waits: Waits) -> Result<(), DriverError> {
    let _entered = lane.device.context.enter_anyway()?;
    if waits.is_empty() {
        match batch::hold_or_launch(lane, ring, task) {
            BatchDecision::Held => return Ok(()),
            BatchDecision::Launched => {
                let position = ring.last().next();
                ring.part.has_issued(position, 1);
                return Ok(());
            }
            BatchDecision::LeftToCaller => {}
        }
    } else {
        batch::flush(lane, ring);
    }
    let driver = &lane.device.context.driver;
    for &event in &waits {
        // SAFETY: stream and event are alive: events are destroyed with their context only.
        unsafe { driver.stream_wait_event(lane.stream.raw, event, 0) }?;
    }
    let profile = begin_profile(lane, task)?;
    let mut emitter = Emitter::new(driver, lane.stream.raw);
    if let Err(error) = execute::emit(task, &mut emitter) {
        if emitter.n_calls() == 0 {
            profile.iter().for_each(|profile| profile.give_back(&lane.device.context));
            return Err(error);
        }
        task.set_error(error);
    }
    // A profile is an event before and one after.
    let n_own = emitter.n_calls() + waits.len() + 2 * usize::from(profile.is_some());
    let n_calls = n_own.max(usize::from(lane.stream.is_borrowed));
    if let Some(profile) = profile {
        // SAFETY: event and stream are of this context, which is current.
        if let Err(error) = unsafe { driver.event_record(profile.end, lane.stream.raw) } {
            task.set_error(error);
        }
        *task.issued.profile.lock() = Some(profile);
    }
    if n_calls > 0 {
        let position = ring.last().next();
        ring.part.has_issued(position, n_calls);
    }
    Ok(())
}

fn begin_profile(lane: &CudaLane, task: &CudaTask) -> Result<Option<Profile>, DriverError> {
    if !task.queue.options.profiling {
        return Ok(None);
    }
    let context = &lane.device.context;
    let Some(base) = lane.device.clock.base() else { return Ok(None) };
    let (start, end) = (context.take_timed_event()?, context.take_timed_event()?);
    // SAFETY: event and stream are of this context, which is current.
    unsafe { context.driver.event_record(start, lane.stream.raw) }?;
    Ok(Some(Profile { base, start, end }))
}
