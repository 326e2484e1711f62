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

/// The `CUcontext` of a device, its primary context; `None` if it is another backend's. From then on its queues hand each kernel over at
/// once, so that what waits for the context waits for all that was submitted.
pub fn native_context(device: &dyn Device) -> Option<*mut c_void> {
    let state = &(device as &dyn Any).downcast_ref::<CudaDevice>()?.state;
    state.share();
    Some(state.context.raw.0)
}

/// The `CUstream`s of a queue: one if it is in order, several otherwise. `None` if it is another backend's.
///
/// Work that is put on them comes after what was submitted to the queue before: from then on it hands each kernel over at once. The queue knows nothing of it: who depends on it waits
/// for it. Nor does the device. Memory that was freed goes back to the driver when the device has nothing to do of the queues' work. The
/// driver waits for the foreign kernels then, with every later submission behind it. A foreign kernel must not wait for this program.
pub fn native_streams(queue: &dyn Queue) -> Option<Vec<*mut c_void>> {
    Some(lane::streams_of(&CudaQueue::of(queue)?.shared))
}
