//! Events (SYCL 2020 section 4.6.6).

use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use oxisycl_backend::EventStatus;
use oxisycl_runtime::graph::{Node, NodeKind, forbid_blocking, wait_for_node};
use oxisycl_runtime::schedule::CommandGroup;
use oxisycl_types::ErrorCode;
use smallvec::smallvec;

use crate::interop::NativeEvent;
use crate::{Error, Queue, Result};

/// A submitted command. Copies are the same event; dropping one neither waits nor cancels.
///
/// Also a future: `.await` gives what [`wait`](Event::wait) gives, without blocking the thread.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// `None`: an event without a command, which is complete.
    node: Option<Arc<Node>>,
}

/// When a command was submitted and executed, in nanoseconds on a clock of the process. All devices have the same one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The command group was submitted.
    pub submitted: u64,
    /// Execution began.
    pub start: u64,
    /// Execution ended.
    pub end: u64,
}

impl Profile {
    /// How long the command executed.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let profile = oxisycl::Profile { submitted: 1_000, start: 5_000, end: 9_500 };
    /// assert_eq!(profile.duration(), Duration::from_nanos(4_500));
    /// ```
    pub fn duration(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.end.saturating_sub(self.start))
    }
}

impl Event {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node: Some(node) }
    }

    /// An event of the driver that other code has made, for command groups to depend on and for the host to wait for. It belongs to the context of
    /// `queue`; command groups of any queue may depend on it. A command on a driver queue of its own waits for it, so it delays no other
    /// command.
    ///
    /// A `CUevent` stands for what it records at this call. One that was never recorded has happened. The event may be one of another GPU. A `cl_event` whose
    /// command fails later counts as a failure of the driver, with which the device is lost.
    ///
    /// Errors: `BackendMismatch` if the handle is one of another backend. `Invalid` if it is null, not one of the device's context, or a `cl_event`
    /// that has failed. The errors of [`QueueBuilder::build`](crate::QueueBuilder::build).
    ///
    /// # Safety
    /// The handle is null or live. A `cl_event` is retained. A `CUevent` is borrowed: it is not destroyed before the new event is complete.
    ///
    /// ```no_run
    /// use oxisycl::interop::NativeEvent;
    /// use oxisycl::prelude::*;
    ///
    /// # fn work(queue: &Queue, recorded: *mut std::ffi::c_void) -> oxisycl::Result {
    /// // SAFETY: a live event, which is destroyed after the wait.
    /// let event = unsafe { Event::from_native(queue, NativeEvent::Cuda(recorded)) }?;
    /// event.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn from_native(queue: &Queue, event: NativeEvent) -> Result<Self> {
        forbid_blocking("from_native")?;
        let handle = event.handle_for(queue.device())?;
        let own = Queue::builder().device(queue.device()).context(queue.context()).in_order().build()?;
        // SAFETY: by the contract of this function.
        let command = unsafe { own.inner().shared().queue.native_wait(handle) }?;
        let mut group = CommandGroup { commands: smallvec![command], ..CommandGroup::default() };
        // SAFETY: the command uses no memory.
        unsafe { own.inner().submit_group(&mut group) }.map(Self::new)
    }

    pub(crate) fn node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    /// Blocks until the command has ended.
    ///
    /// Errors: what the command failed with. `Invalid` if the wait could never end. This thread then holds a host
    /// accessor that blocks the command, or runs a host task that the command depends on.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let event = Queue::default()?.single_task(|_| panic!("a mistake"))?;
    /// assert!(event.wait().unwrap_err().to_string().contains("a mistake"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self) -> Result {
        match &self.node {
            Some(node) => {
                wait_for_node(node)?;
                outcome(node)
            }
            None => Ok(()),
        }
    }

    /// [`wait`](Self::wait), and gives all undelivered asynchronous errors of the event's queue to its handler.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let event = Queue::default()?.parallel_for(100, |_| {})?;
    /// event.wait_and_throw()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_and_throw(&self) -> Result {
        let result = self.wait();
        if let Some(node) = &self.node {
            node.shared.errors.deliver();
        }
        result
    }

    /// [`wait`](Self::wait) for several events; the first error, after all have ended.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let events = [queue.single_task(|_| {})?, queue.single_task(|_| {})?];
    /// Event::wait_all(&events)?;
    /// assert!(events.iter().all(Event::is_complete));
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_all<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result {
        events.into_iter().map(Event::wait).fold(Ok(()), Result::and)
    }

    /// Where the command stands. Seeing [`EventStatus::Complete`] synchronises like [`wait`](Self::wait).
    ///
    /// ```
    /// use oxisycl::EventStatus;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let event = Queue::default()?.single_task(|_| {})?;
    /// event.wait()?;
    /// assert_eq!(event.status(), EventStatus::Complete);
    /// # Ok(())
    /// # }
    /// ```
    pub fn status(&self) -> EventStatus {
        self.node.as_ref().map_or(EventStatus::Complete, |node| node.status())
    }

    /// Whether the command has ended, well or not.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let event = Queue::default()?.single_task(|_| {})?;
    /// while !event.is_complete() {
    ///     std::thread::yield_now(); // something useful
    /// }
    /// event.wait()?; // does not wait any more; tells whether it went well
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_complete(&self) -> bool {
        self.node.as_ref().is_none_or(|node| node.is_complete())
    }

    /// The events this one directly depends on and that have not ended yet.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let first = queue.single_task(|_| {})?;
    /// let second = queue.submit(|cg| {
    ///     cg.depends_on(&first);
    ///     cg.single_task(|_| {})
    /// })?;
    /// assert!(second.dependencies().len() <= 1);
    /// second.wait()?;
    /// assert!(second.dependencies().is_empty(), "what has ended holds nothing back");
    /// # Ok(())
    /// # }
    /// ```
    pub fn dependencies(&self) -> Vec<Event> {
        self.node.as_ref().map_or_else(Vec::new, |node| node.blockers().into_iter().map(Event::new).collect())
    }

    /// When the command was submitted and executed. Blocks until it has ended.
    ///
    /// Errors: `Invalid` if the queue was made without profiling; `Profiling` if the command never ran.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::builder().profiling().build()?;
    /// let profile = queue.single_task(|_| {})?.profile()?;
    /// println!("ran for {:?}", profile.duration());
    /// assert!(profile.submitted <= profile.start && profile.start <= profile.end);
    /// # Ok(())
    /// # }
    /// ```
    pub fn profile(&self) -> Result<Profile> {
        let Some(node) = &self.node else {
            return Err(Error::invalid("an event without a command has no profiling information"));
        };
        if !node.shared.options.profiling {
            return Err(Error::invalid(format!("the queue of {} was made without profiling", node.label())));
        }
        wait_for_node(node)?;
        let (submitted, times) = node.times();
        match times {
            Some(times) => Ok(Profile { submitted, start: times.start, end: times.end }),
            None => {
                let message = format!("{} did not run, so there are no profiling times", node.label());
                Err(Error::new(ErrorCode::Profiling, message))
            }
        }
    }

    /// Whether it stands for a host task.
    pub fn is_host_task(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.kind == NodeKind::HostTask)
    }
}

fn outcome(node: &Arc<Node>) -> Result {
    match node.failure() {
        None => Ok(()),
        Some(failure) => {
            node.mark_observed();
            Err(Error::from(&failure))
        }
    }
}

impl Future for Event {
    type Output = Result;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Result> {
        let Some(node) = &self.node else { return Poll::Ready(Ok(())) };
        if !node.is_complete() {
            node.register_waker(context.waker());
            if !node.is_complete() {
                return Poll::Pending;
            }
        }
        Poll::Ready(outcome(node))
    }
}

impl PartialEq for Event {
    /// Whether both stand for the same command; all events without a command are equal.
    fn eq(&self, other: &Self) -> bool {
        match (&self.node, &other.node) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }
}
impl Eq for Event {}
impl Hash for Event {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.node.as_ref().map(|node| node.id).hash(state);
    }
}
