//! One node of the graph: a command and everything that waits for it.

use std::any::Any;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::task::Waker;
use std::thread::Thread;

use oxisycl_backend::pool::{Near, Pool};
use oxisycl_backend::{CommandFailure, DependencyKind, Event, EventStatus, ExecutionTimes, Operation, now};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::complete::ReportedEnd;
use super::places::Place;
use super::queue_shared::QueueShared;
use super::start::Work;
use super::title::{Names, Title};
use super::way::Way;
use super::{DeferredDrops, Epoch};
use crate::ids::NodeId;
use crate::plug_ins::PlugIns;

/// The label of a host task without a name.
pub const HOST_TASK_NAME: &str = "host task";

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// A command of a backend.
    Command(Operation),
    /// A host task.
    HostTask,
    /// A host accessor: handed over while the user holds it, complete once it is dropped.
    HostAccess,
}

/// Something that must live until a command has completed.
pub enum KeptAlive {
    /// A buffer's memory.
    Buffer(Arc<dyn HeldBuffer>),
    /// Memory that the user lent to the command.
    Loan(Box<dyn Loan>),
    /// Anything else.
    Other(Box<dyn Any + Send>),
    /// The plug-ins that have code of the command. The last one that is dropped.
    PlugIns(PlugIns),
}

impl KeptAlive {
    /// Whether dropping it runs code of the user, which may block.
    pub(super) fn has_user_drop(&self) -> bool {
        matches!(self, Self::Loan(loan) if loan.has_user_drop())
    }

    /// Adds the plug-in that has the methods.
    #[inline]
    pub(crate) fn add_to(&self, plug_ins: &mut PlugIns) {
        match self {
            // The runtime makes these objects.
            Self::Buffer(_) | Self::PlugIns(_) => {}
            Self::Loan(loan) => plug_ins.add_methods(&**loan),
            Self::Other(other) => plug_ins.add_methods(&**other),
        }
    }
}

/// A buffer that a command uses, as messages name it.
pub trait HeldBuffer: fmt::Display + Send + Sync {
    /// Whether `address` belongs to one of the buffer's elements, in any memory. The address of a buffer without bytes may belong to other
    /// buffers as well.
    fn contains(&self, address: usize) -> bool;

    /// The buffer's name in messages of kernels, with its elements and their range.
    fn description(&self) -> String;
}

/// Memory that the user lends to a command and gets back.
pub trait Loan: Send {
    /// Whether dropping the loan runs user code.
    fn has_user_drop(&self) -> bool;

    /// Called when the command has ended and no longer uses the memory. If it has not `succeeded`, its writes may be incomplete.
    fn ended(&self, succeeded: bool);
}

/// An edge of the graph, from a node to an earlier one.
#[derive(Clone)]
pub struct Dependency {
    /// The earlier command.
    pub node: Arc<Node>,
    /// What a failure of the earlier command means for this one.
    pub kind: DependencyKind,
}

impl Dependency {
    /// Whether the earlier command, which has ended, failed and so lost data that the dependent command needs.
    pub(super) fn is_lost(&self) -> bool {
        self.kind == DependencyKind::Data && self.node.has_failed()
    }
}

pub(super) const PENDING: u8 = 0;
pub(super) const HANDED_OVER: u8 = 1;
pub(super) const SUCCEEDED: u8 = 2;
pub(super) const FAILED: u8 = 3;
/// Failed because a dependency did: the command did not run.
pub(super) const DID_NOT_RUN: u8 = 4;

thread_local! {
    static NEAR: Near<Arc<MaybeUninit<Node>>> = const { Near::new() };
}

/// Nodes are made by threads that submit, and mostly end on another thread.
pub(super) static NODES: Pool<Arc<MaybeUninit<Node>>> = Pool::new(&NEAR);

