//! Modules: the names of kernels and the sizes of their parameters are all that is looked at.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::kernels::{Kernel, RAN_DIRECTLY, handle, signature, unload};
use crate::loads::{Launched, wait_for_kernels};
use crate::stream::Stream;
use crate::{
    Code, INVALID_PTX, INVALID_VALUE, NOT_FOUND, SUCCESS, UNSUPPORTED_PTX_VERSION, begin_in_context, config, put,
};

static LOADED: AtomicI64 = AtomicI64::new(0);
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// How many modules are loaded.
#[unsafe(no_mangle)]
pub extern "C" fn fake_modules() -> i64 {
    LOADED.load(Ordering::SeqCst)
}

pub struct Module {
    /// The number that no other module has.
    number: u64,
    /// Kernels with the sizes of their parameters.
    kernels: Vec<(String, Vec<usize>)>,
}

/// The kernels in a text.
fn kernels(text: &str) -> Vec<(String, Vec<usize>)> {
    let after_entry = text.split(".entry ").skip(1);
    let kernel = |text: &str| {
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        let parameters = rest.split(')').next().unwrap_or_default();
        (name.trim().to_owned(), parameters.split(".param ").skip(1).map(size).collect())
    };
    after_entry.map(kernel).collect()
}

/// The size of a parameter such as `.align 8 .b8 name[16]` or `.u64 name`.
fn size(parameter: &str) -> usize {
    let words = parameter.split_whitespace();
    let bits = words.filter_map(|word| word.strip_prefix(['.'])?.strip_prefix(['b', 'u', 's', 'f'])?.parse::<usize>().ok());
    let length = parameter.split_once('[').and_then(|(_, rest)| rest.split(']').next()?.trim().parse::<usize>().ok());
    bits.last().unwrap_or(0) / 8 * length.unwrap_or(1)
}

