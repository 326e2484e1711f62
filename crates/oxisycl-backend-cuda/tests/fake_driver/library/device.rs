//! Devices, contexts and errors.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Mutex;

use crate::{
    Code, ILLEGAL_ADDRESS, INVALID_CONTEXT, INVALID_VALUE, NO_DEVICE, NOT_SUPPORTED, SUCCESS, begin, begin_in_context,
    config, put,
};

pub const MAX_DEVICES: usize = 8;

thread_local! {
    /// Contexts are devices plus one.
    static CURRENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Errors that a context keeps.
static STICKY: Mutex<[Code; MAX_DEVICES + 1]> = Mutex::new([SUCCESS; MAX_DEVICES + 1]);
static RETAINED: Mutex<[i64; MAX_DEVICES + 1]> = Mutex::new([0; MAX_DEVICES + 1]);

/// The current context, or the error of a call in it.
pub fn current() -> Result<usize, Code> {
    let context = CURRENT.with(|stack| stack.borrow().last().copied()).unwrap_or(0);
    if context == 0 {
        return Err(INVALID_CONTEXT);
    }
    match sticky(context) {
        SUCCESS => Ok(context),
        code => Err(code),
    }
}

pub fn sticky(context: usize) -> Code {
    STICKY.lock().unwrap()[context]
}

pub fn set_sticky(context: usize, code: Code) {
    let together = config(|config| config.lost_together);
    for (index, sticky) in STICKY.lock().unwrap().iter_mut().enumerate() {
        if *sticky == SUCCESS && (together || index == context) {
            *sticky = code;
        }
    }
}

#[unsafe(no_mangle)]
pub extern "system" fn cuInit(_flags: c_uint) -> Code {
    begin!(cuInit);
    config(|config| if config.init == SUCCESS && config.devices == 0 { NO_DEVICE } else { config.init })
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    begin!(cuDriverGetVersion);
    // SAFETY: as the driver API asks; so in all functions of this library.
    unsafe { put(version, config(|config| config.version)) };
    SUCCESS
}

const NAMES: &[(Code, &std::ffi::CStr, &std::ffi::CStr)] = &[
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (4, c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (218, c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
    (222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the provided PTX was compiled with an unsupported toolchain."),
    (400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    (ILLEGAL_ADDRESS, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
    (NOT_SUPPORTED, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGetErrorName(error: Code, name: *mut *const c_char) -> Code {
    let found = NAMES.iter().find(|(code, ..)| *code == error);
    unsafe { put(name, found.map_or(std::ptr::null(), |(_, name, _)| name.as_ptr())) };
    if found.is_some() { SUCCESS } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGetErrorString(error: Code, text: *mut *const c_char) -> Code {
    let found = NAMES.iter().find(|(code, ..)| *code == error);
    unsafe { put(text, found.map_or(std::ptr::null(), |(.., text)| text.as_ptr())) };
    if found.is_some() { SUCCESS } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    begin!(cuDeviceGetCount);
    unsafe { put(count, config(|config| config.devices)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    begin!(cuDeviceGet);
    unsafe { put(device, ordinal) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> Code {
    begin!(cuDeviceGetName);
    let text = format!("Fake GPU {device}\0");
    assert!(text.len() <= length as usize);
    unsafe { text.as_ptr().cast::<c_char>().copy_to_nonoverlapping(name, text.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) -> Code {
    begin!(cuDeviceTotalMem_v2);
    unsafe { put(bytes, config(|config| config.memory)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) -> Code {
    begin!(cuDeviceGetAttribute);
    let number = config(|config| match attribute {
        1..=3 => 1024,
        4 => 64,
        8 => 48 << 10,
        10 => 32,
        13 => 1_980_000,
        16 => 132,
        20 => 0,
        32 | 41 | 83 | 89 => 1,
        38 => 50 << 20,
        75 => config.sm / 10,
        76 => config.sm % 10,
        97 => 99 << 10,
        _ => 0,
    });
    unsafe { put(value, number) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> Code {
    begin!(cuDeviceCanAccessPeer);
    unsafe { put(can, c_int::from(device != peer && config(|config| config.peers))) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> Code {
    begin!(cuDevicePrimaryCtxRetain);
    RETAINED.lock().unwrap()[device as usize + 1] += 1;
    unsafe { put(context, device as usize + 1) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "system" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Code {
    begin!(cuDevicePrimaryCtxRelease_v2);
    RETAINED.lock().unwrap()[device as usize + 1] -= 1;
    SUCCESS
}

/// How often contexts are retained.
#[unsafe(no_mangle)]
pub extern "C" fn fake_retained() -> i64 {
    RETAINED.lock().unwrap().iter().sum()
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuCtxGetCurrent(context: *mut usize) -> Code {
    begin!(cuCtxGetCurrent);
    unsafe { put(context, CURRENT.with(|stack| stack.borrow().last().copied()).unwrap_or(0)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "system" fn cuCtxSetCurrent(context: usize) -> Code {
    begin!(cuCtxSetCurrent);
    CURRENT.with(|stack| {
        let mut stack = stack.borrow_mut();
        stack.pop();
        stack.push(context);
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "system" fn cuCtxPushCurrent_v2(context: usize) -> Code {
    begin!(cuCtxPushCurrent_v2);
    CURRENT.with(|stack| stack.borrow_mut().push(context));
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuCtxPopCurrent_v2(context: *mut usize) -> Code {
    begin!(cuCtxPopCurrent_v2);
    match CURRENT.with(|stack| stack.borrow_mut().pop()) {
        Some(popped) => {
            unsafe { put(context, popped) };
            SUCCESS
        }
        None => INVALID_CONTEXT,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> Code {
    begin_in_context!(cuCtxGetStreamPriorityRange);
    unsafe {
        put(least, 0);
        put(greatest, -5);
    }
    SUCCESS
}

/// Bytes of stack for each thread.
static STACK: Mutex<usize> = Mutex::new(1024);

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuCtxGetLimit(value: *mut usize, limit: c_int) -> Code {
    begin_in_context!(cuCtxGetLimit);
    assert_eq!(limit, 0);
    unsafe { put(value, *STACK.lock().unwrap()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "system" fn cuCtxSetLimit(limit: c_int, value: usize) -> Code {
    begin_in_context!(cuCtxSetLimit);
    assert_eq!(limit, 0);
    *STACK.lock().unwrap() = value.min(config(|config| config.most_stack));
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_stack() -> i64 {
    *STACK.lock().unwrap() as i64
}

#[unsafe(no_mangle)]
pub extern "system" fn cuCtxEnablePeerAccess(_peer: *mut c_void, _flags: c_uint) -> Code {
    begin_in_context!(cuCtxEnablePeerAccess);
    if config(|config| config.peers) { SUCCESS } else { 217 }
}
