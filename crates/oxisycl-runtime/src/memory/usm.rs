//! One allocation of unified shared memory.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_backend::{Device, UsmKind};
use oxisycl_types::Aspect;

use super::{PointerInfo, register, unregister};
use crate::ids::ContextId;
use crate::observe::counters;
use crate::{Error, Result};

/// Owns an allocation; freed on drop. To free it after pending commands, drop it through a queue's epoch.
pub struct UsmAllocation {
    device: Arc<dyn Device>,
    kind: UsmKind,
    layout: Layout,
    pointer: NonNull<u8>,
}

// SAFETY: the pointer is an address that only the owner frees; using it is the user's business.
unsafe impl Send for UsmAllocation {}
// SAFETY: as above.
unsafe impl Sync for UsmAllocation {}

impl UsmAllocation {
    /// Allocates `layout` on `device`. Errors: `FeatureNotSupported` if the device lacks the kind, `MemoryAllocation` if memory
    /// is exhausted.
    pub fn new(
        device: &Arc<dyn Device>,
        context: ContextId,
        kind: UsmKind,
        layout: Layout,
        zeroed: bool,
    ) -> Result<Self> {
        let aspect = match kind {
            UsmKind::Device => Aspect::UsmDeviceAllocations,
            UsmKind::Host => Aspect::UsmHostAllocations,
            UsmKind::Shared => Aspect::UsmSharedAllocations,
        };
        if !device.info().has(aspect) {
            return Err(Error::new(
                oxisycl_types::ErrorCode::FeatureNotSupported,
                format!("device \"{}\" has no usm {kind} allocations (aspect {aspect})", device.info().name),
            ));
        }
        let pointer = if layout.size() == 0 {
            // Like an empty `Vec`: aligned and never dereferenced.
            NonNull::new(std::ptr::without_provenance_mut(layout.align())).expect("an alignment is not zero")
        } else {
            let pointer = device.memory().allocate(kind, layout, zeroed)?;
            counters().usm_allocations.add(1);
            register(PointerInfo {
                base: pointer.as_ptr() as usize,
                size: layout.size(),
                kind,
                memory: if kind == UsmKind::Device { device.info().memory.id } else { oxisycl_backend::MemoryId::HOST },
                device: device.clone(),
                context: Some(context),
                buffer: None,
            });
            pointer
        };
        Ok(Self { device: device.clone(), kind, layout, pointer })
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// Size and alignment.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The kind.
    pub fn kind(&self) -> UsmKind {
        self.kind
    }

    /// The device it was made on.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Whether the host can dereference it.
    pub fn is_host_accessible(&self) -> bool {
        self.kind != UsmKind::Device || self.device.info().memory.is_host_accessible
    }
}

impl Drop for UsmAllocation {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            unregister(self.pointer.as_ptr() as usize);
            counters().usm_frees.add(1);
            // SAFETY: allocated in `new` with these arguments; freed here only, and owners drop through an epoch that outlives
            // pending commands.
            unsafe { self.device.memory().free(self.pointer, self.kind, self.layout) }
        }
    }
}
