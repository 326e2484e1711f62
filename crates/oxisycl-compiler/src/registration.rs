//! Makes the object file that puts images into a program. It has their bytes, and functions that register them when the link unit is loaded
//! and unregister them when it is unloaded.

use oxisycl_image::{DeviceImage, encode_bundle};

use crate::error::CompileError;
use crate::llvm::{self, Codegen, Context, Machine, Module};
use crate::toolchain::Toolchain;

/// The section of an object or program that holds the images of its link unit, as `oxisycl_image::decode_bundle` reads them.
pub const SECTION: &str = ".oxisycl";

/// Makes a native object file that registers the images of a link unit. It refers to functions of `oxisycl-runtime`.
///
/// # Errors
/// An image that breaks a rule of the format, or a host without a code generator.
pub fn registration_object(toolchain: &Toolchain, images: &[DeviceImage]) -> Result<Vec<u8>, CompileError> {
    let bundle = encode_bundle(images).map_err(|error| CompileError::Kernel(error.to_string()))?;
    llvm::load(toolchain.llvm_library())?;
    let context = Context::new();
    let machine = Machine::new(&toolchain.host, "", "")?;
    let module = Module::from_text(&context, &assembly(&bundle), "registration")?;
    module.set_target(machine.triple(), &machine.data_layout());
    module.verify("registration")?;
    machine.emit(&module, Codegen::Object)
}

fn assembly(bundle: &[u8]) -> String {
    use std::fmt::Write;
    let size = bundle.len();
    let mut text = String::with_capacity(3 * size + 1024);
    let _ = write!(text, "@images = private constant [{size} x i8] c\"");
    for byte in bundle {
        let _ = write!(text, "\\{byte:02X}");
    }
    // The functions are hidden: a library that brings a runtime of its own registers with that one, not with the first of the process.
    // Pointers in the sections of initialisers, not `llvm.global_ctors`: without clang's options that becomes the older `.ctors`, which
    // nothing runs. Marked as used, so that linkers that drop unreferenced sections keep them.
    let _ = write!(
        text,
        "\", section \"{SECTION}\", align 16\n\
         @at_load = private constant ptr @register, section \".init_array\", align 8\n\
         @at_unload = private constant ptr @unregister, section \".fini_array\", align 8\n\
         @llvm.used = appending global [3 x ptr] [ptr @images, ptr @at_load, ptr @at_unload], section \"llvm.metadata\"\n\
         declare hidden void @__oxisycl_register_images(ptr, i64)\n\
         declare hidden void @__oxisycl_unregister_images(ptr, i64)\n\
         define internal void @register() {{\n  call void @__oxisycl_register_images(ptr @images, i64 {size})\n  ret void\n}}\n\
         define internal void @unregister() {{\n  call void @__oxisycl_unregister_images(ptr @images, i64 {size})\n  ret void\n}}\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSection, ObjectSymbol};

    #[test]
    fn the_object_holds_the_images_and_refers_to_the_runtime() {
        let toolchain = Toolchain::of_the_tests();
        let object = registration_object(&toolchain, &[]).expect("a native object");
        assert_eq!(object, registration_object(&toolchain, &[]).expect("a native object"), "the same bytes again");
        let file = object::File::parse(&*object).expect("an object file");
        let section = file.section_by_name(SECTION).expect("the section of the images");
        assert_eq!(section.data().expect("its bytes"), encode_bundle(&[]).expect("an empty bundle"));
        let undefined: Vec<_> =
            file.symbols().filter(|symbol| symbol.is_undefined()).filter_map(|symbol| symbol.name().ok()).collect();
        for name in [".init_array", ".fini_array"] {
            assert_eq!(file.section_by_name(name).expect("an initialiser").size(), 8, "{name}");
        }
        for name in ["__oxisycl_register_images", "__oxisycl_unregister_images"] {
            assert!(undefined.contains(&name), "{undefined:?}");
        }
    }
}
