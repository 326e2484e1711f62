//! OpenCL devices: SPIR-V, translated from LLVM's code by this module.
//!
//! The LLVM of Rust's toolchain has no code generator for SPIR-V. Code is optimised for NVIDIA's target, whose threads diverge like
//! work-items. The result is plain: few instructions, and no vectors as a rule. It is translated one instruction at a time:
//!
//! - `module` goes over kernels, functions and globals; `function` and `branch` over the blocks of one function; `module_builder` and `function_builder` know SPIR-V only.
//! - `value` says what a type becomes: integers of 1 to 128 bits, floats, addresses, and lists of them. `integer`, `int128`, `overflow`,
//!   `bits`, `convert`, `float`, `bfloat16`, `memory`, `copy`, `atomics`, `aggregate` and `call` hold one group of instructions each.
//! - `divergent_loops` and `panic_outlining` are for drivers that execute several work-items as one vector. The former finds the loops in
//!   which calls are expensive, the latter makes calls that record panics cheap.
//! - `addresses` turns integers that are addresses back into addresses. `private_phis` turns private addresses that loops carry over
//!   barriers into numbers. `next_positions` simplifies loops that carry a position and the next one. Before that, `function_pointers` replaces function pointers by numbers. `implicit_parameters` and `call_graph`
//!   are about functions that were not inlined: what they need of the kernel, and which of them call each other in cycles.
//! - `quirks` is the table of what drivers get wrong, and of what is done about it.
//! - `storage_classes` finds out which memory an address is of; where it cannot, the address is generic.
//!
//! Invariants: bits above an integer's width are zero. The bytes of the module depend on the code alone.
//!
//! What SPIR-V cannot express (recursion, arrays of unknown size) is refused with a reason, which makes the kernel unsupported. Does not
//! optimise, and does not know which driver will take the module: remedies of `quirks` are in all of them.

mod addresses;
mod aggregate;
mod atomics;
mod bfloat16;
mod bits;
mod branch;
mod call;
mod call_graph;
mod constants;
mod convert;
mod copy;
mod divergent_loops;
pub(crate) mod expansion;
mod float;
mod function;
mod function_builder;
mod function_pointers;
mod implicit_parameters;
mod int128;
mod integer;
mod memories;
mod memory;
mod module;
mod module_builder;
mod names;
mod next_positions;
mod overflow;
pub(crate) mod panic_outlining;
mod private_phis;
mod quirks;
mod storage_classes;
mod target;
#[cfg(test)]
mod tests;
mod value;

#[cfg(test)]
pub(crate) use quirks::QUIRKS;
pub(crate) use quirks::{NEXT_POSITIONS, PANIC_CALLS, PRIVATE_INTEGERS, PRIVATE_PHIS};
pub(crate) use target::SpirV;
#[cfg(test)]
pub(crate) use tests::support::validate;
