//! What a queue was made with (SYCL 2020 section 4.6.5.1).

use oxisycl_types::BackendKind;

use super::Queue;
use crate::{Context, Device};

impl Queue {
    /// The device.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// println!("{} has {} compute units", queue.device().name(), queue.device().info().max_compute_units);
    /// # Ok(())
    /// # }
    /// ```
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The context, in which the queue's device may share memory with others.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let numbers = queue.malloc_shared::<u32>(64)?;
    /// assert_eq!(numbers.context(), queue.context());
    /// # Ok(())
    /// # }
    /// ```
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The backend.
    pub fn backend(&self) -> BackendKind {
        self.device.backend()
    }

    /// Whether each command starts after the one before it.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// assert!(!Queue::default()?.is_in_order());
    /// assert!(Queue::builder().in_order().build()?.is_in_order());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_in_order(&self) -> bool {
        self.queue.shared().options.in_order
    }

    /// Whether events have profiling times.
    pub fn has_profiling(&self) -> bool {
        self.queue.shared().options.profiling
    }
}
