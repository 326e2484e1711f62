//! The description of the host device.
//!
//! Read from the system when the platform is first asked for. Invariant: every value meets the least value that SYCL 2020 section
//! 4.6.4.2 demands of it, also where the system tells nothing.

use std::fs;

use oxisycl_backend::{
    CacheType, DeviceInfo, FpConfig, LocalMemoryType, MemoryInfo, MemoryOrder, MemoryScope, VectorWidths,
};
use oxisycl_types::{Aspect, BackendKind, DeviceType};

use crate::memory::MIN_ALIGN;

/// Work-items per work-group, at most.
const MAX_GROUP: usize = 1024;
/// Bytes of local memory: as much as a second-level cache holds beside the rest.
const LOCAL_MEMORY: u64 = 256 << 10;
const FALLBACK_MEMORY: u64 = 4 << 30;

/// The properties of the system's processor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Processor {
    pub(crate) name: String,
    pub(crate) vendor: String,
    pub(crate) vendor_id: u32,
    /// In MHz.
    pub(crate) frequency: u32,
    /// The size of the last-level cache, in bytes.
    pub(crate) cache_size: u64,
    /// The size of a cache line, in bytes.
    pub(crate) cache_line: u32,
    /// The size of memory, in bytes.
    pub(crate) memory: u64,
}

impl Processor {
    /// Reads the properties from the system.
    pub(crate) fn detect() -> Self {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut processor = Self::from_cpuinfo(&text);
        let cpu = "/sys/devices/system/cpu/cpu0";
        if let Some(kilohertz) = read_number(&format!("{cpu}/cpufreq/cpuinfo_max_freq")) {
            processor.frequency = u32::try_from(kilohertz / 1000).unwrap_or(processor.frequency);
        }
        for index in 0..8 {
            let cache = format!("{cpu}/cache/index{index}");
            if let Some(size) = fs::read_to_string(format!("{cache}/size")).ok().and_then(|text| parse_size(&text)) {
                processor.cache_size = processor.cache_size.max(size);
            }
            if let Some(line) = read_number(&format!("{cache}/coherency_line_size")) {
                processor.cache_line = processor.cache_line.max(u32::try_from(line).unwrap_or(0));
            }
        }
        processor.memory = physical_memory();
        processor
    }

