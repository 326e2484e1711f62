//! What is counted for the whole process, and chains that are too long for recursion. One test at a time.

#[path = "graph/support.rs"]
#[allow(dead_code, reason = "shared with the graph tests")]
mod support;

use oxisycl_backend::{Command, CopyCommand, MemoryId, PitchedBox, QueueOptions};
use oxisycl_backend_testing::recording::{CompletionMode, RecordingConfig};
use oxisycl_runtime::observe::{Counters, counters};
use oxisycl_types::AccessMode::{Read, ReadWrite};
use parking_lot::{Mutex, MutexGuard};

use support::{Buffer, Change, World, eventually, host};

/// Lets one test at a time count, from the values it finds.
struct Count {
    before: Counters,
    _alone: MutexGuard<'static, ()>,
}

impl Count {
    fn begin() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock();
        Self { before: counters().snapshot(), _alone: alone }
    }

    fn so_far(&self) -> Counters {
        counters().snapshot() - self.before
    }
}

#[test]
fn node_count_returns_to_zero() {
    const STEPS: usize = if cfg!(miri) { 10 } else { 100 };
    let count = Count::begin();
    {
        let (world, buffer) = (World::new(2), Buffer::new(8).initialized());
        let queues = [world.queue(0), world.in_order_queue(1)];
        let access = host(&buffer, ReadWrite).unwrap();
        for step in 0..STEPS {
            queues[step % 2].group().access(&buffer, ReadWrite, false, Change::Add(1)).kernel("step");
        }
        queues[0].group().read(&buffer).host_task(|| {});
        assert!(count.so_far().live_nodes() >= STEPS as u64 + 2);
        drop(access);
        world.recorder.complete_all();
        eventually(|| count.so_far().live_nodes() == 0);
        assert_eq!(buffer.read(&world)[0], STEPS as u32);
    }
    assert_eq!(count.so_far().live_nodes(), 0);
    let so_far = count.so_far();
    assert_eq!(so_far.buffer_allocations, so_far.buffer_frees);
}

#[test]
fn a_refused_command_leaves_no_live_node() {
    let count = Count::begin();
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    let queue = world.queue(0);
    for nth in [1, 2] {
        world.recorder.refuse_command(nth);
        assert!(queue.group().update(&buffer).try_kernel("refused").is_err());
        world.recorder.complete_all();
    }
    world.recorder.refuse_command(1);
    assert!(queue.group().update(&buffer).try_kernel("refused").is_err());
    let access = host(&Buffer::new(1), Read).unwrap();
    drop(access);
    assert_eq!(count.so_far().live_nodes(), 0);
}

#[test]
fn an_executed_command_whose_place_in_the_queue_is_refused_leaves_no_live_node() {
    let count = Count::begin();
    let world = World::with(RecordingConfig::new(1).keeping_order().executing_host_copies());
    let queue = world.in_order_queue(0);
    let mut places = [[0u8; 8]; 2];
    let [source, target] = places.each_mut().map(|place| PitchedBox {
        memory: MemoryId::HOST,
        pointer: place.as_mut_ptr(),
        row_pitch: 8,
        slice_pitch: 8,
    });
    // The marker that the copy would come after.
    world.recorder.refuse_command(1);
    let copy = Command::from(CopyCommand { source, target, extent: [1, 1, 8] });
    assert!(queue.group().command(copy).submit().is_err());
    assert_eq!((count.so_far().live_nodes(), world.recorder.n_executions()), (0, 0));
}

#[test]
fn failed_commands_are_counted_and_leave_no_live_node() {
    let count = Count::begin();
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("failing", &buffer);
    for _ in 0..10 {
        queue.read("reader", &buffer);
    }
    world.lose("failing");
    assert_eq!((count.so_far().failures, count.so_far().live_nodes()), (11, 0));
}

#[test]
fn transfers_are_counted_by_direction() {
    let count = Count::begin();
    let (world, buffer) = (World::new(2), Buffer::paged(16, 4).initialized());
    world.queue(0).update("all", &buffer);
    world.queue(1).update("part", buffer.part(0, 4));
    world.at_once(|| drop(host(buffer.part(0, 8), Read).unwrap()));
    let so_far = count.so_far();
    assert_eq!((so_far.transfers_to_device, so_far.bytes_to_device), (1, 64));
    assert_eq!((so_far.transfers_between_devices, so_far.bytes_between_devices), (1, 16));
    assert_eq!((so_far.transfers_to_host, so_far.bytes_to_host), (2, 32));
    assert_eq!((so_far.kernels, so_far.host_accessors), (2, 1));
}

