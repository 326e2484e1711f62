//! `cargo sycl` on a generated workspace, without a network and without a GPU.
//!
//! The builds are real and take most of the time, so each test does many things with the outputs of few builds.

mod captures;
mod constants;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod native;
mod opencl;
mod plug_ins;
mod project;
mod verbs;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use project::{Project, compiled, executables, fail, succeed};

/// The name that the kernel of a crate has in the image of what it is linked into.
const KERNEL: &str = "kernels::mapped";

/// What the program prints if each of its kernels was launched, and none did anything.
const UNCHANGED: &str = "[1.0, 2.0] ([2.0], [3.0]) configured=true panic=false\n";

#[test]
fn a_debug_build_and_what_follows_it() {
    let project = Project::new("debug");
    captures::checking_makes_no_device_code(&project);
    let (_, messages) = succeed(&mut project.sycl(&["build", "--workspace", "--all-targets"]));
    assert!(!messages.contains("warning"), "{messages}");

    // Everything that is linked has its own kernels, those of its libraries among them.
    let app = project.inspect("target/sycl/debug/app");
    assert!(app.starts_with("sm_70: 3 kernels"), "{app}");
    assert!(app.contains(KERNEL) && app.contains("lent::halved") && !app.contains("cannot run"), "{app}");
    assert!(project.inspect("target/sycl/debug/app").contains("app::main"));
    // Also a kernel that is made by a generic function of another crate has the place of its launch.
    assert!(app.contains("    launched at kernels/src/lib.rs:15:16\n"), "{app}");
    assert!(project.inspect("target/sycl/debug/examples/cube").contains("cube::main"));
    assert!(project.inspect("target/sycl/debug/libshared.so").contains("shared::shared_value"));
    let (ptx, _) = succeed(&mut project.sycl(&["inspect", "target/sycl/debug/app", "--emit", "ptx"]));
    assert!(ptx.contains(".target sm_70") && ptx.matches(".entry").count() == 3, "{ptx}");
    // The code of one kernel is a text that an assembler takes, and begins with its name.
    let (one, _) =
        succeed(&mut project.sycl(&["inspect", "target/sycl/debug/app", "--emit", "ptx", "--kernel", "lent::halved"]));
    assert!(one.starts_with("// kernel lent::halved::") && one.contains("), for sm_70\n"), "{one}");
    assert!(one.matches(".version").count() == 1 && ptx.contains(&one), "{one}");
    // So is what the code was generated from, which this build has left in the cache.
    let llvm = ["inspect", "target/sycl/debug/app", "--emit", "llvm", "--kernel", "lent::halved"];
    let (assembly, _) = succeed(&mut project.sycl(&llvm));
    assert!(assembly.starts_with("; kernel lent::halved::") && assembly.contains("), for sm_70\n"), "{assembly}");
    assert!(assembly.matches("define ptx_kernel void @").count() == 1 && assembly.contains("fmul"), "{assembly}");

    // They run on the host device, too.
    let (output, _) = succeed(&mut project.sycl(&["run", "--package", "app"]));
    assert_eq!(output, "[1.0, 4.0] ([11.0], [1.5]) configured=true panic=false\n");
    assert_eq!(project.run_beside_a_gpu("target/sycl/debug/app"), UNCHANGED);
    assert_eq!(project.run_beside_a_gpu("target/sycl/debug/examples/cube"), "[3.0]\n");
    // Another profile would be built once more.
    let (output, _) = succeed(&mut project.sycl(&["bench", "--package", "app", "--profile", "dev"]));
    assert!(output.ends_with("[3.0] Some(\"--bench\")\n"), "{output}");
    let (output, messages) = succeed(&mut project.sycl(&["test", "--workspace"]));
    assert_eq!(output.matches("1 passed").count(), 3, "{output}");
    assert!(messages.contains("documentation tests run on the host device only"), "{messages}");
    let (_, messages) = succeed(&mut project.sycl(&["test", "--workspace", "--tests", "--no-run"]));
    let tests = executables(&messages);
    let with_kernels = tests.iter().filter(|test| project.inspect(test).contains(KERNEL)).count();
    assert_eq!((with_kernels, compiled(&messages).len()), (tests.len() - 1, 0), "all but those of `math`: {messages}");

    libraries_are_opened_and_closed(&project);
    plug_ins::share_one_runtime(&project);

    // Plain cargo, an editor's check and this tool do not disturb each other.
    let (build, check) = (["build", "--package", "app"], ["check", "--package", "app"]);
    for round in 0..3 {
        for command in
            [project.sycl(&build), project.cargo(&build), project.cargo(&check), project.sycl(&check)].iter_mut()
        {
            let (_, messages) = succeed(command);
            assert!(round == 0 || compiled(&messages).is_empty(), "{command:?}: {messages}");
        }
    }
    assert!(project.inspect("target/debug/app").contains("no device code"));
    let app = project.run_beside_a_gpu("target/debug/app");
    assert!(app.starts_with("[1.0, 4.0]"), "without images the default device is the host's: {app}");

    // Other targets are linked again, and nothing else; the first ones come back from the cache.
    let (_, messages) = succeed(&mut project.sycl(&["build", "--package", "app", "--targets", "sm_80,sm_90"]));
    assert_eq!(compiled(&messages), ["app"]);
    let app = project.inspect("target/sycl/debug/app");
    assert!(app.contains("sm_80: 3 kernels") && app.contains("sm_90: 3 kernels") && !app.contains("sm_70"), "{app}");
    let (_, messages) = succeed(&mut project.sycl(&build));
    assert_eq!(compiled(&messages), ["app"]);
    assert!(project.inspect("target/sycl/debug/app").starts_with("sm_70: 3 kernels"));

    // What a build knows of its devices follows its targets, on the host and in device code.
    let asking = "use oxisycl::prelude::*;
        const KNOWN: u32 = 777_770 + 2 * oxisycl::all_devices_have!(Fp64) as u32 + oxisycl::any_device_has!(Gpu) as u32;
        fn main() {
            let found = Buffer::from_vec(vec![0]).unwrap();
            Queue::default().unwrap().parallel_for_with(1, found.write(), |item, found| found.set(item, KNOWN)).unwrap();
            println!(\"{KNOWN} {}\", found.to_vec().unwrap()[0]);
        }";
    project.write("app/src/bin/asking.rs", asking);
    for (targets, known) in
        [("sm_90", 777_773u32), ("spirv", 777_771), ("sm_90,spirv", 777_771), ("sm_80,sm_90", 777_773)]
    {
        let arguments = ["run", "--package", "app", "--bin", "asking", "--targets", targets];
        let (output, messages) = succeed(&mut project.sycl(&arguments));
        assert_eq!(compiled(&messages), ["app"], "only crates that ask, and what is linked: {messages}");
        assert_eq!(output, format!("{known} {known}\n"), "{targets}");
        let program = "target/sycl/debug/asking";
        if targets.contains("sm_") {
            let (ptx, _) = succeed(&mut project.sycl(&["inspect", program, "--emit", "ptx"]));
            assert!(ptx.contains(&known.to_string()), "{targets}: {ptx}");
        }
        if targets.contains("spirv") {
            let has_it = |bytes: &Vec<u8>| bytes.as_chunks::<4>().0.contains(&known.to_le_bytes());
            assert!(modules(&project, program).values().any(has_it), "{targets}");
        }
    }
    fs::remove_file(project.root.join("app/src/bin/asking.rs")).unwrap();

    // A change of a source changes the kernels.
    let main = fs::read_to_string(project.root.join("app/src/main.rs")).unwrap();
    project.write("app/src/main.rs", &main.replace("x * x", "x * x * x"));
    let (output, messages) = succeed(&mut project.sycl(&["run", "--package", "app"]));
    assert_eq!((compiled(&messages), output.contains("[1.0, 8.0]")), (vec!["app"], true));
    let math = fs::read_to_string(project.root.join("vendor/math/src/lib.rs")).unwrap();
    project.write("vendor/math/src/lib.rs", &math.replace("[1.0, 2.0, 3.0]", "[1.0, 2.0, 7.25]"));
    let (output, _) = succeed(&mut project.sycl(&["run", "--package", "app"]));
    assert!(output.contains("([15.25], "), "{output}");
    let (ptx, _) = succeed(&mut project.sycl(&["inspect", "target/sycl/debug/app", "--emit", "ptx"]));
    assert!(ptx.contains("0f40E80000"), "the constant of another crate: {ptx}");

    // The same bytes however many compilations run at a time, and without what was kept.
    let both = ["build", "--package", "app", "--targets", "sm_70,spirv"];
    succeed(&mut project.sycl(&both));
    let first = codes(&project);
    assert_eq!((first.0 == ptx, first.1.len()), (true, 3), "{:?}", first.1.keys());
    let (assembly, _) = succeed(&mut project.sycl(&llvm));
    fs::remove_dir_all(project.root.join("cache")).unwrap();
    let messages = fail(&mut project.sycl(&llvm));
    assert!(messages.contains("no LLVM assembly of kernel lent::halved::"), "{messages}");
    assert!(messages.contains("`cargo sycl clean` and another build"), "{messages}");
    fs::File::options()
        .append(true)
        .open(project.root.join("app/src/main.rs"))
        .unwrap()
        .set_modified(SystemTime::now())
        .unwrap();
    let (_, messages) = succeed(project.sycl(&both).args(["--jobs", "1"]));
    assert_eq!(compiled(&messages), ["app"]);
    assert!(codes(&project) == first, "expected the same bytes again");
    assert_eq!(succeed(&mut project.sycl(&llvm)).0, assembly);

    programs_of_any_name_have_their_kernels(&project);
    functions_of_f32_need_no_f64(&project);
    what_runs_on_the_host_only_is_warned_of(&project);
    errors_of_the_user_are_shown_once(&project);
    captures::errors_are_those_of_the_crate_that_makes_the_kernel(&project);
    captures::a_crate_of_a_registry_has_none(&project);
    borrowed_names_are_refused(&project);
    another_version_of_the_tool_compiles_device_code_again(&project);
    device_code_that_was_deleted_is_an_error(&project);
}

/// The program's PTX, and its modules of SPIR-V by the names of their files.
fn codes(project: &Project) -> (String, BTreeMap<OsString, Vec<u8>>) {
    let (ptx, _) = succeed(&mut project.sycl(&["inspect", "target/sycl/debug/app", "--emit", "ptx"]));
    (ptx, modules(project, "target/sycl/debug/app"))
}

/// The modules of SPIR-V of a program, by the names of their files.
fn modules(project: &Project, program: &str) -> BTreeMap<OsString, Vec<u8>> {
    let folder = project.root.join("target/codes");
    let _ = fs::remove_dir_all(&folder);
    succeed(project.sycl(&["inspect", program, "--emit", "spirv", "--out"]).arg(&folder));
    let files = fs::read_dir(&folder).unwrap().map(Result::unwrap);
    files.map(|file| (file.file_name(), fs::read(file.path()).unwrap())).collect()
}

/// Each library has a runtime of its own, and all of them the same functions under the same names.
fn libraries_are_opened_and_closed(project: &Project) {
    open_and_close(project, "debug", |command| {
        let (output, errors) = succeed(command);
        assert_eq!(output, "42 31 1 31 3 42 closed\n", "{command:?}");
        assert_eq!(errors.matches("oxisycl: kernel error: ").count(), 1, "a library leaves the status alone: {errors}");
        assert_eq!(project.beside_a_gpu(command), "1 4 3 4 1 1 closed\n", "{command:?}");
    });
}

/// Has `run` run a program that opens the two libraries, with each way to open one.
fn open_and_close(project: &Project, profile: &str, mut run: impl FnMut(&mut Command)) {
    const LAZY: &str = "1";
    const LAZY_AND_GLOBAL: &str = "257";
    let loader = project.root.join("loader");
    succeed(Command::new("rustc").args(["--edition", "2024", "-o"]).arg(&loader).arg(project.root.join("loader.rs")));
    let libraries =
        ["libshared.so", "libsecond.so"].map(|name| project.root.join("target/sycl").join(profile).join(name));
    for flags in [LAZY, LAZY_AND_GLOBAL] {
        run(Command::new(&loader).args(&libraries).arg(flags));
    }
}

fn what_runs_on_the_host_only_is_warned_of(project: &Project) {
    let main = fs::read_to_string(project.root.join("app/src/main.rs")).unwrap();
    let kernel =
        "println!(\"{:?}\", kernels::mapped(vec![1.0], |_| std::fs::read(\"Cargo.toml\").map_or(0.0, |_| 7.0)));";
    project.write("app/src/main.rs", &main.replace("fn main() {", &format!("fn main() {{\n{kernel}")));
    for n_compiled in [1, 0] {
        let (output, messages) = succeed(&mut project.sycl(&["run", "--package", "app"]));
        assert!(output.starts_with("[7.0]"), "{output}");
        // Cargo repeats the warning when nothing has changed.
        let found = (messages.matches("cannot run on sm_70").count(), compiled(&messages).len());
        assert_eq!(found, (1, n_compiled), "{messages}");
        assert!(messages.contains("`app` (bin \"app\") generated 1 warning"), "{messages}");
    }
    let kernels = project.inspect("target/sycl/debug/app");
    assert!(kernels.contains("sm_70: 3 kernels") && kernels.contains("cannot run"), "{kernels}");
    project.write("app/src/main.rs", &main);

    // The process ends as it does where LLVM cannot go on. The other kernels have their code, and the host device runs this one, too.
    let kernel = "println!(\"{:?}\", kernels::mapped(vec![9.0], halved));";
    let with_kernel =
        main.replace("fn main() {", &format!("fn halved(x: f32) -> f32 {{ x / 2.0 }}\nfn main() {{\n    {kernel}"));
    project.write("app/src/main.rs", &with_kernel);
    let (output, messages) = succeed(project.sycl(&["run", "--package", "app"]).env("CARGO_SYCL_FAULT", "app::halved"));
    assert!(output.starts_with("[4.5]"), "{output}");
    let warning = messages.lines().find(|line| line.contains("cannot run on sm_70")).unwrap_or_default();
    assert!(warning.contains("ended with signal 6: LLVM ERROR: "), "{messages}");
    assert!(warning.contains("(the kernel is at kernels/src/lib.rs:"), "{messages}");
    let kernels = project.inspect("target/sycl/debug/app");
    assert!(kernels.contains("sm_70: 3 kernels") && kernels.contains("LLVM ERROR"), "{kernels}");
    let (ptx, _) = succeed(&mut project.sycl(&["inspect", "target/sycl/debug/app", "--emit", "ptx"]));
    assert_eq!(ptx.matches(".entry").count(), 3, "{ptx}");
    project.write("app/src/main.rs", &main);

    let manifest = fs::read_to_string(project.root.join("shared/Cargo.toml")).unwrap();
    project.write("shared/Cargo.toml", &manifest.replace("cdylib", "staticlib"));
    let (_, messages) = succeed(&mut project.sycl(&["build", "--package", "shared"]));
    assert!(messages.contains("the static library of crate `shared` contains no device code"), "{messages}");
    project.write("shared/Cargo.toml", &manifest);
}

fn errors_of_the_user_are_shown_once(project: &Project) {
    let main = fs::read_to_string(project.root.join("app/src/main.rs")).unwrap();
    project.write("app/src/main.rs", "fn main() { let x: u32 = \"text\"; }");
    let messages = fail(&mut project.sycl(&["build", "--package", "app"]));
    assert_eq!(messages.matches("mismatched types").count(), 1, "{messages}");
    assert!(!messages.contains("device pass"), "{messages}");
    project.write("app/src/main.rs", &main);
}

/// A crate cannot pass for another one, nor a type for one of other fields.
fn borrowed_names_are_refused(project: &Project) {
    let read = |path: &str| fs::read_to_string(project.root.join(path)).unwrap();
    let (workspace, app, main) = (read("Cargo.toml"), read("app/Cargo.toml"), read("app/src/main.rs"));
    project.write("Cargo.toml", &workspace.replacen("members = [", "members = [\"lender\", ", 1));
    project.write(
        "app/Cargo.toml",
        &app.replacen("[dependencies]\n", "[dependencies]\nlender = { path = \"../lender\" }\n", 1),
    );
    let manifest = |library: &str| {
        format!("[package]\nname = \"lender\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\n{library}\n")
    };
    let function = "#![forbid(unsafe_code)]\npub mod accessor {\n    #[derive(Clone, Copy)]\n    pub struct Trusted(pub &'static [u32]);\n}\n";
    project.write("lender/src/lib.rs", function);
    for (name, message) in [
        (
            "std_detect",
            "a crate is named `std_detect`, as one of the standard library: what kernels use of it could not be told from that",
        ),
        ("oxisycl_device", "two crates"),
    ] {
        project.write("lender/Cargo.toml", &manifest(&format!("name = \"{name}\"")));
        project.write(
            "app/src/main.rs",
            &main.replacen(
                "fn main() {",
                &format!("fn main() {{\n    std::hint::black_box({name}::accessor::Trusted(&[]));"),
                1,
            ),
        );
        let messages = fail(&mut project.sycl(&["build", "--package", "app", "--bin", "app"]));
        assert!(messages.contains(message) && messages.contains(&format!("`{name}`")), "{messages}");
    }
    // An attribute below the derive replaces the type that the derive has seen.
    project.write("lender/Cargo.toml", &manifest("proc-macro = true"));
    project.write(
        "lender/src/lib.rs",
        "use proc_macro::TokenStream;\n#[proc_macro_attribute]\npub fn swap(new: TokenStream, _old: TokenStream) -> TokenStream { new }\n",
    );
    let element = "#[derive(Clone, Copy, oxisycl::DeviceCopyable)]\n#[lender::swap(struct Element(&'static u32);)]\nstruct Element(u64);\n";
    project.write("app/src/main.rs", &format!("{element}fn main() {{}}\n"));
    let messages = fail(&mut project.cargo(&["check", "--package", "app", "--bin", "app"]));
    assert!(messages.contains("`&u32` cannot be copied to a device"), "{messages}");
    for (path, text) in [("Cargo.toml", &workspace), ("app/Cargo.toml", &app), ("app/src/main.rs", &main)] {
        project.write(path, text);
    }
}

fn another_version_of_the_tool_compiles_device_code_again(project: &Project) {
    use std::io::Write;

    let tool = project.root.join("updated/cargo-sycl");
    fs::create_dir_all(tool.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_cargo-sycl"), &tool).unwrap();
    fs::File::options().append(true).open(&tool).unwrap().write_all(b"newer").unwrap();
    let build = |program: &Path| {
        let mut command = project.sycl(&["build", "--package", "app"]);
        let mut other = Command::new(program);
        other.args(command.get_args()).current_dir(&project.root);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => other.env(name, value),
                None => other.env_remove(name),
            };
        }
        command = other;
        let (_, messages) = succeed(&mut command);
        compiled(&messages).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let found = build(&tool);
    for name in ["oxisycl-device", "oxisycl", "kernels", "lent", "app"] {
        assert!(found.iter().any(|compiled| compiled == name), "{name} has device code: {found:?}");
    }
    for name in ["math", "oxisycl-types", "libc"] {
        assert!(found.iter().all(|compiled| compiled != name), "{name} has none: {found:?}");
    }
    assert!(build(&tool).is_empty());
}

fn device_code_that_was_deleted_is_an_error(project: &Project) {
    fs::remove_dir_all(project.root.join("target/sycl/debug/.oxisycl")).unwrap();
    let messages = fail(&mut project.sycl(&["build", "--package", "app"]));
    assert!(messages.contains("run `cargo sycl clean`"), "{messages}");
    let (output, _) = succeed(&mut project.sycl(&["clean"]));
    assert!(output.contains("target/sycl") && !project.root.join("target/sycl").exists(), "{output}");
    assert!(project.root.join("target/debug/app").exists());
}

#[test]
fn optimised_builds_of_every_kind_keep_their_kernels() {
    let project = Project::new("optimised");
    let (version, _) = succeed(Command::new("rustc").arg("-vV"));
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    // Size, whole-program optimisation, no symbols, no unwinding; then optimisation across units, for a named target.
    let (app, shared) = (("app", "app::main"), ("libshared.so", "shared::shared_value"));
    for (profile, target, packages, outputs) in [
        ("small", None, vec!["--package", "app", "--package", "shared"], vec![app, shared]),
        ("thin", Some(host), vec!["--package", "app"], vec![app]),
    ] {
        let mut build = project.sycl(&["build", "--profile", profile]);
        build.args(packages).args(target.map(|target| ["--target", target]).into_iter().flatten());
        // Flags in the environment replace those of the configuration, here as in plain cargo.
        let (_, messages) = succeed(build.env("RUSTFLAGS", "-C target-cpu=native"));
        assert!(!messages.contains("warning"), "{profile}: {messages}");
        let folder = Path::new("target/sycl").join(target.unwrap_or_default()).join(profile);
        for (output, kernel) in outputs {
            let kernels = project.inspect(folder.join(output));
            assert!(kernels.contains(kernel) && !kernels.contains("cannot run"), "{profile}/{output}: {kernels}");
        }
        let (output, _) = succeed(&mut Command::new(project.root.join(&folder).join("app")));
        let end = format!("configured=false panic={}\n", profile == "small");
        assert_eq!(output, format!("[1.0, 4.0] ([11.0], [1.5]) {end}"));
        assert_eq!(project.run_beside_a_gpu(folder.join("app")), format!("[1.0, 2.0] ([2.0], [3.0]) {end}"));
    }
}

#[test]
fn a_wrapper_of_the_users_compiles_the_host_code() {
    use std::os::unix::fs::PermissionsExt;

    let project = Project::new("wrapper");
    project.write("wrapper.sh", "#!/bin/sh\necho \"$*\" >> \"$(dirname \"$0\")/log\"\nexec \"$@\"\n");
    let wrapper = project.root.join("wrapper.sh");
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let configuration = fs::read_to_string(project.root.join(".cargo/config.toml")).unwrap();
    let build = format!("[build]\nrustc-wrapper = \"{}\"\n", wrapper.display());
    project.write(".cargo/config.toml", &configuration.replace("[build]\n", &build));
    let (_, messages) = succeed(&mut project.sycl(&["build", "--package", "app", "--bin", "app"]));
    assert!(!messages.contains("warning"), "{messages}");

    // It sees the host's compilation of each crate, those with kernels among them, once.
    let log = fs::read_to_string(project.root.join("log")).unwrap();
    for name in ["oxisycl_device", "oxisycl", "math", "lent", "kernels", "app"] {
        let is_of = |line: &&str| line.contains(&format!("--crate-name {name} "));
        let lines: Vec<&str> = log.lines().filter(is_of).collect();
        assert!(lines.len() == 1 && lines[0].contains("--emit=dep-info"), "{name}: {lines:#?}");
    }
    // The device's are not its business: outputs that it does not know would come back from a cache without them.
    assert!(!log.contains("llvm-bc"), "{log}");
    // And they are what they are without a wrapper.
    let app = project.inspect("target/sycl/debug/app");
    assert!(
        app.starts_with("sm_70: 3 kernels") && app.contains("math::polynomial") && !app.contains("cannot run"),
        "{app}"
    );
    assert_eq!(project.run_beside_a_gpu("target/sycl/debug/app"), UNCHANGED);
}

#[test]
fn an_unknown_compiler_has_to_pass_the_probe_and_one_without_llvm_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let project = Project::new("toolchain");
    let compiler = |name: &str, script: &str| {
        let path = project.root.join(name).join("rustc");
        project.write(
            &format!("{name}/rustc"),
            &format!("#!/bin/sh\ncase \"$*\" in {script} *) exec rustc \"$@\";; esac\n"),
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let with_release = |release: &str| format!("*-vV) rustc \"$@\" | sed 's/^release: .*/release: {release}/';;");
    let newer = compiler("newer", &with_release("1.999.0"));
    let (output, _) = succeed(project.sycl(&["doctor"]).env("RUSTC", &newer));
    assert!(output.contains("rustc 1.999.0"), "{output}");
    succeed(project.sycl(&["check", "--package", "math"]).env("RUSTC", &newer));
    assert_eq!(fs::read_dir(project.root.join("cache/oxisycl/toolchains")).unwrap().count(), 1);

    let broken = compiler("broken", &format!("{} *llvm-bc*) exit 1;;", with_release("1.999.1")));
    let messages = fail(project.sycl(&["build", "--package", "math"]).env("RUSTC", &broken));
    assert!(messages.contains("rustc 1.999.1 cannot be the device compiler"), "{messages}");
    assert!(messages.contains("These versions work: 1.95.0"), "{messages}");

    project.write("sysroot/lib/readme", "");
    let bare = compiler("bare", &format!("*sysroot) echo {};;", project.root.join("sysroot").display()));
    let messages = fail(project.sycl(&["build", "--package", "math"]).env("RUSTC", &bare));
    assert!(messages.contains("holds no libLLVM") && messages.contains("rustup toolchain install"), "{messages}");
}

fn functions_of_f32_need_no_f64(project: &Project) {
    let functions = [
        "acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt ceil cos cosh cospi erf erfc exp exp10 exp2 expm1 fabs floor lgamma \
         log log10 log1p log2 logb rint round rsqrt sin sinh sinpi sqrt tan tanh tanpi tgamma trunc",
        "atan2 atan2pi copysign fdim fmax fmin fmod hypot maxmag minmag nextafter pow powr remainder",
        "pown rootn ldexp",
        "acos acosh asin asinh atan atanh cbrt cos cosh exp exp2 exp_m1 ln ln_1p log10 log2 round round_ties_even sin sinh tan tanh",
    ];
    let forms = ["math::NAME(x)", "math::NAME(x, 0.75)", "math::NAME(x, n)", "x.NAME()"];
    let terms: Vec<_> = functions
        .iter()
        .zip(forms)
        .flat_map(|(names, form)| names.split_whitespace().map(move |name| form.replace("NAME", name)))
        .collect();
    let others = "math::sincos(x).0 + math::remquo(x, 0.75).0 + math::lgamma_r(x).0 + math::frexp(x).0 + math::native::sin(x) \
                  + x.powf(0.3) + x.powi(n) + x % 0.3 + x.rem_euclid(0.3) + x.mul_add(2.0, 0.1) + x.log(3.0)";
    let body = format!("{} + {others}", terms.join(" + "));
    project.write(
        "app/src/bin/functions.rs",
        &format!(
            "use oxisycl::math;\nfn main() {{\n    let sums = kernels::mapped(vec![0.5, 0.75], |x| {{\n        let n = x as i32;\n        \
             {body}\n    }});\n    assert!(!sums[0].is_infinite());\n}}\n"
        ),
    );
    let (_, messages) = succeed(&mut project.sycl(&["build", "--package", "app", "--bin", "functions"]));
    assert!(!messages.contains("warning"), "{messages}");
    let app = project.inspect("target/sycl/debug/functions");
    assert!(app.starts_with("sm_70: ") && !app.contains("needs") && !app.contains("cannot run"), "{app}");
    let (ptx, _) = succeed(&mut project.sycl(&["inspect", "target/sycl/debug/functions", "--emit", "ptx"]));
    assert!(ptx.contains("fma.rn.f32") && ptx.contains("sin.approx.f32"), "the functions are there: {ptx}");
    let doubles: Vec<_> = ptx.lines().filter(|line| line.contains(".f64")).collect();
    assert_eq!(doubles, Vec::<&str>::new());
    fs::remove_file(project.root.join("app/src/bin/functions.rs")).unwrap();
}

/// Programs whose names are those of folders and crates of this tool.
fn programs_of_any_name_have_their_kernels(project: &Project) {
    let program = "fn main() {\n    println!(\"{:?}\", kernels::mapped(vec![2.0], |x| x + 40.0));\n}\n";
    let names = ["oxisycl", "sycl", "build-script-build"];
    for name in names {
        project.write(&format!("app/src/bin/{name}.rs"), program);
    }
    succeed(&mut project.sycl(&["build", "--package", "app", "--bins"]));
    for name in names {
        let kernels = project.inspect(format!("target/sycl/debug/{name}"));
        assert!(kernels.contains(KERNEL), "{name}: {kernels}");
        let output = succeed(&mut Command::new(project.root.join("target/sycl/debug").join(name))).0;
        assert_eq!(output, "[42.0]\n", "{name}");
        fs::remove_file(project.root.join(format!("app/src/bin/{name}.rs"))).unwrap();
    }
}
