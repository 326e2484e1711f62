//! Queues, events, and how the end of a command is reported.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use oxisycl_types::PrintHeader;

use crate::poller::Progress;
use crate::{BackendError, Command, CommandFailure, FailureKind};

/// Scheduling priority of a queue, a hint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Priority {
    /// After normal work.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Before normal work.
    High,
}

/// Whether small kernels may be issued to the device in batches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Batching {
    /// Each kernel is issued by itself.
    Off,
    /// Kernels that are submitted while the device is busy with earlier commands of the queue are batched.
    #[default]
    On,
    /// Kernels are batched on an idle device, too. Batches are small and have no bound on their age, so that tests meet them often.
    Always,
}

/// How a queue behaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueOptions {
    /// Each command starts after the one before it. The runtime also passes that order as a dependency, unless the queue
    /// [keeps it itself](QueueInfo::keeps_order).
    pub in_order: bool,
    /// Commands record when they start and end.
    pub profiling: bool,
    /// Scheduling priority.
    pub priority: Priority,
    /// Bytes of a launch's print buffer, on devices that keep output until the launch has ended; at most [`PrintHeader::MAX_CAPACITY`].
    pub print_buffer: u32,
    /// Whether small kernels may be issued in batches. Devices without batching ignore it.
    pub batching: Batching,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            in_order: false,
            profiling: false,
            priority: Priority::default(),
            print_buffer: PrintHeader::DEFAULT_CAPACITY,
            batching: Batching::default(),
        }
    }
}

/// The status of a command (SYCL 2020 `info::event_command_status`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventStatus {
    /// Waiting for dependencies or for the device.
    Submitted,
    /// Executing.
    Running,
    /// Finished, also if it failed.
    Complete,
}

/// A backend's handle of an issued command, used as a dependency of later ones of the same backend.
pub trait Event: Any + Send + Sync {
    /// The status of the command.
    fn status(&self) -> EventStatus;

    /// Events of the driver which have all happened when the command is over. They belong to the caller, who destroys or releases them. There are none if the
    /// command is over.
    ///
    /// # Errors
    /// `Unsupported` if there is no driver, as by default; the errors of the driver.
    fn native_events(&self) -> Result<Vec<*mut c_void>, BackendError> {
        Err(BackendError::Unsupported { device: String::new(), what: "events of a driver".to_owned() })
    }
}

/// The queues whose commands can be issued behind each other's events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EventDomain(u32);

impl EventDomain {
    /// The domain of all queues of a platform that have no other one.
    pub const PLATFORM: Self = Self(0);

    /// A domain that no other queue of this process has.
    pub fn unique() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What the failure of a dependency means for the command that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DependencyKind {
    /// The command uses what the dependency produced. If the dependency failed or did not run, a device that starts the command later does
    /// not run it.
    Data,
    /// Only the order counts: the command runs also if the dependency failed.
    Order,
}

/// An earlier command of the same backend that a command waits for.
#[derive(Clone)]
pub struct Dependency {
    /// The earlier command.
    pub event: Arc<dyn Event>,
    /// What a failure of the earlier command means for the later one.
    pub kind: DependencyKind,
}

/// When a command executed, on the [clock of the process](crate::now). Times of a device's clock are translated to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExecutionTimes {
    /// Execution began.
    pub start: u64,
    /// Execution ended.
    pub end: u64,
}

impl ExecutionTimes {
    /// Moves times that another clock measured into the interval from `submitted` to `seen`, in which the command must have run. Their
    /// distance stays as measured if it fits.
    #[must_use]
    pub fn moved_between(self, submitted: u64, seen: u64) -> Self {
        let seen = seen.max(submitted);
        let duration = self.end.saturating_sub(self.start).min(seen - submitted);
        let start = self.start.clamp(submitted, seen - duration);
        Self { start, end: start + duration }
    }
}

/// The outcome of a command on its device.
///
/// A backend reports each command by itself. Which commands fail because of it is decided above, in one place.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether the command ran, or may have run in part. False for a command that was not started because of a dependency of kind
    /// [`Data`](DependencyKind::Data), whose `result` then is `Ok`.
    pub has_run: bool,
    /// Success, or the failure of this command itself.
    pub result: Result<(), CommandFailure>,
    /// Present on queues with profiling, if the command ran.
    pub times: Option<ExecutionTimes>,
    /// What the command's kernel printed, on a device that keeps it until the launch has ended.
    pub output: Vec<KernelOutput>,
}

