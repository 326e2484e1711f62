//! Starting a node: handing its command over to the backend, or delaying it until that is possible.
//!
//! A delayed node counts its blockers: dependencies that the backend cannot wait for itself, or a place among the commands that the
//! backend takes. The code that ends or hands over one of them calls [`resume`], and the last blocker's end releases the node. Invariants: a
//! node is handed over once, and only with all of its dependencies ended or known to the backend. A node that can never run ends all the same,
//! after its dependencies. `complete` has how a node ends.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxisycl_backend::{
    BackendError, Command, CommandFailure, Completion, Dependency as BackendDependency, DependencyKind, FailureKind,
    Outcome,
};
use smallvec::SmallVec;

use super::DeferredDrops;
use super::complete::finish;
use super::gate::Waits;
use super::host_task::{HostWork, drop_host_task, run_host_task};
use super::load::Unloaded;
use super::node::{DID_NOT_RUN, Dependency, FAILED, HANDED_OVER, Node, NodeKind, PENDING, SUCCEEDED, Waiter};
use super::panic_place;
use super::places::{Obstacle, Place, obstacle, wait_for};
use super::queue_shared::QueueShared;
use super::way::{self, Way};
use crate::observe::{counters, graph_dump};

/// The work of a node, once its dependencies allow it.
pub enum Work {
    /// A command of the node's backend.
    Command(Command),
    /// A launch whose code is being loaded.
    Unloaded(Command, Box<Unloaded>),
    /// User code on a thread of the runtime.
    HostTask(HostWork),
    /// Notify the thread that waits for its host accessor that the access is granted.
    HostAccess,
    /// Nothing but to end with this failure: a dependency failed, or the backend refused the command. The node still ends only
    /// after all its dependencies, since later commands rely on that.
    Fail(CommandFailure),
}

/// Starts `node` after `dependencies`. On an error nothing was enqueued, and the node will never complete.
///
/// # Safety
/// The dependencies keep memory which a command refers to free of conflicting use until the node completes. The node's
/// holds keep it alive until then. Other work than commands needs no more than a node that was not started before.
pub unsafe fn start(node: &Arc<Node>, work: Work, dependencies: &[Dependency]) -> Result<(), BackendError> {
    match work {
        // SAFETY: by the contract of this function.
        Work::Command(command) => unsafe { start_command(node, command, dependencies.into()) },
        work => {
            if let Work::HostTask(_) = work {
                panic_place::watch();
            }
            delay(node, work, dependencies);
            Ok(())
        }
    }
}

/// Starts a command of a backend: a large value, which is only moved into a [`Work`] if it has to wait.
///
/// # Safety
/// As for [`start`].
pub unsafe fn start_command(
    node: &Arc<Node>,
    command: Command,
    dependencies: SmallVec<[Dependency; 6]>,
) -> Result<(), BackendError> {
    // A node that never was has ended, as far as counting goes.
    let count_as_ended = |_: &BackendError| counters().nodes_completed.add(1);
    let (way, earlier) = way::choose(node, &command).inspect_err(count_as_ended)?;
    if way != Way::Issue {
        node.set_way(way);
        let dependencies: SmallVec<[Dependency; 6]> = dependencies.into_iter().chain(earlier).collect();
        delay(node, Work::Command(command), &dependencies);
        return Ok(());
    }
    let mut events = SmallVec::<[BackendDependency; 4]>::new();
    let mut has_open = false;
    for dependency in &dependencies {
        match resolve((&node.shared, node.way()), dependency) {
            Resolution::Done => {}
            Resolution::Behind => has_open = true,
            Resolution::Event(event) => events.push(event),
            Resolution::Failed(cause) => {
                delay(node, Work::Fail(dependency_failure(node, &cause)), &dependencies);
                return Ok(());
            }
            Resolution::Blocked => {
                delay(node, Work::Command(command), &dependencies);
                return Ok(());
            }
        }
    }
    if obstacle(node, &command).is_some() {
        delay(node, Work::Command(command), &dependencies);
        return Ok(());
    }
    if has_open || !events.is_empty() {
        node.inner.lock().dependencies = dependencies.into_iter().collect();
    }
    let handed_over = hand_over(node, command, &events);
    if handed_over.is_err() {
        give_back(node);
    }
    handed_over.inspect_err(count_as_ended)
}