/// A command from its submission until nothing needs it any more.
pub struct Node {
    /// Position in the order of submission, over the whole process.
    pub id: NodeId,
    /// The kind of work that the node stands for.
    pub kind: NodeKind,
    /// The names of the command in messages.
    pub title: Names,
    /// The queue it was submitted to.
    pub shared: Arc<QueueShared>,
    /// The thread that holds a host accessor.
    pub(super) owner: Option<std::thread::ThreadId>,
    pub(super) state: AtomicU8,
    /// The [`Way`] of a command, set before it is started.
    way: AtomicU8,
    /// The kinds of [places](Place) that the node holds, as bits.
    places: AtomicU8,
    /// One more than the [phase](super::gate::Phase) in which the command has passed its device's gate; else 0.
    pub(super) phase: AtomicU8,
    /// While delayed: the number of unresolved dependencies, plus one while they are being registered.
    pub(super) n_blockers: AtomicU32,
    /// Whether the queue's list of delayed commands contains the node.
    pub(super) is_listed: AtomicBool,
    pub(super) observed: AtomicBool,
    /// Whether the command is a part of another one, which then reports the failure.
    pub(super) is_part: AtomicBool,
    /// The fork generation of the process in which the failure was marked as unclaimed; 0 if it is not unclaimed.
    pub(super) unclaimed: AtomicU32,
    pub(super) inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) event: Option<Arc<dyn Event>>,
    /// Whether the backend has reported the command.
    pub(super) is_reported: bool,
    pub(super) waiters: Vec<Waiter>,
    /// The work, while the node is delayed.
    pub(super) work: Option<Box<Work>>,
    /// Whether a host accessor was abandoned before it was granted.
    pub(super) is_cancelled: bool,
    /// The dependencies, until the command has ended.
    pub(super) dependencies: SmallVec<[Dependency; 2]>,
    /// How many of the first dependencies are parts of this command, each of which has done some of its work.
    pub(super) n_parts: u32,
    pub(super) kept_alive: SmallVec<[KeptAlive; 3]>,
    /// The plug-ins that have code of the command, until it has ended.
    pub(super) plug_ins: PlugIns,
    pub(super) epoch: Option<Arc<Epoch>>,
    pub(super) failure: Option<CommandFailure>,
    pub(super) submitted: u64,
    pub(super) times: Option<ExecutionTimes>,
}

impl Inner {
    /// Extends the execution times to begin with those of the command's parts, which ran on the same queue.
    pub(super) fn begin_with_parts(&mut self) {
        let Some(times) = &mut self.times else { return };
        for part in self.dependencies.iter().take(self.n_parts as usize) {
            let (submitted, of_part) = part.node.times();
            self.submitted = self.submitted.min(submitted);
            times.start = of_part.map_or(times.start, |part| times.start.min(part.start));
        }
    }
}

pub(super) enum Waiter {
    Thread(Thread),
    Waker(Waker),
    /// A delayed node that depends on the completion of this node.
    AfterCompletion(Arc<Node>),
    /// A delayed node that can be issued once this node's command was issued to the backend.
    AfterHandover(Arc<Node>),
    /// A node whose backend has reported its end, and which must complete after this node.
    ToEnd(ReportedEnd),
}

impl Node {
    /// A node that is about to be started. `epoch` is `None` for commands that waits on a queue must not include.
    pub fn new(
        kind: NodeKind,
        title: impl Into<Title>,
        shared: Arc<QueueShared>,
        epoch: Option<Arc<Epoch>>,
        kept_alive: SmallVec<[KeptAlive; 3]>,
    ) -> Arc<Self> {
        Self::behind(SmallVec::new(), kind, title, shared, epoch, kept_alive)
    }

    /// A node as [`new`](Self::new) makes it, that is going to end after `dependencies`.
    #[inline]
    pub(crate) fn behind(
        dependencies: SmallVec<[Dependency; 2]>,
        kind: NodeKind,
        title: impl Into<Title>,
        shared: Arc<QueueShared>,
        epoch: Option<Arc<Epoch>>,
        kept_alive: SmallVec<[KeptAlive; 3]>,
    ) -> Arc<Self> {
        let id = NodeId::new(crate::observe::counters().nodes.next() + 1);
        let submitted = if shared.options.profiling { now() } else { 0 };
        let (title, mut plug_ins) = title.into().into_parts();
        kept_alive.iter().for_each(|kept| kept.add_to(&mut plug_ins));
        let mut kept_alive = kept_alive;
        if !plug_ins.is_empty() {
            kept_alive.push(KeptAlive::PlugIns(plug_ins.clone()));
        }
        NODES.make(|| Self {
            id,
            kind,
            title,
            owner: (kind == NodeKind::HostAccess).then(|| std::thread::current().id()),
            shared,
            state: AtomicU8::new(PENDING),
            way: AtomicU8::new(Way::Issue.number()),
            places: AtomicU8::new(0),
            phase: AtomicU8::new(0),
            n_blockers: AtomicU32::new(0),
            is_listed: AtomicBool::new(false),
            observed: AtomicBool::new(false),
            is_part: AtomicBool::new(false),
            unclaimed: AtomicU32::new(0),
            inner: Mutex::new(Inner {
                event: None,
                is_reported: false,
                waiters: Vec::new(),
                work: None,
                is_cancelled: false,
                dependencies,
                n_parts: 0,
                kept_alive,
                plug_ins,
                epoch,
                failure: None,
                submitted,
                times: None,
            }),
        })
    }

