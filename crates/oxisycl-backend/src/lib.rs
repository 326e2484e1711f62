//! The contract between the runtime and its backends (the RFC's "interface layer", S-F2).
//!
//! A backend exposes platforms with devices ([`Backend`], [`Platform`], [`Device`]), memory ([`Memory`]) and queues
//! ([`Queue`]) that execute [`Command`]s asynchronously, in an order given by [`Event`]s, and report the end of each one to its
//! [`Completion`].
//!
//! Invariants that every backend keeps:
//! - `enqueue` never waits for device work, and never calls user code other than `Completion::complete`.
//! - Each accepted command completes exactly once, on whatever thread, also if a dependency failed or the device is lost.
//! - A command reports its own failure only. A backend that starts commands after their dependencies have ended does not run one with
//!   a failed dependency of kind `Data`, and reports that; one that issues commands ahead runs it. What the failure means is decided
//!   by the runtime.
//! - No lock of the backend is held while `complete` runs.
//!
//! All checks of arguments that a user could get wrong live above this layer, in the runtime. This crate knows no buffers, no
//! accessors and no graph.
//!
//! Backends whose devices have drivers share [`lane`], the life of a command that a driver has, and [`driver`]. What has to be asked how far
//! it is has a [`poller`], a thread of whoever makes the queue. The tests that every backend passes, and a backend that records its commands, are
//! the crate `oxisycl-backend-testing`.

mod arguments;
mod command;
mod device;
pub mod driver;
mod error;
mod fill_pattern;
mod info;
mod kernel_box;
pub mod lane;
mod memory;
mod module;
pub mod poller;
pub mod pool;
pub mod process_end;
mod queue;
mod sync;

pub use arguments::{ArgumentBlock, Captures};
pub use command::{Advice, Command, CopyCommand, FillCommand, KernelCommand, Rectangle};
pub use device::{AffinityDomain, Backend, Device, Partition, Platform, PlatformInfo};
pub use error::{BackendError, CommandFailure, FailureKind, Operation};
pub use fill_pattern::FillPattern;
pub use info::{
    CacheType, DeviceInfo, ExecutionCapability, FpConfig, LocalMemoryType, MemoryOrder, MemoryScope, OpenClInfo,
    PartitionProperty, VectorWidths,
};
pub use kernel_box::KernelBox;
pub use memory::{Memory, MemoryId, UsmKind};
pub use module::{LoadedKernel, Module};
pub use queue::{
    Completion, Dependency, DependencyKind, Event, EventStatus, ExecutionTimes, KernelOutput, MOST_PRINTING, Outcome,
    Priority, Queue, QueueOptions,
};
