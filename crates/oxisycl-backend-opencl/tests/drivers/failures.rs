//! What happens after a failure, and when things are dropped in an unusual order.

use oxisycl_backend::{Command, Dependency, DependencyKind, FailureKind};
use oxisycl_backend_opencl::SharingKind;

use crate::support::{devices, devices_with_host_memory, in_order, issue, kernels, launch, out_of_order, run, succeed};

crate::suite::tests![
    commands_behind_a_known_panic_report_themselves_alone,
    queues_modules_and_devices_may_be_dropped_before_their_commands_end,
    what_is_forgotten_disturbs_nobody,
    long_chains_end_without_deep_recursion,
    a_panicking_completion_stops_nothing,
    a_process_that_ends_while_a_kernel_runs_ends_with_its_own_status,
];

fn commands_behind_a_known_panic_report_themselves_alone() {
    for device in devices(SharingKind::Best) {
        let [failing, empty] = kernels(&device, ["failing", "empty"]);
        for queue in [in_order(&device), out_of_order(&device)] {
            let (event, probe) = issue(&queue, launch(&failing, "failing", 1), &[]);
            let root = probe.wait().result.expect_err("the kernel panics");
            assert!(matches!(root.kind(), FailureKind::Panic { .. }), "{root}");
            for kind in [DependencyKind::Data, DependencyKind::Order] {
                let behind = [Dependency { event: event.clone(), kind }];
                let (_, behind) = issue(&queue, launch(&empty, "empty", 1), &behind);
                // The device is not told that data is lost.
                let outcome = behind.wait();
                assert!(outcome.has_run && outcome.result.is_ok(), "{outcome:?}");
            }
        }
    }
}

fn queues_modules_and_devices_may_be_dropped_before_their_commands_end() {
    for device in devices(SharingKind::Best) {
        let [empty] = kernels(&device, ["empty"]);
        let queue = out_of_order(&device);
        let ends: Vec<_> = (0..50).map(|_| issue(&queue, launch(&empty, "empty", 1000), &[])).collect();
        drop((queue, empty, device));
        for (event, probe) in ends {
            drop(event);
            probe.wait().result.expect("the command goes on");
        }
    }
}

fn what_is_forgotten_disturbs_nobody() {
    for device in devices(SharingKind::Best) {
        let [empty] = kernels(&device, ["empty"]);
        let queue = in_order(&device);
        let (event, _) = issue(&queue, Command::Marker, &[]);
        std::mem::forget((event, queue));
        succeed(&in_order(&device), launch(&empty, "empty", 1));
    }
}

fn long_chains_end_without_deep_recursion() {
    const LINKS: usize = 20_000;
    for device in devices(SharingKind::Best) {
        let queue = out_of_order(&device);
        let mut last: Option<Dependency> = None;
        let mut probe = None;
        for _ in 0..LINKS {
            let before: Vec<Dependency> = last.take().into_iter().collect();
            let (event, end) = issue(&queue, Command::Marker, &before);
            last = Some(Dependency { event, kind: DependencyKind::Data });
            probe = Some(end);
        }
        probe.expect("there are links").wait().result.expect("markers succeed");
    }
}

fn a_panicking_completion_stops_nothing() {
    struct Panics;
    impl oxisycl_backend::Completion for Panics {
        unsafe fn complete(self: std::sync::Arc<Self>, _outcome: oxisycl_backend::Outcome) {
            panic!("a completion that panics, as this test wants it");
        }
    }
    for device in devices(SharingKind::Best) {
        let [empty] = kernels(&device, ["empty"]);
        let queue = in_order(&device);
        // SAFETY: the kernel uses no memory.
        unsafe { queue.issue(launch(&empty, "empty", 1), &[], std::sync::Arc::new(Panics)) }.expect("accepted");
        assert!(run(&queue, launch(&empty, "empty", 1)).result.is_ok());
    }
}

/// Set for the process that ends while a kernel runs.
const CHILD: &str = "OPENCL_TEST_ENDS_WITH_A_KERNEL_RUNNING";

fn a_process_that_ends_while_a_kernel_runs_ends_with_its_own_status() {
    let device = &devices_with_host_memory()[0];
    if std::env::var_os(CHILD).is_some() {
        let [gate] = kernels(device, ["gate"]);
        let byte = crate::memory::HostByte::new(device);
        let queue = in_order(device);
        let (event, _) = issue(&queue, crate::support::launch_with(&gate, "gate", &byte.address(), 1), &[]);
        queue.flush().expect("a queue can be flushed");
        // The gate is never opened.
        std::mem::forget((byte, event));
        std::process::exit(7);
    }
    let child = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "failures::a_process_that_ends_while_a_kernel_runs_ends_with_its_own_status"])
        .env(CHILD, "1")
        .output()
        .expect("the test can be started");
    let text = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.code(), Some(7), "{text}");
}
