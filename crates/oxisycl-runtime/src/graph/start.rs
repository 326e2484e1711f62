//! Starting a node: handing it over to its backend, delaying it until that is possible, and completing it.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxisycl_backend::{
    BackendError, Command, CommandFailure, Completion, Dependency as BackendDependency, DependencyKind, ExecutionTimes,
    FailureKind, Outcome,
};
use smallvec::SmallVec;

use super::host_executor;
use super::node::{DID_NOT_RUN, Dependency, FAILED, HANDED_OVER, Hold, Node, NodeKind, PENDING, SUCCEEDED, Waiter};
use super::wait::CallbackScope;
use crate::observe::{self, Span, counters, trace};

/// What a host task does.
pub type HostWork = Box<dyn FnOnce() + Send>;

/// What a node is to do once its dependencies allow it.
#[expect(clippy::large_enum_variant, reason = "it is moved once; a box would cost every launch an allocation")]
pub enum Work {
    /// A command of the node's backend.
    Command(Command),
    /// User code on a thread of the runtime.
    HostTask(HostWork),
    /// Tell the thread that waits for its host accessor that it may go on.
    HostAccess,
    /// Nothing but to end with this failure: a dependency failed, or the backend refused the command. The node still ends only
    /// after all its dependencies, since later commands rely on that.
    Fail(CommandFailure),
}

/// Starts `node` after `dependencies`. On an error nothing was enqueued, and the node will never complete.
///
/// The caller guarantees, by the dependencies, that memory which a command refers to is free of conflicting use, and by the
/// node's holds that it lives until the node completes.
pub fn start(node: &Arc<Node>, work: Work, dependencies: &[Dependency]) -> Result<(), BackendError> {
    match work {
        Work::Command(command) => start_command(node, command, dependencies),
        work => {
            delay(node, work, dependencies);
            Ok(())
        }
    }
}

/// The same for a command of a backend: a large value, which is only moved into a [`Work`] if it has to wait.
pub fn start_command(node: &Arc<Node>, command: Command, dependencies: &[Dependency]) -> Result<(), BackendError> {
    let mut events = SmallVec::<[BackendDependency; 4]>::new();
    for dependency in dependencies {
        match resolve(node, dependency) {
            Resolution::Done => {}
            Resolution::Event(event) => events.push(event),
            Resolution::Failed(cause) => {
                delay(node, Work::Fail(dependency_failure(node, &cause)), dependencies);
                return Ok(());
            }
            Resolution::Blocked => {
                delay(node, Work::Command(command), dependencies);
                return Ok(());
            }
        }
    }
    if !events.is_empty() {
        node.inner.lock().dependencies = dependencies.into();
    }
    // A node that never was has ended, as far as counting goes.
    hand_over(node, command, &events).inspect_err(|_| counters().nodes_completed.add(1))
}

enum Resolution {
    Done,
    Event(BackendDependency),
    Failed(CommandFailure),
    Blocked,
}

/// What `dependency` means for a command that is handed over now.
fn resolve(node: &Node, dependency: &Dependency) -> Resolution {
    let earlier = &dependency.node;
    if earlier.has_succeeded() {
        return Resolution::Done;
    }
    let inner = earlier.inner.lock();
    match earlier.state.load(Ordering::Acquire) {
        SUCCEEDED => Resolution::Done,
        FAILED | DID_NOT_RUN => match (dependency.kind, &inner.failure) {
            (DependencyKind::Data, Some(failure)) => Resolution::Failed(failure.clone()),
            _ => Resolution::Done,
        },
        _ => match &inner.event {
            Some(event) if earlier.shared.domain == node.shared.domain => {
                Resolution::Event(BackendDependency { event: event.clone(), kind: dependency.kind })
            }
            _ => Resolution::Blocked,
        },
    }
}

