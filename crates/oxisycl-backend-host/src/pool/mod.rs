//! The thread pool of the host device.
//!
//! A [`Pool`] owns the ready tasks, the jobs that are open for more threads, and the threads. There is one per process, made when
//! the host's platform is first asked for; its threads start with the first command. `README.md` beside this file describes the
//! protocol.
//!
//! Invariants: a ready task is run without further calls from outside. No lock is held while a command runs or
//! completes. A thread that finds nothing to do sleeps after less than 50 microseconds.

mod cost;
mod job;
mod ready;
mod sleep;
mod start;
mod work;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;
use crossbeam_utils::CachePadded;
use oxisycl_backend::{ExecutionTimes, Outcome, now};
use parking_lot::Mutex;

pub(crate) use job::Job;
pub(crate) use start::process_pool;
pub(crate) use work::Work;

use crate::task::{Executor, HandOver, HostTask, ReadySink};
use cost::{CostTable, Stopwatch};
use ready::ReadyQueue;
use sleep::Sleep;
use start::Threads;

/// The most ended tasks that are kept for submitting threads.
const MAX_RETIRED: usize = 1024;

/// The most threads that are woken when a job is opened; a wake-up costs microseconds.
const WAKE_AT_ONCE: usize = 4;
/// The most threads that a thread wakes when it joins a job.
const WAKE_PER_PARTICIPANT: usize = 2;

pub(crate) struct Pool {
    threads: usize,
    device_name: String,
    ready: ReadyQueue,
    /// Jobs with chunks left, oldest first, and their number.
    jobs: Mutex<Vec<Arc<Job>>>,
    open_jobs: CachePadded<AtomicUsize>,
    /// The sleeping states of the ordinary workers, and of the reserve worker, which steps back for helping threads.
    sleep: Sleep,
    reserve_sleep: Sleep,
    helpers: CachePadded<AtomicUsize>,
    /// Whether a thread has helped, or tried to, since a job was last opened. A helper that waits for something else may sleep.
    help_seen: CachePadded<AtomicBool>,
    /// Whether the reserve worker checks periodically if work is stuck because all other threads are busy or asleep.
    watching: AtomicBool,
    costs: CostTable,
    /// Ended tasks whose memory a submitting thread should free. Memory that one thread allocates and another one frees
    /// is expensive for an allocator.
    retired: ArrayQueue<Arc<HostTask>>,
    started: Threads,
    closing: AtomicBool,
}

/// A piece of work that a thread has found.
pub(crate) enum Found {
    Task(Arc<HostTask>),
    /// A job that the thread has joined.
    Job(Arc<Job>),
}

/// Whether a thread stays with a job until the job ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Participation {
    UntilTheEnd,
    OneChunk,
}

impl Pool {
    /// A pool of `threads` threads, none of which is started. It is never freed, since tasks refer to it without counting.
    pub(crate) fn leak(threads: usize, device_name: String) -> &'static Self {
        Box::leak(Box::new(Self {
            threads: threads.max(1),
            device_name,
            ready: ReadyQueue::new(),
            jobs: Mutex::new(Vec::new()),
            open_jobs: CachePadded::new(AtomicUsize::new(0)),
            sleep: Sleep::new(),
            reserve_sleep: Sleep::new(),
            helpers: CachePadded::new(AtomicUsize::new(0)),
            help_seen: CachePadded::new(AtomicBool::new(false)),
            watching: AtomicBool::new(false),
            costs: CostTable::new(),
            retired: ArrayQueue::new(MAX_RETIRED),
            started: Threads::new(),
            closing: AtomicBool::new(false),
        }))
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Finds work of any kind: a ready task, or a job to join.
    #[inline]
    fn find(&self) -> Option<Found> {
        if let Some(task) = self.ready.pop_high() {
            return Some(Found::Task(task));
        }
        if let Some(job) = self.find_job() {
            return Some(Found::Job(job));
        }
        self.ready.pop_rest().map(Found::Task)
    }

    /// Joins the oldest job that accepts another thread.
    #[inline]
    fn find_job(&self) -> Option<Arc<Job>> {
        if self.open_jobs.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let jobs = self.jobs.lock();
        jobs.iter().find(|job| job.join()).cloned()
    }

    /// Whether [`find`](Self::find) would find work.
    fn has_more(&self) -> bool {
        !self.ready.is_empty() || self.open_jobs.load(Ordering::SeqCst) > 0
    }

    /// Runs one ready task or one chunk on the calling thread, which is not one of the pool's. Returns whether there was one.
    ///
    /// A thread that unwinds does not help. Kernel code could not tell its own panics from that thread's, and its barriers have to. The
    /// workers make progress without help.
    pub(crate) fn help(&'static self) -> bool {
        if crate::in_kernel() || std::thread::panicking() || self.started.is_stale() {
            return false;
        }
        if !self.help_seen.load(Ordering::Relaxed) {
            self.help_seen.store(true, Ordering::Relaxed);
        }
        let Some(found) = self.find() else { return false };
        self.run(found, Participation::OneChunk, &mut HandOver);
        true
    }

