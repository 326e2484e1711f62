//! Code of kernels for single values of their specialization constants.
//!
//! Invariants: a variant is used only for launches with its values, byte by byte. No byte of an argument block is read but those that the image says are
//! numbers. A kernel has [`MAX_VARIANTS`] on a device. Nothing here is held while a driver works.
//! Does not know how code is loaded.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use oxisycl_backend::{Captures, Device, LoadedKernel};
use oxisycl_image::KernelDescriptor;
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;

use super::choose::Choice;
use super::index::Image;
use crate::output::report;

/// Variants of a kernel on a device, those included that could not be built.
pub(super) const MAX_VARIANTS: usize = 16;
/// Values without a name that are remembered until they come again.
const MAX_SEEN: usize = 64;

/// The bytes of a kernel's specialization constants, in the order of the parts.
pub(super) type Key = SmallVec<[u8; 32]>;

/// What a launch passes, for the choice of a variant.
pub struct Values<'k> {
    /// The argument block.
    pub captures: Captures<'k>,
    /// Whether the values are those of named constants. Code for others is compiled when they come a second time.
    pub are_of_constants: bool,
    /// Whether loading code makes nothing wait, since no command is unfinished. Asked only if there is something to load.
    pub is_idle: fn() -> bool,
}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("are_of_constants", &self.are_of_constants).finish_non_exhaustive()
    }
}

/// The variants of one kernel on one device.
pub(super) struct Variants {
    image: Arc<Image>,
    /// The kernel's position in the image.
    kernel: usize,
    /// Offset and size of what the key is made of.
    parts: Vec<(usize, usize)>,
    table: RwLock<Table>,
    is_told: AtomicBool,
}

#[derive(Default)]
struct Table {
    variants: Vec<(Key, State)>,
    seen: VecDeque<Key>,
}

enum State {
    /// A thread is at it; others run the general code meanwhile.
    IsBuilt,
    Ready(Arc<dyn LoadedKernel>),
    /// The driver has not compiled this image in time, and goes on.
    Late(Arc<Image>),
    Failed,
}

/// A kernel, and its variants if it can have some.
pub(super) type LookedUp = (Arc<dyn LoadedKernel>, Option<Arc<Variants>>);

/// What a launch runs.
pub(super) enum Found {
    Ready(Arc<dyn LoadedKernel>),
    /// The code for all values.
    General,
    /// What the caller builds now, and says how that [ended](Variants::end).
    Build(Key),
    /// What a driver was late with. If it has answered, the caller builds it of this image, for which it need not wait.
    Late(Key, Arc<Image>),
}

/// How building a variant ended.
pub(super) enum Built {
    Ready(Arc<dyn LoadedKernel>),
    /// The driver goes on with this image.
    Late(Arc<Image>),
    /// Another attempt would fail, too.
    Failed,
    /// There was no memory for it.
    NotNow,
}

impl Variants {
    fn new(image: Arc<Image>, kernel: usize) -> Self {
        let parts = image.image.kernels[kernel].specialized_parts();
        Self { image, kernel, parts, table: RwLock::default(), is_told: AtomicBool::new(false) }
    }

    /// The program's image.
    pub(super) fn origin(&self) -> &Arc<Image> {
        &self.image
    }

    /// The variant with the values of a launch, if there is one.
    pub(super) fn ready(&self, values: &Values<'_>) -> Option<Arc<dyn LoadedKernel>> {
        let table = self.table.read();
        // Without a key, since this is a part of nearly each launch.
        table.variants.iter().find_map(|(key, state)| match state {
            State::Ready(kernel) if self.is_key(key, values) => Some(kernel.clone()),
            State::Ready(_) | State::IsBuilt | State::Late(_) | State::Failed => None,
        })
    }

    /// What a launch of the kernel runs.
    pub(super) fn find(&self, kernel: &KernelDescriptor, values: &Values<'_>) -> Found {
        let Some(key) = self.key(values) else { return Found::General };
        {
            let table = self.table.read();
            match table.state(&key) {
                Some(State::Ready(kernel)) => return Found::Ready(kernel.clone()),
                Some(State::Late(image)) => return Found::Late(key, image.clone()),
                Some(State::IsBuilt | State::Failed) => return Found::General,
                None if table.variants.len() >= MAX_VARIANTS => {
                    drop(table);
                    self.tell(kernel.display_name());
                    return Found::General;
                }
                // Before others are kept from the table.
                None if values.are_of_constants && !(values.is_idle)() => return Found::General,
                None => {}
            }
        }
        self.begin(key, values)
    }

    /// Decides whether a variant is built that there is not.
    #[cold]
    fn begin(&self, key: Key, values: &Values<'_>) -> Found {
        let mut table = self.table.write();
        // Another thread may have been faster.
        match table.state(&key) {
            Some(State::Ready(kernel)) => return Found::Ready(kernel.clone()),
            Some(State::IsBuilt | State::Late(_) | State::Failed) => return Found::General,
            None => {}
        }
        let is_seen = values.are_of_constants || table.seen.contains(&key);
        if !is_seen {
            if table.seen.len() == MAX_SEEN {
                table.seen.pop_front();
            }
            table.seen.push_back(key);
            return Found::General;
        }
        if table.variants.len() >= MAX_VARIANTS || !(values.is_idle)() {
            return Found::General;
        }
        table.seen.retain(|seen| *seen != key);
        table.variants.push((key.clone(), State::IsBuilt));
        Found::Build(key)
    }

