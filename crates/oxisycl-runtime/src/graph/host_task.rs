//! Host tasks: user code in the place of a command, on a thread of the executor.
//!
//! Knows which host task the calling thread runs, so that a wait of a host task for itself is found. A panic of the
//! task is its node's failure; it never reaches the executor. A task that cannot run is dropped in the same place, and
//! so is what the user lent to a command. No destructor of the user's runs on a thread that ends other commands, such
//! as the poller of a device.

use std::any::Any;
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxisycl_backend::{BackendError, CommandFailure, ExecutionTimes, FailureKind, Outcome, now};
use smallvec::SmallVec;

use super::complete::finish;
use super::deferred_drops::{DeferredDrops, discard};
use super::host_executor;
use super::node::{HANDED_OVER, KeptAlive, Node};
use super::panic_place;

/// The closure of a host task.
pub type HostWork = Box<dyn FnOnce() + Send>;

thread_local! {
    static HOST_TASK: RefCell<Option<Arc<Node>>> = const { RefCell::new(None) };
}

/// The host task that the calling thread is executing. `None` outside of host tasks.
pub fn current_host_task() -> Option<Arc<Node>> {
    HOST_TASK.try_with(|task| task.borrow().clone()).ok().flatten()
}

/// Runs `work` on a thread of the executor, and ends `node` after that.
pub(super) fn run_host_task(node: &Arc<Node>, work: HostWork) {
    node.state.store(HANDED_OVER, Ordering::Release);
    let task = node.clone();
    let job = Box::new(move || {
        let start = now();
        let result = in_task(&task, work);
        let times = ExecutionTimes { start, end: now() };
        let result = result.map_err(|Panic { message, location }| {
            let kind = FailureKind::Panic { message, location, item: None };
            CommandFailure::new(task.label(), task.shared.device_name(), kind)
        });
        finish(&task, Outcome { times: Some(times), ..Outcome::ran(result) });
    });
    if let Err((job, error)) = host_executor::spawn(job) {
        DeferredDrops::drop_or_keep(job);
        let code = error.raw_os_error().unwrap_or(0).into();
        let error = BackendError::Driver { call: "starting a thread", code, name: error.to_string() };
        let kind = FailureKind::Device(error);
        let failure = CommandFailure::new(node.label(), node.shared.device_name(), kind);
        finish(node, Outcome::refused(failure));
    }
}

/// Ends `node`, which cannot run, with `failure`. The destructor of `work` is user code, as `work` itself is. It may
/// wait for commands that the calling thread has yet to release, so it runs where the task would have.
pub(super) fn drop_host_task(node: &Arc<Node>, work: HostWork, failure: CommandFailure) {
    let (task, outcome) = (node.clone(), Outcome::refused(failure.clone()));
    let job = Box::new(move || {
        // A panic is no failure of its own: the task has one already.
        let _ = in_task(&task, || drop(work));
        finish(&task, outcome);
    });
    if let Err((job, _)) = host_executor::spawn(job) {
        DeferredDrops::drop_or_keep(job);
        finish(node, Outcome::refused(failure));
    }
}

/// Drops the user's loans to `node` on a thread where user code may block, and then calls `end`. A panic of a destructor is left to the
/// panic hook.
pub(super) fn drop_loans(node: &Arc<Node>, loans: SmallVec<[KeptAlive; 3]>, end: impl FnOnce() + Send + 'static) {
    let task = node.clone();
    host_executor::spawn_detached(Box::new(move || {
        let _ = in_task(&task, || drop(loans));
        end();
    }));
}

/// A panic of a host task.
struct Panic {
    message: String,
    location: Option<String>,
}

/// Calls `f` as a part of the host task `task`, and catches its panic.
fn in_task(task: &Arc<Node>, f: impl FnOnce()) -> Result<(), Panic> {
    HOST_TASK.set(Some(task.clone()));
    let (result, location) = panic_place::of(|| std::panic::catch_unwind(AssertUnwindSafe(f)));
    HOST_TASK.set(None);
    result.map_err(|payload| {
        let message = panic_message(&*payload);
        discard(payload);
        Panic { message, location }
    })
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic payload of unknown type".to_owned())
}
