//! One usable device or sub-device.

use std::ffi::{OsString, c_void};
use std::sync::Arc;

use oxisycl_backend::{
    BackendError, Device, DeviceInfo, Memory, Module, NativeHandle, Partition, PartitionProperty, Queue, QueueOptions,
    RawModule, Source,
};
use oxisycl_image::{DeviceImage, ImageTarget};
use oxisycl_types::DeviceType;

use crate::context::{Context, Parts};
use crate::device_state::DeviceState;
use crate::error::check;
use crate::foreign;
use crate::info::{self, DOMAINS, Origin};
use crate::lane;
use crate::launch_shape::GroupLimits;
use crate::memory::ClMemory;
use crate::module::{ClModule, ModuleHandle};
use crate::process_exit;
use crate::query::Asked;
use crate::quirks::Quirks;
use crate::raw_kernel::ClRawModule;
use crate::sharing::{Sharing, SharingKind};
use crate::sys::{Functions, Object, code};

/// Most work-items of a group on a GPU, unless the kernel takes fewer.
const GROUP: usize = 256;
/// Most work-items of a group on a CPU device, unless the kernel takes fewer.
const CPU_GROUP: usize = 4096;
/// Groups are a multiple of this in their innermost dimension: what the widest vector units and most GPUs run at once.
const MULTIPLE: usize = 32;

pub(crate) struct ClDevice {
    pub(crate) state: Arc<DeviceState>,
    info: DeviceInfo,
    memory: Arc<dyn Memory>,
    sharing: SharingKind,
    /// Whether sub-devices reach the device's allocations.
    is_host_memory: bool,
}

/// The origin of a device: loader, platform and handle.
pub(crate) struct Found<'f> {
    pub(crate) functions: &'f Arc<Functions>,
    pub(crate) platform: Object,
    pub(crate) device: Object,
    pub(crate) sharing: SharingKind,
}

impl ClDevice {
    /// Opens a root device that accepts the targets `targets`. The error says why the device cannot be used.
    pub(crate) fn open(found: &Found<'_>, targets: Vec<ImageTarget>) -> Result<Self, String> {
        Self::make(found, targets, None, None)
    }

    fn make(
        found: &Found<'_>,
        targets: Vec<ImageTarget>,
        parent: Option<&Self>,
        origin: Origin,
    ) -> Result<Self, String> {
        let asked = Asked::device(found.functions, found.device);
        let sharing = Sharing::of(asked, found.platform, found.sharing);
        let sharing = match sharing {
            Ok(sharing) => sharing,
            Err(reason) => {
                if parent.is_some() {
                    // SAFETY: the sub-device was given to this function.
                    unsafe { (found.functions.clReleaseDevice)(found.device.0) };
                }
                return Err(reason);
            }
        };
        let mut info = info::device_info(asked, Some(&sharing), targets, origin);
        info.binary_key = Some(binary_key(Asked::platform(found.functions, found.platform), &info));
        let is_host_memory = info::is_host_memory(asked);
        let quirks = Quirks::of(asked, found.platform);
        let limits = group_limits(&info);
        // Memory of the host is the same for all contexts.
        let shared = parent.filter(|parent| parent.is_host_memory && is_host_memory);
        let context = Context::new(Parts {
            functions: found.functions.clone(),
            platform: found.platform,
            device: found.device,
            name: info.name.clone(),
            sharing,
            quirks,
            is_sub_device: parent.is_some(),
        });
        let context = Arc::new(context.map_err(|error| error.to_backend().to_string())?);
        let memory: Arc<dyn Memory> = match shared {
            Some(parent) => {
                info.memory = parent.info.memory;
                parent.memory.clone()
            }
            None => Arc::new(ClMemory::new(context.clone(), is_host_memory)),
        };
        // A sub-device's drivers have threads that are bound to its processors; this program's are not.
        let has_waiting_thread = quirks.waiting_threads && parent.is_none();
        let state = DeviceState::new(context, limits, has_waiting_thread);
        Ok(Self { state, info, memory, sharing: found.sharing, is_host_memory })
    }

