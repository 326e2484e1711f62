//! The program manager: device images of the process, and the kernels that devices make of them.
//!
//! Link units register their images when they are loaded and take them back when they are unloaded (`registry`). The
//! first launch of a kernel on a device looks its images up (`index`) and chooses the one that suits the device
//! (`choose`). The device loads it once (`modules`), at once or when its driver can without waiting (`loading`). A binary of an earlier process is used where there is one
//! (`disk_cache`). Later launches only look into one table (`launches`). A kernel with specialization constants may have code
//! for single values of them (`variants`). Launches on the host may run functions of the device compiler that are linked into the program
//! (`native`).
//!
//! Invariants: a kernel that is found matches the host's in size, alignment and type name. A module stays loaded as long as a
//! command holds one of its kernels. Code of a link unit that was unloaded is not found any more.
//! Does not know how images are made, and does not launch anything.

use std::any::TypeId;
use std::panic::Location;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use oxisycl_backend::{Device, KernelInfo, LoadedKernel};
use oxisycl_image::{Form, KernelDescriptor, SourceLocation};
use oxisycl_types::{ErrorCode, HostEntry};

use crate::Result;
use crate::graph::{Gate, Load, gate_of};
use crate::observe::counters;
use crate::output::report;
use crate::plug_ins::{self, link_unit};

mod bundle;
mod choose;
mod compiling;
mod disk_cache;
mod index;
mod kept;
mod launches;
mod libraries;
mod loading;
mod modules;
mod native;
mod profile;
mod registration;
mod registry;
pub(crate) mod settings;
mod variants;

#[cfg(test)]
mod tests;

use choose::{Choice, HostSide, Query};
use disk_cache::DiskCache;
use index::Image;
use launches::{LaunchKey, Launches};
use libraries::Libraries;
use modules::Modules;
use native::Natives;
use profile::{LoadAhead, Profiles};
use registry::Registry;
use variants::{Built, Found, LookedUp, VariantTable, Variants};

pub use bundle::{BundleImage, KernelBundle, SelectImage, WantedKernel};
pub use libraries::LibraryHold;
pub use loading::Code;
pub use native::HostCode;
pub use registry::{
    __oxisycl_register_images, __oxisycl_register_native, __oxisycl_unregister_images,
    register_images_of_another_library, register_native_of_another_library, unregister_images_of_another_library,
};
pub(crate) use settings::compile_limit_from_env;
pub(crate) use settings::disk_cache_from_env;
pub(crate) use settings::host_code_from_env;
pub(crate) use settings::load_ahead_from_env;
pub(crate) use settings::specialize_from_env;
pub use variants::Values;

/// The images and kernels of a process. There is one; tests make their own.
pub struct Programs {
    registry: Registry,
    /// Shared with threads that load code.
    modules: LazyLock<Arc<Modules>>,
    launches: Launches<LookedUp>,
    natives: Natives,
    variants: VariantTable,
    libraries: Libraries,
    disk: OnceLock<Arc<DiskCache>>,
    compile_limit: OnceLock<Option<Duration>>,
    specializes: OnceLock<bool>,
    profiles: Profiles,
}

static PROGRAMS: Programs = Programs::new();

/// The images and kernels of this process.
pub fn programs() -> &'static Programs {
    &PROGRAMS
}

/// To be called when the process begins to end, before libraries are unloaded for that reason.
pub(crate) fn process_ends() {
    plug_ins::process_ends();
    compiling::process_ends();
    // A child that was forked has launched nothing there.
    if let (Some(disk), false) = (PROGRAMS.disk.get(), crate::fork::is_child()) {
        PROGRAMS.profiles.write(disk);
    }
}

/// What identifies a kernel in images: the bytes of its `TypeId`, and how it is launched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KernelKey {
    /// The bytes.
    pub type_id: [u8; 16],
    /// The form.
    pub form: Form,
}

impl KernelKey {
    /// The key of a kernel of the program.
    pub fn new(type_id: TypeId, form: Form) -> Self {
        const { assert!(size_of::<TypeId>() == 16) };
        // SAFETY: both types are 16 bytes, as the assertion checks, and without padding, since the id is a hash of 128 bits. Any bytes are
        // a value of the array. The device compiler reads the same bytes in the program's constants.
        Self { type_id: unsafe { std::mem::transmute::<TypeId, [u8; 16]>(type_id) }, form }
    }
}

