//! What devices say of themselves, and how they are split.

use oxisycl_backend::{Backend, BackendError, Partition, QueueOptions};
use oxisycl_backend_opencl::{OpenClBackend, SharingKind};
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_image::ImageTarget;
use oxisycl_types::{Aspect, BackendKind};

use crate::support::{devices, kernels, launch};
use oxisycl_backend_testing::debug_events::debug_events;

crate::suite::tests![
    a_library_that_is_not_there_means_no_platform_and_the_reason_is_a_debug_event,
    a_library_that_is_no_loader_means_no_platform,
    a_loader_without_drivers_means_no_platform_and_the_reason_is_a_debug_event,
    platforms_and_devices_are_the_same_at_every_call,
    devices_tell_their_limits,
    a_coarse_way_to_share_memory_leaves_the_host_out,
    a_device_that_cannot_be_split_so_says_why,
    queues_of_all_kinds_can_be_made_and_dropped_with_work_on_them,
];

fn a_library_that_is_not_there_means_no_platform_and_the_reason_is_a_debug_event() {
    // SAFETY: there is no such library.
    let backend = unsafe { OpenClBackend::with_library("/nonexistent/libOpenCL.so.1") };
    let (platforms, events) = debug_events(|| backend.platforms());
    assert!(platforms.expect("absence is no error").is_empty());
    let expected = "no OpenCL platform: the loader cannot be used: /nonexistent/libOpenCL.so.1: ";
    // The rest is what the system's loader says.
    assert!(events.len() == 1 && events[0].starts_with(expected) && events[0].len() > expected.len(), "{events:?}");
}

fn a_library_that_is_no_loader_means_no_platform() {
    // SAFETY: a library of the system, whose initialisers have run already.
    let backend = unsafe { OpenClBackend::with_library("libc.so.6") };
    let (platforms, events) = debug_events(|| backend.platforms());
    assert!(platforms.expect("absence is no error").is_empty());
    let expected = "no OpenCL platform: the loader cannot be used: libc.so.6: ";
    assert!(events.len() == 1 && events[0].starts_with(expected) && events[0].contains("clGet"), "{events:?}");
}

/// Set for the process whose loader knows no driver.
const CHILD: &str = "OPENCL_TEST_WITHOUT_DRIVERS";

fn a_loader_without_drivers_means_no_platform_and_the_reason_is_a_debug_event() {
    if std::env::var_os(CHILD).is_some() {
        let (platforms, events) = debug_events(|| OpenClBackend::new().platforms());
        assert!(platforms.expect("absence is no error").is_empty());
        assert_eq!(events, ["no OpenCL platform: the loader knows no driver"]);
        return;
    }
    // Without a loader there is another reason.
    devices(SharingKind::Best);
    // The loader reads where drivers are when it is first called.
    let child = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "devices::a_loader_without_drivers_means_no_platform_and_the_reason_is_a_debug_event"])
        .env(CHILD, "1")
        .env("OCL_ICD_VENDORS", "/nonexistent")
        .env_remove("OCL_ICD_FILENAMES")
        .output()
        .expect("the test can be started");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

fn platforms_and_devices_are_the_same_at_every_call() {
    let backend = OpenClBackend::new();
    let names = || -> Vec<String> {
        let platforms = backend.platforms().expect("a loader that can be used, or none");
        platforms.iter().flat_map(|platform| platform.devices()).map(|device| device.info().name.clone()).collect()
    };
    assert_eq!(names(), names());
}

fn devices_tell_their_limits() {
    for device in devices(SharingKind::Best) {
        let info = device.info();
        assert_eq!(device.info().backend, BackendKind::OpenCl);
        assert!(info.is_available && !info.name.is_empty() && info.version.starts_with("OpenCL "));
        assert!(info.max_compute_units > 0 && info.max_work_group_size > 0 && info.address_bits == 64);
        assert_eq!(info.max_parameter_size, 64 << 10);
        assert!(info.has(Aspect::UsmDeviceAllocations) && info.has(Aspect::QueueProfiling));
        assert_eq!(device.info().image_targets[0], ImageTarget::SpirV { major: 1, minor: 2 });
        assert!(info.binary_key.as_ref().is_some_and(|key| key.contains(&info.driver_version)));
    }
}

fn a_coarse_way_to_share_memory_leaves_the_host_out() {
    for device in devices(SharingKind::CoarseSvm) {
        let info = device.info();
        assert!(!info.has(Aspect::UsmHostAllocations) && !info.has(Aspect::UsmSharedAllocations));
    }
}

fn a_device_that_cannot_be_split_so_says_why() {
    for device in devices(SharingKind::Best) {
        let many = device.info().max_compute_units as usize + 1;
        let error = device.partition(&Partition::ByCounts(vec![many])).err().expect("there are not so many units");
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(&format!("ByCounts([{many}])")), "{error}");
    }
}

fn queues_of_all_kinds_can_be_made_and_dropped_with_work_on_them() {
    for device in devices(SharingKind::Best) {
        let [empty] = kernels(&device, ["empty"]);
        for in_order in [false, true] {
            for profiling in [false, true] {
                for priority in
                    [oxisycl_backend::Priority::Low, oxisycl_backend::Priority::Normal, oxisycl_backend::Priority::High]
                {
                    let options = QueueOptions { in_order, profiling, priority, ..QueueOptions::default() };
                    let queue = create_queue(&device, &options).expect("a queue");
                    assert_eq!(queue.info().keeps_order, in_order);
                    let (event, probe) = crate::support::issue(&queue, launch(&empty, "empty", 10), &[]);
                    drop((queue, event));
                    probe.wait().result.expect("the command goes on");
                }
            }
        }
    }
}
