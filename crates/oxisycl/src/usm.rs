//! Unified shared memory: allocations used by pointer, with dependencies and movement by the user (SYCL 2020 section 4.8).
//!
//! [`UsmSlice`] owns an allocation. Dropping it never blocks: the memory is freed after the last command that was submitted to
//! the context before. Kernels use it through [`UsmPointer`], whose accesses are `unsafe`, since nothing orders them.

use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use oxisycl_backend::UsmKind;
use oxisycl_device::multi_ptr::{MultiPtr, space};
use oxisycl_device::{AnyBits, DeviceCopyable};
use oxisycl_runtime::memory::UsmAllocation;
use oxisycl_types::Aspect;
use parking_lot::Mutex;

use crate::{Context, Device, Error, Event, Handler, Queue, Result};

#[cfg(feature = "allocator")]
mod allocator;
mod pointer;

#[cfg(feature = "allocator")]
pub use allocator::{AllocatorKind, Host, Shared, UsmAllocator};
pub use pointer::{PointerKind, UsmPointer, pointer_device, pointer_kind};

/// An owned allocation of `len` elements.
pub struct UsmSlice<T> {
    allocation: Option<Arc<UsmAllocation>>,
    context: Context,
    len: usize,
    /// Copies of safe methods that gave up waiting, because this thread held up the copy itself. All later uses come after them.
    unfinished: Mutex<Vec<Event>>,
    elements: PhantomData<fn() -> T>,
}

impl Queue {
    /// An allocation on the queue's device, not usable on the host.
    ///
    /// Errors, for all allocation functions: `FeatureNotSupported` if the device lacks the kind; `MemoryAllocation` if memory is
    /// exhausted; `Invalid` if the size overflows.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let mut numbers = queue.malloc_device::<u32>(3)?;
    /// numbers.copy_from_slice(&queue, &[1, 2, 3])?;
    /// assert_eq!(numbers.to_vec(&queue)?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn malloc_device<T: DeviceCopyable + AnyBits>(&self, len: usize) -> Result<UsmSlice<T>> {
        self.malloc(UsmKind::Device, len)
    }

    /// An allocation on the host that kernels can use.
    ///
    /// ```
    /// use oxisycl::UsmKind;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let numbers = queue.malloc_host::<u32>(3)?;
    /// assert_eq!((numbers.len(), numbers.kind()), (3, UsmKind::Host));
    /// # Ok(())
    /// # }
    /// ```
    pub fn malloc_host<T: DeviceCopyable + AnyBits>(&self, len: usize) -> Result<UsmSlice<T>> {
        self.malloc(UsmKind::Host, len)
    }

    /// An allocation that the host and the queue's device can use.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let numbers = queue.malloc_shared::<usize>(100)?;
    /// let pointer = numbers.pointer();
    /// let event = queue.parallel_for(100, move |item: Item<1>| {
    ///     // SAFETY: each work-item writes an element of its own, and nothing else uses the allocation until the event is complete.
    ///     unsafe { pointer.write(item.index(), 2 * item.index()) }
    /// })?;
    /// event.wait()?;
    /// // SAFETY: no command uses the allocation any more.
    /// let elements = unsafe { numbers.as_slice()? };
    /// assert_eq!(elements[99], 198);
    /// # Ok(())
    /// # }
    /// ```
    pub fn malloc_shared<T: DeviceCopyable + AnyBits>(&self, len: usize) -> Result<UsmSlice<T>> {
        self.malloc(UsmKind::Shared, len)
    }

    /// An allocation of the given kind.
    pub fn malloc<T: DeviceCopyable + AnyBits>(&self, kind: UsmKind, len: usize) -> Result<UsmSlice<T>> {
        self.aligned_alloc(kind, len, align_of::<T>())
    }

    /// An allocation of the given kind, aligned to at least `align` bytes and to the element type.
    ///
    /// Errors: also `Invalid` if `align` is not a power of two.
    pub fn aligned_alloc<T: DeviceCopyable + AnyBits>(
        &self,
        kind: UsmKind,
        len: usize,
        align: usize,
    ) -> Result<UsmSlice<T>> {
        const { assert!(size_of::<T>() > 0, "elements of an allocation must not be zero-sized") };
        let layout = len
            .checked_mul(size_of::<T>())
            .filter(|_| align.is_power_of_two())
            .and_then(|size| Layout::from_size_align(size, align.max(align_of::<T>())).ok())
            .ok_or_else(|| {
                Error::invalid(format!(
                    "{len} elements of {} bytes aligned to {align} are not allocatable",
                    size_of::<T>()
                ))
            })?;
        let device = self.device().backend_device();
        let context = self.context();
        let allocation = UsmAllocation::new(device, context.inner().id(), kind, layout, true)?;
        let (allocation, context) = (Some(Arc::new(allocation)), context.clone());
        Ok(UsmSlice { allocation, context, len, unfinished: Mutex::default(), elements: PhantomData })
    }
}