#[test]
fn only_what_the_scheduler_holds_back_counts_as_delayed() {
    let count = Count::begin();
    let (world, a, b) = (World::new(1), Buffer::new(8), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("first", &a);
    queue.update("second", &a);
    assert_eq!(count.so_far().delayed_commands, 0);
    let access = host(&b, Read).unwrap();
    queue.update("delayed", &b);
    queue.update("behind", &b);
    assert_eq!(count.so_far().delayed_commands, 2);
    drop(access);
    assert_eq!(count.so_far().cross_context_dependencies, 0);
}

#[test]
fn dependencies_across_contexts_are_counted() {
    let count = Count::begin();
    let world = World::new(1);
    let other = world.queue_in(&world.other_context(), 0, QueueOptions::default());
    let queue = world.queue(0);
    let first = queue.group().kernel("first");
    let second = queue.group().after(&first).kernel("second");
    other.group().after(&first).after(&second).kernel("third");
    assert_eq!((count.so_far().cross_context_dependencies, count.so_far().delayed_commands), (2, 1));
}

/// Runs on a stack on which deep recursion cannot hide.
fn on_a_small_stack(f: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, f);
        thread.expect("a thread").join().expect("no panic");
    });
}

const MANY: usize = if cfg!(miri) { 50 } else { 100_000 };

#[test]
fn a_hundred_thousand_delayed_commands_in_a_chain_are_released_without_recursion() {
    let count = Count::begin();
    on_a_small_stack(|| {
        for mode in [CompletionMode::Manual, CompletionMode::AtOnce] {
            let world = World::with(RecordingConfig::new(1).mode(mode));
            let buffer = Buffer::new(1).initialized();
            let queue = world.queue(0);
            let access = host(&buffer, ReadWrite).unwrap();
            for _ in 0..MANY {
                queue.group().access(&buffer, ReadWrite, false, Change::Add(1)).kernel("step");
            }
            assert_eq!(world.recorder.len(), 0);
            drop(access);
            assert_eq!(world.recorder.len(), MANY + 1);
            world.recorder.complete_all();
            assert_eq!(buffer.read(&world), [MANY as u32]);
        }
    });
    assert_eq!(count.so_far().live_nodes(), 0);
}

#[test]
fn a_hundred_thousand_commands_behind_one_are_released_without_recursion() {
    let count = Count::begin();
    on_a_small_stack(|| {
        let (world, buffer) = (World::with(RecordingConfig::new(1).mode(CompletionMode::AtOnce)), Buffer::new(1));
        let queue = world.queue(0);
        let access = host(&buffer, ReadWrite).unwrap();
        let gate = queue.read("gate", &buffer);
        for _ in 0..MANY {
            queue.group().after(&gate).kernel("step");
        }
        drop(access);
        assert_eq!(world.recorder.len(), MANY + 2);
    });
    assert_eq!(count.so_far().live_nodes(), 0);
}

#[test]
fn a_hundred_thousand_commands_across_contexts_run_without_recursion() {
    let count = Count::begin();
    on_a_small_stack(|| {
        let (world, buffer) = (World::new(1), Buffer::new(1).initialized());
        let queues = [world.queue(0), world.queue_in(&world.other_context(), 0, QueueOptions::default())];
        for step in 0..MANY {
            queues[step % 2].group().access(&buffer, ReadWrite, false, Change::Add(1)).kernel("step");
        }
        world.recorder.set_mode(CompletionMode::AtOnce);
        world.recorder.complete(0);
        assert_eq!(buffer.read(&world), [MANY as u32]);
    });
    assert_eq!(count.so_far().live_nodes(), 0);
}

#[test]
fn a_failure_travels_along_a_hundred_thousand_commands_without_recursion() {
    let count = Count::begin();
    on_a_small_stack(|| {
        let (world, buffer) = (World::new(1), Buffer::new(1));
        let queues = [world.queue(0), world.queue_in(&world.other_context(), 0, QueueOptions::default())];
        queues[0].update("failing", &buffer);
        for step in 0..MANY {
            // Runs of commands that the backend knows, between such that the scheduler holds back.
            queues[step / 10 % 2].update("step", &buffer);
        }
        world.lose("failing");
        assert_eq!(world.recorder.pending(), [0; 0]);
    });
    assert_eq!((count.so_far().live_nodes(), count.so_far().failures), (0, MANY as u64 + 1));
}
