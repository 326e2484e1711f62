//! How commands get to their device: issued at once, issued late, or executed by a thread of the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::sleep;

use oxisycl_backend::{
    Batching, Command, CopyCommand, FailureKind, KernelInfo, LoadedKernel, MAX_PRINTING, MemoryId, PitchedBox,
    QueueOptions,
};
use oxisycl_backend_testing::recording::{CompletionMode, RecordingConfig};
use oxisycl_runtime::graph::Node;
use parking_lot::Mutex;

use crate::support::{A_WHILE, World, eventually, loaded_kernel};

/// Devices whose copies from host to host are executed, and whose in-order queues keep their order.
fn executing() -> World {
    World::with(RecordingConfig::new(1).keeping_order().executing_host_copies())
}

/// Whether no execution has begun, nor does in a while.
fn executes_nothing(world: &World) -> bool {
    sleep(A_WHILE);
    world.recorder.n_executions() == 0
}

#[test]
fn backend_sees_whether_queue_may_batch_kernels() {
    let world = World::new(1);
    let batchings = [Batching::Off, Batching::On, Batching::Always];
    let _queues = batchings
        .map(|batching| world.queue_in(&world.context, 0, QueueOptions { batching, ..QueueOptions::default() }));
    let seen: Vec<Batching> = world.recorder.queue_options().iter().map(|options| options.batching).collect();
    assert_eq!(seen, batchings);
}

/// A copy of eight bytes from a place on the host to another; both live to the end of the process.
pub(crate) fn copy_command() -> Command {
    /// What is listed here is no leak.
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let places = Box::leak(Box::new([[0u64; 1]; 2]));
    KEPT.lock().push(places.as_ptr().addr());
    let [source, target] = places.each_mut().map(|place| PitchedBox {
        memory: MemoryId::HOST,
        pointer: place.as_mut_ptr().cast(),
        row_pitch: 8,
        slice_pitch: 8,
    });
    Command::from(CopyCommand { source, target, extent: [1, 1, 8] })
}

#[test]
fn an_executed_command_comes_after_its_dependencies_and_before_its_dependents() {
    let world = executing();
    let queue = world.queue(0);
    let first = queue.group().kernel("first");
    let second = queue.group().kernel("second");
    let executed = queue.group().after(&first).after(&second).command(copy_command()).submit().unwrap();
    world.recorder.hold_executions();
    let dependent = queue.group().after(&executed).kernel("dependent");
    world.complete("second");
    assert!(executes_nothing(&world), "a dependency has not ended");
    world.complete("first");
    eventually(|| world.recorder.n_executions() == 1);
    sleep(A_WHILE);
    assert!(!executed.is_complete() && !world.has("dependent"));
    world.recorder.release_executions();
    eventually(|| world.has("dependent"));
    assert!(executed.has_succeeded() && world.waits("dependent").is_empty());
    world.complete("dependent");
    assert!(dependent.has_succeeded());
}

#[test]
fn an_executed_command_keeps_its_place_in_a_queue_that_keeps_the_order() {
    let world = executing();
    let queue = world.in_order_queue(0);
    queue.group().kernel("first");
    let executed = queue.group().command(copy_command()).submit().unwrap();
    world.recorder.hold_executions();
    let names = ["later", "last"];
    let later = names.map(|name| queue.group().kernel(name));
    world.complete("first");
    assert!(executes_nothing(&world), "the device has not said that all before has ended");
    world.complete("marker");
    eventually(|| world.recorder.n_executions() == 1);
    sleep(A_WHILE);
    assert!(!executed.is_complete() && !names.iter().any(|name| world.has(name)));
    world.recorder.release_executions();
    eventually(|| names.iter().all(|name| world.has(name)));
    assert!(executed.has_succeeded() && world.find("later") < world.find("last"));
    names.iter().for_each(|name| world.complete(name));
    assert!(later.iter().all(|node| node.has_succeeded()));
}

/// A copy of a byte of the host.
fn copy_byte(source: *mut u8, target: *mut u8) -> Command {
    let [source, target] =
        [source, target].map(|pointer| PitchedBox { memory: MemoryId::HOST, pointer, row_pitch: 1, slice_pitch: 1 });
    Command::from(CopyCommand { source, target, extent: [1, 1, 1] })
}