/// Makes and starts the node of a command of a backend. `make` gets the command, its dependencies, and those of them that have not ended.
///
/// Most commands are issued at once. Their nodes are made with these dependencies, which takes no lock.
///
/// # Safety
/// As for [`start`].
#[inline]
pub unsafe fn start_new_command(
    shared: &Arc<QueueShared>,
    command: Command,
    mut dependencies: SmallVec<[Dependency; 6]>,
    make: impl FnOnce(&Command, &[Dependency], SmallVec<[Dependency; 2]>) -> Arc<Node>,
) -> Result<Arc<Node>, BackendError> {
    let mut events = SmallVec::<[BackendDependency; 4]>::new();
    let Some(has_open) = look_ahead(shared, &command, &dependencies, &mut events) else {
        let node = make(&command, &dependencies, SmallVec::new());
        // SAFETY: by the contract of this function.
        unsafe { start_command(&node, command, dependencies) }?;
        return Ok(node);
    };
    let mut open = SmallVec::<[Dependency; 2]>::new();
    if has_open {
        if dependencies.len() > 1 {
            open.extend(dependencies.drain(..dependencies.len() - 1));
        }
        if let Some(last) = dependencies.pop() {
            open.push(last);
        }
    }
    let node = make(&command, &dependencies, open);
    if obstacle(&node, &command).is_some() {
        let dependencies = node.inner.lock().dependencies.clone();
        delay(&node, Work::Command(command), &dependencies);
        return Ok(node);
    }
    if let Err(error) = hand_over(&node, command, &events) {
        give_back(&node);
        // A node that never was has ended, as far as counting goes.
        counters().nodes_completed.add(1);
        return Err(error);
    }
    Ok(node)
}

/// Whether any dependency of a new command has not ended, if the command can be issued now. Adds the events that it has to be issued
/// behind. Returns `None` for all commands that may have to wait, or to fail.
#[inline]
fn look_ahead(
    shared: &Arc<QueueShared>,
    command: &Command,
    dependencies: &[Dependency],
    events: &mut SmallVec<[BackendDependency; 4]>,
) -> Option<bool> {
    // The host may have to execute others, and the graph's picture has all dependencies.
    if !matches!(command, Command::Kernel(_) | Command::Marker) || graph_dump().is_on() {
        return None;
    }
    let mut has_open = false;
    for dependency in dependencies {
        match resolve((shared, Way::Issue), dependency) {
            Resolution::Done => {}
            Resolution::Behind => has_open = true,
            Resolution::Event(event) => {
                has_open = true;
                events.push(event);
            }
            Resolution::Failed(_) | Resolution::Blocked => return None,
        }
    }
    Some(has_open)
}

enum Resolution {
    Done,
    /// The dependency has not ended, and the backend need not be passed its event: the queue keeps the order.
    Behind,
    Event(BackendDependency),
    Failed(CommandFailure),
    Blocked,
}

/// How `dependency` affects a command of that queue that is issued now, if it goes that way.
fn resolve((shared, way): (&Arc<QueueShared>, Way), dependency: &Dependency) -> Resolution {
    let earlier = &dependency.node;
    if earlier.has_succeeded() {
        return Resolution::Done;
    }
    if is_before(earlier, shared, way) {
        return Resolution::Behind;
    }
    let inner = earlier.inner.lock();
    match earlier.state.load(Ordering::Acquire) {
        SUCCEEDED => Resolution::Done,
        FAILED | DID_NOT_RUN => match (dependency.kind, &inner.failure) {
            (DependencyKind::Data, Some(failure)) => Resolution::Failed(failure.clone()),
            _ => Resolution::Done,
        },
        _ => match &inner.event {
            Some(event) if can_wait_for(shared, way, earlier) => {
                Resolution::Event(BackendDependency { event: event.clone(), kind: dependency.kind })
            }
            _ => Resolution::Blocked,
        },
    }
}

/// Whether a command of `queue`, issued now, comes after the unfinished one of `earlier` because their queue keeps its order.
#[inline]
fn is_before(earlier: &Node, queue: &Arc<QueueShared>, way: Way) -> bool {
    let may_be = Arc::ptr_eq(&earlier.shared, queue) && queue.keeps_order && way == Way::Issue;
    // In this order: what ends between the two looks without having been issued is not before, and its failure is known.
    may_be && earlier.is_issued() && !earlier.is_complete()
}

/// Whether a command of `queue` can be issued behind the event of `earlier`.
fn can_wait_for(queue: &QueueShared, way: Way, earlier: &Node) -> bool {
    let other = &earlier.shared;
    way == Way::Issue && other.domain == queue.domain && other.event_domain == queue.event_domain
}

fn hand_over(node: &Arc<Node>, command: Command, events: &[BackendDependency]) -> Result<(), BackendError> {
    let completion: Arc<dyn Completion> = node.clone();
    // SAFETY: `start`'s contract. Memory lives until the node completes (`kept_alive`). `events` and the resolved dependencies order the
    // command after everything that conflicts with it.
    let event = unsafe { node.shared.queue.issue(command, events, completion) }?;
    let waiting = {
        let mut inner = node.inner.lock();
        // The command may have completed already; then the event is of no use. The state of a command changes under this lock only.
        if node.state.load(Ordering::Acquire) == PENDING {
            node.state.store(HANDED_OVER, Ordering::Release);
            inner.event = Some(event);
        }
        take_handover_waiters(&mut inner.waiters)
    };
    resume(waiting);
    Ok(())
}

