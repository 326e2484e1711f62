//! What messages of panics call a buffer.
//!
//! An accessor has no room for a name, so that all it tells is an address. In native code the runtime is asked whose it is when the message
//! is written; messages of a device reach the runtime with the address.

use core::fmt;
use core::sync::atomic::{AtomicPtr, Ordering};

use oxisycl_types::BUFFER_AT;

/// Writes in which buffer an address is, and returns whether that is known. Nothing is written if not.
pub type BufferNames = fn(usize, &mut fmt::Formatter<'_>) -> Result<bool, fmt::Error>;

/// A [`BufferNames`], or null as long as there is no runtime.
static BUFFER_NAMES: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Says who knows the names of buffers. Called by the runtime before the first kernel runs; without a runtime messages have addresses.
#[doc(hidden)]
pub fn set_buffer_names(names: BufferNames) {
    BUFFER_NAMES.store(names as *mut (), Ordering::Release);
}

/// The buffer with an element at an address, for the end of a message.
pub(crate) struct InBuffer(pub(crate) usize);

impl fmt::Display for InBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match write_name(self.0, f)? {
            true => Ok(()),
            false => write!(f, "{BUFFER_AT}{:x}", self.0),
        }
    }
}

/// A [`BufferNames`]. The compiler finds it by its path, and it is public so that its symbol is.
#[doc(hidden)]
#[inline(never)]
pub fn write_name(first: usize, f: &mut fmt::Formatter<'_>) -> Result<bool, fmt::Error> {
    let names = BUFFER_NAMES.load(Ordering::Acquire);
    if names.is_null() {
        return Ok(false);
    }
    // SAFETY: only `set_buffer_names` stores here, a pointer to such a function.
    let names = unsafe { core::mem::transmute::<*mut (), BufferNames>(names) };
    names(first, f)
}

/// [`write_name`] by a name that link-time optimisation keeps. Called by native code of kernels alone.
#[unsafe(no_mangle)]
fn __oxisycl_kept_write_name(first: usize, f: &mut fmt::Formatter<'_>) -> Result<bool, fmt::Error> {
    write_name(first, f)
}
