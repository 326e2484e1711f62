//! Who of a group of threads is awake, and waking as few as needed.
//!
//! A [`Sleep`] owns the counts of searching and sleeping threads and the list of the sleeping ones. It knows nothing of the work: a
//! thread looks for work itself, once more after it has announced that it will sleep. `README.md` beside this file has the protocol.
//!
//! Invariant: if work was published before `notify`, then a thread that was searching will look again before it sleeps, or a sleeping
//! thread is woken. A thread that finds no work publishes nothing and wakes nobody.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, AtomicUsize, Lock, Ordering, Thread, current, fence, park};

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
    /// Searching threads in the low 16 bits, sleeping threads above. Sleeping is changed only under the lock of `list`.
    state: CachePadded<AtomicUsize>,
    list: Lock<Vec<Arc<Seat>>>,
    wakes: AtomicUsize,
}

/// Where one thread of the group sleeps.
pub(crate) struct Seat {
    thread: Thread,
    notified: AtomicBool,
}

impl Seat {
    /// The calling thread's seat.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { thread: current(), notified: AtomicBool::new(false) })
    }
}

impl Sleep {
    pub(crate) fn new() -> Self {
        Self { state: CachePadded::new(AtomicUsize::new(0)), list: Lock::new(Vec::new()), wakes: AtomicUsize::new(0) }
    }

    /// The calling thread begins to search.
    #[inline]
    pub(crate) fn start_searching(&self) {
        self.state.fetch_add(SEARCHING, Ordering::SeqCst);
    }

    /// The calling thread has found work. Returns true if it was the last one searching: it then has to look whether there is more
    /// work, and to `notify` if so, since those who published it may have relied on this thread.
    #[inline]
    #[must_use]
    pub(crate) fn stop_searching(&self) -> bool {
        let before = self.state.fetch_sub(SEARCHING, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        searching(before) == 1
    }

    /// The calling thread, which was searching, is going to sleep. It has to look for work once more, and then call `sleep` or
    /// `stay_awake`.
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

    /// Takes `prepare` back. The calling thread is searching again.
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

    /// Sleeps until woken. The thread is then searching.
    pub(crate) fn sleep(&self, seat: &Arc<Seat>) {
        while !seat.notified.swap(false, Ordering::Acquire) {
            park();
        }
    }

    /// Called after work for up to `threads` threads was published: wakes as many as are not searching already. Costs a fence and a
    /// load if nobody sleeps or somebody searches.
    #[inline]
    pub(crate) fn notify(&self, threads: usize) {
        fence(Ordering::SeqCst);
        let state = self.state.load(Ordering::Relaxed);
        if sleeping(state) > 0 && searching(state) < threads {
            self.wake(threads);
        }
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
        self.wakes.fetch_add(woken.len(), Ordering::Relaxed);
        for seat in woken {
            seat.notified.store(true, Ordering::Release);
            seat.thread.unpark();
        }
    }

    /// Whether a thread is searching.
    pub(crate) fn is_anyone_searching(&self) -> bool {
        searching(self.state.load(Ordering::Relaxed)) > 0
    }

    /// How many threads sleep.
    pub(crate) fn sleepers(&self) -> usize {
        sleeping(self.state.load(Ordering::SeqCst))
    }

    /// How many times a thread was woken.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.load(Ordering::Relaxed)
    }
}
