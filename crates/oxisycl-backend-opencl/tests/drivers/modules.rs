//! Images that drivers take and refuse, and what they make of them.

use std::sync::Arc;

use oxisycl_backend::{BackendError, Device};
use oxisycl_backend_opencl::SharingKind;
use oxisycl_image::{DeviceImage, ImageTarget};

use crate::support::{devices, devices_that, image, in_order, launch, succeed};

crate::suite::tests![
    code_that_the_driver_refuses_is_an_error_with_call_and_name,
    code_that_does_not_build_comes_with_the_driver_s_log,
    options_of_an_image_are_given_to_the_driver,
    images_for_other_targets_and_kernels_that_are_not_there_are_refused,
    an_image_that_promises_other_parameters_than_its_code_has_is_refused,
    an_image_with_two_work_items_at_each_position_is_refused_as_code_and_as_binary,
    a_binary_makes_the_same_kernels_and_a_damaged_one_is_refused,
];

fn code_that_the_driver_refuses_is_an_error_with_call_and_name() {
    for device in devices(SharingKind::Best) {
        let load = |code: Vec<u8>| {
            let image = DeviceImage { code, ..image() };
            // SAFETY: the driver refuses it.
            unsafe { device.load(&image, None) }.err().expect("no SPIR-V").to_string()
        };
        let error = load(b"this is no code at all".to_vec());
        assert!(error.contains("clCreateProgramWithIL failed with CL_INVALID_VALUE"), "{error}");
    }
}

fn code_that_does_not_build_comes_with_the_driver_s_log() {
    for device in devices(SharingKind::Best) {
        let mut code = image().code;
        // The capability of the first instruction becomes one that OpenCL does not have.
        let shader = 1u32.to_le_bytes();
        code[24..28].copy_from_slice(&shader);
        // SAFETY: the driver refuses it.
        let error =
            unsafe { device.load(&DeviceImage { code, ..image() }, None) }.err().expect("no kernel").to_string();
        println!("{error}");
        assert!(error.contains("failed with CL_"), "{error}");
        let (_, log) = error.split_once("; the driver's log: ").unwrap_or_else(|| panic!("no log: {error}"));
        // The driver's own words for what was broken here.
        assert!(log.to_lowercase().contains("capability"), "{error}");
    }
}

fn options_of_an_image_are_given_to_the_driver() {
    for device in devices(SharingKind::Best) {
        let load = |options: &str| {
            let image = DeviceImage { build_options: options.to_owned(), ..image() };
            // SAFETY: the code of this test.
            unsafe { device.load(&image, None) }.err().map(|error| error.to_string())
        };
        assert_eq!(load("-cl-mad-enable"), None);
        let error = load("-no-such-option").expect("the driver does not know it");
        assert!(error.contains("clBuildProgram failed with"), "{error}");
    }
}

fn images_for_other_targets_and_kernels_that_are_not_there_are_refused() {
    for device in devices(SharingKind::Best) {
        for target in [ImageTarget::Ptx { sm: 70 }, ImageTarget::SpirV { major: 1, minor: 99 }] {
            // SAFETY: it is refused.
            let error = unsafe { device.load(&DeviceImage { target, ..image() }, None) }.err().expect("another target");
            assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
        }
        // SAFETY: the code of this test.
        let module = unsafe { device.load(&image(), None) }.expect("the driver takes the image");
        let error = module.kernel("missing").expect_err("there is none").to_string();
        assert!(error.contains("CL_INVALID_KERNEL_NAME") && error.contains("kernel \"missing\""), "{error}");
    }
}

fn an_image_that_promises_other_parameters_than_its_code_has_is_refused() {
    for device in devices(SharingKind::Best) {
        let mut image = image();
        for kernel in &mut image.kernels {
            kernel.parameters.size = if kernel.symbol == "affine" { 0 } else { 8 };
        }
        // SAFETY: the code of this test.
        let module = unsafe { device.load(&image, None) }.expect("the driver takes the image");
        for symbol in ["affine", "empty"] {
            let error = module.kernel(symbol).expect_err("the promise is wrong").to_string();
            assert!(error.contains(symbol) && error.contains("parameters"), "{error}");
        }
    }
}

fn an_image_with_two_work_items_at_each_position_is_refused_as_code_and_as_binary() {
    for device in devices(SharingKind::Best) {
        // SAFETY: the code of this test.
        let binary = unsafe { device.load(&image(), None) }.expect("the driver takes the image").binary();
        let mut image = image();
        image.kernels.iter_mut().for_each(|kernel| kernel.is_paired = kernel.symbol == "affine");
        // SAFETY: they are refused.
        let refused = unsafe { [device.load(&image, None), device.load(&image, Some(&binary.unwrap_or_default()))] };
        for error in refused.map(|loaded| loaded.err().expect("half of the work-items would be left out")) {
            let expected = "kernel \"affine\", whose image runs two work-items at each position of the grid";
            assert!(
                matches!(error, BackendError::Unsupported { .. }) && error.to_string().contains(expected),
                "{error}"
            );
        }
    }
}

fn a_binary_makes_the_same_kernels_and_a_damaged_one_is_refused() {
    // SAFETY: the code of this test.
    let load = |device: &Arc<dyn Device>| unsafe { device.load(&image(), None) }.expect("the driver takes the image");
    let gives = |device: &Arc<dyn Device>| load(device).binary().is_some();
    for device in devices_that(SharingKind::Best, "gives binaries away", gives) {
        let module = load(&device);
        let binary = module.binary().expect("it gave one before");
        drop(module);
        // SAFETY: what `binary` gave.
        let again = unsafe { device.load(&image(), Some(&binary)) }.expect("the driver takes its own binary");
        let kernel = again.kernel("empty").expect("the image has the kernel");
        drop(again);
        succeed(&in_order(&device), launch(&kernel, "empty", 10));
        // SAFETY: the driver refuses it.
        let damaged = unsafe { device.load(&image(), Some(&binary[..16])) };
        assert!(matches!(damaged.err(), Some(BackendError::Driver { .. })));
    }
}
