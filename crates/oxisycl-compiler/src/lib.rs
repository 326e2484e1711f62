//! The device compiler: from the bitcode of ordinary Rust crates to device images.
//!
//! Input is the un-optimised bitcode that a second run of rustc made of a program's crates, and the standard library's own. The compiler
//! finds the kernels in it (`analyses::kernels`), takes what they reach and leaves the rest. It turns host code into device code
//! (`passes`), and has the toolchain's own LLVM optimise it and generate code for a target (`codegen`).
//!
//! Invariants:
//! - The same input gives the same bytes: nothing depends on addresses, time or the order of hash maps.
//! - Nothing is optimised before every function is marked convergent, and optimisation knows that threads diverge.
//! - A construct that a target cannot run makes its kernel unsupported there, with the reason and the call chain that reaches it. It never
//!   becomes wrong code, and never keeps the program from being built.
//!
//! Does not run rustc on user code, and does not know cargo.

mod analyses;
mod builtin_table;
mod codegen;
mod compile;
mod compiled;
mod error;
mod gather;
#[cfg(test)]
mod golden;
mod instruments;
mod isolation;
mod kernel;
mod link;
mod llvm;
mod native_assembly;
mod options;
mod origin;
mod passes;
mod pipeline;
mod prelink;
mod program;
#[cfg(test)]
mod random;
mod refused;
mod registration;
mod spmd;
mod symbols;
mod toolchain;
mod unit;

pub use analyses::kernels::may_describe_kernels;
pub use codegen::native_symbol;
pub use compile::{Checked, ForTargets, Request, check, compile, compile_with};
pub use compiled::{Compiled, LoweredModule};
pub use error::CompileError;
pub use instruments::PassTime;
pub use isolation::{Inspect, Isolation, Job, Kept};
pub use kernel::HostCapture;
pub use link::library::Provider;
pub use native_assembly::{Assembly, NATIVE_FILE, NativeFunction, disassemble};
pub use options::{FloatPolicy, Lanes, Options};
pub use origin::{REPLACED, RESERVED};
pub use registration::{Registers, SECTION, registration_object};
pub use spmd::outcome::{AS_FAST, LoopForm, LoopRemark, loop_remarks, place_of_refusal};
pub use toolchain::Toolchain;