    /// Drops a reference to a node. For most nodes whose commands have ended it is the last one.
    #[inline]
    pub(crate) fn release(node: Arc<Self>) {
        if Arc::strong_count(&node) == 1 {
            NODES.end(node);
        }
    }

    /// The command's label for messages: kind, name and place of submission, as far as they are known.
    pub fn label(&self) -> String {
        let (name, place) = (self.title.name(), self.title.place);
        let what = match self.kind {
            NodeKind::Command(Operation::Launch) => "kernel",
            NodeKind::HostTask => HOST_TASK_NAME,
            _ => "",
        };
        let mut label = if what.is_empty() || name == what { name.to_owned() } else { format!("{what} \"{name}\"") };
        if let Some(place) = place {
            label.push_str(&format!(" ({place})"));
        }
        label
    }

    /// Declares that the node's first `n_parts` dependencies do a part of its work. Called before the node is started.
    pub(crate) fn set_parts(&self, n_parts: usize) {
        // There is no memory for more parts.
        self.inner.lock().n_parts = u32::try_from(n_parts).unwrap_or(u32::MAX);
    }

    /// Declares that the node does a part of another node's work. That node reports the failure. Called before the node is started.
    pub(crate) fn set_is_part(&self) {
        self.is_part.store(true, Ordering::Relaxed);
    }

    /// The failure of a part of this command. `None` after the command has ended.
    pub(super) fn failure_of_parts(&self) -> Option<CommandFailure> {
        let inner = self.inner.lock();
        inner.dependencies.iter().take(inner.n_parts as usize).find_map(|part| part.node.failure())
    }

