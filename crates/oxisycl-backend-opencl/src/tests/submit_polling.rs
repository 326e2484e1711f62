//! Events of the driver are released while work is being submitted, and not while the program has them.

use std::alloc::Layout;
use std::any::Any;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use oxisycl_backend::{
    Command, Completion, Dependency, DependencyKind, Device, Event, FillCommand, FillPattern, Outcome, PitchedBox,
    QueueOptions, UsmKind,
};
use oxisycl_backend_testing::harness::{create_queue, help_once};

use super::losses::fill_with;
use super::{real, usable_devices};
use crate::lane::ClTask;
use crate::native::native_events;
use crate::submit_polling::MAX_LISTED;
use crate::sys::{Code, Handle};

const LAYOUT: Layout = Layout::new::<[u64; 8]>();

/// Counts ends.
#[derive(Default)]
struct Counter {
    ended: AtomicUsize,
    failed: AtomicUsize,
}

impl Completion for Counter {
    unsafe fn complete(self: Arc<Self>, outcome: Outcome) {
        self.failed.fetch_add(usize::from(outcome.result.is_err()), Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

static RELEASED: Mutex<Vec<(ThreadId, usize)>> = Mutex::new(Vec::new());

/// The driver's function, which notes who has called it with what.
unsafe extern "system" fn release(event: Handle) -> Code {
    RELEASED.lock().unwrap().push((thread::current().id(), event.addr()));
    let release = real().clReleaseEvent;
    // SAFETY: the caller's argument.
    unsafe { release(event) }
}

/// How often this thread has released an event.
fn n_released_here() -> usize {
    let here = thread::current().id();
    RELEASED.lock().unwrap().iter().filter(|(thread, _)| *thread == here).count()
}

fn submit(device: &Arc<dyn Device>, options: &QueueOptions) {
    let queue = create_queue(device, options).expect("a queue");
    let event = || -> Arc<dyn Event> {
        let (outcome, event) = fill_with(device, &queue, &[1]).expect("the command is accepted");
        outcome.result.expect("the command succeeds");
        event
    };
    let (lent, kept) = (event(), event());
    let known: HashSet<_> = native_events(&*lent).expect("an event of OpenCL").into_iter().collect();
    assert!(!known.is_empty());
    // From here on no address in it can be one of these.
    RELEASED.lock().unwrap().clear();
    let before = n_released_here();
    let n = 4 * MAX_LISTED;
    (0..n).for_each(|_| drop(event()));
    let found = n_released_here() - before;
    // Those that a thread was just polling may be released later.
    assert!(found >= n / 2, "{found} of {n} events were released by the thread that submits");
    assert!(native_events(&*kept).expect("an event of OpenCL").is_empty(), "the program had not asked for it");
    let is_live = |event: &Handle| !RELEASED.lock().unwrap().iter().any(|(_, released)| *released == event.addr());
    assert!(known.iter().all(is_live), "an event that others have lives as long as the command");
    drop(lent);
    assert!(!known.iter().any(is_live));
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_thread_that_submits_lets_go_of_the_events_of_commands_that_are_over() {
    for device in &usable_devices(|functions| functions.clReleaseEvent = release) {
        for in_order in [true, false] {
            submit(device, &QueueOptions { in_order, ..QueueOptions::default() });
        }
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn events_with_times_live_as_long_as_their_commands() {
    for device in &usable_devices(|_| {}) {
        let queue =
            create_queue(device, &QueueOptions { profiling: true, ..QueueOptions::default() }).expect("a queue");
        for _ in 0..4 * MAX_LISTED {
            let (outcome, event) = fill_with(device, &queue, &[1]).expect("the command is accepted");
            assert!(outcome.times.is_some_and(|times| times.start > 0 && times.start <= times.end));
            assert!(!native_events(&*event).expect("an event of OpenCL").is_empty());
        }
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn what_a_command_read_from_the_host_is_freed_at_its_end() {
    for device in &usable_devices(|_| {}) {
        let queue = create_queue(device, &QueueOptions::default()).expect("a queue");
        let (outcome, event) = fill_with(device, &queue, &[1, 2, 3]).expect("the command is accepted");
        outcome.result.expect("the command succeeds");
        let event: &dyn Any = &*event;
        let task = event.downcast_ref::<ClTask>().expect("an event of OpenCL");
        assert!(task.issued.is_released());
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn commands_are_asked_about_while_other_threads_wait_for_them_and_depend_on_them() {
    for device in &usable_devices(|_| {}) {
        for in_order in [true, false] {
            let queue = create_queue(device, &QueueOptions { in_order, ..QueueOptions::default() }).expect("a queue");
            let other = create_queue(device, &QueueOptions::default()).expect("a queue");
            let memory = device.memory().allocate(UsmKind::Device, LAYOUT, true).expect("memory");
            let target =
                PitchedBox { memory: device.info().memory.id, pointer: memory.as_ptr(), row_pitch: 0, slice_pitch: 0 };
            let fill =
                || Command::from(FillCommand { target, pattern: FillPattern::from_slice(&[7]), extent: [1, 1, 8] });
            let n = 20 * MAX_LISTED;
            let counter = Arc::new(Counter::default());
            let is_done = || counter.ended.load(Ordering::Relaxed) == 2 * n;
            thread::scope(|scope| {
                // As a thread that waits does.
                scope.spawn(|| {
                    while !is_done() {
                        help_once(&*queue);
                        thread::yield_now();
                    }
                });
                for _ in 0..n {
                    // SAFETY: the memory lives until all commands have ended, below; several write the same bytes.
                    let event = unsafe { queue.issue(fill(), &[], counter.clone()) }.expect("accepted");
                    let dependency = Dependency { event, kind: DependencyKind::Data };
                    // SAFETY: as above.
                    unsafe { other.issue(fill(), &[dependency], counter.clone()) }.expect("accepted");
                }
                let began = Instant::now();
                while !is_done() {
                    assert!(
                        began.elapsed() < Duration::from_secs(60),
                        "{:?} of {} commands ended",
                        counter.ended,
                        2 * n
                    );
                    thread::yield_now();
                }
            });
            assert_eq!(counter.failed.load(Ordering::Relaxed), 0);
            // SAFETY: allocated above, and all commands have ended.
            unsafe { device.memory().free(memory, UsmKind::Device, LAYOUT) };
        }
    }
}
