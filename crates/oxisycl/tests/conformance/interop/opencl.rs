//! Calls of OpenCL with the handles of a host task.

use std::ffi::{CStr, c_char, c_int, c_void};

use libloading::{Library, Symbol};
use oxisycl::InteropHandle;

use super::{Handles, SIZE};

#[cfg(windows)]
const LIBRARY: &str = "OpenCL.dll";
#[cfg(target_os = "macos")]
const LIBRARY: &str = "/System/Library/Frameworks/OpenCL.framework/OpenCL";
#[cfg(not(any(windows, target_os = "macos")))]
const LIBRARY: &str = "libOpenCL.so.1";

const QUEUE_CONTEXT: u32 = 0x1090;
const QUEUE_DEVICE: u32 = 0x1091;
const CONTEXT_DEVICES: u32 = 0x1081;
const DEVICE_NAME: u32 = 0x102B;
const DEVICE_EXTENSIONS: u32 = 0x1030;
const DEVICE_PLATFORM: u32 = 0x1031;

type Ask = unsafe extern "system" fn(*mut c_void, u32, usize, *mut c_void, *mut usize) -> c_int;
type Fill = unsafe extern "system" fn(
    *mut c_void,
    *mut c_void,
    *const c_void,
    usize,
    usize,
    u32,
    *const c_void,
    *mut *mut c_void,
) -> c_int;

struct OpenCl(Library);

impl OpenCl {
    fn new() -> Self {
        // SAFETY: the loader, whose initialisers have run: the backend has loaded it.
        Self(unsafe { Library::new(LIBRARY) }.unwrap())
    }

    /// # Safety
    /// `F` is the type of a pointer to the function of that name.
    unsafe fn symbol<F>(&self, name: &str) -> Symbol<'_, F> {
        // SAFETY: the caller knows the type.
        unsafe { self.0.get(name.as_bytes()) }.unwrap()
    }

    /// The answer of one of the functions `clGet..Info`.
    fn ask(&self, function: &str, object: *mut c_void, what: u32) -> Vec<u8> {
        // SAFETY: all of them have this type in `cl.h`.
        let ask = unsafe { self.symbol::<Ask>(function) };
        let mut size = 0;
        // SAFETY: the object is the one under test; writes a number.
        let code = unsafe { ask(object, what, 0, std::ptr::null_mut(), &raw mut size) };
        assert_eq!(code, 0, "{function}");
        let mut answer = vec![0_u8; size];
        // SAFETY: as above, with room for as much.
        let code = unsafe { ask(object, what, size, answer.as_mut_ptr().cast(), std::ptr::null_mut()) };
        assert_eq!(code, 0, "{function}");
        answer
    }

    fn handles(&self, function: &str, object: *mut c_void, what: u32) -> Vec<usize> {
        let answer = self.ask(function, object, what);
        answer.chunks_exact(size_of::<usize>()).map(|bytes| usize::from_ne_bytes(bytes.try_into().unwrap())).collect()
    }

    fn text(&self, device: *mut c_void, what: u32) -> String {
        let answer = self.ask("clGetDeviceInfo", device, what);
        CStr::from_bytes_until_nul(&answer).unwrap().to_str().unwrap().trim().to_owned()
    }

    /// What fills memory of the kind that the device has: the extension's, or shared virtual memory.
    fn fill(&self, device: *mut c_void) -> Fill {
        if !self.text(device, DEVICE_EXTENSIONS).contains("cl_intel_unified_shared_memory") {
            // SAFETY: the type is that of `cl.h`.
            return *unsafe { self.symbol::<Fill>("clEnqueueSVMMemFill") };
        }
        type Find = unsafe extern "system" fn(*mut c_void, *const c_char) -> *mut c_void;
        let platform = self.handles("clGetDeviceInfo", device, DEVICE_PLATFORM)[0];
        // SAFETY: the type is that of `cl.h`; the platform is the device's.
        let found = unsafe {
            let find = self.symbol::<Find>("clGetExtensionFunctionAddressForPlatform");
            find(std::ptr::with_exposed_provenance_mut(platform), c"clEnqueueMemFillINTEL".as_ptr())
        };
        assert!(!found.is_null());
        // SAFETY: the extension gives the function the type of the other one.
        unsafe { std::mem::transmute::<*mut c_void, Fill>(found) }
    }
}

/// The queue is of the context and the device, and the context of the device, which has the name that its users see.
pub(super) fn check_handles(interop: &InteropHandle, handles: &Handles) {
    let opencl = OpenCl::new();
    let &Handles { queue, device, context } = handles;
    assert!(!queue.is_null() && !device.is_null() && !context.is_null());
    assert_eq!(opencl.handles("clGetCommandQueueInfo", queue, QUEUE_CONTEXT), [context.addr()]);
    assert_eq!(opencl.handles("clGetCommandQueueInfo", queue, QUEUE_DEVICE), [device.addr()]);
    assert_eq!(opencl.handles("clGetContextInfo", context, CONTEXT_DEVICES), [device.addr()]);
    assert_eq!(format!("{} (OpenCL)", opencl.text(device, DEVICE_NAME)), interop.device().name());
}

/// A queue in order of the device.
pub(super) fn new_queue(device: *mut c_void, context: *mut c_void) -> *mut c_void {
    type Create = unsafe extern "system" fn(*mut c_void, *mut c_void, *const u64, *mut c_int) -> *mut c_void;
    let opencl = OpenCl::new();
    let mut code = 0;
    // SAFETY: the type is that of `cl.h`; a context and its device, and no properties.
    let queue = unsafe {
        let create = opencl.symbol::<Create>("clCreateCommandQueueWithProperties");
        create(context, device, std::ptr::null(), &raw mut code)
    };
    assert_eq!(code, 0, "clCreateCommandQueueWithProperties");
    queue
}

/// Fills `SIZE` numbers by the queue, and waits for it.
pub(super) fn fill(handles: &Handles, memory: *mut u32, value: u32) {
    let opencl = OpenCl::new();
    let event = enqueue_fill(handles, memory, value);
    // SAFETY: the type is that of `cl.h`, and the event is live.
    let waited = unsafe {
        opencl.symbol::<unsafe extern "system" fn(u32, *const *mut c_void) -> c_int>("clWaitForEvents")(
            1,
            &raw const event,
        )
    };
    assert_eq!(waited, 0, "clWaitForEvents");
    release(event);
}

/// Releases an event.
pub(super) fn release(event: *mut c_void) {
    let opencl = OpenCl::new();
    // SAFETY: the type is that of `cl.h`, and the event is the caller's.
    unsafe { opencl.symbol::<unsafe extern "system" fn(*mut c_void) -> c_int>("clReleaseEvent")(event) };
}

/// Fills `SIZE` numbers by the queue. The result is the event of the fill.
pub(super) fn enqueue_fill(handles: &Handles, memory: *mut u32, value: u32) -> *mut c_void {
    let opencl = OpenCl::new();
    let fill = opencl.fill(handles.device);
    let mut event = std::ptr::null_mut();
    let (pattern, bytes) = ((&raw const value).cast(), SIZE * size_of::<u32>());
    // SAFETY: the type is that of `cl.h`. The memory is that of an accessor of the task's group, which has as many elements. The pattern is
    // copied by the call.
    let code = unsafe {
        fill(handles.queue, memory.cast(), pattern, size_of::<u32>(), bytes, 0, std::ptr::null(), &raw mut event)
    };
    assert_eq!(code, 0, "the fill");
    event
}
