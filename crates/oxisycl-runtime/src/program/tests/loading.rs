//! Loading: once, for all threads, again after some failures, and not any more after a link unit was unloaded.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_image::ImageError;

use super::*;

#[test]
fn an_image_is_loaded_once_per_device() {
    let fixture = Fixture::new(RecordingConfig::new(2).with_images(&[ptx(80)]));
    let kernels = vec![entry_of::<First>("first"), entry_of::<Second>("second")];
    let _bundle = fixture.register(&[image(ptx(80), kernels)]);
    for device in &fixture.devices {
        for _ in 0..3 {
            fixture.programs.kernel(device, &descriptor::<First>("a")).unwrap();
            fixture.programs.kernel(device, &descriptor::<Second>("b")).unwrap();
        }
    }
    let devices: Vec<usize> = fixture.recorder.loads().iter().map(|load| load.device).collect();
    assert_eq!(devices, [0, 1]);
    assert_eq!(fixture.recorder.n_modules(), 2);
}

#[test]
fn all_kernels_can_be_loaded_at_once_and_launches_load_nothing_then() {
    let fixture = Fixture::new(RecordingConfig::new(2).with_images(&[ptx(80)]));
    let second = image(ptx(80), vec![entry_of::<Second>("second")]);
    let _old = fixture.register(&[first_image(90)]);
    let _bundle = fixture.register(&[first_image(80), first_image(70), second]);
    assert_eq!(fixture.programs.load_all(&fixture.devices[0]).unwrap(), 2);
    assert_eq!(fixture.loads(), ["sm_80", "sm_80"], "the best image of each kernel");
    for descriptor in [descriptor::<First>("a"), descriptor::<Second>("b")] {
        fixture.kernel(&descriptor).unwrap();
    }
    assert_eq!(fixture.loads().len(), 2);
}

#[test]
fn an_image_that_is_refused_keeps_no_other_from_being_loaded() {
    let fixture = Fixture::gpu();
    let second = image(ptx(80), vec![entry_of::<Second>("second")]);
    let _bundle = fixture.register(&[first_image(80), second]);
    let name = "CUDA_ERROR_INVALID_PTX".to_owned();
    fixture.recorder.refuse_load(BackendError::Driver { call: "cuModuleLoadDataEx", code: 218, name });
    let error = fixture.programs.load_all(&fixture.devices[0]).unwrap_err();
    assert!(error.code() == ErrorCode::Build && error.to_string().contains("First"), "{error}");
    fixture.kernel(&descriptor::<Second>("b")).unwrap();
    assert_eq!(fixture.loads().len(), 2);
}

#[test]
fn nothing_is_loaded_before_the_first_launch() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[first_image(80)]);
    assert!(fixture.programs.is_usable(fixture.devices[0].as_ref()));
    assert!(fixture.recorder.loads().is_empty());
}

/// Has that many threads launch the same kernel while its image is being loaded.
fn launch_together(fixture: &Fixture, n_threads: usize) -> Vec<Result<Arc<dyn LoadedKernel>>> {
    let start = Barrier::new(n_threads + 1);
    fixture.recorder.hold_loads();
    std::thread::scope(|scope| {
        let launch = || {
            start.wait();
            fixture.kernel(&descriptor::<First>("a"))
        };
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(launch)).collect();
        start.wait();
        // Time for all of them to arrive where the first one is.
        std::thread::sleep(Duration::from_millis(50));
        fixture.recorder.release_loads();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn threads_that_launch_a_kernel_at_the_same_time_load_it_once() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[first_image(80)]);
    let kernels: Vec<_> = launch_together(&fixture, 8).into_iter().map(Result::unwrap).collect();
    assert_eq!(fixture.loads(), ["sm_80"]);
    assert!(kernels.iter().all(|kernel| Arc::ptr_eq(kernel, &kernels[0])));
}

