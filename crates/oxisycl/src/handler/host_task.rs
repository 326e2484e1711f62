//! Host tasks: user code on the host as a command (SYCL 2020 section 4.10).

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use oxisycl_backend::NativeHandle;
use oxisycl_device::{Accessor, DeviceCopyable, Mode, ModeFor, Stores};
use oxisycl_runtime::graph::{HOST_TASK_NAME, QueueShared, Title};
use oxisycl_types::{BackendKind, ErrorCode, Id, Range};

use super::Handler;
use super::native_command::memory_of;
use crate::{Buffer, Device, Error, Result};

/// Makes a lifetime invariant.
type Brand<'a> = PhantomData<fn(&'a ()) -> &'a ()>;

/// Proof of being inside the host task of the command group `'cg`, and its [`InteropHandle`].
///
/// A scope belongs to one group, because a task may submit others. Their accessors give nothing before their own task runs.
pub struct HostScope<'t, 'cg> {
    interop: &'t InteropHandle,
    task: Brand<'t>,
    group: Brand<'cg>,
    not_send: PhantomData<dyn StaysInItsHostTask>,
}

/// A trait object that is neither `Send` nor `Sync`, whose name stands in the error.
trait StaysInItsHostTask {}

impl Clone for HostScope<'_, '_> {
    fn clone(&self) -> Self {
        *self
    }
}
impl Copy for HostScope<'_, '_> {}

impl<'t> HostScope<'t, '_> {
    /// Access to native objects of the queue's backend.
    pub fn interop(self) -> &'t InteropHandle {
        self.interop
    }
}

impl fmt::Debug for HostScope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostScope")
    }
}

/// What a host task may know of the backend (SYCL 2020 section 4.10.2).
pub struct InteropHandle {
    device: Device,
    queue: Arc<QueueShared>,
    allocations: Vec<std::ops::Range<usize>>,
}

impl InteropHandle {
    /// The backend of the queue that the task was submitted to.
    pub fn backend(&self) -> BackendKind {
        self.device.backend()
    }

    /// The device of that queue.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The native memory of a device accessor of the same command group: the address of the buffer's first element on the
    /// device. The task may use it in native calls until it returns.
    ///
    /// Errors: `Invalid` if the accessor is not one of the command group.
    pub fn native_memory<T, const D: usize, M>(&self, accessor: Accessor<'_, T, D, M>) -> Result<*mut T> {
        memory_of(&self.allocations, accessor)
    }

    /// The driver's handle of the queue: a `CUstream` (of a queue out of order, one of several) or a
    /// `cl_command_queue`. What the group waits for has ended. The runtime knows nothing of what the task puts there.
    /// The task waits for it before it returns, and native kernels must not wait for this program.
    ///
    /// Errors: `BackendMismatch` if there is no driver behind the backend.
    pub fn native_queue(&self) -> Result<*mut c_void> {
        self.found(self.queue.queue.native_handle(NativeHandle::Queue), "queue")
    }

    /// The driver's handle of the queue's device: a `CUdevice`, as an address of that number, or a `cl_device_id`.
    ///
    /// Errors: `BackendMismatch` if there is no driver behind the backend.
    pub fn native_device(&self) -> Result<*mut c_void> {
        self.found(self.queue.queue.native_handle(NativeHandle::Device), "device")
    }

    /// The driver's handle of the context of the device's memory: a `CUcontext` or a `cl_context`. On NVIDIA GPUs the task makes it current
    /// on its thread before it calls the driver.
    ///
    /// Errors: `BackendMismatch` if there is no driver behind the backend.
    pub fn native_context(&self) -> Result<*mut c_void> {
        self.found(self.queue.queue.native_handle(NativeHandle::Context), "context")
    }

    fn found(&self, handle: Option<*mut c_void>, what: &str) -> Result<*mut c_void> {
        let missing =
            || Error::new(ErrorCode::BackendMismatch, format!("backend {} has no native {what}", self.backend()));
        handle.ok_or_else(missing)
    }
}

