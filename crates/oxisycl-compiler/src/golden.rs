//! Golden tests: what each stage makes of a small module, and what each target makes of a kernel; see `golden/README.md`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use oxisycl_image::{Form, ImageTarget};
use rspirv::binary::Disassemble;

use crate::analyses::legality;
use crate::codegen;
use crate::compile::{generate, lower};
use crate::kernel::Kernel;
use crate::link::library::Library;
use crate::llvm::{self, Codegen, Context, Module};
use crate::options::{FloatPolicy, Options};
use crate::passes::{
    atomics, bounds_check_merging, branch_correlation, builtins, cold_blocks, cpu_features, early_return, fast_math,
    float_atomics, float_policy, int128, libcalls, native, panics, private_memory, recursion, strip_host_abi,
    thread_coarsening, x86,
};
use crate::program::Program;
use crate::toolchain::Toolchain;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn input(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Holds a text against the file of that name, or writes the file.
fn check(name: &str, text: &str) {
    let path = folder().join(name);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let expected = input(name);
    let differs = expected.lines().zip(text.lines()).position(|(expected, found)| expected != found);
    let line = differs.unwrap_or_else(|| expected.lines().count().min(text.lines().count()));
    assert!(
        expected == text,
        "{name}: line {} is not as expected\nexpected: {:?}\nfound:    {:?}\nif it is right: \
         BLESS=1 cargo test -p oxisycl-compiler golden",
        line + 1,
        expected.lines().nth(line),
        text.lines().nth(line)
    );
}

fn toolchain() -> Toolchain {
    let toolchain = Toolchain::of_the_tests();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    toolchain
}

/// A module's text without what says where it comes from and which version of LLVM wrote it.
fn stable(text: &str) -> String {
    let is_noise = |line: &str| {
        ["; ModuleID", "source_filename", "target datalayout", "target triple", ";", "//", "\t;", "\t//"]
            .iter()
            .any(|start| line.starts_with(start))
            || [".ident", ".amdgpu_metadata", "amdhsa.version", "---", "...", ".end_amdgpu"]
                .iter()
                .any(|start| line.trim_start().starts_with(start))
    };
    let mut stable = String::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !is_noise(line)) {
        // Comments at the end of a line tell predecessors and costs.
        let line =
            [" ; ", "\t; ", " // ", "\t// "].iter().fold(line, |line, mark| line.split(mark).next().unwrap_or(line));
        let _ = writeln!(stable, "{}", line.trim_end());
    }
    stable
}

type Pass<'p> = dyn Fn(&Module<'_>) + 'p;
type Step<'s> = dyn FnMut(&Module<'_>) + 's;

