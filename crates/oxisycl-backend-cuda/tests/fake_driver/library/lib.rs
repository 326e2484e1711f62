//! A CUDA driver without a GPU, for tests of what stands above it.
//!
//! Implements the calls that the backend uses with their real meaning. Streams are threads, and events and waits order them. Device memory
//! is process memory that no other code knows, and a few kernels are known by name. A test can make any call fail, and says how many
//! devices there are and how old the driver is.
//!
//! With `--cfg old_driver` it lacks the calls that drivers for CUDA 11 lack.
//!
//! Compiled by the tests into a library of its own, which is then loaded like the real one. Uses nothing but the standard library.

mod copies;
mod device;
#[cfg(not(old_driver))]
mod graphs;
mod hints;
mod kernels;
mod loads;
mod memory;
mod module;
mod stream;

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

pub type Code = i32;

pub const SUCCESS: Code = 0;
pub const DEINITIALIZED: Code = 4;
pub const INVALID_VALUE: Code = 1;
pub const OUT_OF_MEMORY: Code = 2;
pub const NO_DEVICE: Code = 100;
pub const INVALID_CONTEXT: Code = 201;
pub const INVALID_PTX: Code = 218;
pub const UNSUPPORTED_PTX_VERSION: Code = 222;
pub const INVALID_HANDLE: Code = 400;
pub const NOT_FOUND: Code = 500;
pub const NOT_READY: Code = 600;
pub const ILLEGAL_ADDRESS: Code = 700;
pub const NOT_SUPPORTED: Code = 801;

/// What the test wants the driver to be like.
pub struct Config {
    pub devices: i32,
    pub version: i32,
    pub sm: i32,
    pub peers: bool,
    /// Bytes of each device's memory.
    pub memory: usize,
    /// Most threads of a block of any kernel.
    pub max_threads: i32,
    /// Result of `cuInit`.
    pub init: Code,
    /// How much work a stream takes before launching waits.
    pub depth: usize,
    /// Whether one context's error is that of all.
    pub lost_together: bool,
    /// Whether streams keep what they are given, and begin nothing.
    pub paused: bool,
    /// Whether loading code waits for kernels, and lets none be launched meanwhile. `FAKE_DRIVER_LOADS_WAIT` does the same.
    pub loads_wait: bool,
    /// Whether a function gets the handle of one whose module was unloaded, as a real driver's may. A graph's node that is set to the handle
    /// that it has keeps its code then. A driver need not look at a function that it takes for the same.
    pub reuses_functions: bool,
    /// Most bytes of stack for a thread: what is asked for beyond that is cut off, and not refused.
    pub most_stack: usize,
}

#[derive(Default)]
struct Calls {
    counts: HashMap<String, u64>,
    /// Call, how many more of it succeed, and what it returns then.
    failures: Vec<(String, u64, Code)>,
}

static CONFIG: Mutex<Config> = Mutex::new(Config {
    devices: 1,
    version: 12_040,
    sm: 90,
    peers: false,
    memory: 1 << 30,
    max_threads: 1024,
    init: SUCCESS,
    depth: usize::MAX,
    lost_together: false,
    paused: false,
    loads_wait: false,
    reuses_functions: false,
    most_stack: usize::MAX,
});
static CALLS: Mutex<Option<Calls>> = Mutex::new(None);

pub fn config<T>(read: impl FnOnce(&Config) -> T) -> T {
    read(&CONFIG.lock().unwrap())
}

/// The process that made the first call.
static OWNER: AtomicU32 = AtomicU32::new(0);
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Ends a forked child that calls the driver: the driver does not work there, and its locks may be held.
fn check_process() {
    let process = std::process::id();
    if OWNER.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed).is_err_and(|owner| owner != process) {
        std::process::abort();
    }
}

/// Counts a call, and says how it is to fail, if it is.
pub fn count(name: &str) -> Code {
    check_process();
    if HAS_ENDED.load(Ordering::Acquire) {
        return DEINITIALIZED;
    }
    let mut calls = CALLS.lock().unwrap();
    let calls = calls.get_or_insert_default();
    *calls.counts.entry(name.to_owned()).or_default() += 1;
    for (call, left, code) in &mut calls.failures {
        if call == name {
            if *left == 0 {
                let code = *code;
                calls.failures.retain(|(call, ..)| call != name);
                return code;
            }
            *left -= 1;
        }
    }
    SUCCESS
}

/// Begins a call that needs no context.
#[macro_export]
macro_rules! begin {
    ($name:ident) => {
        match $crate::count(stringify!($name)) {
            $crate::SUCCESS => {}
            code => return code,
        }
    };
}

/// Begins a call that works in the current context, and fails with that context's error if there is one.
#[macro_export]
macro_rules! begin_in_context {
    ($name:ident) => {{
        $crate::begin!($name);
        match $crate::device::current() {
            Ok(context) => context,
            Err(code) => return code,
        }
    }};
}

/// Writes the result of a call.
///
/// # Safety
/// The pointer is valid, as the driver API asks.
pub unsafe fn put<T>(pointer: *mut T, value: T) {
    // SAFETY: by the contract of this function.
    unsafe { pointer.write(value) }
}

fn text<'a>(pointer: *const c_char) -> &'a str {
    // SAFETY: the tests pass strings that end with a NUL byte.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap()
}

/// Changes the configuration: `key=value`.
#[unsafe(no_mangle)]
pub extern "C" fn fake_set(key: *const c_char, value: i64) {
    let mut config = CONFIG.lock().unwrap();
    match text(key) {
        "devices" => config.devices = value as i32,
        "version" => config.version = value as i32,
        "sm" => config.sm = value as i32,
        "peers" => config.peers = value != 0,
        "memory" => config.memory = value as usize,
        "most_stack" => config.most_stack = value as usize,
        "max_threads" => config.max_threads = value as i32,
        "depth" => config.depth = value as usize,
        "lost_together" => config.lost_together = value != 0,
        "paused" => config.paused = value != 0,
        "loads_wait" => config.loads_wait = value != 0,
        "reuses_functions" => config.reuses_functions = value != 0,
        "init" => config.init = value as i32,
        other => panic!("no setting {other}"),
    }
}

/// Lets a call fail, after `skip` that succeed.
#[unsafe(no_mangle)]
pub extern "C" fn fake_fail(name: *const c_char, skip: u64, code: Code) {
    CALLS.lock().unwrap().get_or_insert_default().failures.push((text(name).to_owned(), skip, code));
}

/// Lets the driver end with the process: from the handlers of `exit` on, no call does anything.
#[unsafe(no_mangle)]
pub extern "C" fn fake_end_with_process() {
    unsafe extern "C" {
        safe fn atexit(function: extern "C" fn()) -> i32;
    }
    extern "C" fn end() {
        HAS_ENDED.store(true, Ordering::Release);
    }
    assert_eq!(atexit(end), 0);
}

/// How often a call was made.
#[unsafe(no_mangle)]
pub extern "C" fn fake_count(name: *const c_char) -> u64 {
    CALLS.lock().unwrap().get_or_insert_default().counts.get(text(name)).copied().unwrap_or(0)
}

/// Bytes of device memory and of pinned memory that are allocated.
#[unsafe(no_mangle)]
pub extern "C" fn fake_allocated() -> u64 {
    memory::allocated() as u64
}
