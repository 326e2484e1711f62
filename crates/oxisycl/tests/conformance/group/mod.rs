//! Kernels over work-groups: phases, the memory of groups, and what is refused or reported (C7, F6, I14, Q8).

pub(crate) mod algorithms;
pub(crate) mod deaths;
pub(crate) mod errors;
pub(crate) mod joint;
pub(crate) mod memory;
pub(crate) mod panics;
pub(crate) mod phases;
pub(crate) mod sub_groups;
pub(crate) mod vectors;
