//! The contract between the runtime and its backends (the RFC's "interface layer").
//!
//! A backend exposes platforms with devices ([`Backend`], [`Platform`], [`Device`]), memory ([`Memory`]) and queues ([`Queue`]). A queue
//! executes [`Command`]s asynchronously, in an order given by [`Event`]s. It reports the end of each one to its [`Completion`].
//!
//! Invariants that every backend keeps:
//! - `issue` never waits for device work, and never calls user code other than `Completion::complete`.
//! - Each accepted command completes exactly once, on whatever thread, also if a dependency failed or the device is lost.
//! - A command reports its own failure only. If a backend starts commands after their dependencies have ended, it does not run one
//!   with a failed dependency of kind `Data`, and reports that. A backend that issues commands ahead runs it. The runtime decides what
//!   the failure means.
//! - No lock of the backend is held while `complete` runs.
//!
//! All checks of arguments that a user could get wrong live above this layer, in the runtime. This crate knows no buffers, no
//! accessors and no graph.
//!
//! Backends with drivers share [`lane`], the life of a command below the contract, and [`driver`]. A device that must be polled has a [`poller`],
//! a thread that the runtime starts. The crate `oxisycl-backend-testing` has the tests that every backend passes, and a backend that records its
//! commands.

mod arguments;
mod clock;
mod command;
mod device;
pub mod driver;
mod error;
mod fill_pattern;
pub mod fork;
mod info;
mod kernel_box;
pub mod lane;
mod memory;
mod module;
mod native_command;
pub mod panic_hook;
pub mod poller;
pub mod pool;
pub mod process_end;
mod queue;
mod raw_kernel;
mod setting;
mod sync;

pub use arguments::{ArgumentBlock, Captures};
pub use clock::now;
pub use command::{Advice, Command, CopyCommand, FillCommand, KernelCommand, NativeCode, PitchedBox};
pub use device::{AffinityDomain, Backend, Device, Partition, Platform, PlatformInfo};
pub use error::{BackendError, CommandFailure, FailureKind, Operation};
pub use fill_pattern::FillPattern;
pub use info::{
    CacheType, DeviceInfo, ExecutionCapability, FpConfig, LocalMemoryType, MemoryOrder, MemoryScope, OpenClInfo,
    PartitionProperty, VectorWidths,
};
pub use kernel_box::KernelBox;
pub use memory::{Memory, MemoryId, MemoryInfo, UsmKind};
pub use module::{KernelGroupLimits, KernelInfo, LoadedKernel, Module};
pub use native_command::{NativeCommand, NativeQueue, NativeWork};
pub use queue::{
    Batching, Completion, Dependency, DependencyKind, Event, EventDomain, EventStatus, ExecutionTimes, KernelOutput,
    MAX_PRINTING, NativeHandle, Outcome, Priority, Queue, QueueInfo, QueueOptions,
};
pub use raw_kernel::{RawKernel, RawLaunch, RawModule, RawRefusal, RawValue, Source};
pub use setting::bytes_setting;
