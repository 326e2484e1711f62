//! Functions that the device compiler links into kernels where a target has none of its own. They are mathematical functions, and a few
//! memory functions that compiled Rust calls by their C names.
//!
//! A dependency of every program, so that it is compiled for devices with the program's own crates. The compiler knows the names that
//! begin with `__oxisycl_` (`oxisycl-compiler`, `passes/libcalls.rs`). Native code calls those of `f32` in lanes alone. Elsewhere Rust's methods use
//! the platform's library, and `oxisycl::math` uses the functions of [`single`], [`double`] and [`exact`] that the platform's library lacks.
#![no_std]

pub mod double;
pub mod exact;
mod memory;
mod names;
mod operation;
mod powers;
pub mod single;
