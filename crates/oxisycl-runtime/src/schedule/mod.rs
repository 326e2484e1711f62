//! From command groups to nodes: what a command must wait for, and which bytes must move before it can run.
//!
//! Invariants: command groups with conflicting requirements run in the order of their submission, also across queues
//! and threads. That holds because all buffers of a group are locked together while it is scheduled. Nothing is
//! enqueued if scheduling fails. Submitting never waits for a device. How data moves and who waits for whom is decided
//! here and only here.

mod conflicts;
mod context;
mod host_access;
mod pace;
mod plan;
mod queue;
mod requirement;
mod stock;
mod transfer;

pub use conflicts::Conflicts;
pub use context::Context;
pub use host_access::{HostAccess, bring_to, quiesce};
pub use queue::{CommandGroup, Queue};
pub use requirement::{BufferView, Regions, Requirement};
