//! Commands that the scheduler itself holds back: for host accessors, host tasks and other contexts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use oxisycl_backend::{DependencyKind, QueueOptions};
use oxisycl_runtime::graph::{Dependency, Node, NodeKind, Work, start};
use oxisycl_types::AccessMode::{Read, ReadWrite};
use smallvec::SmallVec;

use crate::support::{A_WHILE, Buffer, HostThread, World, eventually, host};

#[test]
fn a_host_accessor_delays_only_conflicting_commands() {
    let (world, buffer) = (World::new(1), Buffer::paged(16, 4));
    let queue = world.queue(0);
    let access = host(buffer.part(0, 4), ReadWrite).unwrap();
    let node = queue.update("same page", buffer.part(0, 1));
    queue.update("other page", buffer.part(4, 8));
    queue.update("other buffer", &Buffer::new(1));
    assert!(!world.has("same page") && world.has("other page") && world.has("other buffer"));
    assert!(!node.is_handed_over());
    drop(access);
    assert_eq!(world.waits("same page"), ["copy"]);
}

#[test]
fn a_host_accessor_that_reads_delays_no_reader() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    let queue = world.queue(0);
    let access = host(&buffer, Read).unwrap();
    queue.read("reader", &buffer);
    queue.update("writer", &buffer);
    assert!(world.has("reader") && !world.has("writer"));
    drop(access);
    assert!(world.has("writer"));
}

#[test]
fn commands_behind_a_delayed_command_are_handed_over_when_it_is() {
    let (world, a, b) = (World::new(1), Buffer::new(8), Buffer::new(8));
    let queue = world.queue(0);
    let access = host(&a, ReadWrite).unwrap();
    let first = queue.group().update(&a).update(&b).kernel("first");
    let second = queue.update("second", &b);
    let third = queue.group().after(&second).kernel("third");
    assert_eq!(world.recorder.len(), 0);
    drop(access);
    assert!([&first, &second, &third].iter().all(|node| node.is_handed_over() && !node.is_complete()));
    assert_eq!((world.waits("second"), world.waits("third")), (vec!["first".to_owned()], vec!["second".to_owned()]));
}

#[test]
fn delayed_commands_are_handed_over_in_the_order_of_submission() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    let queue = world.queue(0);
    let access = host(&buffer, ReadWrite).unwrap();
    for name in ["first", "second", "third"] {
        queue.read(name, &buffer);
    }
    drop(access);
    let order: Vec<String> = world.recorder.commands().into_iter().map(|command| command.label).collect();
    assert_eq!(order, ["copy", "first", "second", "third"]);
}

#[test]
fn a_command_waits_for_every_host_accessor_that_blocks_it() {
    let (world, a, b) = (World::new(1), Buffer::new(8), Buffer::new(8));
    let queue = world.queue(0);
    let first = host(&a, ReadWrite).unwrap();
    let second = host(&b, ReadWrite).unwrap();
    queue.group().update(&a).update(&b).kernel("both");
    drop(first);
    assert!(!world.has("both"));
    drop(second);
    assert!(world.has("both"));
}

#[test]
fn an_in_order_queue_keeps_its_order_behind_a_delayed_command() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.in_order_queue(0);
    let access = host(&buffer, ReadWrite).unwrap();
    queue.update("delayed", &buffer);
    queue.group().kernel("next");
    assert!(!world.has("next"));
    drop(access);
    assert_eq!(world.waits("next"), ["delayed"]);
}

#[test]
fn a_host_accessor_waits_for_writers() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    world.queue(0).update("writer", &buffer);
    let access = HostThread::start(&buffer, Read);
    assert!(access.is_waiting());
    world.complete("writer");
    eventually(|| world.has("copy"));
    assert!(access.is_waiting(), "the data is not there yet");
    world.complete("copy");
    access.granted().unwrap();
    access.release();
}

