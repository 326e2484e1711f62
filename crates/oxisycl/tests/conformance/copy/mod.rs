//! Copies and fills as commands (E6, E7).

pub(crate) mod between;
pub(crate) mod fill;
pub(crate) mod host;
