//! The graph and the scheduler on devices that record what they are asked to do and end commands only when a test says so.
//!
//! Each test has devices of its own. The runtime and its counters are process-wide, so tests that compare counters are in
//! `tests/process.rs` and run one at a time.

mod delays;
mod destructors;
mod failures;
mod lifetime;
mod loads;
mod order;
mod pages;
mod places;
mod programs;
mod regions;
mod reports;
mod size;
mod storms;
mod support;
mod transfers;
mod waits;
mod ways;
