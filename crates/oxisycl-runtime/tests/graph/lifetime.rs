//! How long memory, events and user values live.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use oxisycl_backend_testing::recording::CompletionMode;
use oxisycl_runtime::graph::Node;
use oxisycl_types::AccessMode::Read;

use crate::support::{Buffer, World, host};

#[test]
fn nodes_hold_buffers_until_completion_not_until_enqueue() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let n_allocations = || world.recorder.n_allocations(world.memory(0));
    let node = world.queue(0).update("writer", &buffer);
    drop(buffer);
    assert_eq!(n_allocations(), 1);
    world.complete("writer");
    assert_eq!(n_allocations(), 0);
    assert!(node.has_succeeded());
}

#[test]
fn copies_hold_both_ends() {
    let (world, buffer) = (World::new(2), Buffer::new(8));
    let n_allocations = || [0, 1].map(|device| world.recorder.n_allocations(world.memory(device)));
    world.queue(0).update("writer", &buffer);
    world.queue(1).read("reader", &buffer);
    drop(buffer);
    for name in ["writer", "copy", "reader"] {
        assert_eq!(n_allocations(), [1, 1]);
        world.complete(name);
    }
    assert_eq!(n_allocations(), [0, 0]);
}

#[test]
fn a_removed_allocation_does_not_count_as_current_any_more() {
    let (world, buffer) = (World::new(3), Buffer::new(8).initialized());
    let core = buffer.0.core.clone();
    world.queue(0).read("reader", &buffer);
    world.recorder.complete_all();
    // A writer that never runs, so that the data is where it was before: on the host and on the first device.
    let writer = world.queue(1).update("writer", &buffer);
    world.recorder.lose(world.copies()[1].0);
    assert!(writer.has_failed());
    {
        let mut state = core.lock();
        let position = state.find(world.memory(0)).unwrap();
        assert!(!state.is_only_copy(&core, position));
        // SAFETY: no command is pending.
        unsafe { state.remove(&core, position) };
    }
    assert_eq!(world.recorder.n_allocations(world.memory(0)), 0);
    // The next allocation takes the place of the removed one.
    world.queue(2).read("elsewhere", &buffer);
    assert_eq!(world.waits("elsewhere"), ["copy"]);
    assert_eq!(world.copies()[2].1.route(), Some((oxisycl_backend::MemoryId::HOST, world.memory(2))));
}

#[test]
fn a_delayed_command_holds_its_buffers() {
    let (world, buffer, blocked) = (World::new(1), Buffer::new(8), Buffer::new(8));
    let access = host(&blocked, Read).unwrap();
    world.queue(0).group().update(&buffer).update(&blocked).kernel("delayed");
    drop(buffer);
    assert_eq!(world.recorder.n_allocations(world.memory(0)), 2);
    drop(access);
    world.complete("delayed");
    assert_eq!(world.recorder.n_allocations(world.memory(0)), 1);
}

#[test]
fn commands_outlive_their_queue() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let first = queue.update("first", &buffer);
    let second = queue.update("second", &buffer);
    drop(queue);
    world.recorder.complete_all();
    assert!(first.has_succeeded() && second.has_succeeded());
}

/// Looks at a command while it is dropped.
struct Watch {
    node: Arc<std::sync::OnceLock<Weak<Node>>>,
    was_complete: Arc<AtomicBool>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let node = self.node.get().and_then(Weak::upgrade);
        self.was_complete.store(node.is_none_or(|node| node.is_complete()), Ordering::Release);
    }
}

#[test]
fn held_values_end_before_the_command_counts_as_complete() {
    let world = World::new(1);
    let (node, was_complete) = (Arc::new(std::sync::OnceLock::new()), Arc::new(AtomicBool::new(true)));
    let watch = Watch { node: node.clone(), was_complete: was_complete.clone() };
    let command = world.queue(0).group().hold(watch).kernel("command");
    node.set(Arc::downgrade(&command)).unwrap();
    world.complete("command");
    assert!(!was_complete.load(Ordering::Acquire));
}

/// Ends all other commands while the one that holds it is ending.
struct EndsTheOthers(World, Arc<AtomicUsize>, Vec<Weak<Node>>);

impl Drop for EndsTheOthers {
    fn drop(&mut self) {
        while let Some(&next) = self.0.recorder.ready().first() {
            self.0.recorder.complete(next);
        }
        let n_complete = self.2.iter().filter_map(Weak::upgrade).filter(|node| node.is_complete()).count();
        self.1.store(n_complete, Ordering::Release);
    }
}

