//! The functions that begin panics, by names that link-time optimisation keeps: it takes away those of the standard library's.
//!
//! Called by native code of kernels alone, which the device compiler makes so where names are lost. Invariant: each function has the parameters,
//! the caller's place among them, of the one that it stands for.

use std::fmt;
use std::panic::panic_any;
use std::process::abort;

/// Stands for `core::panicking::panic_fmt`.
#[cold]
#[track_caller]
#[unsafe(no_mangle)]
fn __oxisycl_kept_panic(message: fmt::Arguments<'_>) -> ! {
    match message.as_str() {
        Some(text) => panic_any(text),
        None => panic_any(message.to_string()),
    }
}

/// Stands for `core::panicking::panic_nounwind_fmt`, after which the program aborts.
#[cold]
#[track_caller]
#[unsafe(no_mangle)]
fn __oxisycl_kept_panic_nounwind(message: fmt::Arguments<'_>, _without_backtrace: bool) -> ! {
    struct Aborts;

    impl Drop for Aborts {
        fn drop(&mut self) {
            abort();
        }
    }

    let _aborts = Aborts;
    __oxisycl_kept_panic(message)
}
