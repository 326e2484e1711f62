//! Kernel bundles: kernels that a program chooses, has compiled, and launches together (SYCL 2020 section 4.11).
//!
//! A bundle is in one of three states, which is part of its type. The images of an [`Input`] bundle are chosen. A driver has compiled those of an
//! [`Object`] bundle, and an [`Executable`] bundle is what command groups use.
//! A bundle does not keep a library loaded: its kernels are not found any more after their library was unloaded.
//!
//! ```
//! use oxisycl::kernel_bundle::{Executable, KernelBundle};
//! use oxisycl::{KernelId, prelude::*};
//!
//! # fn main() -> oxisycl::Result {
//! let queue = Queue::default()?;
//! let kernel = oxisycl::kernel(|item: Item<1>| oxisycl::println!("{}", item.index()));
//! let id = KernelId::of_range(&kernel);
//! // What a driver compiles, it compiles here, and no launch waits for it.
//! let bundle = KernelBundle::<Executable>::builder(queue.context()).with_kernels(&[id]).get();
//! match bundle {
//!     Ok(bundle) => queue.submit(|cg| {
//!         cg.use_bundle(&bundle)?;
//!         cg.parallel_for(4, kernel)
//!     })?.wait()?,
//!     Err(error) => println!("{error}"),
//! }
//! # Ok(())
//! # }
//! ```

mod constants;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use oxisycl_image::{ImageTarget, KernelDescriptor};
use oxisycl_runtime::graph::forbid_blocking;
use oxisycl_runtime::program::{self, BundleImage, Code, Values, programs};
use oxisycl_types::{Aspect, ErrorCode};

use crate::{Context, Device, Error, KernelId, KernelInfo, Result};
use constants::Constants;

/// Which of the three states a bundle is in. The types of this module are all there are.
pub trait BundleState: sealed::State {}

/// The state of bundles whose images are chosen (`bundle_state::input`).
#[derive(Clone, Copy, Debug)]
pub enum Input {}

/// The state of bundles whose images are compiled for their devices (`bundle_state::object`).
#[derive(Clone, Copy, Debug)]
pub enum Object {}

/// The state of bundles whose kernels can be launched (`bundle_state::executable`).
#[derive(Clone, Copy, Debug)]
pub enum Executable {}

mod sealed {
    use super::Aspect;

    pub trait State {
        /// What each device of such a bundle has, and the specification's name of the state.
        const NEEDS: Option<Aspect>;
        const NAME: &'static str;
        /// Whether drivers have compiled the images.
        const IS_COMPILED: bool;
    }

    impl State for super::Input {
        const NEEDS: Option<Aspect> = Some(Aspect::OnlineCompiler);
        const NAME: &'static str = "input";
        const IS_COMPILED: bool = false;
    }

    impl State for super::Object {
        const NEEDS: Option<Aspect> = Some(Aspect::OnlineLinker);
        const NAME: &'static str = "object";
        const IS_COMPILED: bool = true;
    }

    impl State for super::Executable {
        const NEEDS: Option<Aspect> = None;
        const NAME: &'static str = "executable";
        const IS_COMPILED: bool = true;
    }
}

impl BundleState for Input {}
impl BundleState for Object {}
impl BundleState for Executable {}

/// A device image of a bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ImageInfo {
    /// What it is made for; `None` for the program's own code, which some devices run.
    pub target: Option<ImageTarget>,
    /// The kernels of the image.
    pub kernel_ids: Vec<KernelId>,
    /// Bytes of its code; 0 for the program's own.
    pub size: usize,
}

impl ImageInfo {
    fn new(image: &BundleImage) -> Self {
        let kernel_ids = image.kernels.iter().map(KernelId::known).collect();
        Self { target: image.target.clone(), kernel_ids, size: image.size }
    }
}

/// Kernels of a program for the devices of a context. Copies are the same bundle.
pub struct KernelBundle<S: BundleState>(Arc<Inner>, PhantomData<S>);

