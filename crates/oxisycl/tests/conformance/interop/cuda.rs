//! Calls of CUDA's driver API with the handles of a host task.

use std::ffi::{c_int, c_uint, c_void};

use libloading::{Library, Symbol};

use super::{Handles, SIZE};

#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";

type Call<A> = unsafe extern "system" fn(A) -> c_int;

/// The driver, with the context of the queue's device current on this thread.
struct Driver(Library);

impl Driver {
    fn enter(context: *mut c_void) -> Self {
        // SAFETY: the driver, whose initialisers have run: the backend has loaded it.
        let driver = Self(unsafe { Library::new(LIBRARY) }.unwrap());
        // SAFETY: the type is that of `cuda.h`, and the context is the live one of the task's device.
        succeed("cuCtxPushCurrent", unsafe { driver.symbol::<Call<*mut c_void>>("cuCtxPushCurrent_v2")(context) });
        driver
    }

    /// # Safety
    /// `F` is the type of a pointer to the function of that name.
    unsafe fn symbol<F>(&self, name: &str) -> Symbol<'_, F> {
        // SAFETY: the caller knows the type.
        unsafe { self.0.get(name.as_bytes()) }.unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let mut context = std::ptr::null_mut();
        // SAFETY: the type is that of `cuda.h`; writes a handle.
        unsafe { self.symbol::<Call<*mut *mut c_void>>("cuCtxPopCurrent_v2")(&raw mut context) };
    }
}

#[track_caller]
fn succeed(call: &str, code: c_int) {
    assert_eq!(code, 0, "{call}");
}

/// A stream of the context.
pub(super) fn new_stream(context: *mut c_void) -> *mut c_void {
    let driver = Driver::enter(context);
    let mut stream = std::ptr::null_mut();
    // SAFETY: the type is that of `cuda.h`; writes a handle. The number says that the stream does not wait for the default one.
    let code = unsafe {
        driver.symbol::<unsafe extern "system" fn(*mut *mut c_void, c_uint) -> c_int>("cuStreamCreate")(
            &raw mut stream,
            1,
        )
    };
    succeed("cuStreamCreate", code);
    stream
}

/// An event behind what is on the stream.
pub(super) fn record(handles: &Handles) -> *mut c_void {
    let driver = Driver::enter(handles.context);
    let mut event = std::ptr::null_mut();
    // SAFETY: the types are those of `cuda.h`; writes a handle, and both handles are live. The number says that no time is recorded.
    unsafe {
        let create = driver.symbol::<unsafe extern "system" fn(*mut *mut c_void, c_uint) -> c_int>("cuEventCreate");
        succeed("cuEventCreate", create(&raw mut event, 2));
        let record = driver.symbol::<unsafe extern "system" fn(*mut c_void, *mut c_void) -> c_int>("cuEventRecord");
        succeed("cuEventRecord", record(event, handles.queue));
    }
    event
}

/// Destroys an event.
pub(super) fn destroy(context: *mut c_void, event: *mut c_void) {
    let driver = Driver::enter(context);
    // SAFETY: the type is that of `cuda.h`, and the event is the caller's.
    succeed("cuEventDestroy", unsafe { driver.symbol::<Call<*mut c_void>>("cuEventDestroy_v2")(event) });
}

/// The stream is of the context, and the context of the device.
pub(super) fn check_handles(handles: &Handles) {
    let driver = Driver::enter(handles.context);
    let (mut context, mut device) = (std::ptr::null_mut(), c_int::MIN);
    // SAFETY: the types are those of `cuda.h`; handles are those under test, and results are written to variables.
    unsafe {
        let context_of =
            driver.symbol::<unsafe extern "system" fn(*mut c_void, *mut *mut c_void) -> c_int>("cuStreamGetCtx");
        succeed("cuStreamGetCtx", context_of(handles.queue, &raw mut context));
        succeed("cuCtxGetDevice", driver.symbol::<Call<*mut c_int>>("cuCtxGetDevice")(&raw mut device));
        let state = driver.symbol::<Call<*mut c_void>>("cuStreamQuery")(handles.queue);
        // Complete, or not yet: another command may be on the stream of a queue out of order.
        assert!(state == 0 || state == 600, "cuStreamQuery: {state}");
    }
    assert!(!handles.queue.is_null() && !handles.context.is_null() && handles.queue != handles.context);
    assert_eq!((context, device), (handles.context, handles.device.addr() as c_int));
}

/// Fills `SIZE` numbers by the stream, and waits for it.
pub(super) fn fill(handles: &Handles, memory: *mut u32, value: u32) {
    enqueue_fill(handles, memory, value);
    let driver = Driver::enter(handles.context);
    // SAFETY: the type is that of `cuda.h`, and the stream is live.
    unsafe {
        succeed("cuStreamSynchronize", driver.symbol::<Call<*mut c_void>>("cuStreamSynchronize")(handles.queue));
    }
}

/// Fills `SIZE` numbers by the stream.
pub(super) fn enqueue_fill(handles: &Handles, memory: *mut u32, value: u32) {
    type Fill = unsafe extern "system" fn(u64, c_uint, usize, *mut c_void) -> c_int;
    let driver = Driver::enter(handles.context);
    // SAFETY: the types are those of `cuda.h`; the memory is that of an accessor of the task's group, which has as many elements.
    unsafe {
        let fill = driver.symbol::<Fill>("cuMemsetD32Async");
        succeed("cuMemsetD32Async", fill(memory.addr() as u64, value, SIZE, handles.queue));
    }
}
