//! Kernels that a program uses together (SYCL 2020 section 4.11).
//!
//! A bundle names images; the tables of the program manager hold what devices have loaded of them. Invariants: a bundle keeps no library
//! loaded, and none of its kernels. A kernel of a library that was unloaded is not found any more, also if the library is loaded again. A launch gets
//! the kernel of its own link unit if that has images of it.
//! Does not know contexts or states, and does not check that a device is one of its own.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Weak};

use oxisycl_backend::{Device, KernelInfo, LoadedKernel};
use oxisycl_image::{ImageTarget, KernelDescriptor, StatedNeeds};
use oxisycl_types::{ErrorCode, HostEntry};
use parking_lot::RwLock;

use super::choose::{self, Choice, Query};
use super::index::{Image, Index, Unit};
use super::launches::LaunchKey;
use super::variants::{LookedUp, Variants};
use super::{Code, KernelKey, KnownKernel, Lookup, Programs, Values, query_of};
use crate::fold_hasher::FoldHasher;
use crate::plug_ins::link_unit::{self, LinkUnit};
use crate::{Error, Result};

/// A kernel that a bundle is to have.
#[derive(Clone, Debug)]
pub struct WantedKernel {
    /// The identity of the kernel.
    pub key: KernelKey,
    /// The kernel's native code, if it is at hand. Without it, the kernels of all link units are meant.
    pub entry: Option<HostEntry>,
    /// The kernel's name in messages.
    pub name: String,
    /// What it states of devices.
    pub stated: StatedNeeds,
}

/// What a bundle says of one of its images.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BundleImage {
    /// What it is made for; `None` for the program's own code.
    pub target: Option<ImageTarget>,
    /// The kernels of the image.
    pub kernels: Vec<KnownKernel>,
    /// Bytes of its code; 0 for the program's own.
    pub size: usize,
}

/// Kernels for some devices.
pub struct KernelBundle {
    devices: Vec<Arc<dyn Device>>,
    /// The images for devices that take some.
    index: Index,
    /// The kernels for devices that run the program's own code.
    native: Vec<NativeKernel>,
    launched: RwLock<Launched>,
}

#[derive(Clone, Debug)]
struct NativeKernel {
    known: KnownKernel,
    unit: Option<LinkUnit>,
    /// The number of a bundle of its link unit, if that has registered one.
    number: Option<u64>,
}

/// What was found for launches since that generation of the program manager's table.
#[derive(Default)]
struct Launched {
    generation: u64,
    kernels: HashMap<LaunchKey, LaunchedKernel, FoldHasher>,
}

/// A kernel that was launched. The device keeps its address, which the key has, from being used again.
struct LaunchedKernel {
    _device: Weak<dyn Device>,
    kernel: Weak<dyn LoadedKernel>,
    /// `None` if it can have none. They are those of the program, whose table holds them.
    variants: Option<Weak<Variants>>,
}

/// Chooses among images.
pub type SelectImage<'a> = &'a mut dyn FnMut(&BundleImage) -> bool;

/// A kernel of a link unit, with a name for messages, and what it states.
type Asked = (KernelKey, Option<LinkUnit>, String, StatedNeeds);

fn runs_native(device: &dyn Device) -> bool {
    device.info().image_targets.is_empty()
}

fn image_of(image: &Image) -> BundleImage {
    let known = |kernel: &oxisycl_image::KernelEntry| KnownKernel {
        key: KernelKey { type_id: kernel.type_id, form: kernel.form },
        type_name: kernel.type_name.clone(),
        location: (!kernel.location.file.is_empty()).then(|| kernel.location.clone()),
    };
    BundleImage {
        target: Some(image.image.target.clone()),
        kernels: image.image.kernels.iter().map(known).collect(),
        size: image.image.code.len(),
    }
}

/// The link units with the images for which `keeps` holds.
fn filtered(units: &[Unit], mut keeps: impl FnMut(&Unit, &Arc<Image>) -> bool) -> Index {
    let units = units.iter().filter_map(|unit| {
        let images: Vec<_> = unit.images.iter().flatten().filter(|image| keeps(unit, image)).cloned().collect();
        (!images.is_empty()).then(|| Unit { images: Ok(images), ..unit.clone() })
    });
    Index::new(units.collect())
}

