//! Pixels of halves: NVIDIA GPUs convert them by instructions. OpenCL devices need not have halves at all.

use std::process::Command;

use crate::program::{Package, build, functions, kernel, succeed};

const PROGRAM: &str = "halves";

#[test]
fn pixels_of_halves_are_converted_by_instructions_of_nvidia_gpus() {
    let built = build(PROGRAM, &[]);
    let code = kernel(&functions(&built.code), "pixels_of_halves");
    for conversion in ["cvt.f32.f16", "cvt.rn.f16.f32"] {
        let n = code.matches(conversion).count();
        assert_eq!(n, 4, "{conversion}, one for each channel: {code}");
    }
    succeed(&mut Command::new(&built.binary));
}

#[test]
fn opencl_devices_need_no_halves_for_pixels_of_them() {
    let package = Package::enter();
    package.sycl(&["build", "--targets", "spirv", "--bin", PROGRAM]);
    let (kernels, _) = package.sycl(&["inspect", "target/sycl/debug/halves"]);
    assert!(kernels.contains("pixels_of_halves") && !kernels.contains("fp16"), "{kernels}");
}
