//! Kernels that a kind of device cannot run, each with the reason that the compiler must give.
//!
//! Invariant: what is listed as refused is refused, with the code of SYCL for that and with this reason. One that runs after all is a failure,
//! so that the list stays true.

use oxisycl::BackendKind;

/// Of each kind of device, the kernels and the reasons. Recursion that is entered in many places is too much code for drivers' compilers.
const REFUSED: [(BackendKind, &str, &str); 1] =
    [(BackendKind::OpenCl, "algorithms::the_game_of_life", "recursion: devices of this kind have no stack of calls")];

/// Why the kernel must be refused by devices of the backend, if it must.
pub(crate) fn expected(backend: BackendKind, name: &str) -> Option<&'static str> {
    let listed = REFUSED.iter().find(|(kind, listed, _)| *kind == backend && *listed == name);
    listed.map(|(_, _, reason)| *reason)
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
