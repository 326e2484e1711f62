//! Native code of kernels: what it is, and which kernels have none.

use object::{Object, ObjectSection, ObjectSymbol, SymbolFlags};
use oxisycl_image::{Form, HostLevel, ImageTarget};

use super::*;
use crate::compile::{generate, lower};
use crate::golden;
use crate::instruments::Instruments;
use crate::link::library::Library;
use crate::link::resolve::Scope;
use crate::llvm::{self, Context};
use crate::options::{FloatPolicy, Options};
use crate::program::Program;

const PANIC: &str = "_RNvNtCs1234_4core9panicking18panic_bounds_check";
const INPUT: &str = include_str!("../../../golden/native.ll");

fn target(level: HostLevel) -> (Toolchain, ImageTarget) {
    let toolchain = Toolchain::of_the_tests();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    (toolchain, ImageTarget::Host { triple: TRIPLE.to_owned(), level: Some(level) })
}

fn library() -> Library<'static> {
    Library::exporting(&[PANIC])
}

/// Compiles the kernel of a module, and passes what came of it on.
fn with_program<R>(text: &str, kernel: Kernel, visit: impl FnOnce(&mut Program<'_, '_>, &Toolchain) -> R) -> R {
    with_level(HostLevel::V3, text, kernel, visit)
}

fn with_level<R>(
    level: HostLevel,
    text: &str,
    kernel: Kernel,
    visit: impl FnOnce(&mut Program<'_, '_>, &Toolchain) -> R,
) -> R {
    let options = Options { float: FloatPolicy::Fast, ..Options::default() };
    with_options(level, &options, text, kernel, visit)
}

fn with_options<R>(
    level: HostLevel,
    options: &Options,
    text: &str,
    kernel: Kernel,
    visit: impl FnOnce(&mut Program<'_, '_>, &Toolchain) -> R,
) -> R {
    let (toolchain, image_target) = target(level);
    let target = crate::codegen::of(&image_target).expect("a target");
    let (context, instruments) = (Context::new(), Instruments::default());
    let module = Module::from_text(&context, text, "native").expect("a test is well-formed");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    let mut program = Program::of_module(module, kernel, &*target, &image_target, options, &instruments);
    let mut library = if options.loses_names { Library::losing_names() } else { library() };
    program.link(&mut library, Scope::WithoutFormatting).expect("it links");
    visit(&mut program, &toolchain)
}

fn image(text: &str, kernel: Kernel) -> oxisycl_image::DeviceImage {
    image_for(HostLevel::V3, text, kernel)
}

fn image_for(level: HostLevel, text: &str, kernel: Kernel) -> oxisycl_image::DeviceImage {
    with_level(level, text, kernel, |program, toolchain| {
        if let Some(refused) = program.early_refusal() {
            return program.image(refused, Vec::new(), toolchain);
        }
        program.add_kernel().expect("a kernel");
        generate(program, &mut library(), toolchain).expect("images").images.remove(0)
    })
}

/// The reason why a kernel has no native code.
fn refusal(text: &str) -> String {
    let image = image(text, Kernel::of_test(Form::Range(1), 16));
    assert!(image.kernels.is_empty() && image.code.is_empty(), "expected no code");
    image.unsupported[0].reason.clone()
}

/// A kernel with these globals and this code before its end.
fn kernel(globals: &str, code: &str) -> String {
    format!("{globals}\ndefine void @oxisycl_entry.k(ptr %captures, ptr %launch, ptr %chunk) {{\n{code}\nret void\n}}")
}

#[test]
fn golden_native() {
    let text = with_program(INPUT, Kernel::of_test(Form::Range(1), 16), |program, _| {
        program.add_kernel().expect("a kernel");
        assert!(!lower(program, &mut library()).expect("code").is_refusal());
        program.module().strip_debug_info();
        let machine = Machine::new(TRIPLE, HostLevel::V3.name(), "").expect("a machine");
        String::from_utf8(machine.emit(program.module(), Codegen::Assembly).expect("assembly")).expect("text")
    });
    golden::check("native.x86-64-v3.txt", &golden::stable(&text));
    assert!(text.contains("vfmadd") && text.contains("%ymm"), "{text}");
}

