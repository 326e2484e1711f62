//! The panic hook that records where a kernel panicked.
//!
//! Installed once, in front of the hook that is there at that time, which is still called. A user who sets a hook later replaces
//! it; reports then have no location. Does nothing for panics outside kernels.

use std::panic::PanicHookInfo;
use std::sync::Once;

use oxisycl_backend::panic_hook;
#[cfg(panic = "abort")]
use oxisycl_types::HostChunk;
#[cfg(any(panic = "abort", test))]
use oxisycl_types::LaunchRange;

use crate::kernel::{self, Frame};

/// Installs the hook once, by [`panic_hook::put_in_front`].
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    panic_hook::put_in_front(&INSTALLED, |info| {
        kernel::with_frame(|frame| record(frame, info));
    });
}

fn record(frame: &Frame, info: &PanicHookInfo<'_>) {
    if let (Some(location), Ok(mut slot)) = (info.location(), frame.location.try_borrow_mut()) {
        *slot = Some(location.to_string());
    }
    announce(frame);
}

/// With `panic = "abort"`: prints the names of the kernel and the work-item, since the process is about to end without a report.
#[cfg(panic = "abort")]
fn announce(frame: &Frame) {
    use std::io::Write;
    // SAFETY: the frame is live, so the kernel is running. Its chunk lies on this thread's stack, and the running task keeps its command.
    let (command, chunk) = unsafe { (&*frame.command, &*frame.chunk) };
    // Kernels over groups store each work-item.
    let count = if command.group.is_some() { 1 } else { HostChunk::ITEMS_PER_STORE };
    let items = work_items(chunk.item.get(), count, &command.range);
    let name = command.descriptor.display_name();
    let _ = writeln!(std::io::stderr(), "oxisycl: panic in kernel \"{name}\", {items}");
}

/// The id of the work-item, or the first and the last of up to `count` ids in the row of `first`, as text.
#[cfg(any(panic = "abort", test))]
fn work_items(first: [usize; 3], count: usize, range: &LaunchRange) -> String {
    let last = match count {
        1 => first[2],
        _ => first[2].saturating_add(count - 1).min(range.offset[2] + range.extent[2] - 1),
    };
    let visible = 3 - usize::from(range.dimensions.min(3));
    let of = |last: usize| format!("{:?}", &[first[0], first[1], last][visible..]);
    if last == first[2] {
        format!("work-item {}", of(last))
    } else {
        format!("a work-item from {} to {}", of(first[2]), of(last))
    }
}

/// With `panic = "unwind"`: does nothing, since the panic becomes a report.
#[cfg(not(panic = "abort"))]
fn announce(frame: &Frame) {
    let _ = (frame.command, frame.chunk);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_items_are_named_as_exactly_as_they_are_known() {
        let range = LaunchRange { dimensions: 2, extent: [1, 3, 100], offset: [0, 5, 10] };
        assert_eq!(work_items([0, 6, 20], 1, &range), "work-item [6, 20]");
        assert_eq!(work_items([0, 6, 20], 64, &range), "a work-item from [6, 20] to [6, 83]");
        assert_eq!(work_items([0, 6, 74], 64, &range), "a work-item from [6, 74] to [6, 109]");
        assert_eq!(work_items([0, 6, 109], 64, &range), "work-item [6, 109]");
        assert_eq!(work_items([0; 3], 64, &LaunchRange::SINGLE), "work-item []");
    }
}
