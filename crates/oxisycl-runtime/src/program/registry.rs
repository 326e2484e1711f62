//! Bundles of images that link units have registered, by address.
//!
//! Registering only notes the address, since it happens before `main` and while libraries are loaded; bundles are
//! decoded at the first look-up after that. Invariants: bytes are read only while their bundle is registered, under the
//! lock that taking it back also takes. The dynamic linker is never called under that lock, because constructors hold
//! the linker's own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oxisycl_backend::LoadedKernel;
use oxisycl_image::{ImageError, decode_bundle};
use oxisycl_types::NativeEntry;
use parking_lot::Mutex;

use super::index::{Image, Index, Unit};
use super::libraries::Uses;
use super::programs;
use crate::fork;
use crate::output::report;
use crate::plug_ins::is_process_ending;
use crate::plug_ins::link_unit::{self, LinkUnit};

/// The registered bundles, by address.
pub(super) struct Registry(Mutex<State>);

struct State {
    bundles: Vec<Bundle>,
    /// Of all bundles; made when it is asked for.
    index: Option<Arc<Index>>,
    next: u64,
}

struct Bundle {
    number: u64,
    bytes: usize,
    length: usize,
    native: Option<NativeTable>,
    unit: Option<(LinkUnit, String)>,
    uses: Arc<Uses>,
    images: Option<Result<Vec<Arc<Image>>, ImageError>>,
}

/// Where the table of a link unit's native entries lies.
#[derive(Clone, Copy)]
pub(super) struct NativeTable {
    address: usize,
    n: usize,
}

impl NativeTable {
    pub(super) fn new(native: *const Option<NativeEntry>, n: usize) -> Self {
        Self { address: native.expose_provenance(), n }
    }

    /// The entries.
    ///
    /// # Safety
    /// The table is valid, if it has entries.
    unsafe fn read(self) -> Arc<[Option<NativeEntry>]> {
        if self.n == 0 {
            return Arc::default();
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(self.address), self.n) }.into()
    }
}

/// What was known of a bundle.
pub(super) struct Removed {
    /// The bundle's images, and of each whether another bundle has it, too.
    pub(super) images: Vec<(Arc<Image>, bool)>,
    /// Counts commands that run native code beside it.
    pub(super) uses: Arc<Uses>,
}

impl Registry {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(State { bundles: Vec::new(), index: None, next: 0 }))
    }

    /// Adds a bundle. Returns where it lies.
    ///
    /// # Safety
    /// The bytes, and the table if it is not empty, stay valid and unchanged until the bundle is removed.
    pub(super) unsafe fn add(&self, bytes: *const u8, length: usize, native: Option<NativeTable>) -> Option<LinkUnit> {
        let unit = link_unit::find(bytes.cast());
        let mut state = self.0.lock();
        let number = state.next;
        state.next += 1;
        let place = unit.as_ref().map(|(unit, _)| *unit);
        let bytes = bytes.expose_provenance();
        state.bundles.push(Bundle { number, bytes, length, native, unit, uses: Arc::new(Uses), images: None });
        state.index = None;
        place
    }

    /// Takes a bundle back, if it is there.
    pub(super) fn remove(&self, bytes: *const u8, length: usize) -> Option<Removed> {
        let mut state = self.0.lock();
        let is_it = |bundle: &Bundle| bundle.bytes == bytes.addr() && bundle.length == length;
        let position = state.bundles.iter().position(is_it)?;
        let Bundle { images, uses, .. } = state.bundles.remove(position);
        state.index = None;
        let others: Vec<&Arc<Image>> = state.images().collect();
        let is_left = |image: &Arc<Image>| others.iter().any(|other| Arc::ptr_eq(other, image));
        let images = images.and_then(Result::ok).unwrap_or_default();
        let images = images.into_iter().map(|image| (is_left(&image), image)).map(|(left, image)| (image, left));
        Some(Removed { images: images.collect(), uses })
    }

    /// The count of commands that run native code of a link unit, if it has registered images.
    pub(super) fn uses(&self, unit: LinkUnit) -> Option<Arc<Uses>> {
        let state = self.0.lock();
        let is_it = |bundle: &&Bundle| bundle.unit.as_ref().is_some_and(|(known, _)| *known == unit);
        state.bundles.iter().find(is_it).map(|bundle| bundle.uses.clone())
    }

    /// The kernels of all bundles that are registered now.
    pub(super) fn index(&self) -> Arc<Index> {
        let mut state = self.0.lock();
        if let Some(index) = &state.index {
            return index.clone();
        }
        for position in 0..state.bundles.len() {
            if state.bundles[position].images.is_some() {
                continue;
            }
            let Bundle { bytes, length, .. } = state.bundles[position];
            // SAFETY: the bundle is registered, and its bytes are valid and unchanged until `remove` returns, which needs the lock.
            let bytes = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(bytes), length) };
            let images =
                decode_bundle(bytes).map(|images| images.into_iter().map(|image| state.share(image)).collect());
            state.bundles[position].images = Some(images);
        }
        let units = state.bundles.iter().map(|bundle| Unit {
            number: bundle.number,
            unit: bundle.unit.as_ref().map(|(unit, _)| *unit),
            name: bundle.unit.as_ref().map_or_else(String::new, |(_, name)| name.clone()),
            images: bundle.images.clone().unwrap_or_else(|| Ok(Vec::new())),
            // SAFETY: as above.
            native: bundle.native.map(|table| unsafe { table.read() }),
        });
        let index = Arc::new(Index::new(units.collect()));
        state.index = Some(index.clone());
        index
    }
}

