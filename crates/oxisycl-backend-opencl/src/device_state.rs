//! The state that all queues of one device share: the context, the lanes, and the thread that waits in some drivers.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use oxisycl_backend::driver::Worker;
use oxisycl_backend::lane::Lanes;
use oxisycl_backend::poller::{Counts, Progress};

use crate::clock::Clock;
use crate::context::Context;
use crate::driver_wait;
use crate::lane::OpenCl;
use crate::launch_shape::GroupLimits;
use crate::process_exit;

/// How long a lost device waits for commands whose end the driver has not reported.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) struct DeviceState {
    pub(crate) context: Arc<Context>,
    pub(crate) lanes: Lanes<OpenCl>,
    pub(crate) clock: Clock,
    /// The limits of the device; kernels may have lower ones.
    pub(crate) limits: GroupLimits,
    /// The time when the loss of the device was found.
    lost_since: OnceLock<Instant>,
    /// Whether the driver executes commands on threads that wait for them (the quirk `waiting-threads`).
    pub(crate) has_waiting_thread: bool,
    pub(crate) driver_waiter: Arc<Worker>,
    itself: Weak<Self>,
}

impl DeviceState {
    pub(crate) fn new(context: Arc<Context>, limits: GroupLimits, has_waiting_thread: bool) -> Arc<Self> {
        let state = Arc::new_cyclic(|itself| Self {
            lanes: Lanes::default(),
            clock: Clock::of(&context),
            context: context.clone(),
            limits,
            lost_since: OnceLock::new(),
            has_waiting_thread,
            driver_waiter: Arc::default(),
            itself: itself.clone(),
        });
        let weak = Arc::downgrade(&state);
        if context.quirks.process_end {
            process_exit::add(weak.clone());
        }
        context.set_suspects(move || weak.upgrade().and_then(|state| state.lanes.suspects()));
        state
    }

    /// Whether a lost device no longer waits for its tasks.
    pub(crate) fn has_given_up(&self) -> bool {
        self.context.is_lost() && self.lost_since.get_or_init(Instant::now).elapsed() > GRACE
    }
}

impl Progress for DeviceState {
    fn counts(&self) -> &Counts {
        &self.lanes.counts
    }

    fn poll(&self, _is_idle: bool) -> bool {
        let progress = self.lanes.poll(self, true);
        if !progress
            && self.lanes.counts.has_commands()
            && let Some(state) = self.itself.upgrade()
        {
            driver_wait::call(&state);
        }
        if self.clock.is_stale()
            && let Some(_guard) = process_exit::begin_driver_call()
        {
            self.clock.renew(&self.context);
        }
        progress
    }
}

impl Drop for DeviceState {
    fn drop(&mut self) {
        // In a forked child there are no threads, and their locks may be held for ever.
        if !self.context.is_foreign() {
            self.driver_waiter.close();
        }
    }
}
