//! The description of a device (SYCL 2020 section 4.6.4.2), as plain values.

use std::fmt;

use oxisycl_image::{ImageTarget, StatedNeeds};
use oxisycl_types::{Aspect, BackendKind, DeviceType};

use crate::{AffinityDomain, MemoryId, MemoryInfo};

/// Floating-point capabilities (`info::fp_config`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FpConfig {
    /// Denormals.
    Denorm,
    /// Infinity and NaN.
    InfNan,
    /// Rounding to nearest even.
    RoundToNearest,
    /// Rounding to zero.
    RoundToZero,
    /// Rounding to infinity.
    RoundToInf,
    /// IEEE 754-2008 fused multiply-add.
    Fma,
    /// Correctly rounded division and square root.
    CorrectlyRoundedDivideSqrt,
    /// Emulated in software.
    SoftFloat,
}

/// How global memory is cached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheType {
    /// Not cached.
    None,
    /// Read only.
    ReadOnly,
    /// Read and write.
    ReadWrite,
}

/// The kind of a device's local memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LocalMemoryType {
    /// There is none.
    None,
    /// Dedicated memory.
    Local,
    /// Part of global memory.
    Global,
}

/// Memory orders of atomics and fences.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryOrder {
    /// `relaxed`
    Relaxed,
    /// `acquire`
    Acquire,
    /// `release`
    Release,
    /// `acq_rel`
    AcqRel,
    /// `seq_cst`
    SeqCst,
}

impl MemoryOrder {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Relaxed, Self::Acquire, Self::Release, Self::AcqRel, Self::SeqCst];
}

/// Memory scopes of atomics and fences, narrow to wide.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum MemoryScope {
    /// One work-item.
    WorkItem,
    /// One sub-group.
    SubGroup,
    /// One work-group.
    WorkGroup,
    /// One device.
    Device,
    /// All devices and the host.
    System,
}

impl MemoryScope {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::WorkItem, Self::SubGroup, Self::WorkGroup, Self::Device, Self::System];
}

/// Ways in which a device can be partitioned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PartitionProperty {
    /// Into equal parts.
    Equally,
    /// Into parts of given sizes.
    ByCounts,
    /// By affinity domain.
    ByAffinityDomain,
}

impl PartitionProperty {
    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equally => "partition_equally",
            Self::ByCounts => "partition_by_counts",
            Self::ByAffinityDomain => "partition_by_affinity_domain",
        }
    }
}

impl fmt::Display for PartitionProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Vector widths in elements; 0 for a type that the device lacks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VectorWidths {
    /// 8-bit integers.
    pub char: u32,
    /// 16-bit integers.
    pub short: u32,
    /// 32-bit integers.
    pub int: u32,
    /// 64-bit integers.
    pub long: u32,
    /// 32-bit floats.
    pub float: u32,
    /// 64-bit floats.
    pub double: u32,
    /// 16-bit floats.
    pub half: u32,
}

/// Limits, names and capabilities of one device. Fields without a comment have the specification's names.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the fields are the specification's descriptors of the same name, section 4.6.4.2")]
pub struct DeviceInfo {
    pub backend: BackendKind,
    pub device_type: DeviceType,
    pub name: String,
    pub vendor: String,
    pub vendor_id: u32,
    pub driver_version: String,
    pub version: String,
    pub backend_version: String,
    pub is_available: bool,
    /// The reason why the device is not usable, or `None`. An unusable device is listed, makes no queues, and is not available.
    pub unusable: Option<String>,
    /// The kinds of device image that the device accepts, best first. Empty if it runs the program's own native code.
    pub image_targets: Vec<ImageTarget>,
    /// The memory that the device's kernels work on.
    pub memory: MemoryInfo,
    /// The memories of other devices that queues of this one copy from and to directly.
    pub peer_memories: Vec<MemoryId>,
    /// A key of everything that a [binary](crate::Module::binary) depends on beside the image: the hardware, the driver and its version, and
    /// settings. `None` if the device's modules have no binaries.
    pub binary_key: Option<String>,
    /// Whether the driver waits for running kernels when it [loads](crate::Device::load) code, and begins no other launch until it has. If so,
    /// the runtime loads code only while no kernel of the device runs.
    pub load_waits: bool,
    pub aspects: Vec<Aspect>,
    pub max_compute_units: u32,
    pub max_work_item_dimensions: u32,
    pub max_work_item_sizes: [usize; 3],
    pub max_work_group_size: usize,
    pub max_num_sub_groups: u32,
    pub sub_group_sizes: Vec<usize>,
    pub preferred_vector_width: VectorWidths,
    pub native_vector_width: VectorWidths,
    /// In MHz, 0 if unknown.
    pub max_clock_frequency: u32,
    pub address_bits: u32,
    /// The largest allocation, in bytes.
    pub max_mem_alloc_size: u64,
    /// The most bytes of a kernel's parameters.
    pub max_parameter_size: usize,
    /// In bits, as in the specification.
    pub mem_base_addr_align: u32,
    pub half_fp_config: Vec<FpConfig>,
    pub single_fp_config: Vec<FpConfig>,
    pub double_fp_config: Vec<FpConfig>,
    pub global_mem_cache_type: CacheType,
    /// The size of a cache line of global memory, in bytes.
    pub global_mem_cache_line_size: u32,
    /// The size of the cache of global memory, in bytes.
    pub global_mem_cache_size: u64,
    /// The size of global memory, in bytes.
    pub global_mem_size: u64,
    pub local_mem_type: LocalMemoryType,
    /// The local memory of a work-group, in bytes.
    pub local_mem_size: u64,
    pub error_correction_support: bool,
    pub atomic_memory_order_capabilities: Vec<MemoryOrder>,
    pub atomic_fence_order_capabilities: Vec<MemoryOrder>,
    pub atomic_memory_scope_capabilities: Vec<MemoryScope>,
    pub atomic_fence_scope_capabilities: Vec<MemoryScope>,
    /// In nanoseconds.
    pub profiling_timer_resolution: u64,
    pub partition_max_sub_devices: u32,
    pub partition_properties: Vec<PartitionProperty>,
    pub partition_affinity_domains: Vec<AffinityDomain>,
    /// How a sub-device was made; `None` for a root device.
    pub partition_type_property: Option<PartitionProperty>,
    /// The affinity domain that a sub-device was made by; `None` for other devices.
    pub partition_type_affinity_domain: Option<AffinityDomain>,
    /// Properties that only OpenCL devices have; `None` for others.
    pub opencl: Option<OpenClInfo>,
}

