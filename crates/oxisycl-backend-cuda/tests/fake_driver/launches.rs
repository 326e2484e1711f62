//! Launching: limits, arguments, and what reaches the driver.

use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::{BackendError, Batching, Command, QueueOptions, UsmKind};
use oxisycl_backend_testing::contract::Affine;
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_types::{GroupSize, LaunchRange};

use crate::fake::Fake;
use crate::support::{in_order, issue, kernel, launch, line, queue, refused};

#[test]
fn a_large_launch_is_several_grids_and_one_command() {
    let fake = Fake::with(&[("max_threads", 1)]);
    let device = fake.device();
    let layout = std::alloc::Layout::array::<u32>(140_000).expect("a layout");
    let memory = device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory");
    let arguments = Affine { values: memory.as_ptr().cast(), factor: 1, summand: 7 };
    let range = LaunchRange { dimensions: 3, extent: [1, 140_000, 1], offset: [3, 5, 7] };
    let code = kernel(&device, "affine");
    let before = fake.count("cuLaunchKernel");
    let queue = in_order(&device);
    issue(&queue, launch(&code, "affine", &arguments, range), &[]).probe.succeed();
    assert_eq!(fake.count("cuLaunchKernel") - before, 3);
    // SAFETY: zeroed memory of the host, which the kernel has written.
    let values = unsafe { std::slice::from_raw_parts(memory.as_ptr().cast::<u32>(), 140_000) };
    assert!(values.iter().enumerate().all(|(index, value)| *value == 7 + index as u32));
    // SAFETY: allocated above; the command has ended.
    unsafe { device.memory().free(memory, UsmKind::Host, layout) };
}

#[test]
fn a_launch_beyond_every_limit_is_refused() {
    let fake = Fake::new();
    let device = fake.device();
    let range = LaunchRange { dimensions: 2, extent: [1, 1 << 50, 1 << 10], offset: [0; 3] };
    let command = launch(&kernel(&device, "empty"), "huge", &(), range);
    let error = refused(&queue(&device), command);
    let error = error.to_string();
    assert!(error.contains("a launch of kernel \"huge\" over [1, 1125899906842624, 1024] work-items"), "{error}");
}

#[test]
fn large_local_memory_is_asked_for_once_for_each_size() {
    let fake = Fake::new();
    let device = fake.device();
    let code = kernel(&device, "empty");
    let queue = in_order(&device);
    let of_groups = |n: usize, local_bytes: usize| {
        let mut command = launch(&code, "groups", &(), line(n));
        if let Command::Kernel(kernel) = &mut command {
            kernel.group = Some(GroupSize { local: [1, 1, 64], local_bytes, host_bytes: 0 });
        }
        command
    };
    let asked = || fake.count("cuFuncSetAttribute");
    let (before, launched) = (asked(), fake.count("cuLaunchKernel"));
    for (bytes, expected) in [(1 << 10, 0), (48 << 10, 0), (60 << 10, 1), (52 << 10, 1), (96 << 10, 2), (60 << 10, 2)] {
        issue(&queue, of_groups(10, bytes), &[]).probe.succeed();
        assert_eq!(asked() - before, expected, "{bytes}");
    }
    assert_eq!(fake.count("cuLaunchKernel") - launched, 6);
    let error = refused(&queue, of_groups(10, 200 << 10)).to_string();
    assert!(error.contains("204800 bytes of local memory for each work-group: cuFuncSetAttribute failed"), "{error}");
}

#[test]
fn an_argument_of_another_size_is_refused() {
    let fake = Fake::new();
    let device = fake.device();
    let command = launch(&kernel(&device, "gate"), "gate", &[0u8; 24], line(1));
    let error = refused(&queue(&device), command);
    let error = error.to_string();
    assert!(error.contains("its argument is 24 bytes, but 8 in the image (symbol gate)"), "{error}");
}

#[test]
fn a_kernel_of_another_device_or_without_code_is_refused() {
    let fake = Fake::with(&[("devices", 2)]);
    let devices = fake.devices();
    let command = launch(&kernel(&devices[1], "empty"), "empty", &(), line(1));
    let error = refused(&queue(&devices[0]), command);
    assert!(matches!(error, BackendError::Unsupported { .. }));
    let mut command = launch(&kernel(&devices[0], "empty"), "empty", &(), line(1));
    if let Command::Kernel(kernel) = &mut command {
        kernel.code = None;
    }
    let error = refused(&queue(&devices[0]), command);
    assert!(matches!(error, BackendError::Unsupported { .. }));
}

