//! Fills: the driver's own for patterns of 1, 2 and 4 bytes, a kernel of this crate for all others.
//!
//! Patterns may hold padding, which must not be read; then the bytes go to the kernel as a parameter, copied as they are.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use oxisycl_backend::driver::{BoxShape, Pitches};
use oxisycl_backend::{BackendError, FillCommand};

use crate::context::Context;
use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::fill_kernels::{FillKernels, FillParameters, PATTERN_SIZE, Unit};
use crate::sys::{DevicePointer, RawFunction, code};
use crate::transfer::MAX_PITCH;

/// Threads of a block.
const BLOCK: u32 = 256;
/// Most blocks in `x`, and in the other dimensions.
const MAX_BLOCKS: [u64; 2] = [(1 << 31) - 1, 65_535];

/// Prepares what the fill needs on the device. Must not be called with a stream's lock held.
pub(crate) fn prepare(kernels: &FillKernels, context: &Arc<Context>, fill: &FillCommand) -> Result<(), BackendError> {
    let shape = shape_of(fill);
    if shape.is_empty() || value_of(fill, &shape).is_some() {
        return Ok(());
    }
    kernels.prepare(context)
}

fn shape_of(fill: &FillCommand) -> BoxShape {
    let [slices, rows, elements] = fill.extent;
    let pitches = Pitches { row: fill.target.row_pitch, slice: fill.target.slice_pitch };
    BoxShape::new([slices, rows, elements * fill.pattern.len()], &[pitches])
}

fn value_of(fill: &FillCommand, shape: &BoxShape) -> Option<Value> {
    fill.pattern.initialized().and_then(|bytes| Value::of(bytes, fill.target.pointer as DevicePointer, shape))
}

/// Puts a [prepared](prepare) fill on the emitter's stream. The context is current.
pub(crate) fn fill(kernels: &FillKernels, fill: &FillCommand, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
    let shape = shape_of(fill);
    if shape.is_empty() {
        return Ok(());
    }
    let target = fill.target.pointer as DevicePointer;
    match value_of(fill, &shape) {
        Some(value) => set(value, target, &shape, emitter),
        None => repeat(kernels, fill, target, &shape, emitter),
    }
}

/// A pattern that the driver fills with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    One(u8),
    Two(u16),
    Four(u32),
}

impl Value {
    /// The pattern as a number. `None` if the driver has no call for such a pattern, or the box is not aligned for it.
    fn of(pattern: &[u8], target: DevicePointer, shape: &BoxShape) -> Option<Self> {
        let pitches = shape.pitches[0];
        let is_aligned = |n: usize| {
            target.is_multiple_of(n as u64)
                && (shape.rows == 1 || pitches.row.is_multiple_of(n))
                && (shape.slices == 1 || pitches.slice.is_multiple_of(n))
        };
        if shape.rows > 1 && pitches.row > MAX_PITCH {
            return None;
        }
        if pattern.iter().all(|byte| *byte == pattern[0]) {
            return Some(Self::One(pattern[0]));
        }
        match *pattern {
            [a, b] if is_aligned(2) => Some(Self::Two(u16::from_ne_bytes([a, b]))),
            [a, b, c, d] if is_aligned(4) => Some(Self::Four(u32::from_ne_bytes([a, b, c, d]))),
            _ => None,
        }
    }
}

fn set(value: Value, target: DevicePointer, shape: &BoxShape, emitter: &mut Emitter<'_>) -> Result<(), DriverError> {
    let (width, rows, pitch) = (shape.width, shape.rows, shape.pitches[0].row);
    for slice in 0..shape.slices {
        let target = target + (slice * shape.pitches[0].slice) as u64;
        emitter.call(|driver, stream| {
            // SAFETY: the box is valid by the issuer's promise, and aligned for the value.
            unsafe {
                match (value, rows) {
                    (Value::One(value), 1) => driver.memset_d8_async(target, value, width, stream),
                    (Value::Two(value), 1) => driver.memset_d16_async(target, value, width / 2, stream),
                    (Value::Four(value), 1) => driver.memset_d32_async(target, value, width / 4, stream),
                    (Value::One(value), _) => driver.memset_d2d8_async(target, pitch, value, width, rows, stream),
                    (Value::Two(value), _) => driver.memset_d2d16_async(target, pitch, value, width / 2, rows, stream),
                    (Value::Four(value), _) => driver.memset_d2d32_async(target, pitch, value, width / 4, rows, stream),
                }
            }
        })?;
    }
    Ok(())
}

