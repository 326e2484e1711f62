//! The kernels that the tests of whole drivers have, for unit tests.

use std::io::Write;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;

use oxisycl_backend::{Command, Device, LoadedKernel, Module};
use oxisycl_backend_testing::loaded::{self, TestEntry, line};
use oxisycl_image::{DeviceImage, ImageTarget, KernelEntry, SourceLocation};

/// Assembles with `spirv-as`.
fn assembled(text: &str) -> Vec<u8> {
    let mut child = Process::new("spirv-as")
        .args(["--target-env", "spv1.2", "-o", "-", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("spirv-as can be started");
    child.stdin.take().expect("it was piped").write_all(text.as_bytes()).expect("spirv-as reads");
    let output = child.wait_with_output().expect("spirv-as ends");
    assert!(output.status.success(), "spirv-as refuses the kernels");
    output.stdout
}

/// A kernel whose only argument is an address.
pub(super) fn kernel(device: &Arc<dyn Device>, symbol: &'static str) -> Arc<dyn LoadedKernel> {
    module(device, entry(symbol)).kernel(symbol).expect("the image has the kernel")
}

/// What an image says of such a kernel.
pub(super) fn entry(symbol: &'static str) -> KernelEntry {
    let location = SourceLocation { file: "kernels.spvasm".to_owned(), line: 1, column: 1 };
    TestEntry::new(symbol, 8).at(&location)
}

/// A module with the code of all kernels and the entry of one.
pub(super) fn module(device: &Arc<dyn Device>, entry: KernelEntry) -> Arc<dyn Module> {
    let image = DeviceImage {
        target: ImageTarget::SpirV { major: 1, minor: 2 },
        kernels: vec![entry],
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: assembled(include_str!("../../tests/drivers/kernels.spvasm")),
    };
    // SAFETY: the code of this test.
    unsafe { device.load(&image, None) }.expect("the driver takes the image")
}

/// A launch of `n` work-items of such a kernel.
pub(super) fn launch(code: &Arc<dyn LoadedKernel>, address: *mut u8, n: usize) -> Command {
    loaded::launch(code, "kernel", &(address as u64), line(n))
}