    /// Counts the calling thread as a helper until the guard is dropped.
    pub(crate) fn begin_help(&self) -> HelpGuard<'_> {
        self.helpers.fetch_add(1, Ordering::SeqCst);
        HelpGuard(self)
    }

    /// Whether a thread is helping and will probably go on.
    fn is_helped(&self) -> bool {
        self.helpers.load(Ordering::SeqCst) > 0 && self.help_seen.load(Ordering::Relaxed)
    }

    fn run(&self, found: Found, participation: Participation, sink: &mut dyn ReadySink) {
        match found {
            Found::Task(task) => self.run_task(task, participation, sink),
            Found::Job(job) => {
                // Those who join wake the others, so that no thread has to wake them all.
                if job.has_room() {
                    self.sleep.notify(WAKE_PER_PARTICIPANT);
                }
                self.take_part(&job, participation, sink);
            }
        }
    }

    fn run_task(&self, task: Arc<HostTask>, participation: Participation, sink: &mut dyn ReadySink) {
        task.links().begin();
        let options = task.options();
        let start = options.profiling.then(now);
        // SAFETY: a thread that takes a ready task owns it.
        let work = Work::of(unsafe { task.command() });
        let threads = self.threads.min(options.max_threads as usize);
        let total = work.total();
        if threads <= 1 || self.costs.is_light(&work, total) {
            let watch = Stopwatch::start(&work, total);
            // SAFETY: the units are all there are, this thread owns the task, and the issuer keeps the memory valid.
            let result = unsafe { work.run(0, total) };
            if let Some(nanoseconds) = watch.stop() {
                self.costs.note(&work, total, nanoseconds);
            }
            let times = start.map(|start| ExecutionTimes { start, end: now() });
            let result = result.map_err(|report| task.panic_failure(report));
            task.complete(Outcome { times, ..Outcome::ran(result) }, sink);
        } else {
            let shape = work.shape(threads, self.costs.look_up(&work));
            let job = Arc::new(Job::new(task, shape, threads, start));
            self.open(&job, threads);
            self.take_part(&job, participation, sink);
        }
    }

    /// Makes sure that a ready task is run: wakes a worker if none is searching. If all are busy, makes the reserve worker watch.
    #[inline]
    fn call_worker(&self) {
        if self.sleep.notify(1) {
            self.call_watch();
        }
    }

    /// Makes the reserve worker check after a while whether the published work is stuck. Work that is published while it watches is seen at
    /// its next check.
    #[inline]
    fn call_watch(&self) {
        if !self.watching.load(Ordering::Relaxed) && !self.watching.swap(true, Ordering::SeqCst) {
            self.reserve_sleep.notify(1);
        }
    }

    /// Opens the job to other threads, and wakes some of them.
    fn open(&self, job: &Arc<Job>, threads: usize) {
        {
            let mut jobs = self.jobs.lock();
            jobs.push(Arc::clone(job));
            self.open_jobs.store(jobs.len(), Ordering::SeqCst);
        }
        let all_are_busy = self.sleep.notify((threads - 1).min(WAKE_AT_ONCE));
        let needs_all = threads == self.threads;
        if needs_all && !self.is_helped() {
            self.reserve_sleep.notify(1);
        } else if needs_all || all_are_busy {
            // The helper takes the reserve's place. If it turns out to be asleep, the reserve joins after a while, and the next job calls
            // it at once.
            self.help_seen.store(false, Ordering::Relaxed);
            self.call_watch();
        }
    }

    /// Runs chunks of a job in which the calling thread takes part.
    fn take_part(&self, job: &Arc<Job>, participation: Participation, sink: &mut dyn ReadySink) {
        while let Some(chunk) = job.claim() {
            if !job.has_chunks() {
                self.close(job);
            }
            // SAFETY: the chunk was just claimed from this job.
            let has_skipped_the_rest = unsafe { job.run(chunk, &self.costs, sink) };
            if has_skipped_the_rest {
                self.close(job);
            }
            if participation == Participation::OneChunk {
                break;
            }
        }
        if job.leave() {
            // What is left must not wait for this thread to come back.
            self.call_worker();
        }
    }

    /// Removes a job without chunks from the list.
    fn close(&self, job: &Arc<Job>) {
        let mut jobs = self.jobs.lock();
        jobs.retain(|other| !Arc::ptr_eq(other, job));
        self.open_jobs.store(jobs.len(), Ordering::SeqCst);
    }

    /// Leaves an ended task to the next submitting thread, which reuses its memory.
    fn retire(&self, task: Arc<HostTask>) {
        if let Err(task) = self.retired.push(task) {
            drop(task);
        }
    }

    /// Takes a retired task, for its memory.
    #[inline]
    pub(crate) fn retired(&self) -> Option<Arc<HostTask>> {
        self.retired.pop()
    }

    /// The number of sleeping threads.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn sleepers(&self) -> usize {
        self.sleep.sleepers() + self.reserve_sleep.sleepers()
    }

    /// Makes the threads end once there is no work left.
    pub(crate) fn close_when_idle(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.sleep.notify(usize::MAX);
        self.reserve_sleep.notify(usize::MAX);
    }
}

impl Executor for Pool {
    #[inline]
    fn accept(&self, task: Arc<HostTask>) {
        self.ready.push(task);
        self.call_worker();
    }

    fn device_name(&self) -> &str {
        &self.device_name
    }
}

/// Counts the calling thread as a helper until it is dropped.
pub(crate) struct HelpGuard<'p>(&'p Pool);

impl Drop for HelpGuard<'_> {
    fn drop(&mut self) {
        let pool = self.0;
        if pool.helpers.fetch_sub(1, Ordering::SeqCst) == 1 && pool.open_jobs.load(Ordering::SeqCst) > 0 {
            pool.reserve_sleep.notify(1);
        }
    }
}