#[test]
fn a_failure_is_told_to_all_who_waited_and_tried_again_later() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[first_image(80)]);
    let error = || BackendError::OutOfMemory { device: "gpu".to_owned(), requested: 5, available: None };
    fixture.recorder.refuse_load(error());
    let results = launch_together(&fixture, 4);
    assert_eq!(fixture.loads().len(), 1);
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.code(), ErrorCode::MemoryAllocation);
        assert_eq!(
            error.to_string(),
            "kernel \"a\" on device \"recording device 0\": its image for sm_80 was not loaded: device \"gpu\": out of memory: \
             requested 5 bytes"
        );
    }
    fixture.recorder.refuse_load(error());
    assert!(fixture.kernel(&descriptor::<First>("a")).is_err());
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    assert_eq!(fixture.loads().len(), 3);
}

#[test]
fn code_that_the_driver_refuses_is_not_tried_again() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[first_image(80)]);
    let name = "CUDA_ERROR_INVALID_PTX; line 3: syntax error".to_owned();
    fixture.recorder.refuse_load(BackendError::Driver { call: "cuModuleLoadDataEx", code: 218, name });
    for _ in 0..3 {
        let (code, message) = fixture.error(&descriptor::<First>("a"));
        assert_eq!(code, ErrorCode::Build);
        assert!(message.ends_with("cuModuleLoadDataEx failed with CUDA_ERROR_INVALID_PTX; line 3: syntax error (218)"));
    }
    assert_eq!(fixture.loads().len(), 1);
}

#[test]
fn a_symbol_that_the_code_lacks_is_a_build_error() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register(&[first_image(80)]);
    let image = Arc::new(Image { image: first_image(80), of: None });
    // SAFETY: the recording backend runs no code.
    let load = || compiling::Outcome::Ended(unsafe { fixture.devices[0].load(&image.image, None) });
    let error = fixture.programs.modules.kernel(&fixture.devices[0], &image, "missing", load).unwrap_err();
    assert!(error.to_string().contains("no kernel \"missing\""));
}

#[test]
fn equal_images_of_two_link_units_are_loaded_once() {
    let fixture = Fixture::gpu();
    let one = fixture.register(&[first_image(80)]);
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    let _other = fixture.register(&[first_image(80)]);
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    assert_eq!(fixture.loads().len(), 1);
    fixture.unregister(one);
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    assert_eq!((fixture.loads().len(), fixture.recorder.n_modules()), (1, 1));
}

#[test]
fn kernels_of_an_unregistered_bundle_are_not_found_any_more() {
    let fixture = Fixture::gpu();
    let bundle = fixture.register(&[first_image(80)]);
    let _other = fixture.register(&[image(ptx(80), vec![entry_of::<Second>("second")])]);
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    fixture.kernel(&descriptor::<Second>("b")).unwrap();
    fixture.unregister(bundle);
    assert_eq!(fixture.recorder.n_modules(), 1);
    assert!(fixture.kernel(&descriptor::<First>("a")).is_err());
    fixture.kernel(&descriptor::<Second>("b")).unwrap();
    // A library that is loaded again, maybe with other code.
    let _bundle = fixture.register(&[with_code("new")]);
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    assert_eq!(fixture.recorder.loads().last().unwrap().image.code, b"new");
}

fn with_code(code: &str) -> DeviceImage {
    DeviceImage { code: code.as_bytes().to_vec(), ..first_image(80) }
}

