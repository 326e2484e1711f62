//! Functions that native code calls by names of C's where link-time optimisation takes the names of Rust's functions away.
//!
//! What they call and use must exist once in a program, and so must they. `oxisycl_runtime::program` and `oxisycl_device` define them, with the
//! types of the functions that they stand for.

use super::{Origin, path_in};

/// The crates of OxiSYCL whose functions exist once with all that they use, which is most of the runtime.
const OF_RUNTIME: [&str; 3] = ["oxisycl::", "oxisycl_runtime::", "oxisycl_backend"];

/// Each path, and the name of the function that stands for it.
const KEPT: [(&str, &str); 5] = [
    ("core::panicking::panic_fmt", "__oxisycl_kept_panic"),
    ("core::panicking::panic_nounwind_fmt", "__oxisycl_kept_panic_nounwind"),
    ("oxisycl_device::print::print", "__oxisycl_kept_print"),
    ("oxisycl_device::print::print_line", "__oxisycl_kept_print_line"),
    ("oxisycl_device::buffer_name::write_name", "__oxisycl_kept_write_name"),
];

/// The name of the function that stands for another one where names are lost.
pub(crate) fn kept(symbol: &str) -> Option<&'static str> {
    let is_candidate = ["panic", "print", "write_name"].iter().any(|part| symbol.contains(part));
    let path = is_candidate.then(|| path_in(symbol, &[Origin::Standard, Origin::Device]))??;
    KEPT.iter().find(|(function, _)| *function == path).map(|(_, name)| *name)
}

/// Whether a function belongs to OxiSYCL's runtime, by its path. A user's crate of such a name has no native code where names are lost.
pub(crate) fn is_of_runtime(symbol: &str) -> bool {
    let path = symbol.contains("oxisycl").then(|| path_in(symbol, &[Origin::Facade])).flatten();
    path.is_some_and(|path| OF_RUNTIME.iter().any(|start| path.trim_start_matches('<').starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_paths_and_crates() {
        assert_eq!(kept("_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt"), Some("__oxisycl_kept_panic"));
        assert_eq!(kept("_ZN4core9panicking9panic_fmt17h0123456789abcdefE"), Some("__oxisycl_kept_panic"));
        assert_eq!(
            kept("_ZN14oxisycl_device5print10print_line17h0123456789abcdefE"),
            Some("__oxisycl_kept_print_line")
        );
        for other in [
            "_ZN3app9panicking9panic_fmt17h0123456789abcdefE",
            "_ZN3app4core9panicking9panic_fmt17h0123456789abcdefE",
            "_ZN4core9panicking18panic_bounds_check17h0123456789abcdefE",
            "__oxisycl_kept_panic",
        ] {
            assert_eq!(kept(other), None, "{other}");
        }
    }

    #[test]
    fn the_runtime_is_told_from_what_kernels_copy() {
        for (symbol, expected) in [
            ("_ZN7oxisycl7__print10print_line17h0123456789abcdefE", true),
            ("_ZN15oxisycl_runtime6output5print17h0123456789abcdefE", true),
            ("_ZN14oxisycl_device6bounds14index_1_in_117h0123456789abcdefE", false),
            ("_ZN13oxisycl_types4size17h0123456789abcdefE", false),
            ("_ZN3app7oxisycl1f17h0123456789abcdefE", false),
        ] {
            assert_eq!(is_of_runtime(symbol), expected, "{symbol}");
        }
    }
}
