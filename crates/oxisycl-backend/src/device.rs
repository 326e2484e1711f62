//! Backends, platforms and devices, as they are before any work runs.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use oxisycl_image::{DeviceImage, ImageTarget};
use oxisycl_types::BackendKind;

use crate::{BackendError, DeviceInfo, Memory, Module, NativeHandle, Queue, QueueOptions, RawModule, Source};

/// One backend of the process. Making the object is cheap; drivers are asked on the first call of `platforms`.
pub trait Backend: Send + Sync {
    /// The platforms, the same ones in the same order at every call. A backend without a driver has none.
    fn platforms(&self) -> Result<Vec<Arc<Platform>>, BackendError>;
}

/// The description of a platform (SYCL 2020 section 4.6.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlatformInfo {
    /// The backend of the platform.
    pub backend: BackendKind,
    /// Name.
    pub name: String,
    /// Vendor.
    pub vendor: String,
    /// Version of the software.
    pub version: String,
}

/// A set of devices under one driver.
pub struct Platform {
    info: PlatformInfo,
    devices: Vec<Arc<dyn Device>>,
}

impl Platform {
    /// A platform with these root devices.
    pub fn new(info: PlatformInfo, devices: Vec<Arc<dyn Device>>) -> Self {
        Self { info, devices }
    }

    /// The platform's description.
    pub fn info(&self) -> &PlatformInfo {
        &self.info
    }

    /// The platform's root devices, the same ones in the same order at every call.
    pub fn devices(&self) -> Vec<Arc<dyn Device>> {
        self.devices.clone()
    }
}

/// Memory or cache level that sub-devices of one part share (SYCL 2020 `partition_affinity_domain`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AffinityDomain {
    /// A NUMA node.
    Numa,
    /// A level-3 cache.
    L3Cache,
    /// A level-2 cache.
    L2Cache,
    /// The outermost of the above that splits the device.
    NextPartitionable,
}

impl AffinityDomain {
    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Numa => "numa",
            Self::L3Cache => "l3_cache",
            Self::L2Cache => "l2_cache",
            Self::NextPartitionable => "next_partitionable",
        }
    }
}

impl fmt::Display for AffinityDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How to split a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Partition {
    /// Parts of the given number of compute units, as many as fit; the rest is dropped.
    Equally(usize),
    /// One part per entry with that many compute units.
    ByCounts(Vec<usize>),
    /// One part per domain of the given kind.
    ByAffinityDomain(AffinityDomain),
}

/// One device or sub-device.
///
/// # Safety
/// The properties that a device reports are true. Commands are issued, and memory is read, because of them:
/// - The memory is always the same, is the one that [`DeviceInfo::memory`] describes, and is the one that commands of its queues use.
/// - Boxes can be copied between the memories for which [`DeviceInfo::can_copy`] says so.
/// - A module has the kernels of the image that it was loaded from, by their symbols.
/// - The device runs native code only if it takes no images. The processor then has all features of its [`native_levels`](Device::native_levels).
pub unsafe trait Device: Any + Send + Sync {
    /// Everything about the device that stays as it is for the life of the object.
    fn info(&self) -> &DeviceInfo;

    /// The memory its kernels work on. Devices that are the same hardware return the same memory.
    fn memory(&self) -> &Arc<dyn Memory>;

    /// Splits the device. Arguments were checked against `info` by the caller.
    ///
    /// # Errors
    /// `Unsupported` if the device has no sub-devices, as by default.
    fn partition(&self, _partition: &Partition) -> Result<Vec<Arc<dyn Device>>, BackendError> {
        Err(BackendError::Unsupported { device: self.info().name.clone(), what: "sub-devices".to_owned() })
    }

    /// Creates a queue. Its commands may overlap unless `options.in_order` is set.
    fn create_queue(&self, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError>;

    /// A queue whose commands are put on a queue of the driver that other code has made. Whether it keeps an order is that queue's matter
    /// ([`QueueInfo::keeps_order`](crate::QueueInfo::keeps_order)), and so are its priority and batching.
    ///
    /// # Safety
    /// `native` is null or a live handle of the driver. Where the driver counts references, the result holds one. Elsewhere the handle lives until the
    /// result is dropped and all of its commands have ended.
    ///
    /// # Errors
    /// `Handle` if the handle is not one of the device. `Unsupported` if there is no driver, as by default, or if the driver's queue lacks an option.
    unsafe fn adopt_queue(
        &self,
        _native: *mut c_void,
        _options: &QueueOptions,
    ) -> Result<Arc<dyn Queue>, BackendError> {
        Err(BackendError::Unsupported { device: self.info().name.clone(), what: "queues of a driver".to_owned() })
    }

    /// Loads an image. The image was decoded and verified, and is for one of the device's [targets](DeviceInfo::image_targets). The driver may
    /// compile it, which can take long. With a `binary`, the driver gets that instead of the image's code; if it fails, the caller loads the
    /// image without it.
    ///
    /// # Safety
    /// The image's code is what the device compiler made, or the user has vouched for it. The binary is what [`Module::binary`] gave for the same
    /// image, on a device with the same [`DeviceInfo::binary_key`].
    ///
    /// # Errors
    /// `Unsupported` if the device runs native code only; `Driver` with the driver's log if it refuses the code.
    unsafe fn load(&self, _image: &DeviceImage, _binary: Option<&[u8]>) -> Result<Arc<dyn Module>, BackendError> {
        Err(BackendError::Unsupported { device: self.info().name.clone(), what: "device images".to_owned() })
    }

    /// Has the driver compile code that the program brings, or find kernels that the device or the driver has already.
    ///
    /// # Safety
    /// The user has vouched for the code. A handle is null or live. Where the driver counts references, the result holds one. Elsewhere the handle lives
    /// until the result, its kernels and their commands are gone.
    ///
    /// # Errors
    /// `Unsupported` if the device takes no such code, as by default; `Driver` with the driver's log if it refuses the code. `Handle` if a handle is
    /// not one of the device.
    unsafe fn load_source(&self, source: &Source<'_>) -> Result<Arc<dyn RawModule>, BackendError> {
        Err(BackendError::Unsupported { device: self.info().name.clone(), what: source.name().to_owned() })
    }

    /// The targets of native code of the device compiler that the device runs in the place of the program's own, best first. None by default.
    fn native_levels(&self) -> &'static [ImageTarget] {
        &[]
    }

    /// A handle of the driver; `None` if there is no driver. Valid as long as the device is.
    fn native_handle(&self, _handle: NativeHandle) -> Option<*mut c_void> {
        None
    }

    /// The names of the kernels that the device has by itself.
    fn built_in_kernels(&self) -> Vec<String> {
        Vec::new()
    }
}
