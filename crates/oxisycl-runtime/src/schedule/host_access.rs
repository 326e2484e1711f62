//! Host accessors: the host as a user of a buffer, in the same order as everything else.

use std::sync::Arc;

use oxisycl_types::AccessMode;
use smallvec::SmallVec;

use super::plan::{Dependencies, commit, plan};
use super::queue::remove_repetitions;
use super::requirement::{BufferView, Requirement};
use super::transfer::{Requester, bring, record, transfer_queue};
use crate::graph::{
    DeferredDrops, KeptAlive, Node, NodeKind, Work, forbid_blocking, forbid_endless_wait, start, wait_for_grant,
    wait_for_node,
};
use crate::memory::BufferCore;
use crate::observe::counters;
use crate::state::Region;
use crate::{Error, Result};

/// The right of one thread to use a range of a buffer on the host, until it is dropped. Commands that conflict with it and are
/// submitted meanwhile are delayed.
pub struct HostAccess {
    node: Arc<Node>,
    requirement: Requirement,
    pointer: *mut u8,
}

impl HostAccess {
    /// Blocks until all conflicting commands submitted before have ended and the data is on the host.
    ///
    /// Errors: `Invalid` if the range is outside the buffer, or if called inside a kernel. `Invalid`, too, if this
    /// thread itself holds a host accessor that it would wait for. The error of the command that wrote the data, if it
    /// failed.
    pub fn new(view: &BufferView, elements: &Region, mode: AccessMode, no_init: bool) -> Result<Self> {
        forbid_blocking("a host access")?;
        let deferred = DeferredDrops::enter();
        let host = crate::runtime::get().ok_or_else(|| Error::invalid("the runtime was not initialised"))?.host();
        let requirement = view.require(elements, mode, no_init, host)?;
        let shared = transfer_queue(host)?;
        counters().host_accessors.add(1);
        let core = requirement.core().clone();
        let node;
        let before: SmallVec<[Arc<Node>; 4]>;
        {
            let mut state = core.lock();
            let mut dependencies = Dependencies::new();
            let mut missing = Vec::new();
            plan(&requirement, &state, &mut dependencies, &mut missing);
            // Now rather than in the wait below: the node of an accessor that was never granted would count as a writer.
            before = dependencies.iter().map(|d| d.node.clone()).collect();
            forbid_endless_wait(&before)?;
            let requester = Requester { shared: &shared, epoch: None };
            bring(&requester, &core, &mut state, requirement.allocation, missing, &mut dependencies)?;
            remove_repetitions(&mut dependencies);
            let kept_alive = SmallVec::from_iter([KeptAlive::Buffer(core.clone())]);
            node = Node::new(NodeKind::HostAccess, "host accessor", shared, None, kept_alive);
            record(&node, &dependencies);
            // SAFETY: the node was made above, and is no command.
            unsafe { start(&node, Work::HostAccess, &dependencies) }?;
            commit(&requirement, &mut state, &node);
        }
        // Commands that end while this thread waits go on at once.
        drop(deferred);
        let pointer = requirement.pointer.as_ptr().wrapping_add(view.byte_offset);
        let access = Self { node, requirement, pointer };
        // Dropped on an error, which ends the node as a writer that succeeded. The node has changed nothing, so the bytes stay what they
        // were. With `no_init` the caller had given up the old contents before the call, and it gets the error.
        wait_for_grant(&access.node)?;
        match access.node.failure() {
            None => Ok(access),
            Some(failure) => {
                before.iter().filter(|node| node.has_failed()).for_each(|node| node.mark_observed());
                failure.mark_seen();
                let root = Error::from(failure.root());
                let message =
                    format!("the data of {core} is not available because a command that wrote or moved it failed");
                Err(Error::with_source(root.code(), message, root))
            }
        }
    }

    /// First byte of the *view* on the host.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// What was asked for.
    pub fn requirement(&self) -> &Requirement {
        &self.requirement
    }
}

impl Drop for HostAccess {
    fn drop(&mut self) {
        // SAFETY: this is the end of what gives the right, and `pointer` is not used any more.
        unsafe { self.node.end_host_access() };
    }
}

/// Blocks until no command uses the buffer. Commands submitted meanwhile by other threads are not waited for.
pub fn quiesce(core: &Arc<BufferCore>) -> Result {
    forbid_blocking("a wait for a buffer")?;
    let users = core.lock().users(core);
    for node in users {
        wait_for_node(&node)?;
    }
    Ok(())
}

/// Copies what is missing of a buffer's data to its allocation on `device`, after the commands that write it.
pub fn bring_to(view: &BufferView, device: &Arc<dyn oxisycl_backend::Device>) -> Result {
    let requirement = view.require(&Region::whole(view.extent), AccessMode::Read, false, device)?;
    let shared = transfer_queue(device)?;
    let core = requirement.core();
    let mut state = core.lock();
    let mut dependencies = Dependencies::new();
    let mut missing = Vec::new();
    plan(&requirement, &state, &mut dependencies, &mut missing);
    let requester = Requester { shared: &shared, epoch: None };
    bring(&requester, core, &mut state, requirement.allocation, missing, &mut dependencies)?;
    drop(state);
    for dependency in dependencies {
        wait_for_node(&dependency.node)?;
        if let Some(failure) = dependency.node.failure() {
            return Err(Error::from(&failure));
        }
    }
    Ok(())
}