#[test]
fn a_refused_launch_leaves_the_queue_usable() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = in_order(&device);
    let code = kernel(&device, "failing");
    fake.fail("cuLaunchKernel", 0, 1);
    let error = refused(&queue, launch(&code, "failing", &(), line(1)));
    assert_eq!(error.to_string(), "cuLaunchKernel failed with CUDA_ERROR_INVALID_VALUE: invalid argument (1)");
    for _ in 0..3 {
        let failure = issue(&queue, launch(&code, "failing", &(), line(1)), &[]).probe.fail();
        assert!(failure.to_string().contains("src/main.rs:42:5: this kernel always fails"), "{failure}");
    }
}

#[test]
fn launches_of_a_chain_record_no_events_and_wait_for_none() {
    let fake = Fake::new();
    let device = fake.device();
    let code = kernel(&device, "empty");
    for in_order in [true, false] {
        let options = QueueOptions { in_order, batching: Batching::Off, ..QueueOptions::default() };
        let queue = create_queue(&device, &options).expect("a queue");
        let mut before = issue(&queue, launch(&code, "empty", &(), line(1)), &[]);
        let counts = || ["cuStreamWaitEvent", "cuMemHostAlloc", "cuModuleLoadDataEx"].map(|call| fake.count(call));
        let counted = counts();
        let launched = fake.count("cuLaunchKernel");
        for _ in 0..200 {
            before = issue(&queue, launch(&code, "empty", &(), line(1)), &[before.data()]);
        }
        assert_eq!(fake.count("cuLaunchKernel") - launched, 200);
        before.probe.succeed();
        assert_eq!(counts(), counted);
    }
    // The poller leaves fences while work is being added, far fewer than commands.
    assert!(fake.count("cuEventRecord") < 200, "{} events", fake.count("cuEventRecord"));
}

#[test]
fn a_thread_that_submits_without_pause_leaves_fences_by_which_its_commands_end() {
    let fake = Fake::new();
    let device = fake.device();
    let layout = std::alloc::Layout::new::<u8>();
    let gate = device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory");
    let options = QueueOptions { in_order: true, batching: Batching::Off, ..QueueOptions::default() };
    let queue = create_queue(&device, &options).expect("a queue");
    let code = kernel(&device, "empty");
    issue(&queue, launch(&kernel(&device, "gate"), "gate", &(gate.as_ptr() as usize), line(1)), &[]);
    // One of the fences cannot be recorded: the next one does.
    fake.fail("cuEventRecord", 1, 2);
    let recorded = fake.count("cuEventRecord");
    let launched: Vec<_> = (0..1000).map(|_| issue(&queue, launch(&code, "empty", &(), line(1)), &[])).collect();
    let recorded = fake.count("cuEventRecord") - recorded;
    assert!((15..100).contains(&recorded), "{recorded} fences");
    assert!(launched.iter().all(|command| !command.probe.is_complete()));
    // SAFETY: the byte is alive, and the kernel reads it as an atomic.
    unsafe {
        (*gate.as_ptr().cast::<std::sync::atomic::AtomicBool>()).store(true, std::sync::atomic::Ordering::Release);
    }
    launched.iter().for_each(|command| command.probe.succeed());
    // SAFETY: allocated above; the kernel has ended.
    unsafe { device.memory().free(gate, UsmKind::Host, layout) };
}

#[test]
fn memory_is_pinned_twice_for_as_many_launches_as_the_runtime_submits_ahead() {
    assert_eq!(pinned_by_8000_launches(Batching::Off), 2, "each launch that may panic has a record of its own");
    // The nodes of graphs have records of their own, at most 380 of a function. How many graphs there are depends on when the poller looks.
    let pinned = pinned_by_8000_launches(Batching::On);
    assert!((2..=3).contains(&pinned), "{pinned}");
}

/// How many times memory is pinned for launches behind a kernel that has not ended.
fn pinned_by_8000_launches(batching: Batching) -> u64 {
    let fake = Fake::new();
    let device = fake.device();
    let layout = std::alloc::Layout::new::<u8>();
    let gate = device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory");
    let options = QueueOptions { in_order: true, batching, ..QueueOptions::default() };
    let (queue, code) = (create_queue(&device, &options).expect("a queue"), kernel(&device, "failing"));
    issue(&queue, launch(&kernel(&device, "gate"), "gate", &(gate.as_ptr() as usize), line(1)), &[]);
    let before = fake.count("cuMemHostAlloc");
    let launched: Vec<_> = (0..8000).map(|_| issue(&queue, launch(&code, "failing", &(), line(1)), &[])).collect();
    let pinned = fake.count("cuMemHostAlloc") - before;
    // SAFETY: the byte is alive, and the kernel reads it as an atomic.
    unsafe {
        (*gate.as_ptr().cast::<std::sync::atomic::AtomicBool>()).store(true, std::sync::atomic::Ordering::Release);
    }
    launched.iter().for_each(|command| drop(command.probe.fail()));
    // SAFETY: allocated above; the kernel has ended.
    unsafe { device.memory().free(gate, UsmKind::Host, layout) };
    pinned
}