impl<T: DeviceCopyable> UsmSlice<T> {
    pub(crate) fn allocation(&self) -> &Arc<UsmAllocation> {
        self.allocation.as_ref().expect("only drop takes the allocation")
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The kind of the allocation.
    pub fn kind(&self) -> UsmKind {
        self.allocation().kind()
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The address of the first element.
    pub fn as_ptr(&self) -> *mut T {
        self.allocation().as_ptr().cast()
    }

    /// The address of the first element of a device allocation, `None` for another kind.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Queue::default()?.malloc_device::<u32>(3)?;
    /// assert!(numbers.device_multi_ptr().is_some() && numbers.host_multi_ptr().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn device_multi_ptr(&self) -> Option<MultiPtr<T, space::GlobalDevice>> {
        // SAFETY: a device allocation.
        (self.kind() == UsmKind::Device).then(|| unsafe { self.pointer().multi_ptr().static_cast() })
    }

    /// The address of the first element of a host allocation, `None` for another kind.
    pub fn host_multi_ptr(&self) -> Option<MultiPtr<T, space::GlobalHost>> {
        // SAFETY: a host allocation.
        (self.kind() == UsmKind::Host).then(|| unsafe { self.pointer().multi_ptr().static_cast() })
    }

    /// The address of the first element, for kernels.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let mut numbers = queue.malloc_device::<u32>(3)?;
    /// numbers.copy_from_slice(&queue, &[1, 2, 3])?;
    /// let pointer = numbers.pointer();
    /// let event = queue.parallel_for(3, move |item: Item<1>| {
    ///     // SAFETY: each work-item uses an element of its own, and nothing else uses the allocation until the event is complete.
    ///     unsafe { pointer.write(item.index(), 10 * pointer.read(item.index())) }
    /// })?;
    /// event.wait()?;
    /// assert_eq!(numbers.to_vec(&queue)?, [10, 20, 30]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn pointer(&self) -> UsmPointer<T> {
        UsmPointer::new(self.as_ptr())
    }

    /// Replaces all elements; blocks until that is done. Not ordered with other commands of an out-of-order queue, which
    /// therefore must not use the allocation at the same time.
    ///
    /// Errors: `Invalid` if the numbers of elements differ; the copy's failure.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let mut numbers = queue.malloc_device::<u32>(3)?;
    /// numbers.copy_from_slice(&queue, &[1, 2, 3])?;
    /// assert_eq!(numbers.copy_from_slice(&queue, &[1, 2]).unwrap_err().code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_from_slice(&mut self, queue: &Queue, source: &[T]) -> Result {
        if source.len() != self.len {
            return Err(Error::invalid(format!("cannot copy {} elements to {} elements", source.len(), self.len)));
        }
        // The command owns what it reads, so that it does not matter if this thread stops waiting.
        let owned = source.to_vec();
        let bytes = size_of_val(source);
        let event = queue.submit(|cg| {
            self.come_after_unfinished(cg);
            // SAFETY: both are valid for `bytes` until the command completes: the vector is held by it, and the allocation is
            // freed after it.
            unsafe { cg.memcpy(self.as_ptr().cast(), owned.as_ptr().cast(), bytes)? };
            cg.hold(owned);
            cg.hold(self.allocation().clone());
            Ok(())
        })?;
        self.wait_or_remember(event)
    }

    /// A copy of all elements; blocks until that is done. Commands that write them must have ended.
    ///
    /// Errors: the copy's failure.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let mut numbers = queue.malloc_device::<u32>(3)?;
    /// numbers.copy_from_slice(&queue, &[1, 2, 3])?;
    /// assert_eq!(numbers.to_vec(&queue)?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_vec(&self, queue: &Queue) -> Result<Vec<T>>
    where
        T: AnyBits,
    {
        let mut owned: Vec<T> = vec![T::zeroed(); self.len];
        let bytes = self.len * size_of::<T>();
        let (event, slot) = queue.submit_with(|cg| {
            self.come_after_unfinished(cg);
            // SAFETY: as in `copy_from_slice`; nothing else uses the vector until the slot gives it back.
            unsafe { cg.memcpy(owned.as_mut_ptr().cast(), self.as_ptr().cast_const().cast(), bytes)? };
            cg.hold(self.allocation().clone());
            Ok(cg.hold_vector(owned))
        })?;
        self.wait_or_remember(event)?;
        slot.take().ok_or_else(|| Error::invalid("the copy's memory was taken twice"))
    }

    fn come_after_unfinished(&self, cg: &mut Handler<'_>) {
        let mut unfinished = self.unfinished.lock();
        unfinished.retain(|event| !event.is_complete());
        cg.depends_on_all(&*unfinished);
    }

    /// Waits for a copy. If that gives up before the copy has ended, later uses of the allocation come after the copy.
    fn wait_or_remember(&self, event: Event) -> Result {
        let result = event.wait();
        if !event.is_complete() {
            self.unfinished.lock().push(event);
        }
        result
    }

    /// Waits until no copy of a safe method uses the allocation.
    pub(crate) fn wait_for_unfinished(&self) -> Result {
        let unfinished = self.unfinished.lock().clone();
        for event in unfinished {
            // A copy that failed has ended, too.
            if let (Err(error), false) = (event.wait(), event.is_complete()) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The elements of a host or shared allocation, or of a device allocation that the host can use.
    ///
    /// Errors: `Invalid` if the host cannot use the allocation.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let mut numbers = queue.malloc_shared::<u32>(3)?;
    /// numbers.copy_from_slice(&queue, &[1, 2, 3])?;
    /// // SAFETY: no command uses the allocation.
    /// assert_eq!(unsafe { numbers.as_slice()? }, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// Until the borrow ends, no command writes the elements.
    pub unsafe fn as_slice(&self) -> Result<&[T]> {
        self.check_host_accessible()?;
        // SAFETY: the memory was allocated zeroed or by a driver for `len` elements, and every bit pattern is a valid `T`. The absence of
        // writers is the caller's contract.
        Ok(unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) })
    }

    /// The elements of a host or shared allocation, or of a device allocation that the host can use, for writing.
    ///
    /// Errors: `Invalid` if the host cannot use the allocation.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let mut numbers = queue.malloc_shared::<u32>(3)?;
    /// // SAFETY: no command uses the allocation.
    /// unsafe { numbers.as_mut_slice()? }.copy_from_slice(&[1, 2, 3]);
    /// assert_eq!(numbers.to_vec(&queue)?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// Until the borrow ends, no command accesses the elements.
    pub unsafe fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.check_host_accessible()?;
        // SAFETY: as in `as_slice`, with exclusive access by the caller's contract.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) })
    }

    fn check_host_accessible(&self) -> Result {
        if self.allocation().is_host_accessible() {
            return Ok(());
        }
        let device = &self.allocation().device().info().name;
        Err(Error::invalid(format!("the host cannot use a {} allocation of device \"{device}\"", self.kind())))
    }
}

