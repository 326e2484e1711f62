//! Unified shared memory (J1 to J8).

pub(crate) mod allocations;
pub(crate) mod buffers;
pub(crate) mod commands;
