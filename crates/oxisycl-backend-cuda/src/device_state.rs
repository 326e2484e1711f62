//! What all queues of one device share: the context, its pools, and the lanes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxisycl_backend::BackendError;
use oxisycl_backend::lane::{Driver, Lanes};
use oxisycl_backend::poller::{Counts, Progress};

use crate::batch;
use crate::clock::Clock;
use crate::context::Context;
use crate::error::{DriverError, version_text};
use crate::fill_kernels::FillKernels;
use crate::fleet::Fleet;
use crate::lane::Cuda;
use crate::memory;
use crate::module::CudaModule;
use crate::quirks::Quirks;
use crate::records::RecordMemory;
use crate::retired::{Block, Retired};
use crate::sys::{RawStream, STREAM_NON_BLOCKING, attribute, code};

pub(crate) struct DeviceState {
    pub(crate) context: Arc<Context>,
    pub(crate) lanes: Lanes<Cuda>,
    pub(crate) clock: Clock,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) fill_kernels: FillKernels,
    pub(crate) retired: Retired,
    quirks: Quirks,
    /// How many multiprocessors there are.
    pub(crate) n_processors: u64,
    /// Whether a queue was made that holds kernels.
    pub(crate) holds_back: AtomicBool,
    /// Whether some lane may hold kernels for the thread that hands them over.
    pub(crate) is_holding: AtomicBool,
    /// Whether others know the context: what they put on the device may have to come after what is held.
    pub(crate) is_shared: AtomicBool,
    /// A stream for what is waited for at once: transfers that the host executes, zeroing, the clock.
    pub(crate) utility: RawStream,
}

impl DeviceState {
    pub(crate) fn new(context: Arc<Context>, fleet: Arc<Fleet>) -> Result<Arc<Self>, BackendError> {
        let fail = |error: DriverError| context.fail(error);
        let _entered = context.enter()?;
        let mut utility = RawStream::NULL;
        // SAFETY: the context is current.
        unsafe { context.driver.stream_create_with_priority(&raw mut utility, STREAM_NON_BLOCKING, 0) }
            .map_err(fail)?;
        let mut n_processors = 0;
        // SAFETY: writes a number; the device is the context's.
        let asked = unsafe {
            let attribute = attribute::MULTIPROCESSOR_COUNT;
            context.driver.device_get_attribute(&raw mut n_processors, attribute, context.device)
        };
        asked.map_err(fail)?;
        let core = Arc::new(Self {
            n_processors: u64::try_from(n_processors).unwrap_or(1),
            holds_back: AtomicBool::new(false),
            is_holding: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
            lanes: Lanes::default(),
            clock: Clock::new(),
            fleet,
            fill_kernels: FillKernels::default(),
            retired: Retired::default(),
            quirks: Quirks::of(&version_text(context.driver.version)),
            utility,
            context: context.clone(),
        });
        // A launch would have to wait for the memory.
        let mut records = Vec::new();
        core.lanes.records.take(&mut records, Cuda::FIRST_RECORDS, |n| RecordMemory::new(&context, n)).map_err(fail)?;
        core.lanes.records.give_back(&records);
        let weak = Arc::downgrade(&core);
        context.set_suspects(move || weak.upgrade().and_then(|state| state.lanes.suspects()));
        Ok(core)
    }

    /// Others put work on the device from now on: no kernel is staged any more.
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::SeqCst);
        // In a forked child the locks may be held for ever.
        if self.context.is_foreign() {
            return;
        }
        self.lanes.all().iter().for_each(|lane| batch::turn_off(lane));
    }

    /// A module is to be unloaded.
    pub(crate) fn release(&self, module: &Arc<CudaModule>) {
        if self.context.is_foreign() {
            return;
        }
        self.lanes.all().iter().for_each(|lane| batch::release(lane, module));
    }

    /// Takes memory back that nobody uses any more. Does not wait for running kernels, unless much too much memory is waiting to be freed.
    pub(crate) fn retire(&self, block: Block) {
        if !self.quirks.waiting_free {
            return self.free(block);
        }
        if let Err(block) = self.retired.put(block) {
            return self.free(block);
        }
        if self.lanes.counts.bell().is_running() {
            self.lanes.counts.bell().ring();
        } else {
            // No queue was made, and no kernel runs.
            self.free_retired();
        }
    }

    /// Frees what was retired, also while kernels run.
    pub(crate) fn free_retired(&self) {
        while let Some(block) = self.retired.take_any() {
            self.free(block);
        }
    }

    /// Tries again, once retired memory was freed, if the driver has no memory left.
    pub(crate) fn with_memory_freed<T>(&self, attempt: impl Fn() -> Result<T, DriverError>) -> Result<T, DriverError> {
        attempt().or_else(|error| {
            if error.code != code::OUT_OF_MEMORY {
                return Err(error);
            }
            self.free_retired();
            self.retired.wait_until_freed();
            attempt()
        })
    }

    fn free(&self, block: Block) {
        if let Ok(_entered) = self.context.enter_anyway() {
            // SAFETY: what was retired was allocated by the driver, nobody uses it, and it was taken out of the list by this call alone.
            unsafe { memory::give(&self.context, block) };
        }
    }
}

impl Progress for DeviceState {
    fn counts(&self) -> &Counts {
        &self.lanes.counts
    }

    fn poll(&self) -> bool {
        let progress = self.lanes.poll(self, true);
        if self.clock.is_stale()
            && let Ok(_entered) = self.context.enter()
        {
            let _ = self.clock.renew(&self.context, self.utility);
        }
        progress
    }

    fn holds_back(&self) -> bool {
        self.holds_back.load(Ordering::SeqCst)
    }

    fn hand_over(&self) -> Option<Duration> {
        // Asked all the time; the lanes change what those that submit need, too.
        if !self.is_holding.load(Ordering::Relaxed) || !self.is_holding.swap(false, Ordering::SeqCst) {
            return None;
        }
        let next = self.lanes.all().iter().filter_map(|lane| batch::hand_over(lane, false)).min();
        if next.is_some() {
            self.is_holding.store(true, Ordering::SeqCst);
        }
        next
    }

    fn has_idle_work(&self) -> bool {
        !self.retired.is_empty()
    }

    /// Frees what was retired as long as there is nothing to do.
    fn idle(&self) {
        self.retired.free_while(|| !self.lanes.counts.has_commands(), |block| self.free(block));
    }

    fn is_foreign(&self) -> bool {
        self.context.is_foreign()
    }
}

impl Drop for DeviceState {
    fn drop(&mut self) {
        // In a forked child there are no threads, and their locks may be held for ever.
        if self.context.is_foreign() {
            return;
        }
        self.lanes.counts.close();
        self.free_retired();
        if let Ok(_entered) = self.context.enter_anyway() {
            // SAFETY: made by `new`; whoever uses it waits for it.
            let _ = unsafe { self.context.driver.stream_destroy(self.utility) };
        }
    }
}
