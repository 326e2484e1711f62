//! What a driver can lack.

use oxisycl_backend::{Backend, BackendError, NativeHandle, UsmKind};
use oxisycl_backend_cuda::{CudaBackend, native_context, native_device, native_streams};
use oxisycl_types::Aspect;

use crate::fake::Fake;
use crate::support::{in_order, queue};
use oxisycl_backend_testing::debug_events::debug_events;

#[test]
fn without_a_driver_there_is_no_platform_and_the_reason_is_a_debug_event() {
    // SAFETY: there is no such library.
    let backend = unsafe { CudaBackend::with_library("/nowhere/libcuda.so.1") };
    let (platforms, events) = debug_events(|| backend.platforms());
    assert!(platforms.expect("no driver is no error").is_empty());
    let expected = "no CUDA platform: the driver library /nowhere/libcuda.so.1 cannot be loaded: ";
    // The rest is what the system's loader says.
    assert!(events.len() == 1 && events[0].starts_with(expected) && events[0].len() > expected.len(), "{events:?}");
    // It is found out once.
    let (_, events) = debug_events(|| backend.platforms());
    assert!(events.is_empty(), "{events:?}");
}

#[test]
fn a_driver_without_devices_is_no_platform() {
    let absent = |settings: &[(&str, i64)]| {
        let fake = Fake::with(settings);
        let (platforms, events) = debug_events(|| fake.backend().platforms());
        assert!(platforms.expect("no device is no error").is_empty());
        events
    };
    assert_eq!(absent(&[("devices", 0)]), ["no CUDA platform: the driver sees no device"]);
    let stub = absent(&[("init", 34)]);
    assert!(stub.len() == 1 && stub[0].ends_with(".so is a stub, no driver"), "{stub:?}");
}

#[test]
fn a_driver_that_does_not_start_is_an_error_with_its_name() {
    let fake = Fake::with(&[("init", 999)]);
    let error = fake.backend().platforms().err().expect("the driver is of no use");
    assert_eq!(error.to_string(), "cuInit failed with CUDA_ERROR_UNKNOWN: unknown error (999)");
}

#[test]
fn a_library_that_is_no_driver_is_an_error() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libraries-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let compile = |name: &str, text: &str| {
        let (source, library) = (folder.join(format!("{name}.rs")), folder.join(format!("{name}.so")));
        std::fs::write(&source, text).expect("a file");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let arguments = ["--edition", "2024", "--crate-type", "cdylib", "--crate-name", name, "-o"];
        let status = std::process::Command::new(rustc).args(arguments).arg(&library).arg(&source).status();
        assert!(status.expect("rustc can be started").success());
        // SAFETY: nothing in it is called but `cuDriverGetVersion`.
        unsafe { CudaBackend::with_library(library) }.platforms().err().expect("not a driver").to_string()
    };
    let error = compile("no_driver", "#[unsafe(no_mangle)] pub extern \"C\" fn other() {}");
    assert!(error.contains("cuDriverGetVersion") && error.contains("no CUDA driver"), "{error}");
    let old =
        "#[unsafe(no_mangle)] pub extern \"C\" fn cuDriverGetVersion(v: *mut i32) -> i32 { unsafe { *v = 9010 }; 0 }";
    let error = compile("old_driver", old);
    assert!(error.contains("the driver (for CUDA 9.1) lacks the symbol cuInit"), "{error}");
    std::fs::remove_dir_all(&folder).expect("the test's own folder");
}

#[test]
fn a_device_that_is_too_old_is_left_out() {
    let (devices, events) = debug_events(|| Fake::with(&[("sm", 61)]).devices());
    assert!(devices.is_empty());
    let reason = "CUDA device 0 is left out: \"Fake GPU 0\" has compute capability sm_61, at least sm_70 is needed";
    assert_eq!(events, [reason, "no CUDA platform: the driver shows no device that can be used"]);
}