#[test]
fn the_object_has_one_name_of_its_own_and_unwinds() {
    let image = image(INPUT, Kernel::of_test(Form::Range(1), 16));
    assert_eq!(image.code, self::image(INPUT, Kernel::of_test(Form::Range(1), 16)).code, "the same bytes again");
    assert!(image.build_options.ends_with("float=fast"), "as the options say: {}", image.build_options);
    let file = object::File::parse(&*image.code).expect("an object");
    let own: Vec<_> = file.symbols().filter(|symbol| symbol.is_global() && symbol.is_definition()).collect();
    let mut names: Vec<_> = own.iter().map(|symbol| symbol.name().expect("a name")).collect();
    names.sort_unstable();
    // The other one is the linker's to merge.
    assert_eq!(names, ["DW.ref.rust_eh_personality", "__oxisycl_native_v3_k"]);
    for symbol in own {
        let SymbolFlags::Elf { st_other, .. } = symbol.flags() else { panic!("expected ELF") };
        assert_eq!(st_other & 3, object::elf::STV_HIDDEN, "{:?}", symbol.name());
    }
    let mut undefined: Vec<_> =
        file.symbols().filter(|symbol| symbol.is_undefined()).filter_map(|symbol| symbol.name().ok()).collect();
    undefined.retain(|name| !name.is_empty());
    undefined.sort_unstable();
    assert_eq!(undefined, [PANIC, "_Unwind_Resume", "foreign", "rust_eh_personality"]);
    for name in [".eh_frame", ".gcc_except_table"] {
        assert!(file.section_by_name(name).is_some_and(|section| section.size() > 0), "{name}");
    }
}

#[test]
fn the_object_has_source_lines_if_they_are_wanted() {
    const DESCRIBED: &str = r#"
        define void @oxisycl_entry.k(ptr %captures, ptr %launch, ptr %chunk) !dbg !3 {
          store i32 1, ptr %captures, !dbg !4
          ret void, !dbg !4
        }
        !llvm.dbg.cu = !{!0}
        !llvm.module.flags = !{!5}
        !0 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !1, emissionKind: FullDebug)
        !1 = !DIFile(filename: "src/main.rs", directory: "/app")
        !2 = !DISubroutineType(types: !{})
        !3 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 3, type: !2, spFlags: DISPFlagDefinition, unit: !0)
        !4 = !DILocation(line: 5, column: 7, scope: !3)
        !5 = !{i32 2, !"Debug Info Version", i32 3}
    "#;
    let code = |has_lines: bool| {
        let options = Options { has_lines, ..Options::default() };
        with_options(HostLevel::V3, &options, DESCRIBED, Kernel::of_test(Form::Range(1), 16), |program, toolchain| {
            program.add_kernel().expect("a kernel");
            (program.content(), generate(program, &mut library(), toolchain).expect("images").images.remove(0).code)
        })
    };
    let ((content, without), (other_content, with)) = (code(false), code(true));
    let has_lines = |code: &[u8]| {
        let file = object::File::parse(code).expect("an object");
        let instructions = |name| file.section_by_name(name).map(|section| section.data().expect("bytes").to_vec());
        (file.section_by_name(".debug_line").is_some(), instructions(".text"))
    };
    let ([without, with], is_other) = ([&without, &with].map(|code| has_lines(code)), content != other_content);
    assert_eq!([without.0, with.0, is_other], [false, true, true]);
    assert!(without.1.is_some() && without.1 == with.1, "the same instructions");
}

