//! Buffers over borrowed data, written back when the borrow ends.

use std::ops::Deref;

use oxisycl_device::DeviceCopyable;
use oxisycl_runtime::graph::report_later;
use oxisycl_runtime::schedule;

use super::Buffer;
use crate::{Read, Result};

/// A buffer with a copy of borrowed elements, which are written back when this is dropped.
///
/// Dropping it blocks until all commands that use the buffer have ended. The commands never see the borrowed memory itself, so
/// forgetting this only means that nothing is written back.
#[derive(Debug)]
pub struct BorrowedBuffer<'a, T: DeviceCopyable, const D: usize> {
    buffer: Buffer<T, D>,
    data: Option<&'a mut [T]>,
}

impl<'a, T: DeviceCopyable, const D: usize> BorrowedBuffer<'a, T, D> {
    pub(super) fn new(buffer: Buffer<T, D>, data: &'a mut [T]) -> Self {
        Self { buffer, data: Some(data) }
    }

    /// Waits, writes back, and says whether that worked. On an error the borrowed elements are as they were.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let mut numbers = [1, 2, 3];
    /// let buffer = Buffer::from_slice_mut(&mut numbers)?;
    /// Queue::default()?.fill(&buffer, 7)?;
    /// buffer.finish()?;
    /// assert_eq!(numbers, [7, 7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn finish(mut self) -> Result {
        self.write_back()
    }

    /// Ends without writing back, and without waiting.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let mut numbers = [1, 2, 3];
    /// let buffer = Buffer::from_slice_mut(&mut numbers)?;
    /// Queue::default()?.fill(&buffer, 7)?;
    /// buffer.discard();
    /// assert_eq!(numbers, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn discard(mut self) {
        self.data = None;
    }

    fn write_back(&mut self) -> Result {
        let Some(data) = self.data.take() else { return Ok(()) };
        schedule::quiesce(&self.buffer.view.core)?;
        let host = self.buffer.host_access(Read)?;
        for (target, source) in data.iter_mut().zip(host.iter()) {
            *target = *source;
        }
        Ok(())
    }
}

impl<T: DeviceCopyable, const D: usize> Deref for BorrowedBuffer<'_, T, D> {
    type Target = Buffer<T, D>;
    fn deref(&self) -> &Buffer<T, D> {
        &self.buffer
    }
}

impl<T: DeviceCopyable, const D: usize> Drop for BorrowedBuffer<'_, T, D> {
    fn drop(&mut self) {
        if let Err(error) = self.write_back() {
            report_later(format!("write-back of borrowed {}: {error:?}", self.buffer.view.core));
        }
    }
}
