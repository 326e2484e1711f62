//! Which loaded library the native code of a kernel lies in, so that unloading it can wait for launches on devices that run native
//! code. Launches on other devices hold the kernel's module instead.
//!
//! Costs nothing as long as only the program itself has registered images.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use crate::fold_hasher::FoldHasher;
use crate::plug_ins::link_unit::{self, LinkUnit};

/// Kept by a pending command: the library that holds its native code stays loaded.
#[derive(Clone, Debug)]
pub struct LibraryHold {
    _uses: Arc<Uses>,
}

/// Counts, by its references, the commands that run code of a library.
#[derive(Debug)]
pub(super) struct Uses;

/// The loaded libraries, by the kernels whose native code lies in them.
pub(super) struct Libraries {
    /// Whether a library, and not only the program, has registered images.
    are_there: AtomicBool,
    /// By the address of the native code; none for code of the program or of a library without images.
    known: RwLock<HashMap<usize, Option<Weak<Uses>>, FoldHasher>>,
}

impl Libraries {
    pub(super) const fn new() -> Self {
        Self { are_there: AtomicBool::new(false), known: RwLock::new(HashMap::with_hasher(FoldHasher::new())) }
    }

    /// A link unit has registered images, or has taken them back.
    pub(super) fn changed(&self, unit: Option<LinkUnit>) {
        if unit.is_some() && unit != link_unit::of_program() {
            self.are_there.store(true, Ordering::Release);
        }
        self.known.write().clear();
    }

    /// Keeps the library loaded that the code lies in, if it is one. `find` looks for it.
    #[inline]
    pub(super) fn hold(&self, code: usize, find: impl FnOnce() -> Option<Arc<Uses>>) -> Option<LibraryHold> {
        if self.are_there.load(Ordering::Acquire) { self.look_up(code, find) } else { None }
    }

    #[cold]
    fn look_up(&self, code: usize, find: impl FnOnce() -> Option<Arc<Uses>>) -> Option<LibraryHold> {
        let known = self.known.read().get(&code).map(|uses| uses.as_ref().map(Weak::upgrade));
        let uses = match known {
            Some(None) => None,
            Some(Some(Some(uses))) => Some(uses),
            // Not known, or of a library that is gone.
            None | Some(Some(None)) => {
                let uses = find();
                self.known.write().insert(code, uses.as_ref().map(Arc::downgrade));
                uses
            }
        };
        uses.map(|uses| LibraryHold { _uses: uses })
    }
}
