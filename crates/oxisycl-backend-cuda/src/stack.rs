//! The stack size of work-items.
//!
//! The driver finds out for itself how much a kernel takes, and provides it, unless calls of the kernel are recursive or go through
//! pointers. Then it provides what the context's limit says, 1 KiB at first, and a work-item that needs more takes the whole context down.
//! Formatting on the device is made of such calls. So the limit is raised before such a kernel can be launched, and never lowered. How
//! deep the calls of users go is known to them alone, who set [`VARIABLE`].

use std::env::VarError;
use std::ffi::c_int;

use oxisycl_backend::{BackendError, bytes_setting};
use oxisycl_types::DeviceLaunch;
use parking_lot::Mutex;

use crate::error::DriverError;
use crate::sys::{Driver, FUNCTION_LOCAL_SIZE, LIMIT_STACK_SIZE, RawFunction};

/// The environment variable with the bytes of stack that a work-item has for calls of unknown depth.
pub(crate) const VARIABLE: &str = "OXISYCL_CALL_STACK";
/// The most private memory that any NVIDIA GPU gives a work-item, in bytes.
const MAX_CALL_STACK: usize = 512 << 10;

/// The limit of a context, in bytes for each work-item that can be resident.
pub(crate) struct StackLimit {
    /// The bytes for calls, beside the kernel's own variables.
    call_stack: usize,
    /// The limit that was last set or read; 0 before the first kernel that needs it.
    known: Mutex<usize>,
}

/// The reason why a kernel cannot have its stack.
pub(crate) struct NoStack {
    /// Bytes for each work-item: the kernel's own variables, and its calls.
    own: usize,
    call_stack: usize,
    pub(crate) failure: LimitFailure,
}

/// The driver's reaction to the requested stack limit.
pub(crate) enum LimitFailure {
    /// The driver refused the limit with this error.
    Refused(DriverError),
    /// The driver reported success, but provides only this many bytes.
    Provides(usize),
}

impl NoStack {
    /// The error message, with the requested size and the kernel's needs.
    pub(crate) fn text(&self) -> String {
        let Self { own, call_stack, .. } = self;
        format!(
            "each of its work-items needs a stack of {} bytes, {own} for its own variables and {call_stack} for calls that are recursive or \
             go through pointers, as {VARIABLE} says",
            needed(*own, *call_stack)
        )
    }
}

/// The limit for a kernel, a multiple of 1 KiB.
fn needed(own: usize, call_stack: usize) -> usize {
    (own + call_stack).next_multiple_of(1024)
}

impl StackLimit {
    pub(crate) fn new(call_stack: usize) -> Self {
        Self { call_stack, known: Mutex::default() }
    }

    /// Bytes for calls of unknown depth, for kernels that check how much stack is left.
    pub(crate) fn call_stack(&self) -> u32 {
        u32::try_from(self.call_stack).unwrap_or(u32::MAX)
    }

    /// Raises the stack limit for a kernel with calls of unknown depth: its own variables and the bytes for calls. The driver may wait for
    /// running kernels.
    ///
    /// # Safety
    /// The function is of a loaded module, whose context is current and is the one of this limit.
    pub(crate) unsafe fn provide(&self, driver: &Driver, function: RawFunction) -> Result<(), NoStack> {
        let call_stack = self.call_stack;
        let mut own: c_int = 0;
        // SAFETY: by the contract of this function.
        unsafe { driver.func_get_attribute(&raw mut own, FUNCTION_LOCAL_SIZE, function) }.map_err(|error| NoStack {
            own: 0,
            call_stack,
            failure: LimitFailure::Refused(error),
        })?;
        let own = usize::try_from(own).unwrap_or(0);
        let failed = |failure| NoStack { own, call_stack, failure };
        let refused = |error| failed(LimitFailure::Refused(error));
        let needed = needed(own, call_stack);
        let mut known = self.known.lock();
        if *known >= needed {
            return Ok(());
        }
        let mut limit = 0;
        // SAFETY: the context is current, and the number is written to.
        unsafe { driver.ctx_get_limit(&raw mut limit, LIMIT_STACK_SIZE) }.map_err(refused)?;
        if limit < needed {
            // SAFETY: the context is current.
            unsafe { driver.ctx_set_limit(LIMIT_STACK_SIZE, needed) }.map_err(refused)?;
            // SAFETY: as above. Drivers may set what is nearest to what they were asked for.
            unsafe { driver.ctx_get_limit(&raw mut limit, LIMIT_STACK_SIZE) }.map_err(refused)?;
            if limit < needed {
                return Err(failed(LimitFailure::Provides(limit)));
            }
        }
        *known = limit;
        Ok(())
    }

    /// A possible reason for a lost device: a stack overflow, if there are kernels with calls of unknown depth.
    pub(crate) fn suspicion(&self) -> Option<String> {
        (*self.known.lock() > 0).then(|| {
            format!(
                "if calls are recursive or go through pointers, they may have needed more stack than the {} bytes that {VARIABLE} says",
                self.call_stack
            )
        })
    }
}

/// The bytes for calls that the environment sets.
///
/// # Errors
/// [`BackendError::Setting`] if the variable has a wrong value.
pub(crate) fn call_stack_from_env() -> Result<usize, BackendError> {
    call_stack(std::env::var(VARIABLE))
}

fn call_stack(setting: Result<String, VarError>) -> Result<usize, BackendError> {
    // Formatting counts on what there is without a setting.
    let allowed = DeviceLaunch::CALL_STACK..=MAX_CALL_STACK;
    let expected = "bytes from 8k to 512k, or a number and k (1024 bytes)";
    bytes_setting(VARIABLE, setting, DeviceLaunch::CALL_STACK, allowed, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_a_size_or_an_error_that_quotes_it() {
        let read = |text: &str| call_stack(Ok(text.to_owned()));
        assert_eq!(call_stack(Err(VarError::NotPresent)), Ok(8192));
        assert_eq!(["8192", " 64k ", "524288", "512k"].map(read), [8 << 10, 64 << 10, 512 << 10, 512 << 10].map(Ok));
        for wrong in ["", "0", "8191", "-1", "7k", "513k", "1M", "deep", "18446744073709551615k"] {
            let expected = format!(
                "OXISYCL_CALL_STACK=\"{wrong}\": expected bytes from 8k to 512k, or a number and k (1024 bytes)"
            );
            assert_eq!(read(wrong).unwrap_err().to_string(), expected);
        }
        assert!(call_stack(Err(VarError::NotUnicode("x".into()))).is_err());
    }
}
