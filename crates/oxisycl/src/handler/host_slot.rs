//! Memory of the host that copy commands own while they use it.

use std::fmt;
use std::sync::Arc;

use oxisycl_device::DeviceCopyable;
use oxisycl_runtime::graph::Loan;
use parking_lot::Mutex;

/// Host memory that a copy command can own.
///
/// # Safety
/// `pointer` stays valid for reading `len` elements, and the elements unchanged, until the value is dropped, wherever it is moved.
#[diagnostic::on_unimplemented(
    message = "a copy command cannot own `{Self}` as elements of type `{T}`",
    note = "use a `Vec<{T}>`, an `Arc<[{T}]>` or a `&'static [{T}]`"
)]
pub unsafe trait HostMemory<T>: Send + 'static {
    /// The first element.
    fn pointer(&self) -> *const T;
    /// The number of elements.
    fn len(&self) -> usize;
    /// Whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// SAFETY: a vector's elements do not move with it, and only its owner changes them.
unsafe impl<T: DeviceCopyable> HostMemory<T> for Vec<T> {
    fn pointer(&self) -> *const T {
        self.as_ptr()
    }
    fn len(&self) -> usize {
        Vec::len(self)
    }
}

// SAFETY: shared elements neither move nor change while the `Arc` lives: there is no interior mutability in device-copyable
// types, and `Arc::get_mut` needs the only reference.
unsafe impl<T: DeviceCopyable> HostMemory<T> for Arc<[T]> {
    fn pointer(&self) -> *const T {
        self.as_ptr()
    }
    fn len(&self) -> usize {
        <[T]>::len(self)
    }
}

// SAFETY: the elements of a static slice neither move nor change.
unsafe impl<T: DeviceCopyable> HostMemory<T> for &'static [T] {
    fn pointer(&self) -> *const T {
        self.as_ptr()
    }
    fn len(&self) -> usize {
        <[T]>::len(self)
    }
}

/// Where host memory waits for the end of its copy.
pub struct HostSlot<H>(Arc<Mutex<State<H>>>);

struct State<H> {
    memory: Option<H>,
    usage: Usage,
}

/// Who may use the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Usage {
    /// The command, or the command group that is being made.
    Command,
    /// The user.
    Free,
    /// Unusable: the copy that wrote it failed, perhaps in the middle of an element.
    Lost,
}

impl<H> Clone for HostSlot<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<H> HostSlot<H> {
    /// The memory, once the command has completed; `None` before, after it was taken, and if a copy to it failed.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let (event, slot) = Queue::default()?.submit_with(|cg| {
    ///     let numbers = cg.access(&numbers, Read);
    ///     cg.copy_to_host(numbers, vec![0; 3])
    /// })?;
    /// event.wait()?;
    /// assert_eq!(slot.take(), Some(vec![1, 2, 3]));
    /// assert_eq!(slot.take(), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn take(&self) -> Option<H> {
        let mut state = self.0.lock();
        if state.usage == Usage::Free { state.memory.take() } else { None }
    }
}

impl<H: Send + 'static> HostSlot<H> {
    /// A slot whose memory belongs to a command, and what the command holds while it uses the memory.
    /// `is_plain` if dropping the memory runs no code of the user.
    pub(super) fn lend(memory: H, is_written: bool, is_plain: bool) -> (Self, Box<dyn Loan>) {
        let slot = Self(Arc::new(Mutex::new(State { memory: Some(memory), usage: Usage::Command })));
        let loan = Box::new(InUse { slot: slot.clone(), is_written, is_plain });
        (slot, loan)
    }
}

impl<H> fmt::Debug for HostSlot<H> {
    /// Says nothing of the memory itself, which the command may be writing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usage = self.0.lock().usage;
        f.debug_struct("HostSlot").field("usage", &usage).finish_non_exhaustive()
    }
}

/// Held by the command. Its end, or its drop if the command was never enqueued, gives the memory to the user.
struct InUse<H> {
    slot: HostSlot<H>,
    is_written: bool,
    is_plain: bool,
}

impl<H: Send> Loan for InUse<H> {
    fn has_user_drop(&self) -> bool {
        // Also while the user has the slot, which may be dropped at any time.
        !self.is_plain
    }

    fn ended(&self, succeeded: bool) {
        self.slot.0.lock().usage = if succeeded || !self.is_written { Usage::Free } else { Usage::Lost };
    }
}

impl<H> Drop for InUse<H> {
    fn drop(&mut self) {
        let mut state = self.slot.0.lock();
        if state.usage == Usage::Command {
            state.usage = Usage::Free;
        }
    }
}
