//! Native commands: the user's own calls of a driver as a command (`enqueue_custom_operation` of AdaptiveCpp).

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range as Interval;
use std::sync::Arc;

use oxisycl_backend::{BackendError, Command, NativeCommand, NativeQueue};
use oxisycl_device::Accessor;
use oxisycl_runtime::graph::{KeptAlive, without_blocking};
use oxisycl_types::{BackendKind, ErrorCode};
use parking_lot::Mutex;

use super::Handler;
use crate::argument::Kept;
use crate::{Device, Error, Result};

/// What puts native work on a queue, with what it captures.
type Work = Box<dyn FnMut(NativeQueue) -> Result<(), BackendError> + Send>;

/// What the function of a native command may know of the backend. Belongs to the command group `'cg`.
pub struct NativeScope<'n, 'cg> {
    native: NativeQueue,
    device: &'n Device,
    allocations: &'n [Interval<usize>],
    group: PhantomData<fn(&'cg ()) -> &'cg ()>,
}

impl<'cg> NativeScope<'_, 'cg> {
    /// The device.
    pub fn device(&self) -> &Device {
        self.device
    }

    /// The backend.
    pub fn backend(&self) -> BackendKind {
        self.device.backend()
    }

    /// The queue to put work on, a `CUstream` or a `cl_command_queue`. Work that is put there comes after what the group waits for. It is
    /// for this call alone: of what is put there later, the runtime knows nothing.
    pub fn native_queue(&self) -> *mut c_void {
        self.native.queue
    }

    /// The device, a `CUdevice`, as an address of that number, or a `cl_device_id`.
    pub fn native_device(&self) -> *mut c_void {
        self.native.device
    }

    /// The context of the device's memory, a `CUcontext`, which is current, or a `cl_context`.
    pub fn native_context(&self) -> *mut c_void {
        self.native.context
    }

    /// The native memory of a device accessor of the same command group: the address of the buffer's first element on the device. Native
    /// work may use it until the command has ended.
    ///
    /// Errors: `Invalid` if the accessor is not one of the command group.
    pub fn native_memory<T, const D: usize, M>(&self, accessor: Accessor<'cg, T, D, M>) -> Result<*mut T> {
        memory_of(self.allocations, accessor)
    }
}

impl fmt::Debug for NativeScope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeScope").field("device", &self.device).finish_non_exhaustive()
    }
}

/// The address of an accessor's buffer, if it lies in one of these allocations.
pub(super) fn memory_of<T, const D: usize, M>(
    allocations: &[Interval<usize>],
    accessor: Accessor<'_, T, D, M>,
) -> Result<*mut T> {
    let pointer = accessor.as_ptr();
    if allocations.iter().any(|allocation| allocation.contains(&(pointer as usize))) {
        Ok(pointer)
    } else {
        Err(Error::invalid("the accessor is not a device accessor of this command group"))
    }
}

impl<'cg> Handler<'cg> {
    /// The allocations of the group's accessors on the queue's device.
    pub(super) fn own_allocations(&self) -> Vec<Interval<usize>> {
        let memory = self.queue.device().memory_id();
        let own = self.group.requirements.iter().filter(|requirement| requirement.memory == memory);
        let interval = |requirement: &oxisycl_runtime::schedule::Requirement| {
            let core = requirement.core();
            let begin = core.lock().allocation(requirement.allocation).pointer.as_ptr() as usize;
            begin..begin + core.layout.size()
        };
        own.map(interval).collect()
    }

    /// Has `enqueue` put work on the driver's own queue, as the command of this group. The host does not wait for it. The command begins when
    /// what the group waits for has ended, and ends with the work.
    ///
    /// `enqueue` is called once. That is within `submit`, unless the group waits for the host or for another backend. Then it is called later, by a thread
    /// of the runtime. Its error or panic makes the command fail, after what it has put on the queue has ended. What it captures is dropped after the
    /// command has ended, so that it may own memory that the work uses.
    ///
    /// Errors: `BackendMismatch` if there is no driver behind the backend. `Invalid` for a second command in the group; what `access` recorded.
    ///
    /// # Safety
    /// `enqueue` puts work on the [given queue](NativeScope::native_queue) only. That work uses no memory of the runtime but that of the group's accessors, as
    /// their modes say, and that only until it has ended. Other memory that it uses is valid until the command has ended. The work does not wait for this
    /// program. `enqueue` waits for nothing, and calls nothing of this crate but the scope's methods: locks of the runtime are held. It leaves the driver's
    /// state of the thread as it was.
    ///
    /// ```no_run
    /// use oxisycl::prelude::*;
    ///
    /// unsafe extern "C" {
    ///     fn cuMemsetD32Async(target: u64, value: u32, count: usize, stream: *mut std::ffi::c_void) -> i32;
    /// }
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1u32; 1000])?;
    /// Queue::select(oxisycl::selector::gpu_selector)?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, Write);
    ///     // SAFETY: the call fills the accessor's elements on the stream that is given, and returns at once.
    ///     unsafe {
    ///         cg.native_command(move |scope| {
    ///             let target = scope.native_memory(numbers)?;
    ///             let code = cuMemsetD32Async(target as u64, 7, 1000, scope.native_queue());
    ///             if code == 0 { Ok(()) } else { Err(Error::new(ErrorCode::Runtime, format!("cuMemsetD32Async: {code}"))) }
    ///         })
    ///     }
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn native_command<F>(&mut self, mut enqueue: F) -> Result
    where
        F: for<'n> FnMut(NativeScope<'n, 'cg>) -> Result + Send + 'cg,
    {
        self.command("a native command", |handler| {
            let device = handler.queue.device().clone();
            if !handler.queue.inner().shared().takes_native {
                let (name, backend) = (device.name(), device.backend());
                let message =
                    format!("device \"{name}\" of backend {backend} has no native queue for a native command");
                return Err(Error::new(ErrorCode::BackendMismatch, message));
            }
            let allocations = handler.own_allocations();
            let work = move |native: NativeQueue| {
                let scope = NativeScope { native, device: &device, allocations: &allocations, group: PhantomData };
                // Nothing of it stands for a driver's code.
                let failed =
                    |error: Error| BackendError::Driver { call: "a native command", code: 0, name: error.to_string() };
                without_blocking(|| enqueue(scope)).map_err(failed)
            };
            let work: Box<dyn FnMut(NativeQueue) -> Result<(), BackendError> + Send + 'cg> = Box::new(work);
            // SAFETY: as for the work of a host task: `'cg` is a fresh lifetime that nothing borrowed can outlive. The accessors that have it are
            // of this group, whose holds keep their memory until the command has ended.
            let work: Work = unsafe { std::mem::transmute(work) };
            let work = Arc::new(Mutex::new(work));
            let called = work.clone();
            let call = move |native: NativeQueue| (called.lock())(native);
            // Not by the command: its locks are held when it is issued, and what users capture may take them when it is dropped.
            handler.group.kept_alive.push(KeptAlive::Loan(Box::new(Kept(work))));
            let name = handler.name.unwrap_or("native command").to_owned();
            handler.group.commands.push(Command::Native(Box::new(NativeCommand::new(name, Box::new(call)))));
            Ok(())
        })
    }
}
