//! Small kernels that are staged and launched together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oxisycl_backend::{BackendError, Batching, Command, Completion, Device, FailureKind, Outcome, Queue, QueueOptions};
use oxisycl_backend_cuda::{native_context, native_streams};
use oxisycl_backend_testing::harness::create_queue;

use crate::fake::Fake;
use crate::support::{Issued, image, in_order, issue, kernel, launch, line};
use crate::words::Words;

/// More kernels than a busy stream launches one by one at first.
pub(crate) const MANY: usize = 40;
pub(crate) const SET: &str = "cuGraphExecKernelNodeSetParams_v2";

/// An in-order queue that stages every kernel that it can.
pub(crate) fn always(device: &Arc<dyn Device>) -> Arc<dyn Queue> {
    let options = QueueOptions { in_order: true, batching: Batching::Always, ..QueueOptions::default() };
    create_queue(device, &options).expect("a queue")
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

/// An in-order queue that is busy until `words` are opened, and stages further kernels like the given one.
pub(crate) fn busy(device: &Arc<dyn Device>, words: &Words, kernel: impl Fn() -> Command) -> Arc<dyn Queue> {
    busy_with(device, words, MANY, kernel)
}

/// One with so many kernels behind the first, all of which the driver has.
pub(crate) fn busy_with(
    device: &Arc<dyn Device>,
    words: &Words,
    n_kernels: usize,
    kernel: impl Fn() -> Command,
) -> Arc<dyn Queue> {
    let queue = in_order(device);
    issue(&queue, words.gate(&self::kernel(device, "gate")), &[]);
    for _ in 0..n_kernels {
        issue(&queue, kernel(), &[]);
    }
    queue.flush().expect("the device is alive");
    queue
}

#[test]
fn kernels_behind_a_busy_device_go_out_together_and_in_order() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine) = (Words::new(&device), kernel(&device, "affine"));
    let queue = busy(&device, &words, || words.same(&affine));
    let before = ["cuLaunchKernel", "cuGraphLaunch"].map(|call| fake.count(call));
    let commands: Vec<_> = (0..1000).map(|n| issue(&queue, words.affine(&affine, 3, n), &[])).collect();
    words.open();
    commands.iter().for_each(|command| command.probe.succeed());
    assert_eq!(
        words.at(0).load(Ordering::Acquire),
        (0..1000u32).fold(0, |sum: u32, n| sum.wrapping_mul(3).wrapping_add(n))
    );
    let [n_launches, n_graphs] =
        std::array::from_fn(|index| fake.count(["cuLaunchKernel", "cuGraphLaunch"][index]) - before[index]);
    assert!(
        n_graphs > 0 && n_launches + n_graphs < 900,
        "{n_launches} launches and {n_graphs} graphs for 1000 kernels"
    );
}

#[test]
fn kernels_of_an_idle_device_go_out_at_once() {
    let fake = Fake::new();
    let device = fake.device();
    let (queue, empty) = (in_order(&device), kernel(&device, "empty"));
    for _ in 0..2 * MANY {
        let n_launched = || fake.count("cuLaunchKernel") + fake.count("cuGraphLaunch");
        let before = n_launched();
        let command = issue(&queue, launch(&empty, "empty", &(), line(1)), &[]);
        assert_eq!(n_launched() - before, 1);
        command.probe.succeed();
    }
    assert!(fake.count("cuLaunchKernel") < MANY as u64, "a kernel that comes again and again is launched as a graph");
}

#[test]
fn kernels_of_several_functions_in_turn_go_out_one_by_one_and_in_order() {
    const MANY_FUNCTIONS: usize = 3;
    let fake = Fake::new();
    let device = fake.device();
    let words = Words::new(&device);
    let kernels: [_; MANY_FUNCTIONS] = std::array::from_fn(|_| kernel(&device, "affine"));
    let queue = busy(&device, &words, || words.same(&kernels[0]));
    let before = fake.count("cuLaunchKernel");
    let commands: Vec<_> =
        (0..600usize).map(|n| issue(&queue, words.affine(&kernels[n % MANY_FUNCTIONS], 3, n as u32), &[])).collect();
    let n_plain = fake.count("cuLaunchKernel") - before;
    words.open();
    commands.iter().for_each(|command| command.probe.succeed());
    assert_eq!(
        words.at(0).load(Ordering::Acquire),
        (0..600u32).fold(0, |sum: u32, n| sum.wrapping_mul(3).wrapping_add(n))
    );
    assert!(n_plain < 100, "{n_plain} launches that are no graphs");
}

