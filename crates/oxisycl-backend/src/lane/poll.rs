//! Removing finished tasks from a lane, and reporting them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::end::end;
use super::{Driver, Lane, Task};

/// How many tasks are taken off at once, and ended before their records and memory are returned to the pools. Returning them changes shared
/// counters, which submitting threads change as well.
const AT_ONCE: usize = 32;

impl<D: Driver> Lane<D> {
    /// Polls the lane, and reports the tasks that are over. Returns whether there were any. `thorough` is passed to [`Driver::poll`].
    pub(super) fn poll(&self, thorough: bool) -> bool {
        self.polled.turn.take(|| self.poll_once(thorough))
    }

    fn poll_once(&self, thorough: bool) -> bool {
        D::poll(self, thorough);
        let mut progress = false;
        let mut records = SmallVec::<[D::Record; AT_ONCE]>::new();
        let mut ended = SmallVec::<[Arc<Task<D>>; AT_ONCE]>::new();
        let give_back = |records: &mut SmallVec<[D::Record; AT_ONCE]>,
                         ended: &mut SmallVec<[Arc<Task<D>>; AT_ONCE]>| {
            D::lanes(&self.device).records.give_back(records);
            records.clear();
            ended.drain(..).for_each(|task| D::tasks().end(task));
        };
        loop {
            let over = self.take_over();
            if over.is_empty() {
                return progress;
            }
            progress = true;
            for (task, is_finished) in over {
                // The thread that has the turn alone changes this.
                let n_ended = self.polled.ended.load(Ordering::Relaxed) + 1;
                self.polled.ended.store(n_ended, Ordering::Release);
                end(&task, is_finished);
                // Where the device is lost, a kernel may write still: its record is not used again.
                records.extend(task.record().filter(|_| is_finished));
                ended.push(task);
            }
            give_back(&mut records, &mut ended);
        }
    }

    /// Takes some of the tasks that are over, the first ones.
    fn take_over(&self) -> SmallVec<[(Arc<Task<D>>, bool); AT_ONCE]> {
        let mut over = self.polled.over.lock();
        let n_tasks = over.len().min(AT_ONCE);
        over.drain(..n_tasks).collect()
    }
}
