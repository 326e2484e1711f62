//! The thread that hands over held kernels, and what it meets.

use std::alloc::Layout;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oxisycl_backend::{Command, FillCommand, FillPattern, MemoryId, PitchedBox, UsmKind};

use crate::batches::{busy_with, until};
use crate::fake::Fake;
use crate::support::{in_order, issue, kernel, launch, line};
use crate::words::Words;

#[test]
fn a_device_lost_while_a_staged_kernel_is_handed_over_blames_it_too() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, code, empty) = (Words::new(&device), kernel(&device, "gate"), kernel(&device, "empty"));
    let queue = in_order(&device);
    let gate = issue(&queue, words.gate(&code), &[]);
    // A launch waits until the gate is open.
    fake.set("depth", 1);
    let staged = issue(&queue, launch(&empty, "staged", &(), line(1)), &[]);
    until("the driver is given it", || fake.count("cuLaunchKernel") == 2);
    fake.fail("cuMemAlloc_v2", 0, 719);
    let layout = Layout::new::<u64>();
    let error = device.memory().allocate(UsmKind::Device, layout, false).expect_err("an injected failure");
    // All are told of the loss, and only then the thread that hands it over comes back.
    for command in [gate, staged] {
        command.probe.fail();
    }
    words.open();
    until("both run", || fake.ran()[0] == 2);
    let error = error.to_string();
    assert!(error.contains("kernel \"gate\"") && error.ends_with(", or in the kernel issued after it"), "{error}");
}

#[test]
fn a_stream_that_commands_of_many_calls_have_filled_does_not_hold_up_others() {
    const LENGTH: usize = 25_600;
    let fake = Fake::new();
    let device = fake.device();
    let [full, other] = [0; 2].map(|_| Words::new(&device));
    let (affine, layout) = (kernel(&device, "affine"), Layout::new::<[u8; LENGTH]>());
    let memory = device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory");
    let queues = [&full, &other].map(|words| busy_with(&device, words, 0, || words.same(&affine)));
    // Each one is a hundred kernels.
    let pattern: Vec<u8> = (0..LENGTH).map(|index| (index % 251) as u8).collect();
    let fill = || FillCommand {
        target: PitchedBox { memory: MemoryId::HOST, pointer: memory.as_ptr(), row_pitch: 0, slice_pitch: 0 },
        pattern: FillPattern::from_slice(&pattern),
        extent: [1; 3],
    };
    let before = fake.count("cuLaunchKernel");
    let mut commands: Vec<_> = (0..10).map(|_| issue(&queues[0], Command::from(fill()), &[])).collect();
    assert!(fake.count("cuLaunchKernel") - before >= 1000);
    fake.set("depth", 1000);
    commands.push(issue(&queues[0], full.affine(&affine, 0, 5), &[]));
    // It is handed over, or left alone.
    std::thread::sleep(Duration::from_millis(20));
    commands.push(issue(&queues[1], other.affine(&affine, 0, 7), &[]));
    other.open();
    until("the other stream goes on", || other.at(0).load(Ordering::Acquire) == 7);
    full.open();
    commands.iter().for_each(|command| command.probe.succeed());
    assert_eq!(full.at(0).load(Ordering::Acquire), 5);
    // SAFETY: allocated above; the commands have ended.
    unsafe { device.memory().free(memory, UsmKind::Host, layout) };
}

#[test]
fn who_submits_to_a_stream_that_gets_full_while_it_is_handed_over_does_not_hold_up_others() {
    const N_GATES: usize = 4;
    let fake = Fake::new();
    let device = fake.device();
    let gates: [_; N_GATES] = std::array::from_fn(|_| Words::new(&device));
    let (words, other) = (Words::new(&device), Words::new(&device));
    let (gate, affine, empty) = (kernel(&device, "gate"), kernel(&device, "affine"), kernel(&device, "empty"));
    let [full, beside] = [0; 2].map(|_| in_order(&device));
    issue(&beside, other.gate(&gate), &[]);
    gates.iter().for_each(|words| drop(issue(&full, words.gate(&gate), &[])));
    full.flush().expect("the device is alive");
    fake.set("depth", N_GATES as i64);
    let n_launched = || fake.count("cuLaunchKernel");
    let before = n_launched();
    let staged = issue(&full, words.affine(&affine, 0, 5), &[]);
    until("the thread that hands it over waits for room", || n_launched() == before + 1);
    std::thread::scope(|scope| {
        let large = scope.spawn(|| issue(&full, launch(&empty, "large", &(), line(1 << 20)), &[]));
        std::thread::sleep(Duration::from_millis(20));
        // There is room for one, and then the thread that submits waits for more.
        for words in &gates {
            if n_launched() == before + 1 {
                words.open();
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        assert!(n_launched() == before + 2 && !large.is_finished());
        let command = issue(&beside, other.affine(&affine, 0, 7), &[]);
        other.open();
        until("the other stream goes on", || other.at(0).load(Ordering::Acquire) == 7);
        command.probe.succeed();
        gates.iter().for_each(Words::open);
        large.join().expect("it is accepted").probe.succeed();
    });
    staged.probe.succeed();
    assert_eq!(words.at(0).load(Ordering::Acquire), 5);
}
