//! The print buffers of a queue's launches.
//!
//! Invariants: a buffer belongs to one launch at a time, from [`take`](PrintPool::take) until it is given back. No buffer is made before
//! the first launch that may print. There are as many as launches were unfinished at a time, which the contract limits
//! ([`MAX_PRINTING`](crate::MAX_PRINTING)). The content of a buffer is never trusted. What a buffer is, and how it is freed, is the
//! backend's business.

use oxisycl_image::{PanicSite, Printed, read_print_buffer};
use oxisycl_types::PrintHeader;
use parking_lot::Mutex;

use crate::KernelOutput;

/// A pool of print buffers of the type `B`.
#[derive(Debug)]
pub struct PrintPool<B> {
    capacity: u32,
    free: Mutex<Vec<B>>,
}

impl<B> PrintPool<B> {
    /// An empty pool of buffers with `capacity` bytes for records, or with as many as a buffer can have.
    pub fn new(capacity: u32) -> Self {
        Self { capacity: capacity.min(PrintHeader::MAX_CAPACITY), free: Mutex::default() }
    }

    /// Takes a free buffer. If there is none, calls `make` with the pool's capacity.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn take<E>(&self, make: impl FnOnce(u32) -> Result<B, E>) -> Result<B, E> {
        let free = self.free.lock().pop();
        free.map_or_else(|| make(self.capacity), Ok)
    }

    /// Returns a buffer to the pool. Its launch has ended or was refused.
    pub fn give_back(&self, buffer: B) {
        self.free.lock().push(buffer);
    }

    /// Removes all free buffers from the pool.
    pub fn take_all(&mut self) -> impl Iterator<Item = B> {
        std::mem::take(self.free.get_mut()).into_iter()
    }
}

/// The output of a launch. `bytes` are those of its print buffer, which has space for `capacity` bytes of records.
pub fn printed(bytes: &[u8], capacity: u32, sites: &[PanicSite]) -> Vec<KernelOutput> {
    let mut output = Vec::new();
    let mut add_text = |text: &str| output.push(KernelOutput::Text(text.to_owned()));
    let Printed { n_lost, n_unreadable } = read_print_buffer(bytes, sites, &mut add_text);
    if n_unreadable > 0 {
        output.push(KernelOutput::Unreadable { bytes: n_unreadable });
    }
    if n_lost > 0 {
        output.push(KernelOutput::Lost { count: n_lost, capacity });
    }
    output
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_buffer_is_used_again_once_it_is_given_back() {
        let (mut pool, n_made) = (PrintPool::new(100), Cell::new(0));
        let make = |_| {
            n_made.set(n_made.get() + 1);
            Ok::<_, Infallible>(n_made.get())
        };
        let Ok(first) = pool.take(make);
        let Ok(second) = pool.take(make);
        assert_eq!((first, second), (1, 2));
        pool.give_back(first);
        assert_eq!(pool.take(make), Ok(1));
        assert_eq!(n_made.get(), 2);
        pool.give_back(second);
        assert_eq!(pool.take_all().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_buffer_that_cannot_be_made_is_an_error_and_is_tried_again() {
        let pool: PrintPool<u32> = PrintPool::new(u32::MAX);
        assert_eq!(pool.take(|_| Err("no memory")), Err("no memory"));
        assert_eq!(pool.take(Ok::<_, &str>), Ok(PrintHeader::MAX_CAPACITY));
    }
}
