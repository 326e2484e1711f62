//! Copies: between host and device, within a device, and between devices.
//!
//! Addresses are unified, so most copies are the same call. Host memory that the driver does not know, because it was allocated elsewhere,
//! is treated separately here. With it the driver's asynchronous calls may wait for the device.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use oxisycl_backend::driver::{BoxShape, Pitches};
use oxisycl_backend::{BackendError, Command, CopyCommand, MemoryId, PitchedBox};

use crate::context::Context;
use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::memory::CudaMemory;
use crate::sys::{self, Copy2D, Copy3D, DevicePointer, End2D, End3D, RawContext};

/// The largest pitch that the driver accepts, on all devices so far.
pub(crate) const MAX_PITCH: usize = i32::MAX as usize;

/// Whether a thread of the host has to execute the command, since it uses host memory that the driver does not know.
pub(crate) fn needs_host(context: &Context, command: &Command) -> Result<bool, BackendError> {
    let (boxes, extent) = match command {
        Command::Copy(copy) => ([Some(copy.source), Some(copy.target)], copy.extent),
        Command::Fill(fill) => {
            let [slices, rows, elements] = fill.extent;
            ([Some(fill.target), None], [slices, rows, elements * fill.pattern.len()])
        }
        _ => return Ok(false),
    };
    if boxes.iter().flatten().all(|pitched| pitched.memory != MemoryId::HOST) {
        return Ok(false);
    }
    let _entered = context.enter()?;
    Ok(boxes.iter().flatten().any(|pitched| is_unknown(context, pitched, extent)))
}

/// Whether a box lies in memory of the host that the driver does not know. The context is current.
pub(crate) fn is_unknown(context: &Context, pitched: &PitchedBox, extent: [usize; 3]) -> bool {
    let [slices, rows, width] = extent;
    if pitched.memory != MemoryId::HOST || slices == 0 || rows == 0 || width == 0 {
        return false;
    }
    let last = (slices - 1) * pitched.slice_pitch + (rows - 1) * pitched.row_pitch + width - 1;
    let first = pitched.pointer as DevicePointer;
    let mut kind: c_uint = 0;
    [first, first + last as u64]
        .into_iter()
        .any(|pointer| attribute(context, (&raw mut kind).cast(), sys::POINTER_MEMORY_TYPE, pointer).is_err())
}

/// Whether the memory is managed by the driver, and so migrates between host and device.
pub(crate) fn is_managed(context: &Context, pointer: DevicePointer) -> bool {
    let mut is_managed: c_uint = 0;
    let asked = attribute(context, (&raw mut is_managed).cast(), sys::POINTER_IS_MANAGED, pointer);
    asked.is_ok() && is_managed & 0xFF != 0
}

fn attribute(
    context: &Context,
    value: *mut c_void,
    attribute: c_int,
    pointer: DevicePointer,
) -> Result<(), DriverError> {
    // SAFETY: both attributes asked for are at most four bytes, which `value` has; any pointer may be asked about.
    unsafe { context.driver.pointer_get_attribute(value, attribute, pointer) }
}

/// One end of a copy.
#[derive(Clone, Copy)]
struct End {
    pointer: DevicePointer,
    pitches: Pitches,
    /// The context of a device's memory.
    context: Option<RawContext>,
    /// The memory type, as the driver's structures encode it.
    kind: c_uint,
}

/// Puts a copy on the emitter's stream. The context is current.
pub(crate) fn copy(memory: &CudaMemory, copy: &CopyCommand, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
    let end = |pitched: &PitchedBox| End {
        pointer: pitched.pointer as DevicePointer,
        pitches: Pitches { row: pitched.row_pitch, slice: pitched.slice_pitch },
        context: memory.peers.context_of(pitched.memory),
        kind: if is_unknown(&memory.context, pitched, copy.extent) {
            sys::MEMORY_TYPE_HOST
        } else {
            sys::MEMORY_TYPE_UNIFIED
        },
    };
    let (source, target) = (end(&copy.source), end(&copy.target));
    let shape = BoxShape::new(copy.extent, &[source.pitches, target.pitches]);
    if shape.is_empty() {
        return Ok(());
    }
    let mut ends = [source, target];
    for (end, pitches) in ends.iter_mut().zip(&shape.pitches) {
        end.pitches = *pitches;
    }
    let peers = match ends.map(|end| end.context) {
        [Some(source), Some(target)] if source != target => {
            memory.peers.enable_peers(&memory.context, source, target);
            true
        }
        _ => false,
    };
    emit(&shape, ends, peers, emitter)
}