impl Outcome {
    /// The outcome of a command that ran, on a queue without profiling.
    pub fn ran(result: Result<(), CommandFailure>) -> Self {
        Self { has_run: true, result, times: None, output: Vec::new() }
    }

    /// The outcome of a command that was not started because of a dependency.
    pub fn not_run() -> Self {
        Self { has_run: false, ..Self::ran(Ok(())) }
    }

    /// The outcome of a command that was given up before it started.
    pub fn refused(failure: CommandFailure) -> Self {
        Self { has_run: false, ..Self::ran(Err(failure)) }
    }
}

/// A part of the output of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KernelOutput {
    /// Text, in its order. A launch's output may come in several pieces.
    Text(String),
    /// The output of some calls of `print!` did not fit into the queue's [`print_buffer`](QueueOptions::print_buffer).
    Lost {
        /// How many calls; at [`PrintHeader::MANY`] there may have been more.
        count: u32,
        /// The size of the print buffer, in bytes.
        capacity: u32,
    },
    /// Some bytes of the print buffer were not valid output.
    Unreadable {
        /// How many.
        bytes: usize,
    },
}

/// Notified once when a command has ended. Commands may be reported in any order, also a command before one that it came after.
pub trait Completion: Send + Sync {
    /// Called once, by a thread of the backend or by one that helps it. Must be short, and must not block but for the program's standard output.
    ///
    /// # Safety
    /// The caller is the [`Queue`] that the completion was issued with. The command has ended, and this was not called before. Memory
    /// that the command used is released, or used by others, because of this call.
    unsafe fn complete(self: Arc<Self>, outcome: Outcome);
}

/// The most unfinished launches of a queue that may print ([`LoadedKernel::info`](crate::LoadedKernel::info)). Each needs a buffer of
/// [`QueueOptions::print_buffer`] bytes. Later ones are issued when earlier ones have ended.
pub const MAX_PRINTING: usize = 16;

/// The constant properties of a queue.
#[derive(Clone)]
pub struct QueueInfo {
    /// Whether commands start, and are reported, in the order of issue, also without dependencies. Commands that the host
    /// [executes](Queue::is_executed) are not issued, and have no such order.
    pub keeps_order: bool,
    /// The most unfinished commands that the queue should have. Later ones are issued when earlier ones have ended.
    pub max_unfinished: usize,
    /// The object that a poller has to poll so that commands are reported; `None` where the device reports them by itself. The queue's
    /// owner [starts](crate::poller::start) the poller before it issues.
    pub progress: Option<Arc<dyn Progress>>,
    /// Whether the queue may hold commands back until [`Progress::hand_over`] is called.
    pub holds_back: bool,
    /// The queues whose events its commands can be issued behind. Behind others they are issued once the event is complete.
    pub event_domain: EventDomain,
    /// Whether the queue takes commands of the kind [`Native`](Command::Native): it has a driver's queue that such work can be put on.
    pub takes_native: bool,
    /// How long a waiting thread should [help](Queue::help) without success before it sleeps. Long where only a poller, which naps,
    /// reports the end of commands: without that, kernels of 0.5 ms on a GPU ended five percent late.
    pub help_timeout: Duration,
}

impl Default for QueueInfo {
    /// The properties of a queue whose device reports commands by itself, keeps no order, and has no limit of commands.
    fn default() -> Self {
        Self {
            keeps_order: false,
            max_unfinished: usize::MAX,
            progress: None,
            holds_back: false,
            event_domain: EventDomain::PLATFORM,
            takes_native: false,
            help_timeout: Duration::from_micros(20),
        }
    }
}

