//! Queues, and scheduling of the command groups submitted to them.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use oxisycl_backend::{Command, CommandFailure, DependencyKind, Device, FailureKind, QueueOptions};
use oxisycl_types::ErrorCode;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::Context;
use super::pace::pace;
use super::plan::{Dependencies, commit, plan};
use super::requirement::Requirement;
use super::stock::Stock;
use super::transfer::{Requester, bring, count, record};
use crate::graph::{
    AsyncErrors, DeferredDrops, Dependency, Epoch, EpochSignal, HOST_TASK_NAME, HostWork, KeptAlive, Node, NodeKind,
    QueueShared, Title, Unloaded, Work, forbid_blocking, start, start_command, start_new_command, wait_for_epoch,
};
use crate::ids::BufferId;
use crate::memory::{BufferCore, BufferState};
use crate::observe::{counters, graph_dump, trace};
use crate::plug_ins::{PlugIns, is_shared};
use crate::{Error, Result};

/// What one command group does, recorded before anything of it is scheduled.
#[derive(Default)]
pub struct CommandGroup {
    /// The accessors of the group.
    pub requirements: SmallVec<[Requirement; 4]>,
    /// Events it depends on.
    pub depends_on: SmallVec<[Arc<Node>; 2]>,
    /// The command; several for one copy that takes several backend copies, and for one kernel that takes several launches.
    pub commands: SmallVec<[Command; 1]>,
    /// The launches among the commands whose code is being loaded, by their positions. The first one comes first.
    pub unloaded: Vec<(usize, Unloaded)>,
    /// Whether each of several commands comes after the one before it.
    pub is_chain: bool,
    /// A host task instead of commands.
    pub host_task: Option<HostWork>,
    /// What messages call the host task; a kernel knows that itself. In a box, since every group has the field.
    pub title: Option<Box<Title>>,
    /// Other things that must live until the command has completed.
    pub kept_alive: SmallVec<[KeptAlive; 1]>,
}

impl CommandGroup {
    /// The plug-ins that have code of the group. To be found before the queue and buffers are locked. The dynamic linker has a lock of its
    /// own, which constructors of libraries hold when they submit. What makes the nodes finds plug-ins in a table then.
    #[inline]
    fn plug_ins(&self) -> PlugIns {
        let mut plug_ins = PlugIns::default();
        if is_shared() {
            self.add_plug_ins(&mut plug_ins);
        }
        plug_ins
    }

    #[cold]
    fn add_plug_ins(&self, plug_ins: &mut PlugIns) {
        self.kept_alive.iter().for_each(|kept| kept.add_to(plug_ins));
        if let Some(title) = &self.title {
            title.add_to(plug_ins);
        }
        for command in &self.commands {
            if let Command::Kernel(kernel) = command {
                Title::of(kernel).add_to(plug_ins);
            }
        }
    }
}

/// Takes command groups for one device (SYCL 2020 section 4.6.5).
pub struct Queue {
    context: Arc<Context>,
    shared: Arc<QueueShared>,
    state: Arc<Mutex<State>>,
}

/// The changeable part of a queue. Its context keeps it until everything submitted has ended.
#[derive(Default)]
pub(super) struct State {
    epoch: Arc<Epoch>,
    /// References for commands that are to come. None while no thread submits, so that the epoch can be idle.
    epochs: Stock<Epoch>,
    queues: Stock<QueueShared>,
    /// The newest command of an in-order queue.
    last: Option<Arc<Node>>,
}

impl Queue {
    /// A queue on `device`, which belongs to `context` (checked by the caller).
    pub fn new(
        context: &Arc<Context>,
        device: &Arc<dyn Device>,
        options: QueueOptions,
        errors: Arc<AsyncErrors>,
    ) -> Result<Arc<Self>> {
        // A trace needs times, whether or not the user asked for them.
        let backend_options = QueueOptions { profiling: options.profiling || trace().is_on(), ..options };
        let queue = QueueShared::create_queue(&**device, &backend_options)?;
        Ok(Self::on(context, QueueShared::new(context.domain(), device.clone(), queue, options, errors)))
    }