/// Fills by the kernel of this crate. Patterns longer than its parameter are cut into columns.
fn repeat(
    kernels: &FillKernels,
    fill: &FillCommand,
    target: DevicePointer,
    shape: &BoxShape,
    emitter: &mut Emitter<'_>,
) -> Result<(), DriverError> {
    let length = fill.pattern.len();
    let pitches = shape.pitches[0];
    if length <= PATTERN_SIZE {
        let mut parameters = FillParameters::new(fill.pattern.as_ptr(), length);
        parameters.target = target;
        (parameters.row_pitch, parameters.slice_pitch) = (pitches.row as u64, pitches.slice as u64);
        (parameters.rows, parameters.slices) = (shape.rows as u64, shape.slices as u64);
        return launch(kernels, parameters, shape.width, length, emitter);
    }
    for slice in 0..shape.slices {
        for begin in (0..length).step_by(PATTERN_SIZE) {
            let piece = PATTERN_SIZE.min(length - begin);
            // SAFETY: within the pattern.
            let mut parameters = FillParameters::new(unsafe { fill.pattern.as_ptr().add(begin) }, piece);
            // One row of the kernel's box is a piece of one element, one slice a row of elements.
            parameters.target = target + (slice * pitches.slice + begin) as u64;
            (parameters.row_pitch, parameters.rows) = (length as u64, (shape.width / length) as u64);
            (parameters.slice_pitch, parameters.slices) = (pitches.row as u64, shape.rows as u64);
            launch(kernels, parameters, piece, piece, emitter)?;
        }
    }
    Ok(())
}

/// Launches the kernel for rows of `width` bytes, which repeat a pattern of `length` bytes.
fn launch(
    kernels: &FillKernels,
    mut parameters: FillParameters,
    width: usize,
    length: usize,
    emitter: &mut Emitter<'_>,
) -> Result<(), DriverError> {
    let mut alignment = parameters.target | width as u64 | length as u64;
    if parameters.rows > 1 {
        alignment |= parameters.row_pitch;
    }
    if parameters.slices > 1 {
        alignment |= parameters.slice_pitch;
    }
    let unit = Unit::for_alignment(alignment);
    parameters.row_units = (width / unit.size()) as u64;
    parameters.period = (length / unit.size()) as u32;
    let function: RawFunction = kernels.function(unit)?;
    let blocks = parameters.row_units.div_ceil(u64::from(BLOCK));
    let Some(blocks) = u32::try_from(blocks).ok().filter(|blocks| u64::from(*blocks) <= MAX_BLOCKS[0]) else {
        return Err(DriverError { call: "cuLaunchKernel", code: code::INVALID_VALUE });
    };
    let grid = [parameters.rows, parameters.slices].map(|n| n.min(MAX_BLOCKS[1]) as u32);
    let parameters = MaybeUninit::new(parameters);
    let mut values = [parameters.as_ptr().cast_mut().cast::<c_void>()];
    emitter.call(|driver, stream| {
        // SAFETY: the kernel is this crate's, stays loaded as long as `kernels`, and takes this one parameter, which the driver copies. It
        // writes the box, which is valid by the issuer's promise.
        unsafe {
            let extra = std::ptr::null_mut();
            driver.launch_kernel(function, blocks, grid[0], grid[1], BLOCK, 1, 1, 0, stream, values.as_mut_ptr(), extra)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(extent: [usize; 3], row: usize, slice: usize) -> BoxShape {
        BoxShape::new(extent, &[Pitches { row, slice }])
    }

    #[test]
    fn the_driver_fills_with_aligned_numbers() {
        let line = shape([1, 1, 64], 0, 0);
        assert_eq!(Value::of(&[7], 3, &line), Some(Value::One(7)));
        assert_eq!(Value::of(&[1, 2], 2, &line), Some(Value::Two(u16::from_ne_bytes([1, 2]))));
        assert_eq!(Value::of(&[1, 2], 3, &line), None);
        assert_eq!(Value::of(&[1, 2, 3, 4], 8, &line), Some(Value::Four(u32::from_ne_bytes([1, 2, 3, 4]))));
        assert_eq!(Value::of(&[1, 2, 3, 4], 8, &shape([1, 2, 8], 10, 20)), None);
        assert_eq!(Value::of(&[1, 2, 3], 8, &line), None);
    }

    #[test]
    fn equal_bytes_are_one_byte_at_any_length() {
        assert_eq!(Value::of(&[5; 12], 1, &shape([2, 3, 24], 25, 100)), Some(Value::One(5)));
    }
}
