//! Kernels that a kind of device cannot run, each with the reason that the compiler must give; and those that a driver cannot take.
//!
//! Invariant: what is listed as refused is refused, with the code of SYCL for that and with this reason. One that runs after all is a failure,
//! so that the list stays true. What would end the whole process is left out, and said to be.

use oxisycl::{BackendKind, Device};

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

/// Kernels that Intel's driver for CPUs (2026.2) cannot take as vectors, and what it does with them. Without vectorisation, that is with
/// `CL_CONFIG_CPU_VECTORIZER_MODE=1` in the environment, they run, and are right. Of the second it is not known whose fault it is: its sum
/// over parts of an array in private memory, by an iterator, is of other memory.
const INTEL: [(&str, &str); 2] = [
    ("crates::heapless_maps_and_queues", "the driver's vectoriser ends the process"),
    ("iterators::nested_and_flattened", "wrong results, or an error, where the driver vectorises"),
];

/// Why the kernel cannot be tried on the device, if it cannot.
pub(crate) fn left_out(device: &Device, name: &str) -> Option<&'static str> {
    let is_intel =
        device.backend() == BackendKind::OpenCl && device.is_cpu() && device.platform().info().name.contains("Intel");
    let vectorises = std::env::var_os("CL_CONFIG_CPU_VECTORIZER_MODE").is_none_or(|mode| mode != "1");
    let listed = INTEL.iter().find(|(listed, _)| *listed == name);
    listed.filter(|_| is_intel && vectorises).map(|(_, reason)| *reason)
}

/// Why the kernel must be refused by devices of the backend, if it must.
pub(crate) fn expected(backend: BackendKind, name: &str) -> Option<&'static str> {
    let listed = match backend {
        BackendKind::OpenCl => &OPENCL[..],
        _ => &[],
    };
    listed.iter().find(|(listed, _)| *listed == name).map(|(_, reason)| *reason)
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
