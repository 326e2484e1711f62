//! Devices that fail.

use std::sync::Arc;

use oxisycl_backend::{BackendError, Command, CommandFailure, Device, FailureKind, UsmKind};
use oxisycl_backend_testing::harness::help_once;

use crate::fake::Fake;
use crate::support::{image, in_order, issue, kernel, launch, line, queue, refused};

fn lose(device: &Arc<dyn Device>) -> CommandFailure {
    let queue = in_order(device);
    issue(&queue, launch(&kernel(device, "crash"), "crash", &(), line(1)), &[]).probe.fail()
}

#[test]
fn a_lost_device_names_its_kernel_from_then_on_and_other_devices_go_on() {
    let fake = Fake::with(&[("devices", 2)]);
    let devices = fake.devices();
    let layout = std::alloc::Layout::new::<[u64; 8]>();
    let memory = devices[0].memory().allocate(UsmKind::Device, layout, false).expect("there is memory");
    let queue_before = queue(&devices[0]);
    let failure = lose(&devices[0]);
    let FailureKind::Device(BackendError::DeviceLost { reason, .. }) = failure.kind() else { panic!("{failure}") };
    assert!(reason.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && !reason.contains("stack"), "{reason}");
    assert!(
        reason.contains("in kernel \"crash\" (crates/oxisycl-backend-cuda/tests/fake_driver/losses.rs:"),
        "{reason}"
    );
    let lost = BackendError::DeviceLost { device: "Fake GPU 0".to_owned(), reason: reason.clone() };
    assert_eq!(refused(&queue_before, Command::Marker), lost);
    assert_eq!(devices[0].memory().allocate(UsmKind::Device, layout, false).err(), Some(lost.clone()));
    assert_eq!(devices[0].create_queue(&Default::default()).err(), Some(lost));
    // SAFETY: allocated above, and not used.
    unsafe { devices[0].memory().free(memory, UsmKind::Device, layout) };
    let other = in_order(&devices[1]);
    issue(&other, launch(&kernel(&devices[1], "empty"), "empty", &(), line(1)), &[]).probe.succeed();
}

#[test]
fn a_device_lost_after_kernels_whose_calls_nobody_can_follow_names_the_setting_of_their_stack() {
    let fake = Fake::new();
    let device = fake.device();
    let mut image = image();
    image.kernels.iter_mut().for_each(|kernel| kernel.has_unbounded_stack = kernel.symbol == "crash");
    // SAFETY: the fake driver runs its own kernels only.
    let module = unsafe { device.load(&image, None) }.expect("the image is taken");
    let code = module.kernel("crash").expect("the kernel");
    let failure = issue(&in_order(&device), launch(&code, "crash", &(), line(1)), &[]).probe.fail().to_string();
    let expected = "; if calls are recursive or go through pointers, they may have needed more stack than the 8192 bytes that \
                    OXISYCL_CALL_STACK says";
    assert!(failure.contains("kernel \"crash\"") && failure.contains(expected), "{failure}");
}

#[test]
fn devices_that_the_driver_gives_up_together_name_the_same_kernel() {
    let fake = Fake::with(&[("devices", 2), ("lost_together", 1)]);
    let devices = fake.devices();
    let (code, queue) = (kernel(&devices[1], "empty"), in_order(&devices[1]));
    let first = lose(&devices[0]).to_string();
    let error = refused(&queue, launch(&code, "innocent", &(), line(1))).to_string();
    assert!(error.contains("\"Fake GPU 1\" is lost") && error.contains("another device of the process"), "{error}");
    assert!(
        error.contains("kernel \"crash\"") && !error.contains("innocent") && !first.contains("another device"),
        "{error}"
    );
}

#[test]
fn all_commands_of_a_lost_device_end() {
    let fake = Fake::new();
    let device = fake.device();
    let (crash, empty) = (kernel(&device, "crash"), kernel(&device, "empty"));
    let queue = queue(&device);
    let gate_layout = std::alloc::Layout::new::<u8>();
    let gate = device.memory().allocate(UsmKind::Host, gate_layout, true).expect("there is memory");
    let blocker = launch(&kernel(&device, "gate"), "gate", &(gate.as_ptr() as usize), line(1));
    let blocker = issue(&queue, blocker, &[]);
    let crashed = issue(&queue, launch(&crash, "crash", &(), line(1)), &[blocker.data()]);
    let mut others = Vec::new();
    for index in 0..200 {
        let command = match index % 2 {
            0 => launch(&empty, "empty", &(), line(1)),
            _ => Command::Marker,
        };
        others.push(issue(&queue, command, &[crashed.data()]));
    }
    // SAFETY: the byte is alive, and the kernel reads it as an atomic.
    unsafe {
        (*gate.as_ptr().cast::<std::sync::atomic::AtomicBool>()).store(true, std::sync::atomic::Ordering::Release)
    };
    let root = crashed.probe.fail();
    assert!(matches!(root.kind(), FailureKind::Device(BackendError::DeviceLost { .. })), "{root}");
    let mut failures: Vec<_> = others.iter().map(|other| other.probe.fail()).collect();
    // What the host would execute on the device: one copy that is asked about only now, and one that was on its way.
    let mut bytes = vec![0u8; 16];
    let copy = crate::transfers::host_copy(&mut bytes);
    assert!(matches!(queue.is_executed(&copy), Err(BackendError::DeviceLost { .. })));
    // SAFETY: the bytes are alive, and no other command uses them.
    failures.push(unsafe { queue.execute(&copy) }.result.expect_err("the device is lost"));
    for failure in failures {
        assert!(matches!(failure.root().kind(), FailureKind::Device(BackendError::DeviceLost { .. })), "{failure}");
    }
}