    /// A queue on the driver's queue `native`, as [`new`](Self::new) makes one. Whether it is in order is that queue's matter.
    ///
    /// # Safety
    /// As for [`Device::adopt_queue`].
    pub unsafe fn adopt(
        context: &Arc<Context>,
        device: &Arc<dyn Device>,
        native: *mut c_void,
        options: QueueOptions,
        errors: Arc<AsyncErrors>,
    ) -> Result<Arc<Self>> {
        // SAFETY: by the contract of this function.
        let queue = unsafe { QueueShared::adopt_queue(&**device, native, &options) }?;
        let options = QueueOptions { in_order: queue.info().keeps_order, ..options };
        Ok(Self::on(context, QueueShared::new(context.domain(), device.clone(), queue, options, errors)))
    }

    fn on(context: &Arc<Context>, shared: Arc<QueueShared>) -> Arc<Self> {
        let queue = Arc::new(Self { context: context.clone(), shared, state: Arc::default() });
        context.add_queue(queue.state.clone());
        queue
    }

    /// What commands keep of the queue.
    pub fn shared(&self) -> &Arc<QueueShared> {
        &self.shared
    }

    /// The context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Schedules a command group. Nothing of it is enqueued if this fails. Never waits for a device.
    ///
    /// Errors: what a dependency failed with, if that is already known; the backend's error if it does not take a command.
    ///
    /// # Safety
    /// The commands of the group use the memory of its requirements, in the way that these say. All other memory that
    /// they use is kept alive by `holds`, or lives until the node completes. No other command or thread uses it
    /// meanwhile in a way that conflicts.
    pub unsafe fn submit(&self, group: &mut CommandGroup) -> Result<Arc<Node>> {
        forbid_blocking("submit")?;
        // SAFETY: by the contract of this function.
        unsafe { self.submit_group(group) }
    }

    /// Schedules a command group as [`submit`](Self::submit) does, on a thread that [may block](forbid_blocking): the caller has asked before
    /// the group was recorded.
    ///
    /// # Safety
    /// As for [`submit`](Self::submit).
    pub unsafe fn submit_group(&self, group: &mut CommandGroup) -> Result<Arc<Node>> {
        let _plug_ins = group.plug_ins();
        // First in, last out: user values that end with the group are dropped after all locks are released.
        let _deferred = DeferredDrops::enter();
        #[cfg(feature = "tracing")]
        let _span = tracing::trace_span!(target: "oxisycl", "submit", queue = self.shared.id.number()).entered();
        for event in &group.depends_on {
            if let Some(failure) = event.failure() {
                event.mark_observed();
                return Err(Error::with_source(
                    ErrorCode::Event,
                    "the command group depends on an event whose command failed",
                    Error::from(&failure),
                ));
            }
        }
        pace();
        let mut state = self.state.lock();
        let keep = state.keep(&self.shared);
        if !self.shared.options.in_order {
            drop(state);
            return self.schedule(group, keep, None);
        }
        // The lock is held until the command is enqueued, so that the order of the queue is the order of submission.
        let previous = state.last.take().filter(|last| !last.is_complete());
        let result = self.schedule(group, keep, previous.as_ref().filter(|last| !self.is_before_all(last)));
        state.last = match &result {
            // No later command depends on it: the next command need not look at what another processor works with.
            Ok(node) if self.is_before_all(node) => None,
            Ok(node) => Some(node.clone()),
            Err(_) => previous,
        };
        result
    }

    /// Whether whatever the queue is given now comes after that command of its own without a dependency.
    fn is_before_all(&self, last: &Node) -> bool {
        self.shared.keeps_order && last.is_issued() && !graph_dump().is_on()
    }

