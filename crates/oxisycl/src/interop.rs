//! Handles of drivers (SYCL 2020 section 4.5.1): those of objects of this crate, and objects of this crate from those that other code has made.
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

use oxisycl_backend::NativeHandle;
use oxisycl_types::{BackendKind, ErrorCode};

use crate::{Device, Error, Event, Queue, Result};

/// A driver's device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NativeDevice {
    /// A `CUdevice`.
    Cuda(i32),
    /// A `cl_device_id`.
    OpenCl(*mut c_void),
}

/// The context that a driver has for a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NativeContext {
    /// A `CUcontext`, the device's primary context.
    Cuda(*mut c_void),
    /// A `cl_context`, which has the device alone.
    OpenCl(*mut c_void),
}

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

/// Code that a driver has loaded or built.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NativeModule {
    /// A `CUmodule`.
    Cuda(*mut c_void),
    /// A `cl_program` that is built.
    OpenCl(*mut c_void),
}

/// A kernel of a [`NativeModule`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NativeKernel {
    /// A `CUfunction`.
    Cuda(*mut c_void),
    /// A `cl_kernel`. Its arguments are set for a launch, so that other code makes its own of the program.
    OpenCl(*mut c_void),
}

// SAFETY: a number, whose uses are unsafe; drivers take their handles on any thread.
unsafe impl Send for NativeDevice {}
// SAFETY: as above.
unsafe impl Sync for NativeDevice {}
// SAFETY: as above.
unsafe impl Send for NativeContext {}
// SAFETY: as above.
unsafe impl Sync for NativeContext {}
// SAFETY: as above.
unsafe impl Send for NativeQueue {}
// SAFETY: as above.
unsafe impl Sync for NativeQueue {}
// SAFETY: as above.
unsafe impl Send for NativeEvent {}
// SAFETY: as above.
unsafe impl Sync for NativeEvent {}
// SAFETY: as above.
unsafe impl Send for NativeModule {}
// SAFETY: as above.
unsafe impl Sync for NativeModule {}
// SAFETY: as above.
unsafe impl Send for NativeKernel {}
// SAFETY: as above.
unsafe impl Sync for NativeKernel {}

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

impl NativeModule {
    /// The handle, if its backend is that of the device.
    pub(crate) fn handle_for(self, device: &Device) -> Result<*mut c_void> {
        match self {
            Self::Cuda(handle) => check_backend("module", (BackendKind::Cuda, handle), device),
            Self::OpenCl(handle) => check_backend("module", (BackendKind::OpenCl, handle), device),
        }
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

impl Device {
    /// The driver's handle of the device, valid as long as the device.
    ///
    /// Errors: `BackendMismatch` if there is no driver behind the backend, or if the device is [unusable](Device::unusable).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// for device in Device::all()? {
    ///     match device.native_device() {
    ///         Ok(native) => assert_eq!(Device::from_native(native)?, device),
    ///         Err(error) => println!("{error}"), // such as the host device
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn native_device(&self) -> Result<NativeDevice> {
        let handle = self.native_handle(NativeHandle::Device, "device")?;
        Ok(match self.backend() {
            BackendKind::Cuda => NativeDevice::Cuda(handle.addr() as i32),
            _ => NativeDevice::OpenCl(handle),
        })
    }

    /// The driver's handle of the context that the device's memory belongs to, valid as long as the device. Native queues and events are of it. From
    /// this call on, queues of an NVIDIA GPU hand over each kernel at once.
    ///
    /// Errors: as those of [`native_device`](Self::native_device).
    pub fn native_context(&self) -> Result<NativeContext> {
        let handle = self.native_handle(NativeHandle::Context, "context")?;
        Ok(match self.backend() {
            BackendKind::Cuda => NativeContext::Cuda(handle),
            _ => NativeContext::OpenCl(handle),
        })
    }

    /// The visible device with that handle of the driver. Its [default context](crate::Platform::default_context) is what work with it needs.
    ///
    /// Errors: `Invalid` if there is none. A sub-device that other code has made is none.
    pub fn from_native(native: NativeDevice) -> Result<Self> {
        let mut all = Self::all()?.into_iter();
        let found = all.find(|device| device.native_device().is_ok_and(|own| own == native));
        found.ok_or_else(|| Error::invalid(format!("no visible device is the native device {native:?}")))
    }

    fn native_handle(&self, kind: NativeHandle, what: &str) -> Result<*mut c_void> {
        self.backend_device().native_handle(kind).ok_or_else(|| no_native(self, what))
    }
}

impl Queue {
    /// The driver's handle of the queue; of a queue out of order on an NVIDIA GPU, one of several. It is valid until the queue and its copies are
    /// dropped and their commands have ended. From this call on, the queue hands over each kernel at once. On an in-order queue, work that is put
    /// there comes after all commands that the driver has. [`Handler::native_command`](crate::Handler::native_command) also orders work with
    /// commands that wait for the host, and is the way on queues out of order.
    ///
    /// Errors: `BackendMismatch` if there is no driver behind the backend.
    pub fn native_queue(&self) -> Result<NativeQueue> {
        let handle = self.inner().shared().queue.native_handle(NativeHandle::Queue);
        let handle = handle.ok_or_else(|| no_native(self.device(), "queue"))?;
        Ok(match self.device().backend() {
            BackendKind::Cuda => NativeQueue::Cuda(handle),
            _ => NativeQueue::OpenCl(handle),
        })
    }
}

impl Event {
    /// Events of the driver which have all happened when the command has ended on its device; none if it has ended. They belong to the caller, who
    /// destroys or releases them. For a `CUevent` one is made, and recorded behind what the driver has of the queue.
    ///
    /// Errors: `BackendMismatch` if there is no driver behind the backend. `Invalid` if the driver does not have the command, since it waits for the
    /// host or for another backend, or is a host task. The errors of the driver.
    pub fn native_events(&self) -> Result<Vec<NativeEvent>> {
        let Some(node) = self.node() else { return Ok(Vec::new()) };
        let info = node.shared.device.info();
        let native = match info.backend {
            BackendKind::Cuda => NativeEvent::Cuda,
            BackendKind::OpenCl => NativeEvent::OpenCl,
            backend => {
                let message = format!("device \"{}\" of backend {backend} has no native event", info.name);
                return Err(Error::new(ErrorCode::BackendMismatch, message));
            }
        };
        match node.backend_event() {
            Some(event) => Ok(event.native_events()?.into_iter().map(native).collect()),
            None if node.is_complete() => Ok(Vec::new()),
            None => {
                let (label, name) = (node.label(), &info.name);
                let message = format!("{label}: the driver of device \"{name}\" does not have the command");
                Err(Error::invalid(message))
            }
        }
    }
}

fn no_native(device: &Device, what: &str) -> Error {
    let (name, backend) = (device.name(), device.backend());
    Error::new(ErrorCode::BackendMismatch, format!("device \"{name}\" of backend {backend} has no native {what}"))
}
