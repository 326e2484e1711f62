//! The functions that begin Rust's panics, end the program, or print.

use super::{Origin, path_in};
use crate::symbols::plain_path;

/// The message of a function that begins a panic, ends the program, or prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Says {
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
const FUNCTIONS: [(&str, Says); 20] = [
    ("oxisycl_device::print::print", Says::Print),
    ("oxisycl_device::print::print_line", Says::PrintLine),
    ("core::panicking::panic", Says::Text),
    ("core::panicking::panic_fmt", Says::Arguments),
    ("core::panicking::panic_nounwind", Says::Text),
    ("core::panicking::panic_nounwind_fmt", Says::Arguments),
    ("core::panicking::panic_nounwind_nobacktrace", Says::Text),
    ("core::panicking::panic_bounds_check", Says::BoundsCheck),
    ("core::panicking::panic_misaligned_pointer_dereference", Says::Misaligned),
    ("core::panicking::panic_null_pointer_dereference", Says::NullPointer),
    ("core::panicking::panic_invalid_enum_construction", Says::Name),
    ("core::panicking::panic_cannot_unwind", Says::CannotUnwind),
    ("core::panicking::panic_in_cleanup", Says::InCleanup),
    ("core::panicking::assert_failed_inner", Says::Assertion),
    ("core::option::unwrap_failed", Says::NoValue),
    ("core::option::expect_failed", Says::Text),
    ("core::result::unwrap_failed", Says::Error),
    ("std::process::abort", Says::Abort),
    ("alloc::alloc::handle_alloc_error", Says::OutOfMemory),
    ("oxisycl_device::builtin::not_on_the_host", Says::Name),
];

impl Says {
    /// Whether the function prints. Others do not return.
    pub(crate) fn is_print(self) -> bool {
        matches!(self, Self::Print | Self::PrintLine)
    }
}

/// The path and the message of a function that begins a panic, ends the program, or prints.
pub(crate) fn ending(symbol: &str) -> Option<(String, Says)> {
    let path = path_in(symbol, &[Origin::Standard, Origin::Device])?;
    let says = said_by(&path)?;
    Some((path, says))
}

/// The message of a function that begins a panic, ends the program, or prints, by its path. The caller knows that it is of the standard
/// library or the device library.
pub(crate) fn said_by(path: &str) -> Option<Says> {
    if let Some((_, says)) = FUNCTIONS.iter().find(|(function, _)| *function == path) {
        return Some(*says);
    }
    if path == BEGIN_PANIC {
        return Some(Says::Payload);
    }
    let is_known =
        ["core::panicking::panic_const::", "std::rt::begin_panic"].iter().any(|start| path.starts_with(start));
    is_known.then_some(Says::Name)
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
        assert_eq!(said_by("core::panicking::panic_const::panic_const_div_by_zero"), Some(Says::Name));
        assert_eq!(said_by("core::slice::index::slice_index_fail"), None);
    }

    #[test]
    fn a_users_function_begins_no_panic() {
        let (path, says) = ending("_ZN4core9panicking9panic_fmt17h0123456789abcdefE").expect("the library's");
        assert_eq!((path.as_str(), says), ("core::panicking::panic_fmt", Says::Arguments));
        assert_eq!(ending("_ZN3app4core9panicking9panic_fmt17h0123456789abcdefE"), None);
        assert!(cuts_a_string(SLICE_ERROR) && !cuts_a_string("app::str::slice_error_fail_rt"));
    }
}
