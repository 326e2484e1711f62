//! The thread that waits in the driver, on devices that are the processors of this machine.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::QueueOptions;
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_types::DeviceType;

use super::losses::fill;
use super::{real, usable_devices};
use crate::sys::{Code, Handle, code};

/// Whether anybody has waited in the driver.
static HAS_WAITED: AtomicBool = AtomicBool::new(false);

/// The driver's function, which ends the wait of what [`is_running_until_waited_for`] keeps running.
unsafe extern "system" fn wait(count: u32, events: *const Handle) -> Code {
    let wait = real().clWaitForEvents;
    // SAFETY: the caller's arguments.
    let result = unsafe { wait(count, events) };
    HAS_WAITED.store(true, Ordering::SeqCst);
    result
}

/// The driver's function, which says of every command that it runs until a thread has waited for one.
unsafe extern "system" fn is_running_until_waited_for(
    event: Handle,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> Code {
    let get = real().clGetEventInfo;
    // SAFETY: the caller's arguments.
    let result = unsafe { get(event, what, size, value, needed) };
    if !HAS_WAITED.load(Ordering::SeqCst) {
        // SAFETY: the caller asks for a status, which is a number of this size.
        unsafe { value.cast::<Code>().write(code::RUNNING) };
    }
    result
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_command_that_runs_on_is_waited_for_in_the_driver_if_that_gives_it_a_processor() {
    let mut devices = usable_devices(|functions| {
        functions.clWaitForEvents = wait;
        functions.clGetEventInfo = is_running_until_waited_for;
    });
    devices.retain(|device| device.info().device_type == DeviceType::Cpu);
    assert!(!devices.is_empty(), "there is a processor among the OpenCL devices");
    for device in &devices {
        HAS_WAITED.store(false, Ordering::SeqCst);
        let queue = create_queue(device, &QueueOptions::default()).expect("a queue");
        fill(device, &queue).expect("the command is accepted").result.expect("the command succeeds");
        assert!(HAS_WAITED.load(Ordering::SeqCst));
    }
}
