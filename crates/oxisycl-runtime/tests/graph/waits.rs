//! Waiting for commands, and finding out that a wait cannot end.

use std::sync::mpsc::channel;

use oxisycl_runtime::graph::wait_for_node;
use oxisycl_types::AccessMode::{Read, ReadWrite};
use oxisycl_types::ErrorCode;

use crate::support::{A_WHILE, Buffer, PATIENCE, World, eventually, host};

#[test]
fn a_wait_for_a_queue_covers_what_was_submitted_before_and_nothing_else() {
    let world = World::new(1);
    let queue = world.queue(0);
    let before = [queue.group().kernel("first"), queue.group().kernel("second")];
    let (tell, waited) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| tell.send(queue.queue.wait()).unwrap());
        // Gives the waiting thread time to begin a new epoch. A pause is good enough here, since the test cannot fail by it.
        std::thread::sleep(A_WHILE);
        queue.group().kernel("later");
        world.complete("second");
        assert!(waited.recv_timeout(A_WHILE).is_err());
        world.complete("first");
        waited.recv_timeout(PATIENCE).unwrap().unwrap();
    });
    assert!(before.iter().all(|node| node.has_succeeded()));
    assert!(!queue.queue.is_idle());
    world.complete("later");
    assert!(queue.queue.is_idle());
}

#[test]
fn waits_for_a_queue_end_one_after_the_other() {
    let world = World::new(1);
    let queue = world.queue(0);
    queue.group().kernel("first");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| queue.queue.wait());
        std::thread::sleep(A_WHILE);
        queue.group().kernel("second");
        let second = scope.spawn(|| queue.queue.wait());
        std::thread::sleep(A_WHILE);
        world.complete("second");
        std::thread::sleep(A_WHILE);
        assert!(!first.is_finished() && !second.is_finished(), "the second wait covers the first command, too");
        world.complete("first");
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
}

#[test]
fn a_wait_for_an_idle_queue_returns() {
    let world = World::new(1);
    let queue = world.queue(0);
    queue.queue.wait().unwrap();
    queue.group().kernel("command");
    world.recorder.complete_all();
    queue.queue.wait().unwrap();
}

#[test]
fn asking_whether_a_queue_is_idle_changes_nothing() {
    let world = World::new(1);
    let queue = world.queue(0);
    assert!(queue.queue.is_idle());
    queue.group().kernel("command");
    assert!((0..1000).all(|_| !queue.queue.is_idle()));
    world.recorder.complete_all();
    assert!(queue.queue.is_idle());
}

#[test]
fn a_wait_for_a_command_ends_with_it_also_if_it_fails() {
    let world = World::new(1);
    let queue = world.queue(0);
    for fails in [false, true] {
        let node = queue.group().kernel("command");
        let index = world.recorder.len() - 1;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait_for_node(&node));
            std::thread::sleep(A_WHILE);
            assert!(!waiting.is_finished());
            if fails {
                world.recorder.lose(index)
            } else {
                world.recorder.complete(index)
            }
            waiting.join().unwrap().unwrap();
        });
    }
}

#[test]
fn waiting_for_a_command_that_this_threads_host_accessor_blocks_is_an_error() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let access = host(&buffer, Read).unwrap();
    let blocked = queue.update("blocked", &buffer);
    let behind = queue.group().after(&blocked).kernel("behind");
    for result in [wait_for_node(&blocked), wait_for_node(&behind), queue.queue.wait()] {
        let error = result.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid);
        assert!(error.to_string().contains("host accessor"), "{error}");
    }
    // Another thread can wait.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_for_node(&behind));
        std::thread::sleep(A_WHILE);
        assert!(!waiting.is_finished());
        drop(access);
        world.recorder.complete_all();
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn a_second_host_accessor_that_waits_for_the_first_of_its_thread_is_an_error_and_leaves_no_trace() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let first = host(&buffer, Read).unwrap();
    assert_eq!(host(&buffer, ReadWrite).map(drop).unwrap_err().code(), ErrorCode::Invalid);
    queue.update("blocked", &buffer);
    assert_eq!(host(&buffer, Read).map(drop).unwrap_err().code(), ErrorCode::Invalid);
    drop(first);
    // What was given up blocks nobody and does not count as held.
    let node = queue.update("behind", &buffer);
    assert_eq!(world.waits("behind"), ["blocked"]);
    world.recorder.complete_all();
    wait_for_node(&node).unwrap();
}

#[test]
fn a_host_task_that_waits_for_itself_is_an_error() {
    let world = World::new(1);
    let queue = world.queue(0);
    let (tell, told) = channel();
    let inner = queue.queue.clone();
    let task = queue.group().host_task(move || tell.send(inner.wait()).unwrap());
    let error = told.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    eventually(|| task.has_succeeded());
}

#[test]
fn a_host_task_that_waits_for_a_command_behind_it_is_an_error() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let (queue, other) = (world.queue(0), world.queue(0));
    let (submit, submitted) = channel();
    let (tell, told) = channel();
    let task = queue.group().update(&buffer).host_task(move || {
        let node = submitted.recv().unwrap();
        tell.send(wait_for_node(&node)).unwrap();
    });
    submit.send(other.update("behind", &buffer)).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap().unwrap_err().code(), ErrorCode::Invalid);
    eventually(|| task.has_succeeded());
}

#[test]
fn a_host_task_may_wait_for_another_queue() {
    let world = World::new(1);
    let (queue, other) = (world.queue(0), world.queue(0));
    other.group().kernel("other");
    let (tell, told) = channel();
    let inner = other.queue.clone();
    queue.group().host_task(move || tell.send(inner.wait()).unwrap());
    assert!(told.recv_timeout(A_WHILE).is_err());
    world.complete("other");
    told.recv_timeout(PATIENCE).unwrap().unwrap();
}
