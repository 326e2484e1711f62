//! Contexts: a set of devices whose queues can wait for each other's events.

use std::any::Any;
use std::sync::Arc;

use oxisycl_backend::Device;
use parking_lot::Mutex;

use super::queue::State;
use crate::graph::AsyncHandler;
use crate::ids::{ContextId, DomainId};
use crate::plug_ins::Loaded;

/// A set of devices whose queues can wait for each other's events (SYCL 2020 section 4.6.3).
pub struct Context {
    id: ContextId,
    domain: DomainId,
    devices: Vec<Arc<dyn Device>>,
    handler: Option<AsyncHandler>,
    /// Of queues that exist, and of those that are gone while their commands run.
    queues: Mutex<Vec<Arc<Mutex<State>>>>,
    /// Of the handler. The last field.
    _library: Option<Loaded>,
}

impl Context {
    /// A context of `devices`, which belong to one platform (checked by the caller).
    pub fn new(devices: Vec<Arc<dyn Device>>, handler: Option<AsyncHandler>) -> Arc<Self> {
        let library = handler.as_deref().and_then(Loaded::with_methods);
        Arc::new(Self {
            id: ContextId::unique(),
            domain: DomainId::unique(),
            devices,
            handler,
            queues: Mutex::default(),
            _library: library,
        })
    }

    /// Identity.
    pub fn id(&self) -> ContextId {
        self.id
    }

    /// Events of one domain can be passed to the backend as they are.
    pub(super) fn domain(&self) -> DomainId {
        self.domain
    }

    /// The devices.
    pub fn devices(&self) -> &[Arc<dyn Device>] {
        &self.devices
    }

    /// Who gets asynchronous errors of queues without a handler of their own.
    pub fn handler(&self) -> Option<&AsyncHandler> {
        self.handler.as_ref()
    }

    pub(super) fn add_queue(&self, queue: Arc<Mutex<State>>) {
        let mut queues = self.queues.lock();
        if queues.len() == queues.capacity() {
            queues.retain(|queue| Arc::strong_count(queue) > 1 || !queue.lock().is_idle());
        }
        queues.push(queue);
    }

    /// Drops `garbage` once every command submitted to any queue of the context before the call has ended.
    pub fn discard(&self, garbage: impl Any + Send + Sync) {
        let garbage = Arc::new(garbage);
        let queues = self.queues.lock().clone();
        for queue in queues {
            queue.lock().discard(Box::new(garbage.clone()));
        }
    }
}