impl<T> Drop for UsmSlice<T> {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation.take() {
            self.context.inner().discard(allocation);
        }
    }
}

impl<T> fmt::Debug for UsmSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsmSlice")
            .field("kind", &self.allocation.as_ref().map(|allocation| allocation.kind()))
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// Allocates raw memory, to be freed with [`free`]. Host allocations belong to the context: for them the device does not matter.
///
/// Errors: `FeatureNotSupported` if the device lacks the kind, or for a host allocation every device of the context.
/// `MemoryAllocation` if memory is exhausted. `Invalid` if the device is not in the context.
pub fn malloc_raw(kind: UsmKind, layout: Layout, device: &Device, context: &Context) -> Result<*mut u8> {
    let devices = context.devices();
    let device = match kind {
        UsmKind::Host => devices.iter().find(|device| device.has(Aspect::UsmHostAllocations)).unwrap_or(&devices[0]),
        _ if context.contains(device) => device,
        _ => {
            let name = device.name();
            return Err(Error::invalid(format!("device \"{name}\" is not in the context of the allocation")));
        }
    };
    let allocation = UsmAllocation::new(device.backend_device(), context.inner().id(), kind, layout, true)?;
    let pointer = allocation.as_ptr();
    raw_allocations().lock().insert(pointer as usize, allocation);
    Ok(pointer)
}

/// Frees memory of [`malloc_raw`] at once; does nothing for a null pointer.
///
/// Errors: `Invalid` if the pointer is not one of `malloc_raw` that was not freed yet.
///
/// # Safety
/// No command uses the memory, now or later.
pub unsafe fn free(pointer: *mut u8) -> Result {
    if pointer.is_null() {
        return Ok(());
    }
    let allocation = raw_allocations().lock().remove(&(pointer as usize));
    allocation.map(drop).ok_or_else(|| Error::invalid(format!("{pointer:?} is not an allocation of malloc_raw")))
}

fn raw_allocations() -> &'static parking_lot::Mutex<std::collections::HashMap<usize, UsmAllocation>> {
    static RAW: std::sync::LazyLock<parking_lot::Mutex<std::collections::HashMap<usize, UsmAllocation>>> =
        std::sync::LazyLock::new(Default::default);
    &RAW
}

macro_rules! shortcuts {
    ($($(#[$doc:meta])* $name:ident $([$generic:ident])? ($($argument:ident: $type:ty),*);)*) => {
        impl Queue { $(
            $(#[$doc])*
            ///
            /// # Safety
            /// As for the method of [`Handler`](crate::Handler) of the same name.
            pub unsafe fn $name$(<$generic: DeviceCopyable>)?(&self, $($argument: $type),*) -> Result<Event> {
                // SAFETY: the caller's contract.
                self.submit(|cg| unsafe { cg.$name($($argument),*) })
            }
        )* }
    };
}

shortcuts! {
    /// Shortcut: copies bytes.
    memcpy(target: *mut u8, source: *const u8, bytes: usize);
    /// Shortcut: sets bytes.
    memset(target: *mut u8, value: u8, bytes: usize);
    /// Shortcut: fills elements.
    fill_usm[T](target: *mut T, value: T, len: usize);
    /// Shortcut: a hint that memory will be used on the queue's device.
    prefetch(pointer: *mut u8, bytes: usize);
    /// Shortcut: a hint on how memory is used.
    mem_advise(pointer: *mut u8, bytes: usize, advice: crate::Advice);
}
