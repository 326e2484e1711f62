//! Ending a node: its result, and everything that waited for it.
//!
//! Runs on the thread that found the command ended: a poller, a waiting thread, or one of the host device. The order is
//! part of the protocol. First what the command held is released, then its failure is listed, then the node counts as
//! complete. Then waiters are notified, and last the node leaves its epoch. So a thread that sees a command as complete sees its memory
//! released and its error listed. A thread that waited for the epoch sees all of that.
//!
//! A node ends after all its dependencies, in whatever order the backends report. A device may end a command before
//! another thread has reported what the command came after. When the node ends, the failures of all its dependencies
//! are known. What they mean for the node is decided here, since a backend reports each command alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxisycl_backend::{CommandFailure, Completion, ExecutionTimes, FailureKind, Operation, Outcome};
use smallvec::SmallVec;

use super::blocking::CallbackScope;
use super::deferred_drops::{DeferredDrops, call_user};
use super::host_task::drop_loans;
use super::node::{DID_NOT_RUN, FAILED, HANDED_OVER, KeptAlive, Node, NodeKind, PENDING, SUCCEEDED, Waiter};
use super::start::{give_back_places, resume};
use crate::observe::{self, Span, counters, trace};
use crate::output::print_kept;

impl Completion for Node {
    unsafe fn complete(self: Arc<Self>, mut outcome: Outcome) {
        for output in std::mem::take(&mut outcome.output) {
            // The handler is user code: it must not block on the runtime, and its panic is not ours.
            let _scope = CallbackScope::enter();
            call_user(|| print_kept(&output, self.title.name(), self.shared.device_name()));
        }
        let mut reported = Vec::new();
        complete_or_defer(&self, outcome, By::Backend, &mut reported);
        end_all(reported);
        Self::release(self);
    }
}

impl Node {
    /// Ends a host accessor whose holder has dropped it, or whose request was abandoned. An accessor that was not granted yet ends after
    /// its dependencies, as commands submitted later rely on that.
    ///
    /// # Safety
    /// No code uses the memory by right of that host accessor any more.
    pub unsafe fn end_host_access(self: &Arc<Self>) {
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
        finish(self, Outcome::ran(Ok(())));
    }
}

/// Which code ends a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The backend, which reports the command's end.
    Backend,
    /// The runtime.
    Runtime,
}

/// A node whose backend has reported its end, with the reported outcome. Its end waits for the ends of its dependencies.
pub(super) type ReportedEnd = Box<(Arc<Node>, Outcome)>;

/// Ends `node`, once all its dependencies have ended, and releases everything that waited for it.
pub(super) fn finish(node: &Arc<Node>, outcome: Outcome) {
    // A list, so that a long chain that was reported backwards does not recurse.
    let mut reported = Vec::new();
    complete_or_defer(node, outcome, By::Runtime, &mut reported);
    end_all(reported);
}

/// Ends each reported node whose dependencies have all ended, and then the nodes that waited for that.
fn end_all(mut reported: Vec<ReportedEnd>) {
    while let Some(next) = reported.pop() {
        let (node, outcome) = *next;
        complete_or_defer(&node, outcome, By::Runtime, &mut reported);
    }
}

/// Ends `node` if all its dependencies have ended; else registers it to end after the first one that has not. Adds the reported nodes that
/// waited for `node` to end to `reported`.
fn complete_or_defer(node: &Arc<Node>, outcome: Outcome, by: By, reported: &mut Vec<ReportedEnd>) {
    let mut by = by;
    loop {
        let earlier = {
            let mut inner = node.inner.lock();
            if by == By::Backend {
                // A backend reports a command once. If one did it twice, neither counts nor errors may be wrong.
                if std::mem::replace(&mut inner.is_reported, true) {
                    return;
                }
                by = By::Runtime;
                // Before code of users runs, which may wait for what the gate holds back.
                node.leave_gate();
                if node.has_places() {
                    drop(inner);
                    give_back_places(node);
                    continue;
                }
            }
            let earlier = inner.dependencies.iter().find(|dependency| !dependency.node.is_complete());
            match earlier.map(|dependency| dependency.node.clone()) {
                Some(earlier) => earlier,
                None => {
                    let lost = inner.dependencies.iter().find(|dependency| dependency.is_lost());
                    let lost = lost.map(|dependency| dependency.node.clone());
                    let kept_alive = std::mem::take(&mut inner.kept_alive);
                    let has_parts = inner.n_parts > 0;
                    drop(inner);
                    let cause = lost.and_then(|earlier| earlier.failure());
                    let outcome = outcome_with_lost_input(node, outcome, cause);
                    // A part that failed is the command's own failure.
                    let of_parts = if has_parts { node.failure_of_parts() } else { None };
                    return end(node, outcome, of_parts, kept_alive, reported);
                }
            }
        };
        let mut inner = earlier.inner.lock();
        if !earlier.is_complete() {
            inner.waiters.push(Waiter::ToEnd(Box::new((node.clone(), outcome))));
            return;
        }
    }
}

