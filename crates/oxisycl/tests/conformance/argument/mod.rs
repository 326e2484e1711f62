//! Arguments beside kernels: what may be passed, derived types, and functions as kernels.

pub(crate) mod attributes;
pub(crate) mod blocks;
pub(crate) mod constants;
pub(crate) mod derived;
pub(crate) mod example;
pub(crate) mod functions;
pub(crate) mod passing;
