//! Finds the kernels of a small program that the toolchain's own rustc compiles.

use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::kernel::HostCapture;
use crate::link::library::read;
use crate::llvm::Context;
use crate::toolchain::Toolchain;

fn bitcode(mangling: &str) -> Vec<u8> {
    bitcode_of(mangling, include_str!("launches.rs"))
}

fn bitcode_of(mangling: &str, program: &str) -> Vec<u8> {
    static N_CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = N_CALLS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("oxisycl-kernels-{}-{call}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (source, output) = (folder.join("launches.rs"), folder.join("launches.bc"));
    std::fs::write(&source, program).expect("a source");
    let mut rustc = Command::new("rustc");
    rustc.args([
        "--edition=2024",
        "--crate-name=oxisycl_device",
        "--crate-type=lib",
        "--emit=llvm-bc",
        "-Cdebuginfo=2",
    ]);
    rustc.args(["-Copt-level=0", "-Cno-prepopulate-passes", "-Ccodegen-units=1", "-Awarnings"]);
    rustc.arg(format!("-Csymbol-mangling-version={mangling}")).arg("-o").arg(&output).arg(&source);
    // v0 is stable, the name of the legacy scheme is not.
    if mangling == "legacy" {
        rustc.env("RUSTC_BOOTSTRAP", "1").arg("-Zunstable-options");
    }
    assert!(rustc.status().expect("rustc runs").success());
    let bytes = read(&output).expect("bitcode");
    let _ = std::fs::remove_dir_all(&folder);
    bytes
}

fn kernels(mangling: &str) -> Vec<Kernel> {
    let toolchain = Toolchain::of_the_tests();
    crate::llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    let (context, bytes) = (Context::new(), Rc::new(bitcode(mangling)));
    let module = Module::from_bitcode(&context, &bytes, "test").expect("bitcode");
    let declared = Module::lazy(&context, &bytes, "test").expect("bitcode");
    // Fewer than there are, so that their code is in several pieces.
    let max_sharing = 7;
    let described = find_sharing(module, declared, max_sharing).expect("kernels").described;
    let mut codes: Vec<_> = described.iter().map(|described| Rc::clone(&described.code)).collect();
    codes.dedup();
    assert_eq!(codes.len(), described.len().div_ceil(max_sharing));
    for Described { kernel, code, .. } in &described {
        assert!(code.len() < bytes.len() / 2, "{} of {} bytes", code.len(), bytes.len());
        let code = Module::from_bitcode(&context, code, "code").expect("bitcode");
        assert!(code.function(&kernel.entry).is_some_and(|entry| !entry.is_declaration()), "{kernel:?}");
        // Neither what only the host runs nor what tells of kernels.
        assert!(code.functions().iter().all(|function| !path(function.name()).contains("launch")), "{code}");
    }
    described.into_iter().map(|described| described.kernel).collect()
}

/// The line of the program that is so many lines after the one in which this is.
fn line(start: &str, after: u32) -> u32 {
    let source = include_str!("launches.rs");
    let before = source.find(start).expect("it is in the source");
    source[..before].lines().count() as u32 + after
}

#[test]
fn kernels_are_described_as_the_program_describes_them() {
    for mangling in ["legacy", "v0"] {
        let kernels = kernels(mangling);
        assert_eq!(kernels.len(), 26, "{mangling}: {kernels:#?}");
        let named = |name: &str| {
            let mut found =
                kernels.iter().filter(|kernel| kernel.type_name.starts_with(&format!("oxisycl_device::{name}::")));
            let kernel = found.next().unwrap_or_else(|| panic!("{mangling}: no kernel {name}: {kernels:#?}"));
            assert!(found.next().is_none());
            kernel
        };
        assert_eq!(named("scalar").parameters, ParameterLayout { size: 8, align: 8 });
        assert_eq!(named("pair").parameters, ParameterLayout { size: 16, align: 4 });
        assert_eq!(named("nothing").parameters, ParameterLayout { size: 0, align: 1 });
        assert_eq!(named("nothing").form, Form::Range(3));
        assert_eq!(named("item").form, Form::Range(2));
        let mut ids: Vec<_> = kernels.iter().map(|kernel| kernel.type_id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), kernels.len(), "each kernel has an id of its own");
        // What a device may be given.
        for name in ["scalar", "pair", "shape", "accessor", "option", "item", "nothing"] {
            assert_eq!(named(name).refused_captures, [], "{mangling}: {name}");
        }
        // Addresses of the host, however they are wrapped.
        for (name, capture, type_name) in [
            ("text", "text", "&str"),
            ("reference", "reference", "&u32"),
            ("maybe_reference", "maybe_reference.Some.0", "&u8"),
            ("function", "function", "fn(usize) -> usize"),
            ("object", "object", "&(dyn core::ops::function::Fn<(), Output=()> + core::marker::Sync)"),
            ("wrapped", "wrapped.address", "*const u32"),
            ("nested", "inner.text", "&str"),
        ] {
            let refused = named(name).refused_captures.first();
            let refused = refused.unwrap_or_else(|| panic!("{mangling}: {name} is allowed"));
            assert_eq!(
                refused.reason,
                format!("its capture `{capture}` is an address of the host's memory, `{type_name}`")
            );
        }
        // The closure that captures it is named, and not the one that is launched.
        let refused = named("nested").refused_capture().expect("it captures an address");
        // Lines of the program begin with spaces there.
        let (closure, launch) = (line("let inner = ", 0), line("let inner = ", 1));
        let is_closure =
            refused.contains("(captured by the closure at /") && refused.contains(&format!("launches.rs:{closure}, "));
        assert!(is_closure && refused.ends_with(&format!("launches.rs:{launch}:5)")), "{refused}");
    }
}