#[test]
fn a_large_kernel_that_comes_again_and_again_is_launched_as_a_graph_but_not_staged() {
    let fake = Fake::new();
    let device = fake.device();
    let (queue, empty) = (in_order(&device), kernel(&device, "empty"));
    fake.set("paused", 1);
    let commands: Vec<_> = (0..100).map(|_| issue(&queue, launch(&empty, "empty", &(), line(1 << 24)), &[])).collect();
    let [n_launches, n_graphs] = ["cuLaunchKernel", "cuGraphLaunch"].map(|call| fake.count(call));
    fake.set("paused", 0);
    commands.iter().for_each(|command| command.probe.succeed());
    assert_eq!(n_launches + n_graphs, 100);
    assert!(n_graphs > 50, "{n_graphs} of 100 as graphs");
}

#[test]
fn a_staged_kernel_is_handed_over_without_a_further_call() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine) = (Words::new(&device), kernel(&device, "affine"));
    let queue = busy(&device, &words, || words.same(&affine));
    let before = fake.count("cuGraphLaunch");
    let command = issue(&queue, words.affine(&affine, 0, 7), &[]);
    until("the thread that keeps the bound hands it over", || fake.count("cuGraphLaunch") > before);
    words.open();
    // The probe only listens.
    command.probe.succeed();
    assert_eq!(words.at(0).load(Ordering::Acquire), 7);
}

/// Blocks the thread that tells it of the end.
struct Blocking {
    words: Arc<Words>,
    is_told: AtomicBool,
    has_ended: AtomicBool,
}

impl Completion for Blocking {
    unsafe fn complete(self: Arc<Self>, _outcome: Outcome) {
        self.is_told.store(true, Ordering::Release);
        until("a staged kernel runs while the poller is held up", || self.words.at(0).load(Ordering::Acquire) == 5);
        self.has_ended.store(true, Ordering::Release);
    }
}

#[test]
fn code_of_users_that_holds_up_the_poller_does_not_hold_up_a_staged_kernel() {
    // Nobody hands more to a device that is known to have hundreds: it may have finished them since that was known.
    for n_ahead in [MANY, 1000] {
        staged_while_the_poller_is_held_up(n_ahead);
    }
}

fn staged_while_the_poller_is_held_up(n_ahead: usize) {
    let fake = Fake::new();
    let device = fake.device();
    let words = Arc::new(Words::new(&device));
    let (affine, empty) = (kernel(&device, "affine"), kernel(&device, "empty"));
    let queue = busy_with(&device, &words, n_ahead, || words.same(&affine));
    let [is_told, has_ended] = [false; 2].map(AtomicBool::new);
    let blocking = Arc::new(Blocking { words: words.clone(), is_told, has_ended });
    let other = in_order(&device);
    // SAFETY: the kernel uses no memory.
    unsafe { other.issue(launch(&empty, "empty", &(), line(1)), &[], blocking.clone()) }.expect("it is accepted");
    until("the poller tells it", || blocking.is_told.load(Ordering::Acquire));
    let command = issue(&queue, words.affine(&affine, 0, 5), &[]);
    words.open();
    until("the completion returns", || blocking.has_ended.load(Ordering::Acquire));
    command.probe.succeed();
}

#[test]
fn a_panic_among_staged_kernels_names_its_kernel_and_the_others_go_on() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine, failing) = (Words::new(&device), kernel(&device, "affine"), kernel(&device, "failing"));
    for queue in [busy(&device, &words, || words.same(&affine)), always(&device)] {
        let other = always(&device);
        let command = |index| match index {
            36 => launch(&failing, "the_37th", &(), line(1)),
            37 => launch(&failing, "the_38th", &(), line(1)),
            38 => launch(&failing, "the_39th", &(), line(1)),
            _ => words.affine(&affine, 1, 1),
        };
        let commands: Vec<_> = (0..64).map(|index| issue(&queue, command(index), &[])).collect();
        let beside = issue(&other, launch(&kernel(&device, "empty"), "empty", &(), line(1)), &[]);
        words.open();
        for (index, command) in commands.iter().enumerate() {
            if !(36..39).contains(&index) {
                command.probe.succeed();
                continue;
            }
            let failure = command.probe.fail().to_string();
            assert!(failure.contains(&format!("kernel \"the_{}th\"", index + 1)), "{failure}");
            assert!(failure.contains("src/main.rs:42:5: this kernel always fails"), "{failure}");
            assert!(failure.contains("work-item"), "{failure}");
        }
        beside.probe.succeed();
    }
    assert_eq!(words.at(0).load(Ordering::Acquire), 2 * 61);
}

