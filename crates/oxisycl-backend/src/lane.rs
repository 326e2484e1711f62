//! The life of a command that was issued to a driver, for all backends with drivers.
//!
//! A [`Lane`] is one stream or queue of a driver. It holds the issued commands, in the driver's order, until they are reported. A
//! [`DriverQueue`] issues each command on one of its lanes and is the contract's [`Queue`](crate::Queue). [`Lanes`] are all lanes of one
//! device. They count its commands, and own the panic records of its launches. What differs between drivers is a [`Driver`]: types, and
//! functions that are resolved when the backend is compiled.
//!
//! The life of a command:
//! 1. [`DriverQueue`] checks the command, makes a [`Task`] and chooses a lane (`queue`).
//! 2. The lane issues the task to the driver (`ring`).
//! 3. The poller or a waiting thread asks the driver which tasks are over, and moves them off the ring (`poll`).
//! 4. The same thread reports each of them (`end`).
//!
//! Invariants:
//! - A task is on one lane, at one position, and is reported once. Its event says `Complete` from just before the completion is called, so that a
//!   completion sees its own command as complete.
//! - The order of a lane's ring is the order of the driver's calls: both happen with the ring locked.
//! - One thread at a time takes tasks off a lane, so that they end in order. It holds no lock while it reports one.
//! - No lock is held while a completion runs, nor while a device is marked as lost: that asks the lanes which kernels they have.
//! - A finished task keeps nothing but its memory, which is used again.
//!
//! No command is held back here, and none knows of another one's failure.

mod driver;
mod end;
mod lanes;
mod poll;
mod queue;
mod records;
mod ring;
mod task;
mod turn;

pub use driver::{Driver, KernelFacts, Tasks};
pub use lanes::Lanes;
pub use queue::{DriverQueue, LaneQueue};
pub use records::RecordPool;
pub use ring::{Lane, Ring};
pub use task::{Place, Position, Task};