#[test]
fn each_captured_address_is_found_with_the_declaration_of_its_variable() {
    for mangling in ["legacy", "v0"] {
        let kernels = kernels(mangling);
        let source = include_str!("launches.rs");
        let found = |name: &str| {
            let start = format!("oxisycl_device::{name}::");
            let kernel = kernels.iter().find(|kernel| kernel.type_name.starts_with(&start));
            let captures = kernel.unwrap_or_else(|| panic!("{mangling}: no kernel {name}")).captures().of_host();
            let text = |capture: &HostCapture| {
                let place = capture.variable.as_ref().or(capture.code.as_ref()).expect("a place");
                let line = source.lines().nth(place.line as usize - 1).expect("a line");
                let text = &line[place.column as usize - 1..];
                let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
                let text = if capture.variable.is_some() { &text[..end.unwrap_or(text.len())] } else { text };
                format!("{} at {}", capture.path.join("."), text.trim())
            };
            captures.iter().map(text).collect::<Vec<_>>().join(", ")
        };
        for (name, expected) in [
            ("text", "text at text"),
            ("maybe_reference", "maybe_reference.Some.0 at maybe_reference"),
            ("wrapped", "wrapped.address at wrapped"),
            // The innermost closure captured it.
            ("nested", "text at text"),
            ("two_of_one_type", "first at first, second at second"),
            ("part", "pair__1 at pair"),
            ("part_of_a_field", "wrapped__0__address at wrapped"),
            ("whole", "pair.1 at pair"),
            ("by_reference", "numbers at numbers"),
            ("only_held", "inner.text at inner"),
            ("beyond_ascii", "größe at größe"),
            ("scalar", ""),
            ("accessor", ""),
            ("item", ""),
        ] {
            assert_eq!(found(name), expected, "{mangling}: {name}");
        }
    }
}

