//! Functions that the device compiler links into kernels where a target has none of its own: mathematical functions, and a few
//! functions on memory that compiled Rust calls by their C names.
//!
//! A dependency of every program, so that it is compiled for devices with the program's own crates. Native code does not call it: there
//! Rust's methods use the platform's library. The names are known to the compiler (`oxisycl-compiler`, `stage/float.rs`).
//!
//! Mathematical functions are those of the crate `libm`, a port of musl's, within 1 unit in the last place for most arguments. Some of
//! them compute in `f64` also for `f32`.
#![no_std]

mod math;
mod memory;
