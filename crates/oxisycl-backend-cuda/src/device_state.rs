//! The state that all queues of one device share: the context, its memory and pools, and the lanes.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxisycl_backend::BackendError;
use oxisycl_backend::lane::{Driver, Lanes};
use oxisycl_backend::poller::{Counts, Padded, Progress};

use crate::batch;
use crate::clock::Clock;
use crate::context::Context;
use crate::error::DriverError;
use crate::fill_kernels::FillKernels;
use crate::lane::Cuda;
use crate::memory::CudaMemory;
use crate::module::CudaModule;
use crate::peers::Peers;
use crate::records::RecordMemory;
use crate::sys::attribute;

pub(crate) struct DeviceState {
    pub(crate) context: Arc<Context>,
    pub(crate) memory: Arc<CudaMemory>,
    pub(crate) lanes: Lanes<Cuda>,
    pub(crate) clock: Clock,
    pub(crate) fill_kernels: FillKernels,
    /// The number of multiprocessors.
    pub(crate) n_processors: u64,
    /// Whether a lane may have held kernels for the flusher thread.
    pub(crate) is_holding: Padded<AtomicBool>,
    /// Whether code outside of this backend has the context: work that it puts on the device may have to come after held kernels.
    pub(crate) is_shared: AtomicBool,
}

impl DeviceState {
    pub(crate) fn new(
        context: Arc<Context>,
        peers: Arc<Peers>,
        has_managed_memory: bool,
    ) -> Result<Arc<Self>, BackendError> {
        let fail = |error: DriverError| context.fail(error);
        let _entered = context.enter()?;
        let lanes: Lanes<Cuda> = Lanes::default();
        let memory = CudaMemory::new(&context, peers, lanes.counts.bell().clone(), has_managed_memory).map_err(fail)?;
        let mut n_processors = 0;
        // SAFETY: writes a number; the device is the context's.
        let asked = unsafe {
            let attribute = attribute::MULTIPROCESSOR_COUNT;
            context.driver.device_get_attribute(&raw mut n_processors, attribute, context.device)
        };
        asked.map_err(fail)?;
        let state = Arc::new(Self {
            n_processors: u64::try_from(n_processors).unwrap_or(1),
            is_holding: Padded::default(),
            is_shared: AtomicBool::new(false),
            memory: Arc::new(memory),
            lanes,
            clock: Clock::new(),
            fill_kernels: FillKernels::default(),
            context: context.clone(),
        });
        // A launch would have to wait for the memory.
        let mut records = Vec::new();
        state
            .lanes
            .records
            .take(&mut records, Cuda::FIRST_RECORDS, |n| RecordMemory::new(&context, n))
            .map_err(fail)?;
        state.lanes.records.give_back(&records);
        let weak = Arc::downgrade(&state);
        context.set_suspects(move || weak.upgrade().and_then(|state| state.lanes.suspects()));
        Ok(state)
    }

    /// The context, for code outside of this backend that may put work on the device. No kernel is held from now on.
    pub(crate) fn share(&self) -> *mut c_void {
        self.is_shared.store(true, Ordering::SeqCst);
        // In a forked child the locks may be held for ever.
        if !self.context.is_foreign() {
            self.lanes.all().iter().for_each(|lane| batch::turn_off(lane));
        }
        self.context.raw.0
    }

    /// Called when a module is about to be unloaded: releases the streams' graphs of it.
    pub(crate) fn release(&self, module: &Arc<CudaModule>) {
        if self.context.is_foreign() {
            return;
        }
        self.lanes.all().iter().for_each(|lane| batch::release(lane, module));
    }
}

impl Progress for DeviceState {
    fn counts(&self) -> &Counts {
        &self.lanes.counts
    }

    fn poll(&self, is_idle: bool) -> bool {
        let progress = self.lanes.poll(self, true);
        if self.clock.is_stale()
            && let Ok(_entered) = self.context.enter()
        {
            let _ = self.clock.renew(&self.context, self.memory.utility);
        }
        if is_idle {
            self.memory.free_retired_while(|| !self.lanes.counts.has_commands());
        }
        progress
    }

    fn hand_over(&self) -> Option<Duration> {
        // Asked all the time; the lanes change what those that submit need, too.
        let is_holding = &self.is_holding.0;
        if !is_holding.load(Ordering::Relaxed) || !is_holding.swap(false, Ordering::SeqCst) {
            return None;
        }
        let next = self.lanes.all().iter().filter_map(|lane| batch::hand_over(lane, false)).min();
        if next.is_some() {
            is_holding.store(true, Ordering::SeqCst);
        }
        next
    }
}
