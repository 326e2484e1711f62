//! The panic hook that learns where a kernel panicked.
//!
//! Installed once, in front of the hook that is there at that time, which is still called. A user who sets a hook later replaces
//! it; reports then have no location. Does nothing for panics outside kernels.

use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use crate::kernel::{self, Frame};

/// Installs the hook, unless that was done. Not possible on a thread that is panicking; a later call then does it.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    if INSTALLED.is_completed() || std::thread::panicking() {
        return;
    }
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            kernel::with_frame(|frame| record(frame, info));
            previous(info);
        }));
    });
}

fn record(frame: &Frame, info: &PanicHookInfo<'_>) {
    if let (Some(location), Ok(mut slot)) = (info.location(), frame.location.try_borrow_mut()) {
        *slot = Some(location.to_string());
    }
    announce(frame);
}

/// The process is about to end, and nobody will see a report: says which kernel and which work-item it was.
#[cfg(panic = "abort")]
fn announce(frame: &Frame) {
    use std::io::Write;
    // SAFETY: the frame is live, so the kernel is running: its chunk lies on this thread's stack, and its command is kept by the task
    // that runs.
    let (command, chunk) = unsafe { (&*frame.command, &*frame.chunk) };
    let id = &chunk.item.get()[3 - usize::from(command.range.dimensions.min(3))..];
    let name = command.descriptor.display_name();
    let _ = writeln!(std::io::stderr(), "oxisycl: panic in kernel \"{name}\", work-item {id:?}");
}

/// The panic becomes a report.
#[cfg(not(panic = "abort"))]
fn announce(frame: &Frame) {
    let _ = (frame.command, frame.chunk);
}
