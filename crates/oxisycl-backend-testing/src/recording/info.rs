//! What recording devices say of themselves: as little as the specification allows.

use oxisycl_types::{Aspect, BackendKind, DeviceType};

use oxisycl_backend::{
    CacheType, DeviceInfo, FpConfig, LocalMemoryType, MemoryInfo, MemoryOrder, MemoryScope, VectorWidths,
};

/// The description of a device with that name.
pub(super) fn recording_info(name: String, is_host: bool) -> DeviceInfo {
    let memory = if is_host { MemoryInfo::HOST } else { MemoryInfo::unique() };
    let (device_type, kind) =
        if is_host { (DeviceType::Cpu, Aspect::Cpu) } else { (DeviceType::Accelerator, Aspect::Accelerator) };
    let aspects = vec![
        kind,
        Aspect::Emulated,
        Aspect::Fp16,
        Aspect::Fp64,
        Aspect::Atomic64,
        Aspect::QueueProfiling,
        Aspect::UsmDeviceAllocations,
        Aspect::UsmHostAllocations,
        Aspect::UsmSharedAllocations,
    ];
    let widths = VectorWidths { char: 1, short: 1, int: 1, long: 1, float: 1, double: 1, half: 1 };
    let floats = vec![FpConfig::Denorm, FpConfig::InfNan, FpConfig::RoundToNearest, FpConfig::Fma];
    let orders = vec![MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel];
    let scopes = vec![MemoryScope::WorkItem, MemoryScope::SubGroup, MemoryScope::WorkGroup, MemoryScope::Device];
    let version = env!("CARGO_PKG_VERSION").to_owned();
    DeviceInfo {
        backend: BackendKind::Host,
        unusable: None,
        image_targets: Vec::new(),
        memory,
        peer_memories: Vec::new(),
        binary_key: None,
        load_waits: false,
        device_type,
        name,
        vendor: "OxiSYCL".to_owned(),
        vendor_id: 0,
        driver_version: version.clone(),
        version: version.clone(),
        backend_version: version,
        is_available: true,
        aspects,
        max_compute_units: 1,
        max_work_item_dimensions: 3,
        max_work_item_sizes: [1024; 3],
        max_work_group_size: 1024,
        max_num_sub_groups: 1024,
        sub_group_sizes: vec![1],
        preferred_vector_width: widths,
        native_vector_width: widths,
        max_clock_frequency: 0,
        address_bits: usize::BITS,
        max_mem_alloc_size: 1 << 30,
        max_parameter_size: 1024,
        mem_base_addr_align: 512,
        half_fp_config: floats.clone(),
        single_fp_config: floats.clone(),
        double_fp_config: floats,
        global_mem_cache_type: CacheType::None,
        global_mem_cache_line_size: 0,
        global_mem_cache_size: 0,
        global_mem_size: 1 << 30,
        local_mem_type: LocalMemoryType::Global,
        local_mem_size: 32 << 10,
        error_correction_support: false,
        atomic_memory_order_capabilities: orders.clone(),
        atomic_fence_order_capabilities: orders,
        atomic_memory_scope_capabilities: scopes.clone(),
        atomic_fence_scope_capabilities: scopes,
        profiling_timer_resolution: 1,
        partition_max_sub_devices: 0,
        partition_properties: Vec::new(),
        partition_affinity_domains: Vec::new(),
        partition_type_property: None,
        partition_type_affinity_domain: None,
        opencl: None,
    }
}
