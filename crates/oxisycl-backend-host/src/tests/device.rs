//! The host device's description and its partitions.

use std::sync::Arc;

use oxisycl_backend::{
    AffinityDomain, Backend, BackendError, Device, MemoryId, MemoryOrder, Partition, PartitionProperty,
};
use oxisycl_types::{Aspect, BackendKind, DeviceType};

use super::support::*;

fn units(devices: &[Arc<dyn Device>]) -> Vec<u32> {
    devices.iter().map(|device| device.info().max_compute_units).collect()
}

/// Two NUMA nodes with two level-3 caches each, two processors per level-3 cache.
fn large() -> FakeTopology {
    FakeTopology {
        processors: (0..8).collect(),
        numa: vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]],
        l3: vec![vec![0, 1], vec![2, 3], vec![4, 5], vec![6, 7]],
        l2: (0..8).map(|processor| vec![processor]).collect(),
    }
}

#[test]
fn the_process_has_one_cpu_that_stays_the_same() {
    let backend = crate::HostBackend::new();
    let platforms = backend.platforms().expect("a platform");
    assert_eq!(platforms.len(), 1);
    assert!(Arc::ptr_eq(&platforms[0], &backend.platforms().expect("a platform")[0]));
    let devices = platforms[0].devices();
    assert_eq!(devices.len(), 1);
    assert!(Arc::ptr_eq(&devices[0], &platforms[0].devices()[0]));
    assert_eq!((platforms[0].info().backend, devices[0].info().backend), (BackendKind::Host, BackendKind::Host));
    assert!(run(&queue_of(&devices[0]), nothing()).result.is_ok());
}

#[test]
fn the_description_meets_the_minima_of_the_specification() {
    let backend = crate::HostBackend::new();
    let device = backend.platforms().expect("a platform")[0].devices().remove(0);
    let info = device.info();
    assert_eq!(info.device_type, DeviceType::Cpu);
    assert!(info.max_compute_units >= 1 && info.max_work_item_dimensions >= 3 && info.max_work_group_size >= 1);
    assert!(info.max_work_item_sizes.iter().all(|size| *size >= 1));
    assert!(info.max_num_sub_groups >= 1 && !info.sub_group_sizes.is_empty());
    assert!(info.max_parameter_size >= 1024 && info.local_mem_size >= 32 << 10);
    assert!(info.mem_base_addr_align.is_multiple_of(8) && matches!(info.address_bits, 32 | 64));
    assert!(info.global_mem_size > 0 && info.max_mem_alloc_size > 0 && info.profiling_timer_resolution > 0);
    assert!(info.has(Aspect::Cpu) && info.has(Aspect::Fp64) && info.has(Aspect::UsmSystemAllocations));
    assert!(!info.has(Aspect::Gpu) && !info.has(Aspect::Emulated));
    assert!(info.native_vector_width.double > 0 && info.native_vector_width.half > 0);
    assert!(info.atomic_memory_order_capabilities.contains(&MemoryOrder::Relaxed));
    assert!(!info.name.is_empty() && info.is_available);
    assert_eq!(info.partition_type_property, None);
    assert!(info.partition_max_sub_devices <= info.max_compute_units);
    assert!(info.can_copy(MemoryId::HOST, MemoryId::HOST) && !info.can_copy(MemoryId::HOST, MemoryId::unique()));
    assert!(device.info().image_targets.is_empty());
}

#[test]
fn equal_parts_drop_the_remainder() {
    let device = device(7);
    let parts = device.partition(&Partition::Equally(2)).expect("parts");
    assert_eq!(units(&parts), [2, 2, 2]);
    assert_eq!(parts[0].info().partition_type_property, Some(PartitionProperty::Equally));
    assert!(Arc::ptr_eq(parts[0].memory(), device.memory()));
    assert_eq!(units(&parts[0].partition(&Partition::Equally(1)).expect("parts")), [1, 1]);
    assert_eq!(units(&device.partition(&Partition::Equally(7)).expect("parts")), [7]);
}

#[test]
fn counts_of_zero_are_ignored() {
    let device = device(6);
    let parts = device.partition(&Partition::ByCounts(vec![0, 3, 0, 1])).expect("parts");
    assert_eq!(units(&parts), [3, 1]);
}

#[test]
fn nonsense_is_refused() {
    let device = device(4);
    for partition in [
        Partition::Equally(0),
        Partition::Equally(5),
        Partition::ByCounts(vec![]),
        Partition::ByCounts(vec![0]),
        Partition::ByCounts(vec![3, 2]),
        Partition::ByCounts(vec![usize::MAX, usize::MAX]),
        Partition::ByAffinityDomain(AffinityDomain::Numa),
        Partition::ByAffinityDomain(AffinityDomain::NextPartitionable),
    ] {
        assert!(matches!(device.partition(&partition), Err(BackendError::Unsupported { .. })), "{partition:?}");
    }
    assert!(device.info().partition_affinity_domains.is_empty());
}

#[test]
fn domains_split_a_machine_from_the_outside_in() {
    let (device, _) = device_on(8, large());
    let domains = &device.info().partition_affinity_domains;
    let next = AffinityDomain::NextPartitionable;
    assert_eq!(*domains, [AffinityDomain::Numa, AffinityDomain::L3Cache, AffinityDomain::L2Cache, next]);
    let split =
        |device: &Arc<dyn Device>, domain| device.partition(&Partition::ByAffinityDomain(domain)).expect("parts");
    assert_eq!(units(&split(&device, AffinityDomain::L3Cache)), [2, 2, 2, 2]);
    let nodes = split(&device, next);
    assert_eq!(units(&nodes), [4, 4]);
    assert_eq!(nodes[1].info().partition_type_affinity_domain, Some(AffinityDomain::Numa));
    // Within a node the next level is the cache.
    let caches = split(&nodes[1], next);
    assert_eq!(units(&caches), [2, 2]);
    assert_eq!(caches[0].info().partition_type_affinity_domain, Some(AffinityDomain::L3Cache));
    let processors = split(&caches[0], next);
    assert_eq!(units(&processors), [1, 1]);
    assert!(processors[0].partition(&Partition::ByAffinityDomain(next)).is_err());
}

#[test]
fn processors_that_the_program_may_not_use_are_in_no_part() {
    let topology = FakeTopology { processors: vec![2, 3, 4], ..large() };
    let (device, _) = device_on(3, topology);
    let parts = device.partition(&Partition::ByAffinityDomain(AffinityDomain::Numa)).expect("parts");
    assert_eq!(units(&parts), [2, 1]);
}
