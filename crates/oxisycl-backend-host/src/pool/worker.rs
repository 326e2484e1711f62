//! The loops of the pool's threads: find work, run it, search for a while, sleep.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::sleep::Seat;
use super::{Found, Participation, Pool};
use crate::task::{HostTask, ReadySink};

/// How long a thread looks for work before it sleeps.
const SEARCH_TIME: Duration = Duration::from_micros(40);
/// The number of searches between two readings of the clock.
const SEARCHES_PER_ROUND: u32 = 16;
/// The number of rounds after which the thread also yields its processor.
const ROUNDS_WITHOUT_YIELD: u32 = 32;
/// How often the reserve worker checks for stuck tasks while there are ready ones.
const WATCH_INTERVAL: Duration = Duration::from_millis(1);
/// A task that takes longer makes the reserve worker take another one.
const LONG_TASK: Duration = Duration::from_micros(200);
/// The most tasks that a worker runs in a row because each releases the next one, before it takes other tasks.
const MAX_STREAK: u32 = 64;

impl Pool {
    /// The loop of an ordinary worker.
    pub(super) fn worker_loop(&'static self) {
        let seat = Seat::new();
        self.sleep.start_searching();
        loop {
            let found = match self.search(Self::find) {
                Some(found) => found,
                None => {
                    self.sleep.prepare(&seat);
                    if let Some(found) = self.find() {
                        self.sleep.stay_awake(&seat);
                        found
                    } else if self.closing.load(Ordering::SeqCst) {
                        return;
                    } else {
                        self.sleep.sleep(&seat);
                        continue;
                    }
                }
            };
            if self.sleep.stop_searching() && self.has_more() {
                self.call_worker();
            }
            self.run_streak(found);
            while let Some(found) = self.find() {
                self.run_streak(found);
            }
            self.sleep.start_searching();
        }
    }

    /// The loop of the reserve worker: it takes part in jobs while no other worker does, and relieves workers that are stuck in long tasks.
    pub(super) fn reserve_loop(&'static self) {
        let seat = Seat::new();
        let find = |pool: &Self| if pool.is_helped() { None } else { pool.find_job() };
        let mut is_warm = false;
        self.reserve_sleep.start_searching();
        loop {
            let mut job = if is_warm { self.search(find) } else { find(self) };
            if job.is_none() {
                self.reserve_sleep.prepare(&seat);
                job = find(self);
                if job.is_some() {
                    self.reserve_sleep.stay_awake(&seat);
                } else if self.watching.load(Ordering::SeqCst) {
                    self.reserve_sleep.sleep_for(&seat, WATCH_INTERVAL);
                    self.relieve();
                } else if !self.closing.load(Ordering::SeqCst) {
                    self.reserve_sleep.sleep(&seat);
                } else if self.has_more() {
                    // This thread has released it, and the others may have ended.
                    self.reserve_sleep.stay_awake(&seat);
                    self.relieve();
                } else {
                    return;
                }
            }
            is_warm = job.is_some();
            if let Some(job) = job {
                // One chunk at a time: a helper may come.
                self.run_in_reserve(Found::Job(job), Participation::OneChunk);
            }
        }
    }

    /// Runs a ready task or takes part in a job, since there was work for a while and no thread to do it. Repeats this while each piece of
    /// work takes [`LONG_TASK`] or more. Ends the watch if there is no work left.
    fn relieve(&'static self) {
        while let Some(found) = self.find() {
            let began = Instant::now();
            self.run_in_reserve(found, Participation::UntilTheEnd);
            if began.elapsed() < LONG_TASK {
                break;
            }
        }
        if !self.has_more() {
            self.watching.store(false, Ordering::SeqCst);
            // Pairs with the fence in `notify`: work that is published now is seen here, or its publisher sees that the reserve does not watch.
            fence(Ordering::SeqCst);
            if self.has_more() {
                self.watching.store(true, Ordering::SeqCst);
            }
        }
    }

    fn run_in_reserve(&'static self, found: Found, participation: Participation) {
        let _ = self.reserve_sleep.stop_searching();
        self.run(found, participation, &mut WorkerSink { pool: self, keep: false, next: None });
        self.reserve_sleep.start_searching();
    }

    /// Searches for work by `find` for a bounded time.
    fn search<F>(&self, find: impl Fn(&Self) -> Option<F>) -> Option<F> {
        let mut started = None;
        let mut rounds = 0;
        loop {
            for _ in 0..SEARCHES_PER_ROUND {
                if let Some(found) = find(self) {
                    return Some(found);
                }
                std::hint::spin_loop();
            }
            rounds += 1;
            if rounds > ROUNDS_WITHOUT_YIELD {
                std::thread::yield_now();
            }
            let started = *started.get_or_insert_with(Instant::now);
            if started.elapsed() >= SEARCH_TIME || self.closing.load(Ordering::Relaxed) {
                return None;
            }
        }
    }

    /// Runs the found work. Then runs the first task that it released, without queueing it, and so on.
    fn run_streak(&'static self, mut found: Found) {
        for streak in 1.. {
            let keep = streak < MAX_STREAK && !self.ready.has_high();
            let mut sink = WorkerSink { pool: self, keep, next: None };
            self.run(found, Participation::UntilTheEnd, &mut sink);
            match sink.next {
                Some(task) => found = Found::Task(task),
                None => return,
            }
        }
    }
}

/// A sink that keeps the pool's first task that becomes ready, and queues the others.
struct WorkerSink {
    pool: &'static Pool,
    keep: bool,
    next: Option<Arc<HostTask>>,
}

impl ReadySink for WorkerSink {
    fn ready(&mut self, task: Arc<HostTask>) {
        if self.keep && self.next.is_none() && task.is_of_pool(std::ptr::from_ref(self.pool).cast()) {
            self.next = Some(task);
        } else {
            task.hand_over();
        }
    }

    fn retire(&mut self, task: Arc<HostTask>) {
        self.pool.retire(task);
    }
}