/// What images tell of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownKernel {
    /// The identity of the kernel.
    pub key: KernelKey,
    /// The compiler's name of its type.
    pub type_name: String,
    /// Where the user launches it; unknown if no target can run it.
    pub location: Option<SourceLocation>,
}

impl Default for Programs {
    fn default() -> Self {
        Self::new()
    }
}

impl Programs {
    /// Without images.
    pub const fn new() -> Self {
        Self {
            registry: Registry::new(),
            modules: LazyLock::new(|| Arc::new(Modules::new())),
            launches: Launches::new(),
            natives: Natives::new(),
            variants: VariantTable::new(),
            libraries: Libraries::new(),
            disk: OnceLock::new(),
            compile_limit: OnceLock::new(),
            specializes: OnceLock::new(),
            profiles: Profiles::new(),
        }
    }

    /// Keeps binaries in `cache` from now on. Later calls change nothing.
    pub(crate) fn use_disk_cache(&self, cache: DiskCache) {
        let _ = self.disk.set(Arc::new(cache));
    }

    /// Waits no longer than that for a driver that compiles an image, or as long as it takes if there is no limit. Later calls change
    /// nothing. Without one the limit is 120 s.
    pub fn limit_compiling(&self, limit: Option<Duration>) {
        let _ = self.compile_limit.set(limit);
    }

    /// Whether kernels are compiled for values of specialization constants. Later calls change nothing. Without one they are.
    pub fn specialize(&self, specializes: bool) {
        let _ = self.specializes.set(specializes);
    }

    /// Which kernels are loaded when the first queue of a device is made. Later calls change nothing. Without one none is.
    pub(crate) fn set_load_ahead(&self, which: LoadAhead) {
        self.profiles.set(which);
    }

    /// Keeps the library loaded that the native code of a kernel lies in, for a launch on a device that runs native code. `None` if
    /// that is the program itself, or a library without images.
    #[inline]
    pub fn hold_library(&self, entry: HostEntry) -> Option<LibraryHold> {
        let entry = entry as *const ();
        self.libraries.hold(entry.addr(), || {
            let unit = link_unit::of(entry).filter(|unit| Some(*unit) != link_unit::of_program())?;
            self.registry.uses(unit)
        })
    }

    /// The code of a kernel on a device that takes images. Loads the image if it is the first of its kernels there, which can take
    /// long; threads that want it at the same time wait.
    ///
    /// # Errors
    /// `KernelNotSupported` if there is no image for the kernel and device, or the device lacks an aspect that it needs.
    /// `KernelArgument` if image and program disagree on the kernel's captures. `Build` if the driver refuses the image.
    #[inline]
    pub fn kernel(&self, device: &Arc<dyn Device>, descriptor: &KernelDescriptor) -> Result<Arc<dyn LoadedKernel>> {
        self.code(device, descriptor)?.wait()
    }

    /// The code of a kernel, as by [`kernel`](Self::kernel), or what loads it while the driver would wait for running kernels.
    ///
    /// # Errors
    /// Those of [`kernel`](Self::kernel), but for what is being loaded.
    #[inline]
    pub fn code(&self, device: &Arc<dyn Device>, descriptor: &KernelDescriptor) -> Result<Code> {
        Ok(match self.look_up(device, descriptor)? {
            Lookup::Found((kernel, _)) => Code::Ready(kernel),
            Lookup::Unloaded(load) => Code::Unloaded(load),
        })
    }

    /// The code of a kernel, as by [`code`](Self::code), that is for the values of its specialization constants alone where there is such code.
    /// Compiles it on this thread if the values are worth it and no command is unfinished. A failure of that is reported, and no error.
    /// `check` is called before, with the limits of the code for all values. So what was compiled decides no refusal.
    ///
    /// # Errors
    /// Those of [`code`](Self::code), and that of `check`.
    ///
    /// # Safety
    /// `values` has the argument block of the kernel of `descriptor`.
    #[inline]
    pub unsafe fn code_for(
        &self,
        device: &Arc<dyn Device>,
        descriptor: &KernelDescriptor,
        values: &Values<'_>,
        check: impl FnOnce(&KernelInfo) -> Result,
    ) -> Result<Code> {
        let key = LaunchKey::new(device, descriptor);
        if let Some((kernel, info)) = self.launches.ready(&key, values) {
            check(&info)?;
            return Ok(Code::Ready(kernel));
        }
        let found = self.look_up(device, descriptor)?;
        self.for_values(device, descriptor, found, values, check)
    }