#[test]
fn a_device_that_fails_does_not_take_the_others_with_it() {
    let fake = Fake::with(&[("devices", 3)]);
    fake.fail("cuDevicePrimaryCtxRetain", 1, 2);
    let names: Vec<String> = fake.devices().iter().map(|device| device.info().name.clone()).collect();
    assert_eq!(names, ["Fake GPU 0", "Fake GPU 2"]);
}

#[test]
fn a_device_says_what_the_driver_says_of_it() {
    let fake = Fake::with(&[("memory", 12345678)]);
    let platforms = fake.backend().platforms().expect("the platforms");
    assert_eq!(platforms[0].info().version, "CUDA 12.4");
    let device = fake.device();
    let info = device.info();
    assert_eq!((info.name.as_str(), info.version.as_str()), ("Fake GPU 0", "sm_90"));
    assert_eq!((info.max_compute_units, info.max_work_group_size), (132, 1024));
    assert_eq!(info.max_work_item_sizes, [64, 1024, 1024]);
    assert_eq!((info.sub_group_sizes.as_slice(), info.global_mem_size), (&[32][..], 12_345_678));
    assert_eq!(info.max_parameter_size, 64 << 10);
    assert!(info.has(Aspect::UsmSharedAllocations) && !info.has(Aspect::UsmAtomicHostAllocations));
    assert_eq!(device.info().image_targets[0].to_string(), "sm_90");
    let old = Fake::with(&[("version", 12_000)]);
    assert_eq!(old.device().info().max_parameter_size, 64 << 10);
}

#[test]
fn exhausted_memory_is_told_with_its_numbers() {
    let fake = Fake::with(&[("memory", 1 << 20)]);
    let device = fake.device();
    let memory = device.memory();
    let layout = |size| std::alloc::Layout::from_size_align(size, 64).expect("a layout");
    let half = memory.allocate(UsmKind::Device, layout(1 << 19), false).expect("there is memory");
    let error = memory.allocate(UsmKind::Device, layout(1 << 20), false).expect_err("there is no memory");
    let expected =
        BackendError::OutOfMemory { device: "Fake GPU 0".to_owned(), requested: 1 << 20, available: Some(1 << 19) };
    assert_eq!(error, expected);
    // SAFETY: allocated above, and not used.
    unsafe { memory.free(half, UsmKind::Device, layout(1 << 19)) };
    let all = memory.allocate(UsmKind::Device, layout(1 << 20), false).expect("the memory is free again");
    // SAFETY: as above.
    unsafe { memory.free(all, UsmKind::Device, layout(1 << 20)) };
}

#[test]
fn large_alignments_are_kept_and_given_back() {
    let fake = Fake::new();
    let device = fake.device();
    let before = fake.held()[0];
    for kind in [UsmKind::Device, UsmKind::Host, UsmKind::Shared] {
        let layout = std::alloc::Layout::from_size_align(100, 1 << 16).expect("a layout");
        let pointer = device.memory().allocate(kind, layout, true).expect("there is memory");
        assert!((pointer.as_ptr() as usize).is_multiple_of(1 << 16));
        // SAFETY: allocated above, and not used.
        unsafe { device.memory().free(pointer, kind, layout) };
    }
    // The poller gives it back when the device has had nothing to do for a while.
    let began = std::time::Instant::now();
    while fake.held()[0] != before {
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{} bytes held, {before} before", fake.held()[0]);
        std::thread::yield_now();
    }
}

#[test]
fn the_drivers_handles_are_given_out() {
    let fake = Fake::with(&[("devices", 2)]);
    let device = fake.devices().remove(1);
    assert_eq!(native_device(&*device), Some(1));
    assert!(native_context(&*device).is_some_and(|context| !context.is_null()));
    let in_order = in_order(&device);
    assert_eq!(in_order.native_handle(NativeHandle::Device).map(|number| number as usize), Some(1));
    assert_eq!(in_order.native_handle(NativeHandle::Context), native_context(&*device));
    let streams = native_streams(&*in_order).expect("a queue of this backend");
    assert_eq!((streams.len(), in_order.native_handle(NativeHandle::Queue)), (1, Some(streams[0])));
    assert!(native_streams(&*queue(&device)).is_some_and(|streams| streams.len() > 1));
}
