//! Which addresses belong to which allocation: what pointer queries and copies of raw pointers ask.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Weak};

use oxisycl_backend::{Device, MemoryId, UsmKind};
use parking_lot::RwLock;

use super::BufferCore;
use crate::graph::HeldBuffer;
use crate::ids::ContextId;

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
    pub context: Option<ContextId>,
    /// The buffer that it is of.
    pub buffer: Option<Weak<BufferCore>>,
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

/// Writes in which buffer an address is, as messages of kernels end, and returns whether it is in one.
pub fn write_buffer_name(address: usize, f: &mut fmt::Formatter<'_>) -> Result<bool, fmt::Error> {
    match pointer_info(address).and_then(|info| info.buffer?.upgrade()) {
        Some(core) => write!(f, ", in {}", core.description()).map(|()| true),
        None => Ok(false),
    }
}