    fn context(&self) -> &Arc<Context> {
        &self.state.context
    }

    fn unsupported(&self, what: String) -> BackendError {
        BackendError::Unsupported { device: self.info.name.clone(), what }
    }

    fn check_target(&self, image: &DeviceImage) -> Result<(), BackendError> {
        let newest = self.info.image_targets.last();
        let takes = match (&image.target, newest) {
            (
                ImageTarget::SpirV { major, minor },
                Some(ImageTarget::SpirV { major: takes_major, minor: takes_minor }),
            ) => major == takes_major && minor <= takes_minor,
            _ => false,
        };
        if takes { Ok(()) } else { Err(self.unsupported(format!("device images for {}", image.target))) }
    }
}

/// See [`DeviceInfo::binary_key`].
fn binary_key(platform: Asked<'_>, info: &DeviceInfo) -> String {
    // Vector widths tell processors of one name apart, for which a CPU's driver makes different code. So do a driver's settings.
    format!(
        "opencl; {}; {}; {}; {}; {}; {}; {:?}{}",
        platform.text(code::PLATFORM_NAME),
        platform.text(code::PLATFORM_VERSION),
        info.name,
        info.version,
        info.driver_version,
        info.vendor_id,
        info.native_vector_width,
        driver_settings(std::env::vars_os()),
    )
}

/// The values of environment variables that change how drivers compile.
fn driver_settings(variables: impl Iterator<Item = (OsString, OsString)>) -> String {
    let is_setting = |name: &OsString| {
        let name = name.to_string_lossy();
        ["CL_CONFIG_", "POCL_"].iter().any(|prefix| name.starts_with(prefix))
    };
    let mut settings: Vec<String> = variables
        .filter(|(name, _)| is_setting(name))
        .map(|(name, value)| format!("; {}={}", name.to_string_lossy(), value.to_string_lossy()))
        .collect();
    settings.sort();
    settings.concat()
}

fn group_limits(info: &DeviceInfo) -> GroupLimits {
    let [z, y, x] = info.max_work_item_sizes;
    // On a processor a group is a loop: it begins rarely if it is long, and others may take the processor away.
    let (group, groups_per_unit) = if info.device_type == DeviceType::Cpu { (CPU_GROUP, 16) } else { (GROUP, 4) };
    GroupLimits {
        items: info.max_work_group_size.min(group),
        sizes: [x, y, z],
        multiple: MULTIPLE,
        units: info.max_compute_units as usize,
        groups_per_unit,
    }
}

/// OpenCL's list of properties for a partition, and the description of its parts.
fn partition_properties(partition: &Partition) -> (Vec<isize>, Origin) {
    match partition {
        Partition::Equally(units) => {
            (vec![code::PARTITION_EQUALLY, units.cast_signed(), 0], Some((PartitionProperty::Equally, None)))
        }
        Partition::ByCounts(counts) => {
            let mut properties = vec![code::PARTITION_BY_COUNTS];
            properties.extend(counts.iter().map(|count| count.cast_signed()));
            // The list of counts has an end of its own.
            properties.extend([0, 0]);
            (properties, Some((PartitionProperty::ByCounts, None)))
        }
        Partition::ByAffinityDomain(domain) => {
            let bit = DOMAINS.iter().find(|(known, _)| known == domain).map_or(0, |(_, bit)| *bit);
            let properties = vec![code::PARTITION_BY_AFFINITY_DOMAIN, bit as isize, 0];
            (properties, Some((PartitionProperty::ByAffinityDomain, Some(*domain))))
        }
    }
}

