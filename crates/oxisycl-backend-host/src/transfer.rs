//! Copies and fills of pitched boxes, cut anywhere.
//!
//! A box is seen as the sequence of its units in row-major order: bytes of a copy, elements of a fill. A range of that sequence is a
//! list of row pieces. Owns nothing; the caller promises that the memory is valid.

use std::ptr;

use oxisycl_backend::{CopyCommand, FillCommand, FillPattern, PitchedBox};

/// Longest block of repeated pattern that is built by doubling before it is copied as a whole; stays in the first-level cache.
const BLOCK: usize = 8 << 10;

/// The number of units of a box, or `None` if it overflows.
pub(crate) fn units(extent: &[usize; 3]) -> Option<usize> {
    extent[0].checked_mul(extent[1])?.checked_mul(extent[2])
}

/// Calls `piece(slice, row, first, count)` for the row pieces that make up `begin..end`.
fn for_each_piece(extent: &[usize; 3], begin: usize, end: usize, mut piece: impl FnMut(usize, usize, usize, usize)) {
    if begin >= end {
        return;
    }
    let [_, rows, length] = *extent;
    let (mut line, mut first) = (begin / length, begin % length);
    let (mut slice, mut row) = (line / rows, line % rows);
    let mut left = end - begin;
    while left > 0 {
        let count = left.min(length - first);
        piece(slice, row, first, count);
        left -= count;
        first = 0;
        line += 1;
        row += 1;
        if row == rows {
            (slice, row) = (line / rows, 0);
        }
    }
}

/// The extent with rows that follow each other without a gap merged into one.
fn merge_rows(extent: [usize; 3], unit: usize, boxes: &[PitchedBox]) -> [usize; 3] {
    let [slices, rows, length] = extent;
    let dense_rows = rows == 1 || boxes.iter().all(|b| b.row_pitch == length * unit);
    let dense_slices = slices == 1 || boxes.iter().all(|b| b.slice_pitch == rows * length * unit);
    match (dense_rows, dense_slices) {
        (true, true) => [1, 1, slices * rows * length],
        (true, false) => [slices, 1, rows * length],
        _ => extent,
    }
}

fn address(pitched: &PitchedBox, slice: usize, row: usize, byte: usize) -> *mut u8 {
    let offset = slice * pitched.slice_pitch + row * pitched.row_pitch + byte;
    pitched.pointer.wrapping_add(offset)
}

/// Copies the bytes `begin..end` of the box, counted in row-major order.
///
/// # Safety
/// Both boxes are valid for the command's extent and do not overlap. Nothing else uses the target's range. `end` is at
/// most `units(extent)`, which is not `None`.
pub(crate) unsafe fn copy_range(copy: &CopyCommand, begin: usize, end: usize) {
    let extent = merge_rows(copy.extent, 1, &[copy.source, copy.target]);
    for_each_piece(&extent, begin, end, |slice, row, first, count| {
        let source = address(&copy.source, slice, row, first);
        let target = address(&copy.target, slice, row, first);
        // SAFETY: the piece lies in row `row` of slice `slice` of both boxes, which the caller promises to be valid and disjoint.
        unsafe { ptr::copy_nonoverlapping(source, target, count) };
    });
}

/// Fills the elements `begin..end` of the box, counted in row-major order.
///
/// # Safety
/// The box is valid for the command's extent, and nothing else uses its range. `end` is at most `units(extent)`, which,
/// times the length of the pattern, does not overflow.
pub(crate) unsafe fn fill_range(fill: &FillCommand, begin: usize, end: usize) {
    let pattern = &fill.pattern;
    let width = pattern.len();
    let extent = merge_rows(fill.extent, width, &[fill.target]);
    let uniform = fill.pattern.initialized().and_then(|bytes| {
        let (first, rest) = bytes.split_first()?;
        rest.iter().all(|byte| byte == first).then_some(*first)
    });
    for_each_piece(&extent, begin, end, |slice, row, first, count| {
        let target = address(&fill.target, slice, row, first * width);
        // SAFETY: the piece lies in row `row` of slice `slice` of the box, which the caller promises to be valid.
        unsafe {
            match uniform {
                Some(byte) => ptr::write_bytes(target, byte, count * width),
                None => repeat(pattern, target, count * width),
            }
        }
    });
}

/// Writes `pattern` over and over.
///
/// # Safety
/// `target` is valid for writes of `size` bytes, a multiple of the pattern's length, and does not overlap the pattern.
unsafe fn repeat(pattern: &FillPattern, target: *mut u8, size: usize) {
    if pattern.is_empty() || size == 0 {
        return;
    }
    // SAFETY: `size` is at least one pattern.
    unsafe { ptr::copy_nonoverlapping(pattern.as_ptr(), target, pattern.len()) };
    let mut written = pattern.len();
    while written < size {
        // Multiples of the pattern, so every copy starts in phase.
        let block = if written <= BLOCK { written } else { BLOCK / pattern.len() * pattern.len() };
        let count = block.max(pattern.len()).min(size - written);
        // SAFETY: `count <= written`, so the source is written already and ends where the target begins or before.
        unsafe { ptr::copy_nonoverlapping(target, target.add(written), count) };
        written += count;
    }
}
