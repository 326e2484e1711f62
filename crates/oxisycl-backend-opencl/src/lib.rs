//! OpenCL devices as an OxiSYCL backend, through the loader that is found at run time.
//!
//! Needs no SDK, neither to build nor to run. The loader (`libOpenCL.so.1`) is loaded when platforms are first asked for
//! ([`OpenClBackend`]), and without one there is no platform. Device images are SPIR-V; devices that take none are listed with the reason
//! why they cannot be used.
//!
//! The life of a command is [`oxisycl_backend::lane`]'s; `lane` is this driver's part of it. `execute` makes the driver's calls (`launch_shape`,
//! `transfer`, `fill`) with the list of events that the command waits for (`emitter`). A poll asks the driver how far it is. A
//! thread that goes on submitting asks, too (`submit_polling`).
//!
//! Invariants:
//! - No code of this crate, or of a user, runs on a thread of the driver: there are no callbacks. Whether commands are over is asked.
//! - No lock is held while a [`Completion`](oxisycl_backend::Completion) runs, but the one that the end of the process waits for.
//! - A waiting thread waits for no other command than its own. The driver's own waiting functions are used by `driver_wait` alone, whose
//!   thread no other thread waits for.
//! - What comes back from a device is not trusted.
//! - Every call on a lost device names the command that the driver ended. A lost device gives nothing back that it may use still.
//!
//! Differences from the contract's letter, which follow from how OpenCL works:
//! - A command is given to the driver before its dependencies have ended. If a dependency turns out to have failed (its kernel
//!   panicked), the command has run on what that left. It is memory-safe on any data.
//! - A command that the driver ends with an error costs the device: OpenCL leaves open what others do then.
//! - Events of other devices are waited for by the runtime. Each device has a context of its own, and copies between two go through the host.
//! - Advice on memory does nothing, since OpenCL gives it no meaning. Boxes are copied and filled row by row.
//! - Sub-devices have contexts of their own. They share the memory of their root device where that is the host's, as on CPUs.
//! - The driver's queues are used again (`queue_pool`).
//! - What single drivers get wrong is in the table of `quirks`, whose flags each context has.
//!
//! [`sys`] is the API: types, numbers, and the table of functions of a loaded library. [`bare`] runs single kernels on one device and
//! waits for each: that is how tests of the device compiler execute the SPIR-V that it makes.

mod backend;
pub mod bare;
mod block_buffer;
mod capabilities;
mod clock;
mod context;
mod device;
mod device_state;
mod driver_wait;
mod emitter;
mod error;
mod execute;
mod fill;
mod foreign;
mod info;
mod issued;
mod lane;
mod launch_shape;
mod memory;
mod module;
mod native;
mod print_buffer;
mod process_exit;
mod query;
mod queue_pool;
mod quirks;
mod raw_kernel;
mod records;
mod sharing;
mod submit_polling;
mod svm;
pub mod sys;
#[cfg(test)]
mod tests;
mod transfer;
mod unusable;

pub use backend::OpenClBackend;
pub use native::{native_context, native_device, native_events, native_platform, native_queue};
pub use sharing::SharingKind;