/// A kernel with two arguments behind a captured number: an array of pairs, and nothing.
const WITH_ARGUMENTS: &str = r#"
    mod with {
        use super::kernel::{ArgumentPart, ArgumentType, DescribeKernel};
        const fn leaf(type_name: fn() -> &'static str, size: usize) -> ArgumentType {
            ArgumentType { type_name, size, length: usize::MAX, parts: &[] }
        }
        trait Form: Copy + 'static {
            const TYPE: &'static ArgumentType;
        }
        impl Form for u8 {
            const TYPE: &'static ArgumentType = &leaf(std::any::type_name::<u8>, 1);
        }
        impl Form for f64 {
            const TYPE: &'static ArgumentType = &leaf(std::any::type_name::<f64>, 8);
        }
        impl Form for () {
            const TYPE: &'static ArgumentType = &leaf(std::any::type_name::<()>, 0);
        }
        impl<A: Form, B: Form> Form for (A, B) {
            const TYPE: &'static ArgumentType = &ArgumentType {
                type_name: std::any::type_name::<Self>,
                size: size_of::<Self>(),
                length: usize::MAX,
                parts: &[
                    ArgumentPart { name: "0", offset: std::mem::offset_of!(Self, 0), part: A::TYPE },
                    ArgumentPart { name: "1", offset: std::mem::offset_of!(Self, 1), part: B::TYPE },
                ],
            };
        }
        impl<T: Form, const N: usize> Form for [T; N] {
            const TYPE: &'static ArgumentType = &ArgumentType {
                type_name: std::any::type_name::<Self>,
                size: size_of::<Self>(),
                length: N,
                parts: &[ArgumentPart { name: "", offset: 0, part: T::TYPE }],
            };
        }
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Bound<K, S>(K, S);
        impl<K, S: Form> Bound<K, S> {
            const TYPE: &'static ArgumentType = &ArgumentType {
                type_name: std::any::type_name::<K>,
                size: size_of::<Self>(),
                length: usize::MAX,
                parts: &[
                    ArgumentPart { name: "captures", offset: 0, part: &leaf(std::any::type_name::<K>, size_of::<K>()) },
                    ArgumentPart { name: "", offset: std::mem::offset_of!(Self, 1), part: S::TYPE },
                ],
            };
        }
        struct With<K, S>(std::marker::PhantomData<(K, S)>);
        impl<K: Fn(usize, S) + Copy, S: Form> DescribeKernel for With<K, S> {
            fn type_id(&self) -> std::any::TypeId where Self: 'static { std::any::TypeId::of::<Bound<K, S>>() }
            fn entry(&self) -> super::kernel::Entry { entry::<K, S> }
            fn layout(&self) -> (usize, usize) { (size_of::<Bound<K, S>>(), align_of::<Bound<K, S>>()) }
            fn type_name(&self) -> &'static str { std::any::type_name::<K>() }
            fn form(&self) -> u32 { 1 }
            fn group(&self) -> u64 { (4 << 21 | 2) << 21 | 8 }
            fn arguments(&self) -> Option<&'static ArgumentType> { Some(Bound::<K, S>::TYPE) }
            fn aspects(&self) -> u64 { 1 << 7 }
            fn sub_group(&self) -> u32 { 16 }
        }
        unsafe fn entry<K: Fn(usize, S) + Copy, S: Form>(block: *const u8, _: *const u8, _: *const u8) {
            let Bound(kernel, arguments) = unsafe { *block.cast::<Bound<K, S>>() };
            kernel(0, arguments);
        }
        fn launch<K: Fn(usize, S) + Copy, S: Form>(_: K, _: S) {
            super::describe(&With::<K, S>(std::marker::PhantomData), super::Location::caller());
        }
        pub fn arguments(captured: u32) {
            launch(move |i, arguments| drop(std::hint::black_box((captured, i, arguments))), ([(1u8, 2.0f64); 2], ((), 3u8)));
        }
    }
    pub use with::arguments;
"#;

#[test]
fn arguments_are_listed_as_the_program_lists_them() {
    let toolchain = Toolchain::of_the_tests();
    crate::llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    // It is in the module of the trait, whose implementations alone count.
    let program =
        include_str!("launches.rs").replace("pub mod accessor", &format!("{WITH_ARGUMENTS} pub mod accessor"));
    for mangling in ["legacy", "v0"] {
        let (context, bytes) = (Context::new(), Rc::new(bitcode_of(mangling, &program)));
        let module = Module::from_bitcode(&context, &bytes, "test").expect("bitcode");
        let declared = Module::lazy(&context, &bytes, "test").expect("bitcode");
        let described = find(module, declared).expect("kernels").described;
        let mut with_arguments = described.iter().filter(|described| !described.kernel.arguments.is_empty());
        let Described { kernel, .. } = with_arguments.next().expect("a kernel with arguments");
        assert!(with_arguments.next().is_none());
        assert_eq!((kernel.refused_captures.len(), kernel.parameters.size), (0, 48));
        let stated = (kernel.group, kernel.aspects, kernel.sub_group);
        assert_eq!(stated, ([4, 2, 8], Aspects::of(&[oxisycl_types::Aspect::Fp64]), 16), "{mangling}");
        let list: Vec<String> = kernel.arguments.iter().map(ToString::to_string).collect();
        let captures = "captures: oxisycl_device::with::arguments::{{closure}}, 4 bytes at 0";
        let pair = |index: usize, at: usize| {
            let byte = format!("0[{index}].0: u8, 1 bytes at {}", at + std::mem::offset_of!((u8, f64), 0));
            [byte, format!("0[{index}].1: f64, 8 bytes at {}", at + std::mem::offset_of!((u8, f64), 1))]
        };
        let ([a, b], [c, d]) = (pair(0, 8), pair(1, 24));
        assert_eq!(list, [captures, &a, &b, &c, &d, "1.1: u8, 1 bytes at 40"], "{mangling}");
    }
}

