//! Copies whose host memory belongs to the command.

use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};

use crate::handler::HostSlot;
use crate::{Error, Event, Result};

/// A copy between host memory that the command owns and a buffer. Wait for it, or `.await` it, to get the memory back.
#[derive(Debug)]
pub struct HostCopy<H> {
    pub(crate) event: Event,
    pub(crate) slot: HostSlot<H>,
}

impl<H> HostCopy<H> {
    /// The event.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Blocks until the copy has ended. Gives the memory back; on an error it is lost with the copy's contents.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let copy = Queue::default()?.copy_to_host(&numbers, vec![0; 3])?;
    /// assert_eq!(copy.wait()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(self) -> Result<H> {
        self.event.wait()?;
        self.slot.take().ok_or_else(|| Error::invalid("the host memory of the copy was already taken"))
    }
}

impl<H> Future for HostCopy<H> {
    type Output = Result<H>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Result<H>> {
        // Neither field is structurally pinned: an event is `Unpin`, and the slot is a shared pointer.
        let this = self.get_mut();
        match Pin::new(&mut this.event).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => Poll::Ready(
                this.slot.take().ok_or_else(|| Error::invalid("the host memory of the copy was already taken")),
            ),
        }
    }
}
