//! Dependencies: order, failures, depth.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oxisycl_backend::{Command, Event, EventStatus, FailureKind, Queue, QueueOptions, now};
use oxisycl_backend_testing::harness::help_once;

use super::support::*;

fn failing() -> Command {
    for_each(1, |_| panic!("on purpose"))
}

#[test]
fn a_command_without_dependencies_runs_and_completes_once() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let queue = queue(2);
    assert!(run(&queue, for_each(1, |_| _ = RUNS.fetch_add(1, Ordering::SeqCst))).result.is_ok());
    assert_eq!(RUNS.load(Ordering::SeqCst), 1);
}

#[test]
fn a_chain_runs_in_order() {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    unsafe fn entry(arguments: *const u8, _: &oxisycl_types::LaunchRange, _: &oxisycl_types::HostChunk) {
        // SAFETY: launched with a `usize`.
        let expected = unsafe { *arguments.cast::<usize>() };
        assert_eq!(NEXT.fetch_add(1, Ordering::SeqCst), expected);
    }
    let queue = queue(3);
    let mut last: Option<Arc<dyn Event>> = None;
    let mut probe = Probe::new();
    for number in 0..scaled(2000) {
        let dependencies: Vec<_> = last.iter().map(data).collect();
        probe = Probe::new();
        last = Some(issue(&queue, kernel(&number, entry, oxisycl_types::LaunchRange::SINGLE), &dependencies, &probe));
    }
    probe.succeed();
    assert_eq!(NEXT.load(Ordering::SeqCst), scaled(2000));
}

#[test]
fn a_diamond_joins_after_both_sides() {
    let queue = queue(4);
    for round in 0..scaled(200) {
        let log = Log::default();
        let probes: Vec<_> = (0..4).map(|number| Probe::logged(&log, number)).collect();
        let top = issue(&queue, nothing(), &[], &probes[0]);
        let left = issue(&queue, nothing(), &[data(&top)], &probes[1]);
        let right = issue(&queue, nothing(), &[data(&top), data(&top)], &probes[2]);
        issue(&queue, nothing(), &[data(&left), order(&right), data(&top)], &probes[3]);
        if round % 2 == 0 {
            probes[3].help(&queue).result.expect("success");
        } else {
            probes[3].succeed();
        }
        assert!(probes.iter().all(|probe| probe.wait().result.is_ok()));
        // The end of a command may be reported after the end of one that follows it, but never before it ran.
        assert_eq!(log.lock().len(), 4);
    }
}

#[test]
fn what_uses_the_result_of_a_failed_command_does_not_run_and_all_else_does() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let count = || for_each(1, |_| _ = RUNS.fetch_add(1, Ordering::SeqCst));
    let queue = queue(2);
    let probes: Vec<_> = (0..5).map(|_| Probe::new()).collect();
    let failed = issue(&queue, failing(), &[], &probes[0]);
    let first = issue(&queue, count(), &[data(&failed)], &probes[1]);
    issue(&queue, count(), &[data(&first)], &probes[2]);
    let later = issue(&queue, count(), &[order(&failed), order(&first)], &probes[3]);
    issue(&queue, count(), &[data(&later)], &probes[4]);
    assert!(matches!(probes[0].fail().kind(), FailureKind::Panic { message, .. } if message == "on purpose"));
    probes[1..3].iter().for_each(|probe| probe.not_run());
    probes[3].succeed();
    probes[4].succeed();
    assert_eq!(RUNS.load(Ordering::SeqCst), 2);
}

#[test]
fn a_dependency_that_failed_long_ago_still_counts() {
    let queue = queue(1);
    let (probe, later, ordered) = (Probe::new(), Probe::new(), Probe::new());
    let failed = issue(&queue, failing(), &[], &probe);
    probe.fail();
    let event = issue(&queue, nothing(), &[data(&failed)], &later);
    later.not_run();
    assert_eq!(event.status(), EventStatus::Complete);
    issue(&queue, nothing(), &[order(&failed)], &ordered);
    ordered.succeed();
}

