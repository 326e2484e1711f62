//! Reports of commands that come late, early, twice or never.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oxisycl_backend::FailureKind;
use oxisycl_backend_testing::recording::RecordingConfig;

use crate::failures::collecting;
use crate::support::{Buffer, TestQueue, World, watchdog};

/// Adds one when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_command_that_is_reported_before_those_that_it_came_after_ends_after_them() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let [first, second, third] = ["first", "second", "third"].map(|name| queue.update(name, &buffer));
    world.recorder.hold_report(world.find("first"));
    world.recorder.complete_all();
    assert!(!first.is_complete() && !second.is_complete() && !third.is_complete(), "the first is not reported");
    world.recorder.release_report(world.find("first"));
    assert!(first.has_succeeded() && second.has_succeeded() && third.has_succeeded());
}

#[test]
fn a_failure_that_is_reported_late_still_fails_what_was_reported_as_a_success() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let [first, second] = ["first", "second"].map(|name| queue.update(name, &buffer));
    world.recorder.run_ahead();
    world.recorder.hold_report(world.find("first"));
    let message = "the first fails".to_owned();
    world.recorder.fail(world.find("first"), FailureKind::Panic { message, location: None, item: None });
    assert!(!first.is_complete() && !second.is_complete());
    world.recorder.release_report(world.find("first"));
    assert!(first.has_failed() && second.has_failed());
    assert!(format!("{:?}", second.failure().unwrap().kind()).contains("the first fails"));
}

#[test]
fn commands_that_are_reported_twice_end_once() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    world.recorder.report_twice();
    let n_dropped = Arc::new(AtomicUsize::new(0));
    let nodes: Vec<_> =
        (0..10).map(|_| queue.group().update(&buffer).hold(Counted(n_dropped.clone())).kernel("doubled")).collect();
    // Also a report that waits for another one, and is doubled meanwhile.
    world.recorder.hold_report(4);
    world.recorder.complete_all();
    assert_eq!(n_dropped.load(Ordering::Relaxed), 4);
    world.recorder.release_report(4);
    assert!(nodes.iter().all(|node| node.has_succeeded()));
    assert_eq!(n_dropped.load(Ordering::Relaxed), 10);
}

#[test]
fn a_failure_that_is_reported_twice_reaches_the_handler_once() {
    let world = World::new(1);
    let (queue, errors, collected) = collecting(&world);
    let queue = TestQueue { queue, device: world.devices[0].clone() };
    world.recorder.report_twice();
    queue.update("failing", &Buffer::new(8));
    world.lose("failing");
    assert!(errors.deliver());
    assert_eq!(collected.lock().len(), 1);
}

#[test]
fn a_report_that_is_missing_fails_the_test_with_the_commands_name() {
    let began = Instant::now();
    let test = || {
        let (world, buffer) = (World::new(1), Buffer::new(8));
        world.queue(0).update("forgotten", &buffer);
        world.recorder.hold_report(world.find("forgotten"));
        world.recorder.complete_all();
        let (recorder, index) = (world.recorder.clone(), world.find("forgotten"));
        let found = catch_unwind(AssertUnwindSafe(|| world.recorder.assert_reported()));
        recorder.release_report(index);
        *found.expect_err("a report is missing").downcast::<String>().expect("a message")
    };
    assert_eq!(test(), "no report of forgotten (command 0)");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_wait_for_a_report_that_never_comes_ends_within_five_seconds_and_fails_the_test_with_the_commands_name() {
    let began = Instant::now();
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("forgotten", &buffer);
    world.recorder.hold_report(world.find("forgotten"));
    world.recorder.complete_all();
    queue.queue.wait().unwrap();
    assert!(began.elapsed() < watchdog::LIMIT + Duration::from_secs(2));
    let failed = catch_unwind(AssertUnwindSafe(|| drop(world))).expect_err("a report did not come");
    let message = *failed.downcast::<String>().expect("a message");
    assert!(message.contains("forgotten (command 0)") && message.contains("reports that did not come"), "{message}");
}

#[test]
fn a_failure_travels_to_what_a_queue_puts_behind_it_without_being_told() {
    let (world, buffer) = (World::with(RecordingConfig::new(1).keeping_order()), Buffer::new(8));
    let queue = world.in_order_queue(0);
    let [first, second] = ["first", "second"].map(|name| queue.update(name, &buffer));
    let beside = queue.update("beside", &Buffer::new(8));
    assert!(world.waits("second").is_empty(), "the queue keeps the order");
    world.recorder.run_ahead();
    world.recorder.hold_report(world.find("first"));
    let message = "the first fails".to_owned();
    world.recorder.fail(world.find("first"), FailureKind::Panic { message, location: None, item: None });
    world.recorder.complete_all();
    assert!(!first.is_complete() && !second.is_complete(), "the first is not reported");
    let third = queue.update("third", &buffer);
    world.recorder.complete_all();
    assert!(!third.is_complete());
    world.recorder.release_report(world.find("first"));
    assert!(beside.has_succeeded() && [&first, &second, &third].iter().all(|node| node.has_failed()));
    assert!(format!("{:?}", third.failure().unwrap().kind()).contains("the first fails"));
    assert!(queue.group().read(&buffer).try_kernel("lost").is_err());
}
