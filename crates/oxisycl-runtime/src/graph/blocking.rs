//! Where a thread must not block on the runtime: inside a kernel, a waker, or a handler of output.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::{Error, Result};

/// The function that tells whether the calling thread is executing a kernel. Set when the runtime is created.
static IN_KERNEL: OnceLock<fn() -> bool> = OnceLock::new();

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Sets the function that answers [`in_kernel`].
pub(crate) fn set_in_kernel(in_kernel: fn() -> bool) {
    let _ = IN_KERNEL.set(in_kernel);
}

/// Whether the calling thread is executing a kernel.
pub(super) fn in_kernel() -> bool {
    IN_KERNEL.get().is_some_and(|in_kernel| in_kernel())
}

/// Marks the current thread as running a waker or another callback that must not block on the runtime.
pub(super) struct CallbackScope {
    before: bool,
}

impl CallbackScope {
    pub(super) fn enter() -> Self {
        Self { before: IN_CALLBACK.replace(true) }
    }
}

impl Drop for CallbackScope {
    fn drop(&mut self) {
        IN_CALLBACK.set(self.before);
    }
}

/// Calls code of the user that must not block on the runtime, since locks of it are held.
pub fn without_blocking<R>(call: impl FnOnce() -> R) -> R {
    let _scope = CallbackScope::enter();
    call()
}

/// Returns an error if the calling thread must not block: inside a kernel, a waker, or an output handler. `what` names the blocking call in
/// the message.
pub fn forbid_blocking(what: &str) -> Result {
    if in_kernel() {
        return Err(Error::invalid(format!("{what} was called inside a kernel")));
    }
    if IN_CALLBACK.get() {
        return Err(Error::invalid(format!("{what} was called inside a waker, an output handler or a native command")));
    }
    Ok(())
}