struct Inner {
    context: Context,
    devices: Vec<Device>,
    bundle: Arc<program::KernelBundle>,
    constants: Constants,
}

impl Inner {
    /// A bundle of these kernels with values of constants that no call changes any more.
    fn frozen(&self) -> Arc<Self> {
        let Self { context, devices, bundle, constants } = self;
        Arc::new(Self {
            context: context.clone(),
            devices: devices.clone(),
            bundle: bundle.clone(),
            constants: constants.frozen(),
        })
    }
}

type Select<'a> = Box<dyn FnMut(&ImageInfo) -> bool + 'a>;

/// What a new bundle has. Made by [`KernelBundle::builder`].
pub struct BundleBuilder<'a, S: BundleState> {
    context: Context,
    devices: Option<Vec<Device>>,
    kernels: Option<Vec<KernelId>>,
    select: Option<Select<'a>>,
    state: PhantomData<S>,
}

impl<'a, S: BundleState> BundleBuilder<'a, S> {
    /// For these devices, which are of the context, and each of which counts once. Without this call, for all usable devices of the context.
    pub fn with_devices(mut self, devices: &[Device]) -> Self {
        self.devices = Some(devices.to_vec());
        self
    }

    /// With these kernels. Without this call, with all of the program that the devices can run. Devices that run the program's own code have
    /// no other list of them than that of [`KernelId::all`].
    pub fn with_kernels(mut self, kernels: &[KernelId]) -> Self {
        self.kernels = Some(kernels.to_vec());
        self
    }

    /// With images for which `select` holds, and with no others. The program's own code counts always.
    pub fn selecting(mut self, select: impl FnMut(&ImageInfo) -> bool + 'a) -> Self {
        self.select = Some(Box::new(select));
        self
    }

    /// Makes the bundle. The driver of a device compiles the images for any state but [`Input`], which can take long.
    ///
    /// Errors: `Invalid` if there are no devices, if one is not of the context, or if none can run one of the kernels. `Invalid` also if a device lacks
    /// the aspect [`OnlineCompiler`](Aspect::OnlineCompiler) for [`Input`], or [`OnlineLinker`](Aspect::OnlineLinker) for [`Object`]. `Build` with the
    /// driver's log if it refuses an image.
    pub fn get(self) -> Result<KernelBundle<S>> {
        forbid_blocking("a kernel bundle")?;
        let bundle = self.choose()?;
        if S::IS_COMPILED {
            programs().load_bundle(&bundle.0.bundle)?;
        }
        Ok(bundle)
    }

    /// Whether [`get`](Self::get) finds each of the kernels for one of the devices at least (`has_kernel_bundle`). True if no kernels are
    /// asked for. Compiles nothing.
    pub fn has_bundle(self) -> bool {
        self.choose().is_ok()
    }

