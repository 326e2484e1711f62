//! Makes the object file that puts images into a program. It has their bytes, and functions that register them when the link unit is loaded
//! and unregister them when it is unloaded.

use oxisycl_image::{DeviceImage, encode_bundle};

use crate::error::CompileError;
use crate::llvm::{self, Codegen, Context, Machine, Module};
use crate::toolchain::Toolchain;

/// The section of an object or program that holds the images of its link unit, as `oxisycl_image::decode_bundle` reads them.
pub const SECTION: &str = ".oxisycl";

/// The functions of `oxisycl-runtime` that a link unit calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registers {
    /// The symbol of the function that takes the images when the unit is loaded.
    pub register: String,
    /// The symbol of the function that takes them with a table of native code.
    pub register_native: String,
    /// The symbol of the function that takes them back when it is unloaded.
    pub unregister: String,
    /// Whether they are linked into the unit, and no others will do.
    pub is_hidden: bool,
}

impl Registers {
    /// The functions of the runtime that is linked into the unit. They are hidden: the unit registers with that one, not with the first of the process.
    pub fn own() -> Self {
        let [register, register_native, unregister] =
            ["__oxisycl_register_images", "__oxisycl_register_native", "__oxisycl_unregister_images"]
                .map(str::to_owned);
        Self { register, register_native, unregister, is_hidden: true }
    }
}

/// Makes a native object file that registers the images of a link unit by the functions of a runtime. `native` are the symbols of the native
/// code that images of hosts number, from 0 on.
///
/// # Errors
/// An image that breaks a rule of the format, or a host without a code generator.
pub fn registration_object(
    toolchain: &Toolchain,
    images: &[DeviceImage],
    native: &[String],
    registers: &Registers,
) -> Result<Vec<u8>, CompileError> {
    let bundle = encode_bundle(images).map_err(|error| CompileError::Kernel(error.to_string()))?;
    llvm::load(toolchain.llvm_library())?;
    let context = Context::new();
    let machine = Machine::new(&toolchain.host, "", "")?;
    let module = Module::from_text(&context, &assembly(&bundle, native, registers), "registration")?;
    module.set_target(machine.triple(), &machine.data_layout());
    module.verify("registration")?;
    machine.emit(&module, Codegen::Object)
}

fn assembly(bundle: &[u8], native: &[String], registers: &Registers) -> String {
    use std::fmt::Write;
    let Registers { register, register_native, unregister, is_hidden } = registers;
    let hidden = if *is_hidden { "hidden " } else { "" };
    let size = bundle.len();
    let mut text = String::with_capacity(3 * size + 1024);
    let _ = write!(text, "@images = private constant [{size} x i8] c\"");
    for byte in bundle {
        let _ = write!(text, "\\{byte:02X}");
    }
    // Pointers in the sections of initialisers, not `llvm.global_ctors`: without clang's options that becomes the older `.ctors`, which
    // nothing runs. Marked as used, so that linkers that drop unreferenced sections keep them.
    let _ = write!(
        text,
        "\", section \"{SECTION}\", align 16\n\
         @at_load = private constant ptr @register, section \".init_array\", align 8\n\
         @at_unload = private constant ptr @unregister, section \".fini_array\", align 8\n\
         @llvm.used = appending global [3 x ptr] [ptr @images, ptr @at_load, ptr @at_unload], section \"llvm.metadata\"\n\
         declare {hidden}void @\"{unregister}\"(ptr, i64)\n\
         define internal void @unregister() {{\n  call void @\"{unregister}\"(ptr @images, i64 {size})\n  ret void\n}}\n"
    );
    if native.is_empty() {
        let _ = write!(
            text,
            "declare {hidden}void @\"{register}\"(ptr, i64)\n\
             define internal void @register() {{\n  call void @\"{register}\"(ptr @images, i64 {size})\n  ret void\n}}\n"
        );
        return text;
    }
    let n_native = native.len();
    for symbol in native {
        let _ = writeln!(text, "declare hidden void @\"{symbol}\"(ptr, ptr, ptr)");
    }
    let entries: Vec<String> = native.iter().map(|symbol| format!("ptr @\"{symbol}\"")).collect();
    let _ = write!(
        text,
        "@native = private constant [{n_native} x ptr] [{}], align 8\n\
         declare {hidden}void @\"{register_native}\"(ptr, i64, ptr, i64)\n\
         define internal void @register() {{\n  \
         call void @\"{register_native}\"(ptr @images, i64 {size}, ptr @native, i64 {n_native})\n  ret void\n}}\n",
        entries.join(", ")
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
        let own = Registers::own();
        let object = registration_object(&toolchain, &[], &[], &own).expect("a native object");
        assert_eq!(
            object,
            registration_object(&toolchain, &[], &[], &own).expect("a native object"),
            "the same bytes again"
        );
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

    #[test]
    fn native_code_is_registered_in_a_table_of_its_symbols() {
        let toolchain = Toolchain::of_the_tests();
        let symbols = ["k1_a", "k1_b"].map(str::to_owned);
        let object = registration_object(&toolchain, &[], &symbols, &Registers::own()).expect("a native object");
        let file = object::File::parse(&*object).expect("an object file");
        let table = file.section_by_name(".data.rel.ro").expect("the section of constant addresses");
        let target = |relocation: object::Relocation| match relocation.target() {
            object::RelocationTarget::Symbol(index) => {
                file.symbol_by_index(index).expect("a symbol").name().expect("a name").to_owned()
            }
            other => panic!("expected a symbol, found {other:?}"),
        };
        let entries: Vec<_> = table.relocations().map(|(offset, relocation)| (offset, target(relocation))).collect();
        assert_eq!((table.size(), entries), (16, vec![(0, symbols[0].clone()), (8, symbols[1].clone())]));
        let undefined: Vec<_> =
            file.symbols().filter(|symbol| symbol.is_undefined()).filter_map(|symbol| symbol.name().ok()).collect();
        assert!(undefined.contains(&"__oxisycl_register_native"), "{undefined:?}");
        assert!(!undefined.contains(&"__oxisycl_register_images"), "{undefined:?}");
    }

    #[test]
    fn only_the_functions_of_another_library_may_be_found_there() {
        let toolchain = Toolchain::of_the_tests();
        let [register, register_native, unregister] = ["_ZN1a1bE", "_ZN1a1dE", "_ZN1a1c$u7b$E"].map(str::to_owned);
        let others = Registers { register, register_native, unregister, is_hidden: false };
        for registers in [Registers::own(), others] {
            let object = registration_object(&toolchain, &[], &[], &registers).expect("a native object");
            let file = object::File::parse(&*object).expect("an object file");
            for name in [&registers.register, &registers.unregister] {
                let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).expect("the function");
                let object::SymbolFlags::Elf { st_other, .. } = symbol.flags() else { panic!("expected ELF") };
                let is_hidden = st_other & 3 == object::elf::STV_HIDDEN;
                assert_eq!((symbol.is_undefined(), is_hidden), (true, registers.is_hidden), "{name}");
            }
        }
    }
}
