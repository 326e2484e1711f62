//! Tasks that are ready to run: first in, first out, in three priorities.
//!
//! Owns the tasks until they are popped. Any thread may push and pop. Does not wake anybody.

use std::sync::Arc;

use crossbeam_queue::SegQueue;
use oxisycl_backend::Priority;

use crate::task::HostTask;

pub(crate) struct ReadyQueue {
    high: SegQueue<Arc<HostTask>>,
    normal: SegQueue<Arc<HostTask>>,
    low: SegQueue<Arc<HostTask>>,
}

impl ReadyQueue {
    pub(crate) fn new() -> Self {
        Self { high: SegQueue::new(), normal: SegQueue::new(), low: SegQueue::new() }
    }

    #[inline]
    pub(crate) fn push(&self, task: Arc<HostTask>) {
        match task.options().priority {
            Priority::High => self.high.push(task),
            Priority::Normal => self.normal.push(task),
            Priority::Low => self.low.push(task),
        }
    }

    #[inline]
    pub(crate) fn pop_high(&self) -> Option<Arc<HostTask>> {
        // `pop` fences even if there is nothing; these queues are polled.
        if self.high.is_empty() { None } else { self.high.pop() }
    }

    #[inline]
    pub(crate) fn pop_rest(&self) -> Option<Arc<HostTask>> {
        if !self.normal.is_empty()
            && let Some(task) = self.normal.pop()
        {
            return Some(task);
        }
        if self.low.is_empty() { None } else { self.low.pop() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.high.is_empty() && self.low.is_empty()
    }

    pub(crate) fn has_high(&self) -> bool {
        !self.high.is_empty()
    }
}
