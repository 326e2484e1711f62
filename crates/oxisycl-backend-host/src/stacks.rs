//! The stacks on which work-items wait. Each thread has its own, and the process has a limit for all of them.
//!
//! A thread that gets the stacks of its last group again finds them in its processor's cache. A system limits how many memory mappings a
//! process may have, and a stack with its guard page takes two. So there is a limit for stacks, at which a thread takes what others keep
//! unused. A group takes all of its stacks at once, or waits until others have given theirs back. Invariant: a thread that holds stacks
//! never waits for more, so that those it waits for come back.

use std::io;
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};

/// The stacks of a process.
pub(crate) struct Stacks<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
    /// The most stacks that may exist before threads wait.
    most: usize,
    make: fn() -> io::Result<S>,
}

/// A thread, by a number that no other thread has at the same time.
pub(crate) type Owner = usize;

struct State<S> {
    kept: Vec<Share<S>>,
    /// The number of existing stacks, including those that groups hold.
    made: usize,
}

/// The stacks that are kept for a thread, which may have ended.
struct Share<S> {
    owner: Owner,
    stacks: Vec<S>,
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

    /// Takes `count` stacks. If the limit is reached, waits until others return theirs, unless the caller `holds` some already.
    pub(crate) fn take(&self, owner: Owner, count: usize, holds: bool) -> io::Result<Vec<S>> {
        let mut state = self.state();
        loop {
            let n_kept = state.n_kept();
            let nothing_comes_back = state.made == n_kept;
            let n_allowed = self.most.saturating_sub(state.made);
            if n_kept + n_allowed >= count || holds || nothing_comes_back {
                break;
            }
            state = match self.changed.wait(state) {
                Ok(state) => state,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
        let mut taken = state.take_of(owner, count);
        let n_allowed = self.most.saturating_sub(state.made);
        let n_foreign = (count - taken.len()).saturating_sub(n_allowed);
        state.take_of_others(&mut taken, n_foreign);
        let missing = count - taken.len();
        state.made += missing;
        drop(state);
        for made in 0..missing {
            match (self.make)() {
                Ok(stack) => taken.push(stack),
                Err(error) => {
                    self.give(owner, taken, missing - made);
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    /// Returns stacks. `lost` is the number of further stacks that no longer exist.
    pub(crate) fn give(&self, owner: Owner, mut stacks: Vec<S>, lost: usize) {
        let mut state = self.state();
        state.made -= lost;
        let excess = state.made.saturating_sub(self.most).min(stacks.len());
        state.made -= excess;
        let freed = stacks.split_off(stacks.len() - excess);
        state.keep(owner, stacks);
        drop(state);
        self.changed.notify_all();
        drop(freed);
    }
}

impl<S> State<S> {
    fn n_kept(&self) -> usize {
        self.kept.iter().map(|share| share.stacks.len()).sum()
    }

    /// Takes up to `most` stacks that are kept for the owner.
    fn take_of(&mut self, owner: Owner, most: usize) -> Vec<S> {
        let Some(place) = self.kept.iter().position(|share| share.owner == owner) else { return Vec::new() };
        let stacks = &mut self.kept[place].stacks;
        match stacks.len().checked_sub(most) {
            None | Some(0) => self.kept.swap_remove(place).stacks,
            Some(left) => stacks.split_off(left),
        }
    }

    /// Takes up to `count` stacks that are kept for any thread.
    fn take_of_others(&mut self, taken: &mut Vec<S>, mut count: usize) {
        while let (1.., Some(share)) = (count, self.kept.last_mut()) {
            let left = share.stacks.len().saturating_sub(count);
            count -= share.stacks.len() - left;
            taken.extend(share.stacks.drain(left..));
            if left == 0 {
                self.kept.pop();
            }
        }
    }

    fn keep(&mut self, owner: Owner, mut stacks: Vec<S>) {
        match self.kept.iter_mut().find(|share| share.owner == owner) {
            Some(share) => share.stacks.append(&mut stacks),
            None if stacks.is_empty() => {}
            None => self.kept.push(Share { owner, stacks }),
        }
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
        let first = stacks.take(1, 3, false).expect("stacks");
        stacks.give(1, first, 0);
        let again = stacks.take(1, 5, false).expect("stacks");
        assert_eq!((again.len(), MADE.load(Ordering::Relaxed)), (5, 5));
        stacks.give(1, again, 0);
    }

    #[test]
    fn each_thread_gets_its_own_again() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let stacks = Stacks::new(8, || Ok(MADE.fetch_add(1, Ordering::Relaxed)));
        let (first, second) = (stacks.take(1, 3, false).expect("stacks"), stacks.take(2, 3, false).expect("stacks"));
        stacks.give(1, first, 0);
        stacks.give(2, second, 0);
        let (first, second) = (stacks.take(1, 3, false).expect("stacks"), stacks.take(2, 2, false).expect("stacks"));
        assert_eq!((&first[..], &second[..]), (&[0, 1, 2][..], &[4, 5][..]));
        stacks.give(2, second, 0);
        stacks.give(1, first, 0);
    }

    #[test]
    fn at_the_limit_what_others_keep_is_used_before_anything_is_made() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let stacks = Stacks::new(6, || Ok(MADE.fetch_add(1, Ordering::Relaxed)));
        for owner in 1..=3 {
            let taken = stacks.take(owner, 2, false).expect("stacks");
            stacks.give(owner, taken, 0);
        }
        let mut taken = stacks.take(2, 5, false).expect("stacks");
        taken.sort_unstable();
        // Its own, both of the third, and one of the first.
        assert_eq!((taken.len(), MADE.load(Ordering::Relaxed), stacks.state().n_kept()), (5, 6, 1));
        assert!(taken.contains(&2) && taken.contains(&3));
        taken.dedup();
        assert_eq!(taken.len(), 5);
        stacks.give(2, taken, 0);
        assert_eq!(stacks.state().kept.len(), 2);
    }

    #[test]
    fn more_than_the_limit_is_made_for_one_group_and_freed() {
        let stacks = Stacks::new(4, || Ok(Box::new(7)));
        let many = stacks.take(1, 10, false).expect("stacks");
        // A thread that holds some does not wait.
        let more = stacks.take(1, 2, true).expect("stacks");
        assert_eq!((many.len(), more.len(), stacks.state().made), (10, 2, 12));
        stacks.give(1, many, 0);
        stacks.give(1, more, 0);
        let state = stacks.state();
        assert_eq!((state.made, state.n_kept()), (4, 4));
    }

    #[test]
    fn a_failure_gives_back_what_was_made() {
        static LEFT: AtomicUsize = AtomicUsize::new(2);
        let stacks =
            Stacks::new(8, || match LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)) {
                Ok(left) => Ok(left),
                Err(_) => Err(io::Error::from(io::ErrorKind::OutOfMemory)),
            });
        let error = stacks.take(1, 4, false).expect_err("there are two");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        let state = stacks.state();
        assert_eq!((state.made, state.n_kept()), (2, 2));
    }

    #[test]
    fn lost_stacks_are_made_anew() {
        let stacks = Stacks::new(2, || Ok(()));
        let taken = stacks.take(1, 2, false).expect("stacks");
        assert_eq!(taken.len(), 2);
        stacks.give(1, vec![()], 1);
        assert_eq!(stacks.take(1, 2, false).expect("stacks").len(), 2);
    }

    #[test]
    fn threads_wait_for_each_other_and_all_come_to_an_end() {
        let stacks = Arc::new(Stacks::new(6, || Ok(0u8)));
        let threads: Vec<_> = (0..4)
            .map(|owner| {
                let stacks = Arc::clone(&stacks);
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        let taken = stacks.take(owner, 5, false).expect("stacks");
                        assert_eq!(taken.len(), 5);
                        stacks.give(owner, taken, 0);
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
                let taken = other.take(2, 2, false).expect("stacks");
                // Nested: it does not wait.
                let more = other.take(2, 2, true).expect("stacks");
                assert_eq!((taken.len(), more.len()), (2, 2));
                other.give(2, more, 0);
                other.give(2, taken, 0);
            });
            let mut taken = stacks.take(1, 3, false).expect("stacks");
            assert_eq!(taken.len(), 3);
            taken.pop();
            stacks.give(1, taken, 1);
            thread.join().expect("it ends");
            let state = stacks.state();
            assert!(state.made == state.n_kept() && state.made <= 3);
        });
    }
}