#[test]
fn without_debug_information_no_kernel_leaves_the_host() {
    let toolchain = Toolchain::of_the_tests();
    crate::llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    let (context, bytes) = (Context::new(), Rc::new(bitcode("v0")));
    let module = Module::from_bitcode(&context, &bytes, "test").expect("bitcode");
    module.strip_debug_info();
    let declared = Module::lazy(&context, &bytes, "test").expect("bitcode");
    let described = find(module, declared).expect("kernels").described;
    assert!(described.iter().all(|described| !described.kernel.refused_captures.is_empty()));
}

/// Another description of a kernel of the program, with the code of another one.
const CONTRADICTION: &str = "
    impl<K: Fn(usize) + Copy, E: Fn(usize) + Copy> DescribeKernel for std::marker::PhantomData<(K, E)> {
        fn type_id(&self) -> std::any::TypeId where Self: 'static { std::any::TypeId::of::<K>() }
        fn entry(&self) -> kernel::Entry { kernel::range_entry::<E, 1> }
        fn layout(&self) -> (usize, usize) { (size_of::<K>(), align_of::<K>()) }
        fn type_name(&self) -> &'static str { std::any::type_name::<K>() }
        fn form(&self) -> u32 { 1 }
        fn group(&self) -> u64 { 0 }
        fn arguments(&self) -> Option<&'static kernel::ArgumentType> { None }
        fn aspects(&self) -> u64 { 0 }
        fn sub_group(&self) -> u32 { 0 }
    }
    fn lie<K: Fn(usize) + Copy, E: Fn(usize) + Copy>(_: &K, _: &E) {
        describe(&std::marker::PhantomData::<(K, E)>, Location::caller());
    }
    pub fn contradiction(numbers: [usize; 2], accessor: accessor::Accessor<u32>) {
        let real = move |i| drop(std::hint::black_box(numbers[i]));
        lie(&real, &move |i| unsafe { *accessor.0.add(i) = 0 });
        launch::<1, _>(real);
    }";

#[test]
fn two_descriptions_of_one_kernel_with_different_entries_are_an_error() {
    let toolchain = Toolchain::of_the_tests();
    crate::llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    let program = format!("{}{CONTRADICTION}", include_str!("launches.rs"));
    let (context, bytes) = (Context::new(), Rc::new(bitcode_of("v0", &program)));
    let module = Module::from_bitcode(&context, &bytes, "test").expect("bitcode");
    let declared = Module::lazy(&context, &bytes, "test").expect("bitcode");
    let error = find(module, declared).expect_err("which of the two is true?").to_string();
    let (kernel, entries) = error.split_once(": it is described twice, with the entries `").expect(&error);
    assert!(kernel.contains("oxisycl_device::contradiction::{{closure}}"), "{error}");
    assert!(entries.matches("range_entry").count() == 2, "{error}");
}

#[test]
fn the_place_of_a_launch_is_known_if_it_is_one() {
    for mangling in ["legacy", "v0"] {
        let kernels = kernels(mangling);
        let place = |name: &str| {
            let kernel =
                kernels.iter().find(|kernel| kernel.type_name.starts_with(&format!("oxisycl_device::{name}::")));
            let place = kernel.expect("a kernel of that name").launch.as_ref()?;
            assert!(place.location.file.ends_with("launches.rs"));
            Some((place.location.line, place.location.column))
        };
        assert_eq!(place("nothing"), Some((line("pub fn nothing", 2), 5)), "{mangling}");
        assert_eq!(place("once"), Some((line("pub fn once", 2), 5)), "{mangling}");
        assert_eq!(place("in_a_loop"), Some((line("pub fn in_a_loop", 3), 9)), "{mangling}");
        assert_eq!(place("twice"), None, "{mangling}");
        assert_eq!(place("with_a_place_of_the_users"), None, "{mangling}");
        // The pointer's own code passes the place of the function, and so does the host's.
        assert_ne!(place("through_a_pointer"), Some((line("pub fn through_a_pointer", 6), 5)), "{mangling}");
        let functions = &kernels.iter().find(|kernel| kernel.type_name.contains("::once::")).expect("once").launch;
        let functions: Vec<_> = functions.as_ref().expect("a place").functions.iter().map(|name| path(name)).collect();
        assert!(functions.iter().any(|name| name.contains("passed_on")), "{functions:?}");
    }
}
