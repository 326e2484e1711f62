//! Allocations. Device memory is memory of the process, filled with a pattern, and counted against the device's size.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Mutex;

use crate::{Code, INVALID_VALUE, OUT_OF_MEMORY, SUCCESS, begin, begin_in_context, config, put};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Device,
    Host,
    Managed,
}

#[derive(Clone, Copy)]
struct Allocation {
    size: usize,
    kind: Kind,
    context: usize,
}

static ALLOCATIONS: Mutex<BTreeMap<u64, Allocation>> = Mutex::new(BTreeMap::new());

pub fn allocated() -> usize {
    ALLOCATIONS.lock().unwrap().values().map(|allocation| allocation.size).sum()
}

/// The kind of the allocation that `size` bytes at an address lie in.
pub fn kind_of(address: u64, size: usize) -> Option<Kind> {
    let allocations = ALLOCATIONS.lock().unwrap();
    let (base, allocation) = allocations.range(..=address).next_back()?;
    (address + size as u64 <= base + allocation.size as u64).then_some(allocation.kind)
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 512).unwrap()
}

fn allocate(kind: Kind, size: usize, context: usize) -> Result<u64, Code> {
    if size == 0 {
        return Err(INVALID_VALUE);
    }
    let mut allocations = ALLOCATIONS.lock().unwrap();
    let of_device = |a: &&Allocation| a.kind == Kind::Device && a.context == context;
    let used: usize = allocations.values().filter(of_device).map(|a| a.size).sum();
    if kind == Kind::Device && used + size > config(|config| config.memory) {
        return Err(OUT_OF_MEMORY);
    }
    // SAFETY: the size is not zero.
    let pointer = unsafe { alloc(layout(size)) };
    assert!(!pointer.is_null());
    // SAFETY: just allocated.
    unsafe { pointer.write_bytes(0xCD, size) };
    allocations.insert(pointer as u64, Allocation { size, kind, context });
    Ok(pointer as u64)
}

fn free(address: u64, host: bool) -> Code {
    let mut allocations = ALLOCATIONS.lock().unwrap();
    match allocations.get(&address) {
        Some(allocation) if (allocation.kind == Kind::Host) == host => {
            let size = allocation.size;
            allocations.remove(&address);
            // SAFETY: allocated by `allocate` with this size.
            unsafe { dealloc(address as *mut u8, layout(size)) };
            SUCCESS
        }
        _ => INVALID_VALUE,
    }
}

unsafe fn give<T>(pointer: *mut T, allocated: Result<u64, Code>, cast: impl FnOnce(u64) -> T) -> Code {
    match allocated {
        Ok(address) => {
            unsafe { put(pointer, cast(address)) };
            SUCCESS
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code {
    let context = begin_in_context!(cuMemGetInfo_v2);
    let allocations = ALLOCATIONS.lock().unwrap();
    let used: usize =
        allocations.values().filter(|a| a.kind == Kind::Device && a.context == context).map(|a| a.size).sum();
    let all = config(|config| config.memory);
    unsafe {
        put(free, all - used);
        put(total, all);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemAlloc_v2(pointer: *mut u64, size: usize) -> Code {
    let context = begin_in_context!(cuMemAlloc_v2);
    unsafe { give(pointer, allocate(Kind::Device, size, context), |address| address) }
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemFree_v2(pointer: u64) -> Code {
    begin_in_context!(cuMemFree_v2);
    free(pointer, false)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemHostAlloc(pointer: *mut *mut c_void, size: usize, _flags: c_uint) -> Code {
    let context = begin_in_context!(cuMemHostAlloc);
    unsafe { give(pointer, allocate(Kind::Host, size, context), |address| address as *mut c_void) }
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemFreeHost(pointer: *mut c_void) -> Code {
    begin_in_context!(cuMemFreeHost);
    free(pointer as u64, true)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemAllocManaged(pointer: *mut u64, size: usize, _flags: c_uint) -> Code {
    let context = begin_in_context!(cuMemAllocManaged);
    unsafe { give(pointer, allocate(Kind::Managed, size, context), |address| address) }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuPointerGetAttribute(data: *mut c_void, attribute: c_int, pointer: u64) -> Code {
    begin!(cuPointerGetAttribute);
    let Some(kind) = kind_of(pointer, 1) else { return INVALID_VALUE };
    match attribute {
        2 => unsafe { put(data.cast::<c_uint>(), if kind == Kind::Host { 1 } else { 2 }) },
        8 => unsafe { put(data.cast::<c_uint>(), c_uint::from(kind == Kind::Managed)) },
        _ => return INVALID_VALUE,
    }
    SUCCESS
}
