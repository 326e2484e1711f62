//! Host accessors: the data they show, and what they hold back (I13, S-F12, S-F20, S-F21).

pub(crate) mod blocking;
pub(crate) mod data;
