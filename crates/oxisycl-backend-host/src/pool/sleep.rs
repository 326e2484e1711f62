//! The sleeping and searching threads of a group, and waking as few of them as needed.
//!
//! A [`Sleep`] owns the counts of searching and sleeping threads and the list of the sleeping ones. It knows nothing of the work: a
//! thread looks for work itself, once more after it has announced that it will sleep. `README.md` beside this file has the protocol.
//!
//! Invariant: if work was published before `notify`, then a thread that was searching will look again before it sleeps, or a sleeping
//! thread is woken. A thread that finds no work publishes nothing and wakes no other.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, AtomicUsize, Lock, Ordering, Parker, fence};

const SEARCHING: usize = 1;
const SLEEPING: usize = 1 << 16;

const fn searching(state: usize) -> usize {
    state % SLEEPING
}

const fn sleeping(state: usize) -> usize {
    state / SLEEPING
}

/// One group of threads.
pub(crate) struct Sleep {
    /// The number of searching threads in the low 16 bits, and of sleeping threads above. The latter changes only under the lock of `list`.
    state: CachePadded<AtomicUsize>,
    list: Lock<Vec<Arc<Seat>>>,
}

/// The place where one thread of the group sleeps.
pub(crate) struct Seat {
    parker: Parker,
    notified: AtomicBool,
}

impl Seat {
    /// Makes the calling thread's seat.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { parker: Parker::of_current_thread(), notified: AtomicBool::new(false) })
    }
}

impl Sleep {
    pub(crate) fn new() -> Self {
        Self { state: CachePadded::new(AtomicUsize::new(0)), list: Lock::new(Vec::new()) }
    }

    /// Counts the calling thread as searching.
    #[inline]
    pub(crate) fn start_searching(&self) {
        self.state.fetch_add(SEARCHING, Ordering::SeqCst);
    }

