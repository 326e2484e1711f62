//! Polling by the submitting thread: it asks the driver about the last commands of its queue.
//!
//! A driver's event is cheap to query and to release for the thread that got it, a little later. For another thread it is expensive when it
//! has left the caches. On a machine with few processors that was a third of a launch's time. So a thread that goes on submitting polls a
//! few of its earlier commands, and releases the events of those that are over. It does not report them, since completions run only on
//! threads that poll lanes.
//!
//! Invariant: a command on the list is one of the last of its queue. It may have ended. An ended command on the list keeps little alive:
//! its kernel stays loaded.

use std::collections::VecDeque;
use std::sync::Arc;

use oxisycl_backend::lane::Driver;
use smallvec::SmallVec;

use crate::lane::{ClTask, OpenCl};
use crate::process_exit;

/// How many commands are polled together.
const BATCH: usize = 8;
/// How many of the newest commands are not polled, since it is too early.
const N_TOO_NEW: usize = 24;
/// How many commands the list has at most.
pub(crate) const MAX_LISTED: usize = N_TOO_NEW + BATCH;
/// After this many unfinished commands, the rest of a batch is left to the poller.
const MAX_UNFINISHED_IN_BATCH: usize = 2;

#[derive(Default)]
pub(crate) struct SubmitPolling {
    tasks: VecDeque<Arc<ClTask>>,
}

/// Commands to poll, taken off the list, so that its lock is not held.
pub(crate) struct PollBatch(SmallVec<[Arc<ClTask>; BATCH]>);

impl SubmitPolling {
    /// Adds a command to the list. Sometimes returns older ones, which the caller has to poll.
    #[inline]
    pub(crate) fn push(&mut self, task: Arc<ClTask>) -> Option<PollBatch> {
        self.tasks.push_back(task);
        (self.tasks.len() >= MAX_LISTED).then(|| PollBatch(self.tasks.drain(..BATCH).collect()))
    }
}

impl PollBatch {
    /// Polls the commands, and releases the events of those that are over.
    #[cold]
    pub(crate) fn poll(self) {
        let guard = process_exit::begin_driver_call();
        let mut n_open = 0;
        for task in self.0 {
            if guard.is_some() && n_open < MAX_UNFINISHED_IN_BATCH && !poll_task(&task) {
                n_open += 1;
            }
            OpenCl::tasks().end(task);
        }
    }
}

/// Polls an issued task, and releases its events if it is over and they are not needed. Returns whether it is over. Called by threads that
/// may [poll](process_exit::begin_driver_call).
fn poll_task(task: &ClTask) -> bool {
    let (context, issued) = (&task.queue.device.context, &task.issued);
    let is_over = task.has_ended() || issued.is_over(context);
    if is_over && !task.queue.options.profiling {
        issued.try_release(context);
    }
    is_over
}