#[test]
fn executed_commands_of_two_threads_keep_the_order_of_their_queue() {
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 100 };
    /// Most commands of the other thread in a round, and how many of them come first.
    const OTHERS: usize = if cfg!(miri) { 4 } else { 200 };
    const BEFORE: usize = if cfg!(miri) { 1 } else { 4 };
    let world = executing();
    world.recorder.set_mode(CompletionMode::AtOnce);
    let (queue, elsewhere) = (world.in_order_queue(0), world.queue(0));
    // How many rounds have begun, and have their commands; and the number of the other thread's commands.
    let [begun, complete, n_others] = [const { AtomicUsize::new(0) }; 3];
    let until = |number: &AtomicUsize, least: usize| {
        while number.load(Ordering::Acquire) < least {
            std::thread::yield_now();
        }
    };
    let mut wrong = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                until(&begun, round);
                let mut submitted: Vec<Arc<Node>> = Vec::new();
                for index in 0..OTHERS {
                    submitted.push(match index % 2 {
                        0 => queue.group().command(copy_command()).submit().unwrap(),
                        _ => queue.group().kernel("other"),
                    });
                    n_others.fetch_add(1, Ordering::Release);
                    if index >= BEFORE && complete.load(Ordering::Acquire) == round {
                        break;
                    }
                }
                eventually(|| submitted.iter().all(|node| node.has_succeeded()));
            }
        });
        for round in 1..=ROUNDS {
            let (open, gate) = channel::<()>();
            let blocker = elsewhere.group().host_task(move || _ = gate.recv());
            let bytes = Box::into_raw(Box::new([round as u8, 0, 0])).cast::<u8>();
            let [source, middle, target] = [0, 1, 2].map(|index| bytes.wrapping_add(index));
            let n_earlier = n_others.load(Ordering::Acquire);
            begun.store(round, Ordering::Release);
            until(&n_others, n_earlier + BEFORE);
            let first = queue.group().after(&blocker).command(copy_byte(source, middle)).submit().unwrap();
            let second = queue.group().command(copy_byte(middle, target)).submit().unwrap();
            let last = queue.group().kernel("last");
            complete.store(round, Ordering::Release);
            std::thread::yield_now();
            let is_early = second.is_complete() || last.is_handed_over();
            open.send(()).expect("the host task waits");
            eventually(|| last.is_complete());
            let is_late = !first.has_succeeded() || !second.has_succeeded();
            if is_early || is_late {
                wrong.push(round);
                continue;
            }
            // SAFETY: the bytes were made above, and the copies have ended.
            let bytes = unsafe { Box::from_raw(bytes.cast::<[u8; 3]>()) };
            if *bytes != [round as u8; 3] {
                wrong.push(round);
            }
        }
    });
    // Not before: the other thread would wait for the next round.
    assert_eq!(wrong, Vec::<usize>::new(), "rounds of {ROUNDS}");
}

#[test]
fn an_executed_command_behind_a_failed_one_does_not_run() {
    let world = executing();
    let queue = world.queue(0);
    let failing = queue.group().kernel("failing");
    let executed = queue.group().after(&failing).command(copy_command()).submit().unwrap();
    let dependent = queue.group().after(&executed).kernel("dependent");
    world.lose("failing");
    eventually(|| executed.is_complete() && dependent.is_complete());
    for node in [&executed, &dependent] {
        assert!(matches!(node.failure().unwrap().kind(), FailureKind::Dependency(_)) && node.did_not_run());
    }
    assert!(executes_nothing(&world) && !world.has("dependent"));
}

/// A launch of a kernel that may print.
pub(crate) fn printing_kernel(name: &'static str) -> Command {
    #[derive(Debug)]
    struct Printing;

    impl LoadedKernel for Printing {
        fn info(&self) -> &KernelInfo {
            const { &KernelInfo { may_print: true, ..KernelInfo::NOTHING } }
        }
    }

    loaded_kernel(name, Arc::new(Printing))
}

