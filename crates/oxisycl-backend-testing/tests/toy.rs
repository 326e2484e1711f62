//! A complete device on lanes, small enough to be read: threads that execute what they were sent, one after the other.
//!
//! It is the third user of [`oxisycl_backend::lane`] beside CUDA and OpenCL, shows what a backend has to provide, and keeps the contract.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use oxisycl_backend::driver::{take_report, transfer_on_host};
use oxisycl_backend::lane::{Driver, DriverQueue, KernelFacts, Lane, LaneQueue, Lanes, Ring, Task, Tasks};
use oxisycl_backend::poller::{Counts, Progress};
use oxisycl_backend::pool::{Near, Pool};
use oxisycl_backend::{
    BackendError, Command, Device, DeviceInfo, EventStatus, ExecutionTimes, KernelCommand, LoadedKernel, Memory, Queue,
    QueueOptions, UsmKind, now,
};
use oxisycl_backend_testing::contract::{Subject, native, run_all};
use oxisycl_backend_testing::recording::{RecordingBackend, RecordingConfig};
use oxisycl_image::KernelDescriptor;
use oxisycl_types::{HostChunk, PanicRecord};

/// The driver: a thread for each stream, and the number of tasks that it has done.
struct Toy;

struct Stream {
    jobs: mpsc::Sender<Job>,
    n_done: Arc<AtomicU64>,
}

/// What a thread is sent: what it waits for, the command, where it leaves word of a panic, and when it ran.
struct Job {
    waits: Waits,
    task: *const Task<Toy>,
}

// SAFETY: the lane keeps the task until the thread has counted it as done.
unsafe impl Send for Job {}

/// Streams with the number of tasks that they must have done.
type Waits = Vec<(Arc<AtomicU64>, u64)>;

struct ToyState {
    name: String,
    lanes: Lanes<Toy>,
}

/// A kernel whose code is the program's own.
#[derive(Debug)]
struct ToyKernel(KernelDescriptor);

impl LoadedKernel for ToyKernel {}

/// A record in a box, which is leaked with its chunk's address kept.
#[derive(Clone, Copy)]
struct Record(NonNull<PanicRecord>);

// SAFETY: used by one launch at a time.
unsafe impl Send for Record {}
// SAFETY: as above.
unsafe impl Sync for Record {}

/// Start and end of a command, 0 as long as they have not come.
#[derive(Default)]
struct Times([AtomicU64; 2]);

fn execute(job: Job) {
    for (n_done, position) in job.waits {
        while n_done.load(Ordering::Acquire) < position {
            std::thread::yield_now();
        }
    }
    // SAFETY: the lane keeps the task until this one is counted as done.
    let task = unsafe { &*job.task };
    task.issued.0[0].store(now(), Ordering::Relaxed);
    match &task.command {
        Command::Kernel(command) => launch(command, task.record()),
        // SAFETY: by the issuer's promise.
        command => unsafe { transfer_on_host(command) },
    }
    task.issued.0[1].store(now(), Ordering::Relaxed);
}

fn launch(command: &KernelCommand, record: Option<Record>) {
    let chunk = HostChunk::new(0, command.range.size());
    // SAFETY: the arguments belong to the entry, and all else is by the issuer's promise.
    let run = || unsafe { command.run(&chunk) };
    if catch_unwind(AssertUnwindSafe(run)).is_err()
        && let Some(Record(record)) = record
    {
        // SAFETY: the record belongs to this launch.
        unsafe { record.write(PanicRecord { state: PanicRecord::COMPLETE, ..PanicRecord::EMPTY }) };
    }
}

impl Progress for ToyState {
    fn counts(&self) -> &Counts {
        &self.lanes.counts
    }

    fn poll(&self, _is_idle: bool) -> bool {
        self.lanes.poll(self, true)
    }
}

thread_local! {
    static NEAR: Near<Arc<MaybeUninit<Task<Toy>>>> = const { Near::new() };
}

static TASKS: Tasks<Toy> = Pool::new(&NEAR);

// SAFETY: a task is set apart when its stream has counted it, after the thread has executed it.
unsafe impl Driver for Toy {
    type Device = ToyState;
    type Queue = ();
    type Own = ();
    type Stream = Stream;
    type Ring = ();
    type Kernel = ToyKernel;
    type Launch = ();
    type Record = Record;
    type RecordMemory = ();
    type Block = ();
    type Print = ();
    type Issued = Times;
    type Error = ();
    type Waits<'t> = Waits;
    type Entered<'d> = ();
    type PollGuard = ();

    const FIRST_RECORDS: usize = 8;
    const HELPS_ALL: bool = false;

