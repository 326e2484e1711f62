//! Blocking a thread until something of the graph is done: helping, spinning, parking, and finding out when that can never end.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxisycl_types::ErrorCode;

use super::blocking::forbid_blocking;
use super::node::{Node, NodeKind};
use super::queue_shared::QueueShared;
use super::way::execute_one;
use super::{EpochSignal, current_host_task};
use crate::output::report;
use crate::{Error, Result};

/// How often a sleeping thread checks again whether its wait can end.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// After how long a wait is reported as stalled, and how often again.
const STALL_INTERVAL: Duration = Duration::from_secs(10);

/// Returns an error if a wait of this thread for `nodes` could never end.
pub fn forbid_endless_wait(nodes: &[Arc<Node>]) -> Result {
    if nodes.is_empty() {
        return Ok(());
    }
    forbid_waiting_for_parent()?;
    stuck_on(nodes).map_or(Ok(()), Err)
}

/// Returns an error in a forked process whose parent had pending commands.
fn forbid_waiting_for_parent() -> Result {
    if crate::fork::has_left_commands() {
        let message =
            "the process was forked while commands were pending: they end in the parent only, so this wait cannot end";
        return Err(Error::new(ErrorCode::Runtime, message));
    }
    Ok(())
}

/// Waits until `node` has ended, with or without a failure.
pub fn wait_for_node(node: &Arc<Node>) -> Result {
    wait_until(
        &|| node.is_complete(),
        &|| node.register_thread(),
        &|| stuck_on(std::slice::from_ref(node)),
        &|| describe(node),
        &node.shared,
    )
}

/// Waits until a host accessor is granted or has failed.
pub fn wait_for_grant(node: &Arc<Node>) -> Result {
    wait_until(
        &|| node.is_handed_over(),
        &|| node.register_thread(),
        &|| stuck_on(&node.blockers()),
        &|| describe(node),
        &node.shared,
    )
}

/// Waits until all commands of an epoch of `shared` have ended.
pub fn wait_for_epoch(signal: &EpochSignal, shared: &QueueShared) -> Result {
    let delayed = || shared.delayed.lock().nodes();
    wait_until(
        &|| signal.is_dead(),
        &|| signal.register_thread(),
        &|| {
            if current_host_task().is_some_and(|task| task.shared.id == shared.id) {
                return Some(Error::invalid("a host task waits for its own queue, and so for itself"));
            }
            stuck_on(&delayed())
        },
        &|| {
            let blocked: Vec<String> = delayed().iter().map(describe).collect();
            format!(
                "queue {} on device \"{}\" ({} delayed: {})",
                shared.id,
                shared.device_name(),
                blocked.len(),
                blocked.join("; ")
            )
        },
        shared,
    )
}

fn wait_until(
    done: &dyn Fn() -> bool,
    register: &dyn Fn(),
    stuck: &dyn Fn() -> Option<Error>,
    describe: &dyn Fn() -> String,
    shared: &QueueShared,
) -> Result {
    if done() {
        return Ok(());
    }
    forbid_blocking("a wait")?;
    forbid_waiting_for_parent()?;
    if let Some(error) = stuck() {
        return Err(error);
    }
    let queue = &*shared.queue;
    let began = Instant::now();
    let mut next_stall = STALL_INTERVAL;
    loop {
        let mut idle_since = None;
        let mut n_spins = 0u32;
        queue.help(&mut |has_helped| {
            if done() {
                return false;
            }
            if has_helped || execute_one(Some(queue)) {
                idle_since = None;
                return true;
            }
            std::hint::spin_loop();
            n_spins += 1;
            let mut is_idle = || idle_since.get_or_insert_with(Instant::now).elapsed() > shared.help_timeout;
            !(n_spins.is_multiple_of(16) && is_idle())
        });
        if done() {
            return Ok(());
        }
        register();
        if done() {
            return Ok(());
        }
        std::thread::park_timeout(CHECK_INTERVAL);
        if done() {
            return Ok(());
        }
        if let Some(error) = stuck() {
            return Err(error);
        }
        if began.elapsed() > next_stall {
            next_stall += STALL_INTERVAL;
            report(&format!("waiting for {:.0} s for {}", began.elapsed().as_secs_f64(), describe()));
        }
    }
}

fn describe(node: &Arc<Node>) -> String {
    let mut text = format!("{} on device \"{}\"", numbered(node), node.shared.device_name());
    if node.is_unloaded() {
        text.push_str(", whose code is loaded once no kernel of the device runs");
    }
    let blockers = node.blockers();
    if !blockers.is_empty() {
        let names: Vec<String> = blockers.iter().map(numbered).collect();
        text.push_str(", which is delayed by ");
        text.push_str(&names.join(", "));
    }
    text
}

fn numbered(node: &Arc<Node>) -> String {
    let of = node.accessed().map_or_else(String::new, |buffer| format!(" of {buffer}"));
    format!("node {}, {}{of}", node.id, node.label())
}

/// The error of a wait for `nodes` on this thread that can never end, else `None`. Such nodes wait, directly or not, for a host accessor
/// that this thread holds, or for the host task that it runs.
fn stuck_on(nodes: &[Arc<Node>]) -> Option<Error> {
    let thread = std::thread::current().id();
    let task = current_host_task();
    let mut seen = HashSet::new();
    let mut open = nodes.to_vec();
    while let Some(node) = open.pop() {
        if node.is_complete() || !seen.insert(node.id) {
            continue;
        }
        if node.kind == NodeKind::HostAccess && node.owner == Some(thread) {
            let of = node.accessed().map_or_else(String::new, |buffer| format!(" of {buffer}"));
            return Some(Error::invalid(format!(
                "the wait cannot end: this thread holds a host accessor{of} that blocks the command (drop the accessor first)"
            )));
        }
        if task.as_ref().is_some_and(|task| task.id == node.id) {
            return Some(Error::invalid(match node.kind {
                NodeKind::HostTask => "the wait cannot end: the command depends on the host task that waits for it",
                _ => "the wait cannot end: the command ends when the destructor that waits for it has returned",
            }));
        }
        if node.is_handed_over() {
            continue;
        }
        open.extend(node.blockers());
    }
    None
}
