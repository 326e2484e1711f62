//! Passes: each file changes the program's module in one way. `pipeline` has their order.

pub(crate) mod address_spaces;
pub(crate) mod arena;
pub(crate) mod atomic_builtins;
pub(crate) mod atomics;
pub(crate) mod bounds_check_merging;
pub(crate) mod branch_correlation;
pub(crate) mod builtins;
pub(crate) mod by_value;
pub(crate) mod calls;
pub(crate) mod choice;
pub(crate) mod cold_blocks;
pub(crate) mod contraction;
pub(crate) mod conversions;
pub(crate) mod counters;
pub(crate) mod cpu_features;
pub(crate) mod early_exits;
pub(crate) mod early_return;
pub(crate) mod fast_math;
pub(crate) mod float_atomics;
pub(crate) mod float_policy;
pub(crate) mod formatting_depth;
pub(crate) mod frames;
pub(crate) mod group_calls;
#[cfg(test)]
mod host_tests;
pub(crate) mod idle_barriers;
pub(crate) mod int128;
pub(crate) mod libcalls;
pub(crate) mod native;
pub(crate) mod native_code;
pub(crate) mod negations;
pub(crate) mod overlap;
pub(crate) mod panic_names;
pub(crate) mod panics;
pub(crate) mod private_atomics;
pub(crate) mod private_memory;
pub(crate) mod range_steps;
pub(crate) mod recursion;
pub(crate) mod safe_gathers;
pub(crate) mod specialization;
#[cfg(test)]
mod spoofed_tests;
pub(crate) mod strip_host_abi;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod thread_coarsening;
pub(crate) mod unrolling;
pub(crate) mod x86;
