//! Events of the driver are let go of while work is being submitted, and not while somebody has them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use oxisycl_backend::{Device, Event, QueueOptions};

use super::losses::fill_with_event;
use super::{devices, real};
use crate::native::native_events;
use crate::recent::MOST;
use crate::sys::{Code, Handle};

static RELEASED: Mutex<Vec<(ThreadId, usize)>> = Mutex::new(Vec::new());

/// The driver's function, which notes who has called it with what.
unsafe extern "system" fn release(event: Handle) -> Code {
    RELEASED.lock().unwrap().push((thread::current().id(), event.addr()));
    let release = real().expect("the test has looked for it").clReleaseEvent;
    // SAFETY: the caller's argument.
    unsafe { release(event) }
}

/// How often this thread has released an event.
fn n_released_here() -> usize {
    let here = thread::current().id();
    RELEASED.lock().unwrap().iter().filter(|(thread, _)| *thread == here).count()
}

fn submit(device: &Arc<dyn Device>, options: &QueueOptions) {
    let queue = device.create_queue(options).expect("a queue");
    let event = || -> Arc<dyn Event> {
        let (outcome, event) = fill_with_event(device, &queue).expect("the command is accepted");
        outcome.result.expect("the command succeeds");
        event
    };
    let (lent, kept) = (event(), event());
    let known: HashSet<_> = native_events(&*lent).expect("an event of OpenCL").into_iter().collect();
    assert!(!known.is_empty());
    // From here on no address in it can be one of these.
    RELEASED.lock().unwrap().clear();
    let before = n_released_here();
    let n = 4 * MOST;
    (0..n).for_each(|_| drop(event()));
    let found = n_released_here() - before;
    assert!(found >= n - MOST, "{found} of {n} events were released by the thread that submits");
    assert!(native_events(&*kept).expect("an event of OpenCL").is_empty(), "nobody had asked for it");
    let is_live = |event: &Handle| !RELEASED.lock().unwrap().iter().any(|(_, released)| *released == event.addr());
    assert!(known.iter().all(is_live), "an event that others have lives as long as the command");
    drop(lent);
    assert!(!known.iter().any(is_live));
}

#[test]
fn a_thread_that_submits_lets_go_of_the_events_of_commands_that_are_over() {
    let devices = devices(|functions| functions.clReleaseEvent = release);
    for device in devices.iter().filter(|device| device.unusable().is_none()) {
        for in_order in [true, false] {
            submit(device, &QueueOptions { in_order, ..QueueOptions::default() });
        }
    }
}

#[test]
fn events_with_times_live_as_long_as_their_commands() {
    for device in devices(|_| {}).iter().filter(|device| device.unusable().is_none()) {
        let queue = device.create_queue(&QueueOptions { profiling: true, ..QueueOptions::default() }).expect("a queue");
        for _ in 0..4 * MOST {
            let (outcome, event) = fill_with_event(device, &queue).expect("the command is accepted");
            assert!(outcome.times.is_some_and(|times| times.start > 0 && times.start <= times.end));
            assert!(!native_events(&*event).expect("an event of OpenCL").is_empty());
        }
    }
}
