//! Each group of instructions as LLVM's assembly: translated, validated, and executed against values that Rust computes.

mod addresses;
mod atomics;
mod brain;
mod control;
mod floats;
mod functions;
mod golden;
mod integers;
mod memory;
mod refused;
mod sub_groups;
pub(super) mod support;
