//! One command that several threads execute together.
//!
//! A [`Job`] owns the position up to which the command's units (work-items, bytes, elements) were handed out, and the
//! count of those that are done. Invariants: each unit belongs to exactly one chunk. The thread that finishes the last
//! chunk completes the task. No thread uses the command after that, since there is no chunk left to claim. After a
//! panic the units not yet claimed are skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use oxisycl_backend::{ExecutionTimes, Outcome, now};
use parking_lot::Mutex;

use super::cost::{CostTable, Stopwatch};
use super::work::{Work, WorkShape};
use crate::kernel::PanicReport;
use crate::task::{HostTask, ReadySink};

pub(crate) struct Job {
    task: Arc<HostTask>,
    shape: WorkShape,
    /// The number of threads that the chunk sizes are computed for.
    threads: usize,
    /// The start time, on queues with profiling.
    start: Option<u64>,
    next: CachePadded<AtomicUsize>,
    done: CachePadded<AtomicUsize>,
    /// The nanoseconds that threads have spent in chunks, for a kernel.
    spent: AtomicU64,
    participants: AtomicU32,
    panic: Mutex<Option<PanicReport>>,
}

/// Units that one thread has claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) begin: usize,
    pub(crate) end: usize,
}

impl Job {
    /// A job in which the calling thread takes part.
    pub(crate) fn new(task: Arc<HostTask>, shape: WorkShape, threads: usize, start: Option<u64>) -> Self {
        Self {
            task,
            shape,
            threads,
            start,
            next: CachePadded::new(AtomicUsize::new(0)),
            done: CachePadded::new(AtomicUsize::new(0)),
            spent: AtomicU64::new(0),
            participants: AtomicU32::new(1),
            panic: Mutex::new(None),
        }
    }

    /// Whether chunks are left to claim.
    pub(crate) fn has_chunks(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.shape.total
    }

    /// Whether another thread may take part.
    pub(crate) fn has_room(&self) -> bool {
        self.has_chunks() && self.participants.load(Ordering::Relaxed) < self.task.options().max_threads
    }

    /// Lets the calling thread take part in the job, unless as many threads as the queue allows already do. Returns whether it takes part.
    pub(crate) fn join(&self) -> bool {
        let max = self.task.options().max_threads;
        self.has_chunks()
            && self
                .participants
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < max).then_some(n + 1))
                .is_ok()
    }

    /// Ends the calling thread's part in the job. Returns whether there are chunks left.
    pub(crate) fn leave(&self) -> bool {
        self.participants.fetch_sub(1, Ordering::SeqCst);
        self.has_chunks()
    }

    /// Claims the next chunk; `None` if all were claimed.
    pub(crate) fn claim(&self) -> Option<Chunk> {
        let total = self.shape.total;
        let mut begin = self.next.load(Ordering::Relaxed);
        while begin < total {
            let end = begin + self.shape.chunk_length(begin, self.threads);
            // Relaxed is enough: the chunk itself carries no data, and the job was shared through a lock.
            match self.next.compare_exchange_weak(begin, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Chunk { begin, end }),
                Err(now) => begin = now,
            }
        }
        None
    }

    /// Runs a claimed chunk, and completes the task if it was the last one. Returns whether the chunk panicked. It then claimed all
    /// remaining chunks, so that no other thread claims a last one.
    ///
    /// # Safety
    /// `chunk` came from `claim` of this job and is run once.
    pub(crate) unsafe fn run(&self, chunk: Chunk, costs: &CostTable, sink: &mut dyn ReadySink) -> bool {
        let mut length = chunk.end - chunk.begin;
        // SAFETY: the chunk is not done, so the task is not complete and its command is still there.
        let work = Work::of(unsafe { self.task.command() });
        let watch = Stopwatch::start(&work, self.shape.total);
        // SAFETY: the chunk lies within the work's total, no other thread runs it, and the issuer keeps the memory valid until the task
        // completes.
        let ended = unsafe { work.run(chunk.begin, chunk.end) };
        let has_panicked = ended.is_err();
        if let Err(report) = ended {
            self.panic.lock().get_or_insert(report);
            // Claims everything that is left, so that it is skipped.
            let rest = self.next.swap(self.shape.total, Ordering::Relaxed);
            length += self.shape.total - rest.min(self.shape.total);
        }
        if let Some(nanoseconds) = watch.stop() {
            self.spent.fetch_add(nanoseconds, Ordering::Relaxed);
        }
        // Release publishes this chunk's writes, acquire makes all of them visible to the last thread.
        if self.done.fetch_add(length, Ordering::AcqRel) + length == self.shape.total {
            costs.note(&work, self.shape.total, self.spent.load(Ordering::Relaxed));
            let times = self.start.map(|start| ExecutionTimes { start, end: now() });
            let result = match self.panic.lock().take() {
                None => Ok(()),
                Some(report) => Err(self.task.panic_failure(report)),
            };
            Arc::clone(&self.task).complete(Outcome { times, ..Outcome::ran(result) }, sink);
        }
        has_panicked
    }
}