    /// Says how building a variant ended. Returns whether there is one that there was not.
    pub(super) fn end(&self, key: &Key, built: &Built) -> bool {
        let mut table = self.table.write();
        // It may have been forgotten.
        let Some(position) = table.variants.iter().position(|(known, _)| known == key) else { return false };
        let is_new = matches!(built, Built::Ready(_)) && !matches!(table.variants[position].1, State::Ready(_));
        match built {
            Built::Ready(kernel) => table.variants[position].1 = State::Ready(kernel.clone()),
            Built::Late(image) => table.variants[position].1 = State::Late(image.clone()),
            Built::Failed => table.variants[position].1 = State::Failed,
            Built::NotNow => drop(table.variants.swap_remove(position)),
        }
        is_new
    }

    /// The image with the values of a key.
    pub(super) fn image(&self, key: &Key) -> Option<Image> {
        let value = |offset, size| {
            let mut at = 0;
            for part in &self.parts {
                if *part == (offset, size) {
                    let mut bytes = [0; 8];
                    bytes[..size].copy_from_slice(&key[at..at + size]);
                    return u64::from_le_bytes(bytes);
                }
                at += part.1;
            }
            unreachable!("each load is of a part")
        };
        let image = self.image.image.with_values(self.kernel, value)?;
        Some(Image { image, of: Some(self.image.clone()) })
    }

    /// The values of a launch; `None` if its block is not the image's, which loading has checked.
    fn key(&self, values: &Values<'_>) -> Option<Key> {
        let mut key = Key::new();
        for part in &self.parts {
            key.extend_from_slice(bytes_of(values, *part)?);
        }
        Some(key)
    }

    /// Whether these are the values of a launch.
    fn is_key(&self, key: &Key, values: &Values<'_>) -> bool {
        let mut rest = key.as_slice();
        self.parts.iter().all(|part| {
            let known = rest.split_off(..part.1);
            known.is_some() && known == bytes_of(values, *part)
        })
    }

    /// Says once that there are more values than variants.
    #[cold]
    fn tell(&self, name: &str) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            report(&format!(
                "kernel \"{name}\" was launched with more than {MAX_VARIANTS} values of its specialization constants: for further ones it is \
                 not compiled; pass values that change as plain arguments"
            ));
        }
    }

    fn forget(&self) {
        let forgotten = std::mem::take(&mut *self.table.write());
        drop(forgotten);
    }
}

/// A number in the block of a launch; `None` if the block is not the image's.
#[inline]
fn bytes_of<'v>(values: &'v Values<'_>, (offset, size): (usize, usize)) -> Option<&'v [u8]> {
    let part = values.captures.bytes().get(offset..offset + size)?;
    // SAFETY: the image says that a number lies here, which any value of the block's type has. Its author vouches for that
    // (`Programs::register`). By the promise of `Programs::code_for` the block is that of the program's kernel, which was compared.
    Some(unsafe { part.assume_init_ref() })
}

impl Table {
    fn state(&self, key: &Key) -> Option<&State> {
        self.variants.iter().find_map(|(known, state)| (known == key).then_some(state))
    }
}

/// The variants of all kernels. They outlive the table of launches, which is cleared with each library that is loaded.
pub(super) struct VariantTable(Mutex<Vec<OnDevice>>);

/// The variants of a kernel, and the device that they are for.
type OnDevice = (Weak<dyn Device>, Arc<Variants>);

impl VariantTable {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The variants of a kernel on a device; `None` if it can have none.
    pub(super) fn of(&self, device: &Arc<dyn Device>, choice: &Choice) -> Option<Arc<Variants>> {
        let Choice { image, kernel, .. } = choice;
        if image.image.kernels[*kernel].specialized.is_empty() {
            return None;
        }
        let mut all = self.0.lock();
        // Kernels of devices that are gone; dropped after the lock.
        let gone: Vec<_> = all.extract_if(.., |(device, _)| device.strong_count() == 0).collect();
        let is_it = |(of, variants): &&OnDevice| {
            std::ptr::addr_eq(of.as_ptr(), Arc::as_ptr(device))
                && Arc::ptr_eq(&variants.image, image)
                && variants.kernel == *kernel
        };
        let found = all.iter().find(is_it).map(|(_, variants)| variants.clone());
        let variants = found.unwrap_or_else(|| {
            let variants = Arc::new(Variants::new(image.clone(), *kernel));
            all.push((Arc::downgrade(device), variants.clone()));
            variants
        });
        drop(all);
        drop(gone);
        Some(variants)
    }

    /// Whether a driver was late with one of them, as far as launches have seen.
    #[cfg(test)]
    pub(super) fn has_late(&self) -> bool {
        let is_late = |variants: &Variants| {
            let table = variants.table.read();
            table.variants.iter().any(|(_, state)| matches!(state, State::Late(_)))
        };
        self.0.lock().iter().any(|(_, variants)| is_late(variants))
    }

    /// Forgets the variants of an image, so that nothing here holds its kernels.
    pub(super) fn forget(&self, image: &Arc<Image>) {
        let forgotten: Vec<_> =
            self.0.lock().extract_if(.., |(_, variants)| Arc::ptr_eq(&variants.image, image)).collect();
        forgotten.iter().for_each(|(_, variants)| variants.forget());
    }
}
