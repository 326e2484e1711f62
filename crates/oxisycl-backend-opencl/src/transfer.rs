//! Copies: between host and device, and within a device.
//!
//! OpenCL copies one row at a time between addresses. Boxes that are more than one row when gaps are left out take a call for each row, and
//! these copies may overlap. The host's end may be any memory of the process: the driver reads or writes it when the command runs.

use oxisycl_backend::CopyCommand;
use oxisycl_backend::driver::{BoxShape, Pitches};

use crate::emitter::Emitter;
use crate::error::Result;

/// Puts a copy on the emitter's queue.
pub(crate) fn copy(copy: &CopyCommand, emitter: &mut Emitter<'_>) -> Result<()> {
    let boxes = [&copy.source, &copy.target];
    let pitches = boxes.map(|pitched| Pitches { row: pitched.row_pitch, slice: pitched.slice_pitch });
    let shape = BoxShape::new(copy.extent, &pitches);
    if shape.is_empty() {
        return Ok(());
    }
    for_each_row(&shape, |[source, target]| {
        let (source, target) = (copy.source.pointer.wrapping_add(source), copy.target.pointer.wrapping_add(target));
        // SAFETY: a row of both boxes, which are valid by the issuer's promise until the command has ended, and do not overlap.
        unsafe { copy_row(emitter, source, target, shape.width) }
    })
}

/// Puts a copy of one row on the emitter's queue.
///
/// # Safety
/// Both rows are valid until the command has ended, and do not overlap; nothing outside the order of commands uses them.
pub(crate) unsafe fn copy_row(
    emitter: &mut Emitter<'_>,
    source: *const u8,
    target: *mut u8,
    width: usize,
) -> Result<()> {
    let sharing = &emitter.context().sharing;
    let copy = sharing.copy;
    emitter.call(sharing.copy_name, |_, queue, n, list, event| {
        // SAFETY: by the contract of this function; queue and events are live, and the call does not block.
        unsafe { copy(queue, 0, target.cast(), source.cast(), width, n, list, event) }
    })
}

/// Calls `f` with the offsets of each row, one per box of the shape.
pub(crate) fn for_each_row<const N: usize>(
    shape: &BoxShape,
    mut f: impl FnMut([usize; N]) -> Result<()>,
) -> Result<()> {
    for slice in 0..shape.slices {
        for row in 0..shape.rows {
            f(std::array::from_fn(|i| slice * shape.pitches[i].slice + row * shape.pitches[i].row))?;
        }
    }
    Ok(())
}