#[test]
fn a_writing_host_accessor_waits_for_readers() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    world.queue(0).read("reader", &buffer);
    world.complete("copy");
    let reading = HostThread::start(&buffer, Read);
    reading.granted().unwrap();
    let writing = HostThread::start(&buffer, ReadWrite);
    world.complete("reader");
    assert!(writing.is_waiting(), "another thread reads");
    reading.release();
    writing.granted().unwrap();
    writing.release();
}

#[test]
fn host_accessors_to_different_pages_are_held_together() {
    let (world, buffer) = (World::new(1), Buffer::paged(16, 4));
    let first = host(buffer.part(0, 4), ReadWrite).unwrap();
    let second = host(buffer.part(4, 8), ReadWrite).unwrap();
    world.queue(0).update("page 2", buffer.part(8, 12));
    assert!(world.has("page 2"));
    drop((first, second));
}

#[test]
fn a_host_task_runs_after_its_dependencies_and_before_its_dependents() {
    let (world, buffer) =
        (World::with(oxisycl_backend_testing::recording::RecordingConfig::new(1).with_host()), Buffer::new(8));
    let (host_queue, queue) = (world.queue(0), world.queue(1));
    queue.update("before", &buffer);
    let (started, has_started) = channel();
    let (finish, may_finish) = channel();
    let task = host_queue.group().update(&buffer).host_task(move || {
        started.send(()).unwrap();
        may_finish.recv().unwrap();
    });
    let after = queue.update("after", &buffer);
    assert!(
        has_started.recv_timeout(A_WHILE).is_err(),
        "a host task waits for the end of commands, not their hand-over"
    );
    world.complete("before");
    world.complete("copy");
    has_started.recv().unwrap();
    assert!(task.is_handed_over() && !task.is_complete() && !world.has("after"));
    finish.send(()).unwrap();
    eventually(|| after.is_handed_over());
    assert!(task.has_succeeded());
}

#[test]
fn a_host_task_delays_nothing_else() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let (finish, may_finish) = channel();
    let task = queue.group().update(&buffer).host_task(move || may_finish.recv().unwrap());
    queue.update("independent", &Buffer::new(8));
    queue.update("dependent", &buffer);
    assert!(world.has("independent") && !world.has("dependent"));
    finish.send(()).unwrap();
    eventually(|| world.has("dependent"));
    assert!(task.has_succeeded());
}

#[test]
fn dependency_of_another_context_is_waited_for_by_the_scheduler() {
    let world = World::new(1);
    let other = world.queue_in(&world.other_context(), 0, QueueOptions::default());
    let queue = world.queue(0);
    let first = queue.group().kernel("first");
    let second = other.group().after(&first).kernel("second");
    assert!(!world.has("second") && !second.is_handed_over());
    world.complete("first");
    assert_eq!(world.waits("second"), [""; 0]);
}

#[test]
fn a_chain_across_contexts_runs_in_order() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queues = [world.queue(0), world.queue_in(&world.other_context(), 0, QueueOptions::default())];
    let names = ["a0", "b1", "a2", "b3", "b4"];
    for (index, queue) in [0, 1, 0, 1, 1].into_iter().enumerate() {
        queues[queue].update(names[index], &buffer);
    }
    for name in names {
        let pending: Vec<String> =
            world.recorder.pending().into_iter().map(|index| world.recorder.command(index).label).collect();
        let expected = if name == "b3" { vec!["b3", "b4"] } else { vec![name] };
        assert_eq!(pending, expected);
        world.complete(name);
    }
}

#[test]
fn buffers_are_ordered_across_contexts() {
    let (world, buffer) = (World::new(2), Buffer::new(8).initialized());
    let other = world.queue_in(&world.other_context(), 1, QueueOptions::default());
    world.queue(0).update("writer", &buffer);
    let reader = other.read("reader", &buffer);
    world.recorder.complete_all();
    assert!(reader.has_succeeded());
    let names: Vec<String> = world.recorder.commands().into_iter().map(|command| command.label).collect();
    assert_eq!(names, ["copy", "writer", "copy", "reader"]);
}

