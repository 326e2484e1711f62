//! Translates, validates and runs small kernels.
//!
//! Kernels get two addresses as their only argument, of an array of inputs and one of outputs. A test that runs kernels is ignored by
//! default, because it needs a driver. `spirv-val` is used where it is; otherwise the test says that it leaves it out, and looks at the text
//! alone. Where it was installed for the tests, and under `CI`, that is a failure.

use std::io::Write;
use std::process::{Command, Stdio};

use oxisycl_backend_opencl::bare::Device;
use rspirv::dr::Module as Assembled;

use crate::codegen::Target;
use crate::codegen::spirv::SpirV;
use crate::codegen::spirv::module::{Translation, translate};
use crate::codegen::spirv::module_builder;
use crate::codegen::spirv::module_builder::Extensions;
use crate::llvm::{self, Context, Module};
use crate::pipeline::{Phase, run_for_target};
use crate::refused::Refused;
use crate::toolchain::Toolchain;

/// What kernels of tests begin with: `%in` and `%out` are addresses, `%i` is the number of the work-item.
pub(super) const BEGIN: &str = "(ptr byval([16 x i8]) align 8 %args) {
  %in = load ptr, ptr %args, align 8
  %second = getelementptr inbounds i8, ptr %args, i64 8
  %out = load ptr, ptr %second, align 8
  %i = call i64 @oxisycl.spirv.global_id(i32 0)
";

/// A context with LLVM loaded.
pub(super) fn context() -> Context {
    let toolchain = Toolchain::of_the_tests();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    Context::new()
}

/// Translates the functions whose names begin with `k`.
pub(super) fn try_translate(context: &Context, text: &str) -> Result<Translation, Refused> {
    translate_with(context, text, Extensions::default())
}

/// Translates code with extensions.
pub(super) fn translate_with(context: &Context, text: &str, extensions: Extensions) -> Result<Translation, Refused> {
    translate_after(&[Phase::Expand], context, text, extensions)
}

/// The translation of code that has one, after all passes that come before one.
pub(super) fn legalized(context: &Context, text: &str) -> Translation {
    translate_after(&[Phase::Expand, Phase::Legalize], context, text, Extensions::default()).expect("a translation")
}

fn translate_after(
    phases: &[Phase],
    context: &Context,
    text: &str,
    extensions: Extensions,
) -> Result<Translation, Refused> {
    let text = format!("{text}\ndeclare i64 @oxisycl.spirv.global_id(i32)\n");
    let mut module = Module::from_text(context, &text, "test").expect("a test is well-formed");
    let target = SpirV::new(1, 2).expect("the target");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    for phase in phases {
        module = run_for_target(*phase, &target, module).expect("the passes run");
    }
    let is_kernel = |name: &str| name.starts_with('k');
    let kernels: Vec<_> = module
        .functions()
        .into_iter()
        .filter(|function| is_kernel(function.name()) && !function.is_declaration())
        .collect();
    translate(&module, &kernels, extensions)
}

/// The translation of code that has one.
pub(super) fn translated(context: &Context, text: &str) -> Translation {
    try_translate(context, text).expect("a translation")
}

/// The bytes of a module, after `spirv-val` accepted them.
pub(super) fn validated(module: &Assembled) -> Vec<u8> {
    let bytes = module_builder::to_bytes(module);
    validate(&bytes);
    bytes
}

/// Has `spirv-val` check a module, if it is there.
pub(crate) fn validate(bytes: &[u8]) {
    let started = Command::new("spirv-val")
        .args(["--target-env", "spv1.3", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            return left_out(&format!("spirv-val cannot be started: {error}"));
        }
    };
    child.stdin.take().expect("it was piped").write_all(bytes).expect("spirv-val reads");
    let output = child.wait_with_output().expect("spirv-val ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let file = std::env::temp_dir().join(format!("oxisycl-invalid-{}.spv", std::process::id()));
        std::fs::write(&file, bytes).expect("the folder for temporary files is writable");
        panic!("spirv-val refuses {}: {text}", file.display());
    }
}

/// A device. Tests that ask for one are ignored where nothing says that there is a driver.
pub(super) fn device() -> Device {
    // SAFETY: tests run with the system's loader, or with the one that the project's commands installed.
    unsafe { Device::find() }.unwrap_or_else(|reason| panic!("the test needs an OpenCL device: {reason}"))
}

/// Says why a test leaves something out. Where a driver and `spirv-val` were installed for the tests, and under `CI`, that is a failure.
fn left_out(reason: &str) {
    let must_run = ["OPENCL_TESTS_MUST_RUN", "CI"].into_iter().find(|name| std::env::var_os(name).is_some());
    assert_eq!(must_run, None, "the tests must run whole where this variable is set, but {reason}");
    println!("left out: {reason}");
}

/// Runs each kernel for as many work-items as are said, on a copy of `input`, and gives what it left in the output.
pub(super) fn run(bytes: &[u8], kernels: &[(&str, &[u8], usize)], items: usize) -> Vec<Vec<u8>> {
    run_in_groups(bytes, kernels, items, 1)
}

/// Runs a kernel in groups of so many work-items, of which a driver for CPUs makes vectors.
pub(super) fn run_in_groups(
    bytes: &[u8],
    kernels: &[(&str, &[u8], usize)],
    items: usize,
    group: usize,
) -> Vec<Vec<u8>> {
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(bytes) }.unwrap_or_else(|error| panic!("{error}"));
    let run_one = |&(kernel, input, output): &(&str, &[u8], usize)| {
        let mut from = device.allocate(input.len()).expect("memory");
        from.bytes().copy_from_slice(input);
        let mut to = device.allocate(output).expect("memory");
        to.bytes().fill(UNTOUCHED);
        let arguments = [from.address().to_le_bytes(), to.address().to_le_bytes()].concat();
        // SAFETY: the kernels of tests stay within their arrays.
        unsafe { program.run(kernel, &[&arguments], 0, ([items, 1, 1], [group, 1, 1])) }.expect("the kernel runs");
        to.bytes().to_vec()
    };
    kernels.iter().map(run_one).collect()
}

/// What outputs are filled with before.
pub(super) const UNTOUCHED: u8 = 0xA5;