    fn choose(self) -> Result<KernelBundle<S>> {
        let context = self.context;
        let usable = || context.devices().iter().filter(|device| device.unusable().is_none()).cloned().collect();
        let named = self.devices.unwrap_or_else(usable);
        let mut devices: Vec<Device> = Vec::new();
        for device in named {
            let name = device.name();
            if !context.contains(&device) {
                let message =
                    format!("device \"{name}\" of a kernel bundle is not in its context, nor part of a device in it");
                return Err(Error::invalid(message));
            }
            if let Some(reason) = device.unusable() {
                return Err(Error::invalid(format!("device \"{name}\" of a kernel bundle cannot be used: {reason}")));
            }
            if let Some(aspect) = S::NEEDS.filter(|aspect| !device.has(*aspect)) {
                let state = S::NAME;
                return Err(Error::invalid(format!(
                    "device \"{name}\" lacks the aspect {aspect}, which a kernel bundle in the state {state} needs"
                )));
            }
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        if devices.is_empty() {
            return Err(Error::invalid("a kernel bundle needs at least one device that can be used"));
        }
        let backend_devices: Vec<_> = devices.iter().map(|device| device.backend_device().clone()).collect();
        let wanted = self.kernels.map(|kernels| kernels.iter().map(KernelId::wanted).collect::<Vec<_>>());
        let mut select = self.select;
        let mut select = select.as_mut().map(|select| move |image: &BundleImage| select(&ImageInfo::new(image)));
        let select = select.as_mut().map(|select| select as &mut dyn FnMut(&BundleImage) -> bool);
        let bundle = programs().bundle(&backend_devices, wanted.as_deref(), select)?;
        devices.retain(|device| bundle.devices().iter().any(|kept| Arc::ptr_eq(kept, device.backend_device())));
        let (bundle, constants) = (Arc::new(bundle), Constants::default());
        Ok(KernelBundle(Arc::new(Inner { context, devices, bundle, constants }), PhantomData))
    }
}

impl<S: BundleState> KernelBundle<S> {
    /// All kernels of the program that the usable devices of the context can run.
    ///
    /// Errors: as those of [`BundleBuilder::get`].
    pub fn new(context: &Context) -> Result<Self> {
        Self::builder(context).get()
    }

    /// What the bundle is to have.
    pub fn builder<'a>(context: &Context) -> BundleBuilder<'a, S> {
        BundleBuilder { context: context.clone(), devices: None, kernels: None, select: None, state: PhantomData }
    }

    /// The kernels of several bundles, each image once.
    ///
    /// Errors: `Invalid` if there are none, or if they are of different contexts or devices. `Invalid` also if two have
    /// [set](KernelBundle::set_constant) a specialization constant apart from each other.
    pub fn join<'a>(bundles: impl IntoIterator<Item = &'a Self>) -> Result<Self>
    where
        S: 'a,
    {
        let bundles: Vec<&Self> = bundles.into_iter().collect();
        let first = of_one_context("joined", &bundles)?;
        let has_all =
            |bundle: &&Self, other: &Self| bundle.devices().iter().all(|device| other.devices().contains(device));
        if let Some(other) = bundles.iter().find(|other| !has_all(other, first) || !has_all(&first, other)) {
            return Err(Error::invalid(format!(
                "kernel bundles for {} and {} cannot be joined: they are of different devices",
                first.device_names(),
                other.device_names()
            )));
        }
        Self::joined(first, &bundles, first.devices().to_vec())
    }

    fn joined<T: BundleState>(
        first: &KernelBundle<T>,
        bundles: &[&KernelBundle<T>],
        devices: Vec<Device>,
    ) -> Result<Self> {
        let parts: Vec<_> = bundles.iter().map(|bundle| &*bundle.0.bundle).collect();
        let backend_devices = devices.iter().map(|device| device.backend_device().clone()).collect();
        let bundle = Arc::new(program::KernelBundle::join(&parts, backend_devices));
        let constants = Constants::union(&first.device_names(), bundles.iter().map(|bundle| &bundle.0.constants))?;
        let inner = Inner { context: first.context().clone(), devices, bundle, constants };
        Ok(KernelBundle(Arc::new(inner), PhantomData))
    }

    pub(crate) fn device_names(&self) -> String {
        let names: Vec<String> = self.devices().iter().map(|device| format!("\"{}\"", device.name())).collect();
        names.join(", ")
    }

    /// The context that the bundle belongs to.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The bundle's devices, without those that run none of its kernels.
    pub fn devices(&self) -> &[Device] {
        &self.0.devices
    }

    /// Whether it has no kernel.
    pub fn is_empty(&self) -> bool {
        self.0.bundle.is_empty()
    }

    /// The kernels of the bundle, each once.
    pub fn kernel_ids(&self) -> Vec<KernelId> {
        self.0.bundle.kernels().iter().map(KernelId::known).collect()
    }

