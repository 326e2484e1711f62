//! The clock of execution times. It is the device's own clock where the driver can read it, else the host's, to which times of events are
//! translated.
//!
//! Invariant: all times of one device are on one clock, so that they can be compared.

use std::ptr;
use std::sync::OnceLock;

use oxisycl_backend::{ExecutionTimes, driver};

use crate::context::Context;
use crate::emitter::Emitted;
use crate::error::{Result, check};
use crate::sys::{Object, code};

pub(crate) enum Clock {
    /// The driver reports the device's time.
    Device,
    /// The driver does not report the device's time. The value, once known, is the nanoseconds to add to event times to get the host's
    /// time.
    Host(OnceLock<i64>),
}

impl Clock {
    pub(crate) fn of(context: &Context) -> Self {
        if device_time(context).is_some() { Self::Device } else { Self::Host(OnceLock::new()) }
    }

    /// The current time on this clock.
    pub(crate) fn now(&self, context: &Context) -> u64 {
        match self {
            Self::Device => device_time(context).unwrap_or(0),
            Self::Host(_) => driver::now(),
        }
    }

    /// Measures the offset between the device's clock and the host's, where that is needed. Uses a queue that records times, and waits for
    /// its commands.
    pub(crate) fn set_base(&self, context: &Context, queue: Object) -> Result<()> {
        let Self::Host(offset) = self else { return Ok(()) };
        if offset.get().is_some() {
            return Ok(());
        }
        let functions = &context.functions;
        let mut event = ptr::null_mut();
        // SAFETY: a live queue, whose marker waits for nothing else; the event is released below.
        unsafe {
            let marker = functions.clEnqueueMarkerWithWaitList;
            check("clEnqueueMarkerWithWaitList", marker(queue.0, 0, ptr::null(), &raw mut event))?;
        }
        // SAFETY: a live event.
        let waited = check("clWaitForEvents", unsafe { (functions.clWaitForEvents)(1, &raw const event) });
        let (host, device) = (driver::now(), time(context, Object(event), code::PROFILING_COMMAND_END));
        // SAFETY: the event of the marker, which no other code has.
        unsafe { context.release_event(Object(event)) };
        waited?;
        let _ = offset.set(host.wrapping_sub(device.unwrap_or(host)).cast_signed());
        Ok(())
    }

    /// The execution times of a task that is over, from its events. If the driver had nothing to do for the task, both times are now.
    pub(crate) fn times(&self, context: &Context, submitted: u64, emitted: &Emitted) -> ExecutionTimes {
        let now = self.now(context);
        let translate = |time: u64| match self {
            Self::Device => time,
            Self::Host(offset) => time.wrapping_add_signed(offset.get().copied().unwrap_or(0)),
        };
        let start = emitted.first().and_then(|event| time(context, event, code::PROFILING_COMMAND_START));
        let ends = emitted.events.iter().filter_map(|event| time(context, *event, code::PROFILING_COMMAND_END));
        let start = start.map_or(now, translate);
        let times = ExecutionTimes { start, end: ends.max().map_or(now, translate).max(start) };
        match self {
            Self::Device => times,
            // The two clocks are not exactly together.
            Self::Host(_) => times.moved_between(submitted, now),
        }
    }
}

fn time(context: &Context, event: Object, what: u32) -> Option<u64> {
    let mut time = 0u64;
    // SAFETY: a live event, and a value of the size that is said.
    let asked = unsafe {
        let get = context.functions.clGetEventProfilingInfo;
        get(event.0, what, size_of::<u64>(), (&raw mut time).cast(), ptr::null_mut())
    };
    // Some drivers know no times of markers.
    (asked == code::SUCCESS && time > 0).then_some(time)
}

fn device_time(context: &Context) -> Option<u64> {
    let (mut device, mut host) = (0, 0);
    // SAFETY: a live device; writes two numbers.
    let asked =
        unsafe { (context.functions.clGetDeviceAndHostTimer)(context.device.0, &raw mut device, &raw mut host) };
    (asked == code::SUCCESS && device > 0).then_some(device)
}
