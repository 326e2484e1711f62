//! The functions that panics and prints become, by their names.

use crate::origin::{self, Says};

/// Begins the names of declarations that stand for panic functions and functions that print.
pub(crate) const PREFIX: &str = "oxisycl.panic.";
/// Writes the launch's record, with a few numbers that are passed by value; see `oxisycl_device::panic_record`.
pub(crate) const RECORD: &str = "__oxisycl_record_panic_numbers";
/// Writes the launch's record, with values whose addresses are passed.
pub(crate) const RECORD_VALUES: &str = "__oxisycl_record_panic";
/// Adds to the launch's print buffer; see `oxisycl_device::print`.
pub(crate) const PRINT: &str = "__oxisycl_print";
/// Ends the names of the two functions' forms that can format values themselves.
pub(crate) const FORMATTED: &str = "_formatted";

/// Whether the function leaves a panic for the host.
pub(crate) fn is_record(symbol: &str) -> bool {
    symbol == RECORD || symbol.strip_suffix(FORMATTED).unwrap_or(symbol) == RECORD_VALUES
}

/// Whether the function leaves a printed text for the host.
pub(crate) fn is_print(symbol: &str) -> bool {
    symbol.strip_suffix(FORMATTED).unwrap_or(symbol) == PRINT
}

/// Whether the function with that path prints, and returns.
pub(crate) fn prints(path: &str) -> bool {
    origin::said_by(path).is_some_and(Says::is_print)
}

/// The attributes of what begins a panic.
pub(crate) const ENDING: [&str; 4] = ["noreturn", "cold", "nounwind", "convergent"];

/// Whether the function is a panic function whose body was taken away.
pub(crate) fn is_hooked(symbol: &str) -> bool {
    symbol.strip_prefix(PREFIX).is_some_and(|path| !prints(path))
}

/// The name of what stands for a panic function with that path.
pub(crate) fn hooked(path: &str) -> String {
    format!("{PREFIX}{path}")
}
