//! Removing finished tasks from a lane, and reporting them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::end::end;
use super::{Driver, Lane, Task};

/// How many tasks are ended before their records and memory are returned to the pools. Returning them changes shared counters, which
/// submitting threads change as well.
const AT_ONCE: usize = 32;

impl<D: Driver> Lane<D> {
    /// Polls the lane, and reports the tasks that are over. Returns whether there were any. `thorough` is passed to [`Driver::poll`].
    pub(super) fn drain(&self, thorough: bool) -> bool {
        self.drained.turn.take(|| self.drain_once(thorough))
    }

    fn drain_once(&self, thorough: bool) -> bool {
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
        while let Some((task, is_finished)) = self.take_first_over() {
            end(&task, is_finished);
            // Where the device is lost, a kernel may write still: its record is not used again.
            records.extend(task.record().filter(|_| is_finished));
            ended.push(task);
            progress = true;
            if ended.len() == AT_ONCE {
                give_back(&mut records, &mut ended);
            }
        }
        give_back(&mut records, &mut ended);
        progress
    }

    fn take_first_over(&self) -> Option<(Arc<Task<D>>, bool)> {
        let first = self.drained.over.lock().pop_front()?;
        self.drained.ended.fetch_add(1, Ordering::Release);
        Some(first)
    }
}