impl State {
    fn images(&self) -> impl Iterator<Item = &Arc<Image>> {
        self.bundles.iter().filter_map(|bundle| bundle.images.as_ref()?.as_ref().ok()).flatten()
    }

    /// The image as a bundle that was decoded before has it, if one does: then it is loaded once for both.
    fn share(&self, image: oxisycl_image::DeviceImage) -> Arc<Image> {
        let known = self.images().find(|known| known.image == image).cloned();
        known.unwrap_or_else(|| Arc::new(Image { image, of: None }))
    }
}

/// Waits until only the caller holds one of the kernels or the library.
pub(super) fn wait_until_unused(kernels: &[Arc<dyn LoadedKernel>], uses: &Arc<Uses>) {
    let is_used = || Arc::strong_count(uses) > 1 || kernels.iter().any(|kernel| Arc::strong_count(kernel) > 1);
    let mut pause = Duration::from_micros(20);
    let mut tell = Some(Instant::now() + Duration::from_secs(10));
    // In a forked child the commands of its parent never end; at the end of the process nothing runs what they call.
    let is_over = || is_process_ending() || fork::is_child();
    while is_used() && !is_over() {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
        if tell.is_some_and(|time| time < Instant::now()) {
            tell = None;
            report("a library is unloaded while its kernels are pending: waiting for them");
        }
    }
}

/// Registers the bundle of device images of a link unit. Called by a constructor that the device compiler puts into the unit, before
/// `main` or while a library is loaded.
///
/// # Safety
/// As for [`Programs::register`](super::Programs::register).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __oxisycl_register_images(bytes: *const u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { programs().register(bytes, length) };
}

/// Registers the bundle of device images of a link unit together with its `n` native entries. The bundle's images of the host name these by
/// their places. Called as `__oxisycl_register_images` is, in its place. `__oxisycl_unregister_images` takes both back.
///
/// # Safety
/// As for [`Programs::register_native`](super::Programs::register_native).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __oxisycl_register_native(
    bytes: *const u8,
    length: usize,
    native: *const Option<NativeEntry>,
    n: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { programs().register_native(bytes, length, native, n) };
}

/// Takes the bundle back. Called by the destructor that belongs to the constructor.
///
/// # Safety
/// None beyond those of `__oxisycl_register_images`; it is `unsafe` to have the same type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __oxisycl_unregister_images(bytes: *const u8, length: usize) {
    programs().unregister(bytes, length);
}

/// As `__oxisycl_register_images`, for link units that use the runtime of another library. They find it by Rust's name, which no other
/// version of the runtime has.
///
/// # Safety
/// As for [`Programs::register`](super::Programs::register).
#[inline(never)]
pub unsafe extern "C" fn register_images_of_another_library(bytes: *const u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { programs().register(bytes, length) };
}

/// As `__oxisycl_register_native`, for link units that use the runtime of another library.
///
/// # Safety
/// As for [`Programs::register_native`](super::Programs::register_native).
#[inline(never)]
pub unsafe extern "C" fn register_native_of_another_library(
    bytes: *const u8,
    length: usize,
    native: *const Option<NativeEntry>,
    n: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { programs().register_native(bytes, length, native, n) };
}

/// As `__oxisycl_unregister_images`, for link units that use the runtime of another library.
///
/// # Safety
/// None beyond those of `__oxisycl_register_images`; it is `unsafe` to have the same type.
#[inline(never)]
pub unsafe extern "C" fn unregister_images_of_another_library(bytes: *const u8, length: usize) {
    programs().unregister(bytes, length);
}
