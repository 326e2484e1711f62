//! Queues (SYCL 2020 section 4.6.5).

mod builder;
mod host_copy;
mod kernels;
mod properties;
mod reduced;

use std::fmt;
use std::sync::Arc;

use oxisycl_device::{Captured, DeviceCopyable, Item, Single};
use oxisycl_runtime::graph::{Node, forbid_blocking};
use oxisycl_runtime::schedule;
use oxisycl_types::Range;

use crate::handler::HostMemory;
use crate::interop::NativeQueue;
use crate::{Buffer, Context, Device, Error, Event, Handler, Read, Result, Write};

pub use builder::QueueBuilder;
pub use host_copy::HostCopy;
pub use oxisycl_runtime::graph::AsyncHandler;
pub use reduced::Reduced;

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

impl Queue {
    /// An out-of-order queue on the default device.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// println!("kernels run on {}", queue.device().name());
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::should_implement_trait, reason = "making a queue can fail")]
    pub fn default() -> Result<Self> {
        QueueBuilder::new().build()
    }

    /// An out-of-order queue on `device`, in its platform's default context.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let cpu = Device::select(oxisycl::selector::cpu_selector)?;
    /// let queue = Queue::new(&cpu)?;
    /// assert_eq!(*queue.device(), cpu);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(device: &Device) -> Result<Self> {
        QueueBuilder::new().device(device).build()
    }

    /// An out-of-order queue on the device that `selector` prefers.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::select(oxisycl::selector::cpu_selector)?;
    /// assert!(queue.device().is_cpu());
    /// # Ok(())
    /// # }
    /// ```
    pub fn select(selector: impl Fn(&Device) -> i32) -> Result<Self> {
        Self::new(&Device::select(selector)?)
    }

    /// A queue on one of the driver that other code has made, in the default context of the device's platform. See [`QueueBuilder::native`].
    ///
    /// Errors: as those of [`QueueBuilder::build`].
    ///
    /// # Safety
    /// As for [`QueueBuilder::native`].
    pub unsafe fn from_native(device: &Device, queue: NativeQueue) -> Result<Self> {
        // SAFETY: by the contract of this function.
        unsafe { QueueBuilder::new().device(device).native(queue) }.build()
    }

    /// Settings for a queue of another kind.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::builder().in_order().profiling().build()?;
    /// assert!(queue.is_in_order() && queue.has_profiling());
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> QueueBuilder {
        QueueBuilder::new()
    }

    pub(crate) fn inner(&self) -> &Arc<schedule::Queue> {
        &self.queue
    }

    /// Submits a command group: calls `f` on this thread, once, with a handler that records what the group does; then schedules
    /// it. The command starts as soon as its dependencies allow; this call does not wait for any device (SYCL 2020 section
    /// 3.7.1.2).
    ///
    /// Errors, and then nothing is enqueued: the error that `f` returned, or the first error that an `access` recorded. `Invalid` if
    /// the group has more than one command, or inside a kernel. The error of a dependency that is already known to have failed.
    /// If `f` panics, nothing is enqueued either.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let (source, target) = (Buffer::from_vec(vec![1, 2, 3])?, Buffer::from_vec(vec![0; 3])?);
    /// let event = queue.submit(|cg| {
    ///     // What the command uses, and how; then the command.
    ///     let (source, target) = (cg.access(&source, Read), cg.access(&target, Write));
    ///     cg.parallel_for(3, move |item| target.set(item, 10 * source.get(item)))
    /// })?;
    /// event.wait()?; // or whatever uses the buffers next
    /// assert_eq!(target.to_vec()?, [10, 20, 30]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit<R, F>(&self, f: F) -> Result<Event>
    where
        F: for<'cg> FnOnce(&mut Handler<'cg>) -> Result<R>,
    {
        forbid_blocking("submit")?;
        let mut handler = Handler::new(self);
        f(&mut handler)?;
        handler.submit().map(Event::new)
    }

    /// Submits a command group as [`submit`](Self::submit) does, and gives its event and what `f` returned, such as the [`HostSlot`](crate::HostSlot) of a copy.
    ///
    /// Errors: as those of [`submit`](Self::submit).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let (event, copy) = Queue::default()?.submit_with(|cg| {
    ///     let numbers = cg.access(&numbers, Read);
    ///     cg.copy_to_host(numbers, vec![0; 3])
    /// })?;
    /// event.wait()?;
    /// assert_eq!(copy.take(), Some(vec![1, 2, 3]));
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// queue.parallel_for(4, |item| oxisycl::println!("work-item {}", item.index()))?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// Queue::default()?.single_task(|_| oxisycl::println!("once"))?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0; 5])?;
    /// Queue::default()?.fill(&numbers, 7)?;
    /// assert_eq!(numbers.to_vec()?, [7; 5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill<T: DeviceCopyable, const D: usize>(&self, buffer: &Buffer<T, D>, value: T) -> Result<Event> {
        self.submit(|cg| {
            let target = cg.access(buffer, Write);
            cg.fill(target, value)
        })
    }

    /// Shortcut: copies one buffer to another.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (source, target) = (Buffer::from_vec(vec![1, 2, 3, 4])?, Buffer::from_vec_nd(vec![0; 4], [2, 2])?);
    /// Queue::default()?.copy(&source, &target)?;
    /// assert_eq!(target.host_access(Read)?[[1, 0]], 3);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let numbers = Buffer::from_vec(vec![0; 5])?;
    /// queue.fill(&numbers, 7)?;
    /// queue.update_host(&numbers)?.wait()?;
    /// let host = numbers.host_access(Read)?; // nothing is left to wait for, or to copy
    /// assert_eq!(host[4], 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn update_host<T: DeviceCopyable, const D: usize>(&self, buffer: &Buffer<T, D>) -> Result<Event> {
        self.submit(|cg| cg.update_host(buffer))
    }

    /// Copies host memory into a buffer. The memory belongs to the command until it completes; the result gives it back.
    ///
    /// Errors: `Invalid` if the memory has fewer elements than the buffer.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0; 3])?;
    /// let copy = Queue::default()?.copy_from_host(vec![1, 2, 3], &numbers)?;
    /// let vector = copy.wait()?; // or `copy.await?`
    /// assert_eq!((vector, numbers.to_vec()?), (vec![1, 2, 3], vec![1, 2, 3]));
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let copy = Queue::default()?.copy_to_host(&numbers, vec![0; 3])?;
    /// assert_eq!(copy.wait()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let (a, b) = (queue.single_task(|_| {})?, queue.single_task(|_| {})?);
    /// queue.submit_barrier([&a, &b])?.wait()?;
    /// assert!(a.is_complete() && b.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit_barrier<'a>(&self, events: impl IntoIterator<Item = &'a Event>) -> Result<Event> {
        let nodes: Vec<Arc<Node>> = events.into_iter().filter_map(|event| event.node().cloned()).collect();
        self.queue.submit_barrier(&nodes).map(Event::new)
    }

    /// Blocks until all commands submitted before have ended.
    ///
    /// Errors: the first asynchronous error of the queue that was not reported yet (it still goes to the handler, if
    /// there is one). `Invalid` if the wait could never end. This thread then holds a host accessor that blocks a
    /// command of the queue, or runs a host task of it. `Invalid` inside a kernel.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let events = [queue.single_task(|_| {})?, queue.single_task(|_| {})?];
    /// queue.wait()?;
    /// assert!(events.iter().all(Event::is_complete));
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self) -> Result {
        self.queue.wait()?;
        self.queue.shared().errors.take_first_unseen().map_or(Ok(()), Err)
    }

    /// [`wait`](Self::wait), and gives all undelivered asynchronous errors to the handler.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::builder().handler(|errors| errors.iter().for_each(|error| eprintln!("{error}"))).build()?;
    /// queue.single_task(|_| panic!("a mistake"))?;
    /// let error = queue.wait_and_throw().unwrap_err(); // and the handler has printed it
    /// assert!(error.to_string().contains("a mistake"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_and_throw(&self) -> Result {
        self.queue.wait()?;
        let first = self.queue.shared().errors.take_first_unseen();
        self.queue.shared().errors.deliver();
        first.map_or(Ok(()), Err)
    }

    /// Gives all undelivered asynchronous errors to the handler. Does not block.
    pub fn throw_asynchronous(&self) {
        self.queue.shared().errors.deliver();
    }

    /// Takes all undelivered asynchronous errors, which then do not go to the handler.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// queue.single_task(|_| panic!("a mistake"))?;
    /// while !queue.is_idle() {
    ///     std::thread::yield_now();
    /// }
    /// let errors = queue.take_errors();
    /// assert!(errors.len() == 1 && errors[0].to_string().contains("a mistake"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_errors(&self) -> Vec<Error> {
        self.queue.shared().errors.take()
    }

    /// Whether all submitted commands have ended, and what they kept is free. If so, it synchronises like [`wait`](Self::wait).
    ///
    /// A command's event may be complete a moment before.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// queue.single_task(|_| {})?;
    /// queue.wait()?;
    /// assert!(queue.is_idle());
    /// # Ok(())
    /// # }
    /// ```
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
            .field("batching", &self.queue.shared().options.batching)
            .finish_non_exhaustive()
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