impl Programs {
    /// The bundle of `wanted` kernels for `devices`, or of all kernels of the program that one of these devices can run. `select` leaves
    /// images out. A device that runs none of the kernels is left out if another runs some. Loads nothing.
    ///
    /// # Errors
    /// `Invalid` if none of the devices can run a wanted kernel. `KernelNotSupported` if all kernels are meant and a bundle of images cannot be read.
    pub fn bundle(
        &self,
        devices: &[Arc<dyn Device>],
        wanted: Option<&[WantedKernel]>,
        select: Option<SelectImage<'_>>,
    ) -> Result<KernelBundle> {
        let index = self.registry.index();
        if wanted.is_none()
            && let Some((unit, error)) = index.errors().next()
        {
            return Err(choose::unreadable(unit, None, error));
        }
        let has_selector = select.is_some();
        let selected = select.map(|select| {
            let mut known = HashMap::new();
            let mut keeps =
                |image: &Arc<Image>| *known.entry(Arc::as_ptr(image)).or_insert_with(|| select(&image_of(image)));
            filtered(index.units(), |_, image| keeps(image))
        });
        let selected = selected.as_ref().unwrap_or(&index);
        let (mut chosen, mut native, mut runs) = (HashSet::new(), Vec::new(), vec![false; devices.len()]);
        for asked in asked(&index, wanted) {
            let (mut is_compatible, mut failure) = (false, None);
            for (device, runs) in devices.iter().zip(&mut runs) {
                if let Some(what) = device.info().lacks(&asked.3) {
                    let query = Query { name: &asked.2, key: asked.0, host: None, unit: asked.1 };
                    failure.get_or_insert(choose::not_supported(&query, device.as_ref(), &what));
                    continue;
                }
                if runs_native(device.as_ref()) {
                    (is_compatible, *runs) = (true, true);
                    add_native(&mut native, native_kernel(&index, &asked));
                    continue;
                }
                match choose_own(&index, selected, device.as_ref(), &asked) {
                    Ok(choice) => {
                        (is_compatible, *runs) = (true, true);
                        chosen.insert((choice.number, Arc::as_ptr(&choice.image)));
                    }
                    Err(error) => {
                        is_compatible |= has_selector && choose_own(&index, &index, device.as_ref(), &asked).is_ok();
                        failure.get_or_insert(error);
                    }
                }
            }
            if let (Some(_), false, Some(error)) = (wanted, is_compatible, failure) {
                let message = format!("no device of the kernel bundle can run kernel \"{}\": {error}", asked.2);
                return Err(Error::with_source(ErrorCode::Invalid, message, error));
            }
        }
        let runs_any = runs.contains(&true);
        let devices = devices.iter().zip(runs).filter(|(_, runs)| *runs || !runs_any);
        Ok(KernelBundle {
            devices: devices.map(|(device, _)| device.clone()).collect(),
            index: filtered(index.units(), |unit, image| chosen.contains(&(unit.number, Arc::as_ptr(image)))),
            native,
            launched: RwLock::default(),
        })
    }

