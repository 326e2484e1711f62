//! Faults that a simulated device injects on request, and the counts that they refer to.
//!
//! Owns, per class of operation, how many were attempted and which attempts are to fail. An attempt is counted when it begins,
//! whether it fails or not; commands that do not run because a dependency failed are not attempts.

use oxisycl_backend::Operation;

/// An attempt that fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fault {
    /// The class of operation.
    pub operation: Operation,
    /// The ordinal of the failing attempt within its class, from 1.
    pub count: u64,
    /// The device, or `None` for every device.
    pub device: Option<usize>,
}

impl Fault {
    /// Parses `operation:count` or `operation:count@device`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (operation, rest) = text.trim().split_once(':')?;
        let (count, device) = match rest.split_once('@') {
            Some((count, device)) => (count, Some(device.trim().parse().ok()?)),
            None => (rest, None),
        };
        let operation = match operation.trim() {
            "launch" => Operation::Launch,
            "copy" => Operation::Copy,
            "fill" => Operation::Fill,
            "allocate" => Operation::Allocate,
            "other" => Operation::Other,
            _ => return None,
        };
        let count = count.trim().parse().ok().filter(|count| *count > 0)?;
        Some(Self { operation, count, device })
    }
}

/// The attempts of one device.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    counts: [u64; 5],
    pending: Vec<(Operation, u64)>,
}

const fn slot(operation: Operation) -> usize {
    match operation {
        Operation::Launch => 0,
        Operation::Copy => 1,
        Operation::Fill => 2,
        Operation::Allocate => 3,
        Operation::Other => 4,
    }
}

impl Attempts {
    /// The counts of a device, with faults planned from the start.
    pub(crate) fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        let pending = faults.into_iter().map(|fault| (fault.operation, fault.count)).collect();
        Self { counts: [0; 5], pending }
    }

    /// Counts an attempt. Returns its number if it has to fail.
    pub(crate) fn attempt(&mut self, operation: Operation) -> Option<u64> {
        let count = &mut self.counts[slot(operation)];
        *count += 1;
        let now = (operation, *count);
        let before = self.pending.len();
        self.pending.retain(|planned| *planned != now);
        (self.pending.len() < before).then_some(now.1)
    }

    /// Plans the failure of the `nth` attempt from now; 0 is taken as 1.
    pub(crate) fn fail_next(&mut self, operation: Operation, nth: u64) {
        let count = self.counts[slot(operation)].saturating_add(nth.max(1));
        self.pending.push((operation, count));
    }

    /// The number of attempts so far.
    pub(crate) fn count(&self, operation: Operation) -> u64 {
        self.counts[slot(operation)]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_planned_attempts_fail() {
        let fault = |count| Fault { operation: Operation::Copy, count, device: None };
        let mut attempts = Attempts::new([fault(2), fault(4)]);
        let results: Vec<_> = (0..5).map(|_| attempts.attempt(Operation::Copy)).collect();
        assert_eq!(results, [None, Some(2), None, Some(4), None]);
        assert_eq!(attempts.attempt(Operation::Fill), None);
        assert_eq!((attempts.count(Operation::Copy), attempts.count(Operation::Fill)), (5, 1));
    }

    #[test]
    fn faults_can_be_planned_from_now() {
        let mut attempts = Attempts::default();
        attempts.attempt(Operation::Launch);
        attempts.fail_next(Operation::Launch, 2);
        attempts.fail_next(Operation::Launch, 0);
        let results: Vec<_> = (0..3).map(|_| attempts.attempt(Operation::Launch)).collect();
        assert_eq!(results, [Some(2), Some(3), None]);
    }
}