#[test]
fn a_host_accessor_given_up_before_it_was_granted_ends_only_after_its_dependencies() {
    let world = World::new(1);
    let queue = world.queue(0);
    let first = queue.group().kernel("first");
    let shared = queue.queue.shared().clone();
    let access = Node::new(NodeKind::HostAccess, "host accessor", shared, None, SmallVec::new());
    // SAFETY: no command.
    unsafe { start(&access, Work::HostAccess, &[Dependency { node: first, kind: DependencyKind::Order }]) }.unwrap();
    let behind = queue.group().after(&access).kernel("behind");
    // SAFETY: nobody uses memory by right of it.
    unsafe { access.end_host_access() };
    assert!(!access.is_complete() && !behind.is_handed_over());
    world.complete("first");
    assert!(access.has_succeeded() && behind.is_handed_over());
}

#[test]
fn a_command_that_fails_for_a_dependency_ends_only_after_its_other_dependencies() {
    let (world, lost, slow, blocked) = (World::new(1), Buffer::new(8), Buffer::new(8), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("failing", &lost);
    queue.read("slow", &slow);
    let access = host(&blocked, Read).unwrap();
    let node = queue.group().read(&lost).update(&slow).update(&blocked).kernel("dependent");
    let behind = queue.discard("behind", &slow);
    world.lose("failing");
    drop(access);
    assert!(!node.is_complete() && !world.has("behind"));
    world.complete("slow");
    assert!(node.has_failed() && !world.has("dependent"));
    eventually(|| behind.is_handed_over());
    world.recorder.complete_all();
    assert!(behind.has_succeeded());
}

#[test]
fn a_command_that_is_known_to_fail_ends_only_after_its_other_dependencies() {
    let world = World::new(1);
    let queue = world.queue(0);
    let failing = queue.group().kernel("failing");
    let slow = queue.group().kernel("slow");
    world.lose("failing");
    let shared = queue.queue.shared().clone();
    let kind = NodeKind::Command(oxisycl_backend::Operation::Other);
    let node = Node::new(kind, "command", shared, None, SmallVec::new());
    let dependencies = [
        Dependency { node: failing, kind: DependencyKind::Data },
        Dependency { node: slow, kind: DependencyKind::Order },
    ];
    // SAFETY: a marker uses no memory.
    unsafe { start(&node, Work::Command(oxisycl_backend::Command::Marker), &dependencies) }.unwrap();
    assert!(!node.is_complete());
    world.complete("slow");
    assert!(node.has_failed() && !world.has("marker"));
}

#[test]
fn a_delayed_command_that_is_refused_ends_only_after_its_dependencies() {
    let (world, slow, blocked) = (World::new(1), Buffer::new(8), Buffer::new(8));
    let queue = world.queue(0);
    queue.read("slow", &slow);
    let access = host(&blocked, Read).unwrap();
    let node = queue.group().update(&slow).update(&blocked).kernel("refused");
    let behind = queue.discard("behind", &slow);
    world.recorder.refuse_command(1);
    drop(access);
    assert!(!node.is_complete(), "\"slow\" still reads what \"behind\" overwrites");
    assert!(!behind.is_handed_over());
    world.complete("slow");
    assert!(node.has_failed());
    assert_eq!(world.waits("behind"), [""; 0]);
}

#[test]
fn a_host_task_that_cannot_run_is_dropped_and_not_called() {
    struct Captured(Arc<AtomicBool>);
    impl Drop for Captured {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("failing", &buffer);
    let was_dropped = Arc::new(AtomicBool::new(false));
    let captured = Captured(was_dropped.clone());
    let task = queue.group().read(&buffer).host_task(move || {
        let _captured = &captured;
        panic!("it must not run");
    });
    world.lose("failing");
    eventually(|| task.has_failed());
    assert!(was_dropped.load(Ordering::Acquire));
}