impl fmt::Debug for InteropHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InteropHandle").field("device", &self.device).finish_non_exhaustive()
    }
}

/// Access of a host task to a range of a buffer, on the host. Not `Copy`, so that it can lend slices.
pub struct HostTaskAccessor<'cg, T, const D: usize, M> {
    accessor: Accessor<'cg, T, D, M>,
    buffer: Range<D>,
}

impl<'cg, T: DeviceCopyable, const D: usize, M: Mode> HostTaskAccessor<'cg, T, D, M> {
    /// The extent that may be used.
    pub fn range(&self) -> Range<D> {
        self.accessor.range()
    }

    /// The address of the first element that may be used.
    pub(crate) fn first(&self) -> *mut T {
        // Without elements, the offset may name a place far outside the allocation, even address zero.
        let skipped = if self.accessor.is_empty() { 0 } else { self.buffer.linear(&self.accessor.offset()) };
        self.accessor.as_ptr().wrapping_add(skipped)
    }

    fn is_contiguous(&self) -> bool {
        let region = crate::buffer::region_of(self.accessor.range(), self.accessor.offset());
        self.accessor.is_empty() || region.contiguous_interval(self.buffer.embed()).is_some()
    }

    fn element(&self, index: Id<D>) -> *mut T {
        let range = self.accessor.range();
        assert!(range.contains(&index), "index {index:?} is outside the accessor's range {range:?}");
        self.first().wrapping_add(self.buffer.linear(&index))
    }

    /// All elements as one slice.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let task = Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access_host(&numbers, Read);
    ///     cg.host_task(move |scope| assert_eq!(numbers.slice(scope), [1, 2, 3]))
    /// })?;
    /// task.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the range is not contiguous in memory; use [`at`](Self::at) then.
    pub fn slice<'s>(&'s self, _scope: HostScope<'_, 'cg>) -> &'s [T] {
        assert!(self.is_contiguous(), "the accessor's range {:?} is not contiguous", self.range());
        // SAFETY: the range is contiguous and inside the host allocation. The requirement orders the task with conflicting commands. The
        // scope of this group exists only while its task runs. Nothing else in the group overlaps.
        unsafe { std::slice::from_raw_parts(self.first(), self.accessor.size()) }
    }

    /// One element.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![1, 2, 3, 4], [2, 2])?;
    /// let task = Queue::default()?.submit(|cg| {
    ///     let column = cg.access_host_range(&table, Read, [0, 1], [2, 1]);
    ///     cg.host_task(move |scope| assert_eq!(*column.at(scope, [1, 0]), 4))
    /// })?;
    /// task.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the range.
    pub fn at<'s>(&'s self, _scope: HostScope<'_, 'cg>, index: impl Into<Id<D>>) -> &'s T {
        // SAFETY: `element` checked the index; the rest as in `slice`.
        unsafe { &*self.element(index.into()) }
    }

    /// All elements as one slice, for writing.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![3, 1, 2])?;
    /// Queue::default()?.submit(|cg| {
    ///     let mut numbers = cg.access_host(&numbers, ReadWrite);
    ///     cg.host_task(move |scope| numbers.slice_mut(scope).sort())
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the range is not contiguous in memory; use [`at_mut`](Self::at_mut) then.
    pub fn slice_mut<'s>(&'s mut self, _scope: HostScope<'_, 'cg>) -> &'s mut [T]
    where
        M: Stores,
    {
        assert!(self.is_contiguous(), "the accessor's range {:?} is not contiguous", self.range());
        // SAFETY: as in `slice`, with exclusive access to the accessor.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.accessor.size()) }
    }

    /// One element, for writing.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let mut numbers = cg.access_host(&numbers, ReadWrite);
    ///     cg.host_task(move |scope| *numbers.at_mut(scope, 1) = 7)
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [1, 7, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index is outside the range.
    pub fn at_mut<'s>(&'s mut self, _scope: HostScope<'_, 'cg>, index: impl Into<Id<D>>) -> &'s mut T
    where
        M: Stores,
    {
        // SAFETY: `element` checked the index; the rest as in `slice_mut`.
        unsafe { &mut *self.element(index.into()) }
    }
}