/// Gives back what a refused command has taken to be issued.
fn give_back(node: &Node) {
    node.leave_gate();
    give_back_places(node);
}

impl Waits for Node {
    fn go_on(self: Arc<Self>) {
        resume(vec![self]);
    }
}

/// Gives back the places of a node whose command has ended or was refused, and resumes those that get them.
///
/// Called before any code of users runs because of the end: what waits for a place may be what that code waits for.
#[inline]
pub(super) fn give_back_places(node: &Node) {
    let had = node.take_places();
    if had == 0 {
        return;
    }
    let mut resumed = Vec::new();
    for place in Place::ALL.into_iter().filter(|place| had & place.bit() != 0) {
        if let Some(next) = node.shared.places(place).give_back() {
            next.set_place(place);
            resumed.push(next);
        }
    }
    if !resumed.is_empty() {
        // Their commands may be refused, too, and end with code of users. A thread that submits has locks.
        DeferredDrops::drop_or_keep(Resumed(resumed));
    }
}

/// Nodes that are resumed when this is dropped.
struct Resumed(Vec<Arc<Node>>);

impl Drop for Resumed {
    fn drop(&mut self) {
        resume(std::mem::take(&mut self.0));
    }
}

fn take_handover_waiters(waiters: &mut Vec<Waiter>) -> Vec<Arc<Node>> {
    if waiters.is_empty() {
        return Vec::new();
    }
    let mut taken = Vec::new();
    waiters.retain_mut(|waiter| match waiter {
        Waiter::AfterHandover(node) => {
            taken.push(node.clone());
            false
        }
        _ => true,
    });
    taken
}

/// Delays `node`: registers it with each of its blockers, so that the last one's end releases it.
fn delay(node: &Arc<Node>, work: Work, dependencies: &[Dependency]) {
    let is_command = matches!(work, Work::Command(_) | Work::Unloaded(..));
    let load = if let Work::Unloaded(_, unloaded) = &work { Some(unloaded.load.clone()) } else { None };
    {
        let mut inner = node.inner.lock();
        inner.work = Some(Box::new(work));
        inner.dependencies = dependencies.into();
    }
    node.n_blockers.store(1, Ordering::Relaxed);
    let (mut is_delayed, mut is_listed) = (false, false);
    for dependency in dependencies {
        let earlier = &dependency.node;
        let mut inner = earlier.inner.lock();
        if earlier.is_complete() {
            continue;
        }
        let is_same_domain = earlier.shared.domain == node.shared.domain;
        let is_of_command = is_command && matches!(earlier.kind, NodeKind::Command(_));
        if is_of_command && !is_same_domain {
            counters().cross_context_dependencies.add(1);
        }
        let may_be_behind =
            is_of_command && is_same_domain && node.way() == Way::Issue && earlier.way() != Way::Execute;
        let waiter = match &inner.event {
            Some(_) if may_be_behind && can_wait_for(&node.shared, node.way(), earlier) => continue,
            None if may_be_behind => Waiter::AfterHandover(node.clone()),
            _ => Waiter::AfterCompletion(node.clone()),
        };
        is_delayed = true;
        // One behind commands of its queue can be found by those.
        is_listed |= matches!(waiter, Waiter::AfterCompletion(_)) || !Arc::ptr_eq(&earlier.shared, &node.shared);
        node.n_blockers.fetch_add(1, Ordering::Relaxed);
        inner.waiters.push(waiter);
    }
    if let Some(load) = load {
        (is_delayed, is_listed) = (true, true);
        node.n_blockers.fetch_add(1, Ordering::Relaxed);
        if !load.wait(node.clone()) {
            node.n_blockers.fetch_sub(1, Ordering::Relaxed);
        }
    }
    if is_delayed {
        counters().delayed_commands.add(1);
    }
    if is_listed {
        node.list_as_delayed();
    }
    resume(vec![node.clone()]);
}

thread_local! {
    /// Nodes with one blocker less, oldest first, while this thread is in `resume`. Keeps long chains from recursing.
    static RESUMED: RefCell<Option<VecDeque<Arc<Node>>>> = const { RefCell::new(None) };
}

