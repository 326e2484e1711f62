//! What all queues of one device share: the context, its pools, the tasks that somebody has to look at, and the thread that does.
//!
//! The *completer* starts with the first command and ends when the device is gone. It asks the driver how far tasks are, and never waits for
//! one of them, so that one long kernel holds nothing else up. Threads that wait do the same; those that submit
//! ask, too, but tell nobody (`recent`). Nothing runs on threads of the driver.
//!
//! Invariant: a task that was accepted and has not ended is in `ready` (the driver has it, and all its dependencies have ended), in `dead`
//! (it will not run, and has only to be told so), in the hands of a thread that looks at it, or on the list of what it waits for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

/// How many tasks one thread looks at before others get a turn.
const BATCH: usize = 256;
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
    ready: Mutex<VecDeque<Arc<Task>>>,
    dead: Mutex<Vec<Arc<Task>>>,
    n_dead: AtomicUsize,
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
            ready: Mutex::default(),
            dead: Mutex::default(),
            n_dead: AtomicUsize::new(0),
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

    /// Hands what queues hold back to the device.
    pub(crate) fn flush(&self) {
        let queues: Vec<_> = self.queues.lock().iter().filter_map(Weak::upgrade).collect();
        for queue in queues {
            // Whoever enqueues next is told of an error.
            let _ = queue.flush();
        }
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

    /// Keeps a task that the driver has, and whose dependencies have ended, until somebody looks at it.
    pub(crate) fn push_ready(&self, task: Arc<Task>) {
        self.ready.lock().push_back(task);
    }

    /// The same for tasks that were looked at. Those that wait longest come first the next time.
    pub(crate) fn push_back_ready(&self, tasks: Vec<Arc<Task>>) {
        if !tasks.is_empty() {
            self.ready.lock().extend(tasks);
        }
    }

    /// Some tasks to look at, which are out of the list until they are put back.
    pub(crate) fn take_ready(&self) -> Vec<Arc<Task>> {
        let mut ready = self.ready.lock();
        let n = ready.len().min(BATCH);
        ready.drain(..n).collect()
    }

    /// The task that was accepted first of those that the driver has and can execute. None while another thread looks at them.
    pub(crate) fn oldest_ready(&self) -> Option<Arc<Task>> {
        self.ready.lock().iter().min_by_key(|task| task.number).cloned()
    }

    /// Keeps a task that will not run, and whose dependencies have ended, for whoever looks next.
    pub(crate) fn push_dead(&self, task: Arc<Task>) {
        self.dead.lock().push(task);
        self.n_dead.fetch_add(1, Ordering::Release);
    }

    /// The tasks that will not run and only have to be told so.
    pub(crate) fn take_dead(&self) -> Vec<Arc<Task>> {
        if self.n_dead.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let dead = std::mem::take(&mut *self.dead.lock());
        self.n_dead.fetch_sub(dead.len(), Ordering::Release);
        dead
    }

    /// Whether tasks of a lost device are not waited for any longer.
    pub(crate) fn has_given_up(&self) -> bool {
        self.context.is_lost() && self.lost_since.get_or_init(Instant::now).elapsed() > GRACE
    }

    /// The kernel that made the device fail, as far as that can be told: the first one that is not known to have finished.
    fn suspects(&self) -> Option<String> {
        // Called while tasks are looked at, but never with the lock held.
        let ready = self.ready.lock();
        let kernels = || ready.iter().filter(|task| task.shape.is_some());
        let first = kernels().min_by_key(|task| task.number)?;
        Some(match kernels().count() {
            1 => first.command.to_string(),
            n => format!("{}, or in one of {} other kernels that ran", first.command, n - 1),
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
