//! Peer access between the devices of a platform.

use std::sync::Arc;

use oxisycl_backend::MemoryId;
use parking_lot::Mutex;

use crate::context::Context;
use crate::sys::RawContext;

/// The devices of a platform.
pub(crate) struct Peers {
    /// The context of each memory.
    contexts: Vec<(MemoryId, RawContext)>,
    /// Pairs of contexts between which peer access was requested.
    enabled: Mutex<Vec<(RawContext, RawContext)>>,
}

impl Peers {
    /// The devices of these contexts.
    pub(crate) fn new(contexts: &[Arc<Context>]) -> Self {
        let contexts = contexts.iter().map(|context| (context.memory, context.raw)).collect();
        Self { contexts, enabled: Mutex::default() }
    }

    /// The context that the memory belongs to; `None` for the host's memory.
    pub(crate) fn context_of(&self, memory: MemoryId) -> Option<RawContext> {
        self.contexts.iter().find(|(known, _)| *known == memory).map(|(_, context)| *context)
    }

    /// Enables peer access between the devices of two contexts in both directions, if they support it. Copies work without it, too, but
    /// slower. `current` is the current context.
    pub(crate) fn enable_peers(&self, current: &Context, one: RawContext, other: RawContext) {
        let pair = (one, other);
        let mut enabled = self.enabled.lock();
        if enabled.contains(&pair) {
            return;
        }
        enabled.push(pair);
        for (from, to) in [pair, (other, one)] {
            let driver = &current.driver;
            let mut popped = RawContext::NULL;
            // SAFETY: both contexts are retained by their devices, whose memory the caller's command uses. What is pushed is popped.
            unsafe {
                if driver.ctx_push_current(from).is_ok() {
                    // It may be enabled already, by another user of the driver.
                    let _ = driver.ctx_enable_peer_access(to, 0);
                    let _ = driver.ctx_pop_current(&raw mut popped);
                }
            }
        }
    }
}

/// The memories of the devices that a device can access.
pub(crate) fn memories(own: &Context, contexts: &[Arc<Context>]) -> Vec<MemoryId> {
    let can_access = |peer: &&Arc<Context>| {
        let mut can = 0;
        // SAFETY: writes a number; both are devices of this driver.
        let asked = unsafe { own.driver.device_can_access_peer(&raw mut can, own.device, peer.device) };
        peer.device != own.device && asked.is_ok() && can != 0
    };
    contexts.iter().filter(can_access).map(|context| context.memory).collect()
}