    fn schedule(&self, group: &mut CommandGroup, keep: Keep, previous: Option<&Arc<Node>>) -> Result<Arc<Node>> {
        let mut dependencies = Dependencies::new();
        if let Some(previous) = previous {
            dependencies.push(Dependency { node: previous.clone(), kind: DependencyKind::Order });
        }
        for node in &group.depends_on {
            if !node.has_succeeded() {
                dependencies.push(Dependency { node: node.clone(), kind: DependencyKind::Data });
            }
        }
        let requirements = &group.requirements[..];
        let mut buffers = LockedBuffers::lock(requirements);
        let mut missing = Vec::new();
        for requirement in requirements {
            let state = buffers.state(requirement.core());
            // What an earlier requirement or an event added was looked at. The last of it may become a dependency on data now.
            let may_change = dependencies.last().is_some_and(|last| last.kind == DependencyKind::Order);
            let n_before = dependencies.len() - usize::from(may_change);
            plan(requirement, state, &mut dependencies, &mut missing);
            check_not_failed(requirement, &dependencies[n_before..])?;
            if !missing.is_empty() {
                let requester = Requester { shared: &self.shared, epoch: Some(&keep.epoch) };
                let pieces = std::mem::take(&mut missing);
                bring(&requester, requirement.core(), state, requirement.allocation, pieces, &mut dependencies)?;
            }
        }
        remove_repetitions(&mut dependencies);

        let mut kept_alive = SmallVec::<[KeptAlive; 3]>::new();
        for requirement in requirements {
            kept_alive.push(KeptAlive::Buffer(requirement.core().clone()));
        }
        if !group.kept_alive.is_empty() {
            kept_alive.extend(group.kept_alive.drain(..));
        }
        let node = match group.host_task.take() {
            Some(work) => {
                counters().host_tasks.add(1);
                let title = group.title.take().map_or(Title::from(HOST_TASK_NAME), |title| *title);
                let node = Node::new(NodeKind::HostTask, title, keep.shared, Some(keep.epoch), kept_alive);
                record(&node, &dependencies);
                // SAFETY: the node was made above, and is no command.
                unsafe { start(&node, Work::HostTask(work), &dependencies) }?;
                node
            }
            None => {
                let commands = (&mut group.commands, &mut group.unloaded);
                self.start_commands(commands, group.is_chain, keep, kept_alive, dependencies)?
            }
        };
        for requirement in requirements {
            let state = buffers.state(requirement.core());
            commit(requirement, state, &node);
            requirement.hold.close(state);
        }
        Ok(node)
    }

