//! Folders that keep compiled code for later processes of the same user, below a size.
//!
//! Owns the private folder, whole files, and the choice of what is removed. Invariants: a file appears by a rename, so other processes see all of
//! it or nothing. Nothing is read that another user could have written. The entries together are not larger than the limit after each
//! [`make_room`](CacheFolder::make_room).
//! Does not know what an entry means, and does not protect against another program of the same user.

mod folder;
mod private;

pub use folder::{CacheFolder, Entry};
pub use private::make_private;
