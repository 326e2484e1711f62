//! Transfers of memory that the driver does not know, which threads of the host execute once everything before them has ended.
//!
//! For such memory the driver's asynchronous copies wait for the device, or read the memory later than the call returns. Those that touch
//! no memory of a device are made here.

use std::sync::Arc;

use oxisycl_backend::{Command, CommandFailure, ExecutionTimes, FailureKind, Outcome, Rectangle};

use crate::clock;
use crate::device_state::DeviceState;
use crate::emitter::Emitter;
use crate::transfer;

/// Executes a copy or a fill, and waits for it.
///
/// # Safety
/// The command's memory is valid and used by nothing else.
pub(crate) unsafe fn execute(core: &Arc<DeviceState>, command: &Command, is_profiling: bool) -> Outcome {
    let context = &core.context;
    let start = clock::now();
    let is_unknown = |rectangle, extent| transfer::is_unknown(context, rectangle, extent);
    let run = || {
        let _entered = context.enter()?;
        let copy = match command {
            Command::Copy(copy)
                if !(is_unknown(&copy.source, copy.extent) && is_unknown(&copy.target, copy.extent)) =>
            {
                copy
            }
            _ => {
                // SAFETY: by the contract of this function.
                unsafe { run(command) };
                return Ok(());
            }
        };
        let stream = core.utility;
        let emitted = transfer::copy(core, copy, &mut Emitter::new(&context.driver, stream));
        // SAFETY: the stream lives as long as the core.
        let finished = unsafe { context.driver.stream_synchronize(stream) };
        emitted.and(finished).map_err(|error| context.fail(error))
    };
    let result = run().map_err(|error| CommandFailure::new(command, &*context.name, FailureKind::Device(error)));
    let times = is_profiling.then(|| ExecutionTimes { start, end: clock::now() });
    Outcome { has_run: true, result, times }
}

/// Executes a copy or fill of host memory.
///
/// # Safety
/// The command's memory is valid and used by nobody else.
unsafe fn run(command: &Command) {
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

fn address(rectangle: &Rectangle, slice: usize, row: usize) -> *mut u8 {
    rectangle.pointer.wrapping_add(slice * rectangle.slice_pitch + row * rectangle.row_pitch)
}

#[cfg(test)]
mod tests {
    use oxisycl_backend::{CopyCommand, FillCommand, FillPattern, MemoryId};

    use super::*;

    fn rectangle(bytes: &mut [u8], row_pitch: usize, slice_pitch: usize) -> Rectangle {
        Rectangle { memory: MemoryId::HOST, pointer: bytes.as_mut_ptr(), row_pitch, slice_pitch }
    }

    #[test]
    fn boxes_are_copied_and_filled_row_by_row() {
        let mut source: Vec<u8> = (0..12).collect();
        let mut target = vec![0xFF; 12];
        let copy = CopyCommand {
            source: rectangle(&mut source, 3, 6),
            target: rectangle(&mut target, 2, 6),
            extent: [2, 2, 2],
        };
        // SAFETY: both are vectors that hold the boxes.
        unsafe { run(&Command::Copy(copy)) };
        assert_eq!(target, [0, 1, 3, 4, 0xFF, 0xFF, 6, 7, 9, 10, 0xFF, 0xFF]);
        let target_box = rectangle(&mut target, 5, 0);
        let fill = FillCommand { target: target_box, pattern: FillPattern::from_slice(&[1, 2]), extent: [1, 2, 2] };
        // SAFETY: as above.
        unsafe { run(&Command::Fill(fill)) };
        assert_eq!(target, [1, 2, 1, 2, 0xFF, 1, 2, 1, 2, 10, 0xFF, 0xFF]);
    }
}
