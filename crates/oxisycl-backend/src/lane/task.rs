//! A command from when it is issued until it is reported. It is also the command's event.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{Driver, Lane, LaneQueue};
use crate::{Command, CommandFailure, Completion, Event, EventStatus, FailureKind};

/// The number of a task on its lane, from 1. 0 is before the first task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(u64);

impl Position {
    /// The last of so many tasks.
    pub const fn of_last(n_tasks: u64) -> Self {
        Self(n_tasks)
    }

    /// How many tasks were put on the lane up to this one.
    pub const fn n_tasks(self) -> u64 {
        self.0
    }

    /// The position so many tasks before, at least 0.
    #[must_use]
    pub const fn before(self, n_tasks: usize) -> Self {
        Self(self.0.saturating_sub(n_tasks as u64))
    }

    /// The next position.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// How many tasks come after `earlier`, up to this one.
    pub const fn since(self, earlier: Self) -> usize {
        self.0.saturating_sub(earlier.0) as usize
    }
}

/// Where a task was put.
#[derive(Debug)]
pub struct Place<'t, D: Driver> {
    /// The lane.
    pub lane: &'t Arc<Lane<D>>,
    /// The task's number on the lane.
    pub position: Position,
}

/// A command that a driver has.
pub struct Task<D: Driver> {
    /// The queue that it was submitted to.
    pub queue: Arc<LaneQueue<D>>,
    /// What is to be done.
    pub command: Command,
    /// The task's place in the order in which the device's tasks were accepted.
    pub number: u64,
    /// How a kernel is launched.
    pub launch: Option<D::Launch>,
    /// Where the launch prints.
    pub print: Option<D::Print>,
    /// On the clock of execution times, of profiled commands.
    pub submitted: u64,
    /// What is kept of the driver's.
    pub issued: D::Issued,
    record: Option<D::Record>,
    error: OnceLock<D::Error>,
    /// Which of the queue's lanes it is on.
    lane: usize,
    position: Position,
    is_over: AtomicBool,
    completion: Mutex<Option<Arc<dyn Completion>>>,
}

/// What a task is given beside its command.
pub(super) struct Extras<D: Driver> {
    pub(super) number: u64,
    pub(super) launch: Option<D::Launch>,
    pub(super) print: Option<D::Print>,
}

impl<D: Driver> Task<D> {
    /// A task that is about to be put on the lane `lane` of its queue.
    #[inline(always)]
    pub(super) fn new(
        queue: Arc<LaneQueue<D>>,
        command: Command,
        extras: Extras<D>,
        completion: Arc<dyn Completion>,
        (lane, position, record): (usize, Position, Option<D::Record>),
    ) -> Self {
        let Extras { number, launch, print } = extras;
        Self {
            submitted: if queue.options.profiling { D::now(&queue.device) } else { 0 },
            queue,
            command,
            number,
            launch,
            print,
            issued: D::Issued::default(),
            record,
            error: OnceLock::new(),
            lane,
            position,
            is_over: AtomicBool::new(false),
            completion: Mutex::new(Some(completion)),
        }
    }

    /// Where it was put.
    #[inline]
    pub fn place(&self) -> Place<'_, D> {
        Place { lane: &self.queue.lanes[self.lane], position: self.position }
    }

    /// The panic record of the launch.
    #[inline]
    pub fn record(&self) -> Option<D::Record> {
        self.record
    }

    /// What went wrong after a part of the command was given to the driver. Only the first error counts.
    pub fn set_error(&self, error: D::Error) {
        let _ = self.error.set(error);
    }

    /// The error that [`set_error`](Self::set_error) has set.
    pub fn error(&self) -> Option<D::Error> {
        self.error.get().copied()
    }

    /// Whether it is over: its completion is called, or has been.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// The failure of this command.
    pub fn failure_of(&self, kind: FailureKind) -> CommandFailure {
        CommandFailure::new(&self.command, D::name(&self.queue.device), kind)
    }

    /// What is notified of the end, as long as that has not come.
    pub(super) fn completion(&self) -> Option<Arc<dyn Completion>> {
        self.completion.lock().clone()
    }

    /// The task is over. Called once; what is given is to be called.
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
}

impl<D: Driver> Drop for Task<D> {
    fn drop(&mut self) {
        D::dropped(self);
    }
}
