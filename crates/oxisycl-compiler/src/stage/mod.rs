//! The stages between bitcode and code generation, in the order in which they run. Each works on the program's module.

pub(crate) mod atomics;
pub(crate) mod builtins;
pub(crate) mod captures;
pub(crate) mod conditions;
pub(crate) mod early_return;
pub(crate) mod float;
pub(crate) mod functions;
pub(crate) mod kernels;
pub(crate) mod legality;
pub(crate) mod panics;
pub(crate) mod place;
pub(crate) mod private_memory;
pub(crate) mod resolve;
pub(crate) mod sanitize;
#[cfg(test)]
mod tests;
