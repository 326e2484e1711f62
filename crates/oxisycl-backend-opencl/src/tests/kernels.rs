//! The kernels that the tests of whole drivers have, for unit tests.

use std::io::Write;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;

use oxisycl_backend::{ArgumentBlock, Command, Device, KernelCommand, LoadedKernel, Module};
use oxisycl_image::{DeviceImage, Form, ImageTarget, KernelEntry, ParameterLayout, SourceLocation};
use oxisycl_types::LaunchRange;

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
pub(super) fn kernel(device: &Arc<dyn Device>, symbol: &str) -> Arc<dyn LoadedKernel> {
    module(device, entry(symbol)).kernel(symbol).expect("the image has the kernel")
}

/// What an image says of such a kernel.
pub(super) fn entry(symbol: &str) -> KernelEntry {
    KernelEntry {
        location: SourceLocation { file: "kernels.spvasm".to_owned(), line: 1, column: 1 },
        ..KernelEntry::new(symbol, [1; 16], Form::Range(1), ParameterLayout { size: 8, align: 8 }, symbol)
    }
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
    let mut descriptor = oxisycl_backend_testing::contract::native()[1];
    descriptor.name = Some("kernel");
    descriptor.parameters = ParameterLayout { size: 8, align: 8 };
    let range = LaunchRange { dimensions: 1, extent: [1, 1, n], offset: [0; 3] };
    let arguments = ArgumentBlock::new(&(address as u64));
    Command::from(KernelCommand { descriptor, code: Some(code.clone()), arguments, range, group: None })
}
