//! NVIDIA GPUs as an OxiSYCL backend, through the CUDA driver that is found at run time.
//!
//! Needs no toolkit, neither to build nor to run. The driver library is loaded when platforms are first asked for ([`CudaBackend`]), and
//! without one there is no platform. Device images are PTX.
//!
//! The life of a command is [`oxisycl_backend::lane`]'s; `lane` is this driver's part of it. A command is put on a `stream` behind events of its
//! unfinished dependencies by `execute` (`launch_shape`, `transfer`, `fill`). Small kernels on a busy stream go out together (`batch`).
//! A poll asks the driver how far the stream has come.
//!
//! Invariants:
//! - Launching costs the driver's launch and little else: nothing is recorded on the device per command, except for profiling.
//! - No lock is held while a [`Completion`](oxisycl_backend::Completion) runs, and no completion runs on a thread of the driver.
//! - What comes back from a device is not trusted.
//! - Every call on a lost device names the kernel that was the first not known to have finished. Other devices go on as far as the
//!   driver lets them (the quirk `shared-loss`).
//!
//! Differences from the contract's letter, which follow from how the device works:
//! - A command is given to the device before its dependencies have ended. If a dependency turns out to have failed (its kernel
//!   panicked), the command has run on what that left. It is memory-safe on any data.
//! - Some transfers use host memory that the driver does not know, because this backend did not allocate it. A thread of the runtime
//!   executes them once their dependencies have ended (`host_transfer`, the quirk `waiting-copies`).
//! - Freed memory goes back to the driver once the device has nothing to do (`retired`, the quirk `waiting-free`).
//! - In this driver, loading a module waits for running kernels. So does the first launch of a kernel of an image that is not loaded yet.
//! - The driver keeps about a thousand launches per stream; beyond that, issuing waits until the device has begun the oldest.
//!
//! Knows no buffers, no accessors and no command groups, and checks no argument that the runtime has already checked.

mod backend;
mod batch;
mod block_buffer;
mod clock;
mod context;
mod device;
mod device_state;
mod emitter;
mod error;
mod executable;
mod execute;
mod families;
mod fill;
mod fill_kernels;
mod foreign;
mod host_transfer;
mod info;
mod lane;
mod launch_shape;
mod launcher;
mod memory;
mod module;
mod native;
mod peers;
mod print_buffer;
mod quirks;
mod raw_kernel;
mod records;
mod retired;
mod stack;
mod stream;
mod sys;
mod transfer;

pub use backend::CudaBackend;
pub use native::{native_context, native_device, native_streams};
