//! Handles of drivers (SYCL 2020 section 4.5.1): queues and events of this crate from those that other code has made.
//!
//! A handle is a plain address or number, as the driver's own bindings have it. What is made of one is `unsafe`, since the driver believes it.
//!
//! ```no_run
//! use oxisycl::interop::{NativeEvent, NativeQueue};
//! use oxisycl::prelude::*;
//! use std::ffi::c_void;
//!
//! # fn work(gpu: &Device, stream: *mut c_void, event: *mut c_void) -> oxisycl::Result {
//! // SAFETY: a live `CUstream` of the device's primary context, which is destroyed after the queue's last command has ended.
//! let queue = unsafe { Queue::from_native(gpu, NativeQueue::Cuda(stream)) }?;
//! // SAFETY: a live `CUevent`, which is destroyed after it has happened.
//! let recorded = unsafe { Event::from_native(&queue, NativeEvent::Cuda(event)) }?;
//! let numbers = Buffer::from_vec(vec![1, 2, 3])?;
//! queue.submit(|cg| {
//!     cg.depends_on(&recorded);
//!     let numbers = cg.access(&numbers, ReadWrite);
//!     cg.parallel_for(3, move |item| numbers.update(item, |x| x + 1)) // on that stream, after the event
//! })?;
//! # Ok(())
//! # }
//! ```

use std::ffi::c_void;

use oxisycl_types::{BackendKind, ErrorCode};

use crate::{Device, Error, Result};

/// A driver's queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NativeQueue {
    /// A `CUstream`, or a `cudaStream_t`.
    Cuda(*mut c_void),
    /// A `cl_command_queue`.
    OpenCl(*mut c_void),
}

/// A driver's event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NativeEvent {
    /// A `CUevent`, or a `cudaEvent_t`.
    Cuda(*mut c_void),
    /// A `cl_event`.
    OpenCl(*mut c_void),
}

// SAFETY: a number, whose uses are unsafe; drivers take their handles on any thread.
unsafe impl Send for NativeQueue {}
// SAFETY: as above.
unsafe impl Sync for NativeQueue {}
// SAFETY: as above.
unsafe impl Send for NativeEvent {}
// SAFETY: as above.
unsafe impl Sync for NativeEvent {}

impl NativeQueue {
    /// The backend whose driver has the object.
    pub fn backend(self) -> BackendKind {
        match self {
            Self::Cuda(_) => BackendKind::Cuda,
            Self::OpenCl(_) => BackendKind::OpenCl,
        }
    }

    /// The handle.
    pub fn as_ptr(self) -> *mut c_void {
        let (Self::Cuda(handle) | Self::OpenCl(handle)) = self;
        handle
    }

    /// The handle, if its backend is that of the device.
    pub(crate) fn handle_for(self, device: &Device) -> Result<*mut c_void> {
        check_backend("queue", (self.backend(), self.as_ptr()), device)
    }
}

impl NativeEvent {
    /// The backend whose driver has the object.
    pub fn backend(self) -> BackendKind {
        match self {
            Self::Cuda(_) => BackendKind::Cuda,
            Self::OpenCl(_) => BackendKind::OpenCl,
        }
    }

    /// The handle.
    pub fn as_ptr(self) -> *mut c_void {
        let (Self::Cuda(handle) | Self::OpenCl(handle)) = self;
        handle
    }

    /// The handle, if its backend is that of the device.
    pub(crate) fn handle_for(self, device: &Device) -> Result<*mut c_void> {
        check_backend("event", (self.backend(), self.as_ptr()), device)
    }
}

fn check_backend(what: &str, (backend, handle): (BackendKind, *mut c_void), device: &Device) -> Result<*mut c_void> {
    if backend == device.backend() {
        return Ok(handle);
    }
    let (name, own) = (device.name(), device.backend());
    let message =
        format!("device \"{name}\" of backend {own} cannot take the native {what} {handle:p} of backend {backend}");
    Err(Error::new(ErrorCode::BackendMismatch, message))
}
