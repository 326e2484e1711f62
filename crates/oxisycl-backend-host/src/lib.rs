//! The host CPU and simulated discrete devices as OxiSYCL backends.
//!
//! Owns everything that executes commands with the program's own threads:
//! - `task`: the task and its event;
//! - `pool`: the thread pool of the process;
//! - [`HostBackend`]: the host device with its sub-devices;
//! - [`SimulatedBackend`]: any number of simulated devices with separate, poisoned memory.
//!
//! Invariants:
//! - A command is one allocation, which is both the task and its event; it completes exactly once.
//! - No lock is held while kernel code or a [`Completion`](oxisycl_backend::Completion) runs.
//! - A panic in a kernel ends that command with a failure, and nothing else.
//!
//! Knows no buffers, no accessors and no command groups, and checks no argument that the runtime has already checked.

mod backend;
mod device;
mod event;
mod info;
mod kernel;
mod levels;
mod links;
mod memory;
mod panic_hook;
mod pool;
mod queue;
mod simulated;
mod stacks;
mod sync;
mod task;
mod topology;
mod transfer;
mod waiting;

#[cfg(all(test, not(loom)))]
mod tests;

pub use backend::HostBackend;
pub use kernel::in_kernel;
pub use simulated::{Direction, Fault, SimulatedBackend, SimulatedConfig, SimulatedControl, TransferCount};
pub use topology::{SysfsTopology, Topology};