    /// Loads the kernels of a bundle on its devices.
    ///
    /// # Errors
    /// The first of those of kernels that could not be loaded: `Build` with the driver's log if it refuses an image. `KernelNotSupported` if a library
    /// with images of the bundle was unloaded. All other kernels are loaded then.
    pub fn load_bundle(&self, bundle: &KernelBundle) -> Result {
        let mut failure = None;
        for device in bundle.devices.iter().filter(|device| !runs_native(device.as_ref())) {
            for (key, unit) in bundle.index.keys() {
                let name = bundle.index.known(&key).type_name;
                let query = Query { name: &name, key, host: None, unit };
                // One device of several may not run it.
                let Ok(choice) = choose::choose(&bundle.index, device.as_ref(), &query) else { continue };
                if let Err(error) = self.load_of_bundle(device, &query, &choice, None) {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Loads a kernel of a bundle, for a launch of the native code `entry`; without that, also if it has to wait.
    fn load_of_bundle(
        &self,
        device: &Arc<dyn Device>,
        query: &Query<'_>,
        choice: &Choice,
        entry: Option<HostEntry>,
    ) -> Result<Code> {
        let is_registered = |index: &Index| index.units().iter().any(|unit| unit.number == choice.number);
        if !is_registered(&self.registry.index()) {
            return Err(unloaded(device.as_ref(), query));
        }
        let code = self.load_or_ask(device, query.name, (&choice.image, choice.kernel), entry)?;
        let code = match (code, entry) {
            (code, None) => Code::Ready(code.wait()?),
            // The launch keeps the library loaded.
            (Code::Unloaded(load), Some(_)) => return Ok(Code::Unloaded(load)),
            (code, Some(_)) => code,
        };
        let index = self.registry.index();
        if is_registered(&index) {
            return Ok(code);
        }
        // It was unregistered meanwhile.
        if !index.has(&choice.image) {
            self.modules.take_kernels(&choice.image, false, &mut Vec::new());
        }
        Err(unloaded(device.as_ref(), query))
    }

    /// The code of a kernel of the bundle for a launch; `None` on devices that run the program's own code.
    ///
    /// # Errors
    /// `KernelNotSupported` if the bundle does not have the kernel for the device, or its library was unloaded. Otherwise the errors of
    /// [`kernel`](Self::kernel).
    pub fn kernel_of_bundle(
        &self,
        bundle: &KernelBundle,
        device: &Arc<dyn Device>,
        descriptor: &KernelDescriptor,
    ) -> Result<Option<Code>> {
        Ok(self.look_up_in_bundle(bundle, device, descriptor)?.map(|found| match found {
            Lookup::Found((kernel, _)) => Code::Ready(kernel),
            Lookup::Unloaded(load) => Code::Unloaded(load),
        }))
    }

    /// The code of a kernel of the bundle for a launch with these values, as [`code_for`](Self::code_for) gives that of the program.
    ///
    /// # Errors
    /// As those of [`kernel_of_bundle`](Self::kernel_of_bundle), and that of `check`.
    ///
    /// # Safety
    /// `values` has the argument block of the kernel of `descriptor`.
    pub unsafe fn code_of_bundle_for(
        &self,
        bundle: &KernelBundle,
        device: &Arc<dyn Device>,
        descriptor: &KernelDescriptor,
        values: &Values<'_>,
        check: impl FnOnce(&KernelInfo) -> Result,
    ) -> Result<Option<Code>> {
        let found = self.look_up_in_bundle(bundle, device, descriptor)?;
        found.map(|found| self.for_values(device, descriptor, found, values, check)).transpose()
    }

    fn look_up_in_bundle(
        &self,
        bundle: &KernelBundle,
        device: &Arc<dyn Device>,
        descriptor: &KernelDescriptor,
    ) -> Result<Option<Lookup>> {
        let key = LaunchKey::new(device, descriptor);
        // Before anything is looked up: what is unregistered from now on must not be remembered.
        let generation = self.launches.generation();
        // An unloading that forgets after this waits for the kernel.
        if let Some(found) = self.launches.if_unchanged(generation, || bundle.launched(generation, &key)) {
            return Ok(Some(Lookup::Found(found)));
        }
        let query = query_of(descriptor);
        let Some(choice) = self.find_in_bundle(bundle, device.as_ref(), &query)? else { return Ok(None) };
        let kernel = match self.load_of_bundle(device, &query, &choice, Some(descriptor.host_entry))? {
            Code::Ready(kernel) => kernel,
            Code::Unloaded(load) => return Ok(Some(Lookup::Unloaded(load))),
        };
        let variants = self.variants_of(device, &choice);
        if self.launches.generation() != generation {
            self.forget_if_unregistered(&choice.image);
        }
        bundle.remember(generation, key, device, &kernel, variants.as_ref());
        Ok(Some(Lookup::Found((kernel, variants))))
    }

    /// Whether a launch by the bundle finds the kernel, as far as that is known without its captures.
    ///
    /// # Errors
    /// What the launch would fail with.
    pub fn check_in_bundle(&self, bundle: &KernelBundle, device: &dyn Device, kernel: &WantedKernel) -> Result {
        let unit = kernel.entry.and_then(|entry| link_unit::of(entry as *const ()));
        let query = Query { name: &kernel.name, key: kernel.key, host: None, unit };
        self.find_in_bundle(bundle, device, &query).map(drop)
    }

    /// The code of a kernel of the bundle, as [`load_one`](Self::load_one) gives that of the program.
    ///
    /// # Errors
    /// As those of [`kernel_of_bundle`](Self::kernel_of_bundle).
    pub fn load_one_of_bundle(
        &self,
        bundle: &KernelBundle,
        device: &Arc<dyn Device>,
        kernel: &WantedKernel,
    ) -> Result<Option<Arc<dyn LoadedKernel>>> {
        let unit = kernel.entry.and_then(|entry| link_unit::of(entry as *const ()));
        let query = Query { name: &kernel.name, key: kernel.key, host: None, unit };
        match self.find_in_bundle(bundle, device.as_ref(), &query)? {
            Some(choice) => self.load_of_bundle(device, &query, &choice, None)?.wait().map(Some),
            None => Ok(None),
        }
    }

    /// The image of a kernel in the bundle; `None` for the program's own code.
    fn find_in_bundle(&self, bundle: &KernelBundle, device: &dyn Device, query: &Query<'_>) -> Result<Option<Choice>> {
        let index = self.registry.index();
        let is_registered = |number| index.units().iter().any(|unit| unit.number == number);
        if runs_native(device) {
            let is_it = |kernel: &&NativeKernel| {
                kernel.known.key == query.key
                    && (query.unit.is_none() || kernel.unit.is_none() || kernel.unit == query.unit)
            };
            let mut found = bundle.native.iter().filter(is_it).peekable();
            if found.peek().is_none() {
                return Err(not_in_bundle(device, query));
            }
            return match found.any(|kernel| kernel.number.is_none_or(is_registered)) {
                true => Ok(None),
                false => Err(unloaded(device, query)),
            };
        }
        // Images of other link units are of other kernels if the kernel's own has some.
        let own = query.unit.filter(|unit| index.has_in(*unit, &query.key));
        let is_there = match own {
            Some(unit) => bundle.index.has_in(unit, &query.key),
            None => !bundle.index.candidates(&query.key).is_empty(),
        };
        if !is_there {
            return Err(not_in_bundle(device, query));
        }
        let choice = choose::choose(&bundle.index, device, query)?;
        if is_registered(choice.number) { Ok(Some(choice)) } else { Err(unloaded(device, query)) }
    }
}

fn not_in_bundle(device: &dyn Device, query: &Query<'_>) -> Error {
    choose::not_supported(query, device, "the kernel bundle does not have it; make the bundle with its `KernelId`")
}

fn unloaded(device: &dyn Device, query: &Query<'_>) -> Error {
    choose::not_supported(query, device, "its library was unloaded after the kernel bundle was made; make a new one")
}

/// The kernels that a bundle is asked for, in each link unit that is meant.
fn asked(index: &Index, wanted: Option<&[WantedKernel]>) -> Vec<Asked> {
    let Some(wanted) = wanted else {
        return index.keys().map(|(key, unit)| (key, unit, index.known(&key).type_name, StatedNeeds::NONE)).collect();
    };
    let mut asked: Vec<Asked> = Vec::new();
    let mut add = |kernel: &WantedKernel, unit| {
        if !asked.iter().any(|(known, in_unit, ..)| (*known, *in_unit) == (kernel.key, unit)) {
            asked.push((kernel.key, unit, kernel.name.clone(), kernel.stated));
        }
    };
    for kernel in wanted {
        match kernel.entry {
            Some(entry) => add(kernel, link_unit::of(entry as *const ())),
            None if index.candidates(&kernel.key).is_empty() => add(kernel, None),
            None => index.candidates(&kernel.key).iter().for_each(|known| add(kernel, known.unit)),
        }
    }
    asked
}

/// The image of a kernel among the selected ones. One of another link unit does if the kernel's own has none at all.
fn choose_own(all: &Index, selected: &Index, device: &dyn Device, (key, unit, name, _): &Asked) -> Result<Choice> {
    let query = Query { name, key: *key, host: None, unit: *unit };
    let choice = choose::choose(selected, device, &query)?;
    let is_other = unit.is_some_and(|unit| choice.unit != Some(unit) && all.has_in(unit, key));
    if is_other { Err(not_in_bundle(device, &query)) } else { Ok(choice) }
}

fn native_kernel(index: &Index, (key, unit, name, _): &Asked) -> NativeKernel {
    let mut known = index.known(key);
    if known.type_name.is_empty() {
        known.type_name.clone_from(name);
    }
    let bundle = index.units().iter().find(|known| unit.is_some() && known.unit == *unit);
    NativeKernel { known, unit: *unit, number: bundle.map(|bundle| bundle.number) }
}

fn add_native(native: &mut Vec<NativeKernel>, new: NativeKernel) {
    if !native.iter().any(|known| (known.known.key, known.unit, known.number) == (new.known.key, new.unit, new.number))
    {
        native.push(new);
    }
}

impl KernelBundle {
    /// The devices, without those that run none of its kernels.
    pub fn devices(&self) -> &[Arc<dyn Device>] {
        &self.devices
    }

    /// Whether it has no kernel.
    pub fn is_empty(&self) -> bool {
        self.native.is_empty() && self.index.is_empty()
    }

    /// The kernels of the bundle, each once.
    pub fn kernels(&self) -> Vec<KnownKernel> {
        let mut kernels = self.index.kernels();
        for NativeKernel { known, .. } in &self.native {
            if !kernels.iter().any(|kernel| kernel.key == known.key) {
                kernels.push(known.clone());
            }
        }
        kernels
    }

    /// The images of the bundle, each once. The program's own code counts as one.
    pub fn images(&self) -> Vec<BundleImage> {
        let mut seen = HashSet::new();
        let images = self.index.images().filter(|image| seen.insert(Arc::as_ptr(image)));
        let mut images: Vec<_> = images.map(|image| image_of(image)).collect();
        if !self.native.is_empty() {
            let mut kernels: Vec<KnownKernel> = Vec::new();
            for NativeKernel { known, .. } in &self.native {
                if !kernels.iter().any(|kernel| kernel.key == known.key) {
                    kernels.push(known.clone());
                }
            }
            images.push(BundleImage { target: None, kernels, size: 0 });
        }
        images
    }

    /// The kernels of all of them, for `devices`.
    pub fn join(bundles: &[&Self], devices: Vec<Arc<dyn Device>>) -> Self {
        let mut units: Vec<Unit> = Vec::new();
        let mut native = Vec::new();
        for bundle in bundles {
            bundle.native.iter().for_each(|kernel| add_native(&mut native, kernel.clone()));
            for unit in bundle.index.units() {
                let Some(known) = units.iter_mut().find(|known| known.number == unit.number) else {
                    units.push(unit.clone());
                    continue;
                };
                let Ok(images) = &mut known.images else { continue };
                for image in unit.images.iter().flatten() {
                    if !images.iter().any(|known| Arc::ptr_eq(known, image)) {
                        images.push(image.clone());
                    }
                }
            }
        }
        Self { devices, index: Index::new(units), native, launched: RwLock::default() }
    }

    fn launched(&self, generation: u64, key: &LaunchKey) -> Option<LookedUp> {
        let launched = self.launched.read();
        let LaunchedKernel { kernel, variants, .. } =
            launched.kernels.get(key).filter(|_| launched.generation == generation)?;
        Some((kernel.upgrade()?, variants.as_ref().and_then(Weak::upgrade)))
    }

    fn remember(
        &self,
        generation: u64,
        key: LaunchKey,
        device: &Arc<dyn Device>,
        kernel: &Arc<dyn LoadedKernel>,
        variants: Option<&Arc<Variants>>,
    ) {
        let mut launched = self.launched.write();
        if launched.generation != generation {
            *launched = Launched { generation, ..Launched::default() };
        }
        let (_device, kernel) = (Arc::downgrade(device), Arc::downgrade(kernel));
        launched.kernels.insert(key, LaunchedKernel { _device, kernel, variants: variants.map(Arc::downgrade) });
    }
}

impl fmt::Debug for KernelBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelBundle").field("kernels", &self.kernels().len()).finish_non_exhaustive()
    }
}
