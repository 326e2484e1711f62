//! Errors of driver calls: which call, which code, and what that means in words.
//!
//! A [`DriverError`] is two numbers, cheap to make on paths where it is expected. It becomes a [`BackendError`] once, in the context,
//! which also knows whether the device is lost with it.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use oxisycl_backend::BackendError;

use crate::sys::{Code, Driver, code};

/// A driver call that did not return success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DriverError {
    /// The symbol of the called function.
    pub(crate) call: &'static str,
    /// The driver's code.
    pub(crate) code: Code,
}

impl DriverError {
    /// Whether the error makes the context unusable.
    pub(crate) fn is_sticky(self) -> bool {
        code::STICKY.contains(&self.code)
    }

    /// Whether drivers report this error after a stack overflow of a work-item.
    pub(crate) fn may_be_of_the_stack(self) -> bool {
        code::OF_THE_STACK.contains(&self.code)
    }

    /// The driver's name for the code and what it means.
    pub(crate) fn meaning(self, driver: &Driver) -> String {
        let mut name: *const c_char = ptr::null();
        let mut text: *const c_char = ptr::null();
        // SAFETY: both take any code, and write the address of a constant string or null.
        let (has_name, has_text) = unsafe {
            (
                driver.get_error_name(self.code, &raw mut name).is_ok(),
                driver.get_error_string(self.code, &raw mut text).is_ok(),
            )
        };
        // SAFETY: a pointer that the driver wrote is that of a constant string, which ends with a NUL byte.
        let read = |pointer: *const c_char| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned();
        let name = if has_name && !name.is_null() { read(name) } else { "an unknown error".to_owned() };
        if has_text && !text.is_null() { format!("{name}: {}", read(text)) } else { name }
    }

    /// Converts the error, without considering whether the device is lost.
    pub(crate) fn to_backend(self, driver: &Driver) -> BackendError {
        BackendError::Driver { call: self.call, code: i64::from(self.code), name: self.meaning(driver) }
    }
}

/// A version from `cuDriverGetVersion`, as text.
pub(crate) fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_like_the_toolkit_s() {
        assert_eq!(version_text(12040), "12.4");
        assert_eq!(version_text(11000), "11.0");
    }

    #[test]
    fn an_illegal_address_is_sticky_and_an_exhausted_memory_is_not() {
        assert!(DriverError { call: "cuStreamQuery", code: 700 }.is_sticky());
        assert!(!DriverError { call: "cuMemAlloc_v2", code: code::OUT_OF_MEMORY }.is_sticky());
    }
}