#[test]
fn unregistering_waits_for_commands_that_hold_a_kernel() {
    for is_shared in [false, true] {
        let fixture = Fixture::gpu();
        let bundle = fixture.register(&[first_image(80)]);
        let _other = is_shared.then(|| fixture.register(&[first_image(80)]));
        let held = fixture.kernel(&descriptor::<First>("a")).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let unload = scope.spawn(|| {
                fixture.unregister(bundle);
                is_done.store(true, Ordering::Release);
            });
            std::thread::sleep(Duration::from_millis(50));
            assert!(!is_done.load(Ordering::Acquire));
            assert_eq!(fixture.recorder.n_modules(), 1, "the module of a pending command stays loaded");
            // Others do not keep it from ending.
            assert_eq!(fixture.kernel(&descriptor::<First>("a")).is_ok(), is_shared);
            drop(held);
            unload.join().unwrap();
        });
        assert_eq!(fixture.recorder.n_modules(), usize::from(is_shared));
    }
}

#[test]
fn a_bundle_that_was_never_read_is_taken_back_at_once() {
    let fixture = Fixture::gpu();
    let bundle = fixture.register(&[first_image(80)]);
    fixture.unregister(bundle);
    // Nor is it an error to take back what is not there.
    fixture.unregister(Bundle(vec![1, 2, 3]));
    assert!(fixture.kernel(&descriptor::<First>("a")).is_err());
}

#[test]
fn modules_of_a_device_that_is_gone_are_dropped() {
    let programs = Programs::new();
    let bytes = encode_bundle(&[first_image(80)]).unwrap();
    // SAFETY: the bytes live longer than the programs are used.
    unsafe { programs.register(bytes.as_ptr(), bytes.len()) };
    let config = RecordingConfig::new(1).with_images(&[ptx(80)]);
    let gone = {
        let backend = RecordingBackend::new(config.clone());
        programs.kernel(&backend.devices()[0], &descriptor::<First>("a")).unwrap();
        backend.recorder()
    };
    assert_eq!(gone.n_modules(), 1);
    let backend = RecordingBackend::new(config);
    programs.kernel(&backend.devices()[0], &descriptor::<First>("a")).unwrap();
    assert_eq!((gone.n_modules(), backend.recorder().n_modules()), (0, 1));
}

#[test]
fn registering_and_launching_at_the_same_time_is_safe() {
    let fixture = Fixture::gpu();
    let _first = fixture.register(&[first_image(80)]);
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    drop(fixture.kernel(&descriptor::<First>("a")).unwrap());
                    drop(fixture.kernel(&descriptor::<Second>("b")));
                }
            });
        }
        for round in 0..if cfg!(miri) { 2 } else { 100 } {
            let code = format!("round {}", round % 3).into_bytes();
            let second = DeviceImage { code, ..image(ptx(80), vec![entry_of::<Second>("second")]) };
            let bundle = fixture.register(&[second]);
            fixture.kernel(&descriptor::<Second>("b")).unwrap();
            fixture.unregister(bundle);
            assert!(fixture.kernel(&descriptor::<Second>("b")).is_err());
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert_eq!(fixture.recorder.n_modules(), 1);
}

