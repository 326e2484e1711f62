//! Accessors of kernels: what each mode allows, and which elements it names (I1 to I5, I7 to I10, S-R18).

pub(crate) mod atomics;
pub(crate) mod chunks;
pub(crate) mod groups;
pub(crate) mod modes;
pub(crate) mod ranges;
pub(crate) mod views;