fn hand_over(node: &Arc<Node>, command: Command, events: &[BackendDependency]) -> Result<(), BackendError> {
    let completion: Arc<dyn Completion> = node.clone();
    // SAFETY: `start`'s contract: memory lives until the node completes (its holds), and `events` together with the resolved
    // dependencies order the command after everything that conflicts with it.
    let event = unsafe { node.shared.queue.enqueue(command, events, completion) }?;
    let waiting = {
        let mut inner = node.inner.lock();
        // The command may have completed already; then the event is of no use.
        if node.state.compare_exchange(PENDING, HANDED_OVER, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            inner.event = Some(event);
        }
        take_handover_waiters(&mut inner.waiters)
    };
    resume(waiting);
    Ok(())
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

/// Registers `node` with everything that keeps it from being handed over.
fn delay(node: &Arc<Node>, work: Work, dependencies: &[Dependency]) {
    let is_command = matches!(work, Work::Command(_));
    {
        let mut inner = node.inner.lock();
        inner.work = Some(Box::new(work));
        inner.dependencies = dependencies.into();
    }
    node.n_blockers.store(1, Ordering::Relaxed);
    let mut is_delayed = false;
    for dependency in dependencies {
        let earlier = &dependency.node;
        let mut inner = earlier.inner.lock();
        if earlier.is_complete() {
            continue;
        }
        let same_backend = is_command && earlier.shared.domain == node.shared.domain;
        let waiter = match earlier.kind {
            NodeKind::Command(_) if same_backend && inner.event.is_some() => continue,
            NodeKind::Command(_) if same_backend => Waiter::AfterHandover(node.clone()),
            NodeKind::Command(_) => {
                if is_command {
                    counters().cross_context_dependencies.add(1);
                }
                Waiter::AfterCompletion(node.clone())
            }
            _ => Waiter::AfterCompletion(node.clone()),
        };
        is_delayed = true;
        node.n_blockers.fetch_add(1, Ordering::Relaxed);
        inner.waiters.push(waiter);
    }
    if is_delayed {
        counters().delayed_commands.add(1);
        node.shared.add_delayed(node);
    }
    resume(vec![node.clone()]);
}

thread_local! {
    /// Nodes with one blocker less, oldest first, while this thread is in `resume`. Keeps long chains from recursing.
    static RESUMED: RefCell<Option<VecDeque<Arc<Node>>>> = const { RefCell::new(None) };
}

/// Takes one blocker from each node, and releases those that have none left.
fn resume(nodes: Vec<Arc<Node>>) {
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
    }
}

/// Nothing delays `node` any more.
fn release(node: &Arc<Node>) {
    let (work, dependencies) = {
        let mut inner = node.inner.lock();
        (inner.work.take(), inner.dependencies.clone())
    };
    let Some(work) = work else { return };
    let work = *work;
    // How a node ends that is to fail does not depend on its dependencies any more.
    let relevant = if matches!(work, Work::Fail(_)) { &[] } else { &dependencies[..] };
    let mut events = SmallVec::<[BackendDependency; 4]>::new();
    for dependency in relevant {
        match resolve(node, dependency) {
            Resolution::Done => {}
            Resolution::Event(event) => events.push(event),
            Resolution::Failed(cause) if matches!(work, Work::Command(_)) => {
                return delay(node, Work::Fail(dependency_failure(node, &cause)), &dependencies);
            }
            Resolution::Failed(cause) => {
                DeferredDrops::drop_or_keep(work);
                let failure = dependency_failure(node, &cause);
                return finish(node, Outcome { result: Err(failure), times: None });
            }
            // Every blocker was counted, so none is left.
            Resolution::Blocked => debug_assert!(false, "a released command is still blocked"),
        }
    }
    match work {
        Work::Fail(failure) => finish(node, Outcome { result: Err(failure), times: None }),
        Work::Command(command) => {
            let label = command.to_string();
            if let Err(error) = hand_over(node, command, &events) {
                let failure = CommandFailure::new(label, node.shared.device_name(), FailureKind::Device(error));
                delay(node, Work::Fail(failure), &dependencies);
            }
        }
        Work::HostTask(work) => run_host_task(node, work),
        Work::HostAccess => grant(node),
    }
}

fn dependency_failure(node: &Node, cause: &CommandFailure) -> CommandFailure {
    CommandFailure::dependency(label(node), node.shared.device_name(), cause)
}

/// What messages call a node whose command is not at hand.
fn label(node: &Node) -> String {
    match node.kind {
        NodeKind::Command(oxisycl_backend::Operation::Launch) => format!("kernel \"{}\"", node.name),
        _ => node.name.to_owned(),
    }
}

