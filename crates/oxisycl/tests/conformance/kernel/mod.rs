//! Kernels: index spaces, what they capture, and what is refused or reported (F1 to F3, F5, F12, E1).

pub(crate) mod bundles;
pub(crate) mod captures;
pub(crate) mod errors;
pub(crate) mod panics;
pub(crate) mod prints;
pub(crate) mod ranges;
pub(crate) mod sources;
