//! Where a buffer's data goes when its last handle is dropped.

use std::fmt;
use std::sync::{Arc, Weak};

use oxisycl_device::DeviceCopyable;
use oxisycl_runtime::graph::report_later;
use oxisycl_runtime::memory::BufferCore;
use oxisycl_runtime::plug_ins::PlugIns;
use parking_lot::Mutex;

use super::Buffer;
use crate::Result;

type Deliver = Box<dyn FnOnce() + Send>;

/// What all handles of a buffer share; its drop is the end of the buffer for the user.
pub(super) struct Handle {
    core: Arc<BufferCore>,
    /// What is called at the end, and the plug-in that has its code.
    deliver: Mutex<Option<(Deliver, PlugIns)>>,
}

impl Handle {
    pub(super) fn new(core: Arc<BufferCore>) -> Self {
        Self { core, deliver: Mutex::new(None) }
    }
}

impl Handle {
    /// The data was taken otherwise: nothing is delivered at the end.
    pub(super) fn cancel(&self) {
        let old = self.deliver.lock().take();
        drop(old);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some((deliver, _plug_ins)) = self.deliver.get_mut().take() {
            deliver();
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("core", &self.core.id).finish_non_exhaustive()
    }
}

/// What happens to a buffer's data at its end (SYCL 2020 `set_final_data`). Without one, dropping a buffer never blocks.
pub struct FinalData<T>(Target<T>);

enum Target<T> {
    None,
    Weak(Weak<std::sync::Mutex<Vec<T>>>),
    Call(Box<dyn FnOnce(Result<Vec<T>>) + Send>),
}

impl<T> FinalData<T> {
    /// Nothing, like a new buffer.
    pub const fn none() -> Self {
        Self(Target::None)
    }

    /// Into a vector with another owner, if it still exists then. Its old contents are replaced.
    pub fn weak(vector: Weak<std::sync::Mutex<Vec<T>>>) -> Self {
        Self(Target::Weak(vector))
    }

    /// To a function, which gets the elements in row-major order, or why there are none. It runs on the thread that drops the
    /// last handle.
    pub fn call(f: impl FnOnce(Result<Vec<T>>) + Send + 'static) -> Self {
        Self(Target::Call(Box::new(f)))
    }
}

impl<T: DeviceCopyable, const D: usize> Buffer<T, D> {
    /// Says where the data goes when the last handle of the buffer (clones, sub-buffers and reinterpretations count) is dropped.
    /// That drop then blocks until all commands that use the buffer have ended. A later call replaces an earlier one.
    ///
    /// An error of the delivery is given to the function of [`FinalData::call`]. With [`FinalData::weak`] it is one
    /// line on standard error, and the vector stays as it was.
    ///
    /// ```
    /// use oxisycl::FinalData;
    /// use oxisycl::prelude::*;
    /// use std::sync::{Arc, Mutex};
    ///
    /// # fn main() -> oxisycl::Result {
    /// let result = Arc::new(Mutex::new(Vec::new()));
    /// let numbers = Buffer::from_vec(vec![0; 3])?;
    /// numbers.set_final_data(FinalData::weak(Arc::downgrade(&result)));
    /// Queue::default()?.fill(&numbers, 7)?;
    /// drop(numbers); // waits for the command
    /// assert_eq!(*result.lock().unwrap(), [7, 7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_final_data(&self, destination: FinalData<T>) {
        self.deliver_at_end(destination, Self::to_vec);
    }

    /// As [`set_final_data`](Self::set_final_data), for what `read` makes of the buffer after all commands.
    pub(super) fn deliver_at_end<P: DeviceCopyable>(
        &self,
        destination: FinalData<P>,
        read: fn(&Self) -> Result<Vec<P>>,
    ) {
        // The closure must not hold the handle, whose end it waits for.
        let (view, range) = (self.view.clone(), self.range);
        let core = view.core.clone();
        let fetch = move || {
            oxisycl_runtime::schedule::quiesce(&view.core)?;
            let core = view.core.clone();
            let buffer =
                Buffer::<T, D> { handle: Arc::new(Handle::new(core)), view, range, elements: std::marker::PhantomData };
            read(&buffer)
        };
        let deliver: Option<Deliver> = match destination.0 {
            Target::None => None,
            Target::Call(f) => Some(Box::new(move || f(fetch()))),
            Target::Weak(vector) => Some(Box::new(move || {
                let Some(vector) = vector.upgrade() else { return };
                match fetch() {
                    Ok(data) => *vector.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = data,
                    Err(error) => {
                        report_later(format!("final data of {core}: {error:?}"));
                    }
                }
            })),
        };
        let deliver = deliver.map(|deliver| {
            let plug_ins = PlugIns::of_methods(&*deliver);
            (deliver, plug_ins)
        });
        let old = std::mem::replace(&mut *self.handle.deliver.lock(), deliver);
        drop(old);
    }
}
