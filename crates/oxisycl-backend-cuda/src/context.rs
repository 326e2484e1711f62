//! The primary context of one device: making it current, its events, and the loss of the device.
//!
//! Invariants:
//! - The context is retained as long as this object lives, and everything made in it holds this object.
//! - Once `lost` is set it stays set, and nothing of the context is used for work again.
//! - A call leaves the calling thread's current context as it found it, so that other users of the driver are not disturbed. Only on a
//!   thread that had none it stays current, which saves every later call from changing it twice.

use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use oxisycl_backend::fork;
use oxisycl_backend::poller::Padded;
use oxisycl_backend::{BackendError, MemoryId};
use parking_lot::Mutex;

use crate::error::DriverError;
use crate::stack::StackLimit;
use crate::sys::{Driver, EVENT_DEFAULT, EVENT_DISABLE_TIMING, RawContext, RawDevice, RawEvent, code};

/// The first loss among the devices of one driver: the device and the reason.
pub(crate) type FirstLoss = Arc<OnceLock<(MemoryId, String)>>;

pub(crate) struct Context {
    pub(crate) driver: Arc<Driver>,
    pub(crate) device: RawDevice,
    pub(crate) raw: RawContext,
    /// The device's name, for messages.
    pub(crate) name: String,
    /// The device's memory.
    pub(crate) memory: MemoryId,
    lost: OnceLock<String>,
    /// The first loss among all devices of the driver: newer drivers give up every context of the process after one has failed.
    first_loss: FirstLoss,
    /// Returns a description of the device's work, when the device is found to be lost.
    suspects: OnceLock<Box<dyn Fn() -> Option<String> + Send + Sync>>,
    generation: u32,
    pub(crate) stack: StackLimit,
    /// Unused events. Both issuing and polling threads take them.
    plain_events: Padded<Mutex<Vec<RawEvent>>>,
    timed_events: Mutex<Vec<RawEvent>>,
}

/// While it lives, the context is current on this thread.
pub(crate) struct Entered<'a> {
    context: &'a Context,
    is_pushed: bool,
    /// A context is current on one thread, so the guard stays there.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.is_pushed {
            let mut popped = RawContext::NULL;
            // SAFETY: pushed by `enter_anyway` on this thread, since a guard is not `Send`.
            let _ = unsafe { self.context.driver.ctx_pop_current(&raw mut popped) };
        }
    }
}

impl Context {
    pub(crate) fn new(
        driver: Arc<Driver>,
        device: RawDevice,
        name: String,
        first_loss: FirstLoss,
        call_stack: usize,
    ) -> Result<Self, DriverError> {
        fork::watch();
        let mut raw = RawContext::NULL;
        // SAFETY: `device` came from `cuDeviceGet`.
        unsafe { driver.primary_ctx_retain(&raw mut raw, device) }?;
        Ok(Self {
            driver,
            device,
            raw,
            name,
            memory: MemoryId::unique(),
            lost: OnceLock::new(),
            first_loss,
            suspects: OnceLock::new(),
            generation: fork::generation(),
            stack: StackLimit::new(call_stack),
            plain_events: Padded::default(),
            timed_events: Mutex::default(),
        })
    }

