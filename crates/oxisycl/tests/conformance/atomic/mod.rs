//! Atomic operations with orders and scopes (Q1 to Q4).

pub(crate) mod litmus;
pub(crate) mod local;
pub(crate) mod references;
pub(crate) mod wide;
