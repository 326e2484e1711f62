//! Analyses of kernels and their code. They change no module that becomes an image.

pub(crate) mod capture_check;
pub(crate) mod definitions;
pub(crate) mod dependencies;
pub(crate) mod early_refusal;
pub(crate) mod exports;
pub(crate) mod group_scope;
pub(crate) mod kernels;
pub(crate) mod legality;
pub(crate) mod natural_loops;
pub(crate) mod open_loops;
pub(crate) mod references;
pub(crate) mod source_location;
pub(crate) mod specialized_parts;
pub(crate) mod stack;
pub(crate) mod uniformity;
