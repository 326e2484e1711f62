//! Calls that put one command on a driver's queue, and the events that they return.
//!
//! Calls of one *stage* may overlap; those of the next stage wait for them. A command is over when the events of [`Emitted`] are. On a
//! queue that keeps the order that is the last one alone. On others it is those of the last stage, or that of a marker behind them if they are many.
//! Events that are not needed are released here.

use std::ptr;

use smallvec::SmallVec;

use crate::context::Context;
use crate::error::{Result, check};
use crate::sys::{Code, Functions, Handle, Object};

/// With more calls than this in a stage, the event of one marker stands for all of them.
const MANY: usize = 8;

pub(crate) type Events = SmallVec<[Object; 1]>;

/// The events of a command on the driver's queue.
#[derive(Debug, Default)]
pub(crate) struct Emitted {
    /// The command is over when all of these are complete. Empty for a command without driver calls.
    pub(crate) events: Events,
    /// The event of the first call, if it is not among `events` and times are recorded.
    pub(crate) first: Option<Object>,
}

impl Emitted {
    /// The event of the first call for the command.
    pub(crate) fn first(&self) -> Option<Object> {
        self.first.or_else(|| self.events.first().copied())
    }
}

pub(crate) struct Emitter<'a> {
    context: &'a Context,
    queue: Object,
    keeps_order: bool,
    is_profiling: bool,
    waits: SmallVec<[Handle; 4]>,
    /// The events of the current stage.
    events: Events,
    /// The events of earlier stages, which the current one waits for.
    passed: Events,
    first: Option<Object>,
}

impl<'a> Emitter<'a> {
    /// An emitter for a command that waits for `waits`.
    pub(crate) fn new(
        context: &'a Context,
        queue: Object,
        keeps_order: bool,
        is_profiling: bool,
        waits: SmallVec<[Handle; 4]>,
    ) -> Self {
        let (events, passed) = (Events::new(), Events::new());
        Self { context, queue, keeps_order, is_profiling, waits, events, passed, first: None }
    }

    pub(crate) fn context(&self) -> &'a Context {
        self.context
    }

    /// Whether the driver's queue is in order.
    pub(crate) fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    /// Whether the command has to wait for events, beside the queue's own order.
    pub(crate) fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Whether any call has succeeded.
    pub(crate) fn has_begun(&self) -> bool {
        self.first.is_some()
    }

    /// Makes a call that puts something on the queue. The call gets the queue, the number of events to wait for, those events, and space
    /// for its own event.
    pub(crate) fn call(
        &mut self,
        name: &'static str,
        call: impl FnOnce(&Functions, Handle, u32, *const Handle, *mut Handle) -> Code,
    ) -> Result<()> {
        if self.events.len() >= MANY && !self.keeps_order {
            self.gather()?;
        }
        let (n, list) = match self.waits.len() {
            0 => (0, ptr::null()),
            n => (n as u32, self.waits.as_ptr()),
        };
        let mut event = ptr::null_mut();
        check(name, call(&self.context.functions, self.queue.0, n, list, &raw mut event))?;
        let event = Object(event);
        if self.first.is_none() {
            self.first = Some(event);
        }
        if self.keeps_order {
            self.drop_events();
        }
        self.events.push(event);
        Ok(())
    }

    /// Starts a stage: further calls wait for all earlier ones.
    pub(crate) fn next_stage(&mut self) -> Result<()> {
        if self.keeps_order || self.events.is_empty() {
            return Ok(());
        }
        self.waits = self.events.iter().map(|event| event.0).collect();
        let passed = std::mem::replace(&mut self.passed, std::mem::take(&mut self.events));
        self.release(passed);
        Ok(())
    }

    /// Puts a marker behind the calls of this stage. Its event stands for all of them.
    pub(crate) fn marker(&mut self) -> Result<()> {
        self.call("clEnqueueMarkerWithWaitList", |functions, queue, n, list, event| {
            // SAFETY: a live queue, and live events as many as are said.
            unsafe { (functions.clEnqueueMarkerWithWaitList)(queue, n, list, event) }
        })
    }

    /// Puts a barrier on the queue: what comes later waits for the command's dependencies.
    pub(crate) fn barrier(&mut self) -> Result<()> {
        self.call("clEnqueueBarrierWithWaitList", |functions, queue, n, list, event| {
            // SAFETY: a live queue, and live events as many as are said.
            unsafe { (functions.clEnqueueBarrierWithWaitList)(queue, n, list, event) }
        })
    }

    /// Has other code put work on the queue.
    pub(crate) fn call_native(&mut self, call: impl FnOnce(Object)) {
        call(self.queue);
    }

    /// Puts a marker behind everything that is on the queue. Its event stands for the command.
    pub(crate) fn marker_of_all(&mut self) -> Result<()> {
        self.waits.clear();
        let before = std::mem::take(&mut self.events);
        match self.marker() {
            Ok(()) => self.release(before),
            Err(error) => {
                // Without the marker no event tells when the other code's work has ended.
                // SAFETY: a live queue.
                unsafe { (self.context.functions.clFinish)(self.queue.0) };
                self.events = before;
                return Err(error);
            }
        }
        Ok(())
    }

    fn gather(&mut self) -> Result<()> {
        let list: SmallVec<[Handle; MANY]> = self.events.iter().map(|event| event.0).collect();
        let mut event = ptr::null_mut();
        // SAFETY: a live queue, and live events as many as are said.
        let result = unsafe {
            let marker = self.context.functions.clEnqueueMarkerWithWaitList;
            marker(self.queue.0, list.len() as u32, list.as_ptr(), &raw mut event)
        };
        check("clEnqueueMarkerWithWaitList", result)?;
        self.drop_events();
        self.events.push(Object(event));
        Ok(())
    }

    fn drop_events(&mut self) {
        let events = std::mem::take(&mut self.events);
        self.release(events);
    }

    fn release(&self, events: Events) {
        for event in events {
            if !(self.is_profiling && self.first == Some(event)) {
                // SAFETY: the event is the emitter's own, and in no list any more.
                unsafe { self.context.release_event(event) };
            }
        }
    }

    /// Returns the events of the command.
    pub(crate) fn finish(mut self) -> Emitted {
        if self.events.len() > MANY {
            // Without it there are more events to look at.
            let _ = self.gather();
        }
        let mut events = std::mem::take(&mut self.events);
        if events.is_empty() {
            // A stage that failed at its first call.
            events = std::mem::take(&mut self.passed);
        }
        let passed = std::mem::take(&mut self.passed);
        self.release(passed);
        let first = self.first.filter(|first| self.is_profiling && !events.contains(first));
        Emitted { events, first }
    }
}