/// The outcome of `node` when `cause`, a failed dependency, has lost data that the node needs. Without a cause this is `outcome`.
fn outcome_with_lost_input(node: &Node, outcome: Outcome, cause: Option<CommandFailure>) -> Outcome {
    let Some(cause) = cause else { return outcome };
    let keeps_own = |failure: &CommandFailure| !matches!(failure.kind(), FailureKind::Panic { .. });
    if outcome.result.as_ref().is_err_and(keeps_own) {
        return outcome;
    }
    // Hints and markers change nothing.
    let has_run = outcome.has_run && node.kind != NodeKind::Command(Operation::Other);
    let (label, device) = (node.label(), node.shared.device_name());
    // A kernel that ran on what a failed command had left may have panicked because of it.
    let failure = match has_run {
        true => CommandFailure::spoiled(label, device, &cause),
        false => CommandFailure::dependency(label, device, &cause),
    };
    Outcome { has_run, result: Err(failure), ..outcome }
}

fn end(
    node: &Arc<Node>,
    outcome: Outcome,
    of_parts: Option<CommandFailure>,
    kept_alive: SmallVec<[KeptAlive; 3]>,
    reported: &mut Vec<ReportedEnd>,
) {
    if observe_is_on() {
        record_span(node, &outcome);
    }
    let failure = of_parts.or(outcome.result.err());
    if let Some(failure) = &failure {
        failure.name_buffer(|address| description_of(address, &kept_alive));
    }
    // Memory goes first, so that a thread that sees the command complete sees its memory released.
    for kept in &kept_alive {
        if let KeptAlive::Loan(loan) = kept {
            loan.ended(failure.is_none());
        }
    }
    let times = outcome.times;
    if kept_alive.iter().any(KeptAlive::has_user_drop) {
        let ended = node.clone();
        return drop_loans(node, kept_alive, move || {
            let mut reported = Vec::new();
            end_released(&ended, failure, times, &mut reported);
            end_all(reported);
        });
    }
    if !kept_alive.is_empty() {
        DeferredDrops::drop_or_keep(kept_alive);
    }
    end_released(node, failure, times, reported);
}

/// Completes `node` after [`end`] has released what it kept alive: lists its failure, sets its state, and notifies its waiters.
fn end_released(
    node: &Arc<Node>,
    failure: Option<CommandFailure>,
    times: Option<ExecutionTimes>,
    reported: &mut Vec<ReportedEnd>,
) {
    if let Some(failure) = &failure {
        counters().failures.add(1);
        let is_dependent = matches!(failure.kind(), FailureKind::Dependency(_));
        node.inner.lock().failure = Some(failure.clone());
        // A host accessor's failure is the result of the call that makes it, and a part's that of its command.
        if node.kind != NodeKind::HostAccess && !node.is_part.load(Ordering::Relaxed) {
            node.shared.errors.push(node, is_dependent);
        }
    }
    let (waiters, event, epoch, work, dependencies, plug_ins) = {
        let mut inner = node.inner.lock();
        inner.times = times;
        inner.begin_with_parts();
        let state = match &failure {
            None => SUCCEEDED,
            // What parts of the command have done is done.
            Some(failure)
                if !failure.has_run()
                    && inner.dependencies.iter().take(inner.n_parts as usize).all(|part| part.node.did_not_run()) =>
            {
                DID_NOT_RUN
            }
            Some(_) => FAILED,
        };
        node.state.store(state, Ordering::Release);
        let dependencies = std::mem::take(&mut inner.dependencies);
        let (waiters, plug_ins) = (std::mem::take(&mut inner.waiters), std::mem::take(&mut inner.plug_ins));
        (waiters, inner.event.take(), inner.epoch.take(), inner.work.take(), dependencies, plug_ins)
    };
    counters().nodes_completed.add(1);
    drop(event);
    dependencies.into_iter().for_each(|dependency| Node::release(dependency.node));
    if let Some(work) = work {
        DeferredDrops::drop_or_keep((work, plug_ins));
    } else {
        drop(plug_ins);
    }
    if !waiters.is_empty() {
        notify(waiters, reported);
    }
    // What was never issued has a place only where it was refused.
    give_back_places(node);
    // Last: a wait for the epoch must find everything else done.
    drop(epoch);
}

/// The description of the buffer in `holds` that contains `address`, for messages. `None` if there is no such buffer.
fn description_of(address: usize, kept_alive: &[KeptAlive]) -> Option<String> {
    kept_alive.iter().find_map(|kept| match kept {
        KeptAlive::Buffer(buffer) if buffer.contains(address) => Some(buffer.description()),
        _ => None,
    })
}

fn notify(waiters: Vec<Waiter>, reported: &mut Vec<ReportedEnd>) {
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
            Waiter::ToEnd(ended) => reported.push(ended),
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
        node = node.id.number(),
        name = node.title.name(),
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
            name: node.title.name().to_owned(),
            place: node.title.place,
            arguments: node.title.arguments,
            code: node.title.code(),
            category,
            device: node.shared.device_name().to_owned(),
            start: times.start,
            end: times.end,
            node: node.id,
        });
    }
}
