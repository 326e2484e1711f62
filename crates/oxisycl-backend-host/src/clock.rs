//! The clock of execution times: nanoseconds of the system's monotonic clock since the first use in this process.

use std::sync::OnceLock;
use std::time::Instant;

static START: OnceLock<Instant> = OnceLock::new();

/// The current time in nanoseconds. It starts at 1, so that zero never is a real time.
pub(crate) fn now() -> u64 {
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX).saturating_add(1)
}