    /// The device images of the bundle, each once.
    pub fn images(&self) -> Vec<ImageInfo> {
        self.0.bundle.images().iter().map(ImageInfo::new).collect()
    }

    /// Whether it has the kernel for one of its devices at least.
    pub fn has_kernel(&self, kernel: &KernelId) -> bool {
        self.devices().iter().any(|device| self.has_kernel_on(kernel, device))
    }

    /// Whether it has the kernel for this device. False after the kernel's library was unloaded.
    pub fn has_kernel_on(&self, kernel: &KernelId, device: &Device) -> bool {
        self.check(kernel, device).is_ok()
    }

    fn check(&self, kernel: &KernelId, device: &Device) -> Result {
        self.check_device(device, || kernel.name())?;
        programs().check_in_bundle(&self.0.bundle, device.backend_device().as_ref(), &kernel.wanted())
    }

    fn check_device<'n>(&self, device: &Device, kernel: impl FnOnce() -> &'n str) -> Result {
        if self.devices().iter().any(|known| device.is_descendant_of(known)) {
            return Ok(());
        }
        let (kernel, device, own) = (kernel(), device.name(), self.device_names());
        let what = format!("kernel \"{kernel}\" on device \"{device}\": the kernel bundle is for {own}");
        Err(Error::new(ErrorCode::KernelNotSupported, what))
    }
}

/// The first of some bundles of one context.
fn of_one_context<'a, S: BundleState>(verb: &str, bundles: &[&'a KernelBundle<S>]) -> Result<&'a KernelBundle<S>> {
    let Some(first) = bundles.first() else {
        return Err(Error::invalid(format!("no kernel bundles are given that could be {verb}")));
    };
    match bundles.iter().all(|bundle| bundle.context() == first.context()) {
        true => Ok(first),
        false => Err(Error::invalid(format!("kernel bundles of different contexts cannot be {verb}"))),
    }
}

impl KernelBundle<Input> {
    /// Has the images compiled for all devices. The drivers of today's backends load what they compile, so that linking is no work.
    ///
    /// Errors: `Build` with the driver's log if it refuses an image. `KernelNotSupported` if the library with an image was unloaded.
    pub fn compile(self) -> Result<KernelBundle<Object>> {
        forbid_blocking("compile")?;
        if let Some(device) = self.devices().iter().find(|device| !device.has(Aspect::OnlineLinker)) {
            let (name, aspect) = (device.name(), Aspect::OnlineLinker);
            return Err(Error::invalid(format!(
                "device \"{name}\" lacks the aspect {aspect}; build the kernel bundle at once"
            )));
        }
        programs().load_bundle(&self.0.bundle)?;
        Ok(KernelBundle(self.0.frozen(), PhantomData))
    }

    /// Compiles and links.
    ///
    /// Errors: as those of [`compile`](Self::compile).
    pub fn build(self) -> Result<KernelBundle<Executable>> {
        forbid_blocking("build")?;
        programs().load_bundle(&self.0.bundle)?;
        Ok(KernelBundle(self.0.frozen(), PhantomData))
    }
}

impl KernelBundle<Object> {
    /// The kernels of several bundles, for the devices that all of them have.
    ///
    /// Errors: `Invalid` if there are no bundles, if they are of different contexts, or if they have no device in common. `Invalid` also if two have
    /// [set](KernelBundle::set_constant) a specialization constant apart from each other.
    pub fn link<'a>(bundles: impl IntoIterator<Item = &'a Self>) -> Result<KernelBundle<Executable>> {
        let bundles: Vec<&Self> = bundles.into_iter().collect();
        let first = of_one_context("linked", &bundles)?;
        let is_common = |device: &&Device| bundles.iter().all(|bundle| bundle.devices().contains(device));
        let devices: Vec<Device> = first.devices().iter().filter(is_common).cloned().collect();
        if devices.is_empty() {
            return Err(Error::invalid("kernel bundles cannot be linked: they have no device in common"));
        }
        KernelBundle::<Executable>::joined(first, &bundles, devices)
    }
}

