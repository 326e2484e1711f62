//! The names of the functions that panics and prints become.

use crate::origin::{self, PanicMessage};

/// The prefix of declarations that replace panic functions and printing functions.
pub(crate) const PREFIX: &str = "oxisycl.panic.";
/// The function that writes the launch's record, with a few numbers passed by value; see `oxisycl_device::panic_record`.
pub(crate) const RECORD: &str = "__oxisycl_record_panic_numbers";
/// The function that writes the launch's record, with values passed by address.
pub(crate) const RECORD_VALUES: &str = "__oxisycl_record_panic";
/// The function that adds to the launch's print buffer; see `oxisycl_device::print`.
pub(crate) const PRINT: &str = "__oxisycl_print";
/// The suffix of the two functions' variants that can format values themselves.
pub(crate) const FORMATTED: &str = "_formatted";

/// Whether the function records a panic for the host.
pub(crate) fn is_record(symbol: &str) -> bool {
    symbol == RECORD || symbol.strip_suffix(FORMATTED).unwrap_or(symbol) == RECORD_VALUES
}

/// Whether the function records printed text for the host.
pub(crate) fn is_print(symbol: &str) -> bool {
    symbol.strip_suffix(FORMATTED).unwrap_or(symbol) == PRINT
}

/// Whether the function with that path prints, and returns.
pub(crate) fn prints(path: &str) -> bool {
    origin::message_of(path).is_some_and(PanicMessage::is_print)
}

/// The attributes of functions that begin a panic.
pub(crate) const ENDING: [&str; 4] = ["noreturn", "cold", "nounwind", "convergent"];

/// Whether the function is a panic function whose body was removed.
pub(crate) fn is_hooked(symbol: &str) -> bool {
    symbol.strip_prefix(PREFIX).is_some_and(|path| !prints(path))
}

/// The name of the declaration that replaces the panic function with that path.
pub(crate) fn hooked(path: &str) -> String {
    format!("{PREFIX}{path}")
}
