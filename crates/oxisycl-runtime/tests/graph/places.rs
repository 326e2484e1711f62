//! Queues that take a limited number of unfinished commands.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::Wake;

use oxisycl_backend::{FailureKind, MAX_PRINTING};
use oxisycl_backend_testing::recording::{CompletionMode, RecordingConfig};
use oxisycl_runtime::graph::Node;

use oxisycl_types::AccessMode::ReadWrite;
use parking_lot::Mutex;

use crate::support::{Buffer, PATIENCE, TestQueue, World, host};
use crate::ways::printing_kernel;

const MOST: usize = 3;

/// Devices whose queues take few commands, with queues in order and not, that keep their order and do not.
fn worlds() -> [(World, TestQueue); 3] {
    let config = || RecordingConfig::new(2).taking(MOST);
    let [free, ordered] = [0, 1].map(|_| World::with(config()));
    let keeping = World::with(config().keeping_order());
    let queues = [free.queue(0), ordered.in_order_queue(0), keeping.in_order_queue(0)];
    let [first, second, third] = queues;
    [(free, first), (ordered, second), (keeping, third)]
}

#[test]
fn a_backend_has_no_more_commands_of_a_queue_than_it_takes() {
    for (world, queue) in worlds() {
        let nodes: Vec<Arc<Node>> = (0..10).map(|_| queue.group().kernel("many")).collect();
        // Another queue of the device has places of its own.
        let other = world.queue(0).group().kernel("other");
        world.complete("other");
        assert!(other.has_succeeded());
        while let Some(&index) = world.recorder.ready().last() {
            let n_left = nodes.iter().filter(|node| !node.is_complete()).count();
            assert_eq!(world.recorder.pending().len(), n_left.min(MOST));
            world.recorder.complete(index);
        }
        assert!(nodes.iter().all(|node| node.has_succeeded()));
    }
}

#[test]
fn commands_are_issued_in_their_order_as_places_become_free() {
    for (world, queue) in worlds() {
        let names = ["a", "b", "c", "d", "e", "f"];
        names.iter().for_each(|name| drop(queue.group().kernel(name)));
        assert!(world.has("c") && !world.has("d"));
        for (ended, issued) in [("a", "d"), ("b", "e"), ("c", "f")] {
            world.complete(ended);
            assert!(world.has(issued), "{issued} has the place of {ended}");
        }
        let places = names.map(|name| world.find(name));
        assert!(places.is_sorted(), "{places:?}");
        world.recorder.complete_all();
    }
}

#[test]
fn a_command_behind_one_without_a_place_is_issued_after_it() {
    let world = World::with(RecordingConfig::new(1).taking(1));
    let queues = [world.queue(0), world.queue(0)];
    let buffer = Buffer::new(4);
    queues[0].group().kernel("first");
    queues[0].discard("waiting", &buffer);
    let behind = queues[1].read("behind", &buffer);
    assert!(!world.has("waiting") && !world.has("behind"));
    world.complete("first");
    assert!(world.has("waiting") && world.waits("behind") == ["waiting"]);
    world.recorder.complete_all();
    assert!(behind.has_succeeded());
}

#[test]
fn queues_that_wait_for_each_other_go_on() {
    let world = World::with(RecordingConfig::new(2).taking(1));
    let queues = [world.queue(0), world.queue(1)];
    let buffers = [Buffer::new(4).initialized(), Buffer::new(4).initialized()];
    let nodes: Vec<Arc<Node>> = (0..40)
        .map(|n| queues[n % 2].group().read(&buffers[n / 3 % 2]).update(&buffers[n / 5 % 2]).kernel("step"))
        .collect();
    world.recorder.complete_all();
    assert!(nodes.iter().all(|node| node.has_succeeded()));
}