/// The newest PTX that a driver takes, times ten.
fn newest_ptx(version: c_int) -> u32 {
    let (major, minor) = ((version / 1000) as u32, (version % 1000 / 10) as u32);
    match major {
        ..=11 => 70 + minor,
        12 => 80 + minor,
        _ => 90 + minor,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuModuleLoadDataEx(
    module: *mut *mut Module,
    image: *const c_void,
    n_options: c_uint,
    options: *mut c_int,
    values: *mut *mut c_void,
) -> Code {
    begin_in_context!(cuModuleLoadDataEx);
    wait_for_kernels();
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_str().unwrap();
    // What the compiler is to be like is a comment of the text.
    if let Some(time) = text.lines().find_map(|line| line.strip_prefix("// takes milliseconds: ")) {
        std::thread::sleep(std::time::Duration::from_millis(time.parse().unwrap()));
    }
    if text.contains("// crashes the driver") && std::env::var_os("FAKE_DRIVER_CRASHES").is_some() {
        std::process::abort();
    }
    let log = |message: &str| unsafe {
        let at = |option: c_int| (0..n_options as usize).find(|i| *options.add(*i) == option).unwrap();
        let (buffer, size) = (*values.add(at(5)), *values.add(at(6)) as usize);
        let length = message.len().min(size - 1);
        message.as_ptr().copy_to_nonoverlapping(buffer.cast(), length);
        buffer.cast::<u8>().add(length).write(0);
    };
    let version = text.lines().find_map(|line| line.trim().strip_prefix(".version "));
    let Some((major, minor)) = version.and_then(|version| version.trim().split_once('.')) else {
        log("ptxas fatal   : Missing .version directive at start of file");
        return INVALID_PTX;
    };
    let version = major.parse::<u32>().unwrap() * 10 + minor.parse::<u32>().unwrap();
    if version > newest_ptx(config(|config| config.version)) {
        log("ptxas application ptx input, line 1; fatal   : Unsupported .version");
        return UNSUPPORTED_PTX_VERSION;
    }
    if let Some(line) = text.lines().position(|line| line.contains("syntax error")) {
        log(&format!("ptxas application ptx input, line {}; error   : Parsing error near 'error'", line + 1));
        return INVALID_PTX;
    }
    LOADED.fetch_add(1, Ordering::SeqCst);
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    if let Some(folder) = std::env::var_os("FAKE_DRIVER_KEEPS_CODE") {
        std::fs::write(std::path::Path::new(&folder).join(format!("{number}.ptx")), text).unwrap();
    }
    let loaded = Module { number, kernels: kernels(text) };
    unsafe { put(module, Box::into_raw(Box::new(loaded))) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuModuleUnload(module: *mut Module) -> Code {
    begin_in_context!(cuModuleUnload);
    LOADED.fetch_sub(1, Ordering::SeqCst);
    unload(unsafe { Box::from_raw(module) }.number);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuModuleGetFunction(
    function: *mut usize,
    module: *mut Module,
    name: *const c_char,
) -> Code {
    begin_in_context!(cuModuleGetFunction);
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
    let module = unsafe { &*module };
    let found = module.kernels.iter().find(|(known, _)| known == name);
    let Some((name, sizes)) = found else { return NOT_FOUND };
    unsafe { put(function, handle(module.number, name, sizes)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuFuncSetAttribute(function: usize, attribute: c_int, value: c_int) -> Code {
    begin_in_context!(cuFuncSetAttribute);
    // Dynamic local memory, of which the device has 99 KiB for a group.
    if attribute != 8 || !(0..=99 << 10).contains(&value) {
        return INVALID_VALUE;
    }
    ALLOWED.lock().unwrap().push((function, value as usize));
    SUCCESS
}

/// The dynamic local memory that functions may have beyond 48 KiB.
static ALLOWED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, _function: usize) -> Code {
    begin_in_context!(cuFuncGetAttribute);
    let number = match attribute {
        0 => config(|config| config.max_threads),
        // Bytes that all threads of a block share.
        1 => 8,
        // Bytes of local memory.
        3 => 700,
        // Registers.
        4 => 40,
        _ => return INVALID_VALUE,
    };
    unsafe { put(value, number) };
    SUCCESS
}

#[cfg(not(old_driver))]
#[unsafe(no_mangle)]
pub extern "system" fn cuFuncLoad(function: usize) -> Code {
    begin_in_context!(cuFuncLoad);
    wait_for_kernels();
    signature(function).map_or_else(|code| code, |_| SUCCESS)
}

#[cfg(not(old_driver))]
#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuFuncGetParamInfo(
    function: usize,
    index: usize,
    offset: *mut usize,
    size: *mut usize,
) -> Code {
    begin_in_context!(cuFuncGetParamInfo);
    let sizes = match signature(function) {
        Ok((_, sizes)) => sizes,
        Err(code) => return code,
    };
    let Some(found) = sizes.get(index) else { return INVALID_VALUE };
    unsafe {
        put(offset, 0);
        put(size, *found);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuOccupancyMaxPotentialBlockSize(
    grid: *mut c_int,
    block: *mut c_int,
    _function: usize,
    _memory: *const c_void,
    _memory_size: usize,
    limit: c_int,
) -> Code {
    begin_in_context!(cuOccupancyMaxPotentialBlockSize);
    let most = config(|config| config.max_threads);
    unsafe {
        put(grid, 132);
        put(block, if limit > 0 { limit.min(most) } else { most });
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    function: usize,
    threads: c_int,
    memory_size: usize,
) -> Code {
    begin_in_context!(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    let is_allowed = |(of, bytes): &(usize, usize)| *of == function && *bytes >= memory_size;
    let fits = memory_size <= 48 << 10 || ALLOWED.lock().unwrap().iter().any(is_allowed);
    unsafe { put(blocks, if fits { 2048 / threads.max(1) } else { 0 }) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuLaunchKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    _shared: c_uint,
    stream: usize,
    parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> Code {
    begin_in_context!(cuLaunchKernel);
    // SAFETY: as the driver API asks: one pointer per parameter.
    let kernel = unsafe { Kernel::new(function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z], parameters) };
    let kernel = match kernel {
        Ok(kernel) => kernel,
        Err(code) => return code,
    };
    // SAFETY: as above.
    let stream = unsafe { Stream::of(stream) };
    stream.wait_for_room();
    let launched = Launched::new();
    stream.push(move || {
        let code = kernel.run_and_count(&RAN_DIRECTLY);
        drop(launched);
        code
    });
    SUCCESS
}
