//! The images of a kernel: a second one where devices may have an instruction that others lack.

use oxisycl_image::{DeviceImage, Form, ImageTarget};
use rspirv::binary::Disassemble;

use super::support::{context, device, validate};
use crate::codegen::Target;
use crate::codegen::entry::LAUNCH_SIZE;
use crate::codegen::spirv::SpirV;
use crate::compile::generate;
use crate::instruments::Instruments;
use crate::kernel::Kernel;
use crate::link::library::Library;
use crate::link::resolve::Scope;
use crate::llvm::Module;
use crate::options::Options;
use crate::program::Program;
use crate::toolchain::Toolchain;

const ITEMS: usize = 1000;

/// All images of a kernel that adds the numbers of its work-items, of the type, by the operation.
fn images(operation: &str, kind: &str) -> Vec<DeviceImage> {
    let context = context();
    let toolchain = Toolchain::of_the_tests();
    let convert = if kind.starts_with('i') { "trunc" } else { "uitofp" };
    let text = format!(
        "define i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE() {{ unreachable }}
define void @oxisycl_entry.k(ptr %captures, ptr %launch, ptr %chunk) {{
  %p = load ptr, ptr %captures
  %i = call i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE()
  %v = {convert} i64 %i to {kind}
  %old = atomicrmw {operation} ptr %p, {kind} %v monotonic
  ret void\n}}\n"
    );
    let (target, image_target) = (SpirV::new(1, 2).expect("the target"), ImageTarget::SpirV { major: 1, minor: 2 });
    let options = Options::default();
    let module = Module::from_text(&context, &text, "test").expect("a test is well-formed");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    let instruments = Instruments::default();
    let mut program =
        Program::of_module(module, Kernel::of_test(Form::Range(1), 8), &target, &image_target, &options, &instruments);
    program.link(&mut Library::default(), Scope::WithoutFormatting).expect("it links");
    program.add_kernel().expect("a kernel");
    generate(&mut program, &mut Library::default(), &toolchain).expect("images").images
}

/// What the image's kernel leaves in eight bytes of zeros.
fn sum_of(image: &DeviceImage) -> u64 {
    validate(&image.code);
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&image.code) }.unwrap_or_else(|error| panic!("{error}"));
    let mut memory = device.allocate(8).expect("memory");
    let captures = memory.address().to_le_bytes();
    // SAFETY: the kernel adds to the first bytes of the memory, and reads nothing of its launch.
    unsafe { program.run("k", &[&[0; LAUNCH_SIZE], &captures], 0, ([ITEMS, 1, 1], [10, 1, 1])) }.expect("it runs");
    memory.bytes().try_into().map(u64::from_le_bytes).expect("8 bytes")
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_sum_of_floats_has_an_image_with_the_instruction_and_one_without_and_both_are_right() {
    let sum = (ITEMS * (ITEMS - 1) / 2) as f64;
    for (kind, needed) in [("float", &[][..]), ("double", &["atomic64", "fp64"])] {
        let images = images("fadd", kind);
        let requirements: Vec<_> = images.iter().map(|image| image.kernels[0].requirements.clone()).collect();
        // The first one that a device can run is taken.
        let better = [needed, &["ext_oxisycl_float_atomics"]].concat();
        assert_eq!(requirements, [better, needed.to_vec()], "{kind}");
        let assembly = |image: &DeviceImage| rspirv::dr::load_bytes(&image.code).expect("a module").disassemble();
        let counts: Vec<_> = images
            .iter()
            .map(|image| ["OpAtomicFAddEXT", "OpAtomicCompareExchange "].map(|op| assembly(image).matches(op).count()))
            .collect();
        assert_eq!(counts, [[1, 0], [0, 1]], "{kind}");
        for (position, image) in images.iter().enumerate() {
            let bits = sum_of(image);
            let found = if kind == "float" { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) };
            assert_eq!(found, sum, "{kind}, image {position}");
        }
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn what_every_device_has_needs_one_image() {
    for (operation, kind) in [("add", "i32"), ("fmax", "float")] {
        let images = images(operation, kind);
        assert_eq!(images.len(), 1, "{operation}");
        assert_eq!(images[0].kernels[0].requirements, Vec::<String>::new(), "{operation}");
    }
    let sum = sum_of(&images("add", "i32")[0]);
    assert_eq!(sum, (ITEMS * (ITEMS - 1) / 2) as u64);
}
