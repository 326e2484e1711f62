//! OpenCL's own handles, for programs that mix OxiSYCL with other users of OpenCL.
//!
//! Handles are given as plain pointers, to be cast to the types of whatever bindings the program uses. They are valid as long as the
//! object they were asked of lives; who keeps one longer retains it. The address of an allocation is the one that OpenCL knows it by.

use std::any::Any;
use std::ffi::c_void;

use oxisycl_backend::{Device, Event, NativeHandle, Queue};

use crate::device::ClDevice;
use crate::lane::{ClQueue, ClTask};

fn device(device: &dyn Device) -> Option<&ClDevice> {
    (device as &dyn Any).downcast_ref()
}

/// The `cl_platform_id` of a device; `None` if it is another backend's, or cannot be used.
pub fn native_platform(of: &dyn Device) -> Option<*mut c_void> {
    Some(device(of)?.state.context.platform.0)
}

/// The `cl_device_id` of a device; `None` if it is another backend's, or cannot be used.
pub fn native_device(of: &dyn Device) -> Option<*mut c_void> {
    Some(device(of)?.state.context.device.0)
}

/// The `cl_context` of a device, which it has to itself; `None` if it is another backend's, or cannot be used.
pub fn native_context(of: &dyn Device) -> Option<*mut c_void> {
    Some(device(of)?.state.context.raw.0)
}

/// The `cl_command_queue` of a queue; `None` if it is another backend's.
///
/// Commands that are put on it come after what the queue has put there before if it is in order, and after nothing otherwise. The queue
/// knows nothing of them: who depends on them waits for them.
pub fn native_queue(queue: &dyn Queue) -> Option<*mut c_void> {
    ClQueue::of(queue)?.native_handle(NativeHandle::Queue)
}

/// The `cl_event`s that are complete when a command is over. The list is empty while the driver does not have the command, and if the
/// command needed no driver call. It is also empty from some time after the end if no caller asked before. [`Event::status`] tells these
/// cases apart. `None` if the command is another backend's.
pub fn native_events(event: &dyn Event) -> Option<Vec<*mut c_void>> {
    let task = (event as &dyn Any).downcast_ref::<ClTask>()?;
    Some(task.issued.lend_events(&task.queue.device.context))
}
