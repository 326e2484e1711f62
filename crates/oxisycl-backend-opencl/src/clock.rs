//! The times of a device's events on the clock of the process.
//!
//! The device's clock and that of the process drift apart, so the distance between them is measured again when it is old. For a driver that
//! does not tell the device's time, it is measured by an event, once.

use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use oxisycl_backend::{ExecutionTimes, now};

use crate::context::Context;
use crate::emitter::Emitted;
use crate::error::{Result, check};
use crate::sys::{Object, code};

/// After how many nanoseconds the distance is measured again.
const MAX_AGE: u64 = 1_000_000_000;

pub(crate) struct Clock {
    /// Whether the driver tells the device's time.
    is_readable: bool,
    /// The nanoseconds to add to the device's time.
    offset: AtomicI64,
    /// When the offset was measured; 0 before that.
    measured: AtomicU64,
}

impl Clock {
    pub(crate) fn of(context: &Context) -> Self {
        let is_readable = device_time(context).is_some();
        Self { is_readable, offset: AtomicI64::new(0), measured: AtomicU64::new(0) }
    }

    /// Whether the offset was measured too long ago.
    pub(crate) fn is_stale(&self) -> bool {
        let measured = self.measured.load(Ordering::Relaxed);
        self.is_readable && measured > 0 && now() - measured > MAX_AGE
    }

    /// Measures the offset, by a queue that records times if the driver does not tell the device's time. Waits for that queue's commands then.
    pub(crate) fn set_base(&self, context: &Context, queue: Object) -> Result<()> {
        if self.is_readable {
            self.renew(context);
        } else if self.measured.load(Ordering::Relaxed) == 0 {
            let device = marker_time(context, queue)?;
            self.set(now(), device);
        }
        Ok(())
    }

    /// Measures the offset again.
    pub(crate) fn renew(&self, context: &Context) {
        let read = |_| {
            let before = now();
            let device = device_time(context)?;
            let after = now();
            Some((after - before, before.midpoint(after), device))
        };
        // The shortest of a few is the most exact.
        if let Some((_, host, device)) = (0..3).filter_map(read).min() {
            self.set(host, Some(device));
        }
    }

    /// Sets what both clocks read at one moment. Where the device's time is not known, the clocks count as the same.
    fn set(&self, host: u64, device: Option<u64>) {
        self.offset.store(host.wrapping_sub(device.unwrap_or(host)).cast_signed(), Ordering::Relaxed);
        self.measured.store(host, Ordering::Relaxed);
    }

    /// The execution times of a task that is over, from its events. If the driver had nothing to do for the task, both times are now.
    pub(crate) fn times(&self, context: &Context, submitted: u64, emitted: &Emitted) -> ExecutionTimes {
        let now = now();
        let offset = self.offset.load(Ordering::Relaxed);
        let translate = |time: u64| time.wrapping_add_signed(offset);
        let start = emitted.first().and_then(|event| time(context, event, code::PROFILING_COMMAND_START));
        let ends = emitted.events.iter().filter_map(|event| time(context, *event, code::PROFILING_COMMAND_END));
        let start = start.map_or(now, translate);
        let end = ends.max().map_or(now, translate).max(start);
        // The two clocks are not exactly together.
        ExecutionTimes { start, end }.moved_between(submitted, now)
    }
}

/// The device's time after a marker on the queue.
fn marker_time(context: &Context, queue: Object) -> Result<Option<u64>> {
    let functions = &context.functions;
    let mut event = ptr::null_mut();
    // SAFETY: a live queue, whose marker waits for nothing else; the event is released below.
    unsafe {
        let marker = functions.clEnqueueMarkerWithWaitList;
        check("clEnqueueMarkerWithWaitList", marker(queue.0, 0, ptr::null(), &raw mut event))?;
    }
    // SAFETY: a live event.
    let waited = check("clWaitForEvents", unsafe { (functions.clWaitForEvents)(1, &raw const event) });
    let time = time(context, Object(event), code::PROFILING_COMMAND_END);
    // SAFETY: the event of the marker, which no other code has.
    unsafe { context.release_event(Object(event)) };
    waited.map(|()| time)
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