#[test]
fn where_names_are_lost_functions_are_called_by_those_that_stay() {
    let compiled = |text: &str| {
        let options = Options { loses_names: true, ..Options::default() };
        with_options(HostLevel::V3, &options, text, Kernel::of_test(Form::Range(1), 16), |program, toolchain| {
            program.add_kernel().expect("a kernel");
            generate(program, &mut Library::losing_names(), toolchain).expect("images").images.remove(0)
        })
    };
    let declared = "declare void @_RNvNtCs1234_4core9panicking9panic_fmt(ptr, ptr, ptr) noreturn";
    let called = "call void @_RNvNtCs1234_4core9panicking9panic_fmt(ptr %captures, ptr %launch, ptr %chunk)";
    let image = compiled(&kernel(declared, called));
    let file = object::File::parse(&*image.code).expect("an object");
    let needed = file.symbols().find(|symbol| symbol.name() == Ok("__oxisycl_kept_panic")).expect("it is called");
    let SymbolFlags::Elf { st_other, .. } = needed.flags() else { panic!("expected ELF") };
    assert!(needed.is_undefined() && st_other & 3 == object::elf::STV_HIDDEN, "of this library alone");
    assert!(file.symbols().all(|symbol| symbol.name() != Ok("_RNvNtCs1234_4core9panicking9panic_fmt")));
    let reason = &compiled(INPUT).unsupported[0].reason;
    assert!(reason.starts_with("it needs `core::panicking::panic_bounds_check`, which the program does not export"));
}

#[test]
fn statics_that_change_are_not_copied() {
    let used = "%old = atomicrmw add ptr @_RNvCs1234_3app5COUNT, i32 1 monotonic";
    let reason = refusal(&kernel("@_RNvCs1234_3app5COUNT = internal global i32 7", used));
    assert!(reason.starts_with("it uses the static `app::COUNT`, which exists once"), "{reason}");
    // Nothing in this module writes it. The program does.
    let read = "%v = load i32, ptr @_RNvCs1234_3app5COUNT\nstore i32 %v, ptr %captures";
    let reason = refusal(&kernel("@_RNvCs1234_3app5COUNT = internal global i32 7", read));
    assert!(reason.starts_with("it uses the static `app::COUNT`, which exists once"), "{reason}");
    let local = "%a = call ptr @llvm.threadlocal.address.p0(ptr @_RNvCs1234_3app5LOCAL)\nstore i32 1, ptr %a";
    let globals =
        "@_RNvCs1234_3app5LOCAL = internal thread_local global i32 7\ndeclare ptr @llvm.threadlocal.address.p0(ptr)";
    let reason = refusal(&kernel(globals, local));
    assert!(reason.starts_with("it uses the thread-local variable `app::LOCAL`"), "{reason}");
}

#[test]
fn a_static_that_the_code_does_not_need_after_all_is_no_obstacle() {
    let globals = "@_RNvCs1234_3app5COUNT = internal global i32 7";
    let dead = "br i1 false, label %a, label %b\na: store i32 1, ptr @_RNvCs1234_3app5COUNT\nbr label %b\nb:";
    let image = image(&kernel(globals, dead), Kernel::of_test(Form::Range(1), 16));
    assert_eq!(image.kernels.len(), 1);
    let file = object::File::parse(&*image.code).expect("an object");
    assert!(file.symbols().all(|symbol| symbol.name() != Ok("_RNvCs1234_3app5COUNT")), "the program has it");
}

#[test]
fn what_devices_run_is_no_part_of_native_code() {
    let globals = "define i1 @_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E() { ret i1 false }\n\
         declare void @_RNvCs1234_3app6secret()";
    let code = "%d = call i1 @_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E()\n\
         br i1 %d, label %device, label %host\ndevice: call void @_RNvCs1234_3app6secret()\nbr label %host\nhost:";
    let text = kernel(globals, code);
    with_program(&text, Kernel::of_test(Form::Range(1), 16), |program, _| {
        assert!(program.module().function("_RNvCs1234_3app6secret").is_none(), "{}", program.module());
    });
}