    /// What a launch with these values runs of what it has found. The block that `values` has is that of the kernel.
    fn for_values(
        &self,
        device: &Arc<dyn Device>,
        descriptor: &KernelDescriptor,
        found: Lookup,
        values: &Values<'_>,
        check: impl FnOnce(&KernelInfo) -> Result,
    ) -> Result<Code> {
        let (kernel, variants) = match found {
            Lookup::Found(found) => found,
            Lookup::Unloaded(load) => return Ok(Code::Unloaded(load)),
        };
        check(kernel.info())?;
        Ok(Code::Ready(match variants {
            None => kernel,
            Some(variants) => self.variant(device, descriptor, &kernel, &variants, values),
        }))
    }

    fn variant(
        &self,
        device: &Arc<dyn Device>,
        descriptor: &KernelDescriptor,
        general: &Arc<dyn LoadedKernel>,
        variants: &Variants,
        values: &Values<'_>,
    ) -> Arc<dyn LoadedKernel> {
        let mut late = None;
        let wanted = match variants.find(descriptor, values) {
            Found::Ready(kernel) => return kernel,
            Found::General => None,
            Found::Build(key) => {
                let image = variants.image(&key).map(Arc::new);
                Some((key, image))
            }
            Found::Late(key, image) => {
                late = Some(image.clone());
                (!self.modules.is_late(device, &image)).then_some((key, Some(image)))
            }
        };
        if let Some((key, image)) = wanted {
            let build = |image| self.build_variant(device, descriptor.display_name(), general, variants, image);
            let built = image.map_or(Built::Failed, build);
            // What the driver made is kept, and asked for again.
            let built = match (built, late) {
                (Built::NotNow, Some(image)) => Built::Late(image),
                (built, _) => built,
            };
            if variants.end(&key, &built) {
                counters().specialized_kernels.add(1);
            }
            if let Built::Ready(kernel) = built {
                return kernel;
            }
        }
        counters().unspecialized_launches.add(1);
        general.clone()
    }

    #[cold]
    fn build_variant(
        &self,
        device: &Arc<dyn Device>,
        name: &str,
        general: &Arc<dyn LoadedKernel>,
        variants: &Variants,
        image: Arc<Image>,
    ) -> Built {
        // Nothing may begin meanwhile: the driver would wait for it.
        let gate = gate_of(device);
        let loading = gate.as_deref().map(Gate::try_begin);
        if let Some(None) = loading {
            return Built::NotNow;
        }
        let built = self.load_now(device, name, &image, 0);
        drop(loading);
        if !self.registry.index().has(variants.origin()) {
            // It was unregistered meanwhile.
            self.modules.take_kernels(variants.origin(), false, &mut Vec::new());
        }
        let is_as_able = |kernel: &Arc<dyn LoadedKernel>| {
            let (of_variant, of_general) = (kernel.info().group_limits, general.info().group_limits);
            of_variant.items >= of_general.items && of_variant.static_local_bytes <= of_general.static_local_bytes
        };
        let why = match built {
            Ok(kernel) if is_as_able(&kernel) => return Built::Ready(kernel),
            Ok(_) => "its work-groups would be smaller".to_owned(),
            Err(_) if self.modules.is_late(device, &image) => {
                report(&format!(
                    "kernel \"{name}\" on device \"{}\" runs code for all values of its specialization constants until the driver has \
                     compiled the code for some, for which a launch does not wait longer (OXISYCL_COMPILE_LIMIT)",
                    device.info().name
                ));
                return Built::Late(image);
            }
            // There may be memory later.
            Err(error) if error.code() == ErrorCode::MemoryAllocation => return Built::NotNow,
            Err(error) => error.to_string(),
        };
        report(&format!(
            "kernel \"{name}\" on device \"{}\" runs code for all values of its specialization constants, since the code for some is \
             not used: {why}",
            device.info().name
        ));
        Built::Failed
    }

