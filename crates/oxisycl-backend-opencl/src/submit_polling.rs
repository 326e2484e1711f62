//! The commands that a queue was given last, which the thread that submits asks the driver about.
//!
//! A driver's event is cheap to ask and to release for the thread that got it, a little later. For another thread it is expensive when it
//! has left the caches. On a machine with few processors that was a third of a launch's time. So a thread that goes on submitting looks at
//! a few commands of before, and releases the events of those that are over. It reports nothing: that is left to the threads that may.
//!
//! Invariant: a command on the list is the last of its queue, or one of few before it; it may have ended. What is kept of those that have
//! is little: their kernels stay loaded.

use std::collections::VecDeque;
use std::sync::Arc;

use oxisycl_backend::lane::Driver;
use smallvec::SmallVec;

use crate::lane::{ClTask, OpenCl};
use crate::process_exit;

/// How many commands are looked at together.
const BATCH: usize = 8;
/// How many are left alone: it is too early to ask about them.
const YOUNG: usize = 24;
/// How many commands the list has at most.
pub(crate) const MOST: usize = YOUNG + BATCH;
/// After so many commands that are not over the others are left to the poller.
const PATIENCE: usize = 2;

#[derive(Default)]
pub(crate) struct SubmitPolling {
    tasks: VecDeque<Arc<ClTask>>,
}

/// Commands to look at, without the lock that guards the list.
pub(crate) struct Old(SmallVec<[Arc<ClTask>; BATCH]>);

impl SubmitPolling {
    /// Adds a command. Gives some of before, now and then.
    #[inline]
    pub(crate) fn push(&mut self, task: Arc<ClTask>) -> Option<Old> {
        self.tasks.push_back(task);
        (self.tasks.len() >= MOST).then(|| Old(self.tasks.drain(..BATCH).collect()))
    }
}

impl Old {
    /// Asks the driver about the commands.
    #[cold]
    pub(crate) fn settle(self) {
        let guard = process_exit::begin_look();
        let mut n_open = 0;
        for task in self.0 {
            if guard.is_some() && n_open < PATIENCE && !settle(&task) {
                n_open += 1;
            }
            OpenCl::tasks().end(task);
        }
    }
}

/// Whether an issued task is over. Releases its events if it is and they are not needed. Called by threads that may [look](process_exit::begin_look).
fn settle(task: &ClTask) -> bool {
    let (context, issued) = (&task.queue.device.context, &task.issued);
    let is_over = task.has_ended() || issued.is_over(context);
    if is_over && !task.queue.options.profiling {
        issued.try_release(context);
    }
    is_over
}
