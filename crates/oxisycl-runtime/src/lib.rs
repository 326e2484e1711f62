//! The backend-neutral core of OxiSYCL.
//!
//! Turns command groups into a graph of commands on backends:
//!
//! - [`schedule`]: what each accessor needs;
//! - [`memory`] and [`state`]: where the newest bytes of each buffer are;
//! - [`graph`]: what waits for what;
//! - [`program`]: which compiled code a kernel has on a device;
//! - [`observe`]: what the user can see of it.
//!
//! Knows backends only through the contract of `oxisycl-backend`; no type of a concrete backend, and no generic kernel type,
//! appears here. The typed interface for users is the crate `oxisycl`.

pub mod graph;
pub mod ids;
pub mod memory;
pub mod observe;
pub mod output;
pub mod plug_ins;
mod process_end;
pub mod program;
pub mod runtime;
pub mod schedule;
pub mod selector;
pub mod state;

mod error;
mod fold_hasher;
mod fork;
mod queue_settings;

pub use error::{Error, Result};