#[test]
fn a_binary_of_an_earlier_process_is_used() {
    let folder = std::env::temp_dir().join(format!("oxisycl-programs-{}", std::process::id()));
    let process = |key: &str, image: DeviceImage| {
        let fixture = Fixture::new(RecordingConfig::new(1).with_images(&[ptx(80)]).with_binaries(key));
        fixture.programs.use_disk_cache(DiskCache::new(&folder, 1 << 20));
        let _bundle = fixture.register(&[image]);
        fixture.kernel(&descriptor::<First>("a")).unwrap();
        fixture.recorder.loads().iter().map(|load| load.from_binary).collect::<Vec<_>>()
    };
    assert_eq!(process("arch 1", first_image(80)), [false]);
    assert_eq!(process("arch 1", first_image(80)), [true]);
    assert_eq!(process("arch 2", first_image(80)), [false]);
    assert_eq!(process("arch 1", with_code("other")), [false]);
    // Same code, so the same key, but not the binary of this image: the driver refuses it, and it is replaced.
    let mut other = first_image(80);
    other.kernels[0].type_name = std::any::type_name::<First>().to_owned();
    other.kernels[0].may_panic = true;
    assert_eq!(process("arch 1", other.clone()), [false]);
    assert_eq!(process("arch 1", other), [true]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_driver_that_takes_too_long_is_left_alone_and_its_answer_is_used_later() {
    let fixture = Fixture::gpu();
    fixture.programs.limit_compiling(Some(Duration::from_millis(20)));
    let bundle = fixture.register(&[first_image(80)]);
    fixture.recorder.hold_loads();
    for _ in 0..2 {
        let (code, message) = fixture.error(&descriptor::<First>("a"));
        assert_eq!(code, ErrorCode::Build);
        assert!(
            message.starts_with(
                "kernel \"a\" on device \"recording device 0\": its image for sm_80 was not loaded: the driver has not compiled it"
            ) && message.contains("OXISYCL_COMPILE_LIMIT"),
            "{message}"
        );
    }
    assert_eq!(fixture.loads().len(), 1, "the driver is asked once");
    fixture.recorder.release_loads();
    let start = std::time::Instant::now();
    while fixture.kernel(&descriptor::<First>("a")).is_err() {
        assert!(start.elapsed() < Duration::from_secs(60), "its answer is used");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(fixture.loads().len(), 1);
    fixture.unregister(bundle);
    assert_eq!(fixture.recorder.n_modules(), 0);
}

#[test]
fn without_a_limit_a_driver_is_waited_for() {
    let fixture = Fixture::gpu();
    fixture.programs.limit_compiling(None);
    let _bundle = fixture.register(&[first_image(80)]);
    for result in launch_together(&fixture, 2) {
        result.unwrap();
    }
}

/// The folder that the process of the next test compiles in, which ends while the driver does.
#[cfg(unix)]
const CRASHING: &str = "TEST_OF_CRASHING_DRIVER";

#[test]
#[cfg(unix)]
fn a_kernel_whose_driver_ended_two_processes_is_refused_by_the_next_one() {
    let processes = |folder: &std::path::Path| {
        let fixture = Fixture::gpu();
        fixture.programs.use_disk_cache(DiskCache::new(folder, 1 << 20));
        fixture
    };
    if let Some(folder) = std::env::var_os(CRASHING) {
        let fixture = processes(folder.as_ref());
        let _bundle = fixture.register(&[first_image(80)]);
        fixture.programs.limit_compiling(Some(Duration::from_millis(500)));
        fixture.recorder.hold_loads();
        assert!(fixture.kernel(&descriptor::<First>("a")).is_err());
        // As a driver does that finds a fault in itself.
        std::process::abort();
    }
    let folder = std::env::temp_dir().join(format!("oxisycl-crashing-{}", std::process::id()));
    let name = std::thread::current().name().unwrap().to_owned();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name, "--nocapture"]).env(CRASHING, &folder);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let markers = || {
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "compiling")).collect::<Vec<_>>()
    };
    let is_written =
        |path: &std::path::PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains("device"));
    let start = std::time::Instant::now();
    while !markers().iter().any(is_written) {
        assert!(start.elapsed() < Duration::from_secs(60), "the other process compiles");
        std::thread::sleep(Duration::from_millis(1));
    }
    // While it lives, nothing is known of a crash. The kernel is compiled here as well, and the other's marker stays.
    let alive = processes(&folder);
    let _bundle = alive.register(&[first_image(80)]);
    alive.kernel(&descriptor::<First>("a")).unwrap();
    assert!(!child.wait().unwrap().success());
    // It may have been killed. So the next one tries, too.
    assert!(!command.status().unwrap().success());
    let [marker] = &markers()[..] else { panic!("one marker: {:?}", markers()) };
    let next = processes(&folder);
    let _bundle = next.register(&[first_image(80), image(ptx(80), vec![entry_of::<Second>("second")])]);
    let (code, message) = next.error(&descriptor::<First>("a"));
    assert_eq!(code, ErrorCode::Build);
    assert!(message.starts_with("kernel \"a\" on device \"recording device 0\": "), "{message}");
    assert!(message.contains(&format!("remove \"{}\"", marker.display())), "{message}");
    assert!(next.loads().is_empty());
    next.kernel(&descriptor::<Second>("b")).unwrap();
    std::fs::remove_file(marker).unwrap();
    let again = processes(&folder);
    let _bundle = again.register(&[first_image(80)]);
    again.kernel(&descriptor::<First>("a")).unwrap();
    assert!(markers().is_empty());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn wrong_bundles_are_told_by_their_error() {
    let fixture = Fixture::gpu();
    let _bundle = fixture.register_bytes(b"OXISYCLI".to_vec());
    let error = fixture.programs.kernels().unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(matches!(source.downcast_ref(), Some(ImageError::Magic { .. })));
}

