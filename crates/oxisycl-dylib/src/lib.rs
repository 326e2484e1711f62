//! OxiSYCL as one dynamic library, so that a program and its plug-ins share one runtime.
//!
//! Has the names and features of [`oxisycl`], and takes its place under its name:
//!
//! ```toml
//! [dependencies]
//! oxisycl = { package = "oxisycl-dylib", version = "0.1" }
//! ```
//!
//! Crates between that know `oxisycl` alone can be used with it: their types are the same. Without this crate, each program and each `cdylib` has
//! a runtime of its own.

pub use oxisycl::*;
