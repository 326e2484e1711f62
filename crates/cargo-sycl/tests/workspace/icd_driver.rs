//! An OpenCL driver with one platform and no device, as far as a loader asks: a library that a test compiles. With `--cfg ends` it ends
//! the process instead.

use std::ffi::{CStr, c_char, c_void};

#[unsafe(no_mangle)]
pub extern "system" fn clGetExtensionFunctionAddress(name: *const c_char) -> *mut c_void {
    if cfg!(ends) {
        std::process::abort();
    }
    // SAFETY: OpenCL passes a name that ends with a zero.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"clIcdGetPlatformIDsKHR" => platforms as *mut c_void,
        b"clGetPlatformInfo" => information as *mut c_void,
        _ => std::ptr::null_mut(),
    }
}

extern "system" fn platforms(n_entries: u32, platforms: *mut *mut c_void, n_platforms: *mut u32) -> i32 {
    println!("a driver that talks");
    // SAFETY: OpenCL passes room for so many platforms, and for their number.
    unsafe {
        *n_platforms = 1;
        if n_entries > 0 {
            *platforms = std::ptr::dangling_mut();
        }
    }
    0
}

extern "system" fn information(_: *mut c_void, what: u32, n: usize, value: *mut c_void, size: *mut usize) -> i32 {
    let text: &[u8] = if what == 0x0902 { b"Made for a test\0" } else { b"OpenCL 3.0 fake\0" };
    assert!(n >= text.len());
    // SAFETY: there is room for the text, and for its size.
    unsafe {
        value.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        *size = text.len();
    }
    0
}
