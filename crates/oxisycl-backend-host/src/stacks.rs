//! Stacks that work-items wait on, shared by all threads of the process.
//!
//! A system has a limit for how many pieces the memory of a process may have, and a stack with the page that guards it is two. So there is a limit for
//! stacks, and a group takes all of its stacks at once, or waits until others have given theirs back. Invariant: a thread that holds
//! stacks never waits for more, so that those it waits for come back.

use std::io;
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};

/// The stacks of a process.
pub(crate) struct Stacks<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
    /// How many there may be before threads wait.
    most: usize,
    make: fn() -> io::Result<S>,
}

struct State<S> {
    kept: Vec<S>,
    /// How many there are, with those that threads hold.
    made: usize,
}

impl<S> Stacks<S> {
    pub(crate) fn new(most: usize, make: fn() -> io::Result<S>) -> Self {
        Self { state: Mutex::new(State { kept: Vec::new(), made: 0 }), changed: Condvar::new(), most, make }
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        match self.state.lock() {
            Ok(state) => state,
            // Nothing is left half done where a thread may panic.
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Takes `count` stacks. Waits for others to give theirs back if there are too many, unless the caller `holds` some already.
    pub(crate) fn take(&self, count: usize, holds: bool) -> io::Result<Vec<S>> {
        let mut state = self.state();
        let missing = loop {
            let missing = count.saturating_sub(state.kept.len());
            let nothing_comes_back = state.made == state.kept.len();
            if missing == 0 || holds || nothing_comes_back || state.made + missing <= self.most {
                break missing;
            }
            state = match self.changed.wait(state) {
                Ok(state) => state,
                Err(poisoned) => poisoned.into_inner(),
            };
        };
        let left = state.kept.len() - (count - missing);
        let mut taken = state.kept.split_off(left);
        state.made += missing;
        drop(state);
        for made in 0..missing {
            match (self.make)() {
                Ok(stack) => taken.push(stack),
                Err(error) => {
                    self.state().made -= missing - made;
                    self.give(taken, 0);
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    /// Gives stacks back, and says how many others are lost.
    pub(crate) fn give(&self, mut stacks: Vec<S>, lost: usize) {
        let mut state = self.state();
        state.made -= lost;
        let excess = state.made.saturating_sub(self.most).min(stacks.len());
        state.made -= excess;
        let freed = stacks.split_off(stacks.len() - excess);
        state.kept.append(&mut stacks);
        drop(state);
        self.changed.notify_all();
        drop(freed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn stacks_are_used_again() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let stacks = Stacks::new(8, || Ok(MADE.fetch_add(1, Ordering::Relaxed)));
        let first = stacks.take(3, false).expect("stacks");
        stacks.give(first, 0);
        let again = stacks.take(5, false).expect("stacks");
        assert_eq!((again.len(), MADE.load(Ordering::Relaxed)), (5, 5));
        stacks.give(again, 0);
    }

    #[test]
    fn more_than_the_limit_is_made_for_one_group_and_freed() {
        let stacks = Stacks::new(4, || Ok(Box::new(7)));
        let many = stacks.take(10, false).expect("stacks");
        // A thread that holds some does not wait.
        let more = stacks.take(2, true).expect("stacks");
        assert_eq!((many.len(), more.len(), stacks.state().made), (10, 2, 12));
        stacks.give(many, 0);
        stacks.give(more, 0);
        let state = stacks.state();
        assert_eq!((state.made, state.kept.len()), (4, 4));
    }

    #[test]
    fn a_failure_gives_back_what_was_made() {
        static LEFT: AtomicUsize = AtomicUsize::new(2);
        let stacks =
            Stacks::new(8, || match LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)) {
                Ok(left) => Ok(left),
                Err(_) => Err(io::Error::from(io::ErrorKind::OutOfMemory)),
            });
        let error = stacks.take(4, false).expect_err("there are two");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        let state = stacks.state();
        assert_eq!((state.made, state.kept.len()), (2, 2));
    }

    #[test]
    fn lost_stacks_are_made_anew() {
        let stacks = Stacks::new(2, || Ok(()));
        let taken = stacks.take(2, false).expect("stacks");
        assert_eq!(taken.len(), 2);
        stacks.give(vec![()], 1);
        assert_eq!(stacks.take(2, false).expect("stacks").len(), 2);
    }

    #[test]
    fn threads_wait_for_each_other_and_all_come_to_an_end() {
        let stacks = Arc::new(Stacks::new(6, || Ok(0u8)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let stacks = Arc::clone(&stacks);
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        let taken = stacks.take(5, false).expect("stacks");
                        assert_eq!(taken.len(), 5);
                        stacks.give(taken, 0);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("a thread ends"));
        assert!(stacks.state().made <= 6);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_each_group_gets_its_stacks() {
        loom::model(|| {
            let stacks = Arc::new(Stacks::new(3, || Ok(())));
            let other = Arc::clone(&stacks);
            let thread = loom::thread::spawn(move || {
                let taken = other.take(2, false).expect("stacks");
                // Nested: it does not wait.
                let more = other.take(2, true).expect("stacks");
                assert_eq!((taken.len(), more.len()), (2, 2));
                other.give(more, 0);
                other.give(taken, 0);
            });
            let mut taken = stacks.take(3, false).expect("stacks");
            assert_eq!(taken.len(), 3);
            taken.pop();
            stacks.give(taken, 1);
            thread.join().expect("it ends");
            let state = stacks.state();
            assert!(state.made == state.kept.len() && state.made <= 3);
        });
    }
}
