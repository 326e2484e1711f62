//! Crates that a kind of device cannot run, each with the reason that the compiler must give.
//!
//! Invariant: what is listed as refused is refused, with this reason. One that runs after all is a failure, so that the list stays true.

use oxisycl::BackendKind;

/// Why the kernel must be refused by devices of the backend, if it must.
pub(crate) fn expected(_backend: BackendKind, _name: &str) -> Option<&'static str> {
    None
}

/// Whether a kernel was refused as it must be; otherwise what happened instead.
pub(crate) fn check(reason: &str, outcome: Result<Option<String>, Vec<String>>) -> Result<(), String> {
    match outcome {
        Ok(_) => Err(format!("it runs, although the list says that it cannot: {reason}")),
        Err(messages) if messages.iter().any(|message| message.contains(reason)) => Ok(()),
        Err(messages) => Err(messages.join("\n")),
    }
}