    /// Makes the context current on this thread.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Entered<'_>, BackendError> {
        self.check_alive()?;
        self.enter_anyway().map_err(|error| self.fail(error))
    }

    /// Makes the context current on this thread, even if the device is lost. For calls that release resources.
    pub(crate) fn enter_anyway(&self) -> Result<Entered<'_>, DriverError> {
        let mut current = RawContext::NULL;
        // SAFETY: writes a handle.
        unsafe { self.driver.ctx_get_current(&raw mut current) }?;
        if current == RawContext::NULL {
            // SAFETY: the context is retained by `self`; it stays current beyond its release at most as an invalid one.
            unsafe { self.driver.ctx_set_current(self.raw) }?;
            return Ok(Entered { context: self, is_pushed: false, _not_send: PhantomData });
        }
        let is_pushed = current != self.raw;
        if is_pushed {
            // SAFETY: the context is retained by `self`.
            unsafe { self.driver.ctx_push_current(self.raw) }?;
        }
        Ok(Entered { context: self, is_pushed, _not_send: PhantomData })
    }

    /// An error if the device is lost, or if this is a forked child, for which the driver does not work.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<(), BackendError> {
        if self.lost.get().is_none() && !self.is_foreign() { Ok(()) } else { Err(self.lost_error()) }
    }

    /// Whether this process is not the one that made the context.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.generation != fork::generation()
    }

    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// The error of every call after the device was lost.
    pub(crate) fn lost_error(&self) -> BackendError {
        let forked = || "the process was forked after the driver had been initialised".to_owned();
        let reason = if self.is_foreign() { forked() } else { self.lost.get().cloned().unwrap_or_default() };
        BackendError::DeviceLost { device: self.name.clone(), reason }
    }

    /// Sets the function that describes the device's work when the device is found to be lost.
    pub(crate) fn set_suspects(&self, suspects: impl Fn() -> Option<String> + Send + Sync + 'static) {
        let _ = self.suspects.set(Box::new(suspects));
    }

    /// Converts the error of a failed call. Marks the device as lost if the error means that. Must not be called with a stream's lock held.
    pub(crate) fn fail(&self, error: DriverError) -> BackendError {
        if error.is_sticky() {
            self.mark_lost(error);
        }
        if self.is_lost() { self.lost_error() } else { error.to_backend(&self.driver) }
    }

    /// Marks the device as lost after any error. Must not be called with a stream's lock held.
    pub(crate) fn give_up(&self, error: DriverError) {
        self.mark_lost(error);
    }

    fn mark_lost(&self, error: DriverError) {
        if self.is_lost() {
            return;
        }
        let what = format!("{} ({}, found by {})", error.meaning(&self.driver), error.code, error.call);
        let suspects = self.suspects.get().and_then(|suspects| suspects());
        let own = match suspects {
            _ if error.code == code::DEINITIALIZED => "the process is ending".to_owned(),
            Some(suspects) => format!("{what} in {suspects}"),
            None => what.clone(),
        };
        let own = match self.stack.suspicion() {
            Some(suspicion) if error.may_be_of_the_stack() => format!("{own}; {suspicion}"),
            _ => own,
        };
        let (first, cause) = self.first_loss.get_or_init(|| (self.memory, own.clone()));
        let reason = if *first == self.memory || error.code == code::DEINITIALIZED {
            own
        } else {
            format!("{what}, after another device of the process was lost: {cause}")
        };
        if self.lost.set(reason).is_ok() && error.code != code::DEINITIALIZED {
            tracing::debug!(device = %self.name, "lost: {}", self.lost.get().map_or("", String::as_str));
        }
    }

    /// Takes or makes an event that records no time. The context is current.
    pub(crate) fn take_plain_event(&self) -> Result<RawEvent, DriverError> {
        self.take_event(&self.plain_events.0, EVENT_DISABLE_TIMING)
    }

    /// Takes or makes an event that records the time. The context is current.
    pub(crate) fn take_timed_event(&self) -> Result<RawEvent, DriverError> {
        self.take_event(&self.timed_events, EVENT_DEFAULT)
    }

    fn take_event(&self, pool: &Mutex<Vec<RawEvent>>, flags: u32) -> Result<RawEvent, DriverError> {
        if let Some(event) = pool.lock().pop() {
            return Ok(event);
        }
        let mut event = RawEvent::NULL;
        // SAFETY: the caller has made the context current.
        unsafe { self.driver.event_create(&raw mut event, flags) }?;
        Ok(event)
    }

    /// Returns an event for reuse. Streams may still wait for it: a wait uses the state at its own call.
    pub(crate) fn return_plain_event(&self, event: RawEvent) {
        self.return_event(&self.plain_events.0, event);
    }

    pub(crate) fn return_timed_event(&self, event: RawEvent) {
        self.return_event(&self.timed_events, event);
    }

    fn return_event(&self, pool: &Mutex<Vec<RawEvent>>, event: RawEvent) {
        if !self.is_foreign() {
            pool.lock().push(event);
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.is_foreign() {
            return;
        }
        if let Ok(_entered) = self.enter_anyway() {
            let events = [&self.plain_events.0, &self.timed_events].map(|pool| std::mem::take(&mut *pool.lock()));
            for event in events.into_iter().flatten() {
                // SAFETY: made by `take_event`, and in the pool, so that nothing else has it.
                let _ = unsafe { self.driver.event_destroy(event) };
            }
        }
        // SAFETY: retained once in `new`. At the end of the process this fails, which does no harm.
        let _ = unsafe { self.driver.primary_ctx_release(self.device) };
    }
}