// SAFETY: the driver's word; memory and queues are of the one context that the object belongs to.
unsafe impl Device for ClDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    fn partition(&self, partition: &Partition) -> Result<Vec<Arc<dyn Device>>, BackendError> {
        let context = self.context();
        context.check_alive()?;
        let (properties, origin) = partition_properties(partition);
        let functions = &context.functions;
        let split = |n: u32, devices: *mut crate::sys::Handle, count: *mut u32| {
            // SAFETY: a live device, a list that ends with zero, and room for as many handles as are said.
            let result =
                unsafe { (functions.clCreateSubDevices)(context.device.0, properties.as_ptr(), n, devices, count) };
            if [code::DEVICE_PARTITION_FAILED, code::INVALID_DEVICE_PARTITION_COUNT, code::INVALID_VALUE]
                .contains(&result)
            {
                // Some drivers split no device into one part, for example.
                return Err(self.unsupported(format!(
                    "a partition of its {} compute units, {partition:?}",
                    self.info.max_compute_units
                )));
            }
            check("clCreateSubDevices", result).map_err(|error| context.fail(error))
        };
        let mut count = 0;
        split(0, std::ptr::null_mut(), &raw mut count)?;
        let mut handles = vec![std::ptr::null_mut(); count as usize];
        split(count, handles.as_mut_ptr(), std::ptr::null_mut())?;
        // Each is opened, so that those after one that fails are released with what was made of them.
        let opened: Vec<Result<Self, String>> = handles
            .into_iter()
            .map(|handle| {
                let (platform, device, sharing) = (context.platform, Object(handle), self.sharing);
                let found = Found { functions, platform, device, sharing };
                Self::make(&found, self.info.image_targets.clone(), Some(self), origin)
            })
            .collect();
        let mut devices: Vec<Arc<dyn Device>> = Vec::new();
        for device in opened {
            devices.push(Arc::new(device.map_err(|reason| self.unsupported(format!("a sub-device: {reason}")))?));
        }
        Ok(devices)
    }

    fn create_queue(&self, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        Ok(Arc::new(lane::create_queue(&self.state, self.info.device_type, *options)?))
    }

    unsafe fn adopt_queue(&self, native: *mut c_void, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        // SAFETY: by the contract of this function.
        Ok(Arc::new(unsafe { foreign::adopt(&self.state, self.info.device_type, Object(native), *options) }?))
    }

    fn native_handle(&self, handle: NativeHandle) -> Option<*mut c_void> {
        match handle {
            NativeHandle::Queue => None,
            NativeHandle::Device => Some(self.context().device.0),
            NativeHandle::Context => Some(self.context().raw.0),
        }
    }

    unsafe fn load(&self, image: &DeviceImage, binary: Option<&[u8]>) -> Result<Arc<dyn Module>, BackendError> {
        self.check_target(image)?;
        if let Some(binary) = binary {
            // SAFETY: by the contract of this function.
            let module = unsafe { ClModule::load_binary(self.context(), self.state.limits, image, binary) }?;
            return Ok(Arc::new(ModuleHandle(Arc::new(module))));
        }
        let _compiling = self.context().quirks.process_end.then(process_exit::Compiling::begin);
        // SAFETY: by the contract of this function.
        let module = unsafe { ClModule::load(self.context(), self.state.limits, image) }?;
        Ok(Arc::new(ModuleHandle(Arc::new(module))))
    }

    unsafe fn load_source(&self, source: &Source<'_>) -> Result<Arc<dyn RawModule>, BackendError> {
        let _compiling = self.context().quirks.process_end.then(process_exit::Compiling::begin);
        // SAFETY: by the contract of this function.
        Ok(Arc::new(unsafe { ClRawModule::load(self.context(), source) }?))
    }

    fn built_in_kernels(&self) -> Vec<String> {
        let context = self.context();
        let names = Asked::device(&context.functions, context.device).text(code::DEVICE_BUILT_IN_KERNELS);
        names.split(';').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_drivers_are_told_in_an_order_of_their_own() {
        let variables = [("POCL_B", "2"), ("HOME", "x"), ("CL_CONFIG_CPU_VECTORIZER_MODE", "1")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(driver_settings(variables.into_iter()), "; CL_CONFIG_CPU_VECTORIZER_MODE=1; POCL_B=2");
        assert_eq!(driver_settings(std::iter::empty()), "");
    }
}
