//! The description of a device, from the driver's attributes.

use std::ffi::{CStr, c_char, c_int};

use oxisycl_backend::{
    CacheType, DeviceInfo, FpConfig, LocalMemoryType, MemoryInfo, MemoryOrder, MemoryScope, VectorWidths,
};
use oxisycl_image::{ImageTarget, ParameterLayout};
use oxisycl_types::{Aspect, BackendKind, DeviceType};

use crate::error::{DriverError, version_text};
use crate::sys::{COMPUTE_MODE_PROHIBITED, Driver, RawDevice, attribute};

/// The least compute capability, times ten: the first one with independent thread scheduling.
pub(crate) const LEAST_SM: u32 = 70;
/// Compute capabilities, times ten, that code may have been compiled for, newest first.
const TARGETS: &[u32] = &[121, 120, 110, 103, 101, 100, 90, 89, 88, 87, 86, 80, 75, 72, 70];
/// The driver version with PTX 8.3, which has loads and stores of 128 bits: 12.3.
const WIDE_ATOMICS: i32 = 12_030;
/// PCI vendor id.
const NVIDIA: u32 = 0x10DE;

/// Facts about a device that are not limits.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// Compute capability times ten.
    pub(crate) sm: u32,
    pub(crate) has_unified_addressing: bool,
    pub(crate) has_managed_memory: bool,
}

/// An attribute, or 0 if the driver does not know it.
fn number(driver: &Driver, device: RawDevice, attribute: c_int) -> c_int {
    let mut value = 0;
    // SAFETY: writes a number; the device came from the driver.
    unsafe { driver.device_get_attribute(&raw mut value, attribute, device) }.map_or(0, |()| value)
}

