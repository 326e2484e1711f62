//! Each group of instructions as LLVM's assembly: translated, validated, and executed against values that Rust computes.

mod addresses;
mod atomic_scopes;
mod atomics;
mod bfloat16;
mod control;
mod floats;
mod functions;
mod golden;
mod half;
mod images;
mod integers;
mod memory;
mod private_phis;
mod quirks;
mod reductions;
mod refused;
mod sub_groups;
pub(super) mod support;
