//! The host device and its sub-devices.
//!
//! A device is a list of compute units, each with the processor that it stands for. Sub-devices share their root's pool and memory,
//! and differ in how many threads take part in one of their commands. Nothing is pinned.

use std::sync::Arc;

use oxisycl_backend::{
    AffinityDomain, BackendError, Device, DeviceInfo, Memory, Partition, PartitionProperty, Queue, QueueOptions,
};
use oxisycl_image::ImageTarget;

use crate::levels::native_levels;
use crate::pool::Pool;
use crate::queue::HostQueue;
use crate::topology::Topology;

/// The state that a root device shares with all its sub-devices.
pub(crate) struct Shared {
    pub(crate) pool: PoolHandle,
    pub(crate) memory: Arc<dyn Memory>,
    pub(crate) topology: Box<dyn Topology>,
}

/// Access to a pool: the one of the process, or one of its own. When the last handle of the latter is dropped, its threads end.
pub(crate) enum PoolHandle {
    OfTheProcess(&'static Pool),
    #[cfg_attr(not(all(test, not(loom))), expect(dead_code, reason = "only tests make pools of their own"))]
    Own(&'static Pool),
}

impl PoolHandle {
    pub(crate) fn get(&self) -> &'static Pool {
        match self {
            Self::OfTheProcess(pool) | Self::Own(pool) => pool,
        }
    }
}

impl Drop for PoolHandle {
    fn drop(&mut self) {
        if let Self::Own(pool) = self {
            pool.close_when_idle();
        }
    }
}

pub(crate) struct HostDevice {
    shared: Arc<Shared>,
    /// The processor of each compute unit.
    units: Vec<usize>,
    info: DeviceInfo,
}

impl HostDevice {
    /// The root device, with one compute unit per thread of the pool.
    pub(crate) fn root(shared: Arc<Shared>, info: DeviceInfo) -> Self {
        let processors = shared.topology.processors();
        let count = shared.pool.get().threads();
        let units = (0..count).map(|unit| processors.get(unit % processors.len().max(1)).copied().unwrap_or(unit));
        Self::with_units(shared.clone(), units.collect(), info)
    }

    fn with_units(shared: Arc<Shared>, units: Vec<usize>, mut info: DeviceInfo) -> Self {
        let count = u32::try_from(units.len()).unwrap_or(u32::MAX);
        info.max_compute_units = count;
        info.partition_max_sub_devices = count;
        info.partition_properties = vec![PartitionProperty::Equally, PartitionProperty::ByCounts];
        info.partition_affinity_domains = domains_that_split(&*shared.topology, &units);
        if !info.partition_affinity_domains.is_empty() {
            info.partition_properties.push(PartitionProperty::ByAffinityDomain);
        }
        Self { shared, units, info }
    }

    fn sub_device(
        &self,
        units: Vec<usize>,
        property: PartitionProperty,
        domain: Option<AffinityDomain>,
    ) -> Arc<dyn Device> {
        let mut info = self.info.clone();
        info.partition_type_property = Some(property);
        info.partition_type_affinity_domain = domain;
        Arc::new(Self::with_units(Arc::clone(&self.shared), units, info))
    }

    fn unsupported(&self, what: String) -> BackendError {
        BackendError::Unsupported { device: self.info.name.clone(), what }
    }

    fn equally(&self, size: usize) -> Result<Vec<Arc<dyn Device>>, BackendError> {
        if size == 0 || size > self.units.len() {
            return Err(
                self.unsupported(format!("sub-devices of {size} compute units (the device has {})", self.units.len()))
            );
        }
        let parts = self.units.chunks_exact(size);
        Ok(parts.map(|part| self.sub_device(part.to_vec(), PartitionProperty::Equally, None)).collect())
    }

    fn by_counts(&self, counts: &[usize]) -> Result<Vec<Arc<dyn Device>>, BackendError> {
        let total = counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count));
        if total.is_none_or(|total| total == 0 || total > self.units.len()) {
            return Err(self.unsupported(format!(
                "sub-devices of {counts:?} compute units (the device has {})",
                self.units.len()
            )));
        }
        let mut rest = &self.units[..];
        let mut devices = Vec::new();
        for count in counts.iter().copied().filter(|count| *count > 0) {
            let (part, others) = rest.split_at(count);
            rest = others;
            devices.push(self.sub_device(part.to_vec(), PartitionProperty::ByCounts, None));
        }
        Ok(devices)
    }

    fn by_affinity(&self, domain: AffinityDomain) -> Result<Vec<Arc<dyn Device>>, BackendError> {
        let actual = match domain {
            AffinityDomain::NextPartitionable => self.info.partition_affinity_domains.first().copied(),
            other => self.info.partition_affinity_domains.contains(&other).then_some(other),
        };
        let Some(actual) = actual else {
            return Err(self.unsupported(format!("a partition by affinity domain {domain:?}, which does not split it")));
        };
        let parts = parts_of(&*self.shared.topology, actual, &self.units);
        let property = PartitionProperty::ByAffinityDomain;
        Ok(parts.into_iter().map(|part| self.sub_device(part, property, Some(actual))).collect())
    }
}

// SAFETY: the memory is the host's, and kernels are the program's own code. `levels` asks the processor for each feature of a level.
unsafe impl Device for HostDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<dyn Memory> {
        &self.shared.memory
    }

    fn partition(&self, partition: &Partition) -> Result<Vec<Arc<dyn Device>>, BackendError> {
        match partition {
            Partition::Equally(size) => self.equally(*size),
            Partition::ByCounts(counts) => self.by_counts(counts),
            Partition::ByAffinityDomain(domain) => self.by_affinity(*domain),
        }
    }

    fn native_levels(&self) -> &'static [ImageTarget] {
        native_levels()
    }

    fn create_queue(&self, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        Ok(Arc::new(HostQueue::new(Arc::clone(&self.shared), self.units.len(), options)))
    }
}

/// The domains that split the units into more than one part, outermost first. `NextPartitionable` follows if there are any.
fn domains_that_split(topology: &dyn Topology, units: &[usize]) -> Vec<AffinityDomain> {
    let levels = [AffinityDomain::Numa, AffinityDomain::L3Cache, AffinityDomain::L2Cache];
    let mut domains: Vec<_> =
        levels.into_iter().filter(|domain| parts_of(topology, *domain, units).len() > 1).collect();
    if !domains.is_empty() {
        domains.push(AffinityDomain::NextPartitionable);
    }
    domains
}

/// The units of each domain that has any.
fn parts_of(topology: &dyn Topology, domain: AffinityDomain, units: &[usize]) -> Vec<Vec<usize>> {
    let groups = match domain {
        AffinityDomain::Numa => topology.numa_nodes(),
        AffinityDomain::L3Cache => topology.l3_groups(),
        AffinityDomain::L2Cache => topology.l2_groups(),
        _ => Vec::new(),
    };
    groups
        .iter()
        .map(|group| units.iter().copied().filter(|unit| group.contains(unit)).collect::<Vec<_>>())
        .filter(|part| !part.is_empty())
        .collect()
}
