//! A task: a command from its issue until it is reported. The task is also the command's event.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::queue::LaunchBlock;
use super::{Driver, Lane, LaneQueue};
use crate::{BackendError, Command, CommandFailure, Completion, Event, EventStatus, FailureKind, now};

/// The number of a task on its lane, from 1. 0 is before the first task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(u64);

impl Position {
    /// The position of the last of `n_tasks` tasks.
    pub const fn of_last(n_tasks: u64) -> Self {
        Self(n_tasks)
    }

    /// How many tasks were added to the lane up to this one.
    pub const fn n_tasks(self) -> u64 {
        self.0
    }

    /// The position that is `n_tasks` before this one, at least 0.
    #[must_use]
    pub const fn before(self, n_tasks: usize) -> Self {
        Self(self.0.saturating_sub(n_tasks as u64))
    }

    /// The next position.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// How many tasks come after `earlier`, up to and including this one.
    pub const fn since(self, earlier: Self) -> usize {
        self.0.saturating_sub(earlier.0) as usize
    }
}

/// The lane and position of a task.
#[derive(Debug)]
pub struct Place<'t, D: Driver> {
    /// The lane.
    pub lane: &'t Arc<Lane<D>>,
    /// The task's number on the lane.
    pub position: Position,
}

/// A command that was issued to a driver.
pub struct Task<D: Driver> {
    /// The queue that it was submitted to.
    pub queue: Arc<LaneQueue<D>>,
    /// The command.
    pub command: Command,
    /// The task's place in the order in which the device's tasks were accepted.
    pub number: u64,
    /// The shape of the launch, for a kernel.
    pub launch: Option<D::Launch>,
    /// The launch's print buffer.
    pub print: Option<D::Print>,
    /// Memory for the launch's arguments, with the number of bytes that it was taken for.
    pub(super) block: Option<LaunchBlock<D>>,
    /// The time of submission, for profiled commands.
    pub submitted: u64,
    /// The driver's state of the task.
    pub issued: D::Issued,
    record: Option<D::Record>,
    error: OnceLock<D::Error>,
    /// The index of the task's lane in the queue.
    lane: usize,
    position: Position,
    is_over: AtomicBool,
    completion: Mutex<Option<Arc<dyn Completion>>>,
}

/// The parts of a task beside its command.
pub(super) struct Extras<D: Driver> {
    pub(super) number: u64,
    pub(super) launch: Option<D::Launch>,
    pub(super) print: Option<D::Print>,
    pub(super) block: Option<LaunchBlock<D>>,
}

impl<D: Driver> Task<D> {
    /// A task that is about to be added to lane `lane` of its queue.
    #[inline(always)]
    pub(super) fn new(
        queue: Arc<LaneQueue<D>>,
        command: Command,
        extras: Extras<D>,
        completion: Arc<dyn Completion>,
        (lane, position, record): (usize, Position, Option<D::Record>),
    ) -> Self {
        let Extras { number, launch, print, block } = extras;
        Self {
            submitted: if queue.options.profiling { now() } else { 0 },
            queue,
            command,
            number,
            launch,
            print,
            block,
            issued: D::Issued::default(),
            record,
            error: OnceLock::new(),
            lane,
            position,
            is_over: AtomicBool::new(false),
            completion: Mutex::new(Some(completion)),
        }
    }

    /// The lane and position of the task.
    #[inline]
    pub fn place(&self) -> Place<'_, D> {
        Place { lane: &self.queue.lanes[self.lane], position: self.position }
    }

    /// Memory for the launch's arguments, where they are passed by their address.
    #[inline]
    pub fn block(&self) -> Option<&D::Block> {
        self.block.as_ref().map(|(_, block)| block)
    }

    /// The task's own panic record. See [`Driver::written_record`] for the one that its launch was given.
    #[inline]
    pub fn record(&self) -> Option<D::Record> {
        self.record
    }

    /// Sets the error of a driver call after a part of the command was issued. Only the first error counts.
    pub fn set_error(&self, error: D::Error) {
        let _ = self.error.set(error);
    }

    /// The error that [`set_error`](Self::set_error) has set.
    pub fn error(&self) -> Option<D::Error> {
        self.error.get().copied()
    }

    /// Whether the task is over: its completion is being called, or was.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// A failure of this command, of the given kind.
    pub fn failure_of(&self, kind: FailureKind) -> CommandFailure {
        CommandFailure::new(&self.command, D::name(&self.queue.device), kind)
    }

    /// Marks the task as over. Called once. The caller has to notify the returned completion.
    pub(super) fn end(&self) -> Option<Arc<dyn Completion>> {
        D::release(self);
        self.is_over.store(true, Ordering::Release);
        self.completion.lock().take()
    }
}

impl<D: Driver> Event for Task<D> {
    fn status(&self) -> EventStatus {
        if self.has_ended() { EventStatus::Complete } else { D::status(self) }
    }

    fn native_events(&self) -> Result<Vec<*mut c_void>, BackendError> {
        let _entered = D::enter(&self.queue.device)?;
        if self.has_ended() { Ok(Vec::new()) } else { D::native_events(self) }
    }
}

impl<D: Driver> Drop for Task<D> {
    fn drop(&mut self) {
        D::dropped(self);
    }
}
