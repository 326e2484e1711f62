//! Taking a buffer's memory: back as a vector, or as a pointer; and deciding where it has allocations.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_backend::MemoryId;
use oxisycl_device::DeviceCopyable;
use oxisycl_runtime::memory::BufferState;
use oxisycl_runtime::schedule;

use super::Buffer;
use crate::usm::UsmSlice;
use crate::{Device, Error, Result};

/// The vector whose memory a buffer uses.
pub(super) struct VecOwner<T>(pub(super) Vec<T>);

impl<T> VecOwner<T> {
    /// The first byte, for writing; not to be used any more once the vector is touched again.
    pub(super) fn pointer(&mut self) -> NonNull<u8> {
        NonNull::new(self.0.as_mut_ptr().cast()).unwrap_or(NonNull::dangling())
    }
}

/// Why [`Buffer::into_vec`] or another conversion of a buffer failed, and the buffer.
pub struct IntoVecError<T, const D: usize> {
    buffer: Box<Buffer<T, D>>,
    error: Error,
}

impl<T, const D: usize> IntoVecError<T, D> {
    pub(super) fn new(buffer: Buffer<T, D>, error: Error) -> Self {
        Self { buffer: Box::new(buffer), error }
    }

    /// The buffer, unchanged.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let copy = numbers.clone();
    /// let failed = numbers.into_vec().unwrap_err(); // the copy is the same buffer
    /// drop(copy);
    /// assert_eq!(failed.into_buffer().into_vec()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_buffer(self) -> Buffer<T, D> {
        *self.buffer
    }

    /// What went wrong.
    pub fn error(&self) -> &Error {
        &self.error
    }
}

impl<T, const D: usize> From<IntoVecError<T, D>> for Error {
    fn from(failed: IntoVecError<T, D>) -> Self {
        failed.error
    }
}

impl<T, const D: usize> fmt::Debug for IntoVecError<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl<T, const D: usize> fmt::Display for IntoVecError<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<T, const D: usize> std::error::Error for IntoVecError<T, D> {}

impl<T: DeviceCopyable, const D: usize> Buffer<T, D> {
    /// The data as a vector, in row-major order. Waits for all submitted commands that use the buffer. If the buffer was made
    /// with [`from_vec`](Self::from_vec), it is the same memory.
    ///
    /// Errors: `Invalid` while something else refers to the buffer. That is a clone, a sub-buffer, a reinterpretation,
    /// a placeholder, a host accessor, or a command group that is being made. What the command that wrote the data
    /// failed with.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let vector = vec![1, 2, 3];
    /// let address = vector.as_ptr();
    /// let numbers = Buffer::from_vec(vector)?;
    /// Queue::default()?.fill(&numbers, 7)?;
    /// let vector = numbers.into_vec()?; // waits for the command
    /// assert_eq!((&vector[..], vector.as_ptr()), (&[7, 7, 7][..], address));
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_vec(self) -> Result<Vec<T>, IntoVecError<T, D>> {
        match self.take_vec("into_vec") {
            Ok(data) => Ok(data),
            Err(error) => Err(IntoVecError::new(self, error)),
        }
    }

    /// The data as a vector, for the function `what`. After an error the buffer is as it was.
    pub(super) fn take_vec(&self, what: &str) -> Result<Vec<T>> {
        if let Some(own) = self.take_owner::<T>(what)? {
            return Ok(own);
        }
        let data = self.to_vec()?;
        self.handle.cancel();
        Ok(data)
    }