impl<T, const D: usize, M: Mode> fmt::Debug for HostTaskAccessor<'_, T, D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostTaskAccessor").field(&self.accessor).finish()
    }
}

impl<'cg> Handler<'cg> {
    /// Access of this group's host task to a whole buffer, on the host. Failures as for [`access`](Self::access).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let numbers = Buffer::from_vec(vec![3, 1, 2])?;
    /// queue.submit(|cg| {
    ///     let mut numbers = cg.access_host(&numbers, ReadWrite);
    ///     cg.host_task(move |scope| numbers.slice_mut(scope).sort())
    /// })?;
    /// // A kernel goes on with what the task wrote.
    /// queue.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.parallel_for(3, move |item| numbers.update(item, |x| 10 * x))
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [10, 20, 30]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn access_host<T: DeviceCopyable, const D: usize, M: ModeFor<T>>(
        &mut self,
        buffer: &Buffer<T, D>,
        mode: M,
    ) -> HostTaskAccessor<'cg, T, D, M> {
        self.access_host_range(buffer, mode, Id::default(), buffer.range())
    }

    /// Access of this group's host task to a part of a buffer, on the host. Indices are relative to `offset`. Failures as for
    /// [`access_range`](Self::access_range).
    pub fn access_host_range<T: DeviceCopyable, const D: usize, M: ModeFor<T>>(
        &mut self,
        buffer: &Buffer<T, D>,
        _mode: M,
        offset: impl Into<Id<D>>,
        range: impl Into<Range<D>>,
    ) -> HostTaskAccessor<'cg, T, D, M> {
        let (range, offset) = (range.into(), offset.into());
        let pointer = match crate::wiring::runtime() {
            Ok(runtime) => self.require_on::<T, D, M>(buffer, range, offset, runtime.host(), true),
            Err(error) => {
                self.record(error);
                std::ptr::NonNull::dangling().as_ptr()
            }
        };
        let parts = oxisycl_device::AccessorParts { pointer, buffer: buffer.range(), offset, range };
        // SAFETY: as in `Handler::access_range`, for the host's memory.
        HostTaskAccessor { accessor: unsafe { Accessor::from_parts(parts) }, buffer: buffer.range() }
    }

    /// Runs `task` once on a thread of the runtime when the group's requirements are met; the event completes when it returns.
    /// A panic becomes an asynchronous error. The task may block; it does not hold up unrelated commands.
    ///
    /// Errors: `Invalid` for a second command in the group; what `access` recorded.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access_host(&numbers, Read);
    ///     cg.host_task(move |scope| {
    ///         // It may print, allocate and block.
    ///         let _ = sender.send(format!("{:?}", numbers.slice(scope)));
    ///     })
    /// })?;
    /// assert_eq!(receiver.recv().as_deref(), Ok("[1, 2, 3]"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn host_task<F>(&mut self, task: F) -> Result
    where
        F: for<'t> FnOnce(HostScope<'t, 'cg>) + Send + 'cg,
    {
        let location = Location::caller();
        self.command("a host task", |handler| {
            let device = handler.queue.device().clone();
            let interop = InteropHandle {
                device,
                queue: handler.queue.inner().shared().clone(),
                allocations: handler.own_allocations(),
            };
            let work: Box<dyn FnOnce() + Send + 'cg> = Box::new(move || {
                task(HostScope { interop: &interop, task: PhantomData, group: PhantomData, not_send: PhantomData });
            });
            // SAFETY: `'cg` is a fresh lifetime of this command group that nothing borrowed can outlive by construction. The task captures
            // accessors with this lifetime, and the group's holds keep their memory until the task has ended.
            let work: Box<dyn FnOnce() + Send> = unsafe { std::mem::transmute(work) };
            handler.group.host_task = Some(work);
            let name = handler.name.unwrap_or(HOST_TASK_NAME);
            handler.group.title = Some(Box::new(Title::new(name, location)));
            Ok(())
        })
    }
}
