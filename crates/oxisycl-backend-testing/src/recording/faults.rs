//! Faults that a test plans: which of the coming operations are refused.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::shared::lock;

/// Which of the next operations fail.
#[derive(Default)]
pub(super) struct Faults {
    n_done: AtomicU64,
    planned: Mutex<Vec<u64>>,
}

impl Faults {
    /// Has the `nth` operation from now fail. 1 is the next one.
    pub(super) fn plan(&self, nth: u64) {
        lock(&self.planned).push(self.n_done.load(Ordering::Relaxed) + nth.max(1));
    }

    /// Counts an operation. Returns its number if it has to fail.
    pub(super) fn attempt(&self) -> Option<u64> {
        let mut planned = lock(&self.planned);
        let count = self.n_done.fetch_add(1, Ordering::Relaxed) + 1;
        let before = planned.len();
        planned.retain(|nth| *nth != count);
        (planned.len() < before).then_some(count)
    }
}
