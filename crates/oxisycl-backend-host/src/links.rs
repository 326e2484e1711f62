//! The dependency protocol: which tasks wait for which, and which thread may run a task.
//!
//! A [`Links`] is one task's end of all its edges. It owns the count of what the task still waits for and the list of those that
//! wait for it.
//!
//! Invariants:
//! - `pending` starts one above the number of announced dependencies. Each dependency that ends, or had ended
//!   already, subtracts one, and so does the issuer when all are linked. The thread that subtracts the last one owns
//!   the task from then on.
//! - A follower is on the list of a task, or gets the answer that the task has ended, never both. The list's lock decides which.
//! - The list is empty after the end.
//!
//! Generic over the follower so that the model checker can explore it alone. Does not run tasks, and calls nothing else.

use oxisycl_backend::EventStatus;
use smallvec::SmallVec;

use crate::sync::{AtomicBool, AtomicU8, AtomicUsize, Lock, Ordering};

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const SUCCEEDED: u8 = 2;
const FAILED: u8 = 3;

/// The tasks that wait for a task.
pub(crate) type Followers<T> = SmallVec<[T; 1]>;

pub(crate) struct Links<T> {
    pending: AtomicUsize,
    phase: AtomicU8,
    /// Whether a dependency failed, so that the data it should have written is lost.
    poisoned: AtomicBool,
    edges: Lock<Edges<T>>,
}

struct Edges<T> {
    ended: bool,
    followers: Followers<T>,
}

/// The result of a request to follow a task.
pub(crate) enum Follow {
    /// The follower is on the list and will be handed out by `end`.
    Listed,
    /// The task has ended already.
    Ended {
        /// Whether the task ran without a failure.
        succeeded: bool,
    },
}

impl<T> Links<T> {
    /// Links of a task that will follow `dependencies` other tasks.
    pub(crate) fn new(dependencies: usize) -> Self {
        Self {
            pending: AtomicUsize::new(dependencies + 1),
            phase: AtomicU8::new(WAITING),
            poisoned: AtomicBool::new(false),
            edges: Lock::new(Edges { ended: false, followers: SmallVec::new() }),
        }
    }

    /// Adds `follower` to this task's list, unless the task has ended.
    pub(crate) fn follow(&self, follower: impl FnOnce() -> T) -> Follow {
        // Acquire pairs with the release in `end`: a thread that sees the end sees what the task wrote.
        if self.phase.load(Ordering::Acquire) == SUCCEEDED {
            return Follow::Ended { succeeded: true };
        }
        let mut edges = self.edges.lock();
        if edges.ended {
            return Follow::Ended { succeeded: self.phase.load(Ordering::Relaxed) == SUCCEEDED };
        }
        edges.followers.push(follower());
        Follow::Listed
    }

    /// Records that a dependency's data is lost. Called before that dependency is subtracted.
    pub(crate) fn poison(&self) {
        // Published by the `subtract_pending` that follows.
        self.poisoned.store(true, Ordering::Relaxed);
    }

    /// Subtracts `count` from the number of dependencies that the task waits for. Returns true to the one caller that subtracts the last:
    /// this caller owns the task.
    pub(crate) fn subtract_pending(&self, count: usize) -> bool {
        // Release publishes what the dependency wrote, acquire makes all of it visible to the owner.
        self.pending.fetch_sub(count, Ordering::AcqRel) == count
    }

    /// Whether a dependency's data is lost. Called by the owner, before the task runs.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }

    /// Marks the task as running. Called by the owner.
    pub(crate) fn begin(&self) {
        self.phase.store(RUNNING, Ordering::Relaxed);
    }

    /// Marks the task as ended, with or without a failure, and returns its followers. Called once, by the owner.
    pub(crate) fn end(&self, succeeded: bool) -> Followers<T> {
        let mut edges = self.edges.lock();
        edges.ended = true;
        let phase = if succeeded { SUCCEEDED } else { FAILED };
        self.phase.store(phase, Ordering::Release);
        std::mem::take(&mut edges.followers)
    }

