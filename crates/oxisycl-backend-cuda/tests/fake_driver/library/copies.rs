//! Copies and fills. As in the real driver, a copy of memory that was not allocated by it waits for the stream.

use std::ffi::{c_uint, c_void};

use crate::memory::kind_of;
use crate::stream::Stream;
use crate::{Code, ILLEGAL_ADDRESS, INVALID_VALUE, SUCCESS, begin_in_context};

/// Rows of bytes: address, bytes from row to row, bytes from slice to slice.
#[derive(Clone, Copy)]
struct End {
    address: u64,
    row: usize,
    slice: usize,
}

impl End {
    fn at(&self, slice: usize, row: usize) -> u64 {
        self.address + (slice * self.slice + row * self.row) as u64
    }

    fn is_known(&self) -> bool {
        kind_of(self.address, 1).is_some()
    }
}

/// Puts a copy on a stream.
fn copy(stream: usize, source: End, target: End, [slices, rows, width]: [usize; 3]) -> Code {
    // SAFETY: as the driver API asks.
    let stream = unsafe { Stream::of(stream) };
    let is_pageable = !source.is_known() || !target.is_known();
    stream.push(move || {
        for slice in 0..slices {
            for row in 0..rows {
                let (from, to) = (source.at(slice, row), target.at(slice, row));
                let is_valid = |end: &End, address| !end.is_known() || kind_of(address, width).is_some();
                if !is_valid(&source, from) || !is_valid(&target, to) {
                    return ILLEGAL_ADDRESS;
                }
                // SAFETY: known allocations were checked; other memory is the caller's promise.
                unsafe { (from as *const u8).copy_to_nonoverlapping(to as *mut u8, width) };
            }
        }
        SUCCESS
    });
    if is_pageable {
        stream.synchronize();
    }
    SUCCESS
}

fn line(address: u64) -> End {
    End { address, row: 0, slice: 0 }
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemcpyAsync(target: u64, source: u64, size: usize, stream: usize) -> Code {
    begin_in_context!(cuMemcpyAsync);
    copy(stream, line(source), line(target), [1, 1, size])
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemcpyPeerAsync(
    target: u64,
    target_context: usize,
    source: u64,
    source_context: usize,
    size: usize,
    stream: usize,
) -> Code {
    begin_in_context!(cuMemcpyPeerAsync);
    if target_context == 0 || source_context == 0 || target_context == source_context {
        return INVALID_VALUE;
    }
    copy(stream, line(source), line(target), [1, 1, size])
}

#[repr(C)]
pub struct Part2D {
    x: usize,
    y: usize,
    kind: c_uint,
    host: *mut c_void,
    device: u64,
    array: *mut c_void,
    pitch: usize,
}

#[repr(C)]
pub struct Copy2D {
    source: Part2D,
    target: Part2D,
    width: usize,
    height: usize,
}

fn address(kind: c_uint, host: *mut c_void, device: u64) -> u64 {
    match kind {
        1 => host as u64,
        4 => device,
        other => panic!("memory type {other}"),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemcpy2DAsync_v2(description: *const Copy2D, stream: usize) -> Code {
    begin_in_context!(cuMemcpy2DAsync_v2);
    let copy_2d = unsafe { &*description };
    let end = |part: &Part2D| {
        assert!(part.x == 0 && part.y == 0 && part.array.is_null());
        End { address: address(part.kind, part.host, part.device), row: part.pitch, slice: 0 }
    };
    if copy_2d.source.pitch < copy_2d.width || copy_2d.target.pitch < copy_2d.width {
        return INVALID_VALUE;
    }
    copy(stream, end(&copy_2d.source), end(&copy_2d.target), [1, copy_2d.height, copy_2d.width])
}

#[repr(C)]
pub struct Part3D {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: c_uint,
    host: *mut c_void,
    device: u64,
    array: *mut c_void,
    context: usize,
    pitch: usize,
    height: usize,
}

#[repr(C)]
pub struct Copy3D {
    source: Part3D,
    target: Part3D,
    width: usize,
    height: usize,
    depth: usize,
}

fn copy_3d(description: &Copy3D, stream: usize) -> Code {
    let end = |part: &Part3D| {
        assert!(part.x == 0 && part.y == 0 && part.z == 0 && part.level == 0 && part.array.is_null());
        let slice = part.pitch * part.height;
        End { address: address(part.kind, part.host, part.device), row: part.pitch, slice }
    };
    let is_valid = |part: &Part3D| part.pitch >= description.width && part.height >= description.height;
    if !is_valid(&description.source) || !is_valid(&description.target) {
        return INVALID_VALUE;
    }
    let extent = [description.depth, description.height, description.width];
    copy(stream, end(&description.source), end(&description.target), extent)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemcpy3DAsync_v2(description: *const Copy3D, stream: usize) -> Code {
    begin_in_context!(cuMemcpy3DAsync_v2);
    let description = unsafe { &*description };
    assert!(description.source.context == 0 && description.target.context == 0);
    copy_3d(description, stream)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuMemcpy3DPeerAsync(description: *const Copy3D, stream: usize) -> Code {
    begin_in_context!(cuMemcpy3DPeerAsync);
    let description = unsafe { &*description };
    if description.source.context == 0 || description.target.context == 0 {
        return INVALID_VALUE;
    }
    copy_3d(description, stream)
}

fn set<const N: usize>(target: u64, pitch: usize, value: [u8; N], [rows, width]: [usize; 2], stream: usize) -> Code {
    if !target.is_multiple_of(N as u64) || (rows > 1 && (!pitch.is_multiple_of(N) || pitch < width * N)) {
        return INVALID_VALUE;
    }
    // SAFETY: as the driver API asks.
    let stream = unsafe { Stream::of(stream) };
    stream.push(move || {
        for row in 0..rows {
            let begin = target + (row * pitch) as u64;
            if kind_of(begin, width * N).is_none() {
                return ILLEGAL_ADDRESS;
            }
            for element in 0..width {
                // SAFETY: within an allocation, as was just checked.
                unsafe { ((begin as *mut u8).add(element * N)).cast::<[u8; N]>().write_unaligned(value) };
            }
        }
        SUCCESS
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemsetD8Async(target: u64, value: u8, count: usize, stream: usize) -> Code {
    begin_in_context!(cuMemsetD8Async);
    set(target, 0, [value], [1, count], stream)
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemsetD16Async(target: u64, value: u16, count: usize, stream: usize) -> Code {
    begin_in_context!(cuMemsetD16Async);
    set(target, 0, value.to_ne_bytes(), [1, count], stream)
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemsetD32Async(target: u64, value: u32, count: usize, stream: usize) -> Code {
    begin_in_context!(cuMemsetD32Async);
    set(target, 0, value.to_ne_bytes(), [1, count], stream)
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemsetD2D8Async(
    target: u64,
    pitch: usize,
    value: u8,
    width: usize,
    height: usize,
    stream: usize,
) -> Code {
    begin_in_context!(cuMemsetD2D8Async);
    set(target, pitch, [value], [height, width], stream)
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemsetD2D16Async(
    target: u64,
    pitch: usize,
    value: u16,
    width: usize,
    height: usize,
    stream: usize,
) -> Code {
    begin_in_context!(cuMemsetD2D16Async);
    set(target, pitch, value.to_ne_bytes(), [height, width], stream)
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemsetD2D32Async(
    target: u64,
    pitch: usize,
    value: u32,
    width: usize,
    height: usize,
    stream: usize,
) -> Code {
    begin_in_context!(cuMemsetD2D32Async);
    set(target, pitch, value.to_ne_bytes(), [height, width], stream)
}
