//! The code that kernels become, and what the compiler says of those that become none: `cargo sycl` on the programs of `kernels`, without
//! a GPU.

mod address_spaces;
mod amdgcn;
mod attributes;
mod captures;
mod convergence;
#[path = "../../../oxisycl-compiler/src/codegen/disassembly.rs"]
mod disassembly;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod failing_lanes;
mod floats;
mod groups;
mod halves;
mod images;
mod interrupted;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod item_loops;
mod layouts;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod lengths;
mod library;
mod lines;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod native;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod one_by_one;
mod outside;
mod pairs;
mod panics;
mod program;
mod ptx_thread;
mod ptxas;
mod recursion;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod reductions;
mod refusals;
mod specialized;
mod targets;
mod times;
mod views;
mod worked_example;
