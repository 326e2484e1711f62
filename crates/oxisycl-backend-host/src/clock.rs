//! The clock of execution times: nanoseconds of the system's monotonic clock since the first use in this process.

use std::sync::OnceLock;
use std::time::Instant;

static START: OnceLock<Instant> = OnceLock::new();

/// Now. Starts at 1, so that a time of zero never means a moment that happened.
pub(crate) fn now() -> u64 {
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX).saturating_add(1)
}
