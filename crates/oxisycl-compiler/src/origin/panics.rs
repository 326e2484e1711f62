//! The functions that begin Rust's panics, end the program, or print.

use super::{Origin, path_in};
use crate::symbols::plain_path;

/// The message of a function that begins a panic, ends the program, or prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PanicMessage {
    /// The text of its format arguments; the function returns.
    Print,
    /// The text of its format arguments and a newline; the function returns.
    PrintLine,
    /// The text of its format arguments.
    Arguments,
    /// A string argument.
    Text,
    /// An index and a length, for a failed bounds check.
    BoundsCheck,
    /// Two different values, for a failed assertion.
    Assertion,
    /// That an `Option` is `None`.
    NoValue,
    /// A string and an error.
    Error,
    /// The payload, which may be anything.
    Payload,
    /// That a function cannot unwind.
    CannotUnwind,
    /// That a destructor panicked while another panic unwound.
    InCleanup,
    /// That a null pointer was used.
    NullPointer,
    /// That a pointer was misaligned.
    Misaligned,
    /// Nothing: the program aborts.
    Abort,
    /// That a string was sliced outside of a character boundary.
    SliceError,
    /// That memory is exhausted.
    OutOfMemory,
    /// The name of the function.
    Name,
}

/// The function that `panic!` with a literal calls in crates of the editions 2015 and 2018. It is generic over the payload.
const BEGIN_PANIC: &str = "std::panicking::begin_panic";

/// The function that the standard library calls where a string is sliced outside of a character boundary. To show the string, it slices it
/// at boundaries that it has checked, so it never calls itself.
pub(crate) const SLICE_ERROR: &str = "core::str::slice_error_fail_rt";

/// Functions that begin a panic or end the program. None of them returns. Others of the standard library end in one of these.
const FUNCTIONS: [(&str, PanicMessage); 20] = [
    ("oxisycl_device::print::print", PanicMessage::Print),
    ("oxisycl_device::print::print_line", PanicMessage::PrintLine),
    ("core::panicking::panic", PanicMessage::Text),
    ("core::panicking::panic_fmt", PanicMessage::Arguments),
    ("core::panicking::panic_nounwind", PanicMessage::Text),
    ("core::panicking::panic_nounwind_fmt", PanicMessage::Arguments),
    ("core::panicking::panic_nounwind_nobacktrace", PanicMessage::Text),
    ("core::panicking::panic_bounds_check", PanicMessage::BoundsCheck),
    ("core::panicking::panic_misaligned_pointer_dereference", PanicMessage::Misaligned),
    ("core::panicking::panic_null_pointer_dereference", PanicMessage::NullPointer),
    ("core::panicking::panic_invalid_enum_construction", PanicMessage::Name),
    ("core::panicking::panic_cannot_unwind", PanicMessage::CannotUnwind),
    ("core::panicking::panic_in_cleanup", PanicMessage::InCleanup),
    ("core::panicking::assert_failed_inner", PanicMessage::Assertion),
    ("core::option::unwrap_failed", PanicMessage::NoValue),
    ("core::option::expect_failed", PanicMessage::Text),
    ("core::result::unwrap_failed", PanicMessage::Error),
    ("std::process::abort", PanicMessage::Abort),
    ("alloc::alloc::handle_alloc_error", PanicMessage::OutOfMemory),
    ("oxisycl_device::builtin::not_on_the_host", PanicMessage::Name),
];

impl PanicMessage {
    /// Whether the function prints. Others do not return.
    pub(crate) fn is_print(self) -> bool {
        matches!(self, Self::Print | Self::PrintLine)
    }
}

/// The path and the message of a function that begins a panic, ends the program, or prints.
pub(crate) fn ending(symbol: &str) -> Option<(String, PanicMessage)> {
    let path = path_in(symbol, &[Origin::Standard, Origin::Device])?;
    let message = message_of(&path)?;
    Some((path, message))
}

/// The message of a function that begins a panic, ends the program, or prints, by its path. The caller knows that it is of the standard
/// library or the device library.
pub(crate) fn message_of(path: &str) -> Option<PanicMessage> {
    if let Some((_, message)) = FUNCTIONS.iter().find(|(function, _)| *function == path) {
        return Some(*message);
    }
    if path == BEGIN_PANIC {
        return Some(PanicMessage::Payload);
    }
    let is_known =
        ["core::panicking::panic_const::", "std::rt::begin_panic"].iter().any(|start| path.starts_with(start));
    is_known.then_some(PanicMessage::Name)
}

/// Whether a function is [`SLICE_ERROR`].
pub(crate) fn cuts_a_string(symbol: &str) -> bool {
    plain_path(symbol) == SLICE_ERROR
}

/// The last name in a path.
pub(crate) fn last_name(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_say_more_than_we_would_are_none() {
        assert_eq!(message_of("core::panicking::panic_const::panic_const_div_by_zero"), Some(PanicMessage::Name));
        assert_eq!(message_of("core::slice::index::slice_index_fail"), None);
    }

    #[test]
    fn a_users_function_begins_no_panic() {
        let (path, message) = ending("_ZN4core9panicking9panic_fmt17h0123456789abcdefE").expect("the library's");
        assert_eq!((path.as_str(), message), ("core::panicking::panic_fmt", PanicMessage::Arguments));
        assert_eq!(ending("_ZN3app4core9panicking9panic_fmt17h0123456789abcdefE"), None);
        assert!(cuts_a_string(SLICE_ERROR) && !cuts_a_string("app::str::slice_error_fail_rt"));
    }
}
