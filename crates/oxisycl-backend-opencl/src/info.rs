//! The description of a device, and whether it is usable.

use oxisycl_backend::{
    AffinityDomain, CacheType, DeviceInfo, ExecutionCapability, FpConfig, LocalMemoryType, MemoryInfo, MemoryOrder,
    MemoryScope, OpenClInfo, PartitionProperty, UsmKind, VectorWidths,
};
use oxisycl_image::{ImageTarget, ParameterLayout};
use oxisycl_types::{Aspect, BackendKind, DeviceType};

use crate::query::Asked;
use crate::sharing::Sharing;
use crate::sys::code;

/// The SPIR-V version of images, unless a kernel needs a newer one.
const BASELINE: (u32, u32) = (1, 2);
/// The first OpenCL version whose devices accept SPIR-V, as major and minor number.
const LEAST_VERSION: (u32, u32) = (2, 1);

/// The version in a text such as `OpenCL 3.0 (Build 0)`.
pub(crate) fn version(text: &str) -> (u32, u32) {
    let parse = || {
        let (major, rest) = text.strip_prefix("OpenCL ")?.split_once('.')?;
        let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    parse().unwrap_or((0, 0))
}

/// The newest SPIR-V version of the images' major version in a text such as `SPIR-V_1.0 SPIR-V_1.2`.
fn newest_spirv(text: &str) -> Option<(u32, u32)> {
    let versions = text.split_whitespace().filter_map(|word| {
        let (major, minor) = word.strip_prefix("SPIR-V_")?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    versions.filter(|(major, _)| *major == BASELINE.0).max()
}

/// The targets that a device accepts, best first. The error says why it accepts none.
pub(crate) fn image_targets(device: Asked<'_>) -> Result<Vec<ImageTarget>, String> {
    let (major, minor) = version(&device.text(code::DEVICE_VERSION));
    if (major, minor) < LEAST_VERSION {
        return Err(format!(
            "it is an OpenCL {major}.{minor} device; kernels are SPIR-V, which OpenCL {}.{} and later can take",
            LEAST_VERSION.0, LEAST_VERSION.1
        ));
    }
    let bits = device.number(code::DEVICE_ADDRESS_BITS);
    if bits != 64 {
        return Err(format!("its addresses have {bits} bits; kernels need 64"));
    }
    if device.number(code::DEVICE_AVAILABLE) == 0 {
        return Err("its driver says that it is not available".to_owned());
    }
    match newest_spirv(&device.text(code::DEVICE_IL_VERSION)) {
        None => Err("its driver takes no SPIR-V (CL_DEVICE_IL_VERSION names none), which kernels are".to_owned()),
        Some(newest) if newest < BASELINE => Err(format!(
            "its driver takes SPIR-V {}.{} at most; kernels are SPIR-V {}.{}",
            newest.0, newest.1, BASELINE.0, BASELINE.1
        )),
        // Images are of the baseline, except for those that need more.
        Some(newest) if newest == BASELINE => Ok(vec![target(BASELINE)]),
        Some(newest) => Ok(vec![target(BASELINE), target(newest)]),
    }
}

fn target((major, minor): (u32, u32)) -> ImageTarget {
    ImageTarget::SpirV { major, minor }
}

/// The target in messages about unusable devices.
pub(crate) fn baseline_target() -> ImageTarget {
    target(BASELINE)
}

fn device_type(device: Asked<'_>) -> DeviceType {
    let bits = device.number(code::DEVICE_TYPE);
    match bits {
        _ if bits & code::DEVICE_TYPE_CPU != 0 => DeviceType::Cpu,
        _ if bits & code::DEVICE_TYPE_GPU != 0 => DeviceType::Gpu,
        _ if bits & code::DEVICE_TYPE_ACCELERATOR != 0 => DeviceType::Accelerator,
        _ => DeviceType::Custom,
    }
}

/// Whether the device's allocations are memory of the host, which other contexts of the same device reach as well.
pub(crate) fn is_host_memory(device: Asked<'_>) -> bool {
    device_type(device) == DeviceType::Cpu
        && device.number(code::DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL) & code::USM_ACCESS != 0
}

/// Whether the device has atomic addition in global and local memory, for all float types that it has.
fn has_float_sums(device: Asked<'_>) -> bool {
    let adds = |what| device.number(what) & code::FP_ATOMIC_ADD == code::FP_ATOMIC_ADD;
    let has_doubles = device.number(code::DEVICE_DOUBLE_FP_CONFIG) != 0;
    adds(code::DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES)
        && (!has_doubles || adds(code::DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES))
}

fn aspects(device: Asked<'_>, sharing: &Sharing) -> Vec<Aspect> {
    let extensions = device.text(code::DEVICE_EXTENSIONS);
    let has = |name: &str| extensions.split_whitespace().any(|extension| extension == name);
    let kind = match device_type(device) {
        DeviceType::Cpu => Aspect::Cpu,
        DeviceType::Gpu => Aspect::Gpu,
        DeviceType::Accelerator => Aspect::Accelerator,
        _ => Aspect::Custom,
    };
    let system = device.number(code::DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL) & code::USM_ACCESS != 0;
    let candidates = [
        (kind, true),
        (Aspect::Fp16, has("cl_khr_fp16")),
        (Aspect::Fp64, device.number(code::DEVICE_DOUBLE_FP_CONFIG) != 0),
        (Aspect::Atomic64, has("cl_khr_int64_base_atomics") && has("cl_khr_int64_extended_atomics")),
        (Aspect::Image, true),
        (Aspect::ExtOxisyclFloatAtomics, has("cl_ext_float_atomics") && has_float_sums(device)),
        (Aspect::OnlineCompiler, device.number(code::DEVICE_COMPILER_AVAILABLE) != 0),
        (Aspect::OnlineLinker, device.number(code::DEVICE_LINKER_AVAILABLE) != 0),
        (Aspect::QueueProfiling, true),
        (Aspect::UsmDeviceAllocations, true),
        (Aspect::UsmHostAllocations, sharing.has(UsmKind::Host)),
        (Aspect::UsmAtomicHostAllocations, sharing.has_atomics(UsmKind::Host, true)),
        (Aspect::UsmSharedAllocations, sharing.has(UsmKind::Shared)),
        (Aspect::UsmAtomicSharedAllocations, sharing.has_atomics(UsmKind::Shared, true)),
        (Aspect::UsmSystemAllocations, system),
    ];
    candidates.into_iter().filter_map(|(aspect, has)| has.then_some(aspect)).collect()
}

/// The meanings of the set bits of a mask, in their order.
fn flags<T: Copy>(bits: u64, meanings: &[T]) -> Vec<T> {
    meanings.iter().enumerate().filter(|(position, _)| bits >> position & 1 != 0).map(|(_, meaning)| *meaning).collect()
}

fn fp_config(bits: u64) -> Vec<FpConfig> {
    flags(
        bits,
        &[
            FpConfig::Denorm,
            FpConfig::InfNan,
            FpConfig::RoundToNearest,
            FpConfig::RoundToZero,
            FpConfig::RoundToInf,
            FpConfig::Fma,
            FpConfig::SoftFloat,
            FpConfig::CorrectlyRoundedDivideSqrt,
        ],
    )
}

/// The memory orders and scopes of a mask of atomic capabilities.
fn atomics(bits: u64) -> (Vec<MemoryOrder>, Vec<MemoryScope>) {
    let mut orders = Vec::new();
    if bits & 1 != 0 {
        orders.push(MemoryOrder::Relaxed);
    }
    if bits & 2 != 0 {
        orders.extend([MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel]);
    }
    if bits & 4 != 0 {
        orders.push(MemoryOrder::SeqCst);
    }
    let mut scopes =
        flags(bits >> 3, &[MemoryScope::WorkItem, MemoryScope::WorkGroup, MemoryScope::Device, MemoryScope::System]);
    if scopes.contains(&MemoryScope::WorkGroup) {
        // OpenCL does not name it: what a group keeps to, its sub-groups do.
        scopes.insert(1, MemoryScope::SubGroup);
        scopes.sort_unstable();
    }
    (orders, scopes)
}

/// A mask of atomic capabilities. Before OpenCL 3.0 there was no query, and all capabilities were required.
fn atomic_bits(device: Asked<'_>, what: u32) -> u64 {
    const ALL: u64 = 0x7F;
    if version(&device.text(code::DEVICE_VERSION)) < (3, 0) { ALL } else { device.number(what) }
}

fn vector_widths(device: Asked<'_>, first: u32, half: u32) -> VectorWidths {
    let [char, short, int, long, float, double] = [0, 1, 2, 3, 4, 5].map(|index| device.small(first + index));
    VectorWidths { char, short, int, long, float, double, half: device.small(half) }
}

fn partition_properties(device: Asked<'_>) -> Vec<PartitionProperty> {
    let listed = device.words(code::DEVICE_PARTITION_PROPERTIES);
    let known = [
        (code::PARTITION_EQUALLY, PartitionProperty::Equally),
        (code::PARTITION_BY_COUNTS, PartitionProperty::ByCounts),
        (code::PARTITION_BY_AFFINITY_DOMAIN, PartitionProperty::ByAffinityDomain),
    ];
    known.into_iter().filter(|(number, _)| listed.contains(&number.cast_unsigned())).map(|(_, name)| name).collect()
}

/// Affinity domains of partitions, with OpenCL's bits.
pub(crate) const DOMAINS: [(AffinityDomain, u64); 4] = [
    (AffinityDomain::Numa, code::AFFINITY_DOMAIN_NUMA),
    (AffinityDomain::L3Cache, code::AFFINITY_DOMAIN_L3_CACHE),
    (AffinityDomain::L2Cache, code::AFFINITY_DOMAIN_L2_CACHE),
    (AffinityDomain::NextPartitionable, code::AFFINITY_DOMAIN_NEXT_PARTITIONABLE),
];

/// How a sub-device was made; `None` for a root device.
pub(crate) type Origin = Option<(PartitionProperty, Option<AffinityDomain>)>;

/// The description of a device. `sharing` is `None` for one that cannot be used.
pub(crate) fn device_info(
    device: Asked<'_>,
    sharing: Option<&Sharing>,
    image_targets: Vec<ImageTarget>,
    origin: Origin,
) -> DeviceInfo {
    let domains = device.number(code::DEVICE_PARTITION_AFFINITY_DOMAIN);
    let properties = partition_properties(device);
    // SYCL orders dimensions the other way round: the innermost is last.
    let mut sizes = device.words(code::DEVICE_MAX_WORK_ITEM_SIZES);
    sizes.resize(3, 1);
    sizes.reverse();
    let (memory_orders, memory_scopes) = atomics(atomic_bits(device, code::DEVICE_ATOMIC_MEMORY_CAPABILITIES));
    let (fence_orders, fence_scopes) = atomics(atomic_bits(device, code::DEVICE_ATOMIC_FENCE_CAPABILITIES));
    DeviceInfo {
        backend: BackendKind::OpenCl,
        unusable: None,
        image_targets,
        memory: MemoryInfo::unique(),
        peer_memories: Vec::new(),
        binary_key: None,
        load_waits: false,
        device_type: device_type(device),
        // Other backends have devices for the same processors, with the same names.
        name: format!("{} (OpenCL)", device.text(code::DEVICE_NAME)),
        vendor: device.text(code::DEVICE_VENDOR),
        vendor_id: device.small(code::DEVICE_VENDOR_ID),
        driver_version: device.text(code::DRIVER_VERSION),
        version: device.text(code::DEVICE_VERSION),
        backend_version: device.text(code::DEVICE_VERSION),
        is_available: sharing.is_some(),
        aspects: sharing.map_or_else(Vec::new, |sharing| aspects(device, sharing)),
        max_compute_units: device.small(code::DEVICE_MAX_COMPUTE_UNITS).max(1),
        max_work_item_dimensions: device.small(code::DEVICE_MAX_WORK_ITEM_DIMENSIONS).max(1),
        max_work_item_sizes: [sizes[0], sizes[1], sizes[2]].map(|size| size.max(1)),
        max_work_group_size: (device.number(code::DEVICE_MAX_WORK_GROUP_SIZE) as usize).max(1),
        max_num_sub_groups: device.small(code::DEVICE_MAX_NUM_SUB_GROUPS),
        sub_group_sizes: device.words(code::DEVICE_SUB_GROUP_SIZES_INTEL),
        preferred_vector_width: vector_widths(
            device,
            code::DEVICE_PREFERRED_VECTOR_WIDTH,
            code::DEVICE_PREFERRED_VECTOR_WIDTH_HALF,
        ),
        native_vector_width: vector_widths(
            device,
            code::DEVICE_NATIVE_VECTOR_WIDTH,
            code::DEVICE_NATIVE_VECTOR_WIDTH + 6,
        ),
        max_clock_frequency: device.small(code::DEVICE_MAX_CLOCK_FREQUENCY),
        address_bits: device.small(code::DEVICE_ADDRESS_BITS),
        max_mem_alloc_size: device.number(code::DEVICE_MAX_MEM_ALLOC_SIZE),
        max_parameter_size: ParameterLayout::MAX_SIZE,
        mem_base_addr_align: device.small(code::DEVICE_MEM_BASE_ADDR_ALIGN),
        half_fp_config: fp_config(device.number(code::DEVICE_HALF_FP_CONFIG)),
        single_fp_config: fp_config(device.number(code::DEVICE_SINGLE_FP_CONFIG)),
        double_fp_config: fp_config(device.number(code::DEVICE_DOUBLE_FP_CONFIG)),
        global_mem_cache_type: match device.number(code::DEVICE_GLOBAL_MEM_CACHE_TYPE) {
            1 => CacheType::ReadOnly,
            2 => CacheType::ReadWrite,
            _ => CacheType::None,
        },
        global_mem_cache_line_size: device.small(code::DEVICE_GLOBAL_MEM_CACHELINE_SIZE),
        global_mem_cache_size: device.number(code::DEVICE_GLOBAL_MEM_CACHE_SIZE),
        global_mem_size: device.number(code::DEVICE_GLOBAL_MEM_SIZE),
        local_mem_type: match device.number(code::DEVICE_LOCAL_MEM_TYPE) {
            1 => LocalMemoryType::Local,
            2 => LocalMemoryType::Global,
            _ => LocalMemoryType::None,
        },
        local_mem_size: device.number(code::DEVICE_LOCAL_MEM_SIZE),
        error_correction_support: device.number(code::DEVICE_ERROR_CORRECTION_SUPPORT) != 0,
        atomic_memory_order_capabilities: memory_orders,
        atomic_fence_order_capabilities: fence_orders,
        atomic_memory_scope_capabilities: memory_scopes,
        atomic_fence_scope_capabilities: fence_scopes,
        profiling_timer_resolution: device.number(code::DEVICE_PROFILING_TIMER_RESOLUTION),
        partition_max_sub_devices: if properties.is_empty() {
            0
        } else {
            device.small(code::DEVICE_PARTITION_MAX_SUB_DEVICES)
        },
        partition_properties: properties,
        partition_affinity_domains: DOMAINS
            .into_iter()
            .filter(|(_, bit)| domains & bit != 0)
            .map(|(domain, _)| domain)
            .collect(),
        partition_type_property: origin.map(|(property, _)| property),
        partition_type_affinity_domain: origin.and_then(|(_, domain)| domain),
        opencl: Some(OpenClInfo {
            profile: device.text(code::DEVICE_PROFILE),
            execution_capabilities: flags(
                device.number(code::DEVICE_EXECUTION_CAPABILITIES),
                &[ExecutionCapability::ExecKernel, ExecutionCapability::ExecNativeKernel],
            ),
            preferred_interop_user_sync: device.number(code::DEVICE_PREFERRED_INTEROP_USER_SYNC) != 0,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_their_texts() {
        assert_eq!(version("OpenCL 3.1 (Build 0)"), (3, 1));
        assert_eq!(version("OpenCL 1.2 pocl HSTR: x"), (1, 2));
        assert_eq!(version("OpenCL 10.20"), (10, 20));
        assert_eq!(version("OpenGL 4.6"), (0, 0));
        assert_eq!(version(""), (0, 0));
    }

    #[test]
    fn the_newest_spir_v_of_the_images_major_version_counts() {
        assert_eq!(newest_spirv("SPIR-V_1.0 SPIR-V_1.4 SPIR-V_1.2"), Some((1, 4)));
        assert_eq!(newest_spirv("SPIR_1.2 SPIR-V_2.0"), None);
        assert_eq!(newest_spirv("SPIR-V_1.x SPIR-V"), None);
    }

    #[test]
    fn bits_become_names_in_the_order_of_the_specification() {
        assert_eq!(fp_config(0x7), [FpConfig::Denorm, FpConfig::InfNan, FpConfig::RoundToNearest]);
        assert_eq!(fp_config(0xA0), [FpConfig::Fma, FpConfig::CorrectlyRoundedDivideSqrt]);
        let (orders, scopes) = atomics(0x77);
        assert_eq!(orders.len(), 5);
        assert_eq!(scopes, [MemoryScope::SubGroup, MemoryScope::WorkGroup, MemoryScope::Device, MemoryScope::System]);
        assert_eq!(atomics(0x11), (vec![MemoryOrder::Relaxed], vec![MemoryScope::SubGroup, MemoryScope::WorkGroup]));
    }
}
