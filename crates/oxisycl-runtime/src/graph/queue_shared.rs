//! The part of a queue that its commands need.

use std::ffi::c_void;
use std::sync::{Arc, Weak};
use std::time::Duration;

use oxisycl_backend::{BackendError, Device, EventDomain, MAX_PRINTING, Queue, QueueInfo, QueueOptions, poller};
use parking_lot::Mutex;

use super::AsyncErrors;
use super::gate::{Gate, gate_of};
use super::node::Node;
use super::places::{Place, Places};
use crate::ids::{DomainId, QueueId};
use crate::observe::trace;

/// The part of a queue that outlives it, because commands still need it.
pub struct QueueShared {
    /// Identity, for messages.
    pub id: QueueId,
    /// Events can be passed to the backend within a domain. Across domains the scheduler waits for them.
    pub domain: DomainId,
    /// Events can be passed to the backend within an event domain, too ([`QueueInfo::event_domain`]).
    pub(super) event_domain: EventDomain,
    /// The device.
    pub device: Arc<dyn Device>,
    /// The backend's queue.
    pub queue: Arc<dyn Queue>,
    /// How the queue was made.
    pub options: QueueOptions,
    /// The undelivered errors of the queue's commands.
    pub errors: Arc<AsyncErrors>,
    /// Whether the backend starts commands in the order of issue ([`QueueInfo::keeps_order`]).
    pub keeps_order: bool,
    /// Whether the backend takes native commands ([`QueueInfo::takes_native`]).
    pub takes_native: bool,
    /// How long a waiting thread helps without success before it sleeps ([`QueueInfo::help_timeout`]).
    pub(super) help_timeout: Duration,
    /// The delayed commands, for finding out why a wait is stuck.
    pub(super) delayed: Mutex<Delayed>,
    /// The gate of the device, if it has one.
    pub(super) gate: Option<Arc<Gate>>,
    /// The places of each kind.
    places: [Places; Place::ALL.len()],
}

/// The list of delayed commands of a queue. Some of them may have been released since.
#[derive(Default)]
pub(super) struct Delayed {
    nodes: Vec<Weak<Node>>,
    n_released: usize,
}

impl Delayed {
    /// Adds a delayed command.
    pub(super) fn add(&mut self, node: &Arc<Node>) {
        self.nodes.push(Arc::downgrade(node));
    }

    /// The commands that are still delayed.
    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.iter().filter_map(Weak::upgrade).filter(|node| !node.is_handed_over()).collect()
    }

    /// Counts a released command. The list is compacted so that it has memory for about as many commands as are delayed.
    fn count_released(&mut self) {
        self.n_released += 1;
        if 2 * self.n_released > self.nodes.len() {
            self.nodes.retain(|node| node.upgrade().is_some_and(|node| !node.is_handed_over()));
            self.nodes.shrink_to(2 * self.nodes.len());
            self.n_released = 0;
        }
    }
}

impl QueueShared {
    /// Creates a queue of a backend. If the device does not report commands by itself, also starts a thread that polls for them.
    pub(crate) fn create_queue(device: &dyn Device, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        Self::polled(device.create_queue(options)?)
    }

    /// Puts a queue on one of the driver, as [`create_queue`](Self::create_queue) creates one. Commands have times without being asked where the
    /// driver's queue records them and a trace needs them.
    ///
    /// # Safety
    /// As for [`Device::adopt_queue`].
    pub(crate) unsafe fn adopt_queue(
        device: &dyn Device,
        native: *mut c_void,
        options: &QueueOptions,
    ) -> Result<Arc<dyn Queue>, BackendError> {
        let traced = QueueOptions { profiling: options.profiling || trace().is_on(), ..*options };
        // SAFETY: by the contract of this function.
        let queue = unsafe { device.adopt_queue(native, &traced) };
        Self::polled(match queue {
            Err(BackendError::Unsupported { .. }) if traced != *options => {
                // SAFETY: as above.
                unsafe { device.adopt_queue(native, options) }?
            }
            queue => queue?,
        })
    }

    fn polled(queue: Arc<dyn Queue>) -> Result<Arc<dyn Queue>, BackendError> {
        poller::start(&queue.info()).map_err(|error| {
            let code = error.raw_os_error().unwrap_or(0).into();
            BackendError::Driver { call: "starting a thread", code, name: error.to_string() }
        })?;
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
        let gate = gate_of(&device);
        if let Some(gate) = &gate {
            gate.add(&queue);
        }
        let QueueInfo { keeps_order, max_unfinished, event_domain, takes_native, help_timeout, .. } = queue.info();
        Arc::new(Self {
            id: QueueId::unique(),
            domain,
            event_domain,
            device,
            queue,
            options,
            errors,
            keeps_order,
            takes_native,
            help_timeout,
            delayed: Mutex::default(),
            gate,
            places: [Places::new(MAX_PRINTING), Places::new(max_unfinished)],
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

    /// Called when a delayed command was released: counts it.
    pub(super) fn count_released(&self) {
        self.delayed.lock().count_released();
    }
}