/// What becomes of the kernel after `n_before` others if the driver does not accept it as a node. With `refuses`, the driver does not
/// accept its launch either.
fn not_taken_behind(n_before: u64, refuses: bool) {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine) = (Words::new(&device), kernel(&device, "affine"));
    let queue = busy(&device, &words, || words.same(&affine));
    let mut commands: Vec<_> = (0..n_before).map(|_| issue(&queue, words.affine(&affine, 1, 1), &[])).collect();
    queue.flush().expect("the device is alive");
    fake.fail(SET, 0, 1);
    if refuses {
        fake.fail("cuLaunchKernel", 0, 1);
    }
    let not_taken = issue(&queue, launch(&affine, "not_taken", &words.arguments(1, 1), line(1)), &[]);
    commands.extend((0..5).map(|_| issue(&queue, words.affine(&affine, 1, 1), &[])));
    words.open();
    commands.iter().for_each(|command| command.probe.succeed());
    if refuses {
        let failure = not_taken.probe.fail().to_string();
        assert!(failure.contains("kernel \"not_taken\""), "{failure}");
        assert!(failure.contains("cuLaunchKernel failed with CUDA_ERROR_INVALID_VALUE"), "{failure}");
    } else {
        not_taken.probe.succeed();
    }
    let n_run = commands.len() + usize::from(!refuses);
    assert_eq!(words.at(0).load(Ordering::Acquire) as usize, n_run);
}

#[test]
fn a_kernel_that_the_driver_does_not_take_as_a_node_is_launched_or_fails_alone() {
    for n_before in 0..3 {
        not_taken_behind(n_before, false);
        not_taken_behind(n_before, true);
    }
}

#[test]
fn a_staged_kernel_that_the_driver_does_not_take_goes_out_behind_those_before() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine, queue) = (Words::new(&device), kernel(&device, "affine"), always(&device));
    for round in 0..50 {
        fake.fail(SET, round % 3, 1);
        let commands: Vec<_> = (0..7).map(|n| issue(&queue, words.affine(&affine, 3, n), &[])).collect();
        commands.iter().for_each(|command| command.probe.succeed());
    }
    let expected = (0..50).flat_map(|_| 0..7u32).fold(0, |sum: u32, n| sum.wrapping_mul(3).wrapping_add(n));
    assert_eq!(words.at(0).load(Ordering::Acquire), expected);
}

/// Three kernels that go out in one graph. The poller may hand some over before the last is staged, so this is tried a few times.
fn three_in_one_graph(fail: impl Fn(&Fake)) -> (Fake, Arc<dyn Queue>, [Issued; 3]) {
    for _ in 0..1000 {
        let fake = Fake::new();
        let device = fake.device();
        let (queue, empty) = (always(&device), kernel(&device, "empty"));
        fail(&fake);
        let commands = ["one", "two", "three"].map(|name| issue(&queue, launch(&empty, name, &(), line(1)), &[]));
        if [SET, "cuGraphLaunch"].map(|call| fake.count(call)) == [3, 1] {
            return (fake, queue, commands);
        }
    }
    panic!("no three kernels went out in one graph");
}

#[test]
fn of_a_graph_that_cannot_be_launched_each_kernel_fails_once_with_its_name() {
    for n_begun in 0..3 {
        let fail = |fake: &Fake| match n_begun {
            0 => fake.fail("cuGraphLaunch", 0, 2),
            _ => fake.fail_within_graph(0, n_begun, 2),
        };
        let (fake, queue, commands) = three_in_one_graph(fail);
        for (command, name) in commands.iter().zip(["one", "two", "three"]) {
            let failure = command.probe.fail().to_string();
            assert!(failure.contains(&format!("kernel \"{name}\"")) && failure.contains("cuGraphLaunch"), "{failure}");
        }
        assert_eq!(fake.ran()[1], n_begun as i64, "they have ended when the failures are told");
        drop(queue);
    }
}

#[test]
fn a_stream_goes_on_after_a_graph_that_could_not_be_launched() {
    let fake = Fake::new();
    let device = fake.device();
    let (queue, empty) = (always(&device), kernel(&device, "empty"));
    fake.fail("cuGraphLaunch", 0, 2);
    let results: Vec<_> = (0..9)
        .map(|_| issue(&queue, launch(&empty, "empty", &(), line(1)), &[]))
        .map(|command| command.probe.wait().result.is_ok())
        .collect();
    assert_eq!(results.iter().filter(|is_ok| !**is_ok).count(), 1, "{results:?}");
}

#[test]
fn a_device_lost_with_staged_kernels_blames_one_that_it_had() {
    let fake = Fake::new();
    let device = fake.device();
    let (queue, crash, empty) = (always(&device), kernel(&device, "crash"), kernel(&device, "empty"));
    fake.set("paused", 1);
    let commands = [("crash", &crash), ("later", &empty), ("later", &empty), ("staged", &empty)]
        .map(|(name, code)| issue(&queue, launch(code, name, &(), line(1)), &[]));
    fake.set("paused", 0);
    for command in &commands {
        let failure = command.probe.fail();
        let FailureKind::Device(BackendError::DeviceLost { reason, .. }) = failure.kind() else { panic!("{failure}") };
        assert!(reason.contains("in kernel \"crash\""), "{reason}");
    }
}