#[test]
fn statics_that_do_not_change_are_not_copied_either() {
    // Another copy would have another address. What it points to would, too.
    let globals = "@alloc_1 = private unnamed_addr constant [3 x i8] c\"red\"\n\
         @_RNvCs1234_3app5NAMES = internal constant [1 x ptr] [ptr @alloc_1]";
    let compared = "%p = load ptr, ptr %captures\n%c = icmp eq ptr %p, @_RNvCs1234_3app5NAMES\n\
         %z = zext i1 %c to i32\nstore i32 %z, ptr %launch";
    let pointed = "%p = load ptr, ptr @_RNvCs1234_3app5NAMES\n%i = ptrtoint ptr %p to i64\nstore i64 %i, ptr %captures";
    for code in ["store ptr @_RNvCs1234_3app5NAMES, ptr %captures", compared, pointed] {
        let reason = refusal(&kernel(globals, code));
        assert!(reason.starts_with("it uses the static `app::NAMES`, which exists once"), "{reason}");
    }
    let unnamed = "%i = load i64, ptr %captures\n%q = getelementptr i8, ptr @alloc_1, i64 %i\n\
         %v = load i8, ptr %q\nstore i8 %v, ptr %launch";
    assert_eq!(image(&kernel(globals, unnamed), Kernel::of_test(Form::Range(1), 16)).kernels.len(), 1);
}

#[test]
fn what_the_final_link_would_not_find_is_told() {
    let globals = "declare void @_RNvCs1234_3app6secret()";
    let reason = refusal(&kernel(globals, "call void @_RNvCs1234_3app6secret()"));
    assert!(reason.starts_with("it needs `app::secret`, which the program does not export"), "{reason}");
}

#[test]
fn code_for_another_processor_stays_the_only_one() {
    let of = |processor: &str| INPUT.replace("\"target-cpu\"=\"x86-64\"", &format!("\"target-cpu\"=\"{processor}\""));
    let reason = refusal(&of("znver4"));
    assert!(reason.contains("for the processor znver4 already"), "{reason}");
    let runs =
        |level, processor| image_for(level, &of(processor), Kernel::of_test(Form::Range(1), 16)).kernels.len() == 1;
    for processor in ["x86-64-v2", "x86-64-v3", "x86-64-v4"] {
        assert_eq!(runs(HostLevel::V3, processor), processor != "x86-64-v4", "{processor}");
        assert!(runs(HostLevel::V4, processor), "{processor}: the level has all of it");
    }
}

#[test]
fn code_of_the_fourth_level_has_its_own_name_and_processor() {
    let kernel = || Kernel::of_test(Form::Range(1), 16);
    let image = image_for(HostLevel::V4, INPUT, kernel());
    assert_eq!(image.target.to_string(), format!("host:{TRIPLE}+x86-64-v4"));
    let file = object::File::parse(&*image.code).expect("an object");
    let names: Vec<_> = file.symbols().filter_map(|symbol| symbol.name().ok()).collect();
    assert!(names.contains(&"__oxisycl_native_v4_k") && !names.contains(&"__oxisycl_native_v3_k"), "{names:?}");
    let processor = with_level(HostLevel::V4, INPUT, kernel(), |program, _| {
        program.add_kernel().expect("a kernel");
        let function = program.module().function("__oxisycl_native_v4_k").expect("the kernel");
        function.text_attribute(Attribute::FUNCTION, "target-cpu")
    });
    assert_eq!(processor.as_deref(), Some("x86-64-v4"));
}

#[test]
fn a_host_without_a_level_has_no_code_generator() {
    target(HostLevel::V3);
    for text in ["host:x86_64-unknown-linux-gnu", "host:aarch64-unknown-linux-gnu+x86-64-v3"] {
        let error = crate::codegen::of(&text.parse().expect("a target")).err().expect("there is none").to_string();
        assert!(error.contains(text) && error.contains("+x86-64-v3 or "), "{error}");
    }
}
