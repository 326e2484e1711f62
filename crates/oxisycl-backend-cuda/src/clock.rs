//! The times of a device's events on the clock of the process.
//!
//! A device's events tell how long after each other they happened, as a 32-bit float of milliseconds. So times are measured against a
//! base that is renewed before the float gets too coarse, and commands keep the base they were issued under.

use std::sync::Arc;

use oxisycl_backend::{ExecutionTimes, now};
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::DriverError;
use crate::sys::{RawEvent, RawStream};

/// After how many nanoseconds a base is renewed. A float of milliseconds then still resolves 60 ns.
const MAX_AGE: u64 = 1_000_000_000;

/// An event whose time on the host's clock is known.
pub(crate) struct Base {
    context: Arc<Context>,
    event: RawEvent,
    host: u64,
}

impl Base {
    /// The execution times by two events that were recorded after the base and have happened. Their distance is more exact than their
    /// positions. The context is current.
    pub(crate) fn times_of(&self, start: RawEvent, end: RawEvent) -> Result<ExecutionTimes, DriverError> {
        let nanoseconds = |from, to| {
            let mut milliseconds = 0.0f32;
            // SAFETY: events with times of this context that were recorded.
            unsafe { self.context.driver.event_elapsed_time(&raw mut milliseconds, from, to) }?;
            Ok((f64::from(milliseconds) * 1e6) as i64)
        };
        let (before, duration) = (nanoseconds(self.event, start)?, nanoseconds(start, end)?);
        let start = self.host.saturating_add_signed(before);
        Ok(ExecutionTimes { start, end: start.saturating_add_signed(duration) })
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        self.context.return_timed_event(self.event);
    }
}

/// The bases of one device.
pub(crate) struct Clock {
    current: Mutex<Option<Arc<Base>>>,
}

impl Clock {
    pub(crate) const fn new() -> Self {
        Self { current: Mutex::new(None) }
    }

    /// The base for commands that are issued now. `None` before the first `renew`.
    pub(crate) fn base(&self) -> Option<Arc<Base>> {
        self.current.lock().clone()
    }

    /// Whether there is a base that is too old.
    pub(crate) fn is_stale(&self) -> bool {
        self.current.lock().as_ref().is_some_and(|base| now() - base.host > MAX_AGE)
    }

    /// Makes a new base, by a stream that never has long work. Blocks for a few microseconds. The context is current.
    pub(crate) fn renew(&self, context: &Arc<Context>, stream: RawStream) -> Result<(), DriverError> {
        let mut best: Option<(u64, Base)> = None;
        // The shortest of a few is the most exact.
        for _ in 0..3 {
            let event = context.take_timed_event()?;
            let mut base = Base { context: context.clone(), event, host: 0 };
            let before = now();
            // SAFETY: event and stream are of this context, which is current.
            unsafe {
                context.driver.event_record(event, stream)?;
                context.driver.event_synchronize(event)?;
            }
            let after = now();
            base.host = before.midpoint(after);
            let width = after - before;
            if best.as_ref().is_none_or(|(other, _)| width < *other) {
                best = Some((width, base));
            }
        }
        *self.current.lock() = best.map(|(_, base)| Arc::new(base));
        Ok(())
    }
}
