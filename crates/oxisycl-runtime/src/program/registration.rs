//! Adding the bundle of a link unit to the program manager, and taking it back before the unit is unloaded.

use oxisycl_types::NativeEntry;

use super::Programs;
use super::registry::{self, NativeTable, Removed};
use crate::plug_ins::{self, link_unit::LinkUnit};

impl Programs {
    /// Adds the bundle of images in memory, which is read when a kernel is looked up.
    ///
    /// # Safety
    /// The bytes stay valid and unchanged until [`unregister`](Self::unregister) was called for them. They are what the device
    /// compiler made, or the user has vouched for their code.
    pub unsafe fn register(&self, bytes: *const u8, length: usize) {
        // SAFETY: the caller's promise.
        let unit = unsafe { self.registry.add(bytes, length, None) };
        self.added(unit);
    }

    /// Adds the bundle of images in memory, as [`register`](Self::register) does, and the `n` native entries that its images of the host
    /// name by their places.
    ///
    /// # Safety
    /// That of [`register`](Self::register), also for the table, which is valid and aligned for its entries unless it has none. An entry that an image names
    /// keeps the contract of [`NativeEntry`] for the kernel of that image, on every processor of the image's level. Bytes, table and entries lie in
    /// one link unit.
    pub unsafe fn register_native(
        &self,
        bytes: *const u8,
        length: usize,
        native: *const Option<NativeEntry>,
        n: usize,
    ) {
        // SAFETY: the caller's promise.
        let unit = unsafe { self.registry.add(bytes, length, Some(NativeTable::new(native, n))) };
        self.natives.registered();
        self.added(unit);
    }

    fn added(&self, unit: Option<LinkUnit>) {
        self.libraries.changed(unit);
        // Kernels may have been chosen that are not the best any more, or were ambiguous.
        self.launches.clear();
        self.natives.clear();
    }

    /// Takes a bundle back: its kernels are not found any more. Waits until no command uses one of them or native code
    /// beside it, since commands also refer to descriptors in the link unit.
    ///
    /// At the end of the process it does nothing: drivers may be gone before the last library is.
    pub fn unregister(&self, bytes: *const u8, length: usize) {
        if plug_ins::is_process_ending() {
            return;
        }
        let removed = self.registry.remove(bytes, length);
        self.libraries.changed(None);
        self.launches.clear();
        // Later launches run the program's own code. Commands that have the library's hold it.
        self.natives.clear();
        let Some(Removed { images, uses }) = removed else { return };
        let mut kernels = Vec::new();
        for (image, is_registered) in &images {
            self.modules.take_kernels(image, *is_registered, &mut kernels);
        }
        // Not before: a launch of another link unit that has the image may have put a kernel there meanwhile. Later ones get other kernels.
        self.launches.clear();
        images.iter().for_each(|(image, _)| self.variants.forget(image));
        // Where commands keep libraries loaded, none of this one is pending.
        if !plug_ins::is_shared() {
            registry::wait_until_unused(&kernels, &uses);
        }
        // What was being loaded for commands that have ended by now.
        for (image, _) in images.iter().filter(|(_, is_registered)| !is_registered) {
            self.modules.take_kernels(image, false, &mut Vec::new());
        }
    }
}
