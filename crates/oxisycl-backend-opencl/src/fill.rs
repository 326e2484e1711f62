//! Fills: the driver's own for patterns that it takes, copies of a *stage* for all others.
//!
//! OpenCL fills with patterns of 1 to 128 bytes whose size is a power of two, at addresses that are aligned to it. For other patterns a piece
//! of the host's memory is filled here, and copied again and again. Patterns may hold padding, which must not be read: bytes are only
//! copied.

use std::mem::MaybeUninit;

use oxisycl_backend::FillCommand;
use oxisycl_backend::driver::{BoxShape, Pitches};

use crate::emitter::Emitter;
use crate::error::Result;
use crate::transfer::{copy_row, for_each_row};

/// The longest pattern that OpenCL takes, in bytes.
const LONGEST: usize = 128;
/// About how many bytes a stage has.
const STAGE_SIZE: usize = 1 << 20;

/// Bytes on the host that the driver reads while the command runs.
pub(crate) type Stage = Box<[MaybeUninit<u8>]>;

/// Puts a fill on the emitter's queue. The stage, if there is one, is kept by the caller until the command has ended.
pub(crate) fn fill(fill: &FillCommand, emitter: &mut Emitter<'_>, stage: &mut Option<Stage>) -> Result<()> {
    let length = fill.pattern.len();
    let [slices, rows, elements] = fill.extent;
    let pitches = Pitches { row: fill.target.row_pitch, slice: fill.target.slice_pitch };
    let shape = BoxShape::new([slices, rows, elements * length], &[pitches]);
    if shape.is_empty() {
        return Ok(());
    }
    let period = period(fill);
    let target = fill.target.pointer;
    if period.is_power_of_two() && period <= LONGEST && is_aligned(target, period, &shape) {
        let sharing = &emitter.context().sharing;
        let set = sharing.fill;
        return for_each_row(&shape, |[row]| {
            let (pattern, target) = (fill.pattern.as_ptr(), target.wrapping_add(row));
            emitter.call(sharing.fill_name, |_, queue, n, list, event| {
                // SAFETY: the row is valid by the issuer's promise, aligned for the pattern, and a multiple of it. The call copies the
                // pattern. Queue and events are live.
                unsafe { set(queue, target.cast(), pattern.cast(), period, shape.width, n, list, event) }
            })
        });
    }
    let stage = stage.insert(filled(fill, length, shape.width));
    for_each_row(&shape, |[row]| {
        for begin in (0..shape.width).step_by(stage.len()) {
            let target = target.wrapping_add(row + begin);
            let width = stage.len().min(shape.width - begin);
            // SAFETY: a part of the row, which is valid by the issuer's promise. The stage has at least so many bytes, and is kept until
            // the command has ended.
            unsafe { copy_row(emitter, stage.as_ptr().cast(), target, width) }?;
        }
        Ok(())
    })
}

/// The number of bytes after which the pattern repeats: 1 if all its bytes are known to be equal, else all of it.
fn period(fill: &FillCommand) -> usize {
    match fill.pattern.initialized() {
        Some(bytes) if bytes.iter().all(|byte| *byte == bytes[0]) => 1,
        _ => fill.pattern.len(),
    }
}

fn is_aligned(target: *mut u8, n: usize, shape: &BoxShape) -> bool {
    let pitches = shape.pitches[0];
    (target as usize).is_multiple_of(n)
        && (shape.rows == 1 || pitches.row.is_multiple_of(n))
        && (shape.slices == 1 || pitches.slice.is_multiple_of(n))
}

/// A stage of whole patterns: about [`STAGE_SIZE`] bytes, but at most a row.
fn filled(fill: &FillCommand, length: usize, width: usize) -> Stage {
    let size = width.min((STAGE_SIZE / length).max(1) * length);
    let mut stage = Box::new_uninit_slice(size);
    for element in stage.chunks_exact_mut(length) {
        // SAFETY: both have as many bytes as a pattern, and are distinct; padding stays padding.
        unsafe { fill.pattern.as_ptr().cast::<MaybeUninit<u8>>().copy_to_nonoverlapping(element.as_mut_ptr(), length) };
    }
    stage
}

#[cfg(test)]
mod tests {
    use oxisycl_backend::{FillPattern, MemoryId, PitchedBox};

    use super::*;

    fn command(pattern: &[u8]) -> FillCommand {
        let target = PitchedBox { memory: MemoryId::HOST, pointer: std::ptr::null_mut(), row_pitch: 0, slice_pitch: 0 };
        FillCommand { target, pattern: FillPattern::from_slice(pattern), extent: [1, 1, 1] }
    }

    #[test]
    fn a_stage_holds_whole_patterns_and_no_more_than_a_row() {
        let stage = filled(&command(&[1, 2, 3]), 3, 12);
        // SAFETY: made of a pattern without padding.
        let bytes: Vec<u8> = stage.iter().map(|byte| unsafe { byte.assume_init() }).collect();
        assert_eq!(bytes, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]);
        let large = filled(&command(&[1, 2, 3]), 3, 3 << 20);
        assert_eq!(large.len(), STAGE_SIZE / 3 * 3);
        let long = vec![7; 2 * STAGE_SIZE];
        assert_eq!(filled(&command(&long), long.len(), 4 * STAGE_SIZE).len(), long.len());
    }

    #[test]
    fn equal_bytes_repeat_after_one() {
        assert_eq!(period(&command(&[5; 12])), 1);
        assert_eq!(period(&command(&[5, 6])), 2);
    }

    #[test]
    fn rows_must_be_aligned_as_well_as_the_first_byte() {
        let shape = |extent, row, slice| BoxShape::new(extent, &[Pitches { row, slice }]);
        let at = |address: usize| std::ptr::without_provenance_mut::<u8>(address);
        assert!(is_aligned(at(16), 8, &shape([1, 1, 64], 0, 0)) && !is_aligned(at(12), 8, &shape([1, 1, 64], 0, 0)));
        assert!(!is_aligned(at(16), 8, &shape([1, 2, 8], 12, 24)) && is_aligned(at(16), 4, &shape([1, 2, 8], 12, 24)));
        assert!(!is_aligned(at(16), 8, &shape([2, 2, 8], 16, 36)));
    }
}
