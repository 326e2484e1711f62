//! Golden tests: the output of each pass for a small module, and of each target for a kernel; see `golden/README.md`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use oxisycl_image::{Form, ImageTarget};
use rspirv::binary::Disassemble;

use crate::analyses::legality;
use crate::codegen::{self, Target};
use crate::compile::{generate, lower};
use crate::instruments::Instruments;
use crate::kernel::Kernel;
use crate::link::library::Library;
use crate::llvm::{self, Codegen, Context, Module};
use crate::options::{FloatPolicy, Options};
use crate::passes::{builtins, float_policy};
use crate::pipeline::{PASSES, Pass, Phase, run_pass};
use crate::program::Program;
use crate::toolchain::Toolchain;
use crate::unit::Unit;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn input(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares a text with the golden file `name`, or writes the file.
pub(crate) fn check(name: &str, text: &str) {
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

/// A module's text without its origin and the version of LLVM.
pub(crate) fn stable(text: &str) -> String {
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

fn pass(name: &str) -> &'static Pass {
    PASSES.iter().find(|pass| pass.name == name).unwrap_or_else(|| panic!("there is no pass `{name}`"))
}

fn parsed<'c>(context: &'c Context, target: &dyn Target, name: &str) -> Module<'c> {
    let module = Module::from_text(context, &input(name), name).expect("a test is well-formed");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    module
}

/// Runs every pass of the first phase in the order of the list, each on the output of the previous one. A pass that changes nothing has no
/// file.
#[test]
fn golden_stages() {
    toolchain();
    let (context, instruments) = (Context::new(), Instruments::default());
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    let module = parsed(&context, &*target, "stages.ll");
    let mut unit = Unit { entries: vec!["entry".to_owned()], ..Unit::new(module, &*target, &instruments) };
    let mut last = stable(&unit.module.to_string());
    let mut run = |pass: &Pass, unit: &mut Unit<'_, '_>| {
        run_pass(pass, unit).expect(pass.name);
        let text = stable(&unit.module.to_string());
        let file = format!("stages.{}.txt", pass.name);
        if text == last {
            assert!(!folder().join(&file).exists(), "{file}: the pass changes nothing, expected no such file");
            return;
        }
        check(&file, &text);
        last = text;
    };
    let adapting = PASSES.iter().filter(|pass| pass.phase == Phase::Adapt && pass.is_for(&*target));
    adapting.for_each(|pass| run(pass, &mut unit));
    unit.calls.add(&unit.module);
    let entry = unit.module.function("entry").expect("the entry");
    let findings = legality::examine(entry, "entry", &unit.calls, &|_| false);
    check("stages.legality.txt", &format!("{findings:#?}\n"));
    ["nvptx-atomics", "negations", "panics"].into_iter().for_each(|name| run(pass(name), &mut unit));
    check("stages.sites.txt", &format!("{:#?}\n", unit.sites.list));
    let amd = codegen::of(&ImageTarget::AmdGcn { arch: "gfx90a".to_owned() }).expect("a target");
    let mut unit = Unit::new(unit.module, &*amd, &instruments);
    run(pass("private-memory"), &mut unit);
    unit.module.verify("the test").expect("a valid module");
}

/// Each input `pass.NAME.ll`, by the passes that its first line names.
#[test]
fn golden_passes() {
    toolchain();
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the folder of this file")
        .filter_map(|entry| {
            let name = entry.expect("an entry").file_name().into_string().ok()?;
            Some(name.strip_prefix("pass.")?.strip_suffix(".ll")?.to_owned())
        })
        .collect();
    names.sort();
    assert!(!names.is_empty());
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    for name in names {
        let (context, instruments) = (Context::new(), Instruments::default());
        let file = format!("pass.{name}.ll");
        let module = parsed(&context, &*target, &file);
        let function = module.function("k");
        let float = if name == "fast-math" { FloatPolicy::Fast } else { FloatPolicy::Contract };
        let mut unit = Unit { function, float, is_paired: true, round: 1, ..Unit::new(module, &*target, &instruments) };
        let text = input(&file);
        let passes = text.lines().next().and_then(|line| line.strip_prefix("; passes: "));
        for name in passes.unwrap_or_else(|| panic!("{file}: expected `; passes: ..` in the first line")).split(' ') {
            run_pass(pass(name), &mut unit).expect(name);
        }
        check(&format!("pass.{name}.txt"), &stable(&unit.module.to_string()));
    }
}

/// Parts of passes: a policy for several kernels, and what a target makes of the end of a work-item.
#[test]
fn golden_pieces() {
    toolchain();
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    let context = Context::new();
    let policies = parsed(&context, &*target, "piece.float-policy.ll");
    builtins::replace(&policies, target.builtins()).expect("markers have no bodies");
    let kernels = ["strict", "fast", "plain"].map(|name| policies.function(name).expect("a kernel"));
    let of_kernels = float_policy::policies(&policies, &kernels, FloatPolicy::Contract);
    float_policy::apply_policies(&kernels, &of_kernels);
    let amd = codegen::of(&ImageTarget::AmdGcn { arch: "gfx90a".to_owned() }).expect("a target");
    let instruments = Instruments::default();
    let mut early = Unit::new(parsed(&context, &*target, "piece.early-return.ll"), &*amd, &instruments);
    run_pass(pass("early-return"), &mut early).expect("it runs");
    for (name, module) in [("float-policy", &policies), ("early-return", &early.module)] {
        module.verify(name).expect("a valid module");
        check(&format!("piece.{name}.txt"), &stable(&module.to_string()));
    }
}

#[test]
fn golden_targets() {
    let toolchain = toolchain();
    for name in ["sm_70", "sm_90", "gfx90a", "gfx942", "gfx1100", "spirv1.2"] {
        let image_target: ImageTarget = name.parse().expect("a target");
        let target = codegen::of(&image_target).expect("a target");
        let options = Options::default();
        let (context, instruments) = (Context::new(), Instruments::default());
        let program = || {
            let module = Module::from_text(&context, &input("kernel.ll"), "kernel").expect("a test is well-formed");
            module.set_target(target.machine().triple(), &target.machine().data_layout());
            let kernel = Kernel::of_test(Form::Range(1), 16);
            let mut program = Program::of_module(module, kernel, &*target, &image_target, &options, &instruments);
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