#[test]
fn commands_that_fail_or_are_refused_give_their_places_back() {
    for (world, queue) in worlds() {
        let failing = queue.group().kernel("failing");
        let dependents: Vec<Arc<Node>> = (0..5).map(|_| queue.group().after(&failing).kernel("dependent")).collect();
        world.lose("failing");
        world.recorder.complete_all();
        for node in &dependents {
            assert!(matches!(node.failure().expect("data is lost").kind(), FailureKind::Dependency(_)));
        }
        // A refusal that the caller sees, and one of a command that had waited for a place.
        for nth in [1, MOST as u64 + 1] {
            world.recorder.refuse_command(nth);
            let submitted: Vec<_> = (0..=MOST).map(|_| queue.group().submit()).collect();
            world.recorder.complete_all();
            let is_refused = |node: &Arc<Node>| {
                node.failure().is_some_and(|failure| matches!(failure.kind(), FailureKind::Device(_)))
            };
            assert_eq!(submitted[0].is_err(), nth == 1);
            assert_eq!(submitted.iter().flatten().filter(|node| is_refused(node)).count(), usize::from(nth > 1));
        }
        let before = world.recorder.len();
        let nodes: Vec<Arc<Node>> = (0..=MOST).map(|_| queue.group().kernel("later")).collect();
        assert_eq!(world.recorder.len() - before, MOST, "all places are free again");
        world.recorder.complete_all();
        assert!(nodes.iter().all(|node| node.has_succeeded()));
    }
}

#[test]
fn launches_that_may_print_need_places_of_both_kinds() {
    let world = World::with(RecordingConfig::new(1).taking(MAX_PRINTING + 2));
    let queue = world.queue(0);
    let nodes: Vec<Arc<Node>> = (0..2 * MAX_PRINTING)
        .flat_map(|_| {
            let printing = queue.group().command(printing_kernel("printing")).submit().expect("accepted");
            [printing, queue.group().kernel("quiet")]
        })
        .collect();
    while let Some(&index) = world.recorder.ready().first() {
        let pending = world.recorder.pending();
        let n_printing = pending.iter().filter(|&&index| world.recorder.command(index).label == "printing").count();
        assert!(n_printing <= MAX_PRINTING && pending.len() <= MAX_PRINTING + 2);
        world.recorder.complete(index);
    }
    assert!(nodes.iter().all(|node| node.has_succeeded()));
}

#[test]
fn long_backlogs_end_without_recursion() {
    for (world, queue) in worlds() {
        let n = if cfg!(miri) { 30 } else { 20_000 };
        let nodes: Vec<Arc<Node>> = (0..n).map(|_| queue.group().kernel("many")).collect();
        // Each end is within the call that ended the one before.
        world.recorder.set_mode(CompletionMode::AtOnce);
        world.recorder.complete_all();
        assert!(nodes.iter().all(|node| node.has_succeeded()));
    }
}

#[test]
fn a_place_is_free_before_a_waker_runs() {
    struct Looks(Mutex<Box<dyn Fn() -> bool + Send>>, Sender<bool>);
    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            let _ = self.1.send((self.0.lock())());
        }
    }
    let world = World::with(RecordingConfig::new(1).taking(1));
    let queue = world.queue(0);
    let first = queue.group().kernel("first");
    queue.group().kernel("second");
    let (tell, told) = channel();
    let recorder = world.recorder.clone();
    let has_second = move || recorder.commands().iter().any(|command| command.label == "second");
    first.register_waker(&Arc::new(Looks(Mutex::new(Box::new(has_second)), tell)).into());
    world.complete("first");
    assert!(told.recv_timeout(PATIENCE).unwrap(), "the second command was issued before");
    world.recorder.complete_all();
}

#[test]
fn commands_that_were_delayed_and_waited_for_places_are_forgotten() {
    let world = World::with(RecordingConfig::new(1).taking(3));
    let queue = world.queue(0);
    let buffer = Buffer::new(4).initialized();
    let access = host(&buffer, ReadWrite).unwrap();
    let nodes: Vec<Arc<Node>> = (0..100).map(|_| queue.read("reader", &buffer)).collect();
    drop(access);
    world.recorder.complete_all();
    assert!(nodes.iter().all(|node| node.has_succeeded()));
    let n_listed: usize = nodes.iter().map(Arc::weak_count).sum();
    assert!(n_listed <= 2, "{n_listed} of 100 commands are still listed as delayed");
}