    /// Parses text of the form of `/proc/cpuinfo`.
    fn from_cpuinfo(text: &str) -> Self {
        let field = |name: &str| {
            text.lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(key, _)| key.trim() == name)
                .map(|(_, value)| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let (vendor, vendor_id) = match field("vendor_id").as_deref() {
            Some("AuthenticAMD") => ("AMD".to_owned(), 0x1022),
            Some("GenuineIntel") => ("Intel".to_owned(), 0x8086),
            Some(other) => (other.to_owned(), 0),
            None if cfg!(target_vendor = "apple") => ("Apple".to_owned(), 0x106b),
            None => ("unknown vendor".to_owned(), 0),
        };
        let frequency = field("cpu MHz").and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        Self {
            name: field("model name").unwrap_or_else(|| format!("{} CPU", std::env::consts::ARCH)),
            vendor,
            vendor_id,
            frequency: frequency as u32,
            ..Self::default()
        }
    }
}

/// The root device's description.
pub(crate) fn host_info(processor: &Processor, compute_units: usize) -> DeviceInfo {
    let bits = vector_bits();
    let widths = VectorWidths {
        char: bits / 8,
        short: bits / 16,
        int: bits / 32,
        long: bits / 64,
        float: bits / 32,
        double: bits / 64,
        half: 1,
    };
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
    let memory = if processor.memory == 0 { FALLBACK_MEMORY } else { processor.memory };
    let units = u32::try_from(compute_units).unwrap_or(u32::MAX);
    DeviceInfo {
        backend: BackendKind::Host,
        unusable: None,
        image_targets: Vec::new(),
        memory: MemoryInfo::HOST,
        peer_memories: Vec::new(),
        binary_key: None,
        load_waits: false,
        device_type: DeviceType::Cpu,
        name: processor.name.clone(),
        vendor: processor.vendor.clone(),
        vendor_id: processor.vendor_id,
        driver_version: env!("CARGO_PKG_VERSION").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        backend_version: env!("CARGO_PKG_VERSION").to_owned(),
        is_available: true,
        aspects: host_aspects(),
        max_compute_units: units,
        max_work_item_dimensions: 3,
        max_work_item_sizes: [MAX_GROUP; 3],
        max_work_group_size: MAX_GROUP,
        max_num_sub_groups: MAX_GROUP as u32,
        sub_group_sizes: vec![1],
        preferred_vector_width: widths,
        native_vector_width: widths,
        max_clock_frequency: processor.frequency,
        address_bits: usize::BITS,
        max_mem_alloc_size: memory.min(isize::MAX as u64),
        max_parameter_size: 64 << 10,
        mem_base_addr_align: MIN_ALIGN as u32 * 8,
        half_fp_config: vec![FpConfig::Denorm, FpConfig::InfNan, FpConfig::RoundToNearest, FpConfig::SoftFloat],
        single_fp_config: full.clone(),
        double_fp_config: full,
        global_mem_cache_type: CacheType::ReadWrite,
        global_mem_cache_line_size: if processor.cache_line == 0 { 64 } else { processor.cache_line },
        global_mem_cache_size: processor.cache_size,
        global_mem_size: memory,
        local_mem_type: LocalMemoryType::Global,
        local_mem_size: LOCAL_MEMORY,
        error_correction_support: false,
        atomic_memory_order_capabilities: orders.clone(),
        atomic_fence_order_capabilities: orders,
        atomic_memory_scope_capabilities: scopes.clone(),
        atomic_fence_scope_capabilities: scopes,
        profiling_timer_resolution: 1,
        partition_max_sub_devices: units,
        partition_properties: Vec::new(),
        partition_affinity_domains: Vec::new(),
        partition_type_property: None,
        partition_type_affinity_domain: None,
        opencl: None,
    }
}

fn host_aspects() -> Vec<Aspect> {
    vec![
        Aspect::Cpu,
        Aspect::HostDebuggable,
        Aspect::Fp16,
        Aspect::Fp64,
        Aspect::Atomic64,
        Aspect::Image,
        Aspect::ExtOxisyclAtomic128,
        Aspect::QueueProfiling,
        Aspect::UsmDeviceAllocations,
        Aspect::UsmHostAllocations,
        Aspect::UsmAtomicHostAllocations,
        Aspect::UsmSharedAllocations,
        Aspect::UsmAtomicSharedAllocations,
        Aspect::UsmSystemAllocations,
    ]
}

/// Bits of the widest vector registers.
#[cfg(target_arch = "x86_64")]
fn vector_bits() -> u32 {
    if std::is_x86_feature_detected!("avx512f") {
        512
    } else if std::is_x86_feature_detected!("avx") {
        256
    } else {
        128
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_bits() -> u32 {
    128
}

#[cfg(all(unix, not(miri)))]
fn physical_memory() -> u64 {
    // SAFETY: `sysconf` reads no memory of ours.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    match (u64::try_from(pages), u64::try_from(size)) {
        (Ok(pages), Ok(size)) => pages.saturating_mul(size),
        _ => 0,
    }
}

#[cfg(any(not(unix), miri))]
fn physical_memory() -> u64 {
    0
}

fn read_number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Parses sizes such as `32768K`.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, factor) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix(['M', 'm']) {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_read_from_cpuinfo() {
        let text = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some CPU @ 2: 1\ncpu MHz\t\t: 2596.142\n";
        let processor = Processor::from_cpuinfo(text);
        assert_eq!((processor.name.as_str(), processor.vendor.as_str()), ("Some CPU @ 2: 1", "Intel"));
        assert_eq!((processor.vendor_id, processor.frequency), (0x8086, 2596));
    }

    #[test]
    fn a_system_that_tells_nothing_still_has_a_valid_description() {
        let processor = Processor::from_cpuinfo("");
        assert!(!processor.name.is_empty() && !processor.vendor.is_empty());
        let info = host_info(&processor, 1);
        assert!(info.global_mem_size > 0 && info.global_mem_cache_line_size > 0 && info.max_mem_alloc_size > 0);
    }

    #[test]
    fn sizes_of_caches_have_suffixes() {
        assert_eq!(parse_size("32768K\n"), Some(32 << 20));
        assert_eq!(parse_size("4M"), Some(4 << 20));
        assert_eq!(parse_size("512"), Some(512));
        assert_eq!(parse_size("many"), None);
    }
}