/// Most bytes of local memory of a block, for kernels that opt in to it.
pub(crate) fn max_local_bytes(driver: &Driver, device: RawDevice) -> u32 {
    let of = |attribute| u32::try_from(number(driver, device, attribute)).unwrap_or(0);
    of(attribute::MAX_SHARED_MEMORY_PER_BLOCK).max(of(attribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
}

impl Facts {
    pub(crate) fn of(driver: &Driver, device: RawDevice) -> Result<Self, DriverError> {
        let mut text = [0 as c_char; 256];
        // SAFETY: the buffer is as long as stated.
        unsafe { driver.device_get_name(text.as_mut_ptr(), 256, device) }?;
        text[255] = 0;
        // SAFETY: the text ends with a NUL byte, by the line above at the latest.
        let name = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
        let is_set = |attribute| number(driver, device, attribute) != 0;
        let major = number(driver, device, attribute::COMPUTE_CAPABILITY_MAJOR);
        let minor = number(driver, device, attribute::COMPUTE_CAPABILITY_MINOR);
        Ok(Self {
            name,
            sm: u32::try_from(major * 10 + minor).unwrap_or(0),
            has_unified_addressing: is_set(attribute::UNIFIED_ADDRESSING),
            has_managed_memory: is_set(attribute::MANAGED_MEMORY) && is_set(attribute::CONCURRENT_MANAGED_ACCESS),
        })
    }
}

/// The targets that a device accepts, best first.
pub(crate) fn image_targets(sm: u32) -> Vec<ImageTarget> {
    let older = TARGETS.iter().copied().filter(|target| *target < sm && *target >= LEAST_SM);
    std::iter::once(sm).chain(older).map(|sm| ImageTarget::Ptx { sm }).collect()
}

fn aspects(driver: &Driver, device: RawDevice, facts: &Facts) -> Vec<Aspect> {
    let mut aspects = vec![
        Aspect::Gpu,
        Aspect::Fp16,
        Aspect::Fp64,
        Aspect::Atomic64,
        Aspect::Image,
        Aspect::ExtOxisyclFloatAtomics,
        Aspect::QueueProfiling,
        Aspect::OnlineCompiler,
        Aspect::OnlineLinker,
        Aspect::UsmDeviceAllocations,
        Aspect::UsmHostAllocations,
    ];
    if driver.version >= WIDE_ATOMICS {
        aspects.push(Aspect::ExtOxisyclAtomic128);
    }
    let is_coherent = number(driver, device, attribute::HOST_NATIVE_ATOMIC_SUPPORTED) != 0;
    if is_coherent {
        aspects.push(Aspect::UsmAtomicHostAllocations);
    }
    if facts.has_managed_memory {
        aspects.push(Aspect::UsmSharedAllocations);
        if is_coherent {
            aspects.push(Aspect::UsmAtomicSharedAllocations);
        }
    }
    if number(driver, device, attribute::PAGEABLE_MEMORY_ACCESS) != 0 {
        aspects.push(Aspect::UsmSystemAllocations);
    }
    aspects
}

/// The description of a device.
pub(crate) fn device_info(driver: &Driver, device: RawDevice, facts: &Facts) -> Result<DeviceInfo, DriverError> {
    let get = |attribute| u32::try_from(number(driver, device, attribute)).unwrap_or(0);
    let mut memory = 0;
    // SAFETY: writes a number; the device came from the driver.
    unsafe { driver.device_total_mem(&raw mut memory, device) }?;
    let memory = memory as u64;
    let max_group = get(attribute::MAX_THREADS_PER_BLOCK).max(1);
    let warp = get(attribute::WARP_SIZE).max(1);
    let widths = VectorWidths { char: 1, short: 1, int: 1, long: 1, float: 1, double: 1, half: 2 };
    let orders = MemoryOrder::ALL.to_vec();
    let scopes = MemoryScope::ALL.to_vec();
    let full = vec![
        FpConfig::Denorm,
        FpConfig::InfNan,
        FpConfig::RoundToNearest,
        FpConfig::RoundToZero,
        FpConfig::RoundToInf,
        FpConfig::Fma,
        FpConfig::CorrectlyRoundedDivideSqrt,
    ];
    // SYCL orders dimensions the other way round: the innermost is last.
    let sizes = [attribute::MAX_BLOCK_DIM_Z, attribute::MAX_BLOCK_DIM_Y, attribute::MAX_BLOCK_DIM_X];
    Ok(DeviceInfo {
        backend: BackendKind::Cuda,
        unusable: None,
        image_targets: image_targets(facts.sm),
        memory: MemoryInfo::unique(),
        peer_memories: Vec::new(),
        // The driver keeps what it has compiled, in a cache of its own.
        binary_key: None,
        load_waits: true,
        device_type: DeviceType::Gpu,
        name: facts.name.clone(),
        vendor: "NVIDIA Corporation".to_owned(),
        vendor_id: NVIDIA,
        driver_version: format!("CUDA {}", version_text(driver.version)),
        version: format!("sm_{}", facts.sm),
        backend_version: format!("CUDA {}", version_text(driver.version)),
        is_available: number(driver, device, attribute::COMPUTE_MODE) != COMPUTE_MODE_PROHIBITED,
        aspects: aspects(driver, device, facts),
        max_compute_units: get(attribute::MULTIPROCESSOR_COUNT).max(1),
        max_work_item_dimensions: 3,
        max_work_item_sizes: sizes.map(|attribute| get(attribute).max(1) as usize),
        max_work_group_size: max_group as usize,
        max_num_sub_groups: max_group.div_ceil(warp),
        sub_group_sizes: vec![warp as usize],
        preferred_vector_width: widths,
        native_vector_width: widths,
        max_clock_frequency: get(attribute::CLOCK_RATE) / 1000,
        address_bits: 64,
        max_mem_alloc_size: memory,
        max_parameter_size: ParameterLayout::MAX_SIZE,
        mem_base_addr_align: 256 * 8,
        half_fp_config: full.iter().copied().filter(|c| *c != FpConfig::CorrectlyRoundedDivideSqrt).collect(),
        single_fp_config: full.clone(),
        double_fp_config: full,
        global_mem_cache_type: CacheType::ReadWrite,
        global_mem_cache_line_size: 128,
        global_mem_cache_size: u64::from(get(attribute::L2_CACHE_SIZE)),
        global_mem_size: memory,
        local_mem_type: LocalMemoryType::Local,
        local_mem_size: u64::from(max_local_bytes(driver, device)),
        error_correction_support: get(attribute::ECC_ENABLED) != 0,
        atomic_memory_order_capabilities: orders.clone(),
        atomic_fence_order_capabilities: orders,
        atomic_memory_scope_capabilities: scopes.clone(),
        atomic_fence_scope_capabilities: scopes,
        // What events are exact to, in nanoseconds.
        profiling_timer_resolution: 500,
        partition_max_sub_devices: 0,
        partition_properties: Vec::new(),
        partition_affinity_domains: Vec::new(),
        partition_type_property: None,
        partition_type_affinity_domain: None,
        opencl: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_takes_its_own_code_first_and_all_older_code_after_it() {
        let of = |sm| image_targets(sm).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(of(75), ["sm_75", "sm_72", "sm_70"]);
        assert_eq!(of(70), ["sm_70"]);
        assert_eq!(of(90)[..3], ["sm_90", "sm_89", "sm_88"]);
        // A device newer than this list.
        assert_eq!(of(130)[..2], ["sm_130", "sm_121"]);
    }
}
