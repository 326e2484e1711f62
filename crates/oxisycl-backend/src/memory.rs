//! Memory of devices and of the host.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::BackendError;

/// Identifies a physical memory within the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct MemoryId(u32);

impl MemoryId {
    /// The memory of the host, which every backend can copy from and to.
    pub const HOST: Self = Self(0);

    /// An id that no other memory of this process has.
    pub fn unique() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The number behind it, for messages.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// The constant properties of a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryInfo {
    /// Which physical memory device allocations live in. Devices that are the same hardware have the same one.
    pub id: MemoryId,
    /// Whether the host can dereference device allocations.
    pub is_host_accessible: bool,
}

impl MemoryInfo {
    /// The memory of the host.
    pub const HOST: Self = Self { id: MemoryId::HOST, is_host_accessible: true };

    /// A memory that the host cannot dereference, with an id of its own.
    pub fn unique() -> Self {
        Self { id: MemoryId::unique(), is_host_accessible: false }
    }
}

/// The kinds of unified shared memory (SYCL 2020 section 4.8.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UsmKind {
    /// Lives on a device, not usable on the host.
    Device,
    /// Lives on the host, usable on devices.
    Host,
    /// Usable on the host and the device.
    Shared,
}

impl UsmKind {
    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Host => "host",
            Self::Shared => "shared",
        }
    }
}

impl std::fmt::Display for UsmKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A source of allocations.
///
/// # Safety
/// An allocation has the size and alignment of its layout, overlaps no other, and stays valid until it is freed. It is valid for commands of
/// the devices of this memory. It is valid for the host where the kind or [`MemoryInfo::is_host_accessible`] says so. Every byte handed out
/// has a defined value: it was zeroed, poisoned, or comes from a driver.
pub unsafe trait Memory: Send + Sync {
    /// Allocates `layout`; `layout.size()` is not zero. With `zeroed`, all bytes are zero.
    fn allocate(&self, kind: UsmKind, layout: Layout, zeroed: bool) -> Result<NonNull<u8>, BackendError>;

    /// Frees an allocation.
    ///
    /// # Safety
    /// `pointer` came from `allocate` of this object with the same kind and layout, is freed once, and no command that uses it
    /// is pending.
    unsafe fn free(&self, pointer: NonNull<u8>, kind: UsmKind, layout: Layout);
}