#[test]
#[cfg(target_os = "linux")]
fn unregistering_waits_for_native_code_of_the_library() {
    let programs = Programs::new();
    // A library that is certainly there. Its bytes are no bundle, but nothing reads them.
    let bytes = || libc::getppid as *const u8;
    // SAFETY: never called.
    let code = unsafe { std::mem::transmute::<*const u8, oxisycl_types::HostEntry>(bytes()) };
    assert!(programs.hold_library(code).is_none(), "a library without images");
    // SAFETY: code of a library that is never unloaded.
    unsafe { programs.register(bytes(), 16) };
    assert!(programs.hold_library(entry).is_none(), "code of the program");
    let holds = [programs.hold_library(code).unwrap(), programs.hold_library(code).unwrap()];
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let unload = scope.spawn(|| {
            programs.unregister(bytes(), 16);
            is_done.store(true, Ordering::Release);
        });
        let [first, second] = holds;
        drop(first);
        std::thread::sleep(Duration::from_millis(50));
        assert!(!is_done.load(Ordering::Acquire));
        assert!(programs.hold_library(code).is_none(), "it is being unloaded");
        drop(second);
        unload.join().unwrap();
    });
    // SAFETY: as above.
    unsafe { programs.register(bytes(), 16) };
    assert!(programs.hold_library(code).is_some());
}

#[test]
fn one_of_two_units_with_an_image_is_unloaded_while_the_other_launches() {
    // All of it stays if the unit is never unloaded.
    let fixture: &'static Fixture = Box::leak(Box::new(Fixture::gpu()));
    std::mem::forget(fixture.register(&[first_image(80)]));
    let unit = fixture.register(&[image(ptx(80), vec![entry_of::<Second>("second")]), first_image(80)]);
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    // While an image of the unit is loaded, the unit cannot be taken back. Its images come in order.
    fixture.recorder.hold_loads();
    let load = std::thread::spawn(|| drop(fixture.kernel(&descriptor::<Second>("b"))));
    let until = |is_so: &dyn Fn() -> bool| {
        let begun = std::time::Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "a thread comes no further");
            std::thread::yield_now();
        }
    };
    until(&|| fixture.loads().len() == 2);
    let before = fixture.programs.launches.generation();
    let (sender, receiver) = std::sync::mpsc::channel();
    let unload = std::thread::spawn(move || {
        fixture.unregister(unit);
        sender.send(()).unwrap();
    });
    until(&|| fixture.programs.launches.generation() != before);
    // A launch of the other unit, which finds and remembers the kernel as it was.
    drop(fixture.kernel(&descriptor::<First>("a")).unwrap());
    fixture.recorder.release_loads();
    let unloaded = receiver.recv_timeout(Duration::from_secs(60));
    assert!(unloaded.is_ok(), "a kernel that launches remember is waited for");
    load.join().unwrap();
    unload.join().unwrap();
    fixture.kernel(&descriptor::<First>("a")).unwrap();
    assert_eq!((fixture.loads().len(), fixture.recorder.n_modules()), (2, 1));
}
