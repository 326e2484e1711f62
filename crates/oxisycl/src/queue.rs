//! Queues (SYCL 2020 section 4.6.5).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use oxisycl_backend::{Priority, QueueOptions};
use oxisycl_device::{Captured, DeviceCopyable, Item, Single};
use oxisycl_runtime::graph::{AsyncErrors, Node, forbid_blocking};
use oxisycl_runtime::schedule;
use oxisycl_types::{Aspect, BackendKind, ErrorCode, PrintHeader, Range};

use crate::handler::{HostMemory, HostSlot};
use crate::wiring::runtime;
use crate::{Buffer, Context, Device, Error, Event, Handler, Read, Result, Write};

pub use oxisycl_runtime::graph::AsyncHandler;

/// Takes command groups for one device. Copies are the same queue.
///
/// By default commands run in any order that their accessors and events allow; an in-order queue runs each after the one before.
/// Dropping a queue neither waits nor cancels: submitted commands still run, and their errors still reach the handler.
#[derive(Clone)]
pub struct Queue {
    queue: Arc<schedule::Queue>,
    device: Device,
    context: Context,
}

/// Settings of a new queue.
#[derive(Clone, Default)]
pub struct QueueBuilder {
    device: Option<Device>,
    context: Option<Context>,
    options: QueueOptions,
    print_buffer: Option<usize>,
    handler: Option<AsyncHandler>,
}

impl QueueBuilder {
    /// The default: an out-of-order queue on the default device.
    pub fn new() -> Self {
        Self::default()
    }

    /// On this device.
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
    pub fn in_order(mut self) -> Self {
        self.options.in_order = true;
        self
    }

    /// Events have profiling times.
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
    pub fn print_buffer(mut self, bytes: usize) -> Self {
        self.print_buffer = Some(bytes);
        self
    }

    /// Gets the queue's asynchronous errors, oldest first: at [`Queue::wait_and_throw`], [`Queue::throw_asynchronous`] and
    /// [`Event::wait_and_throw`] on the calling thread, and on a thread of the runtime when the queue is gone.
    pub fn handler(mut self, handler: impl Fn(Vec<Error>) + Send + Sync + 'static) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Makes the queue.
    ///
    /// Errors: `Runtime` if there is no device; `Invalid` if the device is not in the context, or the print buffer is larger than 1 GiB;
    /// `FeatureNotSupported` if profiling is asked for and the device has none.
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
        let handler = self.handler.or_else(|| context.inner().handler().cloned());
        let errors = AsyncErrors::new(handler);
        let queue = schedule::Queue::new(context.inner(), device.backend_device(), self.options, errors)?;
        Ok(Queue { queue, device, context })
    }
}

impl Queue {
    /// An out-of-order queue on the default device.
    #[expect(clippy::should_implement_trait, reason = "making a queue can fail")]
    pub fn default() -> Result<Self> {
        QueueBuilder::new().build()
    }

    /// An out-of-order queue on `device`, in its platform's default context.
    pub fn new(device: &Device) -> Result<Self> {
        QueueBuilder::new().device(device).build()
    }

    /// An out-of-order queue on the device that `selector` prefers.
    pub fn select(selector: impl Fn(&Device) -> i32) -> Result<Self> {
        Self::new(&Device::select(selector)?)
    }

