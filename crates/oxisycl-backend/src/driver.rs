//! Code that is shared by backends whose devices are reached through a driver of their own.
//!
//! - `block_pool`: memory for arguments that are passed by address;
//! - `box_shape`: pitched boxes in the form that needs the fewest calls;
//! - `grids`: launches cut into grids;
//! - `host_transfer`: copies and fills by a thread of the host;
//! - `image_facts`: what an image states about its kernels;
//! - `panic_report` and `print_pool`: panic records as text, and print buffers;
//! - `worker`: threads that sleep while they have no work.
//!
//! None of it calls a driver.

mod block_pool;
mod box_shape;
mod grids;
mod host_transfer;
mod image_facts;
mod panic_report;
mod print_pool;
mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use block_pool::BlockPool;
pub use box_shape::{BoxShape, Pitches};
pub use grids::{Grid, Grids, each};
pub use host_transfer::transfer_on_host;
pub use image_facts::{ImageFacts, log_text};
pub use panic_report::{failure as panic_failure, take as take_report};
pub use print_pool::{PrintPool, printed};
pub use worker::{Worker, spawn};

/// Calls a method of a completion, and catches its panic. It must not panic; if it does, the panic hook has printed the message, and other
/// work goes on.
pub fn call_completion(completion: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(completion)) {
        std::mem::forget(payload);
    }
}