    /// Called by a searching thread that has found work. Returns true if it was the last one searching. It then has to look for more work,
    /// and to `notify` if there is any. The threads that published the work may have relied on it.
    #[inline]
    #[must_use]
    pub(crate) fn stop_searching(&self) -> bool {
        let before = self.state.fetch_sub(SEARCHING, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        searching(before) == 1
    }

    /// Called by a searching thread that is going to sleep. It has to look for work once more, and then call `sleep` or `stay_awake`.
    pub(crate) fn prepare(&self, seat: &Arc<Seat>) {
        {
            let mut list = self.list.lock();
            list.push(Arc::clone(seat));
            self.state.fetch_add(SLEEPING - SEARCHING, Ordering::SeqCst);
        }
        // Pairs with the fence in `notify`: either the publisher sees this thread on the list, or the look that follows sees the
        // work.
        fence(Ordering::SeqCst);
    }

    /// Reverts `prepare`: the calling thread is searching again.
    pub(crate) fn stay_awake(&self, seat: &Arc<Seat>) {
        let mut list = self.list.lock();
        if let Some(position) = list.iter().position(|other| Arc::ptr_eq(other, seat)) {
            list.remove(position);
            self.state.fetch_sub(SLEEPING - SEARCHING, Ordering::SeqCst);
        } else {
            // Woken in the meantime, and counted as searching by the one who did it.
            drop(list);
            self.sleep(seat);
        }
    }

    /// Sleeps until woken. The calling thread is then searching.
    pub(crate) fn sleep(&self, seat: &Arc<Seat>) {
        while !seat.notified.swap(false, Ordering::Acquire) {
            seat.parker.park();
        }
    }

    /// Sleeps until woken, or until `time` is over. The calling thread is then searching.
    pub(crate) fn sleep_for(&self, seat: &Arc<Seat>, time: Duration) {
        if !seat.notified.load(Ordering::Acquire) {
            seat.parker.park_timeout(time);
        }
        self.stay_awake(seat);
    }

    /// Called after work for up to `threads` threads was published. Wakes that many threads, less those that are already searching. Costs a
    /// fence and a load if no thread sleeps or one searches. Returns whether every thread was busy.
    #[inline]
    pub(crate) fn notify(&self, threads: usize) -> bool {
        fence(Ordering::SeqCst);
        let state = self.state.load(Ordering::Relaxed);
        if sleeping(state) > 0 && searching(state) < threads {
            self.wake(threads);
        }
        state == 0
    }

    #[cold]
    fn wake(&self, threads: usize) {
        let woken: smallvec::SmallVec<[Arc<Seat>; 8]> = {
            let mut list = self.list.lock();
            let searching = searching(self.state.load(Ordering::Relaxed));
            let count = threads.saturating_sub(searching).min(list.len());
            self.state.fetch_sub(count * (SLEEPING - SEARCHING), Ordering::SeqCst);
            let rest = list.len() - count;
            list.drain(rest..).collect()
        };
        for seat in woken {
            seat.notified.swap(true, Ordering::Release);
            seat.parker.unpark();
        }
    }

    /// The number of sleeping threads.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn sleepers(&self) -> usize {
        sleeping(self.state.load(Ordering::SeqCst))
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::sync::Arc as ModelArc;
    use loom::thread;

    use super::*;

    /// Work for some threads of a group.
    struct Group {
        sleep: Sleep,
        work: AtomicUsize,
    }

    impl Group {
        fn new() -> ModelArc<Self> {
            ModelArc::new(Self { sleep: Sleep::new(), work: AtomicUsize::new(0) })
        }

        fn publish(&self) {
            self.work.fetch_add(1, Ordering::Release);
            self.sleep.notify(1);
        }

        fn take(&self) -> bool {
            self.work.fetch_update(Ordering::AcqRel, Ordering::Acquire, |work| work.checked_sub(1)).is_ok()
        }

        /// Takes one piece of work as a worker does, sleeping if there is none. If a wake-up is lost, it deadlocks, which the model
        /// reports.
        fn take_or_sleep(&self) {
            let seat = Seat::new();
            self.sleep.start_searching();
            loop {
                if self.take() {
                    break;
                }
                self.sleep.prepare(&seat);
                if self.take() {
                    self.sleep.stay_awake(&seat);
                    break;
                }
                self.sleep.sleep(&seat);
            }
            if self.sleep.stop_searching() && self.work.load(Ordering::Acquire) > 0 {
                self.sleep.notify(1);
            }
        }
    }

    #[test]
    fn loom_a_piece_of_work_is_never_slept_over() {
        loom::model(|| {
            let group = Group::new();
            let worker = group.clone();
            let thread = thread::spawn(move || worker.take_or_sleep());
            group.publish();
            thread.join().expect("no panic");
            assert_eq!(group.sleep.state.load(Ordering::SeqCst), 0);
        });
    }

    #[test]
    fn loom_two_pieces_reach_two_threads_that_each_take_one() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let group = Group::new();
            let threads = [group.clone(), group.clone()].map(|worker| thread::spawn(move || worker.take_or_sleep()));
            group.publish();
            group.publish();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert_eq!(group.sleep.state.load(Ordering::SeqCst), 0);
            assert_eq!(group.work.load(Ordering::SeqCst), 0);
        });
    }

    #[test]
    fn loom_two_publishers_and_one_worker_lose_nothing() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let group = Group::new();
            let (worker, publisher) = (group.clone(), group.clone());
            let taker = thread::spawn(move || {
                worker.take_or_sleep();
                worker.take_or_sleep();
            });
            let other = thread::spawn(move || publisher.publish());
            group.publish();
            other.join().expect("no panic");
            taker.join().expect("no panic");
        });
    }

    #[test]
    fn loom_a_timed_sleep_keeps_the_counts_right() {
        loom::model(|| {
            let group = Group::new();
            let worker = group.clone();
            let thread = thread::spawn(move || {
                let seat = Seat::new();
                worker.sleep.start_searching();
                worker.sleep.prepare(&seat);
                worker.sleep.sleep_for(&seat, Duration::from_millis(1));
                let _ = worker.sleep.stop_searching();
            });
            group.publish();
            thread.join().expect("no panic");
            assert_eq!(group.sleep.state.load(Ordering::SeqCst), 0);
        });
    }
}
