//! Held kernels, the panic records of their graphs, and what else a process does: it loads code, waits on another thread, and ends.

use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use oxisycl_backend::{Device, EventStatus, LoadedKernel, Queue};
use oxisycl_backend_testing::harness::help_once;

use crate::batches::{MANY, SET, busy, busy_with, until};
use crate::fake::Fake;
use crate::support::{Issued, Probe, in_order, issue, kernel, launch, line};
use crate::words::Words;

/// More kernels than a stream may be ahead of its device: what is held behind them stays so until a thread waits for it.
const FULL: usize = 1000;

/// What a word is after kernels that multiply by 3 and add the numbers up to `n`, in this order.
pub(crate) fn folded(n: u32) -> u32 {
    (0..n).fold(0, |word: u32, number| word.wrapping_mul(3).wrapping_add(number))
}

/// How many launches the driver was given, those of graphs included.
fn n_launches(fake: &Fake) -> u64 {
    fake.count("cuLaunchKernel") + fake.count("cuGraphLaunch")
}

/// A queue whose stream holds three kernels until the gate in `words` is open or a thread waits for them.
pub(crate) fn three_held(
    fake: &Fake,
    device: &Arc<dyn Device>,
    words: &Words,
    affine: &Arc<dyn LoadedKernel>,
) -> (Arc<dyn Queue>, Vec<Issued>) {
    let queue = busy_with(device, words, FULL, || words.same(affine));
    let before = n_launches(fake);
    let commands = (0..3).map(|number| issue(&queue, words.affine(affine, 3, number), &[])).collect();
    // The thread that hands over has met them by then.
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(n_launches(fake), before, "they are held");
    (queue, commands)
}

#[test]
fn a_module_loaded_while_kernels_are_held_leaves_them_and_their_order() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine) = (Words::new(&device), kernel(&device, "affine"));
    let (queue, mut commands) = three_held(&fake, &device, &words, &affine);
    let before = n_launches(&fake);
    let loaded = kernel(&device, "affine");
    assert_eq!(n_launches(&fake), before, "they are held");
    // Kernels of both modules in turn.
    commands.extend((3..9).map(|number| {
        let code = if number % 2 == 0 { &affine } else { &loaded };
        issue(&queue, words.affine(code, 3, number), &[])
    }));
    words.open();
    commands.iter().for_each(|command| command.probe.succeed());
    assert_eq!(words.at(0).load(Ordering::Acquire), folded(9));
}

#[test]
fn a_wait_on_another_thread_launches_a_held_kernel() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine) = (Words::new(&device), kernel(&device, "affine"));
    let (queue, commands) = three_held(&fake, &device, &words, &affine);
    let before = n_launches(&fake);
    std::thread::scope(|scope| {
        // As the runtime waits for an event, such as that of a host accessor.
        let waiting = scope.spawn(|| {
            let begin = Instant::now();
            while commands.iter().any(|command| command.event.status() != EventStatus::Complete) {
                assert!(begin.elapsed() < Duration::from_secs(20), "a held kernel that is waited for does not end");
                help_once(&*queue);
            }
        });
        // The gate is closed, so the kernels before are on the device still.
        until("the held kernels are launched", || n_launches(&fake) > before || waiting.is_finished());
        words.open();
        waiting.join().expect("the kernels end");
    });
    assert_eq!(words.at(0).load(Ordering::Acquire), folded(3));
}

/// Says to the test's own child that it is the child.
const IS_CHILD: &str = "FAKE_DRIVER_ENDS";
const STATUS: i32 = 7;

#[test]
fn a_process_ends_with_held_kernels() {
    if std::env::var_os(IS_CHILD).is_some() {
        end_with_held_kernels();
    }
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "held::a_process_ends_with_held_kernels"])
        .env(IS_CHILD, "1")
        .stdout(Stdio::null())
        .spawn()
        .expect("the test can be started again");
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("the process does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(STATUS), "{status}");
}

fn end_with_held_kernels() -> ! {
    static PROBES: OnceLock<Vec<Arc<Probe>>> = OnceLock::new();
    /// Runs after the handler of the driver: the backend's threads meet a driver that is no more, and the commands end.
    extern "C" fn check() {
        let has_failed = |probe: &Arc<Probe>| probe.fail().to_string().contains("the process is ending");
        let is_right = std::panic::catch_unwind(|| PROBES.get().is_some_and(|probes| probes.iter().all(has_failed)));
        if !is_right.unwrap_or(false) {
            std::process::abort();
        }
    }
    // SAFETY: the function does not unwind.
    assert_eq!(unsafe { libc::atexit(check) }, 0);
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine) = (Words::new(&device), kernel(&device, "affine"));
    let (queue, commands) = three_held(&fake, &device, &words, &affine);
    PROBES.get_or_init(|| commands.into_iter().map(|command| command.probe).collect());
    fake.end_with_process();
    // Removes the library's file. The library stays loaded.
    drop(fake);
    std::mem::forget((queue, words, affine, device));
    std::process::exit(STATUS)
}

#[test]
fn a_node_of_a_graph_has_the_same_panic_record_at_each_launch() {
    let fake = Fake::new();
    let device = fake.device();
    let (queue, failing) = (in_order(&device), kernel(&device, "failing"));
    let fail = |n: usize| {
        for _ in 0..n {
            let failure = issue(&queue, launch(&failing, "failing", &(), line(1)), &[]).probe.fail().to_string();
            assert!(failure.contains("this kernel always fails"), "{failure}");
        }
    };
    fail(MANY);
    let counts = || [SET, "changed launch"].map(|call| fake.count(call));
    let before = counts();
    fail(100);
    let [n_set, n_changed] = std::array::from_fn(|index| counts()[index] - before[index]);
    assert_eq!([n_set, n_changed], [100, 0]);
}

#[test]
fn kernels_in_graphs_that_are_launched_again_before_they_ended_each_tell_their_panic() {
    let fake = Fake::new();
    let device = fake.device();
    let failing = kernel(&device, "failing");
    let command = || launch(&failing, "failing", &(), line(1));
    for _ in 0..3 {
        let words = Words::new(&device);
        let queue = busy(&device, &words, command);
        // More graphs of each size than a stream keeps.
        let commands: Vec<_> = (0..400)
            .map(|index| {
                let command = issue(&queue, command(), &[]);
                if index % 20 == 19 {
                    queue.flush().expect("the device is alive");
                }
                command
            })
            .collect();
        assert!(fake.count("cuGraphLaunch") > 30);
        words.open();
        commands.iter().for_each(|command| drop(command.probe.fail()));
    }
}