#[test]
fn an_event_behind_a_staged_kernel_hands_it_over_first() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine) = (Words::new(&device), kernel(&device, "affine"));
    let (one, two) = (always(&device), always(&device));
    issue(&one, words.gate(&kernel(&device, "gate")), &[]);
    let first = issue(&one, words.affine(&affine, 0, 5), &[]);
    let before = fake.count("cuStreamWaitEvent");
    let second = issue(&two, words.affine(&affine, 2, 1), &[first.data()]);
    assert_eq!(fake.count("cuStreamWaitEvent") - before, 1, "the other stream waits for it");
    words.open();
    second.probe.succeed();
    assert_eq!(words.at(0).load(Ordering::Acquire), 11);
}

#[test]
fn work_of_others_comes_after_what_was_submitted_before() {
    for by_context in [false, true] {
        let fake = Fake::new();
        let device = fake.device();
        let words = Words::new(&device);
        let affine = kernel(&device, "affine");
        let queue = busy(&device, &words, || words.same(&affine));
        let before = fake.count("cuGraphLaunch");
        let mut commands = vec![issue(&queue, words.affine(&affine, 0, 5), &[])];
        if by_context {
            native_context(&*device).expect("a device of this backend");
        } else {
            native_streams(&*queue).expect("a queue of this backend");
        }
        assert_eq!(fake.count("cuGraphLaunch") - before, 1, "what was staged is on the stream");
        let before = ["cuLaunchKernel", "cuGraphLaunch"].map(|call| fake.count(call));
        commands.extend((0..MANY).map(|_| issue(&queue, words.affine(&affine, 1, 1), &[])));
        let after = ["cuLaunchKernel", "cuGraphLaunch"].map(|call| fake.count(call));
        assert_eq!((after[0] - before[0], after[1]), (MANY as u64, before[1]), "nothing is staged any more");
        words.open();
        commands.iter().for_each(|command| command.probe.succeed());
        assert_eq!(words.at(0).load(Ordering::Acquire), 5 + MANY as u32);
    }
}

#[test]
fn a_queue_that_is_dropped_hands_over_what_it_has_staged() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine) = (Words::new(&device), kernel(&device, "affine"));
    for queue in [busy(&device, &words, || words.same(&affine)), always(&device)] {
        let commands = [0; 2].map(|_| issue(&queue, words.affine(&affine, 1, 1), &[]));
        drop(queue);
        words.open();
        commands.iter().for_each(|command| command.probe.succeed());
    }
    assert_eq!(words.at(0).load(Ordering::Acquire), 4);
}

#[test]
fn large_printing_recursive_and_profiled_kernels_and_old_drivers_stage_nothing() {
    let old = Fake::old();
    let device = old.device();
    issue(&always(&device), launch(&kernel(&device, "empty"), "empty", &(), line(1)), &[]).probe.succeed();
    assert_eq!(old.count("cuLaunchKernel"), 1);
    let fake = Fake::new();
    let device = fake.device();
    let profiled =
        QueueOptions { in_order: true, profiling: true, batching: Batching::Always, ..QueueOptions::default() };
    let off = QueueOptions { in_order: true, batching: Batching::Off, ..QueueOptions::default() };
    let make = |options| create_queue(&device, &options).expect("a queue");
    let empty = kernel(&device, "empty");
    let text = Words::new(&device);
    let mut recursive = image();
    recursive.kernels.iter_mut().for_each(|kernel| kernel.has_unbounded_stack = kernel.symbol == "empty");
    // SAFETY: the fake driver's own kernels.
    let module = unsafe { device.load(&recursive, None) }.expect("the image is taken");
    let recursive = module.kernel("empty").expect("the image has the kernel");
    let commands = [
        (always(&device), launch(&recursive, "recursive", &(), line(1))),
        (make(profiled), launch(&empty, "empty", &(), line(1))),
        (make(off), launch(&empty, "empty", &(), line(1))),
        (always(&device), launch(&empty, "empty", &(), line(1 << 24))),
        (always(&device), launch(&kernel(&device, "printing"), "printing", &(text.at(0).as_ptr() as usize), line(1))),
    ];
    for (queue, command) in commands {
        let before = fake.count("cuLaunchKernel");
        let command = issue(&queue, command, &[]);
        assert_eq!(fake.count("cuLaunchKernel") - before, 1);
        command.probe.succeed();
    }
    assert_eq!(fake.count("cuGraphCreate"), 0);
}