    #[inline]
    fn look_up(&self, device: &Arc<dyn Device>, descriptor: &KernelDescriptor) -> Result<Lookup> {
        let key = LaunchKey::new(device, descriptor);
        match self.launches.get(&key) {
            Some(found) => Ok(Lookup::Found(found)),
            None => self.first_launch(device, descriptor, key),
        }
    }

    #[cold]
    fn first_launch(&self, device: &Arc<dyn Device>, descriptor: &KernelDescriptor, key: LaunchKey) -> Result<Lookup> {
        // Before anything is looked up: what is unregistered from now on must not be remembered.
        let generation = self.launches.generation();
        let query = query_of(descriptor);
        let choice = choose::choose(&self.registry.index(), device.as_ref(), &query)?;
        self.profiles.note(device, &query.key);
        let entry = Some(descriptor.host_entry);
        let loaded = match self.load_or_ask(device, query.name, (&choice.image, choice.kernel), entry)? {
            Code::Ready(loaded) => loaded,
            Code::Unloaded(load) => return Ok(Lookup::Unloaded(load)),
        };
        let variants = self.variants_of(device, &choice);
        let image = choice.image;
        let is_known = self.launches.insert(generation, key, device, (loaded.clone(), variants.clone()));
        if !is_known {
            self.forget_if_unregistered(&image);
        }
        Ok(Lookup::Found((loaded, variants)))
    }

    /// The variants of a kernel; `None` if it has none.
    fn variants_of(&self, device: &Arc<dyn Device>, choice: &Choice) -> Option<Arc<Variants>> {
        let specializes = *self.specializes.get_or_init(|| true);
        if specializes { self.variants.of(device, choice) } else { None }
    }

    /// Forgets what a launch has loaded of an image that was unregistered meanwhile, maybe before there was anything to forget.
    fn forget_if_unregistered(&self, image: &Arc<Image>) {
        if !self.registry.index().has(image) {
            self.variants.forget(image);
            self.modules.take_kernels(image, false, &mut Vec::new());
        }
    }

    /// Whether the program has any image that the device takes. True for devices that run the program's own code.
    pub fn is_usable(&self, device: &dyn Device) -> bool {
        let targets = &device.info().image_targets;
        targets.is_empty()
            || self
                .registry
                .index()
                .images()
                .any(|image| !image.image.kernels.is_empty() && choose::fit(&image.image.target, targets).is_some())
    }

    /// Whether a kernel can be launched on the device, as far as that is known without loading it. Devices that run the program's
    /// own code run every kernel. `entry` is the kernel's native code, if it is at hand.
    ///
    /// # Errors
    /// What a launch would fail with.
    pub fn check(&self, device: &dyn Device, key: KernelKey, entry: Option<HostEntry>, name: &str) -> Result {
        if device.info().image_targets.is_empty() {
            return Ok(());
        }
        let unit = entry.and_then(|entry| link_unit::of(entry as *const ()));
        let query = Query { name, key, host: None, unit };
        choose::choose(&self.registry.index(), device, &query).map(drop)
    }

    /// The kernels of all images, each once, in the order of registration.
    ///
    /// # Errors
    /// `KernelNotSupported` if a bundle of images cannot be read.
    pub fn kernels(&self) -> Result<Vec<KnownKernel>> {
        let index = self.registry.index();
        match index.errors().next() {
            Some((unit, error)) => Err(choose::unreadable(unit, None, error)),
            None => Ok(index.kernels()),
        }
    }
}

/// What a launch finds.
enum Lookup {
    Found(LookedUp),
    Unloaded(Arc<Load>),
}

/// What a launch looks for.
fn query_of(descriptor: &KernelDescriptor) -> Query<'_> {
    let unit = link_unit::of(descriptor.host_entry as *const ());
    // A library whose kernel another one launches does not know the place.
    let is_own =
        |location: &&'static Location<'static>| unit.is_some() && link_unit::of((&raw const **location).cast()) == unit;
    Query {
        name: descriptor.display_name(),
        key: KernelKey::new(descriptor.id.type_id, descriptor.id.form),
        host: Some(HostSide {
            layout: descriptor.parameters,
            type_name: descriptor.type_name,
            arguments: descriptor.arguments,
            stated: descriptor.stated,
            location: Some(descriptor.location).filter(is_own),
        }),
        unit,
    }
}
