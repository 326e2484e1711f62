//! Where the output of kernels goes: to the program's standard output, or to the function that the program has set.
//! What the runtime itself reports goes to standard error.
//!
//! Kernels of the host device come here themselves, call by call. What other devices keep until a launch has ended comes with its
//! completion, before its end is reported. Invariant: no lock of the runtime is held while text is written.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::KernelOutput;
use oxisycl_types::PrintHeader;
use parking_lot::RwLock;

use crate::plug_ins::Loaded;

/// Receives what kernels print, in pieces that are not to be mixed with others. Called by any thread, also by several at once.
pub type OutputHandler = Arc<dyn Fn(&str) + Send + Sync>;

/// The handler, and what keeps its library loaded.
static HANDLER: RwLock<Option<(OutputHandler, Option<Loaded>)>> = RwLock::new(None);

/// Has `handler` receive the output of kernels; standard output does if it is `None`. Returns the handler before.
pub fn set_output_handler(handler: Option<OutputHandler>) -> Option<OutputHandler> {
    let handler = handler.map(|handler| {
        let library = Loaded::with_methods(&*handler);
        (handler, library)
    });
    let before = std::mem::replace(&mut *HANDLER.write(), handler);
    before.map(|(handler, _)| handler)
}

/// Writes a text in one piece, so that nothing of another work-item comes in between.
pub fn write(text: &str) {
    let handler = HANDLER.read().clone();
    if let Some((handler, _library)) = handler {
        return handler(text);
    }
    let mut output = std::io::stdout().lock();
    if let Err(error) = output.write_all(text.as_bytes()) {
        drop(output);
        static TOLD: AtomicBool = AtomicBool::new(false);
        if !TOLD.swap(true, Ordering::Relaxed) {
            report(&format!("output of kernels is lost: standard output cannot be written: {error}"));
        }
    }
}

/// Writes `text` to standard error as one line, and in one piece, since panic messages of other threads come between pieces.
pub(crate) fn report(text: &str) {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = format!("oxisycl: {}\n", lines.join("; "));
    // Without a standard error the text is lost.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// What a kernel of the host device prints.
pub fn print(arguments: fmt::Arguments<'_>, is_line: bool) {
    match (arguments.as_str(), is_line) {
        (Some(text), false) => write(text),
        _ => {
            let mut text = arguments.to_string();
            if is_line {
                text.push('\n');
            }
            write(&text);
        }
    }
}

/// What a kernel printed on a device that kept it.
pub(crate) fn print_kept(output: &KernelOutput, kernel: &str, device: &str) {
    match *output {
        KernelOutput::Text(ref text) => write(text),
        KernelOutput::Lost { count, capacity } => report(&loss(kernel, device, count, capacity)),
        KernelOutput::Unreadable { bytes } => report(&format!(
            "kernel \"{kernel}\" on device \"{device}\": {bytes} bytes of its output are unreadable: unsafe code has overwritten them"
        )),
    }
}

fn loss(kernel: &str, device: &str, count: u32, capacity: u32) -> String {
    let at_least = if count >= PrintHeader::MANY { "at least " } else { "" };
    format!(
        "kernel \"{kernel}\" on device \"{device}\": {at_least}{count} calls of print! or println! are lost: the output of a launch can \
         take up {capacity} bytes, which OXISYCL_PRINT_BUFFER and QueueBuilder::print_buffer set"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_names_kernel_device_number_limit_and_settings() {
        assert_eq!(
            loss("saxpy", "GPU", 7, 4096),
            "kernel \"saxpy\" on device \"GPU\": 7 calls of print! or println! are lost: the output of a launch can take up 4096 bytes, \
             which OXISYCL_PRINT_BUFFER and QueueBuilder::print_buffer set"
        );
        assert!(loss("k", "d", PrintHeader::MANY, 0).contains("at least 2147483648 calls"));
    }
}
