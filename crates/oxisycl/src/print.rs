//! `print!` and `println!` for kernels, and where their text goes.

use std::fmt;

use oxisycl_device::builtin::is_device_code;
use oxisycl_runtime::output;

pub use oxisycl_runtime::output::OutputHandler;

/// Writes to the program's standard output, as `std::print!` does, from a kernel on any device.
///
/// See [`println!`](crate::println!).
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => { $crate::__print::print(::core::format_args!($($argument)*)) };
}

/// Writes a line to the program's standard output, as `std::println!` does, from a kernel on any device (SYCL 2020 section 4.16, class
/// `stream`).
///
/// ```
/// use oxisycl::prelude::*;
///
/// # fn main() -> oxisycl::Result<()> {
/// let queue = Queue::default()?;
/// queue.parallel_for(4, |item| oxisycl::println!("work-item {:>3}: {:.2}", item.index(), 1.5))?.wait()
/// # }
/// ```
///
/// The host device writes at once. Other devices keep the text in a buffer of the launch, and it is written when the command completes,
/// before a wait for it returns. The calls of one work-item come in their order, those of different work-items in any order, and never one
/// within another. What the buffer has no room for is lost; how many calls that were is reported on standard error. The size of the
/// buffer is set by [`QueueBuilder::print_buffer`](crate::QueueBuilder::print_buffer).
///
/// Everything that `format_args!` takes can be printed. The host formats numbers, characters and strings. Other types
/// run their own `Display` or `Debug` on the device, which makes the kernel larger. They run it twice: the first time
/// counts the bytes.
///
/// A thread of the runtime may be the one that writes. A program that waits for a command that prints must not hold the lock of standard
/// output meanwhile; [`set_output_handler`](crate::set_output_handler) sends the text elsewhere.
#[macro_export]
macro_rules! println {
    () => { $crate::__print::print_line(::core::format_args!("")) };
    ($($argument:tt)*) => { $crate::__print::print_line(::core::format_args!($($argument)*)) };
}

/// Has `handler` receive what kernels print, in the place of standard output; `None` gives it back to standard output.
///
/// Each call gets a text that is not to be mixed with others. From kernels of the host device that is what one `print!`
/// or `println!` writes. From other devices it is as much as there was. It is called by any thread, also by several at
/// once, inside kernels and before the end of a command is reported. It must not wait, and `submit` and everything that
/// blocks are `Invalid` in it.
pub fn set_output_handler(handler: Option<OutputHandler>) {
    drop(output::set_output_handler(handler));
}

/// What [`print!`](crate::print!) calls.
#[doc(hidden)]
pub fn print(arguments: fmt::Arguments<'_>) {
    if is_device_code() {
        oxisycl_device::print::print(arguments);
    } else {
        output::print(arguments, false);
    }
}

/// What [`println!`](crate::println!) calls.
#[doc(hidden)]
pub fn print_line(arguments: fmt::Arguments<'_>) {
    if is_device_code() {
        oxisycl_device::print::print_line(arguments);
    } else {
        output::print(arguments, true);
    }
}
