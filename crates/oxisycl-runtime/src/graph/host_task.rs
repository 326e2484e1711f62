//! Host tasks: user code in the place of a command, on a thread of the executor.
//!
//! Knows which host task the calling thread runs, so that a wait of a host task for itself is found. A panic of the task is its
//! node's failure; it never reaches the executor.

use std::any::Any;
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxisycl_backend::{BackendError, CommandFailure, ExecutionTimes, FailureKind, Outcome};

use super::complete::finish;
use super::deferred_drops::{discard, drop_user_value};
use super::host_executor;
use super::node::{HANDED_OVER, Node};

/// What a host task does.
pub type HostWork = Box<dyn FnOnce() + Send>;

thread_local! {
    static HOST_TASK: RefCell<Option<Arc<Node>>> = const { RefCell::new(None) };
}

/// The host task that the calling thread runs, if it does.
pub fn current_host_task() -> Option<Arc<Node>> {
    HOST_TASK.try_with(|task| task.borrow().clone()).ok().flatten()
}

/// Runs `work` on a thread of the executor; `node` ends when it has.
pub(super) fn run_host_task(node: &Arc<Node>, work: HostWork) {
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

fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic payload of unknown type".to_owned())
}