    /// The vector of `P` that the buffer was made from, with the buffer's data in it, after all commands. `None`, and the buffer is as it was, if
    /// there is no such vector.
    pub(super) fn take_owner<P: 'static>(&self, what: &str) -> Result<Option<Vec<P>>> {
        self.check_unshared(what)?;
        schedule::quiesce(&self.view.core)?;
        // Brings the data to the host.
        drop(self.host_access(crate::Read)?);
        schedule::quiesce(&self.view.core)?;
        let core = &self.view.core;
        let mut state = core.lock();
        // There is no other handle to open it with; looked at again because the data leaves it now.
        self.check_closed(what, &state)?;
        let own = state.find(MemoryId::HOST).filter(|&position| {
            self.view.byte_size() == core.layout.size()
                && state.allocation(position).foreign_owner().is_some_and(|owner| owner.is::<VecOwner<P>>())
        });
        let Some(position) = own else { return Ok(None) };
        // SAFETY: this is the only handle, nothing is open, and no command uses the buffer: see the checks above.
        let owner = unsafe { state.remove(core, position) };
        if let Some(Ok(owner)) = owner.map(<Box<dyn Any + Send>>::downcast::<VecOwner<P>>) {
            self.handle.cancel();
            return Ok(Some(owner.0));
        }
        Err(Error::invalid(format!("the vector of {core} was taken twice")))
    }

    fn check_unshared(&self, what: &str) -> Result {
        if Arc::strong_count(&self.handle) > 1 {
            let message = "a clone, sub-buffer, reinterpretation or placeholder of it exists";
            return Err(Error::invalid(format!("{what} of {}: {message}", self.view.core)));
        }
        self.check_closed(what, &self.view.core.lock())
    }

    fn check_closed(&self, what: &str, state: &BufferState) -> Result {
        if state.is_open() {
            let message = "a command group that is being made, or a host accessor, holds it";
            return Err(Error::invalid(format!("{what} of {}: {message}", self.view.core)));
        }
        Ok(())
    }

    /// Makes the buffer's allocation on `device` now rather than at its first use there. Moves no data.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let device = Device::default()?;
    /// let numbers = Buffer::from_vec(vec![0; 1000])?;
    /// numbers.reserve(&device)?;
    /// assert!(numbers.is_allocated_on(&device));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve(&self, device: &Device) -> Result {
        let core = &self.view.core;
        core.lock().ensure(core, device.backend_device()).map(|_| ())
    }

    /// Frees the buffer's allocation on `device`, which nothing else does before the buffer ends. Blocks until no command uses the
    /// buffer. Pointers into the allocation become invalid. Does nothing if there is no allocation.
    ///
    /// Memory that the buffer was made from is dropped with its owner (a vector or a USM slice).
    ///
    /// Errors: `Invalid` if bytes exist that only this allocation holds. `Invalid`, too, if a host accessor, or a
    /// command group that is being made, holds the buffer.
    pub fn release(&self, device: &Device) -> Result {
        self.check_closed("release", &self.view.core.lock())?;
        schedule::quiesce(&self.view.core)?;
        let core = &self.view.core;
        let mut state = core.lock();
        // Again under the lock: accessors take it to get their pointer.
        self.check_closed("release", &state)?;
        let Some(position) = state.find(device.memory_id()) else { return Ok(()) };
        if !state.users(core).is_empty() {
            return Err(Error::invalid(format!("release of {core}: a command was submitted meanwhile")));
        }
        if state.is_only_copy(core, position) {
            return Err(Error::invalid(format!(
                "release of {core}: device \"{}\" holds the only current copy of some of its data",
                device.name()
            )));
        }
        // SAFETY: nothing is open and no command uses the buffer, both checked under the lock.
        let owner = unsafe { state.remove(core, position) };
        drop(state);
        drop(owner);
        Ok(())
    }

    /// Whether the buffer has an allocation on `device`.
    pub fn is_allocated_on(&self, device: &Device) -> bool {
        self.view.core.lock().find(device.memory_id()).is_some()
    }

    /// Whether all of the buffer's data is up to date on `device`, as far as commands submitted so far make it so.
    pub fn is_current_on(&self, device: &Device) -> bool {
        let core = &self.view.core;
        let state = core.lock();
        let Some(position) = state.find(device.memory_id()) else { return false };
        let mut current = true;
        state.map.for_each(&core.whole(), |_, page| {
            let at = page.effective_current();
            current &= at.is_empty() || at.contains(position);
        });
        current
    }

    /// The address of the first element on `device`, if the buffer has an allocation there. It is a USM pointer, valid
    /// until the buffer ends or [`release`](Self::release); using it must be ordered with the buffer's commands by the user.
    pub fn usm_pointer(&self, device: &Device) -> Option<*mut T> {
        let state = self.view.core.lock();
        let position = state.find(device.memory_id())?;
        Some(state.allocation(position).pointer.as_ptr().wrapping_add(self.view.byte_offset).cast())
    }

    /// Gives back a USM allocation that the buffer was made from ([`from_usm`](crate::BufferOptions::from_usm)), with the
    /// buffer's current data in it. Waits for all submitted commands that use the buffer.
    ///
    /// Errors: `Invalid` if the buffer was not made so, or while something else refers to it.
    pub fn into_usm(self) -> Result<UsmSlice<T>> {
        self.check_unshared("into_usm")?;
        schedule::quiesce(&self.view.core)?;
        let core = self.view.core.clone();
        let found = {
            let state = core.lock();
            state
                .allocations()
                .find(|(_, allocation)| allocation.foreign_owner().is_some_and(|owner| owner.is::<UsmSlice<T>>()))
                .map(|(position, allocation)| (position, allocation.device.clone()))
        };
        let Some((position, device)) = found else {
            return Err(Error::invalid(format!("{core} was not made from a usm allocation of this type")));
        };
        schedule::bring_to(&self.view, &device)?;
        schedule::quiesce(&core)?;
        // SAFETY: this is the only handle, nothing is open, and no command uses the buffer.
        let owner = unsafe { core.lock().remove(&core, position) };
        match owner.map(<Box<dyn Any + Send>>::downcast::<UsmSlice<T>>) {
            Some(Ok(slice)) => {
                self.handle.cancel();
                Ok(*slice)
            }
            _ => Err(Error::invalid(format!("the allocation of {core} was taken twice"))),
        }
    }
}
