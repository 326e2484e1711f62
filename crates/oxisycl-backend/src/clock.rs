//! The clock of the process, which all execution times are on.

use std::sync::LazyLock;
use std::time::Instant;

/// Nanoseconds on a monotonic clock that begins at some moment of this process. Never zero.
pub fn now() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(BEGAN.elapsed().as_nanos()).unwrap_or(u64::MAX).saturating_add(1)
}
