//! The graph and the scheduler on devices that record what they are asked to do and end commands only when a test says so.
//!
//! Each test has devices of its own; the runtime and its counters are of the process, so tests that compare counters are in
//! `tests/process.rs`, one at a time.

mod delays;
mod destructors;
mod failures;
mod lifetime;
mod order;
mod pages;
mod places;
mod programs;
mod regions;
mod reports;
mod storms;
mod support;
mod transfers;
mod waits;
mod ways;