/// Takes one blocker from each node, and releases those that have none left.
pub(super) fn resume(nodes: Vec<Arc<Node>>) {
    if nodes.is_empty() {
        return;
    }
    let mut nodes = nodes;
    let is_nested = RESUMED.try_with(|list| {
        let mut list = list.borrow_mut();
        let is_nested = list.is_some();
        list.get_or_insert_default().extend(nodes.drain(..));
        is_nested
    });
    match is_nested {
        Ok(true) => {}
        Ok(false) => {
            while let Ok(Some(node)) = RESUMED.try_with(|list| list.borrow_mut().as_mut().and_then(VecDeque::pop_front))
            {
                remove_blocker(&node);
            }
            let _ = RESUMED.try_with(RefCell::take);
        }
        // The thread is ending.
        Err(_) => nodes.iter().for_each(remove_blocker),
    }
}

fn remove_blocker(node: &Arc<Node>) {
    if node.n_blockers.fetch_sub(1, Ordering::AcqRel) == 1 {
        release(node);
        // Else it is delayed again, or waits for a place.
        if node.is_handed_over() && node.is_listed.swap(false, Ordering::Relaxed) {
            node.shared.count_released();
        }
    }
}

/// Issues the command of a node that has no blockers left, or starts its other work.
fn release(node: &Arc<Node>) {
    let (work, dependencies) = {
        let mut inner = node.inner.lock();
        (inner.work.take(), inner.dependencies.clone())
    };
    let Some(mut work) = work else { return };
    if let Work::Unloaded(command, unloaded) = *work {
        *work = match unloaded.with_code(command) {
            Ok(command) => Work::Command(command),
            Err(kind) => {
                let failure = CommandFailure::new(node.label(), node.shared.device_name(), kind);
                return delay(node, Work::Fail(failure), &dependencies);
            }
        };
    }
    // How a node ends that is to fail does not depend on its dependencies any more.
    let relevant = if matches!(*work, Work::Fail(_)) { &[] } else { &dependencies[..] };
    let mut events = SmallVec::<[BackendDependency; 4]>::new();
    for dependency in relevant {
        match resolve((&node.shared, node.way()), dependency) {
            Resolution::Done | Resolution::Behind => {}
            Resolution::Event(event) => events.push(event),
            Resolution::Failed(cause) if matches!(*work, Work::Command(_)) => {
                return delay(node, Work::Fail(dependency_failure(node, &cause)), &dependencies);
            }
            Resolution::Failed(cause) => {
                let failure = dependency_failure(node, &cause);
                return match *work {
                    Work::HostTask(work) => drop_host_task(node, work, failure),
                    _ => finish(node, Outcome::refused(failure)),
                };
            }
            // What it waited for was handed over, but it cannot be issued behind that.
            Resolution::Blocked => return delay(node, *work, &dependencies),
        }
    }
    if let Work::Command(command) = &*work
        && node.way() == Way::Issue
        && let Some(obstacle) = obstacle(node, command)
    {
        return delay_behind(node, work, obstacle);
    }
    match *work {
        Work::Fail(failure) => finish(node, Outcome::refused(failure)),
        Work::Command(command) if node.way() == Way::Execute => {
            {
                // The state of a command changes under this lock only.
                let _inner = node.inner.lock();
                node.state.store(HANDED_OVER, Ordering::Release);
            }
            way::execute(node, command);
        }
        Work::Command(command) => {
            let label = command.to_string();
            if let Err(error) = hand_over(node, command, &events) {
                node.leave_gate();
                let failure = CommandFailure::new(label, node.shared.device_name(), FailureKind::Device(error));
                delay(node, Work::Fail(failure), &dependencies);
            }
        }
        Work::HostTask(work) => run_host_task(node, work),
        Work::HostAccess => grant(node),
        Work::Unloaded(..) => unreachable!("it became a command above"),
    }
}

/// Queues the delayed node for what it needs, and resumes it once it has that, or may ask again.
fn delay_behind(node: &Arc<Node>, work: Box<Work>, obstacle: Obstacle) {
    counters().delayed_commands.add(1);
    node.inner.lock().work = Some(work);
    node.n_blockers.store(1, Ordering::Relaxed);
    if wait_for(node, obstacle) {
        resume(vec![node.clone()]);
    }
}

fn dependency_failure(node: &Node, cause: &CommandFailure) -> CommandFailure {
    CommandFailure::dependency(node.label(), node.shared.device_name(), cause)
}

fn grant(node: &Arc<Node>) {
    let threads: Vec<Waiter> = {
        let mut inner = node.inner.lock();
        if inner.is_cancelled {
            drop(inner);
            return finish(node, Outcome::ran(Ok(())));
        }
        node.state.store(HANDED_OVER, Ordering::Release);
        inner.waiters.extract_if(.., |waiter| matches!(waiter, Waiter::Thread(_))).collect()
    };
    for waiter in threads {
        if let Waiter::Thread(thread) = waiter {
            thread.unpark();
        }
    }
}
