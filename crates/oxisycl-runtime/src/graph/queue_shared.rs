//! The part of a queue that its commands need.

use std::sync::{Arc, Weak};
use std::time::Duration;

use oxisycl_backend::{BackendError, Device, MOST_PRINTING, Queue, QueueInfo, QueueOptions, poller};
use parking_lot::Mutex;

use super::AsyncErrors;
use super::node::Node;
use super::places::{Place, Places};
use crate::ids::{DomainId, QueueId};

/// The part of a queue that outlives it, because commands still need it.
pub struct QueueShared {
    /// Identity, for messages.
    pub id: QueueId,
    /// Events can be passed to the backend within a domain; across domains the scheduler waits itself.
    pub domain: DomainId,
    /// The device.
    pub device: Arc<dyn Device>,
    /// The backend's queue.
    pub queue: Arc<dyn Queue>,
    /// How the queue was made.
    pub options: QueueOptions,
    /// What failed.
    pub errors: Arc<AsyncErrors>,
    /// Whether the backend keeps the order of what it is given ([`QueueInfo::keeps_order`]).
    pub keeps_order: bool,
    /// For how long a waiting thread helps in vain ([`QueueInfo::patience`]).
    pub(super) patience: Duration,
    /// Commands that were delayed, for finding out why a wait is stuck.
    pub(super) delayed: Mutex<Delayed>,
    /// The places of each kind.
    places: [Places; Place::ALL.len()],
}

/// Commands that were delayed and, some of them, released since.
#[derive(Default)]
pub(super) struct Delayed {
    nodes: Vec<Weak<Node>>,
    n_released: usize,
}

impl Delayed {
    /// Adds a command.
    pub(super) fn add(&mut self, node: &Arc<Node>) {
        self.nodes.push(Arc::downgrade(node));
    }

    /// The commands that are still delayed.
    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.iter().filter_map(Weak::upgrade).filter(|node| !node.is_handed_over()).collect()
    }

    /// Counts a command that was released. The list keeps the memory of about as many as are delayed.
    fn forget_one(&mut self) {
        self.n_released += 1;
        if 2 * self.n_released > self.nodes.len() {
            self.nodes.retain(|node| node.upgrade().is_some_and(|node| !node.is_handed_over()));
            self.nodes.shrink_to(2 * self.nodes.len());
            self.n_released = 0;
        }
    }
}

impl QueueShared {
    /// A queue of a backend, with a thread that polls for its commands where the device does not report them by itself.
    pub(crate) fn create_queue(device: &dyn Device, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        let queue = device.create_queue(options)?;
        if let Some(progress) = queue.info().progress {
            poller::start(&progress).map_err(|error| {
                let code = error.raw_os_error().unwrap_or(0).into();
                BackendError::Driver { call: "starting a thread", code, name: error.to_string() }
            })?;
        }
        Ok(queue)
    }

    /// The shared part of a new queue.
    pub(crate) fn new(
        domain: DomainId,
        device: Arc<dyn Device>,
        queue: Arc<dyn Queue>,
        options: QueueOptions,
        errors: Arc<AsyncErrors>,
    ) -> Arc<Self> {
        let QueueInfo { keeps_order, most_unfinished, patience, .. } = queue.info();
        Arc::new(Self {
            id: QueueId::unique(),
            domain,
            device,
            queue,
            options,
            errors,
            keeps_order,
            patience,
            delayed: Mutex::default(),
            places: [Places::new(MOST_PRINTING), Places::new(most_unfinished)],
        })
    }

    /// The device's name.
    pub fn device_name(&self) -> &str {
        &self.device.info().name
    }

    /// The places of a kind.
    pub(super) fn places(&self, place: Place) -> &Places {
        &self.places[place as usize]
    }

    /// A command that was listed is delayed no longer.
    pub(super) fn forget_delayed(&self) {
        self.delayed.lock().forget_one();
    }
}
