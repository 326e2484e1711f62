//! The context of one device or sub-device: its objects, and the loss of the device.
//!
//! Invariants:
//! - The driver's context is alive at least as long as this object, and everything made in it holds this object.
//! - Once `lost` is set it stays set, and nothing of the context is used for work again.
//!
//! OpenCL does not say that a device is lost. It counts as lost when the driver says that it is not available, and when it gives up the
//! context or a queue. So it does when a command ends with an error of the driver: the specification leaves open what other commands do then.

use std::sync::{Arc, Once, OnceLock};

use oxisycl_backend::{BackendError, EventDomain, UsmKind, fork};

use crate::error::{ClError, Result, check};
use crate::process_exit;
use crate::queue_pool::{self, QueuePool, RetiredContext};
use crate::quirks::Quirks;
use crate::sharing::Sharing;
use crate::sys::{Functions, Object, code};

pub(crate) struct Context {
    pub(crate) functions: Arc<Functions>,
    pub(crate) platform: Object,
    pub(crate) device: Object,
    pub(crate) raw: Object,
    /// The device's name, for messages.
    pub(crate) name: String,
    /// The domain of the context's events. No other context can wait for them.
    pub(crate) event_domain: EventDomain,
    pub(crate) sharing: Sharing,
    pub(crate) queues: QueuePool,
    pub(crate) quirks: Quirks,
    /// Completed once a warning said that the driver does not know the option for correct rounding.
    pub(crate) rounding_warned: Once,
    /// Whether the device is a sub-device, which is released on drop.
    is_sub_device: bool,
    lost: OnceLock<String>,
    /// Returns a description of the device's work, when the device is found to be lost.
    suspects: OnceLock<Box<dyn Fn() -> Option<String> + Send + Sync>>,
    generation: u32,
}

/// The parts of a context.
pub(crate) struct Parts {
    pub(crate) functions: Arc<Functions>,
    pub(crate) platform: Object,
    pub(crate) device: Object,
    pub(crate) name: String,
    pub(crate) sharing: Sharing,
    pub(crate) quirks: Quirks,
    pub(crate) is_sub_device: bool,
}

impl Context {
    /// A context for the device. Takes ownership of a sub-device.
    pub(crate) fn new(parts: Parts) -> Result<Self> {
        fork::watch();
        queue_pool::release_retired(fork::generation());
        let Parts { functions, platform, device, name, sharing, quirks, is_sub_device } = parts;
        let mut result = 0;
        // SAFETY: one live device, no properties, and no callback.
        let raw = unsafe {
            let (device, none) = (&raw const device.0, std::ptr::null());
            (functions.clCreateContext)(std::ptr::null(), 1, device, none, std::ptr::null_mut(), &raw mut result)
        };
        let created = check("clCreateContext", result);
        if created.is_err() && is_sub_device {
            // SAFETY: the sub-device was given to this function, and no other code has it.
            unsafe { (functions.clReleaseDevice)(device.0) };
        }
        created?;
        process_exit::watch();
        Ok(Self {
            functions,
            platform,
            device,
            raw: Object(raw),
            name,
            event_domain: EventDomain::unique(),
            sharing,
            queues: QueuePool::default(),
            quirks,
            rounding_warned: Once::new(),
            is_sub_device,
            lost: OnceLock::new(),
            suspects: OnceLock::new(),
            generation: fork::generation(),
        })
    }

    /// An error if the device is lost, or if this is a forked child, which has none of the driver's threads.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<(), BackendError> {
        if self.lost.get().is_none() && !self.is_foreign() { Ok(()) } else { Err(self.lost_error()) }
    }

    /// Whether the driver must not be called: this process is not the one that made the context, or it is ending.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.generation != fork::generation() || process_exit::is_ending()
    }

    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// The error of every call after the device was lost.
    pub(crate) fn lost_error(&self) -> BackendError {
        let forked = || "the process was forked after the driver had been loaded".to_owned();
        let reason = match self.lost.get() {
            _ if process_exit::is_ending() => "the process is ending".to_owned(),
            _ if self.is_foreign() => forked(),
            reason => reason.cloned().unwrap_or_default(),
        };
        BackendError::DeviceLost { device: self.name.clone(), reason }
    }

    /// Sets the function that describes the device's work when the device is found to be lost.
    pub(crate) fn set_suspects(&self, suspects: impl Fn() -> Option<String> + Send + Sync + 'static) {
        let _ = self.suspects.set(Box::new(suspects));
    }

    /// Converts the error of a failed call. Marks the device as lost if the error means that.
    pub(crate) fn fail(&self, error: ClError) -> BackendError {
        if error.is_sticky(self.quirks) {
            self.mark_lost(error, None);
        }
        if self.is_lost() { self.lost_error() } else { error.to_backend() }
    }

    /// Marks the device as lost. `culprit` is the command that the driver ended with an error, if known.
    pub(crate) fn mark_lost(&self, error: ClError, culprit: Option<String>) {
        if self.is_lost() {
            return;
        }
        let what = format!("{} ({}, found by {})", error.meaning(), error.code, error.call);
        let culprit = culprit.or_else(|| self.suspects.get().and_then(|suspects| suspects()));
        let reason = match culprit {
            Some(culprit) => format!("{what} in {culprit}"),
            None => what,
        };
        if self.lost.set(reason).is_ok() {
            tracing::debug!(device = %self.name, "lost: {}", self.lost.get().map_or("", String::as_str));
        }
    }

    /// Allocates memory; `align` is at most [`ALIGNMENT`](crate::sharing::ALIGNMENT).
    pub(crate) fn allocate(
        &self,
        kind: UsmKind,
        size: usize,
        align: usize,
    ) -> std::result::Result<std::ptr::NonNull<u8>, BackendError> {
        self.sharing.allocate(&self.functions, (self.raw, self.device), kind, size, align).map_err(|error| {
            // Also for more than one allocation may have, which a driver may tell by other codes.
            let is_too_large = error.code == code::INVALID_BUFFER_SIZE;
            match self.fail(error) {
                BackendError::Driver { .. } if error.is_lack_of_memory() || is_too_large => {
                    BackendError::OutOfMemory { device: self.name.clone(), requested: size, available: None }
                }
                other => other,
            }
        })
    }

    /// Frees memory from [`allocate`](Self::allocate).
    ///
    /// # Safety
    /// No code uses the memory, and it is freed once.
    pub(crate) unsafe fn free(&self, pointer: std::ptr::NonNull<u8>) {
        // SAFETY: by the contract of this function; it was allocated for this context.
        unsafe { self.sharing.free(&self.functions, self.raw, pointer) };
    }

    /// Releases a reference to an event.
    ///
    /// # Safety
    /// The caller owns a reference to the event, and gives it away.
    pub(crate) unsafe fn release_event(&self, event: Object) {
        if !self.is_foreign() {
            // SAFETY: by the contract of this function. A failure cannot be helped.
            unsafe { (self.functions.clReleaseEvent)(event.0) };
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A forked child has none of the driver's threads, and its locks may be held for ever.
        if self.is_foreign() {
            return;
        }
        // What was made in it holds `self`, launches among it.
        if !self.is_lost() {
            self.sharing.close(&self.functions, self.raw);
        }
        let sub_device = self.is_sub_device.then_some(self.device);
        let queues = std::mem::take(&mut self.queues);
        let retired = RetiredContext::new(&self.functions, queues, self.raw, sub_device, self.generation);
        if self.quirks.queue_release {
            queue_pool::retire_context(retired);
        } else {
            retired.release();
        }
    }
}