    fn start_commands(
        &self,
        (commands, unloaded): (&mut SmallVec<[Command; 1]>, &mut Vec<(usize, Unloaded)>),
        is_chain: bool,
        keep: Keep,
        kept_alive: SmallVec<[KeptAlive; 3]>,
        dependencies: Dependencies,
    ) -> Result<Arc<Node>> {
        let n_before = commands.len().saturating_sub(1);
        let last = commands.pop().unwrap_or(Command::Marker);
        let of_last = unloaded.pop_if(|(position, _)| *position == n_before).map(|(_, unloaded)| unloaded);
        if commands.is_empty() {
            let make = |command: &Command, dependencies: &[Dependency], open| {
                let node = new_command(command, keep, kept_alive, open);
                record(&node, dependencies);
                node
            };
            if let Some(unloaded) = of_last {
                let node = make(&last, &dependencies, SmallVec::new());
                // SAFETY: as below.
                unsafe { start(&node, Work::Unloaded(last, Box::new(unloaded)), &dependencies) }?;
                return Ok(node);
            }
            // SAFETY: `submit`'s contract about the group's commands; its requirements became the dependencies.
            return Ok(unsafe { start_new_command(&self.shared, last, dependencies, make) }?);
        }
        let mut parts = Dependencies::new();
        let mut refused = None;
        let mut unloaded = unloaded.drain(..).peekable();
        for (position, command) in commands.drain(..).enumerate() {
            let before =
                parts.last().filter(|_| is_chain).map(|part: &Dependency| Dependencies::from_iter([part.clone()]));
            let behind = before.as_ref().unwrap_or(&dependencies);
            let part = new_command(&command, keep.clone(), SmallVec::new(), SmallVec::new());
            record(&part, behind);
            part.set_is_part();
            let label = command.to_string();
            let started = match unloaded.next_if(|(of, _)| *of == position) {
                // SAFETY: as below.
                Some((_, unloaded)) => unsafe { start(&part, Work::Unloaded(command, Box::new(unloaded)), behind) },
                // SAFETY: as above. The group's last node, which comes after its parts, holds what they use.
                None => unsafe { start_command(&part, command, behind.clone()) },
            };
            match started {
                Ok(()) => parts.push(Dependency { node: part, kind: DependencyKind::Data }),
                Err(error) if parts.is_empty() => {
                    DeferredDrops::drop_or_keep(kept_alive);
                    return Err(error.into());
                }
                Err(error) => {
                    refused = Some((label, error));
                    break;
                }
            }
        }
        let n_parts = parts.len();
        parts.extend(dependencies);
        let node = new_command(&last, keep, kept_alive, SmallVec::new());
        record(&node, &parts);
        node.set_parts(n_parts);
        if refused.is_none() {
            let label = last.to_string();
            let started = match of_last {
                // SAFETY: as above.
                Some(unloaded) => unsafe { start(&node, Work::Unloaded(last, Box::new(unloaded)), &parts) },
                // SAFETY: as above.
                None => unsafe { start_command(&node, last, parts.clone()) },
            };
            match started {
                Ok(()) => return Ok(node),
                Err(error) => {
                    // Counted as ended, but it goes on.
                    counters().nodes.add(1);
                    refused = Some((label, error));
                }
            }
        }
        // Parts are under way. They use the memory that the node holds, and the buffers' states must refer to them through the node. An
        // error of the backend becomes the node's failure after all parts have ended.
        if let Some((label, error)) = refused {
            let failure = CommandFailure::new(label, self.shared.device_name(), FailureKind::Device(error));
            // SAFETY: the node could not be started, and is no command now.
            unsafe { start(&node, Work::Fail(failure), &parts) }?;
        }
        Ok(node)
    }

    /// A command that does nothing after the commands of `wait_for`; on an in-order queue also after everything before it.
    pub fn submit_barrier(&self, wait_for: &[Arc<Node>]) -> Result<Arc<Node>> {
        let mut group = CommandGroup { depends_on: wait_for.iter().cloned().collect(), ..CommandGroup::default() };
        // SAFETY: the group has no commands but a marker, which uses no memory.
        unsafe { self.submit(&mut group) }
    }

    /// Blocks until every command submitted before the call has ended. Errors of commands are left for
    /// [`AsyncErrors`]; an error of this call says that the wait cannot end.
    pub fn wait(&self) -> Result {
        forbid_blocking("a wait")?;
        #[cfg(feature = "tracing")]
        let _span = tracing::trace_span!(target: "oxisycl", "wait", queue = self.shared.id.number()).entered();
        let signal = self.state.lock().rotate();
        signal.map_or(Ok(()), |signal| wait_for_epoch(&signal, &self.shared))
    }

    /// Whether every submitted command has ended.
    pub fn is_idle(&self) -> bool {
        self.state.lock().is_idle()
    }

    /// Makes sure that submitted commands make progress. Does not block.
    pub fn flush(&self) -> Result {
        Ok(self.shared.queue.flush()?)
    }
}

/// What a command keeps alive of its queue.
#[derive(Clone)]
struct Keep {
    shared: Arc<QueueShared>,
    epoch: Arc<Epoch>,
}

impl State {
    /// For the next command of the queue.
    #[inline]
    fn keep(&mut self, shared: &Arc<QueueShared>) -> Keep {
        Keep { shared: self.queues.take(shared), epoch: self.epochs.take(&self.epoch) }
    }

    /// Begins a new epoch; see [`Epoch::rotate`].
    fn rotate(&mut self) -> Option<Arc<EpochSignal>> {
        self.epochs.clear();
        Epoch::rotate(&mut self.epoch)
    }

