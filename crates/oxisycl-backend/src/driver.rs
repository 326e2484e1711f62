//! What backends share whose devices are reached through a driver of their own.
//!
//! Pitched boxes in the form that needs the fewest calls, panic records as text, threads that sleep while there is nothing to do, and
//! how a forked process is told from its parent. None of it calls a driver.

mod box_shape;
mod fork;
mod panic_report;
mod worker;

use std::sync::LazyLock;
use std::time::Instant;

pub use box_shape::{BoxShape, Pitches};
pub use fork::{generation, watch};
pub use panic_report::failure as panic_failure;
pub use worker::{Worker, spawn};

/// Nanoseconds since some moment of this process.
pub fn now() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(BEGAN.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
