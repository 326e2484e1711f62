//! The dependency protocol: which tasks wait for which, and who may run.
//!
//! A [`Links`] is one task's end of all its edges. It owns the count of what the task still waits for and the list of those that
//! wait for it.
//!
//! Invariants:
//! - `remaining` starts one above the number of announced dependencies. Each dependency that ends, or had ended already, takes one
//!   away, and so does the enqueuer when all are linked; whoever takes the last one owns the task from then on.
//! - A follower is on the list of a task, or was told that the task has ended, never both. The list's lock decides which.
//! - The list is empty after the end.
//!
//! Generic over the follower so that the model checker can explore it alone. Does not run tasks and calls nobody.

use oxisycl_backend::{CommandFailure, EventStatus};
use smallvec::SmallVec;

use crate::sync::{AtomicBool, AtomicU8, AtomicUsize, Lock, Ordering};

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const SUCCEEDED: u8 = 2;
const FAILED: u8 = 3;

/// Those who wait for a task.
pub(crate) type Followers<T> = SmallVec<[T; 1]>;

pub(crate) struct Links<T> {
    remaining: AtomicUsize,
    phase: AtomicU8,
    /// Whether a dependency failed, so that the owner need not take the lock to know.
    poisoned: AtomicBool,
    edges: Lock<Edges<T>>,
}

struct Edges<T> {
    ended: bool,
    /// Before the end: the first failure among the dependencies. After it: why the task itself failed.
    failure: Option<CommandFailure>,
    followers: Followers<T>,
}

/// The answer to a request to follow a task.
pub(crate) enum Follow {
    /// The follower is on the list and will be handed out by `end`.
    Listed,
    /// The task has ended already, with that failure if there is one.
    Ended(Option<CommandFailure>),
}

impl<T> Links<T> {
    /// Links of a task that will follow `dependencies` others.
    pub(crate) fn new(dependencies: usize) -> Self {
        Self {
            remaining: AtomicUsize::new(dependencies + 1),
            phase: AtomicU8::new(WAITING),
            poisoned: AtomicBool::new(false),
            edges: Lock::new(Edges { ended: false, failure: None, followers: SmallVec::new() }),
        }
    }

    /// Puts `follower` on this task's list, unless the task has ended.
    pub(crate) fn follow(&self, follower: impl FnOnce() -> T) -> Follow {
        // Acquire pairs with the release in `end`: whoever sees the end sees what the task wrote.
        if self.phase.load(Ordering::Acquire) == SUCCEEDED {
            return Follow::Ended(None);
        }
        let mut edges = self.edges.lock();
        if edges.ended {
            return Follow::Ended(edges.failure.clone());
        }
        edges.followers.push(follower());
        Follow::Listed
    }

    /// Remembers that a dependency failed. Called before that dependency arrives. Only the first failure is kept.
    pub(crate) fn poison(&self, cause: CommandFailure) {
        self.edges.lock().failure.get_or_insert(cause);
        // Published by the `arrive` that follows.
        self.poisoned.store(true, Ordering::Relaxed);
    }

    /// Takes `count` from what the task waits for. True for the one caller after which nothing is left: it owns the task.
    pub(crate) fn arrive(&self, count: usize) -> bool {
        // Release publishes what the dependency wrote, acquire makes all of it visible to the owner.
        self.remaining.fetch_sub(count, Ordering::AcqRel) == count
    }

    /// The failure of a dependency. Asked by the owner, before the task runs.
    pub(crate) fn cause(&self) -> Option<CommandFailure> {
        if self.poisoned.load(Ordering::Relaxed) { self.edges.lock().failure.clone() } else { None }
    }

    /// Marks the task as running. Called by the owner.
    pub(crate) fn begin(&self) {
        self.phase.store(RUNNING, Ordering::Relaxed);
    }

    /// Marks the task as ended and hands out its followers. Called once, by the owner.
    pub(crate) fn end(&self, failure: Option<CommandFailure>) -> Followers<T> {
        let mut edges = self.edges.lock();
        edges.ended = true;
        let phase = if failure.is_some() { FAILED } else { SUCCEEDED };
        edges.failure = failure;
        self.phase.store(phase, Ordering::Release);
        std::mem::take(&mut edges.followers)
    }

    /// Where the task stands. Seeing `Complete` makes visible what the task wrote.
    pub(crate) fn status(&self) -> EventStatus {
        match self.phase.load(Ordering::Acquire) {
            WAITING => EventStatus::Submitted,
            RUNNING => EventStatus::Running,
            _ => EventStatus::Complete,
        }
    }
}
