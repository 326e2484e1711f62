//! What tests of the runtime and of backends share.
//!
//! - [`contract`]: the tests that every backend passes.
//! - [`recording`]: a backend that records its commands, and ends each one when the test says so.
//! - [`harness`]: what the runtime does around a queue, for tests that use one by itself.
//! - [`footprint`]: the memory that a process holds for its commands.
//! - [`loaded`]: kernels in the language of a driver.
//! - [`probe`]: the end of a command, and of many.
//! - [`suite`]: suites whose tests may be skipped with a reason.
//! - [`debug_events`]: the `tracing` events that a backend sends.
//! - [`quirks`]: the switch of the quirks of drivers, and the book's page of them.
//!
//! Published crates have this one as a development dependency only: no program links it.

pub mod contract;
pub mod debug_events;
pub mod footprint;
pub mod harness;
pub mod loaded;
pub mod probe;
pub mod quirks;
pub mod recording;
pub mod suite;