/// A command that waits until the test opens a gate.
fn gated(queue: &Arc<dyn Queue>, gate: &'static AtomicUsize, fail: bool) -> Arc<dyn Event> {
    unsafe fn entry(arguments: *const u8, _: &oxisycl_types::LaunchRange, _: &oxisycl_types::HostChunk) {
        // SAFETY: launched with this pair.
        let (gate, fail) = unsafe { *arguments.cast::<(&'static AtomicUsize, bool)>() };
        while gate.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        assert!(!fail, "on purpose");
    }
    issue(queue, kernel(&(gate, fail), entry, oxisycl_types::LaunchRange::SINGLE), &[], &Probe::new())
}

#[test]
fn a_hundred_thousand_commands_deep_succeed_fail_and_drop_on_a_small_stack() {
    static GATE: AtomicUsize = AtomicUsize::new(0);
    const DEPTH: usize = if cfg!(miri) { 40 } else { 100_000 };
    let body = || {
        for fail in [false, true] {
            GATE.store(0, Ordering::Release);
            let queue = queue(2);
            let mut events = vec![gated(&queue, &GATE, fail)];
            let mut probe = Probe::new();
            for _ in 0..DEPTH {
                probe = Probe::new();
                let event = issue(&queue, nothing(), &[data(&events[events.len() - 1])], &probe);
                events.push(event);
            }
            assert_eq!(events[DEPTH].status(), EventStatus::Submitted);
            GATE.store(1, Ordering::Release);
            let outcome = probe.help(&queue);
            assert!(outcome.result.is_ok() && outcome.has_run != fail, "{outcome:?}");
            drop(events);
        }
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(body).expect("a thread").join().expect("success");
}

#[test]
fn hints_and_markers_wait_for_their_dependencies() {
    static GATE: AtomicUsize = AtomicUsize::new(0);
    let queue = queue(2);
    let first = gated(&queue, &GATE, false);
    let (marker, hint, alone) = (Probe::new(), Probe::new(), Probe::new());
    let event = issue(&queue, Command::Marker, &[data(&first)], &marker);
    issue(&queue, Command::Prefetch { pointer: std::ptr::null_mut(), size: 8 }, &[data(&event)], &hint);
    issue(&queue, Command::Marker, &[], &alone);
    alone.succeed();
    assert!(!marker.is_complete() && !hint.is_complete());
    GATE.store(1, Ordering::Release);
    marker.succeed();
    hint.succeed();
}

#[test]
fn several_long_commands_are_in_flight_on_two_threads_without_help() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    // Each command ends only when the other one has begun.
    let both = || {
        for_each(1, |_| {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            eventually(|| INSIDE.load(Ordering::SeqCst) == 2);
        })
    };
    let queue = queue(2);
    let probes = [Probe::new(), Probe::new()];
    issue(&queue, both(), &[], &probes[0]);
    issue(&queue, both(), &[], &probes[1]);
    probes[0].succeed();
    probes[1].succeed();
}

#[test]
fn a_waiting_thread_helps_when_all_threads_are_busy() {
    static GATE: AtomicUsize = AtomicUsize::new(0);
    let queue = queue(1);
    gated(&queue, &GATE, false);
    std::thread::sleep(Duration::from_millis(5));
    // The only worker is stuck, so the thread that waits must run these itself. Which of the commands it takes is not fixed: it may
    // take the gated one if the worker was slow to start.
    GATE.store(1, Ordering::Release);
    for _ in 0..100 {
        let probe = Probe::new();
        issue(&queue, nothing(), &[], &probe);
        assert!(probe.help(&queue).result.is_ok());
    }
    assert!(!help_once(&*queue));
}

#[test]
fn ready_commands_of_high_priority_go_first() {
    static GATE: AtomicUsize = AtomicUsize::new(0);
    let device = device(1);
    let [low, normal, high] =
        [oxisycl_backend::Priority::Low, oxisycl_backend::Priority::Normal, oxisycl_backend::Priority::High].map(
            |priority| device.create_queue(&QueueOptions { priority, ..QueueOptions::default() }).expect("a queue"),
        );
    let gate = gated(&normal, &GATE, false);
    eventually(|| gate.status() == EventStatus::Running);
    let log = Log::default();
    let probes: Vec<_> = (0..6).map(|number| Probe::logged(&log, number)).collect();
    for (number, queue) in [&low, &normal, &high, &low, &normal, &high].into_iter().enumerate() {
        issue(queue, nothing(), &[], &probes[number]);
    }
    GATE.store(1, Ordering::Release);
    probes.iter().for_each(|probe| probe.succeed());
    assert_eq!(*log.lock(), [2, 5, 1, 4, 0, 3]);
}

#[test]
fn execution_times_are_there_exactly_on_queues_with_profiling() {
    let device = device(2);
    let queue = device.create_queue(&QueueOptions { profiling: true, ..QueueOptions::default() }).expect("a queue");
    let before = now();
    let times = [run(&queue, nothing()), run(&queue, for_each(scaled(100_000), |_| {})), run(&queue, Command::Marker)]
        .map(|outcome| outcome.times.expect("times"));
    let after = now();
    assert!(times.iter().all(|times| before <= times.start && times.start <= times.end && times.end <= after));
    assert!(times[0].end <= times[1].start && times[1].end <= times[2].start);
    assert!(run(&queue_of(&device), nothing()).times.is_none());
}

#[test]
fn a_queue_and_its_device_may_go_before_their_commands_end() {
    static GATE: AtomicUsize = AtomicUsize::new(0);
    let queue = queue(2);
    let first = gated(&queue, &GATE, false);
    let probes: Vec<_> = (0..scaled(1000)).map(|_| Probe::new()).collect();
    let mut last = first;
    for probe in &probes {
        last = issue(&queue, nothing(), &[data(&last)], probe);
    }
    drop((queue, last));
    GATE.store(1, Ordering::Release);
    probes.iter().for_each(|probe| probe.succeed());
}

#[test]
fn an_event_of_another_backend_is_refused() {
    struct Foreign;
    impl Event for Foreign {
        fn status(&self) -> EventStatus {
            EventStatus::Complete
        }
    }
    let queue = queue(1);
    let foreign: Arc<dyn Event> = Arc::new(Foreign);
    // SAFETY: the command uses no memory.
    let result = unsafe { queue.issue(nothing(), &[data(&foreign)], Probe::new()) };
    assert!(result.is_err());
}

#[test]
fn many_threads_submit_dependent_and_independent_commands_at_once() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let queue = queue(3);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut last: Option<Arc<dyn Event>> = None;
                let mut probes = Vec::new();
                for number in 0..scaled(500) {
                    let dependencies: Vec<_> = last.iter().map(data).collect();
                    let probe = Probe::new();
                    let command = for_each(1, |_| _ = RUNS.fetch_add(1, Ordering::Relaxed));
                    let event = issue(&queue, command, &dependencies, &probe);
                    last = (number % 3 != 0).then_some(event);
                    probes.push(probe);
                }
                probes.iter().for_each(|probe| probe.help(&queue).result.expect("success"));
            });
        }
    });
    assert_eq!(RUNS.load(Ordering::Relaxed), 8 * scaled(500));
}
