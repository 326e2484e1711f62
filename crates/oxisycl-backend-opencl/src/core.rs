//! What all queues of one device share: the context, its pools, the tasks that somebody has to look at, and the thread that does.
//!
//! The *completer* starts with the first command and ends when the device is gone. It asks the driver how far tasks are, and never waits for
//! one of them, so that one long kernel holds nothing else up. Threads that wait do the same; those that submit
//! ask, too, but tell nobody (`recent`). Nothing runs on threads of the driver.
//!

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use oxisycl_backend::BackendError;
use oxisycl_backend::driver::Worker;
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::context::Context;
use crate::launch_shape::GroupLimits;
use crate::queue::QueueShared;
use crate::record_pool::RecordPool;
use crate::task::Task;

/// For how long commands of a lost device are waited for whose end the driver has not told.
const GRACE: Duration = Duration::from_secs(2);

/// A value on a cache line of its own: those who submit and those who complete write different ones.
#[repr(align(128))]
struct Padded<T>(T);

pub(crate) struct Core {
    pub(crate) context: Arc<Context>,
    pub(crate) records: RecordPool,
    pub(crate) clock: Clock,
    /// Of the device; kernels may take less.
    pub(crate) limits: GroupLimits,
    /// Most bytes of all arguments of a kernel.
    pub(crate) max_arguments: usize,
    queues: Mutex<Vec<Weak<QueueShared>>>,
    n_accepted: Padded<AtomicU64>,
    n_ended: Padded<AtomicU64>,
    /// When the device was first seen to be lost.
    lost_since: OnceLock<Instant>,
    completer: Arc<Worker>,
    /// Whether the driver executes commands on threads that wait for them; see `lender`.
    pub(crate) is_lent_to: bool,
    pub(crate) lender: Arc<Worker>,
}

impl Core {
    pub(crate) fn new(context: Arc<Context>, limits: GroupLimits, max_arguments: usize, is_lent_to: bool) -> Arc<Self> {
        let core = Arc::new(Self {
            records: RecordPool::new(context.clone()),
            clock: Clock::of(&context),
            context: context.clone(),
            limits,
            max_arguments,
            queues: Mutex::default(),
            n_accepted: Padded(AtomicU64::new(0)),
            n_ended: Padded(AtomicU64::new(0)),
            lost_since: OnceLock::new(),
            completer: Arc::default(),
            is_lent_to,
            lender: Arc::default(),
        });
        let weak = Arc::downgrade(&core);
        crate::ending::add(&core);
        context.set_suspects(move || weak.upgrade().and_then(|core| core.suspects()));
        core
    }

    pub(crate) fn add_queue(&self, queue: &Arc<QueueShared>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// The queues that somebody still needs.
    pub(crate) fn queues(&self) -> Vec<Arc<QueueShared>> {
        self.queues.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Counts a task that is about to be accepted, and makes sure that somebody will tell its completion. Returns its number.
    pub(crate) fn expect_task(self: &Arc<Self>) -> Result<u64, BackendError> {
        // Sequentially consistent with the completer's going to sleep: it sees the task, or we see it sleep.
        let number = self.n_accepted.0.fetch_add(1, Ordering::SeqCst);
        let woken = self.completer.wake(|| crate::completer::start(self));
        woken.inspect_err(|_| self.forget_task()).map_err(|error| {
            let reason = format!("no thread could be started: {error}");
            BackendError::DeviceLost { device: self.context.name.clone(), reason }
        })?;
        Ok(number)
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

    /// The task that was issued first of those that the driver has and can execute. None while another thread looks at them.
    pub(crate) fn oldest_running(&self) -> Option<Arc<Task>> {
        self.queues().iter().flat_map(|queue| queue.running()).min_by_key(|task| task.number)
    }

    /// Whether tasks of a lost device are not waited for any longer.
    pub(crate) fn has_given_up(&self) -> bool {
        self.context.is_lost() && self.lost_since.get_or_init(Instant::now).elapsed() > GRACE
    }

    /// The kernel that made the device fail, as far as that can be told: the first one that is not known to have finished.
    fn suspects(&self) -> Option<String> {
        // Called while tasks are looked at, but never with a queue's lock held.
        let kernels: Vec<_> = self.queues().iter().filter_map(|queue| queue.kernels()).collect();
        let n_kernels: usize = kernels.iter().map(|(_, _, n)| n).sum();
        let (_, first, _) = kernels.into_iter().min_by_key(|(number, ..)| *number)?;
        Some(match n_kernels {
            1 => first,
            n => format!("{first}, or in one of {} other kernels that ran", n - 1),
        })
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // In a forked child there are no threads, and their locks may be held for ever.
        if !self.context.is_foreign() {
            self.completer.close();
            self.lender.close();
        }
    }
}
