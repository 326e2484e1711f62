//! Addresses in USM allocations, and what the runtime knows of an address.

use std::fmt;
use std::sync::Arc;

use oxisycl_backend::UsmKind;
use oxisycl_device::atomic::{AtomicRef, AtomicValue};
use oxisycl_device::multi_ptr::{MultiPtr, space};
use oxisycl_device::{DeviceCopyable, InItem};
use oxisycl_runtime::memory;

use crate::{Context, Device, Error, Result};

/// An address in a USM allocation that kernels can capture.
pub struct UsmPointer<T>(*mut T);

impl<T> Clone for UsmPointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for UsmPointer<T> {}

// SAFETY: an address; each use of it is `unsafe` and says what it needs.
unsafe impl<T: DeviceCopyable> Send for UsmPointer<T> {}
// SAFETY: an address; each use of it is `unsafe` and says what it needs.
unsafe impl<T: DeviceCopyable> Sync for UsmPointer<T> {}

impl<T: DeviceCopyable> UsmPointer<T> {
    /// Wraps an address.
    pub const fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// The address.
    pub const fn as_ptr(self) -> *mut T {
        self.0
    }

    /// The address, of global memory.
    #[inline(always)]
    pub const fn multi_ptr(self) -> MultiPtr<T, space::Global> {
        // SAFETY: a pointer into a USM allocation is null or of global memory, and each access by the result is unsafe.
        unsafe { MultiPtr::new(self.0).static_cast() }
    }

    /// Loads the element `index` places behind the address.
    ///
    /// # Safety
    /// The element lies in an allocation that the executing device can use, and holds a value of `T`. Nothing writes it at the same time.
    #[inline(always)]
    pub unsafe fn read(self, index: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe { self.0.add(index).read() }
    }

    /// Stores to the element `index` places behind the address.
    ///
    /// # Safety
    /// The element lies in an allocation that the executing device can use. Nothing else accesses it at the same time.
    #[inline(always)]
    pub unsafe fn write(self, index: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.0.add(index).write(value) }
    }

    /// The element `index` places behind the address, for atomic operations. Its scope is the device. An element that the host or other devices
    /// access at the same time needs [`Scope::System`](crate::atomic::Scope::System).
    ///
    /// ```
    /// use oxisycl::atomic::{Relaxed, Scope};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let mut total = queue.malloc_device::<u32>(1)?;
    /// total.copy_from_slice(&queue, &[0])?;
    /// let pointer = total.pointer();
    /// queue.parallel_for(100, move |item: Item<1>| {
    ///     // SAFETY: the allocation has one element, which is only accessed atomically until the event is complete.
    ///     let total = unsafe { pointer.atomic_ref(item, 0) };
    ///     total.with_scope(Scope::System).fetch_add(1, Relaxed);
    /// })?.wait()?;
    /// assert_eq!(total.to_vec(&queue)?, [100]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// The element lies in an allocation that the executing device can use. Its address is aligned to the size of `T`, and it holds a value
    /// of `T`. As long as the kernel runs, all accesses to it are atomic.
    #[inline(always)]
    pub unsafe fn atomic_ref<'k>(self, item: impl InItem<'k>, index: usize) -> AtomicRef<'k, T>
    where
        T: AtomicValue,
    {
        // SAFETY: the caller's contract.
        unsafe { AtomicRef::from_ptr(item, self.0.add(index)) }
    }
}

impl<T> fmt::Debug for UsmPointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What kind of allocation a pointer belongs to (SYCL 2020 `usm::alloc`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PointerKind {
    /// A device allocation; the allocations of buffers are such.
    Device,
    /// A host allocation.
    Host,
    /// A shared allocation.
    Shared,
    /// None that the context knows.
    Unknown,
}

fn lookup(address: usize, context: &Context) -> Option<memory::PointerInfo> {
    memory::pointer_info(address).filter(|info| match info.context {
        Some(id) => id == context.inner().id(),
        // A buffer belongs to no context; its allocation to a device.
        None => context.devices().iter().any(|device| device.memory_id() == info.memory),
    })
}

/// What kind of allocation `pointer`, which may point into its middle, belongs to.
pub fn pointer_kind<T>(pointer: *const T, context: &Context) -> PointerKind {
    match lookup(pointer as usize, context).map(|info| info.kind) {
        Some(UsmKind::Device) => PointerKind::Device,
        Some(UsmKind::Host) => PointerKind::Host,
        Some(UsmKind::Shared) => PointerKind::Shared,
        None => PointerKind::Unknown,
    }
}

/// The device that an allocation was made on; for a host allocation the first device of the context.
///
/// Errors: `Invalid` if the pointer belongs to no allocation that the context knows.
pub fn pointer_device<T>(pointer: *const T, context: &Context) -> Result<Device> {
    let unknown = || Error::invalid(format!("{pointer:?} is not in a usm allocation of the context"));
    let info = lookup(pointer as usize, context).ok_or_else(unknown)?;
    let devices = context.devices();
    if info.kind == UsmKind::Host {
        return Ok(devices[0].clone());
    }
    let exact = devices.iter().find(|device| Arc::ptr_eq(device.backend_device(), &info.device));
    let same_memory = devices.iter().find(|device| device.memory_id() == info.device.info().memory.id);
    exact.or(same_memory).cloned().ok_or_else(unknown)
}
