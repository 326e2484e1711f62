//! Which addresses belong to which allocation: what pointer queries and copies of raw pointers ask.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use oxisycl_backend::{Device, MemoryId, UsmKind};
use parking_lot::RwLock;

/// What is known of a pointer.
#[derive(Clone)]
pub struct PointerInfo {
    /// First byte of the allocation.
    pub base: usize,
    /// Size of the allocation in bytes.
    pub size: usize,
    /// The kind of the allocation.
    pub kind: UsmKind,
    /// Where it lives.
    pub memory: MemoryId,
    /// The device it was made on.
    pub device: Arc<dyn Device>,
    /// The context it was made in; `None` for an allocation of a buffer, which belongs to no context.
    pub context: Option<u64>,
}

static REGISTRY: LazyLock<RwLock<BTreeMap<usize, PointerInfo>>> = LazyLock::new(RwLock::default);

pub(crate) fn register(info: PointerInfo) {
    REGISTRY.write().insert(info.base, info);
}

pub(crate) fn unregister(base: usize) {
    REGISTRY.write().remove(&base);
}

/// The allocation that contains `address`, if it is one of ours.
pub fn pointer_info(address: usize) -> Option<PointerInfo> {
    let registry = REGISTRY.read();
    let (_, info) = registry.range(..=address).next_back()?;
    (address - info.base < info.size.max(1)).then(|| info.clone())
}
