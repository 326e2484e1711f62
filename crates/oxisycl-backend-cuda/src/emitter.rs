//! Driver calls that put work on a stream, counted.
//!
//! The count tells a command that failed before it had begun from one that has left a part of its work on the stream.

use std::sync::Arc;

use crate::error::DriverError;
use crate::sys::{Driver, RawStream};

pub(crate) struct Emitter<'a> {
    pub(crate) driver: &'a Arc<Driver>,
    pub(crate) stream: RawStream,
    n_calls: usize,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(driver: &'a Arc<Driver>, stream: RawStream) -> Self {
        Self { driver, stream, n_calls: 0 }
    }

    /// The number of calls that have succeeded.
    pub(crate) fn n_calls(&self) -> usize {
        self.n_calls
    }

    /// Makes a call that puts something on the stream.
    #[inline]
    pub(crate) fn call(
        &mut self,
        call: impl FnOnce(&Driver, RawStream) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        call(self.driver, self.stream)?;
        self.n_calls += 1;
        Ok(())
    }
}
