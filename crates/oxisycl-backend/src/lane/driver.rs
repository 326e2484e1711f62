//! What a backend provides for its driver.

use std::any::Any;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use oxisycl_image::{PanicSite, ParameterLayout};
use oxisycl_types::PanicRecord;

use super::{Lane, LaneQueue, Lanes, Ring, Task};
use crate::poller::Progress;
use crate::pool::Pool;
use crate::{
    BackendError, Command, CommandFailure, EventStatus, ExecutionTimes, FailureKind, KernelCommand, KernelOutput,
    LoadedKernel, Outcome, driver,
};

/// What a launch has to know of a loaded kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelFacts<'k> {
    /// The name of the device that it was loaded on.
    pub device: &'k str,
    /// The kernel's name in the image.
    pub symbol: &'k str,
    /// The kernel's parameters as the image has them.
    pub parameters: ParameterLayout,
    /// Whether its launches need a panic record.
    pub may_panic: bool,
}

/// The tasks of a driver, used again and again.
pub type Tasks<D> = Pool<Arc<MaybeUninit<Task<D>>>>;

/// A driver, as types and functions without state. A function that takes a `ring` is called with that ring locked, and with the device
/// [entered](Self::enter).
///
/// # Safety
/// [`poll`](Self::poll) reports a task that [`issue`](Self::issue) accepted as finished only when the device has executed it and no longer
/// uses any of its memory. A task that is set apart as lost may still run, and nothing that it may use is given out again.
pub unsafe trait Driver: Sized + Send + Sync + 'static {
    /// One device: its context and what its queues share.
    type Device: Progress + 'static;
    /// What a queue has beside its lanes.
    type Queue: Send + Sync;
    /// What a queue has that its tasks do not keep.
    type Own: Default + Send + Sync;
    /// A lane's handle.
    type Stream: Send + Sync;
    /// What a lane's ring keeps of the driver's.
    type Ring: Default + Send + Sync;
    /// A kernel that was loaded on a device.
    type Kernel: LoadedKernel;
    /// How a kernel is launched.
    type Launch: Send + Sync;
    /// Where a launch leaves word of a panic: the address of a record.
    type Record: Copy + Send + Sync;
    /// The memory of some records, freed when it is dropped.
    type RecordMemory: Send;
    /// Where a launch prints.
    type Print: Clone + Send + Sync;
    /// What a task keeps of the driver's from when it is issued.
    type Issued: Default + Send + Sync;
    /// A driver's error.
    type Error: Copy + Send + Sync;
    /// What a task waits for in the driver.
    type Waits<'t>;
    /// Held while a thread calls the driver for a device.
    type Entered<'d>;
    /// Held while a thread looks how far tasks are.
    type Looking;

    /// The tasks of the process.
    fn tasks() -> &'static Tasks<Self>;

    /// The lanes of a device.
    fn lanes(device: &Self::Device) -> &Lanes<Self>;

    /// The device's name, for messages.
    fn name(device: &Self::Device) -> &str;

    /// Makes the device current on this thread. An error if it is lost or was made before the process was forked.
    fn enter(device: &Self::Device) -> Result<Self::Entered<'_>, BackendError>;

    /// The error of every call on a lost device.
    fn lost_error(device: &Self::Device) -> BackendError;

    /// A failed call as the contract's error; the device is marked as lost if it is. Called without locks.
    fn fail(device: &Self::Device, error: Self::Error) -> BackendError;

    /// The time on the clock of execution times, which [`Device::timestamp`](crate::Device::timestamp) also reads.
    fn now(_device: &Self::Device) -> u64 {
        driver::now()
    }

    /// What there is to know of a kernel.
    fn facts(kernel: &Self::Kernel) -> KernelFacts<'_>;

    /// What images say of the places where a kernel panics or prints. A kernel without an image has none.
    fn sites(_kernel: &Self::Kernel) -> &[PanicSite] {
        &[]
    }

    /// Whether the kernel was loaded on the device.
    fn is_loaded_on(kernel: &Self::Kernel, device: &Self::Device) -> bool;

    /// How a kernel is launched; `None` if its range is beyond every limit.
    ///
    /// # Errors
    /// What the device does not support.
    fn launch(
        device: &Self::Device,
        kernel: &Self::Kernel,
        command: &KernelCommand,
    ) -> Result<Option<Self::Launch>, String>;

    /// Makes ready what a command needs that may take long or fail. Called before anything is issued.
    ///
    /// # Errors
    /// The errors of the driver.
    fn prepare(_device: &Self::Device, _command: &Command) -> Result<(), BackendError> {
        Ok(())
    }

    /// Called when a command was counted, before anything of it is issued.
    fn counted(_device: &Self::Device) {}

    /// A print buffer for so many bytes of records.
    ///
    /// # Errors
    /// The errors of an allocation.
    fn print_buffer(device: &Arc<Self::Device>, _capacity: u32) -> Result<Self::Print, BackendError> {
        let what = "kernels that print".to_owned();
        Err(BackendError::Unsupported { device: Self::name(device).to_owned(), what })
    }

    /// So many free panic records. Called without locks.
    ///
    /// # Errors
    /// The errors of an allocation.
    fn records(device: &Self::Device, n: usize) -> Result<(Vec<Self::Record>, Self::RecordMemory), BackendError>;

    /// The lane of a task among those of its queue, and what it waits for. `open` are its dependencies that have not ended. Called without
    /// locks.
    ///
    /// # Errors
    /// The errors of the driver.
    fn place<'t>(queue: &LaneQueue<Self>, open: &[&'t Task<Self>]) -> Result<(usize, Self::Waits<'t>), BackendError>;

    /// Gives a task to the driver, behind all others of the lane if that keeps its order. The task's place is the one after
    /// [`Ring::last`].
    ///
    /// # Errors
    /// The errors of the driver, if it has nothing of the task. If it has a part, that is the task's own failure ([`Task::set_error`]).
    fn issue(
        lane: &Lane<Self>,
        ring: &mut Ring<Self>,
        task: &Task<Self>,
        waits: Self::Waits<'_>,
    ) -> Result<(), Self::Error>;

    /// Called when a task was put on the ring.
    fn issued(_lane: &Lane<Self>, _ring: &mut Ring<Self>) {}

    /// How many of the last tasks of the ring the driver does not have yet.
    fn n_held_back(_ring: &Ring<Self>) -> usize {
        0
    }

    /// Gives the driver what is [held back](Self::n_held_back): a thread waits for it. Called without locks.
    fn hand_over(_lane: &Lane<Self>) {}

    /// Called by the submitting thread when all is done for a task, without locks.
    fn submitted(_own: &Self::Own, _task: &Arc<Task<Self>>) {}

    /// Begins to look how far tasks are. `None` when drivers must not be called any more.
    fn begin_look(device: &Self::Device) -> Option<Self::Looking>;

    /// [Sets apart](Lane::set_apart) the lane's tasks that are over. Called by one thread at a time for each lane, without locks. `thorough` if the
    /// poller calls.
    fn poll(lane: &Lane<Self>, thorough: bool);

    /// What a work-item left in the record of a launch that has ended. The record is free again.
    fn take_report(record: Self::Record) -> Option<PanicRecord>;

    /// Tells what a launch has printed that has ended.
    fn read_print(_print: &Self::Print, _sites: &[PanicSite], _tell: &mut dyn FnMut(KernelOutput<'_>)) {}

    /// When a task ran, on a queue with profiling. If it was not finished, only gives back what the driver has measured with.
    fn times(task: &Task<Self>, is_finished: bool) -> Option<ExecutionTimes>;

    /// Releases what a task kept for the driver while it ran.
    fn release(_task: &Task<Self>) {}

    /// Releases what a task has of the driver's, when it is dropped.
    fn dropped(_task: &mut Task<Self>) {}

    /// Where a task stands that has not ended.
    fn status(task: &Task<Self>) -> EventStatus;

    /// Gives back what a lane has of the driver's. No task is on it.
    fn close(_stream: &mut Self::Stream, _ring: &mut Self::Ring) {}

    /// See [`Queue::can_wait_for`](crate::Queue::can_wait_for).
    fn can_wait_for(_queue: &LaneQueue<Self>, _task: &Task<Self>) -> bool {
        true
    }

    /// See [`Queue::is_executed`](crate::Queue::is_executed).
    ///
    /// # Errors
    /// The error of a lost device.
    fn is_executed(_device: &Self::Device, _command: &Command) -> Result<bool, BackendError> {
        Ok(false)
    }

    /// See [`Queue::execute`](crate::Queue::execute).
    ///
    /// # Safety
    /// The contract of [`Queue::execute`](crate::Queue::execute) holds.
    unsafe fn execute(queue: &LaneQueue<Self>, command: &Command) -> Outcome {
        let name = Self::name(&queue.device);
        let what = "commands on a thread of the host".to_owned();
        let error = BackendError::Unsupported { device: name.to_owned(), what };
        Outcome::ran(Err(CommandFailure::new(command, name, FailureKind::Device(error))))
    }

    /// See [`Queue::flush`](crate::Queue::flush).
    ///
    /// # Errors
    /// The error of a lost device.
    fn flush(_queue: &LaneQueue<Self>) -> Result<(), BackendError> {
        Ok(())
    }

    /// See [`QueueInfo::patience`](crate::QueueInfo::patience).
    fn patience(_queue: &LaneQueue<Self>) -> Duration {
        Duration::from_micros(20)
    }

    /// See [`Queue::native_queue`](crate::Queue::native_queue).
    fn native_queue(_queue: &LaneQueue<Self>) -> Option<*mut c_void> {
        None
    }

    /// How many panic records are made at first.
    const FIRST_RECORDS: usize;

    /// After so many attempts to help that found nothing a waiting thread is about to sleep, since it has no more
    /// [patience](Self::patience). It relies on the poller then.
    const IDLE_HELPS: usize = 20;

    /// See [`QueueInfo::most_unfinished`](crate::QueueInfo::most_unfinished).
    const MOST_UNFINISHED: usize = usize::MAX;

    /// Whether a waiting thread looks at all lanes of the device, not only at those of its queue.
    const HELPS_ALL: bool;

    /// The kernel of a command, if it was loaded by this backend.
    #[inline]
    fn kernel_of(command: &KernelCommand) -> Option<&Self::Kernel> {
        let code: &dyn Any = command.code.as_deref()?;
        code.downcast_ref()
    }
}
