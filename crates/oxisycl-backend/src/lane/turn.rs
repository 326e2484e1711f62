//! The turn: which thread removes tasks from a lane.
//!
//! Invariant: one thread at a time has the turn. If another thread asks for the turn, it is refused, and the thread that has the turn polls
//! once more after that.

use crate::sync::{AtomicU8, Ordering};

const FREE: u8 = 0;
const TAKEN: u8 = 1;
/// Taken, and another thread has asked for it.
const WANTED: u8 = 2;

/// Whether a thread has the turn, and whether another one has asked for it.
#[derive(Debug, Default)]
pub(super) struct Turn(AtomicU8);

impl Turn {
    /// Takes the turn and calls `poll` until no other thread has asked for the turn meanwhile. Returns whether any call gave true. Returns
    /// false at once if another thread has the turn.
    pub(super) fn take(&self, mut poll: impl FnMut() -> bool) -> bool {
        let mut progress = false;
        if !self.begin() {
            return false;
        }
        loop {
            progress |= poll();
            if self.end() {
                return progress;
            }
        }
    }

    fn begin(&self) -> bool {
        let exchange = |from, to| self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        loop {
            match exchange(FREE, TAKEN) {
                Ok(_) => return true,
                Err(TAKEN) if exchange(TAKEN, WANTED).is_err() => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends the turn. Returns false if another thread has asked for it: the calling thread then has the turn again.
    fn end(&self) -> bool {
        if self.0.compare_exchange(TAKEN, FREE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return true;
        }
        self.0.store(TAKEN, Ordering::Release);
        false
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::model;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;

    use super::Turn;

    #[test]
    fn loom_what_has_ended_before_a_thread_asks_is_taken_by_it_or_by_the_one_that_has_the_turn() {
        model(|| {
            // Tasks that have ended, those that were taken, and threads that take.
            let state = Arc::new((Turn::default(), [0, 1, 2].map(|_| AtomicUsize::new(0))));
            let run = |state: &(Turn, [AtomicUsize; 3])| {
                let (turn, [n_ended, n_taken, n_inside]) = state;
                n_ended.fetch_add(1, Ordering::Release);
                turn.take(|| {
                    assert_eq!(n_inside.fetch_add(1, Ordering::Relaxed), 0, "one thread at a time");
                    let before = n_taken.swap(n_ended.load(Ordering::Acquire), Ordering::Relaxed);
                    n_inside.fetch_sub(1, Ordering::Relaxed);
                    n_taken.load(Ordering::Relaxed) > before
                });
            };
            let threads = [0, 1].map(|_| {
                let state = state.clone();
                thread::spawn(move || run(&state))
            });
            for thread in threads {
                thread.join().expect("no assertion fails");
            }
            assert_eq!(state.1[1].load(Ordering::Relaxed), 2, "no task is left behind");
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::Turn;

    #[test]
    fn a_thread_that_asks_within_a_poll_is_refused_and_polled_for_again() {
        let (turn, n_polls) = (Turn::default(), Cell::new(0));
        let progress = turn.take(|| {
            n_polls.set(n_polls.get() + 1);
            if n_polls.get() == 1 {
                assert!(!turn.take(|| panic!("another poll is under way")));
            }
            n_polls.get() == 2
        });
        assert!(progress && n_polls.get() == 2);
        assert!(!turn.take(|| false));
    }
}
