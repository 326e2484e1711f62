//! Queues of the host device and its sub-devices.
//!
//! A queue owns nothing but its options: all queues feed the same pool. The order of an in-order queue arrives as dependencies, by
//! the contract, so such a queue needs no state either. Dropping a queue leaves its commands alone.

use std::sync::Arc;

use oxisycl_backend::{BackendError, Command, Completion, Dependency, Event, Queue, QueueOptions};

use crate::device::Shared;
use crate::pool::Pool;
use crate::task::{ExecutorRef, HostTask, TaskOptions};

pub(crate) struct HostQueue {
    pool: &'static Pool,
    options: TaskOptions,
    _shared: Arc<Shared>,
}

impl HostQueue {
    pub(crate) fn new(shared: Arc<Shared>, max_threads: usize, options: &QueueOptions) -> Self {
        let options = TaskOptions {
            priority: options.priority,
            profiling: options.profiling,
            max_threads: u32::try_from(max_threads).unwrap_or(u32::MAX),
            sequence: 0,
            instant_hints: true,
        };
        Self { pool: shared.pool.get(), options, _shared: shared }
    }
}

// SAFETY: a command becomes ready when the last of its dependencies ends, and ends when all threads have left it.
unsafe impl Queue for HostQueue {
    unsafe fn issue(
        &self,
        command: Command,
        dependencies: &[Dependency],
        completion: Arc<dyn Completion>,
    ) -> Result<Arc<dyn Event>, BackendError> {
        self.pool.start()?;
        let old = self.pool.retired();
        let task =
            HostTask::submit(old, command, dependencies, completion, ExecutorRef::Pool(self.pool), self.options)?;
        Ok(task)
    }

    fn help(&self, goes_on: &mut dyn FnMut(bool) -> bool) {
        let _guard = self.pool.begin_help();
        let mut has_helped = false;
        while goes_on(has_helped) {
            has_helped = self.pool.help();
        }
    }
}
