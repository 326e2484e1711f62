//! Copies and fills of boxes by a thread of the host.

use crate::{Command, PitchedBox};

/// Executes a copy or a fill of memory that the host reaches; other commands do nothing.
///
/// # Safety
/// The command's memory is valid, and no other code uses it.
pub unsafe fn transfer_on_host(command: &Command) {
    match command {
        Command::Copy(copy) => for_each_row(copy.extent, |slice, row| {
            let (source, target) = (address(&copy.source, slice, row), address(&copy.target, slice, row));
            // SAFETY: a row of both boxes, which are valid and do not overlap.
            unsafe { source.copy_to_nonoverlapping(target, copy.extent[2]) };
        }),
        Command::Fill(fill) => for_each_row(fill.extent, |slice, row| {
            let target = address(&fill.target, slice, row);
            for element in 0..fill.extent[2] {
                let length = fill.pattern.len();
                // SAFETY: an element of a row of the box; the pattern is somewhere else.
                unsafe { fill.pattern.as_ptr().copy_to_nonoverlapping(target.add(element * length), length) };
            }
        }),
        _ => {}
    }
}

fn for_each_row(extent: [usize; 3], mut f: impl FnMut(usize, usize)) {
    for slice in 0..extent[0] {
        for row in 0..extent[1] {
            f(slice, row);
        }
    }
}

fn address(pitched: &PitchedBox, slice: usize, row: usize) -> *mut u8 {
    pitched.pointer.wrapping_add(slice * pitched.slice_pitch + row * pitched.row_pitch)
}

#[cfg(test)]
mod tests {
    use crate::{CopyCommand, FillCommand, FillPattern, MemoryId};

    use super::*;

    fn pitched(bytes: &mut [u8], row_pitch: usize, slice_pitch: usize) -> PitchedBox {
        PitchedBox { memory: MemoryId::HOST, pointer: bytes.as_mut_ptr(), row_pitch, slice_pitch }
    }

    #[test]
    fn boxes_are_copied_and_filled_row_by_row() {
        let mut source: Vec<u8> = (0..12).collect();
        let mut target = vec![0xFF; 12];
        let copy =
            CopyCommand { source: pitched(&mut source, 3, 6), target: pitched(&mut target, 2, 6), extent: [2, 2, 2] };
        // SAFETY: both are vectors that hold the boxes.
        unsafe { transfer_on_host(&Command::from(copy)) };
        assert_eq!(target, [0, 1, 3, 4, 0xFF, 0xFF, 6, 7, 9, 10, 0xFF, 0xFF]);
        let target_box = pitched(&mut target, 5, 0);
        let fill = FillCommand { target: target_box, pattern: FillPattern::from_slice(&[1, 2]), extent: [1, 2, 2] };
        // SAFETY: as above.
        unsafe { transfer_on_host(&Command::from(fill)) };
        assert_eq!(target, [1, 2, 1, 2, 0xFF, 1, 2, 1, 2, 10, 0xFF, 0xFF]);
    }
}
