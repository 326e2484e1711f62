//! A pool of driver queues, which are reused while their context lives.
//!
//! A driver may not bear that a queue is released soon after its last command has ended (the quirk `queue-release`). It tells the end of a
//! kernel before the thread that ran it has released the queue. If that thread turns out to hold it last, it waits for ever for the very
//! command that it is cleaning up. On a small machine it is the only thread that the driver has. `clFinish` does not help: it returns before.
//!
//! Invariants:
//! - A queue that is idle here has no command that has not ended, and no other code has its handle.
//! - What remains of a context of such a driver is released when another one is made, and not before [`RELEASE_DELAY`] has passed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::{Result, check};
use crate::sys::{Functions, Object};

/// How long the driver's threads get to release the queues that they used.
const RELEASE_DELAY: Duration = Duration::from_secs(10);

/// Contexts that were dropped and not released yet.
static RETIRED_CONTEXTS: Mutex<Vec<RetiredContext>> = Mutex::new(Vec::new());

/// The unused queues of a context.
#[derive(Default)]
pub(crate) struct QueuePool {
    /// Queues for reuse, with the properties that they were made with.
    idle: Mutex<Vec<(Vec<u64>, Object)>>,
    /// Queues that will not be used again.
    retired: Mutex<Vec<Object>>,
}

impl QueuePool {
    /// Takes or makes a queue with these properties, a list that ends with zero.
    pub(crate) fn take(
        &self,
        functions: &Functions,
        (context, device): (Object, Object),
        properties: &[u64],
    ) -> Result<Object> {
        let mut idle = self.idle.lock();
        if let Some(index) = idle.iter().position(|(has, _)| has == properties) {
            return Ok(idle.swap_remove(index).1);
        }
        drop(idle);
        let mut result = 0;
        // SAFETY: a live context with its device, and a list of properties that ends with zero.
        let raw = unsafe {
            let create = functions.clCreateCommandQueueWithProperties;
            create(context.0, device.0, properties.as_ptr(), &raw mut result)
        };
        check("clCreateCommandQueueWithProperties", result)?;
        Ok(Object(raw))
    }

    /// Returns a queue whose commands have all ended, and whose handle no other code has.
    pub(crate) fn give_back(&self, properties: Vec<u64>, queue: Object) {
        self.idle.lock().push((properties, queue));
    }

    /// Returns a queue that cannot be used again.
    pub(crate) fn retire(&self, queue: Object) {
        self.retired.lock().push(queue);
    }

    fn into_queues(self) -> Vec<Object> {
        let mut queues = self.retired.into_inner();
        queues.extend(self.idle.into_inner().into_iter().map(|(_, queue)| queue));
        queues
    }
}

/// The objects of a dropped context that were not released yet.
pub(crate) struct RetiredContext {
    functions: Arc<Functions>,
    queues: Vec<Object>,
    context: Object,
    /// The device, if it has to be released.
    sub_device: Option<Object>,
    since: Instant,
    generation: u32,
}

impl RetiredContext {
    /// The objects of a context that is being dropped.
    pub(crate) fn new(
        functions: &Arc<Functions>,
        pool: QueuePool,
        context: Object,
        sub_device: Option<Object>,
        generation: u32,
    ) -> Self {
        let (functions, queues, since) = (functions.clone(), pool.into_queues(), Instant::now());
        Self { functions, queues, context, sub_device, since, generation }
    }

    /// Releases the objects.
    pub(crate) fn release(self) {
        let Self { functions, queues, context, sub_device, .. } = self;
        // SAFETY: owned by `self`, each released once, and the context after what was made in it.
        unsafe {
            for queue in queues {
                (functions.clReleaseCommandQueue)(queue.0);
            }
            (functions.clReleaseContext)(context.0);
            if let Some(device) = sub_device {
                (functions.clReleaseDevice)(device.0);
            }
        }
    }
}

/// Keeps the objects of a context until they can be released.
pub(crate) fn retire_context(context: RetiredContext) {
    RETIRED_CONTEXTS.lock().push(context);
}

/// Releases the contexts that were kept long enough.
pub(crate) fn release_retired(generation: u32) {
    let mut retired = RETIRED_CONTEXTS.lock();
    let (released, others) = std::mem::take(&mut *retired)
        .into_iter()
        .partition::<Vec<_>, _>(|retired| retired.since.elapsed() >= RELEASE_DELAY);
    *retired = others;
    drop(retired);
    // Those of the process that this one was forked from are not this one's.
    released.into_iter().filter(|retired| retired.generation == generation).for_each(RetiredContext::release);
}
