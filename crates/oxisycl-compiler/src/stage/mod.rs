//! The stages between bitcode and code generation. Each works on the program's module; `program` says in which order they run.

pub(crate) mod approximate;
pub(crate) mod arena;
pub(crate) mod atomics;
pub(crate) mod bodies;
pub(crate) mod builtins;
pub(crate) mod captures;
pub(crate) mod checks;
pub(crate) mod conditions;
pub(crate) mod dependencies;
pub(crate) mod early_return;
pub(crate) mod features;
pub(crate) mod float;
pub(crate) mod float_atomics;
pub(crate) mod frames;
pub(crate) mod functions;
#[cfg(test)]
mod host_tests;
pub(crate) mod kernels;
pub(crate) mod layout;
pub(crate) mod legality;
pub(crate) mod native;
pub(crate) mod negations;
pub(crate) mod pairs;
pub(crate) mod panics;
pub(crate) mod place;
pub(crate) mod private_atomics;
pub(crate) mod private_memory;
pub(crate) mod recursion;
pub(crate) mod resolve;
pub(crate) mod sanitize;
#[cfg(test)]
mod spoofed_tests;
pub(crate) mod stack;
#[cfg(test)]
mod tests;
pub(crate) mod trial;
pub(crate) mod wide_integers;
pub(crate) mod x86;
