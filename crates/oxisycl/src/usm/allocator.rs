//! Allocators for containers whose elements are in host or shared allocations (SYCL 2020 `usm_allocator`).

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use allocator_api2::alloc::{AllocError, Allocator};
use oxisycl_backend::UsmKind;
use oxisycl_runtime::memory::UsmAllocation;
use oxisycl_types::ErrorCode;
use parking_lot::Mutex;

use crate::{Context, Device, Error, Queue, Result};

/// A kind of allocation that the host uses, too. The types of this module are all there are.
pub trait AllocatorKind: sealed::Kind {}

/// Host allocations.
#[derive(Clone, Copy, Debug)]
pub enum Host {}

/// Shared allocations.
#[derive(Clone, Copy, Debug)]
pub enum Shared {}

impl AllocatorKind for Host {}
impl AllocatorKind for Shared {}

mod sealed {
    use oxisycl_backend::UsmKind;
    use oxisycl_types::Aspect;

    pub trait Kind {
        const KIND: UsmKind;
        const ASPECT: Aspect;
    }

    impl Kind for super::Host {
        const KIND: UsmKind = UsmKind::Host;
        const ASPECT: Aspect = Aspect::UsmHostAllocations;
    }

    impl Kind for super::Shared {
        const KIND: UsmKind = UsmKind::Shared;
        const ASPECT: Aspect = Aspect::UsmSharedAllocations;
    }
}

/// Gives containers of the crate `allocator-api2` and of those that use it memory that kernels can use. Copies are the same allocator. Like that of a
/// [`UsmSlice`](crate::usm::UsmSlice), memory is freed after the last command that was submitted to the context before.
///
/// ```
/// use allocator_api2::vec::Vec;
/// use oxisycl::prelude::*;
/// use oxisycl::usm::{Shared, UsmAllocator, UsmPointer};
///
/// # fn main() -> oxisycl::Result {
/// let queue = Queue::default()?;
/// let mut numbers = Vec::new_in(UsmAllocator::<Shared>::new(&queue)?);
/// numbers.extend([1u32, 2, 3]);
/// let pointer = UsmPointer::new(numbers.as_mut_ptr());
/// let event = queue.parallel_for(3, move |item: Item<1>| {
///     // SAFETY: each work-item uses an element of its own, and the vector is not used before the event is complete.
///     unsafe { pointer.write(item.index(), 10 * pointer.read(item.index())) }
/// })?;
/// event.wait()?;
/// assert_eq!(numbers, [10, 20, 30]);
/// # Ok(())
/// # }
/// ```
pub struct UsmAllocator<K: AllocatorKind>(Arc<Inner>, PhantomData<K>);

struct Inner {
    context: Context,
    device: Device,
    align: usize,
}

/// The memory of all allocators by its address, so that allocators that are equal can free each other's. What is never freed stays to the end of
/// the process.
static ALLOCATIONS: Mutex<BTreeMap<usize, UsmAllocation>> = Mutex::new(BTreeMap::new());

impl<K: AllocatorKind> UsmAllocator<K> {
    /// An allocator for the context and device of a queue.
    ///
    /// Errors: `FeatureNotSupported` if the device lacks the kind.
    pub fn new(queue: &Queue) -> Result<Self> {
        Self::with_alignment(queue, 1)
    }

    /// An allocator whose memory is aligned to at least `align` bytes, and to what is asked for.
    ///
    /// Errors: as for [`new`](Self::new), and `Invalid` if `align` is not a power of two.
    pub fn with_alignment(queue: &Queue, align: usize) -> Result<Self> {
        let device = queue.device();
        if !align.is_power_of_two() {
            return Err(Error::invalid(format!("memory of an allocator cannot be aligned to {align} bytes")));
        }
        if !device.has(K::ASPECT) {
            let (name, kind) = (device.name(), K::KIND);
            let message = format!("device \"{name}\" has no {kind} allocations for an allocator");
            return Err(Error::new(ErrorCode::FeatureNotSupported, message));
        }
        let (context, device) = (queue.context().clone(), device.clone());
        Ok(Self(Arc::new(Inner { context, device, align }), PhantomData))
    }

    /// The kind of its memory.
    pub fn kind(&self) -> UsmKind {
        K::KIND
    }

    fn layout(&self, layout: Layout) -> Result<Layout, AllocError> {
        layout.align_to(self.0.align).map_err(|_| AllocError)
    }
}

// SAFETY: memory is that of an allocation of the layout. The table has it until `deallocate` is called with its address, for this allocator or an equal
// one. Memory of no size is not used.
unsafe impl<K: AllocatorKind> Allocator for UsmAllocator<K> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let layout = self.layout(layout)?;
        if layout.size() == 0 {
            let dangling = NonNull::new(std::ptr::without_provenance_mut(layout.align())).ok_or(AllocError)?;
            return Ok(NonNull::slice_from_raw_parts(dangling, 0));
        }
        let Inner { context, device, .. } = &*self.0;
        let allocation = UsmAllocation::new(device.backend_device(), context.inner().id(), K::KIND, layout, false)
            .map_err(|_| AllocError)?;
        let pointer = NonNull::new(allocation.as_ptr()).ok_or(AllocError)?;
        ALLOCATIONS.lock().insert(pointer.as_ptr().addr(), allocation);
        Ok(NonNull::slice_from_raw_parts(pointer, layout.size()))
    }

    unsafe fn deallocate(&self, pointer: NonNull<u8>, _layout: Layout) {
        let allocation = ALLOCATIONS.lock().remove(&pointer.as_ptr().addr());
        if let Some(allocation) = allocation {
            self.0.context.inner().discard(allocation);
        }
    }
}

impl<K: AllocatorKind> Clone for UsmAllocator<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

/// Whether both make allocations of the same alignment for the same context and device.
impl<K: AllocatorKind> PartialEq for UsmAllocator<K> {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&*self.0, &*other.0);
        one.context == other.context && one.device == other.device && one.align == other.align
    }
}
impl<K: AllocatorKind> Eq for UsmAllocator<K> {}

impl<K: AllocatorKind> fmt::Debug for UsmAllocator<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsmAllocator").field("kind", &K::KIND).field("device", &self.0.device).finish_non_exhaustive()
    }
}