impl KernelBundle<Executable> {
    /// One of its kernels.
    ///
    /// Errors: `Invalid` if it does not have the kernel.
    pub fn kernel(&self, kernel: &KernelId) -> Result<KernelObject> {
        let mut failure = None;
        for device in self.devices() {
            match self.check(kernel, device) {
                Ok(()) => return Ok(KernelObject { bundle: self.clone(), id: kernel.clone() }),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let name = kernel.name();
        let why = failure.map_or_else(String::new, |error| format!(": {error}"));
        Err(Error::invalid(format!("the kernel bundle has no kernel \"{name}\"{why}")))
    }

    /// The code of a kernel for a launch on `device`; `None` where that is the program's own.
    pub(crate) fn code(&self, device: &Device, descriptor: &KernelDescriptor) -> Result<Option<Code>> {
        self.check_device(device, || descriptor.display_name())?;
        programs().kernel_of_bundle(&self.0.bundle, device.backend_device(), descriptor)
    }

    /// The code of a kernel for a launch with these values; `None` where that is the program's own.
    ///
    /// # Safety
    /// `values` has the argument block of the kernel of `descriptor`.
    pub(crate) unsafe fn code_for(
        &self,
        device: &Device,
        descriptor: &KernelDescriptor,
        values: &Values<'_>,
        check: impl FnOnce(&oxisycl_backend::KernelInfo) -> Result,
    ) -> Result<Option<Code>> {
        self.check_device(device, || descriptor.display_name())?;
        // SAFETY: the caller's promise.
        unsafe { programs().code_of_bundle_for(&self.0.bundle, device.backend_device(), descriptor, values, check) }
    }
}

/// A kernel of a bundle (SYCL 2020 class `kernel`).
#[derive(Clone, Debug)]
pub struct KernelObject {
    bundle: KernelBundle<Executable>,
    id: KernelId,
}

impl KernelObject {
    /// Which kernel it is.
    pub fn id(&self) -> &KernelId {
        &self.id
    }

    /// The bundle that it is of.
    pub fn bundle(&self) -> &KernelBundle<Executable> {
        &self.bundle
    }

    /// What is known of it on a device (SYCL 2020 `info::kernel_device_specific`).
    ///
    /// Errors: `KernelNotSupported` if the bundle does not have it for the device, or its library was unloaded.
    pub fn info(&self, device: &Device) -> Result<KernelInfo> {
        forbid_blocking("kernel information")?;
        self.bundle.check_device(device, || self.id.name())?;
        let code = programs().load_one_of_bundle(&self.bundle.0.bundle, device.backend_device(), &self.id.wanted())?;
        Ok(KernelInfo::new(device, code.as_ref().map(|code| code.info()), self.id.stated()))
    }
}

impl<S: BundleState> Clone for KernelBundle<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<S: BundleState> PartialEq for KernelBundle<S> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl<S: BundleState> Eq for KernelBundle<S> {}
impl<S: BundleState> Hash for KernelBundle<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl<S: BundleState> fmt::Debug for KernelBundle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelBundle")
            .field("state", &S::NAME)
            .field("devices", &self.0.devices)
            .field("kernels", &self.0.bundle.kernels().len())
            .finish_non_exhaustive()
    }
}

impl<S: BundleState> fmt::Debug for BundleBuilder<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundleBuilder")
            .field("state", &S::NAME)
            .field("devices", &self.devices)
            .field("kernels", &self.kernels)
            .finish_non_exhaustive()
    }
}

const _: () = {
    const fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<KernelBundle<Input>>();
    is_send_sync::<KernelBundle<Object>>();
    is_send_sync::<KernelBundle<Executable>>();
    is_send_sync::<KernelObject>();
};