    fn tasks() -> &'static Tasks<Self> {
        &TASKS
    }

    fn lanes(device: &ToyState) -> &Lanes<Self> {
        &device.lanes
    }

    fn name(device: &ToyState) -> &str {
        &device.name
    }

    fn enter(_: &ToyState) -> Result<(), BackendError> {
        Ok(())
    }

    fn lost_error(device: &ToyState) -> BackendError {
        BackendError::DeviceLost { device: device.name.clone(), reason: "it never is".to_owned() }
    }

    fn fail(device: &ToyState, (): ()) -> BackendError {
        Self::lost_error(device)
    }

    fn facts(ToyKernel(kernel): &ToyKernel) -> KernelFacts<'_> {
        let (parameters, symbol) = (kernel.parameters, kernel.type_name);
        KernelFacts { device: "toy", symbol, parameters, may_panic: true, by_address: false }
    }

    fn is_loaded_on(_: &ToyKernel, _: &ToyState) -> bool {
        true
    }

    fn launch(_: &ToyState, _: &ToyKernel, _: &KernelCommand) -> Result<Option<()>, String> {
        Ok(Some(()))
    }

    fn records(_: &ToyState, n: usize) -> Result<(Vec<Record>, ()), BackendError> {
        // A test may leak them.
        let record = |_| Record(NonNull::from(Box::leak(Box::new(PanicRecord::EMPTY))));
        Ok(((0..n).map(record).collect(), ()))
    }

    fn choose_lane(queue: &LaneQueue<Self>, open: &[&Task<Self>]) -> Result<(usize, Waits), BackendError> {
        let wait = |task: &&Task<Self>| {
            let place = task.place();
            (place.lane.stream.n_done.clone(), place.position.n_tasks())
        };
        let empty = queue.lanes.iter().position(|lane| lane.is_empty());
        Ok((empty.unwrap_or(0), open.iter().map(wait).collect()))
    }

    fn issue(lane: &Lane<Self>, _: &mut Ring<Self>, task: &Task<Self>, waits: Waits) -> Result<(), ()> {
        lane.stream.jobs.send(Job { waits, task }).map_err(drop)
    }

    fn begin_poll(_: &ToyState) -> Option<()> {
        Some(())
    }

    fn poll(lane: &Lane<Self>, _thorough: bool) {
        let mut ring = lane.lock_ring();
        let first = ring.last().before(ring.pending.len()).n_tasks();
        let n_over = lane.stream.n_done.load(Ordering::Acquire) - first;
        lane.retire(&mut ring, n_over as usize, true);
    }

    fn take_report(Record(record): Record) -> Option<PanicRecord> {
        // SAFETY: a live record of a launch that has ended.
        unsafe { take_report(record) }
    }

    fn times(task: &Task<Self>, _: bool) -> Option<ExecutionTimes> {
        let [start, end] = [0, 1].map(|index| task.issued.0[index].load(Ordering::Relaxed));
        Some(ExecutionTimes { start, end })
    }

    fn status(task: &Task<Self>) -> EventStatus {
        if task.issued.0[0].load(Ordering::Relaxed) > 0 { EventStatus::Running } else { EventStatus::Submitted }
    }
}

struct ToyMemory;

// SAFETY: the program's own allocator, and all bytes are zero at first.
unsafe impl Memory for ToyMemory {
    fn allocate(&self, _: UsmKind, layout: Layout, _: bool) -> Result<NonNull<u8>, BackendError> {
        let error =
            || BackendError::OutOfMemory { device: "toy".to_owned(), requested: layout.size(), available: None };
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(error)
    }

    unsafe fn free(&self, pointer: NonNull<u8>, _: UsmKind, layout: Layout) {
        // SAFETY: allocated by `allocate` with that layout, by the contract of this function.
        unsafe { dealloc(pointer.as_ptr(), layout) }
    }
}

struct ToyDevice {
    state: Arc<ToyState>,
    info: DeviceInfo,
    memory: Arc<dyn Memory>,
}

// SAFETY: memory is the program's own, and commands are executed as they say.
unsafe impl Device for ToyDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    fn create_queue(&self, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        let stream = |_| {
            let (jobs, received) = mpsc::channel::<Job>();
            let n_done = Arc::new(AtomicU64::new(0));
            let counter = n_done.clone();
            std::thread::spawn(move || {
                for job in received {
                    execute(job);
                    counter.fetch_add(1, Ordering::Release);
                }
            });
            Lane::<Toy>::new(&self.state, Stream { jobs, n_done }, true)
        };
        let n_streams = if options.in_order { 1 } else { 3 };
        Ok(Arc::new(DriverQueue::new(&self.state, *options, (0..n_streams).map(stream).collect(), ())))
    }
}

#[test]
fn a_device_on_lanes_keeps_the_contract() {
    let info = RecordingBackend::new(RecordingConfig::new(1)).devices()[0].info().clone();
    let state = Arc::new(ToyState { name: "toy".to_owned(), lanes: Lanes::default() });
    let device: Arc<dyn Device> = Arc::new(ToyDevice { info, memory: Arc::new(ToyMemory), state });
    let [affine, failing, gate] = native().map(|kernel| -> Arc<dyn LoadedKernel> { Arc::new(ToyKernel(kernel)) });
    // SAFETY: the kernels are the functions themselves.
    let subject = unsafe { Subject::loaded(device, affine, Some(failing), Some(gate)) };
    assert!(run_all(&subject.running_ahead()).is_empty(), "every test applies");
}