#[test]
fn launches_that_may_print_are_delayed_while_many_are_unfinished() {
    const LAUNCHES: usize = 5 * MAX_PRINTING / 2;
    for in_order in [false, true] {
        let world = World::with(RecordingConfig::new(1).keeping_order());
        let queue = if in_order { world.in_order_queue(0) } else { world.queue(0) };
        let print = || queue.group().command(printing_kernel("printing")).submit().unwrap();
        let nodes: Vec<Arc<Node>> = (0..LAUNCHES).map(|_| print()).collect();
        assert_eq!(world.recorder.len(), MAX_PRINTING);
        // Another queue has launches of its own.
        let other = world.queue(0).group().command(printing_kernel("other")).submit().unwrap();
        world.complete("other");
        assert!(other.has_succeeded() && world.recorder.len() == MAX_PRINTING + 1);
        // The newest that can end is ended first, as far as the queue lets it.
        while let Some(&index) = world.recorder.ready().last() {
            assert!(world.recorder.pending().len() <= MAX_PRINTING);
            world.recorder.complete(index);
        }
        assert!(nodes.iter().all(|node| node.has_succeeded()));
    }
}

#[test]
fn a_launch_that_may_print_is_issued_when_any_other_has_ended() {
    let world = World::new(1);
    let queue = world.queue(0);
    let print = |name| queue.group().command(printing_kernel(name)).submit().unwrap();
    (0..MAX_PRINTING).for_each(|_| drop(print("printing")));
    let delayed = print("delayed");
    queue.group().after(&delayed).kernel("behind");
    assert!(!world.has("delayed") && !world.has("behind"));
    world.recorder.complete(3);
    assert!(world.has("delayed") && world.waits("behind") == ["delayed"]);
}

#[test]
fn a_launch_that_may_print_waits_for_a_failed_one_no_longer() {
    let world = World::new(1);
    let queue = world.queue(0);
    let print = || queue.group().command(printing_kernel("printing")).submit().unwrap();
    let nodes: Vec<Arc<Node>> = (0..=MAX_PRINTING).map(|_| print()).collect();
    world.recorder.lose(0);
    world.recorder.complete_all();
    assert!(nodes[0].has_failed() && nodes[1..].iter().all(|node| node.has_succeeded()));
}

#[test]
fn a_command_behind_an_event_that_its_queue_cannot_wait_for_is_delayed() {
    let world = World::with(RecordingConfig::new(2).waiting_for_own_device_only());
    let [near, far] = [0, 1].map(|device| world.queue(device));
    let first = near.group().kernel("first");
    let second = near.group().after(&first).kernel("second");
    let across = far.group().after(&first).kernel("across");
    let behind = far.group().after(&across).kernel("behind");
    assert_eq!(world.waits("second"), ["first"]);
    assert!(!world.has("across") && !world.has("behind") && !across.is_handed_over());
    world.complete("first");
    assert_eq!((world.waits("across").len(), world.waits("behind")), (0, vec!["across".to_owned()]));
    world.recorder.complete_all();
    assert!([&second, &across, &behind].iter().all(|node| node.has_succeeded()));
}

#[test]
fn a_dependent_that_ran_ahead_of_a_failure_is_spoiled_and_one_that_did_not_run_fails_with_it() {
    for runs_ahead in [false, true] {
        let world = World::new(1);
        let queue = world.queue(0);
        if runs_ahead {
            world.recorder.run_ahead();
        }
        let failing = queue.group().kernel("failing");
        let dependent = queue.group().after(&failing).kernel("dependent");
        let marker = queue.group().after(&dependent).submit().unwrap();
        world.lose("failing");
        let root = failing.failure().unwrap();
        for (node, has_run) in [(&dependent, runs_ahead), (&marker, false)] {
            let failure = node.failure().expect("data is lost");
            assert!(matches!(failure.kind(), FailureKind::Dependency(_)), "{failure}");
            assert_eq!(failure.root().to_string(), root.to_string());
            assert_eq!((failure.has_run(), node.did_not_run()), (has_run, !has_run), "{failure}");
        }
    }
}
