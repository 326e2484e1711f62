//! What is in the registered images, by kernel.

use std::collections::HashMap;
use std::sync::Arc;

use oxisycl_image::{DeviceImage, ImageError};
use oxisycl_types::NativeEntry;

use super::{KernelKey, KnownKernel};
use crate::plug_ins::link_unit::LinkUnit;

/// An image of the program. Images with equal contents are one.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) image: DeviceImage,
    /// The program's image that this one is a variant of.
    pub(super) of: Option<Arc<Image>>,
}

/// The bundle of one link unit.
#[derive(Clone)]
pub(super) struct Unit {
    /// Tells bundles apart.
    pub(super) number: u64,
    /// Where it was registered from, if that is known.
    pub(super) unit: Option<LinkUnit>,
    /// The file; empty if it is not known.
    pub(super) name: String,
    pub(super) images: Result<Vec<Arc<Image>>, ImageError>,
    /// The native entries of the bundle; `None` if it was registered without a table of them.
    pub(super) native: Option<Arc<[Option<NativeEntry>]>>,
}

/// A kernel in an image.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    /// By its position among the image's kernels.
    Kernel(usize),
    /// By its position among the kernels that the image's target cannot run.
    Unsupported(usize),
}

/// One image that tells of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) bundle: u64,
    pub(super) unit: Option<LinkUnit>,
    pub(super) image: Arc<Image>,
    pub(super) entry: Entry,
}

/// The kernels of all registered images.
pub(super) struct Index {
    units: Vec<Unit>,
    candidates: HashMap<KernelKey, Vec<Candidate>>,
    /// The keys in the order of registration.
    keys: Vec<KernelKey>,
}

impl Index {
    pub(super) fn new(units: Vec<Unit>) -> Self {
        let mut index = Self { units: Vec::new(), candidates: HashMap::new(), keys: Vec::new() };
        for unit in &units {
            for image in unit.images.iter().flatten() {
                let kernels = image.image.kernels.iter().enumerate();
                for (position, kernel) in kernels {
                    let key = KernelKey { type_id: kernel.type_id, form: kernel.form };
                    index.add(key, unit, image, Entry::Kernel(position));
                }
                for (position, kernel) in image.image.unsupported.iter().enumerate() {
                    let key = KernelKey { type_id: kernel.type_id, form: kernel.form };
                    index.add(key, unit, image, Entry::Unsupported(position));
                }
            }
        }
        index.units = units;
        index
    }

    fn add(&mut self, key: KernelKey, unit: &Unit, image: &Arc<Image>, entry: Entry) {
        let candidates = self.candidates.entry(key).or_default();
        if candidates.is_empty() {
            self.keys.push(key);
        }
        candidates.push(Candidate { bundle: unit.number, unit: unit.unit, image: image.clone(), entry });
    }

    /// The images that tell of a kernel.
    pub(super) fn candidates(&self, key: &KernelKey) -> &[Candidate] {
        self.candidates.get(key).map_or(&[], Vec::as_slice)
    }

    /// Every kernel in every link unit that has images of it.
    pub(super) fn keys(&self) -> impl Iterator<Item = (KernelKey, Option<LinkUnit>)> {
        self.keys.iter().flat_map(|key| {
            let mut units: Vec<_> = self.candidates(key).iter().map(|candidate| candidate.unit).collect();
            units.dedup();
            units.into_iter().map(|unit| (*key, unit))
        })
    }

    /// The link units, in the order of registration.
    pub(super) fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Whether the link unit has an image that tells of the kernel.
    pub(super) fn has_in(&self, unit: LinkUnit, key: &KernelKey) -> bool {
        self.candidates(key).iter().any(|candidate| candidate.unit == Some(unit))
    }

    pub(super) fn images(&self) -> impl Iterator<Item = &Arc<Image>> {
        self.units.iter().flat_map(|unit| unit.images.iter().flatten())
    }

    pub(super) fn has(&self, image: &Arc<Image>) -> bool {
        self.images().any(|other| Arc::ptr_eq(other, image))
    }

    /// Whether nothing at all is registered.
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The native entries that were registered with a bundle.
    pub(super) fn native(&self, bundle: u64) -> &[Option<NativeEntry>] {
        let unit = self.units.iter().find(|unit| unit.number == bundle);
        unit.and_then(|unit| unit.native.as_deref()).unwrap_or_default()
    }

    /// Bundles that cannot be read.
    pub(super) fn errors(&self) -> impl Iterator<Item = (&Unit, &ImageError)> {
        self.units.iter().filter_map(|unit| unit.images.as_ref().err().map(|error| (unit, error)))
    }

    /// The file of a bundle.
    pub(super) fn name(&self, bundle: u64) -> &str {
        self.units.iter().find(|unit| unit.number == bundle).map_or("", |unit| &unit.name)
    }

    pub(super) fn kernels(&self) -> Vec<KnownKernel> {
        self.keys.iter().map(|key| self.known(key)).collect()
    }

    /// What the images tell of a kernel.
    pub(super) fn known(&self, key: &KernelKey) -> KnownKernel {
        let candidates = self.candidates(key);
        let supported = candidates.iter().find_map(|candidate| match candidate.entry {
            Entry::Kernel(position) => Some(&candidate.image.image.kernels[position]),
            Entry::Unsupported(_) => None,
        });
        let (type_name, location) = match (supported, candidates.first()) {
            (Some(kernel), _) => {
                let known = !kernel.location.file.is_empty();
                (kernel.type_name.clone(), known.then(|| kernel.location.clone()))
            }
            (None, Some(Candidate { image, entry: Entry::Unsupported(position), .. })) => {
                (image.image.unsupported[*position].type_name.clone(), None)
            }
            _ => (String::new(), None),
        };
        KnownKernel { key: *key, type_name, location }
    }
}
