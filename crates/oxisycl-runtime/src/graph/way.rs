//! How a command gets to its device.
//!
//! Most commands are issued at once: the device keeps the order, by the events that they are issued behind. A command that the device cannot
//! do behind others is executed by a thread of the host once everything before it has ended.

use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl_backend::{BackendError, Command, CommandFailure, DependencyKind, FailureKind, Operation, Outcome, Queue};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::complete::finish;
use super::host_executor;
use super::node::{Dependency, Node, NodeKind};
use super::start::start_command;

/// How a command gets to its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Issued behind events of commands that its backend has.
    Issue,
    /// Executed by a thread of the host once all its dependencies have ended.
    Execute,
}

impl Way {
    /// The way as a number that fits into an atomic.
    pub(super) const fn number(self) -> u8 {
        self as u8
    }

    /// The way of a number.
    pub(super) const fn of(number: u8) -> Self {
        match number {
            0 => Self::Issue,
            _ => Self::Execute,
        }
    }
}

/// Chooses the way of a command. Also returns the dependency that an executed command needs because of it: see [`end_of_queue`].
#[inline]
pub(super) fn choose(node: &Arc<Node>, command: &Command) -> Result<(Way, Option<Dependency>), BackendError> {
    match command {
        Command::Copy(_) | Command::Fill(_) if node.shared.queue.is_executed(command)? => {
            Ok((Way::Execute, end_of_queue(node)?))
        }
        _ => Ok((Way::Issue, None)),
    }
}

/// For a command that the host executes on an in-order queue whose backend keeps the order: a marker behind everything issued so far. The
/// backend's order does not include such a command, so that it has to depend on the marker.
fn end_of_queue(node: &Node) -> Result<Option<Dependency>, BackendError> {
    let shared = &node.shared;
    if !shared.options.in_order || !shared.keeps_order {
        return Ok(None);
    }
    let marker = Node::new(NodeKind::Command(Operation::Other), "marker", shared.clone(), None, SmallVec::new());
    // SAFETY: a marker uses no memory.
    unsafe { start_command(&marker, Command::Marker, SmallVec::new()) }?;
    Ok(Some(Dependency { node: marker, kind: DependencyKind::Order }))
}

/// Commands whose dependencies have ended and that wait for a host thread to execute them.
static COMMANDS: Mutex<VecDeque<(Arc<Node>, Command)>> = Mutex::new(VecDeque::new());
static N_COMMANDS: AtomicUsize = AtomicUsize::new(0);

/// Queues a command, whose dependencies have ended, for execution by a host thread. This is a thread of the executor, or one that waits for
/// the command's queue.
pub(super) fn execute(node: &Arc<Node>, command: Command) {
    COMMANDS.lock().push_back((node.clone(), command));
    N_COMMANDS.fetch_add(1, Ordering::Release);
    if let Err((_, error)) = host_executor::spawn(Box::new(|| _ = execute_one(None))) {
        let position =
            |commands: &VecDeque<(Arc<Node>, Command)>| commands.iter().position(|(other, _)| Arc::ptr_eq(other, node));
        let taken = {
            let mut commands = COMMANDS.lock();
            position(&commands).and_then(|position| commands.remove(position))
        };
        // Otherwise a waiting thread was faster.
        if let Some((node, command)) = taken {
            N_COMMANDS.fetch_sub(1, Ordering::Release);
            let code = error.raw_os_error().unwrap_or(0).into();
            let error = BackendError::Driver { call: "starting a thread", code, name: error.to_string() };
            let kind = FailureKind::Device(error);
            finish(&node, Outcome::refused(CommandFailure::new(command, node.shared.device_name(), kind)));
        }
    }
}

/// Executes one queued command of `queue`, or of any queue for `None`. Returns whether there was one. May block for as long as a transfer
/// takes.
pub(super) fn execute_one(queue: Option<&dyn Queue>) -> bool {
    if N_COMMANDS.load(Ordering::Acquire) == 0 {
        return false;
    }
    let taken = {
        let mut commands = COMMANDS.lock();
        let is_wanted =
            |node: &Node| queue.is_none_or(|queue| ptr::addr_eq(&raw const *queue, Arc::as_ptr(&node.shared.queue)));
        let position = commands.iter().position(|(node, _)| is_wanted(node));
        position.and_then(|position| commands.remove(position))
    };
    let Some((node, command)) = taken else { return false };
    N_COMMANDS.fetch_sub(1, Ordering::Release);
    // SAFETY: `start`'s contract. Memory lives until the node completes (`kept_alive`). All dependencies have ended, which orders the command
    // after everything that conflicts with it.
    let outcome: Outcome = unsafe { node.shared.queue.execute(&command) };
    drop(command);
    finish(&node, outcome);
    true
}
