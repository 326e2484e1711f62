//! Tests through the contract: devices, queues, commands, completions. Tests of one file's functions stand in that file.

mod device;
mod graph;
mod host_memory;
mod panics;
mod sharing;
mod simulated_commands;
mod simulated_memory;
mod simulated_order;
mod sleeping;
pub(crate) mod support;
mod transfers;
