//! Devices and sub-devices (SYCL 2020 section 4.6.4).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use oxisycl_backend::{AffinityDomain, DeviceInfo, MemoryId, Partition, PartitionProperty};
use oxisycl_image::ImageTarget;
use oxisycl_runtime::graph::forbid_blocking;
use oxisycl_runtime::program::programs;
use oxisycl_types::{Aspect, BackendKind, DeviceType, ErrorCode};

use crate::selector::{default_selector, select_from};
use crate::{Error, KernelId, Platform, Result};

/// A device. Copies are the same device.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    device: Arc<dyn oxisycl_backend::Device>,
    platform: Platform,
    parent: Option<Device>,
    selector: Option<String>,
}

impl Device {
    pub(crate) fn root(platform: &Platform, device: Arc<dyn oxisycl_backend::Device>) -> Self {
        Self(Arc::new(Inner { device, platform: platform.clone(), parent: None, selector: None }))
    }

    /// A root device of the process, at position `index` among those of its backend.
    pub(crate) fn listed(platform: &Platform, device: Arc<dyn oxisycl_backend::Device>, index: usize) -> Self {
        let selector = Some(format!("{}:{index}", device.info().backend));
        Self(Arc::new(Inner { device, platform: platform.clone(), parent: None, selector }))
    }

    pub(crate) fn backend_device(&self) -> &Arc<dyn oxisycl_backend::Device> {
        &self.0.device
    }

