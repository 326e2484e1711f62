//! Loading images.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl_backend::{Backend, BackendError, Device};
use oxisycl_image::ImageTarget;

use crate::fake::Fake;
use crate::support::{image, in_order, issue, kernel, launch, line};

fn load(device: &Arc<dyn Device>, change: impl FnOnce(&mut oxisycl_image::DeviceImage)) -> Result<(), BackendError> {
    let mut image = image();
    change(&mut image);
    // SAFETY: the fake driver runs its own kernels only.
    unsafe { device.load(&image, None) }.map(drop)
}

#[test]
fn code_that_the_driver_refuses_comes_with_its_log() {
    let error =
        load(&Fake::new().device(), |image| image.code = b".version 7.0\nsyntax error here".to_vec()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("cuModuleLoadDataEx failed with CUDA_ERROR_INVALID_PTX"), "{text}");
    assert!(text.contains("line 2; error   : Parsing error"), "{text}");
}

#[test]
fn an_old_driver_is_told_which_one_is_needed() {
    let fake = Fake::with(&[("version", 11_040)]);
    let error = load(&fake.device(), |image| image.code = b".version 8.4\n.target sm_70".to_vec()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"), "{text}");
    let needed =
        "the image is PTX 8.4, which needs a driver for CUDA 12.4 or later, and the installed one is for CUDA 11.4";
    assert!(text.contains(needed), "{text}");
}

#[test]
fn an_image_for_something_else_is_not_taken() {
    for target in [ImageTarget::Ptx { sm: 100 }, ImageTarget::SpirV { major: 1, minor: 4 }] {
        let name = target.to_string();
        let error = load(&Fake::new().device(), |image| image.target = target).unwrap_err();
        assert!(error.to_string().ends_with(&format!("does not support device images for {name}")), "{error}");
    }
}

#[test]
fn kernels_are_those_of_the_image_with_the_parameters_it_promises() {
    let fake = Fake::new();
    let device = fake.device();
    let mut image = image();
    image.kernels[1].parameters.size = 8;
    // SAFETY: the fake driver runs its own kernels only.
    let module = unsafe { device.load(&image, None) }.expect("the image is taken");
    let text = |symbol| module.kernel(symbol).map(drop).unwrap_err().to_string();
    let missing = text("missing");
    assert!(missing.contains("CUDA_ERROR_NOT_FOUND") && missing.contains("\"missing\""), "{missing}");
    let wrong = text("failing");
    assert!(wrong.contains("promises 8 bytes for parameter 1; its code has none"), "{wrong}");
    assert!(module.kernel("affine").is_ok());
}

#[test]
fn a_module_lives_until_its_last_command_has_ended() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = in_order(&device);
    let before = fake.held()[1];
    let code = crate::support::kernel(&device, "empty");
    assert_eq!(fake.held()[1], before + 1);
    let launched = issue(&queue, launch(&code, "empty", &(), line(1)), &[]);
    drop(code);
    launched.probe.succeed();
    drop(launched);
    for _ in 0..1000 {
        if fake.held()[1] == before {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("the module is still loaded");
}

#[test]
fn kernels_whose_calls_nobody_can_follow_are_given_a_stack_once() {
    const OUT_OF_MEMORY: i32 = 2;
    let fake = Fake::new();
    let device = fake.device();
    let mut image = image();
    image.kernels.iter_mut().for_each(|kernel| kernel.has_unbounded_stack = kernel.symbol == "crash");
    // SAFETY: the fake driver runs its own kernels only.
    let module = unsafe { device.load(&image, None) }.expect("the image is taken");
    module.kernel("empty").expect("the kernel");
    assert_eq!((fake.count("cuCtxSetLimit"), fake.stack()), (0, 1024), "the driver knows what this one takes");

    fake.fail("cuCtxSetLimit", 0, OUT_OF_MEMORY);
    let text = module.kernel("crash").map(drop).unwrap_err().to_string();
    let reason = "(kernel \"crash\"); each of its work-items needs a stack of 9216 bytes, 700 for its own variables and 8192 for calls \
                  that are recursive or go through pointers, as OXISYCL_CALL_STACK says";
    assert!(text.starts_with("cuCtxSetLimit failed with CUDA_ERROR_OUT_OF_MEMORY") && text.contains(reason), "{text}");

    // Its own 700 bytes, and 8 KiB for what it calls.
    for _ in 0..3 {
        module.kernel("crash").expect("the kernel");
        assert_eq!((fake.count("cuCtxSetLimit"), fake.stack()), (2, 9216));
    }
}

#[test]
fn calls_have_as_much_stack_as_the_program_says_and_a_driver_that_provides_less_is_an_error() {
    let deep = |fake: &Fake| {
        let device =
            fake.backend().call_stack(64 << 10).platforms().expect("the platform").remove(0).devices().remove(0);
        let mut image = image();
        image.kernels.iter_mut().for_each(|kernel| kernel.has_unbounded_stack = kernel.symbol == "crash");
        // SAFETY: the fake driver runs its own kernels only.
        unsafe { device.load(&image, None) }.expect("the image is taken").kernel("crash").map(drop)
    };
    let fake = Fake::new();
    assert_eq!((deep(&fake), fake.stack()), (Ok(()), 65 << 10), "its own 700 bytes and 64 KiB");

    let text = deep(&Fake::with(&[("most_stack", 16 << 10)])).unwrap_err().to_string();
    let expected = "device \"Fake GPU 0\" does not support kernel \"crash\": each of its work-items needs a stack of 66560 bytes, 700 for its \
                    own variables and 65536 for calls that are recursive or go through pointers, as OXISYCL_CALL_STACK says; its driver \
                    provides 16384";
    assert_eq!(text, expected);
}

#[test]
fn a_launch_tells_its_kernel_how_much_stack_calls_have() {
    let fake = Fake::new();
    for (backend, expected) in [(fake.backend(), 8 << 10), (fake.backend().call_stack(64 << 10), 64 << 10)] {
        let device = backend.platforms().expect("the platform").remove(0).devices().remove(0);
        let told = AtomicU32::new(0);
        let code = crate::support::kernel(&device, "call_stack");
        let address = told.as_ptr().expose_provenance();
        issue(&in_order(&device), launch(&code, "call_stack", &address, line(1)), &[]).probe.succeed();
        assert_eq!(told.load(Ordering::Acquire), expected);
    }
}

#[test]
fn what_is_compiled_is_kept_by_the_driver_and_not_by_us() {
    let fake = Fake::new();
    let device = fake.device();
    assert_eq!(device.info().binary_key, None);
    // SAFETY: the fake driver runs its own kernels only.
    let module = unsafe { device.load(&image(), None) }.expect("the image is taken");
    assert_eq!(module.binary(), None);
    // Every load gives the driver the PTX, in which it finds what it has compiled before.
    let before = fake.count("cuModuleLoadDataEx");
    // SAFETY: as above.
    drop(unsafe { device.load(&image(), None) }.expect("the image is taken"));
    assert_eq!(fake.count("cuModuleLoadDataEx"), before + 1);
}

#[test]
fn a_kernel_is_loaded_when_it_is_asked_for_and_not_by_its_first_launch() {
    let loads = |fake: &Fake| {
        let device = fake.device();
        // The backend's own kernels come with the first queue.
        let queue = in_order(&device);
        // SAFETY: the fake driver runs its own kernels only.
        let module = unsafe { device.load(&image(), None) }.expect("the image is taken");
        let before = fake.count("cuFuncLoad");
        let kernel = module.kernel("empty").expect("the kernel");
        let asked = fake.count("cuFuncLoad") - before;
        issue(&queue, launch(&kernel, "empty", &(), line(4)), &[]).probe.succeed();
        (asked, fake.count("cuFuncLoad") - before - asked)
    };
    assert_eq!(loads(&Fake::new()), (1, 0));
    // Drivers for CUDA 11 lack the call, and load by the launch.
    assert_eq!(loads(&Fake::old()), (0, 0));
}

#[test]
fn the_driver_says_how_many_groups_of_a_kernel_a_unit_executes() {
    let fake = Fake::new();
    let kernel = kernel(&fake.device(), "empty");
    assert_eq!(kernel.info().preferred_multiple, 32);
    assert_eq!((kernel.info().private_bytes, kernel.info().registers), (Some(700), Some(40)));
    assert_eq!(kernel.groups_at_a_time(256, 0).expect("an answer"), Some(8));
    // More than a function has without being allowed to, and more than the device has.
    assert_eq!(kernel.groups_at_a_time(256, 60 << 10).expect("an answer"), Some(8));
    assert_eq!(kernel.groups_at_a_time(256, 200 << 10).expect("an answer"), Some(0));
    fake.fail("cuOccupancyMaxActiveBlocksPerMultiprocessor", 0, 1);
    let error = kernel.groups_at_a_time(256, 0).expect_err("the driver refuses");
    assert!(error.to_string().contains("cuOccupancyMaxActiveBlocksPerMultiprocessor"), "{error}");
}

#[test]
fn a_kernel_that_the_driver_cannot_load_is_an_error_of_the_look_up() {
    let fake = Fake::new();
    let device = fake.device();
    // SAFETY: the fake driver runs its own kernels only.
    let module = unsafe { device.load(&image(), None) }.expect("the image is taken");
    fake.fail("cuFuncLoad", 0, 2);
    let error = module.kernel("empty").map(drop).unwrap_err().to_string();
    assert!(error.contains("cuFuncLoad") && error.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{error}");
    assert!(module.kernel("empty").is_ok());
}

#[test]
fn a_driver_that_does_not_tell_parameters_is_believed() {
    let mut image = image();
    image.kernels[1].parameters.size = 8;
    let lookup = |fake: &Fake| {
        // SAFETY: the fake driver runs its own kernels only; this one is not launched.
        let module = unsafe { fake.device().load(&image, None) }.expect("the image is taken");
        module.kernel("failing").is_ok()
    };
    assert!(!lookup(&Fake::new()) && lookup(&Fake::old()));
}

#[test]
fn a_driver_whose_loads_wait_for_kernels_launches_nothing_meanwhile() {
    let fake = Fake::with(&[("loads_wait", 1)]);
    let device = fake.device();
    let (gate, empty) = (kernel(&device, "gate"), kernel(&device, "empty"));
    let (busy, other) = (in_order(&device), in_order(&device));
    let flag = std::sync::atomic::AtomicBool::new(false);
    let running = issue(&busy, launch(&gate, "gate", &(&raw const flag).addr(), line(1)), &[]);
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&device, |_| {}).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let launching = scope.spawn(|| issue(&other, launch(&empty, "empty", &(), line(1)), &[]).probe.succeed());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!loading.is_finished() && !launching.is_finished() && !running.probe.is_complete());
        flag.store(true, Ordering::Release);
        loading.join().unwrap();
        launching.join().unwrap();
    });
    running.probe.succeed();
}