#[test]
fn a_full_stream_keeps_no_other_queue_waiting() {
    for batching in [Batching::Off, Batching::On] {
        full_stream(batching);
    }
}

fn full_stream(batching: Batching) {
    let fake = Fake::with(&[("depth", 20)]);
    let device = fake.device();
    let options = QueueOptions { in_order: true, batching, ..QueueOptions::default() };
    let layout = std::alloc::Layout::new::<u8>();
    let gate = device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory");
    let full = create_queue(&device, &options).expect("a queue");
    let (other, code) = (in_order(&device), kernel(&device, "empty"));
    let blocker = launch(&kernel(&device, "gate"), "gate", &(gate.as_ptr() as usize), line(1));
    issue(&full, blocker, &[]);
    std::thread::scope(|scope| {
        let submitter = scope.spawn(|| {
            let launched: Vec<_> = (0..100).map(|_| issue(&full, launch(&code, "empty", &(), line(1)), &[])).collect();
            launched.iter().for_each(|command| command.probe.succeed());
        });
        // Fences of the poller take room in the stream, too.
        while batching == Batching::Off && fake.count("cuLaunchKernel") < 15 {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        for _ in 0..10 {
            issue(&other, launch(&code, "empty", &(), line(1)), &[]).probe.succeed();
        }
        assert!(!submitter.is_finished());
        // SAFETY: the byte is alive, and the kernel reads it as an atomic.
        unsafe {
            (*gate.as_ptr().cast::<std::sync::atomic::AtomicBool>()).store(true, std::sync::atomic::Ordering::Release);
        }
        submitter.join().expect("the launches end");
    });
    // SAFETY: allocated above; the kernel has ended.
    unsafe { device.memory().free(gate, UsmKind::Host, layout) };
}

/// Arguments that are passed by their address.
#[derive(Clone, Copy)]
#[repr(C)]
struct Large {
    sum: *mut u64,
    numbers: [u64; 700],
}

// SAFETY: an address of memory that the test waits for.
unsafe impl Send for Large {}
// SAFETY: as above.
unsafe impl Sync for Large {}

#[test]
fn large_arguments_are_copied_for_each_launch_and_their_memory_is_used_again() {
    // A driver that takes no large parameters.
    let fake = Fake::with(&[("version", 11_080)]);
    let device = fake.device();
    let layout = std::alloc::Layout::array::<u64>(200).expect("a layout");
    let memory = device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory");
    let sums = memory.as_ptr().cast::<u64>();
    let (gate, code) = (AtomicBool::new(false), kernel(&device, "large"));
    let queue =
        create_queue(&device, &QueueOptions { in_order: true, batching: Batching::Always, ..QueueOptions::default() });
    let queue = queue.expect("a queue");
    let launch = |index: usize| {
        let arguments = Large { sum: sums.wrapping_add(index), numbers: [index as u64 + 1; 700] };
        issue(&queue, launch(&code, "large", &arguments, line(1)), &[])
    };
    let first = issue(
        &queue,
        crate::support::launch(&kernel(&device, "gate"), "gate", &(gate.as_ptr() as usize), line(1)),
        &[],
    );
    let held: Vec<_> = (0..100).map(launch).collect();
    gate.store(true, Ordering::Release);
    first.probe.succeed();
    held.iter().for_each(|launch| launch.probe.succeed());
    let allocated = fake.count("cuMemAlloc_v2");
    for index in 100..200 {
        launch(index).probe.succeed();
    }
    assert_eq!(fake.count("cuMemAlloc_v2"), allocated, "blocks are used again");
    // SAFETY: memory of the host, which launches that have ended have written.
    let sums = unsafe { std::slice::from_raw_parts(sums, 200) };
    assert!(sums.iter().zip(1u64..).all(|(sum, n)| *sum == 700 * n), "{sums:?}");
    // SAFETY: allocated above; the commands have ended.
    unsafe { device.memory().free(memory, UsmKind::Host, layout) };
}
