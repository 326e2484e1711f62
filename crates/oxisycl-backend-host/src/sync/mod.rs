//! The synchronisation primitives of the parts whose protocols are model checked: `std`'s and `parking_lot`'s, or `loom`'s under
//! `cfg(loom)`. Both files offer the same names.

#[cfg_attr(loom, path = "model.rs")]
#[cfg_attr(not(loom), path = "native.rs")]
mod chosen;

pub(crate) use chosen::{AtomicBool, AtomicU8, AtomicUsize, Lock, Ordering, Parker, fence};
