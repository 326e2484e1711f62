//! The driver's own handles, for programs that mix OxiSYCL with other users of the driver.
//!
//! Handles are given as plain pointers and numbers, to be cast to the types of whatever bindings the program uses. They are valid as
//! long as the object they were asked of lives. The address of an allocation is its `CUdeviceptr`.

use std::any::Any;
use std::ffi::{c_int, c_void};

use oxisycl_backend::{Device, Queue};

use crate::device::CudaDevice;
use crate::lane::{self, CudaQueue};

/// The `CUdevice` of a device; `None` if it is another backend's.
pub fn native_device(device: &dyn Device) -> Option<c_int> {
    Some((device as &dyn Any).downcast_ref::<CudaDevice>()?.state.context.device)
}

/// The `CUcontext` of a device, its primary context; `None` if it is another backend's. From this call on, its queues launch each kernel at
/// once. So a wait for the context includes all earlier submissions.
pub fn native_context(device: &dyn Device) -> Option<*mut c_void> {
    Some((device as &dyn Any).downcast_ref::<CudaDevice>()?.state.share())
}

/// The `CUstream`s of a queue: one if it is in order, several otherwise. `None` if it is another backend's.
///
/// Work that is put on them comes after all earlier submissions to the queue: from this call on, the queue launches each kernel at once. The
/// queue does not know of such work, so code that depends on it has to wait for it. Nor does the device: freed memory goes back to the
/// driver when the device has no work of the queues. The driver then waits for foreign kernels, with every later submission behind it. So
/// a foreign kernel must not wait for this program.
pub fn native_streams(queue: &dyn Queue) -> Option<Vec<*mut c_void>> {
    Some(lane::streams_of(&CudaQueue::of(queue)?.shared))
}