#[test]
fn golden_stages() {
    toolchain();
    let context = Context::new();
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    let machine = target.machine();
    let module = Module::from_text(&context, &input("stages.ll"), "stages").expect("a test is well-formed");
    module.set_target(machine.triple(), &machine.data_layout());
    // Each stage goes on with what the one before it has left.
    let tuning = llvm::PassTuning::DEVICE;
    let mut sites = panics::Sites::default();
    let steps: [(&str, &mut Step<'_>); 7] = [
        ("builtins", &mut |module| builtins::replace(module, target.builtins()).expect("bodies")),
        ("libcalls", &mut |module| libcalls::replace_all(module)),
        ("panics-hook", &mut |module| panics::hook(module)),
        ("strip-host-abi", &mut |module| {
            strip_host_abi::sanitize(module, &|name| name == "entry", &|_| false);
            strip_host_abi::drop_library_checks(module);
            module.run(strip_host_abi::LOWER_INVOKES, Some(machine), &tuning).expect("passes");
            strip_host_abi::remove_personalities(module);
        }),
        ("legality", &mut |module| {
            let mut calls = legality::Calls::default();
            calls.add(module);
            let entry = module.function("entry").expect("the entry");
            let findings = legality::examine(entry, "entry", &calls, &|_| false);
            check("stages.legality.txt", &format!("{findings:#?}\n"));
        }),
        ("atomics-nvptx", &mut |module| atomics::legalize_for_nvptx(module)),
        ("private-memory", &mut |module| private_memory::move_variables(module)),
    ];
    for (name, step) in steps {
        step(&module);
        if name != "legality" {
            check(&format!("stages.{name}.txt"), &stable(&module.to_string()));
        }
    }
    panics::lower(&module, &mut sites, &|builder| builtins::launch(&module, builder), &|builder| {
        target.end_work_item(&module, builder)
    });
    module.verify("the test").expect("a valid module");
    check("stages.panics-lower.txt", &format!("{}{:#?}\n", stable(&module.to_string()), sites.list));
}

#[test]
fn golden_passes() {
    toolchain();
    let strict_first = |module: &Module<'_>| {
        builtins::replace(module, "").expect("markers have no bodies");
        let kernels = ["strict", "fast", "plain"].map(|name| module.function(name).expect("a kernel"));
        let policies = float_policy::policies(module, &kernels, FloatPolicy::Contract);
        float_policy::apply_policies(&kernels, &policies);
    };
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    let cases: [(&str, &Pass<'_>); 13] = [
        ("x86", &|module| x86::lower(module).expect("bodies")),
        ("cpu-features", &|module| cpu_features::deny(module)),
        ("native", &|module| native::replace(module).expect("bodies")),
        ("int128", &|module| int128::call_conversions(module)),
        ("branch-correlation", &|module| assert!(branch_correlation::follow_branches(module))),
        ("bounds-check-merging", &|module| {
            bounds_check_merging::merge(module, &[module.function("k").expect("the kernel")])
        }),
        ("cold-blocks", &|module| cold_blocks::move_endings_back(module)),
        ("recursion", &|module| recursion::add_checks(module)),
        ("early-return", &|module| early_return::lower(module)),
        ("float-policy", &strict_first),
        ("fast-math", &|module| fast_math::call_imprecise_functions(module, target.builtins()).expect("bodies")),
        ("thread-coarsening", &|module| {
            thread_coarsening::decide(module, true);
            thread_coarsening::separate(module);
        }),
        ("float-atomics", &|module| float_atomics::define(module, FloatPolicy::Contract).expect("bodies")),
    ];
    let context = Context::new();
    for (name, pass) in cases {
        let text = input(&format!("pass.{name}.ll"));
        let module = Module::from_text(&context, &text, name).expect("a test is well-formed");
        module.set_target(target.machine().triple(), &target.machine().data_layout());
        pass(&module);
        module.verify(name).expect("a valid module");
        check(&format!("pass.{name}.txt"), &stable(&module.to_string()));
    }
}

#[test]
fn golden_targets() {
    let toolchain = toolchain();
    for name in ["sm_70", "sm_90", "gfx90a", "gfx942", "gfx1100", "spirv1.2"] {
        let image_target: ImageTarget = name.parse().expect("a target");
        let target = codegen::of(&image_target).expect("a target");
        let options = Options::default();
        let context = Context::new();
        let program = || {
            let module = Module::from_text(&context, &input("kernel.ll"), "kernel").expect("a test is well-formed");
            module.set_target(target.machine().triple(), &target.machine().data_layout());
            let kernel = Kernel::of_test(Form::Range(1), 16);
            let mut program = Program::of_module(module, kernel, &*target, &image_target, &options);
            program.link(&mut Library::default(), crate::link::resolve::Scope::WithoutFormatting).expect("it links");
            program.add_kernel().expect("a kernel");
            program
        };
        // The image itself, twice.
        let image = || generate(&mut program(), &mut Library::default(), &toolchain).expect("images").images.remove(0);
        let first = image();
        assert_eq!((first.kernels.len(), first.sites.len(), first.kernels[0].may_panic), (1, 1, true), "{name}");
        assert!(first == image(), "{name}: expected the same bytes again");
        let text = match image_target {
            ImageTarget::SpirV { .. } => {
                codegen::validate_spirv(&first.code);
                rspirv::dr::load_bytes(&first.code).expect("a module").disassemble() + "\n"
            }
            _ => {
                let mut lowered = program();
                let decision = lower(&mut lowered, &mut Library::default()).expect("code");
                assert!(!decision.is_refusal(), "{name}");
                let assembly = target.machine().emit(lowered.module(), Codegen::Assembly).expect("assembly");
                stable(&String::from_utf8(assembly).expect("text"))
            }
        };
        check(&format!("kernel.{name}.txt"), &text);
    }
}