/// Executes commands.
///
/// # Safety
/// A command uses no memory but what it refers to, and that only after the command's dependencies have completed, and before its completion
/// is called. A completion that succeeds means that the command has been carried out.
pub unsafe trait Queue: Any + Send + Sync {
    /// Hands over a command. It may start as soon as all `dependencies` (of this backend) are complete. If one of kind
    /// [`Data`](DependencyKind::Data) has failed when the command would start, the command does not run
    /// ([`Outcome::has_run`]). A device that is given commands ahead of their dependencies' ends runs it all the same. An event may
    /// stand in the list more than once. `completion` may be called before this function returns. It is not called if that returns an
    /// error.
    ///
    /// # Safety
    /// Until `completion` is called, all memory that the command refers to is valid. Nothing outside the order given by the dependencies uses it
    /// in conflict with the command. A kernel's argument block belongs to its descriptor's entry. The work of a native command puts calls on
    /// the queue that it is given, and they keep these rules.
    unsafe fn issue(
        &self,
        command: Command,
        dependencies: &[Dependency],
        completion: Arc<dyn Completion>,
    ) -> Result<Arc<dyn Event>, BackendError>;

    /// The constant properties of the queue. Called when the queue is made.
    fn info(&self) -> QueueInfo {
        QueueInfo::default()
    }

    /// Whether a thread of the host has to [execute](Self::execute) the command, since the device cannot order it behind others.
    ///
    /// # Errors
    /// The error of a lost device.
    fn is_executed(&self, _command: &Command) -> Result<bool, BackendError> {
        Ok(false)
    }

    /// Executes a command for which [`is_executed`](Self::is_executed) returns true. May block for as long as that takes.
    ///
    /// # Safety
    /// All memory that the command refers to is valid, and everything that the command comes after has ended. Until this returns, nothing uses
    /// the memory in conflict with the command.
    unsafe fn execute(&self, command: &Command) -> Outcome {
        let what = "commands on a thread of the host".to_owned();
        let error = BackendError::Unsupported { device: String::new(), what };
        Outcome::ran(Err(CommandFailure::new(command, "", FailureKind::Device(error))))
    }

    /// Makes sure that issued commands make progress without further calls. Does not block.
    ///
    /// # Errors
    /// The error of a lost device.
    fn flush(&self) -> Result<(), BackendError> {
        Ok(())
    }

    /// Has the calling thread, which waits, do ready work of the device until its wait is over. `goes_on` is called before each piece of
    /// work, with whether there was any the last time. It returns whether the wait goes on. By default there never is work.
    fn help(&self, goes_on: &mut dyn FnMut(bool) -> bool) {
        while goes_on(false) {}
    }

    /// A command that ends when an event of the driver has happened, for any queue of the device.
    ///
    /// # Safety
    /// `event` is null or a live handle of the driver. Where the driver counts references, the command holds one. Elsewhere the handle lives until the
    /// command has ended.
    ///
    /// # Errors
    /// `Handle` if the handle is not one that the queue can wait for. `Unsupported` if there is no driver, as by default.
    unsafe fn native_wait(&self, _event: *mut c_void) -> Result<Command, BackendError> {
        Err(BackendError::Unsupported { device: String::new(), what: "events of a driver".to_owned() })
    }

    /// A handle of the driver; `None` if there is no driver. Valid as long as the queue is.
    fn native_handle(&self, _handle: NativeHandle) -> Option<*mut c_void> {
        None
    }
}

/// The kinds of driver handles that a queue or device has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NativeHandle {
    /// The driver's queue, of a queue alone. Any of them if there are several, since a command group's task begins when everything that it waits for has
    /// ended.
    Queue,
    /// The device. A number is given as an address.
    Device,
    /// The context that the memory of the device belongs to.
    Context,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_times_keep_their_distance() {
        let moved = |start, end| {
            let ExecutionTimes { start, end } = ExecutionTimes { start, end }.moved_between(100, 200);
            (start, end)
        };
        assert_eq!(moved(120, 150), (120, 150));
        assert_eq!(moved(90, 95), (100, 105));
        assert_eq!(moved(90, 110), (100, 120));
        assert_eq!(moved(190, 220), (170, 200));
        assert_eq!(moved(90, 300), (100, 200));
        assert_eq!(moved(150, 140), (150, 150));
        assert_eq!(ExecutionTimes { start: 5, end: 9 }.moved_between(7, 3), ExecutionTimes { start: 7, end: 7 });
    }
}
