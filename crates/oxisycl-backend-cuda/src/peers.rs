//! Peer access between the devices of a platform.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use oxisycl_backend::MemoryId;
use parking_lot::Mutex;

use crate::context::Context;
use crate::sys::{Driver, RawContext, RawDevice};

/// One device.
struct Peer {
    memory: MemoryId,
    context: RawContext,
    device: RawDevice,
}

#[derive(Default)]
pub(crate) struct Peers {
    /// All devices of the platform. Set once, when they are known.
    all: OnceLock<Vec<Peer>>,
    /// Pairs of devices of which the first may access the second.
    reachable: OnceLock<HashSet<(RawDevice, RawDevice)>>,
    /// Pairs of contexts between which peer access was requested.
    enabled: Mutex<Vec<(RawContext, RawContext)>>,
}

impl Peers {
    /// Sets the devices of the platform.
    pub(crate) fn set(&self, contexts: &[Arc<Context>]) {
        let peer =
            |context: &Arc<Context>| Peer { memory: context.memory, context: context.raw, device: context.device };
        let mut reachable = HashSet::new();
        for from in contexts {
            for to in contexts {
                if from.device != to.device && can_access(&from.driver, from.device, to.device) {
                    reachable.insert((from.device, to.device));
                }
            }
        }
        let _ = self.all.set(contexts.iter().map(peer).collect());
        let _ = self.reachable.set(reachable);
    }

    /// The context that the memory belongs to; `None` for the host's memory.
    pub(crate) fn context_of(&self, memory: MemoryId) -> Option<RawContext> {
        if memory == MemoryId::HOST { None } else { self.peer(memory).map(|peer| peer.context) }
    }

    /// Whether `own` can copy from and to the memory.
    pub(crate) fn can_reach(&self, own: &Context, memory: MemoryId) -> bool {
        if memory == MemoryId::HOST || memory == own.memory {
            return true;
        }
        let reachable = self.reachable.get();
        self.peer(memory).is_some_and(|peer| reachable.is_some_and(|pairs| pairs.contains(&(own.device, peer.device))))
    }

    fn peer(&self, memory: MemoryId) -> Option<&Peer> {
        self.all.get()?.iter().find(|peer| peer.memory == memory)
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

fn can_access(driver: &Driver, device: RawDevice, peer: RawDevice) -> bool {
    let mut can = 0;
    // SAFETY: writes a number; both are devices of this driver.
    unsafe { driver.device_can_access_peer(&raw mut can, device, peer) }.is_ok() && can != 0
}
