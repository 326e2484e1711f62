//! The trait that a backend implements for its driver.

use std::any::Any;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use oxisycl_image::{PanicSite, ParameterLayout};
use oxisycl_types::PanicRecord;

use super::{Lane, LaneQueue, Lanes, Ring, Task};
use crate::poller::Progress;
use crate::pool::Pool;
use crate::{
    BackendError, Command, CommandFailure, EventStatus, ExecutionTimes, FailureKind, KernelCommand, KernelOutput,
    LoadedKernel, NativeHandle, Outcome, QueueInfo,
};

/// The properties of a loaded kernel that a launch needs.
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
    /// Whether launches need a block for the arguments, whose address the kernel gets.
    pub by_address: bool,
}

/// The pool that the tasks of a driver are made in.
pub type Tasks<D> = Pool<Arc<MaybeUninit<Task<D>>>>;

/// A driver, as types and functions without state. A function that takes a `ring` is called with that ring locked, and with the device
/// [entered](Self::enter), unless [`enter_to_issue`](Self::enter_to_issue) has left that out.
///
/// # Safety
/// [`poll`](Self::poll) reports a task that [`issue`](Self::issue) accepted as finished only when the device has executed it and no longer
/// uses any of its memory. A task that is reported as lost may still run, and nothing that it may use is used again.
pub unsafe trait Driver: Sized + Send + Sync + 'static {
    /// One device: its context and the state that its queues share.
    type Device: Progress + 'static;
    /// The driver's state of a queue, beside its lanes.
    type Queue: Send + Sync;
    /// The driver's state of a queue that its tasks do not keep alive.
    type Own: Default + Send + Sync;
    /// A lane's handle.
    type Stream: Send + Sync;
    /// The driver's state of a lane, under the lock of its ring.
    type Ring: Default + Send + Sync;
    /// A kernel that was loaded on a device.
    type Kernel: LoadedKernel;
    /// The shape of a launch.
    type Launch: Send + Sync;
    /// The address of a launch's panic record.
    type Record: Copy + Send + Sync;
    /// The memory of some panic records, freed when it is dropped.
    type RecordMemory: Send;
    /// Memory for the arguments of a launch.
    type Block: Clone + Send + Sync;
    /// The print buffer of a launch.
    type Print: Clone + Send + Sync;
    /// The driver's state of a task, from its issue on.
    type Issued: Default + Send + Sync;
    /// A driver's error.
    type Error: Copy + Send + Sync;
    /// The driver's form of the dependencies that a task waits for.
    type Waits<'t>;
    /// A guard that is held while a thread calls the driver for a device.
    type Entered<'d>;
    /// A guard that is held while a thread polls tasks.
    type PollGuard;

    /// The pool of the process's tasks.
    fn tasks() -> &'static Tasks<Self>;

    /// The lanes of a device.
    fn lanes(device: &Self::Device) -> &Lanes<Self>;

    /// The device's name, for messages.
    fn name(device: &Self::Device) -> &str;

    /// Makes the device current on this thread. An error if the device is lost, or if it was made before the process was forked.
    fn enter(device: &Self::Device) -> Result<Self::Entered<'_>, BackendError>;

    /// Makes the device current on this thread, to issue the command. A driver that may only hold the command back can leave that to
    /// [`issue`](Self::issue). The device is not current in `issue` and [`issued`](Self::issued) then.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    #[inline]
    fn enter_to_issue<'d>(
        device: &'d Self::Device,
        _command: &Command,
    ) -> Result<Option<Self::Entered<'d>>, BackendError> {
        Self::enter(device).map(Some)
    }

    /// The error of every call on a lost device.
    fn lost_error(device: &Self::Device) -> BackendError;

    /// Converts the error of a failed call. Marks the device as lost if the error means that. Called without locks.
    fn fail(device: &Self::Device, error: Self::Error) -> BackendError;

    /// The properties of a kernel.
    fn facts(kernel: &Self::Kernel) -> KernelFacts<'_>;

    /// The places where a kernel panics or prints, by its image. A kernel without an image has none.
    fn sites(_kernel: &Self::Kernel) -> &[PanicSite] {
        &[]
    }

    /// Whether the kernel was loaded on the device.
    fn is_loaded_on(kernel: &Self::Kernel, device: &Self::Device) -> bool;

    /// The shape of a kernel's launch; `None` if its range exceeds every limit.
    ///
    /// # Errors
    /// The error if the device does not support the launch.
    fn launch(
        device: &Self::Device,
        kernel: &Self::Kernel,
        command: &KernelCommand,
    ) -> Result<Option<Self::Launch>, String>;

    /// Prepares what a command needs that may take long or fail. Called before anything is issued.
    ///
    /// # Errors
    /// The errors of the driver.
    fn prepare(_device: &Self::Device, _command: &Command) -> Result<(), BackendError> {
        Ok(())
    }

    /// Called when a command was counted, before any part of it is issued.
    fn counted(_device: &Self::Device) {}

    /// Makes memory for `_size` bytes of arguments.
    ///
    /// # Errors
    /// The errors of an allocation.
    fn block(device: &Arc<Self::Device>, _size: usize) -> Result<Self::Block, BackendError> {
        let what = "arguments that are passed by their address".to_owned();
        Err(BackendError::Unsupported { device: Self::name(device).to_owned(), what })
    }

    /// Makes a print buffer for `_capacity` bytes of records.
    ///
    /// # Errors
    /// The errors of an allocation.
    fn print_buffer(device: &Arc<Self::Device>, _capacity: u32) -> Result<Self::Print, BackendError> {
        let what = "kernels that print".to_owned();
        Err(BackendError::Unsupported { device: Self::name(device).to_owned(), what })
    }

    /// Makes `n` free panic records and returns them with their memory. Called without locks.
    ///
    /// # Errors
    /// The errors of an allocation.
    fn records(device: &Self::Device, n: usize) -> Result<(Vec<Self::Record>, Self::RecordMemory), BackendError>;

    /// Chooses the lane of a task among those of its queue, and the driver's form of its dependencies. `open` are its dependencies that
    /// have not ended. Called without locks.
    ///
    /// # Errors
    /// The errors of the driver.
    fn choose_lane<'t>(
        queue: &LaneQueue<Self>,
        open: &[&'t Task<Self>],
    ) -> Result<(usize, Self::Waits<'t>), BackendError>;

    /// Issues a task to the driver, behind all others of the lane if that keeps its order. The task's position is the one after
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

    /// Called when a task was added to the ring.
    fn issued(_lane: &Lane<Self>, _ring: &mut Ring<Self>) {}

    /// How many of the ring's last tasks were not issued to the driver yet.
    fn n_held_back(_ring: &Ring<Self>) -> usize {
        0
    }

    /// Issues the [held-back](Self::n_held_back) tasks to the driver, since a thread waits for one. Called without locks.
    fn hand_over(_lane: &Lane<Self>) {}

    /// Called by the submitting thread after a task was issued, without locks.
    fn submitted(_own: &Self::Own, _task: &Arc<Task<Self>>) {}

    /// Called before a thread polls tasks. `None` when drivers must not be called any more.
    fn begin_poll(device: &Self::Device) -> Option<Self::PollGuard>;

    /// Asks the driver which tasks of the lane are over, and [moves](Lane::retire) these off the ring. Called by one thread at a time
    /// for each lane, without locks. `thorough` is true if the poller calls.
    fn poll(lane: &Lane<Self>, thorough: bool);

    /// The panic record that the kernel was given. It is the task's own, unless the driver lent it another one.
    fn written_record(task: &Task<Self>) -> Option<Self::Record> {
        task.record()
    }

    /// Takes the panic out of the record of a launch that has ended. The record can be used again afterwards.
    fn take_report(record: Self::Record) -> Option<PanicRecord>;

    /// The output of a launch that has ended.
    fn read_print(_print: &Self::Print, _sites: &[PanicSite]) -> Vec<KernelOutput> {
        Vec::new()
    }

    /// The execution times of a task, on a queue with profiling. If the task was not finished, only returns the driver's resources for
    /// profiling.
    fn times(task: &Task<Self>, is_finished: bool) -> Option<ExecutionTimes>;

    /// Releases the resources that a task kept for the driver while it ran.
    fn release(_task: &Task<Self>) {}

    /// Releases a task's driver resources, when the task is dropped.
    fn dropped(_task: &mut Task<Self>) {}

    /// The status of a task that has not ended.
    fn status(task: &Task<Self>) -> EventStatus;

    /// Releases a lane's driver resources. The lane has no tasks.
    fn close(_stream: &mut Self::Stream, _ring: &mut Self::Ring) {}

    /// The properties of a queue. Its order and its poller are filled in by the caller.
    fn info(_queue: &LaneQueue<Self>) -> QueueInfo {
        QueueInfo::default()
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

    /// See [`Queue::native_handle`](crate::Queue::native_handle).
    fn native_handle(_queue: &LaneQueue<Self>, _handle: NativeHandle) -> Option<*mut c_void> {
        None
    }

    /// See [`Queue::native_wait`](crate::Queue::native_wait).
    ///
    /// # Safety
    /// The contract of [`Queue::native_wait`](crate::Queue::native_wait) holds.
    ///
    /// # Errors
    /// As those of [`Queue::native_wait`](crate::Queue::native_wait).
    unsafe fn native_wait(queue: &LaneQueue<Self>, _event: *mut c_void) -> Result<Command, BackendError> {
        let device = Self::name(&queue.device).to_owned();
        Err(BackendError::Unsupported { device, what: "events of a driver".to_owned() })
    }

    /// See [`Event::native_events`](crate::Event::native_events). Called without locks, for a task that has not been reported.
    ///
    /// # Errors
    /// The errors of the driver.
    fn native_events(task: &Task<Self>) -> Result<Vec<*mut c_void>, BackendError> {
        let device = Self::name(&task.queue.device).to_owned();
        Err(BackendError::Unsupported { device, what: "events of a driver".to_owned() })
    }

    /// How many panic records the pool makes at first.
    const FIRST_RECORDS: usize;

    /// After this many attempts to help that found no finished task, a waiting thread is about to sleep, since its
    /// [timeout](QueueInfo::help_timeout) ends. It relies on the poller then.
    const IDLE_HELPS: usize = 20;

    /// Whether a waiting thread polls all lanes of the device, not only those of its queue.
    const HELPS_ALL: bool;

    /// The kernel of a command, if it was loaded by this backend.
    #[inline]
    fn kernel_of(command: &KernelCommand) -> Option<&Self::Kernel> {
        let code: &dyn Any = command.code.as_deref()?;
        code.downcast_ref()
    }
}
