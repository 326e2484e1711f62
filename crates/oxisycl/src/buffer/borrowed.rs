//! Buffers over borrowed data, written back when the borrow ends.

use oxisycl_device::DeviceCopyable;
use oxisycl_runtime::schedule;
use oxisycl_types::ErrorCode;

use super::Buffer;
use crate::borrowed::written_back;
use crate::{Error, Read, Result};

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
        self.buffer.read_after_commands(|elements| data.copy_from_slice(elements))
    }
}

written_back!([T: DeviceCopyable, const D: usize] BorrowedBuffer<'_, T, D>, buffer: Buffer<T, D>, this => this.buffer.view.core);

impl<T: DeviceCopyable, const D: usize> Buffer<T, D> {
    /// Calls `read` with all elements when all submitted commands that use the buffer have ended, or not at all.
    pub(crate) fn read_after_commands(&self, read: impl FnOnce(&[T])) -> Result {
        schedule::quiesce(&self.view.core)?;
        let host = self.host_access(Read)?;
        // The elements of a whole buffer have no gaps.
        let missing = || Error::new(ErrorCode::Runtime, format!("{} is not contiguous on the host", self.view.core));
        read(host.to_slice().ok_or_else(missing)?);
        Ok(())
    }
}
