//! Code of the targets that no device of this machine runs.

use object::{Object, ObjectSection, ObjectSymbol};
use oxisycl_image::{Form, ImageTarget, ParameterLayout};

use super::disassembly::disassemble;
use super::*;
use crate::analyses::early_refusal;
use crate::compile::generate;
use crate::instruments::Instruments;
use crate::link::library::Library;
use crate::link::resolve::Scope;
use crate::llvm::{self, Context};
use crate::options::Options;
use crate::pipeline::{Phase, run_for_target};
use crate::program::{Decision, Program};
use crate::toolchain::Toolchain;

const ARGUMENTS: ParameterLayout = ParameterLayout { size: 16, align: 8 };

fn toolchain() -> Toolchain {
    Toolchain::of_the_tests()
}

/// The code object of a kernel in LLVM's assembly, as the last step makes it.
fn code_object(arch: &str, text: &str) -> Vec<u8> {
    let toolchain = toolchain();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    let context = Context::new();
    let target = of(&ImageTarget::AmdGcn { arch: arch.to_owned() }).expect("a target");
    let module = Module::from_text(&context, text, "test").expect("a test is well-formed");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    let module = run_for_target(Phase::Adapt, &*target, module).expect("adapted code");
    let module = run_for_target(Phase::Legalize, &*target, module).expect("legal code");
    module.verify("test").expect("a valid module");
    let code = target.emit(&module, ARGUMENTS, &toolchain).expect("a code object");
    assert_eq!(code, target.emit(&module, ARGUMENTS, &toolchain).expect("a code object"), "the same bytes again");
    code
}

#[test]
fn a_code_object_names_its_processor_and_describes_its_kernels() {
    let text = "
        define amdgpu_kernel void @k(ptr addrspace(4) byref([72 x i8]) align 8 %launch, ptr addrspace(4) byref([16 x i8]) align 8 %captures)
            \"amdgpu-implicitarg-num-bytes\"=\"0\" {
            %local = alloca i32
            %p = load ptr, ptr addrspace(4) %captures
            store i32 1, ptr %local
            %v = load volatile i32, ptr %local
            %old = atomicrmw add ptr %p, i32 %v seq_cst
            fence syncscope(\"singlethread\") seq_cst
            ret void
        }";
    // The numbers of the processors in `e_flags`, as LLVM's documentation of AMDGPU lists them.
    for (arch, number) in [("gfx90a", 0x3f), ("gfx942:sramecc+:xnack-", 0x4c), ("gfx1100", 0x41)] {
        let code = code_object(arch, text);
        let file = object::File::parse(&*code).expect("an ELF file");
        let object::FileFlags::Elf { os_abi, e_flags, .. } = file.flags() else { panic!("{:?}", file.flags()) };
        assert_eq!((os_abi, e_flags & 0xff), (64, number), "{arch}: the ABI of HSA, and the processor");
        let symbol = |name: &str| {
            let found = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(name));
            found.unwrap_or_else(|| panic!("{arch}: no symbol {name}"))
        };
        assert!(symbol("k").size() > 0);
        // The kernel's descriptor: 64 bytes, the size of its arguments in the third word.
        let descriptor = symbol("k.kd");
        assert_eq!(descriptor.size(), 64);
        let section = file.section_by_index(descriptor.section_index().expect("it is defined")).expect("a section");
        let bytes = section.data_range(descriptor.address(), 64).expect("it is in the file").expect("it is whole");
        assert_eq!(u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes")), 72 + 16, "{arch}");
        // Drivers find the kernel by the names in a note.
        let note = file.section_by_name(".note").expect("a note").data().expect("its bytes");
        for word in ["amdhsa.kernels", ".kernarg_segment_size", "k.kd"] {
            assert!(note.windows(word.len()).any(|part| part == word.as_bytes()), "{arch}: {word}");
        }
    }
}

#[test]
fn the_instructions_of_a_code_object_are_those_of_the_kernel() {
    let text = "
        declare i32 @llvm.amdgcn.workitem.id.x()
        declare void @llvm.amdgcn.s.barrier()
        define amdgpu_kernel void @k(ptr addrspace(4) byref([72 x i8]) align 8 %launch, ptr addrspace(4) byref([16 x i8]) align 8 %captures)
            \"amdgpu-implicitarg-num-bytes\"=\"0\" {
            %p = load ptr, ptr addrspace(4) %captures
            %i = call i32 @llvm.amdgcn.workitem.id.x()
            %q = getelementptr float, ptr %p, i32 %i
            %v = load float, ptr %q
            %w = fmul float %v, %v
            call void @llvm.amdgcn.s.barrier()
            store float %w, ptr %q
            %old = atomicrmw add ptr %p, i32 7 monotonic
            ret void
        }";
    for arch in ["gfx90a", "gfx942", "gfx1100"] {
        let code = code_object(arch, text);
        let functions = disassemble(toolchain().llvm_library(), arch, &code).expect("instructions of the processor");
        assert_eq!(functions.keys().collect::<Vec<_>>(), ["k"], "{arch}");
        let instructions = &functions["k"];
        // The one place of an instruction whose name begins so.
        let place = |names: &[&str]| {
            let is_it = |text: &String| names.iter().any(|name| text.starts_with(name));
            let places: Vec<usize> = (0..instructions.len()).filter(|at| is_it(&instructions[*at])).collect();
            let [place] = places[..] else { panic!("{arch}: {names:?} at {places:?} of {instructions:#?}") };
            place
        };
        let order = [
            place(&["s_load_dwordx2 ", "s_load_b64 "]),
            place(&["flat_load_dword ", "flat_load_b32 "]),
            place(&["s_barrier"]),
            place(&["flat_store_dword ", "flat_store_b32 "]),
            place(&["flat_atomic_add ", "flat_atomic_add_u32 "]),
            place(&["s_endpgm"]),
        ];
        assert!(order.is_sorted(), "{arch}: {order:?} {instructions:#?}");
        assert_eq!(order.last(), Some(&(instructions.len() - 1)), "{arch}: {instructions:#?}");
        // What needs no memory may pass the barrier, but not the instructions that it is between.
        assert!((order[1]..order[3]).contains(&place(&["v_mul_f32", "v_dual_mul_f32"])), "{arch}: {instructions:#?}");
    }
    // Instructions of another generation are not taken for the processor's own.
    let error = disassemble(toolchain().llvm_library(), "gfx90a", &code_object("gfx1100", text)).unwrap_err();
    assert!(error.starts_with("k: no instruction at byte "), "{error}");
}