    /// Drops `garbage` once every command submitted to the queue before the call has ended.
    pub(super) fn discard(&mut self, garbage: Box<dyn Any + Send>) {
        self.epochs.clear();
        Epoch::discard(&mut self.epoch, garbage);
    }

    /// Whether every command has ended.
    pub(super) fn is_idle(&mut self) -> bool {
        self.epochs.clear();
        Epoch::is_idle(&mut self.epoch)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // The context keeps the state, which must not keep the command, and with it its error, nor the queue of the backend.
        let unused = {
            let mut state = self.state.lock();
            (state.last.take(), std::mem::take(&mut state.epochs), std::mem::take(&mut state.queues))
        };
        drop(unused);
        self.shared.errors.orphan();
    }
}

/// An error if a dependency is already known to have failed: then nothing is enqueued.
fn check_not_failed(requirement: &Requirement, dependencies: &[Dependency]) -> Result {
    let failed = dependencies.iter().filter(|d| d.kind == DependencyKind::Data).find_map(|d| {
        let failure = d.node.failure()?;
        d.node.mark_observed();
        Some(failure)
    });
    failed.map_or(Ok(()), |failure| {
        let error = Error::from(&failure);
        let message = format!(
            "the data of {} is lost because the command that wrote it failed; overwrite it first (property no_init)",
            requirement.core()
        );
        Err(Error::with_source(error.code(), message, error))
    })
}

/// A node for `command`, not started yet.
#[inline]
fn new_command(
    command: &Command,
    keep: Keep,
    kept_alive: SmallVec<[KeptAlive; 3]>,
    dependencies: SmallVec<[Dependency; 2]>,
) -> Arc<Node> {
    let title = match command {
        Command::Kernel(kernel) => {
            counters().add_kernel(kernel.native.is_some());
            Title::of(kernel)
        }
        Command::Copy(copy) => {
            count(copy.source.memory, copy.target.memory, copy.bytes());
            Title::from("copy")
        }
        Command::Fill(_) => {
            counters().fills.add(1);
            Title::from("fill")
        }
        Command::Prefetch { .. } => Title::from("prefetch"),
        Command::Advise { .. } => Title::from("advise"),
        Command::Native(_) => Title::from("native command"),
        _ => Title::from("marker"),
    };
    let kind = NodeKind::Command(command.operation());
    Node::behind(dependencies, kind, title, keep.shared, Some(keep.epoch), kept_alive)
}

/// Long lists repeat nodes when a command used many regions.
pub(super) fn remove_repetitions(dependencies: &mut Dependencies) {
    if dependencies.len() < 3 {
        return;
    }
    dependencies.sort_by_key(|dependency| (dependency.node.id, dependency.kind != DependencyKind::Data));
    dependencies.dedup_by_key(|dependency| dependency.node.id);
}

/// The locks of all buffers of a command group, taken in the order of ids, so that two submissions never wait for each other.
pub(super) struct LockedBuffers<'a> {
    locks: SmallVec<[(BufferId, MutexGuard<'a, BufferState>); 4]>,
}

impl<'a> LockedBuffers<'a> {
    pub(super) fn lock(requirements: &'a [Requirement]) -> Self {
        // What most groups have, without lists and sorting.
        if let [] | [_] = requirements {
            let mut locks = SmallVec::new();
            if let Some(requirement) = requirements.first() {
                locks.push((requirement.core().id, requirement.core().lock()));
            }
            return Self { locks };
        }
        let mut cores: SmallVec<[&Arc<BufferCore>; 4]> = requirements.iter().map(Requirement::core).collect();
        cores.sort_by_key(|core| core.id);
        cores.dedup_by_key(|core| core.id);
        Self { locks: cores.into_iter().map(|core| (core.id, core.lock())).collect() }
    }

    pub(super) fn state(&mut self, core: &BufferCore) -> &mut BufferState {
        let position = self.locks.binary_search_by_key(&core.id, |(id, _)| *id);
        &mut self.locks[position.expect("every requirement's buffer was locked")].1
    }
}
