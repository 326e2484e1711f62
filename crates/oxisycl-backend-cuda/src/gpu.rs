//! What all queues of one device share: the context, its pools, the streams, and the *completer*.
//!
//! The completer is a thread that starts with the first command and ends when the device is gone. It reports the ends of commands; it never
//! waits for a single stream, so one long kernel holds nothing else up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use oxisycl_backend::BackendError;
use oxisycl_backend::driver::Worker;
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::context::Context;
use crate::error::DriverError;
use crate::fill_kernels::FillKernels;
use crate::fleet::Fleet;
use crate::memory;
use crate::record_pool::RecordPool;
use crate::retired::{Block, Retired};
use crate::stream::Stream;
use crate::sys::{RawStream, STREAM_NON_BLOCKING, code};

/// A value on a cache line of its own: those who submit and those who complete write different ones.
#[repr(align(128))]
struct Padded<T>(T);

pub(crate) struct Gpu {
    pub(crate) context: Arc<Context>,
    pub(crate) records: RecordPool,
    pub(crate) clock: Clock,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) fill_kernels: FillKernels,
    pub(crate) retired: Retired,
    /// A stream for what is waited for at once: transfers that the host executes, zeroing, the clock.
    pub(crate) utility: RawStream,
    streams: Mutex<Vec<Weak<Stream>>>,
    n_accepted: Padded<AtomicU64>,
    n_ended: Padded<AtomicU64>,
    completer: Arc<Worker>,
}

impl Gpu {
    pub(crate) fn new(context: Arc<Context>, fleet: Arc<Fleet>) -> Result<Arc<Self>, BackendError> {
        let fail = |error: DriverError| context.fail(error);
        let _entered = context.enter()?;
        let mut utility = RawStream::NULL;
        // SAFETY: the context is current.
        unsafe { context.driver.stream_create_with_priority(&raw mut utility, STREAM_NON_BLOCKING, 0) }
            .map_err(fail)?;
        let core = Arc::new(Self {
            records: RecordPool::new(context.clone()).map_err(fail)?,
            clock: Clock::new(),
            fleet,
            fill_kernels: FillKernels::default(),
            retired: Retired::default(),
            utility,
            streams: Mutex::default(),
            n_accepted: Padded(AtomicU64::new(0)),
            n_ended: Padded(AtomicU64::new(0)),
            completer: Arc::default(),
            context: context.clone(),
        });
        let weak = Arc::downgrade(&core);
        context.set_suspects(move || weak.upgrade().and_then(|core| core.suspects()));
        Ok(core)
    }

    pub(crate) fn add_stream(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams.lock();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// The streams that somebody still needs.
    pub(crate) fn streams(&self) -> Vec<Arc<Stream>> {
        self.streams.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Counts a task that is about to be accepted, and makes sure that somebody will tell its completion. Returns its number.
    pub(crate) fn expect_task(self: &Arc<Self>) -> Result<u64, BackendError> {
        // Sequentially consistent with the completer's going to sleep: it sees the task, or we see it sleep.
        let number = self.n_accepted.0.fetch_add(1, Ordering::SeqCst);
        let woken = self.completer.wake(|| crate::completer::start(self));
        woken.inspect_err(|_| self.forget_task()).map_err(|error| self.no_thread(&error))?;
        self.retired.step_aside();
        Ok(number)
    }

    /// Takes memory back that nobody uses any more. Does not wait for running kernels, unless much too much memory is waiting to be freed.
    pub(crate) fn retire(self: &Arc<Self>, block: Block) {
        if let Err(block) = self.retired.put(block) {
            return self.free(block);
        }
        if self.completer.wake(|| crate::completer::start(self)).is_err() {
            self.free_retired();
        }
    }

    /// Frees what was retired, also while kernels run.
    pub(crate) fn free_retired(&self) {
        while let Some(block) = self.retired.take_any() {
            self.free(block);
        }
    }

    /// Tries again, once retired memory was freed, if the driver has no memory left.
    pub(crate) fn with_memory_freed<T>(&self, attempt: impl Fn() -> Result<T, DriverError>) -> Result<T, DriverError> {
        attempt().or_else(|error| {
            if error.code != code::OUT_OF_MEMORY {
                return Err(error);
            }
            self.free_retired();
            self.retired.wait_until_freed();
            attempt()
        })
    }

    /// Called by the completer: frees what was retired as long as there is nothing to do.
    pub(crate) fn free_retired_while_idle(&self) {
        self.retired.free_while(|| !self.has_tasks(), |block| self.free(block));
    }

    fn free(&self, block: Block) {
        if let Ok(_entered) = self.context.enter_anyway() {
            // SAFETY: what was retired was allocated by the driver, nobody uses it, and it was taken out of the list by this call alone.
            unsafe { memory::give(&self.context, block) };
        }
    }

    /// A task has ended, or was refused.
    pub(crate) fn forget_task(&self) {
        self.n_ended.0.fetch_add(1, Ordering::SeqCst);
    }

    /// How many tasks were expected so far.
    pub(crate) fn n_accepted(&self) -> u64 {
        self.n_accepted.0.load(Ordering::SeqCst)
    }

    /// Whether there are tasks that have not ended.
    pub(crate) fn has_tasks(&self) -> bool {
        // The ended first: a task is accepted before it ends.
        self.n_ended.0.load(Ordering::SeqCst) != self.n_accepted()
    }

    pub(crate) fn completer(&self) -> &Arc<Worker> {
        &self.completer
    }

    fn no_thread(&self, error: &std::io::Error) -> BackendError {
        let reason = format!("no thread could be started: {error}");
        BackendError::DeviceLost { device: self.context.name.clone(), reason }
    }

    /// The kernel that made the device fail, as far as that can be told: the first one that is not known to have finished.
    fn suspects(&self) -> Option<String> {
        let tasks: Vec<_> = self.streams().iter().map(|stream| stream.suspects()).collect();
        let n_kernels: usize = tasks.iter().map(Vec::len).sum();
        let first = tasks.iter().filter_map(|tasks| tasks.first()).min_by_key(|task| task.extras.number)?;
        Some(match n_kernels {
            1 => first.command.to_string(),
            2 => format!("{}, or in the kernel enqueued after it", first.command),
            n => format!("{}, or in one of the {} kernels enqueued after it", first.command, n - 1),
        })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // In a forked child there are no threads, and their locks may be held for ever.
        if self.context.is_foreign() {
            return;
        }
        self.completer.close();
        self.free_retired();
        if let Ok(_entered) = self.context.enter_anyway() {
            // SAFETY: made by `new`; whoever uses it waits for it.
            let _ = unsafe { self.context.driver.stream_destroy(self.utility) };
        }
    }
}