/// A kernel whose entry copies its captures, an array and an address, as `oxisycl_device::kernel::range_entry` does, and reads the element
/// that each work-item chooses.
const TABLE: &str = "
    define i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE() { unreachable }
    define internal i32 @run(ptr %kernel, i64 %i) {
        %target = getelementptr i8, ptr %kernel, i64 64
        %p = load ptr, ptr %target, align 8
        %place = and i64 %i, 15
        %element = getelementptr inbounds [16 x i32], ptr %kernel, i64 0, i64 %place
        %v = load i32, ptr %element, align 4
        %q = getelementptr inbounds i32, ptr %p, i64 %i
        store i32 %v, ptr %q, align 4
        ret i32 %v
    }
    define void @oxisycl_entry.k(ptr %captures, ptr %launch, ptr %chunk) {
        %kernel = alloca [72 x i8], align 8
        call void @llvm.memcpy.p0.p0.i64(ptr align 8 %kernel, ptr align 8 %captures, i64 72, i1 false)
        %i = call i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE()
        %v = call i32 @run(ptr %kernel, i64 %i)
        ret void
    }";

#[test]
fn captures_that_a_work_item_chooses_from_are_read_where_the_launch_has_them() {
    let toolchain = Toolchain::of_the_tests();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    let image_target = ImageTarget::Ptx { sm: 70 };
    let (target, options, context) = (of(&image_target).expect("a target"), Options::default(), Context::new());
    let module = Module::from_text(&context, TABLE, "test").expect("a test is well-formed");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    let kernel = Kernel::of_test(Form::Range(1), 72);
    let instruments = Instruments::default();
    let mut program = Program::of_module(module, kernel, &*target, &image_target, &options, &instruments);
    program.link(&mut Library::default(), Scope::WithoutFormatting).expect("it links");
    program.add_kernel().expect("a kernel");
    let image = generate(&mut program, &mut Library::default(), &toolchain).expect("images").images.remove(0);
    let code = String::from_utf8(image.code).expect("text");
    assert!(code.contains("st.global.b32"), "{code}");
    for word in ["local", "ld.b32", "ld.b8"] {
        assert!(!code.contains(word), "{word}: captures are copied, or read without knowing where they are\n{code}");
    }
    // The address, and the chosen element.
    assert_eq!(code.matches("ld.param").count(), 2, "{code}");
}

#[test]
fn features_of_a_processor_are_checked() {
    let toolchain = Toolchain::of_the_tests();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    for arch in ["gfx90a:fast+", "gfx90a:xnack", "gfx90a:"] {
        let error = of(&ImageTarget::AmdGcn { arch: arch.to_owned() }).err().expect("it is refused").to_string();
        assert!(error.contains("expected sramecc or xnack"), "{error}");
    }
}

#[test]
fn a_kernel_that_reaches_too_much_is_refused_before_it_is_optimised() {
    let toolchain = Toolchain::of_the_tests();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    let image_target = ImageTarget::Ptx { sm: 70 };
    let (target, options, instruments) =
        (of(&image_target).expect("a target"), Options::default(), Instruments::default());
    let refusal = |n_stores: usize| {
        let stores = "store volatile i32 1, ptr %place\n".repeat(n_stores);
        let text = format!(
            "define void @oxisycl_entry.k(ptr %captures, ptr %launch, ptr %chunk) {{
                %place = load ptr, ptr %captures
                {stores} ret void
            }}"
        );
        let context = Context::new();
        let module = Module::from_text(&context, &text, "test").expect("a test is well-formed");
        module.set_target(target.machine().triple(), &target.machine().data_layout());
        let kernel = Kernel::of_test(Form::Range(1), 72);
        let mut program = Program::of_module(module, kernel, &*target, &image_target, &options, &instruments);
        program.link(&mut Library::default(), Scope::WithoutFormatting).expect("it links");
        program.early_refusal().map(|decision| match decision {
            Decision::IsRefused(refused) => refused.reason,
            Decision::Runs(_) => panic!("a refusal has no code"),
        })
    };
    // The load and the end count, too.
    let limit = early_refusal::MAX_INSTRUCTIONS;
    assert_eq!(refusal(limit - 2), None);
    let reason = refusal(limit - 1).expect("a reason");
    let expected = format!(
        "it is too large to be compiled by `cargo sycl`: it reaches {} instructions in 1 functions, the limit is {limit} instructions",
        limit + 1
    );
    assert!(reason.starts_with(&expected), "{reason}");
}