fn emit(shape: &BoxShape, ends: [End; 2], peers: bool, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
    if shape.slices == 1 && shape.rows == 1 {
        return copy_row(shape.width, ends, peers, emitter);
    }
    if ends.iter().any(|end| end.pitches.row > MAX_PITCH) {
        return for_each_row(shape, ends, |ends| copy_row(shape.width, ends, peers, emitter));
    }
    let is_regular = |end: &End| end.pitches.row > 0 && end.pitches.slice.is_multiple_of(end.pitches.row);
    if peers || shape.slices > 1 {
        if shape.slices > 1 && !ends.iter().all(is_regular) {
            return for_each_slice(shape, ends, |ends| copy_slices(shape, 1, ends, peers, emitter));
        }
        return copy_slices(shape, shape.slices, ends, peers, emitter);
    }
    copy_rows(shape, ends, emitter)
}

fn copy_row(width: usize, ends: [End; 2], peers: bool, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
    let [source, target] = ends;
    emitter.call(|driver, stream| match (source.context, target.context) {
        // SAFETY: both ends are valid for the command's box, by the issuer's promise.
        (Some(from), Some(to)) if peers => unsafe {
            driver.memcpy_peer_async(target.pointer, to, source.pointer, from, width, stream)
        },
        // SAFETY: as above.
        _ => unsafe { driver.memcpy_async(target.pointer, source.pointer, width, stream) },
    })
}

fn copy_rows(shape: &BoxShape, [source, target]: [End; 2], emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
    let end = |end: End| End2D {
        x: 0,
        y: 0,
        memory_type: end.kind,
        host: end.pointer as *mut c_void,
        device: end.pointer,
        array: ptr::null_mut(),
        pitch: end.pitches.row,
    };
    let copy = Copy2D { source: end(source), target: end(target), width: shape.width, height: shape.rows };
    // SAFETY: the structure describes the command's boxes, which are valid by the issuer's promise; it is read by the call.
    emitter.call(|driver, stream| unsafe { driver.memcpy_2d_async(&raw const copy, stream) })
}

fn copy_slices(
    shape: &BoxShape,
    slices: usize,
    [source, target]: [End; 2],
    peers: bool,
    emitter: &mut Emitter<'_>,
) -> Result<(), DriverError> {
    let end = |end: End| End3D {
        x: 0,
        y: 0,
        z: 0,
        level: 0,
        memory_type: end.kind,
        host: end.pointer as *mut c_void,
        device: end.pointer,
        array: ptr::null_mut(),
        context: end.context.filter(|_| peers).unwrap_or(RawContext::NULL),
        pitch: end.pitches.row,
        height: if slices == 1 { shape.rows } else { end.pitches.slice / end.pitches.row },
    };
    let (source, target) = (end(source), end(target));
    let copy = Copy3D { source, target, width: shape.width, height: shape.rows, depth: slices };
    // SAFETY: as in `copy_rows`.
    emitter.call(|driver, stream| unsafe {
        if peers {
            driver.memcpy_3d_peer_async(&raw const copy, stream)
        } else {
            driver.memcpy_3d_async(&raw const copy, stream)
        }
    })
}

fn for_each_slice(
    shape: &BoxShape,
    ends: [End; 2],
    mut call: impl FnMut([End; 2]) -> Result<(), DriverError>,
) -> Result<(), DriverError> {
    (0..shape.slices).try_for_each(|slice| {
        call(ends.map(|end| End { pointer: end.pointer + (slice * end.pitches.slice) as u64, ..end }))
    })
}

fn for_each_row(
    shape: &BoxShape,
    ends: [End; 2],
    mut call: impl FnMut([End; 2]) -> Result<(), DriverError>,
) -> Result<(), DriverError> {
    for_each_slice(shape, ends, |ends| {
        (0..shape.rows).try_for_each(|row| {
            call(ends.map(|end| End { pointer: end.pointer + (row * end.pitches.row) as u64, ..end }))
        })
    })
}