/// Properties of an OpenCL device beyond [`DeviceInfo`] (SYCL 2020, OpenCL backend specification).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenClInfo {
    /// `FULL_PROFILE` or `EMBEDDED_PROFILE`.
    pub profile: String,
    /// The kinds of functions that the device executes.
    pub execution_capabilities: Vec<ExecutionCapability>,
    /// Whether programs that share memory objects with other APIs should synchronise them themselves.
    pub preferred_interop_user_sync: bool,
}

/// A kind of function that an OpenCL device can execute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExecutionCapability {
    /// OpenCL kernels.
    ExecKernel,
    /// Functions of the host's language.
    ExecNativeKernel,
}

impl DeviceInfo {
    /// Whether the device has `aspect`.
    pub fn has(&self, aspect: Aspect) -> bool {
        self.aspects.contains(&aspect)
    }

    /// What keeps the device from running a kernel that states these needs, in the words of a message. `None` if nothing does.
    pub fn lacks(&self, stated: &StatedNeeds) -> Option<String> {
        let missing: Vec<&str> = stated.aspects.iter().filter(|aspect| !self.has(*aspect)).map(Aspect::name).collect();
        if !missing.is_empty() {
            let (plural, them) = if missing.len() == 1 { ("", "it") } else { ("s", "them") };
            return Some(format!(
                "it states that it needs the aspect{plural} {}, which the device lacks; submit it to a device that has {them} \
                 (`Device::has`)",
                missing.join(", ")
            ));
        }
        if stated.group != [0; 3] {
            let shown = &stated.group[stated.group.iter().position(|extent| *extent > 1).unwrap_or(2)..];
            let items = stated.group.iter().try_fold(1usize, |items, extent| items.checked_mul(*extent as usize));
            let limit = self.max_work_group_size;
            if items.is_none_or(|items| items > limit) {
                return Some(format!(
                    "it states work-groups of {shown:?} work-items, and the limit of the device is {limit} for a group"
                ));
            }
            let limits = self.max_work_item_sizes;
            if let Some(d) = (0..3).find(|d| stated.group[*d] as usize > limits[*d]) {
                return Some(format!(
                    "it states work-groups of {shown:?} work-items, and the limit of the device is {} along an axis with {}",
                    limits[d], stated.group[d]
                ));
            }
        }
        let size = stated.sub_group;
        let has_size = size == 0 || self.sub_group_sizes.contains(&(size as usize));
        (!has_size).then(|| {
            format!("it states sub-groups of {size} work-items, and the device has those of {:?}", self.sub_group_sizes)
        })
    }

    /// Whether a queue of the device can copy between the two memories directly.
    pub fn can_copy(&self, source: MemoryId, target: MemoryId) -> bool {
        let reaches =
            |memory| memory == MemoryId::HOST || memory == self.memory.id || self.peer_memories.contains(&memory);
        reaches(source) && reaches(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_split_have_the_specifications_names() {
        use AffinityDomain::{L2Cache, L3Cache, NextPartitionable, Numa};
        use PartitionProperty::{ByAffinityDomain, ByCounts, Equally};
        let domains = [Numa, L3Cache, L2Cache, NextPartitionable].map(|domain| domain.to_string());
        assert_eq!(domains, ["numa", "l3_cache", "l2_cache", "next_partitionable"]);
        let properties = [Equally, ByCounts, ByAffinityDomain].map(|property| property.to_string());
        assert_eq!(properties, ["partition_equally", "partition_by_counts", "partition_by_affinity_domain"]);
        assert_eq!(format!("{Numa:>6}|{Equally:<18}|"), "  numa|partition_equally |");
    }
}
