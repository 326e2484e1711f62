//! Kernels that were launched before, by device: what a launch looks into first. There is one table for loaded kernels, and one for native code.
//!
//! Invariant: a kernel that was found before the last [`clear`](Launches::clear) is not given out after it.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use oxisycl_backend::{Device, KernelInfo, LoadedKernel};
use oxisycl_image::{KernelDescriptor, KernelId};
use parking_lot::RwLock;

use super::variants::{LookedUp, Values};
use crate::fold_hasher::FoldHasher;

/// A table of what launches have found, by kernel and device.
pub(super) struct Launches<T> {
    known: RwLock<HashMap<LaunchKey, Known<T>, FoldHasher>>,
    generation: AtomicU64,
}

/// A kernel of one link unit on one device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct LaunchKey {
    /// The address of the device, which [`Known`] keeps from being used again.
    device: usize,
    id: KernelId,
    /// The address of the native code, which tells equal kernels of several link units apart.
    entry: usize,
}

impl Hash for LaunchKey {
    /// Of the addresses alone, which nearly all kernels differ by.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.entry);
        state.write_usize(self.device);
    }
}

static NEXT_GENERATION: AtomicU64 = AtomicU64::new(1);

struct Known<T> {
    device: Weak<dyn Device>,
    found: T,
}

impl LaunchKey {
    #[inline]
    pub(super) fn new(device: &Arc<dyn Device>, descriptor: &KernelDescriptor) -> Self {
        Self {
            device: Arc::as_ptr(device).addr(),
            id: descriptor.id,
            entry: (descriptor.host_entry as *const ()).addr(),
        }
    }
}

impl Launches<LookedUp> {
    /// What a launch with these values runs if nothing has to be built for it, and the limits of the code for all values.
    #[inline]
    pub(super) fn ready(&self, key: &LaunchKey, values: &Values<'_>) -> Option<(Arc<dyn LoadedKernel>, KernelInfo)> {
        let table = self.known.read();
        let (kernel, variants) = &table.get(key)?.found;
        let ready = variants.as_ref().map_or_else(|| Some(kernel.clone()), |of| of.ready(values))?;
        Some((ready, *kernel.info()))
    }
}

impl<T: Clone> Launches<T> {
    pub(super) const fn new() -> Self {
        Self { known: RwLock::new(HashMap::with_hasher(FoldHasher::new())), generation: AtomicU64::new(0) }
    }

    #[inline]
    pub(super) fn get(&self, key: &LaunchKey) -> Option<T> {
        self.known.read().get(key).map(|known| known.found.clone())
    }

    /// Tells the time between two calls of [`clear`](Self::clear) from any other, also of other tables; 0 before the first.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// What `find` finds, unless all was forgotten since the generation was asked for. Nothing is forgotten meanwhile.
    pub(super) fn if_unchanged<F>(&self, generation: u64, find: impl FnOnce() -> Option<F>) -> Option<F> {
        let _known = self.known.read();
        (self.generation() == generation).then(find).flatten()
    }

    /// Remembers what was looked up since the generation was asked for. Returns false, and does not, if all was forgotten
    /// meanwhile.
    pub(super) fn insert(&self, generation: u64, key: LaunchKey, device: &Arc<dyn Device>, found: T) -> bool {
        let mut known = self.known.write();
        if self.generation() != generation {
            return false;
        }
        // Kernels of devices that are gone; dropped after the lock.
        let gone: Vec<_> = known.extract_if(|_, known| known.device.strong_count() == 0).collect();
        known.insert(key, Known { device: Arc::downgrade(device), found });
        drop(known);
        drop(gone);
        true
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        let mut known = self.known.write();
        self.generation.store(NEXT_GENERATION.fetch_add(1, Ordering::Relaxed), Ordering::Release);
        let gone = std::mem::take(&mut *known);
        drop(known);
        drop(gone);
    }
}
