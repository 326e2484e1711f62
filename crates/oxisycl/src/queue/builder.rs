//! Making queues.

use std::sync::Arc;

use oxisycl_backend::{Batching, Priority, QueueOptions};
use oxisycl_runtime::graph::AsyncErrors;
use oxisycl_runtime::program::programs;
use oxisycl_runtime::schedule;
use oxisycl_types::{Aspect, ErrorCode, PrintHeader};

use super::{AsyncHandler, Queue};
use crate::interop::NativeQueue;
use crate::wiring::runtime;
use crate::{Context, Device, Error, Result};

/// Settings of a new queue.
#[derive(Clone, Default)]
pub struct QueueBuilder {
    device: Option<Device>,
    context: Option<Context>,
    options: QueueOptions,
    print_buffer: Option<usize>,
    handler: Option<AsyncHandler>,
    native: Option<NativeQueue>,
}

impl QueueBuilder {
    /// The default: an out-of-order queue on the default device.
    pub fn new() -> Self {
        Self::default()
    }

    /// On this device.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let device = Device::default()?;
    /// let queue = Queue::builder().device(&device).build()?;
    /// assert_eq!(*queue.device(), device);
    /// # Ok(())
    /// # }
    /// ```
    pub fn device(mut self, device: &Device) -> Self {
        self.device = Some(device.clone());
        self
    }

