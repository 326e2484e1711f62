//! Kernels that a kind of device cannot run, each with the reason that the compiler must give.
//!
//! Invariant: what is listed as refused is refused, with the code of SYCL for that and with this reason. One that runs after all is a failure,
//! so that the list stays true.

use oxisycl::BackendKind;

/// SPIR-V has no stack of calls.
const RECURSION: &str = "recursion: devices of this kind have no stack of calls";

/// Functions that call themselves: of the kernels, of the standard library's sorting, and of `libm`.
const OPENCL: [(&str, &str); 8] = [
    ("generics::functions_call_themselves", RECURSION),
    ("control::slices_are_matched", RECURSION),
    ("control::let_else_and_if_let", RECURSION),
    ("sorting::larger_arrays_are_sorted", RECURSION),
    ("sorting::the_middle_is_selected", RECURSION),
    ("algorithms::the_game_of_life", RECURSION),
    ("algorithms::queens_on_a_board", RECURSION),
    ("algorithms::a_tree_in_an_array", RECURSION),
];

/// The same of optimised builds alone: what is unoptimised reaches no function here that calls itself.
const OPENCL_OPTIMISED: [(&str, &str); 1] = [("crates::arrayvec_vectors_and_strings", RECURSION)];

/// Why the kernel must be refused by devices of the backend, if it must.
pub(crate) fn expected(backend: BackendKind, name: &str) -> Option<&'static str> {
    let optimised = if cfg!(debug_assertions) { &[] } else { &OPENCL_OPTIMISED[..] };
    let mut listed = match backend {
        BackendKind::OpenCl => OPENCL.iter().chain(optimised),
        _ => [].iter().chain(&[]),
    };
    listed.find(|(listed, _)| *listed == name).map(|(_, reason)| *reason)
}

/// Whether a kernel was refused as it must be; otherwise what happened instead.
pub(crate) fn check(reason: &str, outcome: Result<Option<String>, Vec<String>>) -> Result<(), String> {
    match outcome {
        Ok(_) => Err(format!("it runs, although the list says that it cannot: {reason}")),
        Err(messages) => {
            let is_refused = |message: &String| message.contains("KernelNotSupported: ") && message.contains(reason);
            if messages.iter().any(is_refused) { Ok(()) } else { Err(messages.join("\n")) }
        }
    }
}