    /// Whether the command has ended, with or without a failure.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) >= SUCCEEDED
    }

    /// Whether the command has ended without a failure.
    #[inline]
    pub fn has_succeeded(&self) -> bool {
        self.state.load(Ordering::Acquire) == SUCCEEDED
    }

    /// Whether the command has ended with a failure.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.state.load(Ordering::Acquire) >= FAILED
    }

    /// Whether the command has ended without having run, because a dependency failed.
    #[inline]
    pub fn did_not_run(&self) -> bool {
        self.state.load(Ordering::Acquire) == DID_NOT_RUN
    }

    /// Whether the command was issued to its backend, runs as a host task, or is a host accessor that was granted.
    pub fn is_handed_over(&self) -> bool {
        self.state.load(Ordering::Acquire) >= HANDED_OVER
    }

    /// Whether the command was issued to its backend.
    pub fn is_issued(&self) -> bool {
        matches!(self.kind, NodeKind::Command(_)) && self.is_handed_over() && self.way() != Way::Execute
    }

    /// How the command gets to its device.
    pub(super) fn way(&self) -> Way {
        Way::of(self.way.load(Ordering::Relaxed))
    }

    /// Sets the way in which the command gets to its device. Called before the node is started.
    pub(super) fn set_way(&self, way: Way) {
        self.way.store(way.number(), Ordering::Relaxed);
    }

    /// Adds the node to its queue's list of delayed commands.
    pub(super) fn list_as_delayed(self: &Arc<Self>) {
        if !self.is_listed.swap(true, Ordering::Relaxed) {
            self.shared.delayed.lock().add(self);
        }
    }

    /// Whether the node holds a place of the kind `place`.
    pub(super) fn has_place(&self, place: Place) -> bool {
        self.places.load(Ordering::Relaxed) & place.bit() != 0
    }

    /// Records that the node holds a place of the kind `place`.
    pub(super) fn set_place(&self, place: Place) {
        self.places.fetch_or(place.bit(), Ordering::Relaxed);
    }

    /// Whether the node holds any places.
    pub(super) fn has_places(&self) -> bool {
        self.places.load(Ordering::Relaxed) != 0
    }

    /// Removes all [places](Place) from the node and returns their kinds, as bits.
    pub(super) fn take_places(&self) -> u8 {
        if self.places.load(Ordering::Relaxed) == 0 { 0 } else { self.places.swap(0, Ordering::Relaxed) }
    }

    /// The command's failure. `None` while it has not ended, and if it succeeded.
    pub fn failure(&self) -> Option<CommandFailure> {
        if self.has_failed() { self.inner.lock().failure.clone() } else { None }
    }

    /// The command's failure, also while the node is still ending: failures are listed before the command counts as complete.
    pub(super) fn recorded_failure(&self) -> Option<CommandFailure> {
        self.inner.lock().failure.clone()
    }

    /// Marks the failure as seen by the program.
    pub fn mark_observed(&self) {
        self.observed.store(true, Ordering::Relaxed);
        if let Some(failure) = self.failure() {
            failure.mark_seen();
        }
    }

    /// The status of the command.
    pub fn status(&self) -> EventStatus {
        match self.state.load(Ordering::Acquire) {
            PENDING => EventStatus::Submitted,
            HANDED_OVER => match &self.inner.lock().event {
                Some(event) => event.status(),
                None if self.is_complete() => EventStatus::Complete,
                None => EventStatus::Running,
            },
            _ => EventStatus::Complete,
        }
    }

    /// The backend's event of the command; `None` before the backend has the command, and after that has ended.
    pub fn backend_event(&self) -> Option<Arc<dyn Event>> {
        self.inner.lock().event.clone()
    }

    /// Submission time and execution times on the [clock of the process](now), if the queue records them and the command ran.
    pub fn times(&self) -> (u64, Option<ExecutionTimes>) {
        let inner = self.inner.lock();
        (inner.submitted, inner.times)
    }

    /// Registers `waker` to be called when the command has ended. If it has ended already, it is called at once.
    pub fn register_waker(&self, waker: &Waker) {
        // Cloning and dropping a waker is user code, which must not find the node locked.
        let clone = waker.clone();
        let mut inner = self.inner.lock();
        if self.is_complete() {
            drop(inner);
            waker.wake_by_ref();
            return;
        }
        let known =
            inner.waiters.iter().any(|waiter| matches!(waiter, Waiter::Waker(known) if known.will_wake(&clone)));
        let unused = if known {
            Some(clone)
        } else {
            inner.waiters.push(Waiter::Waker(clone));
            None
        };
        drop(inner);
        drop(unused);
    }

    /// Registers the current thread to be unparked when the command has ended, or when a host accessor is granted.
    pub(super) fn register_thread(&self) {
        let thread = std::thread::current();
        let mut inner = self.inner.lock();
        if self.is_complete() {
            drop(inner);
            thread.unpark();
            return;
        }
        let known =
            inner.waiters.iter().any(|waiter| matches!(waiter, Waiter::Thread(known) if known.id() == thread.id()));
        if !known {
            inner.waiters.push(Waiter::Thread(thread));
        }
    }

    /// The buffer of a host accessor that has not ended.
    pub(super) fn accessed(&self) -> Option<Arc<dyn HeldBuffer>> {
        let inner = self.inner.lock();
        let buffer = inner.kept_alive.iter().find_map(|kept| match kept {
            KeptAlive::Buffer(buffer) => Some(buffer.clone()),
            _ => None,
        });
        buffer.filter(|_| self.kind == NodeKind::HostAccess)
    }

    /// Whether the command waits for its code to be loaded.
    pub(super) fn is_unloaded(&self) -> bool {
        matches!(self.inner.lock().work.as_deref(), Some(Work::Unloaded(..)))
    }

    /// The commands that this one depends on directly and that have not ended.
    pub fn blockers(&self) -> Vec<Arc<Node>> {
        let inner = self.inner.lock();
        inner.dependencies.iter().filter(|d| !d.node.is_complete()).map(|d| d.node.clone()).collect()
    }
}

impl Drop for Node {
    /// A refused command still holds user values, which must not be dropped under a lock.
    fn drop(&mut self) {
        self.report_if_unclaimed();
        let kept_alive = std::mem::take(&mut self.inner.get_mut().kept_alive);
        if !kept_alive.is_empty() {
            DeferredDrops::drop_or_keep(kept_alive);
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id)
            .field("name", &self.title.name())
            .field("kind", &self.kind)
            .finish()
    }
}