    /// In this context, which must contain the device.
    pub fn context(mut self, context: &Context) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// Each command starts after the one before it.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::builder().in_order().build()?;
    /// let first = queue.single_task(|_| {})?;
    /// let last = queue.single_task(|_| {})?;
    /// last.wait()?; // and with it all before
    /// assert!(first.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_order(mut self) -> Self {
        self.options.in_order = true;
        self
    }

    /// Events have profiling times.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::builder().profiling().build()?;
    /// let event = queue.single_task(|_| {})?;
    /// println!("the kernel ran for {:?}", event.profile()?.duration());
    /// # Ok(())
    /// # }
    /// ```
    pub fn profiling(mut self) -> Self {
        self.options.profiling = true;
        self
    }

    /// Scheduling priority among the queues of the device, a hint.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.options.priority = priority;
        self
    }

    /// Keeps up to `bytes` of what one launch prints, on devices that keep it until the launch has ended; at most 1 GiB. The default
    /// is 1 MiB, or what `OXISYCL_PRINT_BUFFER` says. A call of [`println!`](crate::println!) takes 16 bytes, 24 for each value in
    /// it, and the bytes of its strings.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::builder().print_buffer(16 << 20).build()?;
    /// queue.parallel_for(8, |item| oxisycl::println!("work-item {}", item.linear_id()))?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn print_buffer(mut self, bytes: usize) -> Self {
        self.print_buffer = Some(bytes);
        self
    }

    /// Whether small kernels may be handed to a GPU together while it is busy with earlier commands of the queue. Such a kernel costs less,
    /// and may be handed over some tens of microseconds after its submission. Kernels that are submitted to an idle GPU are handed over at once, and so are
    /// all kernels of a queue with [profiling](Self::profiling).
    ///
    /// With `false`, each kernel is handed over by itself. With `true`, which is the default, `OXISYCL_BATCHING` decides, and small kernels
    /// are handed over together unless it is `0`. Other devices than NVIDIA GPUs ignore both.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::builder().in_order().batching(false).build()?;
    /// let counter = Buffer::from_vec(vec![0u64])?;
    /// for _ in 0..3 {
    ///     queue.submit(|cg| {
    ///         let counter = cg.access(&counter, ReadWrite);
    ///         cg.parallel_for(1, move |item| counter.update(item, |x| x + 1))
    ///     })?; // the device has it
    /// }
    /// assert_eq!(counter.to_vec()?, [3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn batching(mut self, is_wanted: bool) -> Self {
        self.options.batching = if is_wanted { Batching::On } else { Batching::Off };
        self
    }

    /// Sets the handler of the queue's asynchronous errors, which gets them oldest first. [`Queue::wait_and_throw`],
    /// [`Queue::throw_asynchronous`] and [`Event::wait_and_throw`](crate::Event::wait_and_throw) call it on the calling thread. After the
    /// queue is dropped, a thread of the runtime calls it.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    ///
    /// # fn main() -> oxisycl::Result {
    /// let seen = Arc::new(AtomicUsize::new(0));
    /// let counter = seen.clone();
    /// let handler = move |errors: Vec<Error>| {
    ///     counter.fetch_add(errors.len(), Relaxed);
    /// };
    /// let queue = Queue::builder().handler(handler).build()?;
    /// queue.single_task(|_| panic!("a mistake"))?;
    /// assert!(queue.wait_and_throw().is_err());
    /// assert_eq!(seen.load(Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn handler(mut self, handler: impl Fn(Vec<Error>) + Send + Sync + 'static) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// On a queue of the driver that other code has made. Commands are put there, in order with that code's own work if the driver's queue is in order.
    /// The driver's queue decides about the order and the priority, and each kernel is handed over at once.
    ///
    /// [`build`](Self::build) then has more errors. `BackendMismatch` if the handle is one of another backend. `Invalid` if it is null, or if it belongs to another
    /// context or device than the queue's. `Invalid` also if the queue should be in order and the driver's is not. `FeatureNotSupported` if
    /// [profiling](Self::profiling) is asked for and the driver's queue has none.
    ///
    /// # Safety
    /// The handle is null or live. A `cl_command_queue` is retained. A `CUstream` is borrowed: it is not destroyed before the queue and its copies are dropped
    /// and all of their commands have ended. Nothing on it is captured into a graph meanwhile.
    ///
    /// ```no_run
    /// use oxisycl::interop::NativeQueue;
    /// use oxisycl::prelude::*;
    ///
    /// # fn work(gpu: &Device, stream: *mut std::ffi::c_void) -> oxisycl::Result {
    /// // SAFETY: a live stream of the device's primary context, which outlives the queue and its commands.
    /// let queue = unsafe { Queue::builder().device(gpu).native(NativeQueue::Cuda(stream)) }.profiling().build()?;
    /// assert!(queue.is_in_order());
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn native(mut self, queue: NativeQueue) -> Self {
        self.native = Some(queue);
        self
    }

    /// Makes the queue.
    ///
    /// Errors: `Runtime` if there is no device. `Invalid` if the device is not in the context, or the print buffer is larger than 1 GiB.
    /// `FeatureNotSupported` if profiling is asked for and the device has none.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::builder().in_order().profiling().build()?;
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// queue.fill(&numbers, 7)?;
    /// assert_eq!(numbers.to_vec()?, [7, 7, 7]);
    ///
    /// let error = Queue::builder().print_buffer(2 << 30).build().unwrap_err();
    /// assert_eq!(error.code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(mut self) -> Result<Queue> {
        let device = match (self.device, &self.context) {
            (Some(device), _) => device,
            (None, Some(context)) => {
                crate::selector::select_from(context.devices(), crate::selector::default_selector)?
            }
            (None, None) => Device::default()?,
        };
        let context = match self.context {
            Some(context) => context,
            None => {
                let default = device.platform().default_context()?;
                // A visible sub-device, or one made by partitioning, is covered by its root if that is visible.
                if default.contains(&device) { default } else { Context::new(std::slice::from_ref(&device))? }
            }
        };
        if !context.contains(&device) {
            let name = device.name();
            return Err(Error::invalid(format!(
                "device \"{name}\" is not in the context of the queue, nor part of a device in it"
            )));
        }
        if self.options.profiling && !device.has(Aspect::QueueProfiling) {
            return Err(Error::new(
                ErrorCode::FeatureNotSupported,
                format!("device \"{}\" has no profiling (aspect queue_profiling)", device.name()),
            ));
        }
        self.options.print_buffer = match self.print_buffer {
            None => runtime()?.print_buffer(),
            Some(bytes) => {
                let size = u32::try_from(bytes).ok().filter(|size| *size <= PrintHeader::MAX_CAPACITY);
                size.ok_or_else(|| {
                    let most = PrintHeader::MAX_CAPACITY;
                    Error::invalid(format!("the print buffer of a queue: expected at most {most} bytes, found {bytes}"))
                })?
            }
        };
        if self.options.batching != Batching::Off {
            self.options.batching = runtime()?.batching();
        }
        let handler = self.handler.or_else(|| context.inner().handler().cloned());
        let errors = AsyncErrors::new(handler);
        let (options, backend_device) = (self.options, device.backend_device());
        let queue = match self.native {
            None => schedule::Queue::new(context.inner(), backend_device, options, errors)?,
            Some(native) => {
                let handle = native.handle_for(&device)?;
                // SAFETY: the caller of `native` has promised it.
                let queue =
                    unsafe { schedule::Queue::adopt(context.inner(), backend_device, handle, options, errors) }?;
                if options.in_order && !queue.shared().options.in_order {
                    let message =
                        format!("the native queue {handle:p} of device \"{}\" is out of order", device.name());
                    return Err(Error::invalid(message));
                }
                queue
            }
        };
        programs().load_ahead(device.backend_device());
        Ok(Queue { queue, device, context })
    }
}