/// How a loss is told while one kernel on each of several queues may have caused it, issued in this order.
fn suspected(names: &[&'static str]) -> String {
    let fake = Fake::new();
    let device = fake.device();
    let codes: Vec<_> =
        names.iter().map(|name| kernel(&device, if *name == "crash" { "crash" } else { "empty" })).collect();
    let queues: Vec<_> = names.iter().map(|_| in_order(&device)).collect();
    fake.set("paused", 1);
    let launched: Vec<_> = std::iter::zip(names, &codes)
        .zip(&queues)
        .map(|((name, code), queue)| issue(queue, launch(code, name, &(), line(1)), &[]))
        .collect();
    // The first who asks is told of the crash.
    fake.fail("cuStreamQuery", 0, 700);
    fake.fail("cuEventQuery", 0, 700);
    fake.set("paused", 0);
    let reason = |failure: CommandFailure| match failure.kind() {
        FailureKind::Device(BackendError::DeviceLost { reason, .. }) => reason.clone(),
        _ => panic!("{failure}"),
    };
    let reasons: Vec<String> = launched.iter().map(|launched| reason(launched.probe.fail())).collect();
    assert!(reasons.iter().all(|reason| *reason == reasons[0]), "{reasons:#?}");
    reasons[0].clone()
}

#[test]
fn a_loss_names_the_first_kernel_that_may_have_caused_it_and_how_many_others_may() {
    let told = |reason: &str, name: &str, others: &str| {
        let expected = format!("in kernel \"{name}\" (crates/oxisycl-backend-cuda/tests/fake_driver/losses.rs:");
        let others = format!("){others}");
        assert!(reason.contains(&expected) && reason.ends_with(&others), "{reason}");
    };
    told(&suspected(&["crash"]), "crash", "");
    told(&suspected(&["crash", "second"]), "crash", ", or in the kernel issued after it");
    told(&suspected(&["crash", "second", "third"]), "crash", ", or in one of the 2 kernels issued after it");
    // The driver does not say which of them it was.
    told(&suspected(&["first", "crash"]), "first", ", or in the kernel issued after it");
}

#[test]
fn a_loss_that_another_call_finds_is_told_by_that_call() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = in_order(&device);
    fake.fail("cuMemAlloc_v2", 0, 719);
    let layout = std::alloc::Layout::new::<u64>();
    let error = device.memory().allocate(UsmKind::Device, layout, false).expect_err("an injected failure");
    assert!(matches!(&error, BackendError::DeviceLost { reason, .. } if reason.contains("cuMemAlloc_v2")), "{error}");
    assert!(queue.flush().is_err() && !help_once(&*queue));
}

#[test]
fn the_end_of_the_process_is_no_crash() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = in_order(&device);
    fake.fail("cuStreamQuery", 0, 4);
    let failure = issue(&queue, launch(&kernel(&device, "empty"), "empty", &(), line(1)), &[]).probe.fail();
    assert!(failure.to_string().contains("the process is ending"), "{failure}");
    drop((queue, device));
}

#[test]
fn a_dependent_of_a_panicked_kernel_has_run_if_it_was_enqueued_before_and_reports_itself_alone() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = in_order(&device);
    let (failing, empty) = (kernel(&device, "failing"), kernel(&device, "empty"));
    let panicked = issue(&queue, launch(&failing, "failing", &(), line(3)), &[]);
    let early = issue(&queue, launch(&empty, "early", &(), line(1)), &[panicked.data()]);
    let root = panicked.probe.fail();
    assert!(matches!(root.kind(), FailureKind::Panic { item: Some((1, [0, 0, _])), .. }), "{root}");
    let ordered = issue(&queue, launch(&empty, "ordered", &(), line(1)), &[panicked.order(), early.data()]);
    for dependent in [early, ordered] {
        let outcome = dependent.probe.wait();
        assert!(outcome.has_run && outcome.result.is_ok(), "{outcome:?}");
    }
}