    /// Settings for a queue of another kind.
    pub fn builder() -> QueueBuilder {
        QueueBuilder::new()
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The backend.
    pub fn backend(&self) -> BackendKind {
        self.device.backend()
    }

    /// Whether each command starts after the one before it.
    pub fn is_in_order(&self) -> bool {
        self.queue.shared().options.in_order
    }

    /// Whether events have profiling times.
    pub fn has_profiling(&self) -> bool {
        self.queue.shared().options.profiling
    }

    pub(crate) fn inner(&self) -> &Arc<schedule::Queue> {
        &self.queue
    }

    /// Submits a command group: calls `f` on this thread, once, with a handler that records what the group does; then schedules
    /// it. The command starts as soon as its dependencies allow; this call does not wait for any device (SYCL 2020 section
    /// 3.7.1.2, S-F20).
    ///
    /// Errors, and then nothing is enqueued: the error that `f` returned; the first error that an `access` recorded; `Invalid` if
    /// the group has more than one command, or inside a kernel; the error of a dependency that is already known to have failed.
    /// If `f` panics, nothing is enqueued either.
    pub fn submit<R, F>(&self, f: F) -> Result<Event>
    where
        F: for<'cg> FnOnce(&mut Handler<'cg>) -> Result<R>,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        f(&mut handler)?;
        handler.submit().map(Event::new)
    }

    /// The same, and gives what `f` returned.
    pub fn submit_with<R, F>(&self, f: F) -> Result<(Event, R)>
    where
        F: for<'cg> FnOnce(&mut Handler<'cg>) -> Result<R>,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        let result = f(&mut handler)?;
        handler.submit().map(|node| (Event::new(node), result))
    }

    /// Shortcut for a command group with one kernel that uses no accessor.
    #[track_caller]
    pub fn parallel_for<const D: usize, K>(&self, range: impl Into<Range<D>>, kernel: K) -> Result<Event>
    where
        K: for<'wi> Fn(Item<'wi, D>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.parallel_for(range, kernel)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut for a command group with one single task that uses no accessor.
    #[track_caller]
    pub fn single_task<K>(&self, kernel: K) -> Result<Event>
    where
        K: for<'wi> Fn(Single<'wi>) + Captured + Send + Sync + 'static,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        handler.single_task(kernel)?;
        handler.submit().map(Event::new)
    }

    /// Shortcut: fills a buffer.
    pub fn fill<T: DeviceCopyable, const D: usize>(&self, buffer: &Buffer<T, D>, value: T) -> Result<Event> {
        self.submit(|cg| {
            let target = cg.access(buffer, Write);
            cg.fill(target, value)
        })
    }

    /// Shortcut: copies one buffer to another.
    pub fn copy<T: DeviceCopyable, const D: usize, const E: usize>(
        &self,
        source: &Buffer<T, D>,
        target: &Buffer<T, E>,
    ) -> Result<Event> {
        self.submit(|cg| {
            let (source, target) = (cg.access(source, Read), cg.access(target, Write));
            cg.copy(source, target)
        })
    }

    /// Shortcut: makes sure that the host has the buffer's newest data when the event completes.
    pub fn update_host<T: DeviceCopyable, const D: usize>(&self, buffer: &Buffer<T, D>) -> Result<Event> {
        self.submit(|cg| cg.update_host(buffer))
    }

    /// Copies host memory into a buffer. The memory belongs to the command until it completes; the result gives it back.
    ///
    /// Errors: `Invalid` if the memory has fewer elements than the buffer.
    pub fn copy_from_host<T: DeviceCopyable, const D: usize, H: HostMemory<T>>(
        &self,
        source: H,
        target: &Buffer<T, D>,
    ) -> Result<HostCopy<H>> {
        let (event, slot) = self.submit_with(|cg| {
            let target = cg.access(target, Write);
            cg.copy_from_host(source, target)
        })?;
        Ok(HostCopy { event, slot })
    }

    /// Copies a buffer into host memory. The memory belongs to the command until it completes; the result gives it back.
    ///
    /// Errors: `Invalid` if the memory has fewer elements than the buffer.
    pub fn copy_to_host<T: DeviceCopyable, const D: usize>(
        &self,
        source: &Buffer<T, D>,
        target: Vec<T>,
    ) -> Result<HostCopy<Vec<T>>> {
        let (event, slot) = self.submit_with(|cg| {
            let source = cg.access(source, Read);
            cg.copy_to_host(source, target)
        })?;
        Ok(HostCopy { event, slot })
    }

    /// Submits a command that does nothing: it completes when `events` have completed; on an in-order queue also everything
    /// before it.
    pub fn submit_barrier<'a>(&self, events: impl IntoIterator<Item = &'a Event>) -> Result<Event> {
        let nodes: Vec<Arc<Node>> = events.into_iter().filter_map(|event| event.node().cloned()).collect();
        self.queue.submit_barrier(&nodes).map(Event::new)
    }

    /// Blocks until all commands submitted before have ended.
    ///
    /// Errors: the first asynchronous error of the queue that nobody has seen yet (it still goes to the handler, if there is
    /// one); `Invalid` if the wait could never end: this thread holds a host accessor that blocks a command of the queue, or runs
    /// a host task of it; `Invalid` inside a kernel.
    pub fn wait(&self) -> Result {
        self.queue.wait()?;
        self.queue.shared().errors.observe_first().map_or(Ok(()), Err)
    }

    /// [`wait`](Self::wait), and gives all undelivered asynchronous errors to the handler.
    pub fn wait_and_throw(&self) -> Result {
        self.queue.wait()?;
        let first = self.queue.shared().errors.observe_first();
        self.queue.shared().errors.deliver();
        first.map_or(Ok(()), Err)
    }

    /// Gives all undelivered asynchronous errors to the handler. Does not block.
    pub fn throw_asynchronous(&self) {
        self.queue.shared().errors.deliver();
    }

    /// Takes all undelivered asynchronous errors, which then do not go to the handler.
    pub fn take_errors(&self) -> Vec<Error> {
        self.queue.shared().errors.take()
    }

    /// Whether all submitted commands have ended. If so, it synchronises like [`wait`](Self::wait).
    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Makes sure that submitted commands make progress without further calls. Does not block. (They do anyway on all backends
    /// of this version.)
    pub fn flush(&self) -> Result {
        self.queue.flush()
    }
}

impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }
}
impl Eq for Queue {}
impl std::hash::Hash for Queue {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.queue.shared().id.hash(state);
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("id", &self.queue.shared().id)
            .field("device", &self.device)
            .field("in_order", &self.is_in_order())
            .finish_non_exhaustive()
    }
}

/// A copy between host memory that the command owns and a buffer. Wait for it, or `.await` it, to get the memory back.
#[derive(Debug)]
pub struct HostCopy<H> {
    event: Event,
    slot: HostSlot<H>,
}

impl<H> HostCopy<H> {
    /// The event.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Blocks until the copy has ended. Gives the memory back; on an error it is lost with the copy's contents.
    pub fn wait(self) -> Result<H> {
        self.event.wait()?;
        self.slot.take().ok_or_else(|| Error::invalid("the host memory of the copy was already taken"))
    }
}

impl<H> Future for HostCopy<H> {
    type Output = Result<H>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Result<H>> {
        // Neither field is structurally pinned: an event is `Unpin`, and the slot is a shared pointer.
        let this = self.get_mut();
        match Pin::new(&mut this.event).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => Poll::Ready(
                this.slot.take().ok_or_else(|| Error::invalid("the host memory of the copy was already taken")),
            ),
        }
    }
}

const _: () = {
    const fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<Queue>();
    is_send_sync::<Event>();
    is_send_sync::<Context>();
    is_send_sync::<Device>();
    is_send_sync::<Error>();
};
