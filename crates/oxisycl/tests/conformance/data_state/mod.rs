//! The runtime specification on buffers: their allocations, the state of their pages, and transfers (S-R2 to S-R38).

pub(crate) mod allocations;
pub(crate) mod conflicts;
pub(crate) mod pages;
pub(crate) mod pointers;
pub(crate) mod transfers;