fn grant(node: &Arc<Node>) {
    let threads: Vec<Waiter> = {
        let mut inner = node.inner.lock();
        if inner.is_cancelled {
            drop(inner);
            return finish(node, Outcome { result: Ok(()), times: None });
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

thread_local! {
    /// User values whose drop waits until this thread has released its locks.
    static DEFERRED: RefCell<Option<Vec<Box<dyn Any>>>> = const { RefCell::new(None) };
}

/// While this exists, completing a node on this thread keeps user values for later: their `drop` is user code, which may call
/// the runtime and must not find it locked. Made before locks are taken, so that it ends after they are released.
pub struct DeferredDrops {
    is_outermost: bool,
}

impl DeferredDrops {
    /// Starts keeping user values.
    pub fn enter() -> Self {
        let is_outermost = DEFERRED.try_with(|list| {
            let mut list = list.borrow_mut();
            let is_outermost = list.is_none();
            list.get_or_insert_default();
            is_outermost
        });
        Self { is_outermost: is_outermost.unwrap_or(false) }
    }

    pub(crate) fn drop_or_keep(value: impl Any) {
        let mut value = Some(value);
        // Without the list (none is being kept, or the thread is ending) the value is dropped below, outside the borrow.
        let _ = DEFERRED.try_with(|list| {
            if let Some(list) = &mut *list.borrow_mut() {
                list.extend(value.take().map(|value| Box::new(value) as Box<dyn Any>));
            }
        });
        drop_user_value(value);
    }
}

/// Drops what belongs to the user. Its destructor may panic, and so may the destructor of the panic's payload: neither may keep
/// a node from ending.
fn drop_user_value(value: impl Any) {
    call_user(|| drop(value));
}

/// Calls code of the user whose panic is nobody's business but the panic hook's.
fn call_user(f: impl FnOnce()) {
    if let Err(payload) = std::panic::catch_unwind(AssertUnwindSafe(f)) {
        discard(payload);
    }
}

/// Drops a panic's payload, also one whose destructor panics.
pub(super) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = std::panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

impl Drop for DeferredDrops {
    fn drop(&mut self) {
        if self.is_outermost {
            let kept = DEFERRED.try_with(RefCell::take).ok().flatten();
            kept.into_iter().flatten().for_each(drop_user_value);
        }
    }
}

thread_local! {
    static HOST_TASK: RefCell<Option<Arc<Node>>> = const { RefCell::new(None) };
}

/// The host task that the calling thread runs, if it does.
pub fn current_host_task() -> Option<Arc<Node>> {
    HOST_TASK.try_with(|task| task.borrow().clone()).ok().flatten()
}

/// Runs `job` on a thread of the runtime, outside all locks; on the calling thread if there cannot be one.
pub(super) fn spawn_detached(job: Box<dyn FnOnce() + Send>) {
    if let Err((job, _)) = host_executor::spawn(job) {
        job();
    }
}

fn run_host_task(node: &Arc<Node>, work: HostWork) {
    node.state.store(HANDED_OVER, Ordering::Release);
    let task = node.clone();
    let job = Box::new(move || {
        HOST_TASK.set(Some(task.clone()));
        let start = task.shared.device.timestamp();
        let result = std::panic::catch_unwind(AssertUnwindSafe(work));
        let times = ExecutionTimes { start, end: task.shared.device.timestamp() };
        HOST_TASK.set(None);
        let result = result.map_err(|payload| {
            let message = panic_message(&*payload);
            discard(payload);
            let kind = FailureKind::Panic { message, location: None, item: None };
            CommandFailure::new("host task", task.shared.device_name(), kind)
        });
        finish(&task, Outcome { result, times: Some(times) });
    });
    if let Err((job, error)) = host_executor::spawn(job) {
        drop_user_value(job);
        let code = error.raw_os_error().unwrap_or(0).into();
        let error = BackendError::Driver { call: "starting a thread", code, name: error.to_string() };
        let kind = FailureKind::Device(error);
        let failure = CommandFailure::new("host task", node.shared.device_name(), kind);
        finish(node, Outcome { result: Err(failure), times: None });
    }
}

pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic payload of unknown type".to_owned())
}

impl Completion for Node {
    fn complete(self: Arc<Self>, outcome: Outcome) {
        finish(&self, outcome);
    }
}

impl Node {
    /// Ends a host accessor: its holder has dropped it, or nobody wants it any more. One that was not granted yet ends after
    /// its dependencies, as commands submitted later rely on that.
    pub fn end_host_access(self: &Arc<Self>) {
        {
            let mut inner = self.inner.lock();
            match self.state.load(Ordering::Acquire) {
                PENDING => {
                    inner.is_cancelled = true;
                    return;
                }
                HANDED_OVER => {}
                _ => return,
            }
        }
        finish(self, Outcome { result: Ok(()), times: None });
    }
}

/// Ends `node` and lets go of everything that waited for it.
fn finish(node: &Arc<Node>, outcome: Outcome) {
    if observe_is_on() {
        record_span(node, &outcome);
    }
    let failure = outcome.result.err();
    // Memory goes first, so that whoever sees the command complete sees its memory released.
    let holds = std::mem::take(&mut node.inner.lock().holds);
    for hold in &holds {
        if let Hold::Loan(loan) = hold {
            loan.ended(failure.is_none());
        }
    }
    if !holds.is_empty() {
        DeferredDrops::drop_or_keep(holds);
    }
    if let Some(failure) = &failure {
        counters().failures.add(1);
        let is_dependent = matches!(failure.kind(), FailureKind::Dependency(_));
        node.inner.lock().failure = Some(failure.clone());
        // A host accessor's failure is the result of the call that makes it.
        if node.kind != NodeKind::HostAccess {
            node.shared.errors.push(node, is_dependent);
        }
    }
    let (waiters, event, epoch, work, dependencies) = {
        let mut inner = node.inner.lock();
        inner.times = outcome.times;
        let state = match failure.as_ref().map(CommandFailure::kind) {
            None => SUCCEEDED,
            // What parts of the command have done is done.
            Some(FailureKind::Dependency(_))
                if inner.dependencies.iter().take(inner.n_parts).all(|part| part.node.did_not_run()) =>
            {
                DID_NOT_RUN
            }
            Some(_) => FAILED,
        };
        node.state.store(state, Ordering::Release);
        let dependencies = std::mem::take(&mut inner.dependencies);
        (std::mem::take(&mut inner.waiters), inner.event.take(), inner.epoch.take(), inner.work.take(), dependencies)
    };
    counters().nodes_completed.add(1);
    drop((event, dependencies));
    if let Some(work) = work {
        DeferredDrops::drop_or_keep(work);
    }
    if !waiters.is_empty() {
        notify(waiters);
    }
    // Last: a wait for the epoch must find everything else done.
    drop(epoch);
}

fn notify(waiters: Vec<Waiter>) {
    let mut resumed = Vec::new();
    for waiter in waiters {
        match waiter {
            Waiter::Thread(thread) => thread.unpark(),
            Waiter::Waker(waker) => {
                // A waker is user code: it must not block on the runtime, and its panic is not ours.
                let _scope = CallbackScope::enter();
                call_user(|| waker.wake());
            }
            Waiter::AfterCompletion(node) | Waiter::AfterHandover(node) => resumed.push(node),
        }
    }
    resume(resumed);
}

fn observe_is_on() -> bool {
    trace().is_on() || cfg!(feature = "tracing")
}

fn record_span(node: &Node, outcome: &Outcome) {
    #[cfg(feature = "tracing")]
    tracing::trace!(
        target: "oxisycl",
        node = node.id,
        name = node.name,
        device = node.shared.device_name(),
        failed = outcome.result.is_err(),
        "command completed"
    );
    if let (Some(times), true) = (outcome.times, trace().is_on()) {
        let category = match node.kind {
            NodeKind::HostTask => "host_task",
            NodeKind::HostAccess => "host_access",
            NodeKind::Command(operation) => match operation {
                oxisycl_backend::Operation::Launch => "kernel",
                oxisycl_backend::Operation::Copy => "copy",
                oxisycl_backend::Operation::Fill => "fill",
                _ => "other",
            },
        };
        observe::trace().record(Span {
            name: node.name.to_owned(),
            category,
            device: node.shared.device_name().to_owned(),
            start: times.start,
            end: times.end,
            node: node.id,
        });
    }
}