#[test]
fn a_command_ends_after_what_it_depends_on_in_whatever_order_a_backend_tells_of_their_ends() {
    // A device ran all of these before its first thread came to say that the first command has ended.
    const N_COMMANDS: usize = if cfg!(miri) { 20 } else { 5000 };
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let recorder = world.recorder.clone();
    let queue = world.queue(0);
    let n_complete = Arc::new(AtomicUsize::new(usize::MAX));
    let slot = Arc::new(std::sync::Mutex::new(None::<EndsTheOthers>));
    let first = queue.group().update(&buffer).hold(slot.clone()).kernel("first");
    let nodes: Vec<Arc<Node>> = (0..N_COMMANDS).map(|_| queue.update("next", &buffer)).collect();
    let weak = nodes.iter().map(Arc::downgrade).collect();
    *slot.lock().unwrap() = Some(EndsTheOthers(world, n_complete.clone(), weak));
    drop(slot);
    recorder.complete(0);
    assert_eq!(n_complete.load(Ordering::Acquire), 0, "ends that were told before that of the first command");
    assert!(first.has_succeeded() && nodes.iter().all(|node| node.has_succeeded()));
}

#[test]
fn events_keep_nothing_but_themselves() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let first = Arc::downgrade(&queue.update("first", &buffer));
    let second = queue.group().update(&buffer).hold(Arc::new(())).kernel("second");
    let access = host(&Buffer::new(1), Read).unwrap();
    drop((buffer, access));
    assert!(first.upgrade().is_some(), "\"second\" waits for it");
    world.recorder.complete_all();
    assert!(first.upgrade().is_none());
    assert!(second.blockers().is_empty());
    assert_eq!(world.recorder.n_allocations(world.memory(0)), 0);
}

#[test]
fn garbage_of_a_context_is_dropped_after_pending_commands() {
    let world = World::new(1);
    let queues = [world.queue(0), world.queue(0)];
    queues[0].group().kernel("first");
    queues[1].group().kernel("second");
    let garbage = Arc::new(());
    world.context.discard(garbage.clone());
    queues[0].group().kernel("later");
    assert_eq!(Arc::strong_count(&garbage), 2);
    world.complete("first");
    assert_eq!(Arc::strong_count(&garbage), 2);
    world.complete("second");
    assert_eq!(Arc::strong_count(&garbage), 1, "later commands do not count");
}

#[test]
fn garbage_is_dropped_at_once_if_nothing_is_pending() {
    let world = World::new(1);
    let queue = world.queue(0);
    queue.group().kernel("ended");
    world.recorder.complete_all();
    let garbage = Arc::new(());
    world.context.discard(garbage.clone());
    assert_eq!(Arc::strong_count(&garbage), 1);
}

#[test]
fn garbage_waits_for_commands_of_a_queue_that_is_gone() {
    let world = World::new(1);
    let queue = world.queue(0);
    queue.group().kernel("pending");
    drop(queue);
    // New queues make the context look through its list.
    let _others: Vec<_> = (0..20).map(|_| world.queue(0)).collect();
    let garbage = Arc::new(());
    world.context.discard(garbage.clone());
    assert_eq!(Arc::strong_count(&garbage), 2);
    world.complete("pending");
    assert_eq!(Arc::strong_count(&garbage), 1);
}

#[test]
fn garbage_of_another_context_does_not_wait() {
    let world = World::new(1);
    world.queue(0).group().kernel("pending");
    let garbage = Arc::new(());
    world.other_context().discard(garbage.clone());
    assert_eq!(Arc::strong_count(&garbage), 1);
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn a_waker_is_called_once_when_the_command_has_ended() {
    let world = World::new(1);
    let queue = world.queue(0);
    let node = queue.group().kernel("command");
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    node.register_waker(&waker);
    node.register_waker(&waker.clone());
    assert_eq!(count.0.load(Ordering::Acquire), 0);
    world.complete("command");
    assert_eq!(count.0.load(Ordering::Acquire), 1);
    node.register_waker(&waker);
    assert_eq!(count.0.load(Ordering::Acquire), 2, "at once for a command that has ended");
}

/// Submits another command when it is dropped.
struct Resubmit {
    queue: Arc<oxisycl_runtime::schedule::Queue>,
    nodes: Arc<parking_lot::Mutex<Vec<Arc<Node>>>>,
    left: u32,
}

impl Drop for Resubmit {
    fn drop(&mut self) {
        if self.left == 0 {
            return;
        }
        let (queue, nodes) = (self.queue.clone(), self.nodes.clone());
        let next = Resubmit { queue: queue.clone(), nodes: nodes.clone(), left: self.left - 1 };
        let mut group = oxisycl_runtime::schedule::CommandGroup::default();
        group.kept_alive.push(oxisycl_runtime::graph::KeptAlive::Other(Box::new(next)));
        // SAFETY: the group has no commands.
        let node = unsafe { queue.submit(&mut group) }.ok();
        nodes.lock().extend(node);
    }
}

#[test]
fn a_destructor_may_submit_to_the_queue_that_ends_its_value() {
    for mode in [CompletionMode::Manual, CompletionMode::AtOnce] {
        let world = World::with(oxisycl_backend_testing::recording::RecordingConfig::new(1).mode(mode));
        let queue = world.in_order_queue(0);
        let nodes = Arc::new(parking_lot::Mutex::new(Vec::new()));
        drop(Resubmit { queue: queue.queue.clone(), nodes: nodes.clone(), left: 20 });
        world.recorder.complete_all();
        let nodes = nodes.lock();
        assert_eq!(nodes.len(), 20);
        assert!(nodes.iter().all(|node| node.has_succeeded()));
    }
}