    /// All visible devices of all platforms, in a stable order: the host device, those of CUDA, those of OpenCL, simulated ones.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// for device in Device::all()? {
    ///     println!("{}: {} MiB", device.name(), device.info().global_mem_size >> 20);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn all() -> Result<Vec<Device>> {
        Ok(Platform::all()?.iter().flat_map(Platform::devices).collect())
    }

    /// All visible devices of one type.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let cpus = Device::all_of(DeviceType::Cpu)?;
    /// assert!(cpus.iter().all(Device::is_cpu));
    /// # Ok(())
    /// # }
    /// ```
    pub fn all_of(device_type: DeviceType) -> Result<Vec<Device>> {
        Ok(Self::all()?.into_iter().filter(|device| device.info().device_type == device_type).collect())
    }

    /// The device that the default selector prefers.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// println!("kernels run on {}", Device::default()?.name());
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::should_implement_trait, reason = "choosing a device can fail")]
    pub fn default() -> Result<Self> {
        Self::select(default_selector)
    }

    /// The device for which `selector` returns the highest number, the first of them in the order of [`Device::all`]; negative numbers
    /// exclude (SYCL 2020 section 4.6.1.1).
    ///
    /// Errors: `Runtime` if every device is excluded.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // The device with the most memory that work can be given to.
    /// let largest = Device::select(|device| match device.unusable() {
    ///     None => (device.info().global_mem_size >> 20) as i32,
    ///     Some(_) => -1,
    /// })?;
    /// println!("{}", largest.name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn select(selector: impl Fn(&Device) -> i32) -> Result<Self> {
        select_from(&Self::all()?, selector)
    }

    /// Which backend it belongs to.
    pub fn backend(&self) -> BackendKind {
        self.0.device.info().backend
    }

    /// The platform that the device belongs to.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let device = Device::default()?;
    /// assert!(device.platform().devices().contains(&device));
    /// # Ok(())
    /// # }
    /// ```
    pub fn platform(&self) -> Platform {
        self.0.platform.clone()
    }

    /// What names it in `OXISYCL_DEVICE_SELECTOR`, such as `host:0` or `host:0.1`. `None` for devices that the variable cannot name:
    /// those of a [`Simulator`](crate::simulated::Simulator), and sub-devices that were not made by the affinity domain
    /// [`NextPartitionable`](AffinityDomain::NextPartitionable).
    pub fn selector(&self) -> Option<&str> {
        self.0.selector.as_deref()
    }

    /// Everything it says of itself.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let device = Device::default()?;
    /// println!("{}, {} compute units", device.info().vendor, device.info().max_compute_units);
    /// # Ok(())
    /// # }
    /// ```
    pub fn info(&self) -> &DeviceInfo {
        self.0.device.info()
    }

    /// The name of the device.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// for device in Device::all()? {
    ///     println!("{}", device.name()); // such as "NVIDIA H100"
    ///     assert_eq!(device.name(), device.info().name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.info().name
    }

    /// Whether it has `aspect`.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// if Device::default()?.has(Aspect::Fp64) {
    ///     println!("kernels may use f64");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn has(&self, aspect: Aspect) -> bool {
        self.info().has(aspect)
    }

    /// Why no work can be given to it, if that is so: its driver lacks something that kernels need. It is listed nevertheless, with an
    /// `is_available` of false; selectors of this crate exclude it, and queues for it cannot be made.
    pub fn unusable(&self) -> Option<&str> {
        self.0.device.info().unusable.as_deref()
    }

    /// The kinds of device image that it runs, best first; none if it runs the program's own code, as the host device does. What
    /// `cargo sycl build --targets` makes images for. A kernel runs on the device if one of the program's images of it is of such a
    /// kind (SYCL 2020 section 4.11.2).
    pub fn image_targets(&self) -> &[ImageTarget] {
        &self.0.device.info().image_targets
    }

    /// The kinds of native code that it runs in the place of the program's own, best first, if `cargo sycl` has put any into the program.
    /// Only the host device runs such code. The last kind is code that every processor of the program's target runs.
    pub fn native_levels(&self) -> &[ImageTarget] {
        self.0.device.native_levels()
    }

    /// Whether it can run all of `kernels` (SYCL 2020 section 4.11.6). A device that runs the program's own code can.
    /// Another device can if the program has an image of each kernel for it, and if it has the aspects that they need.
    ///
    /// ```
    /// use oxisycl::KernelId;
    /// use oxisycl::prelude::*;
    ///
    /// fn square(item: Item<1>) {
    ///     oxisycl::println!("{}", item.index() * item.index());
    /// }
    ///
    /// # fn main() -> oxisycl::Result {
    /// let id = KernelId::of_range(&square);
    /// assert!(Device::select(oxisycl::selector::cpu_selector)?.is_compatible([&id]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_compatible<'a>(&self, kernels: impl IntoIterator<Item = &'a KernelId>) -> bool {
        self.check_compatible(kernels).is_ok()
    }

    /// Whether it can run all of `kernels`, as [`is_compatible`](Self::is_compatible) says, with the reason why not.
    ///
    /// Errors: what a launch of the first kernel that it cannot run would fail with.
    pub fn check_compatible<'a>(&self, kernels: impl IntoIterator<Item = &'a KernelId>) -> Result {
        kernels.into_iter().try_for_each(|kernel| kernel.check(self))
    }

    /// Loads all kernels of the program that the device can run, and returns their number. The number is 0 for a device
    /// that runs the program's own code. Without this call the first launch of each kernel loads it. That takes long
    /// where a driver compiles. Where a driver loads code only while no kernel runs, launches are delayed, and this call waits. What an executable
    /// `kernel_bundle` is for (SYCL 2020 section 4.11).
    ///
    /// Errors: the first of those of kernels that could not be loaded, with the code `Build` if the driver refuses an image. All others
    /// are ready then.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let device = Device::default()?;
    /// let n_kernels = device.load_kernels()?; // so that no launch waits for a driver that compiles
    /// println!("{n_kernels} kernels are ready on {}", device.name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn load_kernels(&self) -> Result<usize> {
        forbid_blocking("load_kernels")?;
        programs().load_all(self.backend_device())
    }

    /// The names of the kernels that it has by itself (`info::device::built_in_kernel_ids`); see
    /// [`SourceBundle::built_in`](crate::source_bundle::SourceBundle::built_in). Only OpenCL drivers have some.
    pub fn built_in_kernels(&self) -> Vec<String> {
        self.0.device.built_in_kernels()
    }

    /// Whether it is a CPU.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// // The host device is always there.
    /// assert!(Device::all()?.iter().any(Device::is_cpu));
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_cpu(&self) -> bool {
        self.info().device_type == DeviceType::Cpu
    }

    /// Whether it is a GPU.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let gpus: Vec<Device> = Device::all()?.into_iter().filter(Device::is_gpu).collect();
    /// assert_eq!(gpus, Device::all_of(DeviceType::Gpu)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_gpu(&self) -> bool {
        self.info().device_type == DeviceType::Gpu
    }

    /// Whether it is an accelerator.
    pub fn is_accelerator(&self) -> bool {
        self.info().device_type == DeviceType::Accelerator
    }

    /// Whether both are the same hardware, so that they share allocations.
    pub fn shares_memory_with(&self, other: &Device) -> bool {
        self.memory_id() == other.memory_id()
    }

    pub(crate) fn memory_id(&self) -> MemoryId {
        self.0.device.info().memory.id
    }

    /// The device it is a part of. Errors: `Invalid` for a root device.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let device = Device::default()?;
    /// assert_eq!(device.parent().unwrap_err().code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn parent(&self) -> Result<Device> {
        let parent = self.0.parent.clone();
        parent.ok_or_else(|| Error::invalid(format!("device \"{}\" is a root device without a parent", self.name())))
    }

    pub(crate) fn is_descendant_of(&self, ancestor: &Device) -> bool {
        let mut device = Some(self);
        while let Some(current) = device {
            if current == ancestor {
                return true;
            }
            device = current.0.parent.as_ref();
        }
        false
    }

    /// Splits the device into as many parts of `n_units` compute units as fit; the rest is dropped.
    ///
    /// Errors: `FeatureNotSupported` if the device cannot be split so, `Invalid` if `n_units` is zero or more than it has.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let cpu = Device::select(oxisycl::selector::cpu_selector)?;
    /// for part in cpu.partition_equally(1)? {
    ///     Queue::new(&part)?.single_task(|_| {})?.wait()?;
    ///     assert_eq!(part.parent()?, cpu);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn partition_equally(&self, n_units: usize) -> Result<Vec<Device>> {
        self.check_partition(PartitionProperty::Equally)?;
        let available = self.info().max_compute_units as usize;
        if n_units == 0 || n_units > available {
            return Err(Error::invalid(format!(
                "cannot split device \"{}\" into parts of {n_units} compute units: it has {available}",
                self.name()
            )));
        }
        self.partition(&Partition::Equally(n_units))
    }

    /// Splits the device into parts with the given numbers of compute units; zeros are ignored.
    ///
    /// Errors: `FeatureNotSupported` if the device cannot be split so. `Invalid` if there is no number but zeros, or if
    /// the sum is more than it has.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let cpu = Device::select(oxisycl::selector::cpu_selector)?;
    /// let parts = cpu.partition_by_counts(&[1])?;
    /// assert_eq!(parts[0].info().max_compute_units, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn partition_by_counts(&self, counts: &[usize]) -> Result<Vec<Device>> {
        self.check_partition(PartitionProperty::ByCounts)?;
        let counts: Vec<usize> = counts.iter().copied().filter(|&count| count > 0).collect();
        let available = self.info().max_compute_units as usize;
        if counts.is_empty() {
            return Err(Error::invalid(format!(
                "cannot split device \"{}\" into no parts: expected a number of compute units above zero for at least one, it has \
                 {available}",
                self.name()
            )));
        }
        let sum = counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count)).unwrap_or(usize::MAX);
        if sum > available || counts.len() > self.info().partition_max_sub_devices as usize {
            return Err(Error::invalid(format!(
                "cannot split device \"{}\" into {} parts of {sum} compute units: it has {available}",
                self.name(),
                counts.len()
            )));
        }
        self.partition(&Partition::ByCounts(counts))
    }

    /// Splits the device by memory or cache level. Errors: `FeatureNotSupported` if the device does not have that level.
    pub fn partition_by_affinity_domain(&self, domain: AffinityDomain) -> Result<Vec<Device>> {
        self.check_partition(PartitionProperty::ByAffinityDomain)?;
        if !self.info().partition_affinity_domains.contains(&domain) {
            return Err(Error::new(
                ErrorCode::FeatureNotSupported,
                format!("device \"{}\" cannot be split by affinity domain {domain}", self.name()),
            ));
        }
        self.partition(&Partition::ByAffinityDomain(domain))
    }

    fn check_partition(&self, property: PartitionProperty) -> Result {
        if self.info().partition_properties.contains(&property) {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::FeatureNotSupported,
            format!("device \"{}\" cannot be split ({property})", self.name()),
        ))
    }

    fn partition(&self, partition: &Partition) -> Result<Vec<Device>> {
        let parts = self.0.device.partition(partition)?;
        // The grammar of the selector goes two levels down.
        let is_named = *partition == Partition::ByAffinityDomain(AffinityDomain::NextPartitionable);
        let prefix = self.selector().filter(|selector| is_named && selector.matches('.').count() < 2);
        let make = |(i, device)| {
            let selector = prefix.map(|prefix| format!("{prefix}.{i}"));
            Device(Arc::new(Inner { device, platform: self.platform(), parent: Some(self.clone()), selector }))
        };
        Ok(parts.into_iter().enumerate().map(make).collect())
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.device, &other.0.device)
    }
}
impl Eq for Device {}
impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0.device).cast::<()>().hash(state);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("backend", &self.backend()).field("name", &self.name()).finish()
    }
}
