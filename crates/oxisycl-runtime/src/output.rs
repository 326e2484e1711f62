//! Where the output of kernels goes: to the program's standard output, or to the function that the program has set.
//!
//! Kernels of the host device come here themselves, call by call. What other devices keep until a launch has ended comes with its
//! completion, before anybody is told of it. Invariant: no lock of the runtime is held while text is written.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::KernelOutput;
use oxisycl_types::{ErrorCode, PrintHeader};
use parking_lot::RwLock;

use crate::graph::report;
use crate::program::settings::bytes;
use crate::{Error, Result};

/// Receives what kernels print, in pieces that are not to be mixed with others. Called by any thread, also by several at once.
pub type OutputHandler = Arc<dyn Fn(&str) + Send + Sync>;

static HANDLER: RwLock<Option<OutputHandler>> = RwLock::new(None);

/// Has `handler` receive the output of kernels; standard output does if it is `None`. Returns the handler before.
pub fn set_output_handler(handler: Option<OutputHandler>) -> Option<OutputHandler> {
    std::mem::replace(&mut *HANDLER.write(), handler)
}

/// Writes a text in one piece, so that nothing of another work-item comes in between.
pub fn write(text: &str) {
    let handler = HANDLER.read().clone();
    if let Some(handler) = handler {
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

/// Bytes for the output of one launch, unless its queue says otherwise.
///
/// # Errors
/// `Platform` if the environment variable has a wrong value.
pub(crate) fn print_buffer_from_env() -> Result<u32> {
    print_buffer(std::env::var_os("OXISYCL_PRINT_BUFFER").as_deref())
}

fn print_buffer(value: Option<&OsStr>) -> Result<u32> {
    let Some(value) = value else { return Ok(PrintHeader::DEFAULT_CAPACITY) };
    let size = bytes(value).and_then(|size| u32::try_from(size).ok());
    size.filter(|size| *size <= PrintHeader::MAX_CAPACITY).ok_or_else(|| {
        let message = format!(
            "OXISYCL_PRINT_BUFFER={value:?}: expected bytes up to 1G, or a number and k, M or G (powers of 1024)"
        );
        Error::new(ErrorCode::Platform, message)
    })
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
pub(crate) fn print_kept(output: KernelOutput<'_>, kernel: &str, device: &str) {
    match output {
        KernelOutput::Text(text) => write(text),
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

    #[test]
    fn the_size_of_print_buffers_is_checked() {
        let size = |value: &str| print_buffer(Some(OsStr::new(value))).map_err(|error| error.to_string());
        assert_eq!(print_buffer(None).unwrap(), 1 << 20);
        assert_eq!(
            ["0", "100", "64k", "1G"].map(size),
            [0, 100, 64 << 10, 1 << 30].map(|size: u32| Ok::<_, String>(size))
        );
        for wrong in ["", "-1", "many", "2G", "1073741825", "18446744073709551615"] {
            let error = size(wrong).unwrap_err();
            let expected =
                format!("OXISYCL_PRINT_BUFFER={wrong:?}: expected bytes up to 1G, or a number and k, M or G");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
