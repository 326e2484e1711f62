//! What the runtime does around a backend's queue, for tests that use a queue by itself.
//!
//! The runtime executes a command that the device cannot order behind others. Here the thread that issues does, and blocks meanwhile. The
//! dependencies of a command are of its queue's event domain.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxisycl_backend::{
    BackendError, Command, Completion, Dependency, Device, Event, EventStatus, Outcome, Queue, QueueOptions, poller,
};

/// No command may take longer.
pub const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 3600 } else { 60 });

/// A number of rounds that an interpreter can cope with, too.
pub(crate) const fn scaled(n_rounds: u32) -> u32 {
    if cfg!(miri) { n_rounds.div_ceil(15) } else { n_rounds }
}

/// A queue of the device, with a poller where the device does not report by itself.
///
/// # Errors
/// The errors of [`Device::create_queue`].
///
/// # Panics
/// If no thread can be started.
pub fn create_queue(device: &Arc<dyn Device>, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
    let queue = device.create_queue(options)?;
    poller::start(&queue.info()).expect("a thread can be started");
    Ok(queue)
}

/// Issues a command, or executes it, behind `dependencies`.
///
/// # Errors
/// The errors of [`Queue::is_executed`] and [`Queue::issue`].
///
/// # Panics
/// If a command that has to end before does not end within [`PATIENCE`].
///
/// # Safety
/// The contract of [`Queue::issue`] holds.
pub unsafe fn issue(
    queue: &dyn Queue,
    command: Command,
    dependencies: &[Dependency],
    completion: Arc<dyn Completion>,
) -> Result<Arc<dyn Event>, BackendError> {
    if queue.is_executed(&command)? {
        dependencies.iter().for_each(|dependency| wait_for(queue, &*dependency.event));
        if queue.info().keeps_order {
            // SAFETY: a marker uses no memory.
            let marker = unsafe { queue.issue(Command::Marker, &[], Arc::new(Unheard)) }?;
            wait_for(queue, &*marker);
        }
        // SAFETY: by the contract of this function, and what the command comes after has ended.
        let outcome = unsafe { queue.execute(&command) };
        drop(command);
        // SAFETY: the command was executed just now, and its completion is called once.
        unsafe { completion.complete(outcome) };
        return Ok(Arc::new(Executed));
    }
    let is_issued = |dependency: &&Dependency| !(&*dependency.event as &dyn Any).is::<Executed>();
    let behind: Vec<Dependency> = dependencies.iter().filter(is_issued).cloned().collect();
    // SAFETY: by the contract of this function.
    unsafe { queue.issue(command, &behind, completion) }
}

/// Waits until a command has ended, and helps the queue meanwhile.
///
/// # Panics
/// If the command does not end within [`PATIENCE`].
pub fn wait_for(queue: &dyn Queue, event: &dyn Event) {
    let began = Instant::now();
    // The error of a lost device is that of its commands, which end.
    let _ = queue.flush();
    queue.help(&mut |has_helped| {
        if event.status() == EventStatus::Complete {
            return false;
        }
        assert!(began.elapsed() < PATIENCE, "a command did not end");
        if !has_helped {
            std::thread::sleep(Duration::from_micros(50));
        }
        true
    });
}

/// Has the calling thread look once for work of the queue. Returns whether there was any.
pub fn help_once(queue: &dyn Queue) -> bool {
    let (mut n_asked, mut any) = (0, false);
    queue.help(&mut |has_helped| {
        n_asked += 1;
        any |= has_helped;
        n_asked == 1
    });
    any
}

/// The event of a command that was executed: it has ended.
struct Executed;

impl Event for Executed {
    fn status(&self) -> EventStatus {
        EventStatus::Complete
    }
}

/// The completion of a marker whose event is looked at instead.
struct Unheard;

impl Completion for Unheard {
    unsafe fn complete(self: Arc<Self>, _outcome: Outcome) {}
}
