//! How much stack a work-item has.
//!
//! The driver finds out for itself how much a kernel takes, and provides it, unless calls of the kernel are recursive or go through
//! pointers. Then it provides what the context's limit says, 1 KiB at first, and a work-item that needs more takes the whole context down.
//! Formatting on the device is made of such calls. So the limit is raised before such a kernel can be launched, and never lowered.

use std::ffi::c_int;

use oxisycl_types::DeviceLaunch;
use parking_lot::Mutex;

use crate::error::DriverError;
use crate::sys::{Driver, FUNCTION_LOCAL_SIZE, LIMIT_STACK_SIZE, RawFunction};

/// The limit of a context, in bytes for each work-item that can be resident.
#[derive(Default)]
pub(crate) struct StackLimit {
    /// What is known to be there already.
    known: Mutex<usize>,
}

/// Why a kernel cannot have its stack.
pub(crate) struct NoStack {
    /// Bytes for each work-item.
    pub(crate) needed: usize,
    pub(crate) error: DriverError,
}

impl StackLimit {
    /// Provides a kernel whose calls nobody can follow with its own variables and [`DeviceLaunch::CALL_STACK`] bytes for what it calls. The driver may
    /// wait for running kernels.
    ///
    /// # Safety
    /// The function is of a loaded module, whose context is current and is the one of this limit.
    pub(crate) unsafe fn provide(&self, driver: &Driver, function: RawFunction) -> Result<(), NoStack> {
        let failed = |needed| move |error| NoStack { needed, error };
        let mut own: c_int = 0;
        // SAFETY: by the contract of this function.
        unsafe { driver.func_get_attribute(&raw mut own, FUNCTION_LOCAL_SIZE, function) }
            .map_err(failed(DeviceLaunch::CALL_STACK))?;
        let needed = (usize::try_from(own).unwrap_or(0) + DeviceLaunch::CALL_STACK).next_multiple_of(1024);
        let mut known = self.known.lock();
        if *known >= needed {
            return Ok(());
        }
        let mut limit = 0;
        // SAFETY: the context is current, and the number is written to.
        unsafe { driver.ctx_get_limit(&raw mut limit, LIMIT_STACK_SIZE) }.map_err(failed(needed))?;
        if limit < needed {
            // SAFETY: the context is current.
            unsafe { driver.ctx_set_limit(LIMIT_STACK_SIZE, needed) }.map_err(failed(needed))?;
        }
        *known = needed.max(limit);
        Ok(())
    }
}