    /// The status of the task. A caller that gets `Complete` sees what the task wrote.
    pub(crate) fn status(&self) -> EventStatus {
        match self.phase.load(Ordering::Acquire) {
            WAITING => EventStatus::Submitted,
            RUNNING => EventStatus::Running,
            _ => EventStatus::Complete,
        }
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// A task that writes a value.
    struct Task {
        links: Links<Arc<Task>>,
        written: UnsafeCell<u32>,
    }

    impl Task {
        fn new(dependencies: usize) -> Arc<Self> {
            Arc::new(Self { links: Links::new(dependencies), written: UnsafeCell::new(0) })
        }

        /// Runs a task that the caller owns, after checking that `before` tasks have run. Returns its followers.
        fn run(&self, value: u32, succeeded: bool) -> Followers<Arc<Task>> {
            self.links.begin();
            // SAFETY: one owner at a time; the model checks it.
            self.written.with_mut(|written| unsafe { *written = value });
            let mut ready = Followers::new();
            for follower in self.links.end(succeeded) {
                if !succeeded {
                    follower.links.poison();
                }
                if follower.links.subtract_pending(1) {
                    ready.push(follower);
                }
            }
            ready
        }

        fn read(&self) -> u32 {
            // SAFETY: as above.
            self.written.with(|written| unsafe { *written })
        }
    }

    /// Links `task` to `dependencies`. Returns whether the caller owns it now.
    fn link(task: &Arc<Task>, dependencies: &[&Arc<Task>]) -> bool {
        let mut n_ended = 1;
        for dependency in dependencies {
            if let Follow::Ended { succeeded } = dependency.links.follow(|| task.clone()) {
                n_ended += 1;
                if !succeeded {
                    task.links.poison();
                }
            }
        }
        task.links.subtract_pending(n_ended)
    }

    #[test]
    fn loom_a_follower_has_one_owner_who_sees_what_the_dependency_wrote() {
        loom::model(|| {
            let first = Task::new(0);
            assert!(link(&first, &[]));
            let running = first.clone();
            let runner = thread::spawn(move || running.run(7, true).len());
            let second = Task::new(1);
            let owned_here = link(&second, &[&first]);
            if owned_here {
                assert_eq!(first.read(), 7);
            }
            let released = runner.join().expect("no panic");
            assert_eq!(usize::from(owned_here) + released, 1);
            assert!(!second.links.is_poisoned());
        });
    }

    #[test]
    fn loom_a_join_of_two_runs_after_both() {
        loom::model(|| {
            let (left, right) = (Task::new(0), Task::new(0));
            assert!(link(&left, &[]) && link(&right, &[]));
            let join = Task::new(2);
            let threads = [left.clone(), right.clone()].map(|task| {
                let (left, right) = (left.clone(), right.clone());
                thread::spawn(move || {
                    let ready = task.run(1, true);
                    ready.iter().for_each(|_| assert_eq!((left.read(), right.read()), (1, 1)));
                    ready.len()
                })
            });
            let owned_here = link(&join, &[&left, &right]);
            if owned_here {
                assert_eq!((left.read(), right.read()), (1, 1));
            }
            let released: usize = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
            assert_eq!(usize::from(owned_here) + released, 1);
        });
    }

    #[test]
    fn loom_a_failure_is_seen_by_the_owner_of_the_follower() {
        loom::model(|| {
            let first = Task::new(0);
            assert!(link(&first, &[]));
            let running = first.clone();
            let runner = thread::spawn(move || {
                let ready = running.run(1, false);
                ready.iter().for_each(|task| assert!(task.links.is_poisoned()));
            });
            let second = Task::new(1);
            if link(&second, &[&first]) {
                assert!(second.links.is_poisoned());
            }
            runner.join().expect("no panic");
            assert!(matches!(first.links.status(), EventStatus::Complete));
        });
    }
}
