//! Pointers of address spaces, and constants in constant memory (U1, U2).

pub(crate) mod constants;
pub(crate) mod pointers;
