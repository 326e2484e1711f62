//! The package that the tests build, and the code that it becomes.
//!
//! Its programs are the files of `kernels`. It stays where it is from run to run, so that only what has changed is built again.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use crate::ptxas;

const MANIFEST: &str = r#"
[workspace]
members = ["borrower", "caller", "elsewhere", "functions", "generic", "libm", "tables"]

[package]
name = "code"
version = "0.1.0"
edition = "2024"

[dependencies]
oxisycl = { path = "OXISYCL/crates/oxisycl", default-features = false }
oxisycl-device = { path = "OXISYCL/crates/oxisycl-device" }
generic = { path = "generic" }
tables = { path = "tables" }

[profile.stripped]
inherits = "dev"
debug = false
opt-level = 1
panic = "abort"
strip = true

[profile.whole]
inherits = "release"
lto = "fat"

# For the time that the test takes.
[profile.whole.package."*"]
opt-level = 1

[profile.stripped.package."*"]
opt-level = 0
"#;

const LIBRARY: &str = r#"
[package]
name = "generic"
version = "0.1.0"
edition = "2024"

[dependencies]
oxisycl-device = { path = "OXISYCL/crates/oxisycl-device" }
"#;

/// What all manifests but the first two begin with. Crates that do not know OxiSYCL have but their name behind it.
const OUTSIDE: &str = "[package]\nversion = \"0.1.0\"\nedition = \"2024\"\n";

/// Where the crate `apart` is, from the package: no member of the workspace, beside which it is.
const APART_FOLDER: &str = "../apart";

/// The package. Other tests wait until it is dropped: they share the sources and the target folder.
pub(crate) struct Package {
    root: PathBuf,
    /// A lock of a file, because each test may be a process of its own.
    _in_use: File,
}

/// A build of one program of the package.
pub(crate) struct Built {
    /// The text that `cargo sycl inspect --emit` gives.
    pub(crate) code: String,
    /// What `cargo sycl inspect` says of its kernels.
    pub(crate) kernels: String,
    /// What the build said.
    pub(crate) messages: String,
    pub(crate) binary: PathBuf,
    /// Held until the test has done with the binary.
    package: Package,
}

/// Where the sources of the kernels are.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/code/kernels")
}

/// Builds a program for NVIDIA GPUs with these further arguments of `cargo sycl build`, and gives its PTX, which the assembler takes.
pub(crate) fn build(program: &str, arguments: &[&str]) -> Built {
    let package = Package::enter();
    package.touch(program);
    let (_, messages) = package.sycl(&[&["build", "--targets", "sm_70", "--bin", program], arguments].concat());
    let profile = if arguments.contains(&"--release") { "release" } else { "debug" };
    let binary = package.root.join("target/sycl").join(profile).join(program);
    let path = binary.to_str().unwrap();
    let (code, _) = package.sycl(&["inspect", "--emit", "ptx", path]);
    let (kernels, _) = package.sycl(&["inspect", path]);
    match ptxas::find() {
        Some(_) => assert_eq!(ptxas::assemble(&code, "sm_70"), Ok(())),
        None => println!("not assembled: ptxas is neither installed nor in PATH"),
    }
    Built { code, kernels, messages, binary, package }
}

impl Built {
    /// What `cargo sycl inspect` writes of the program with these further arguments.
    pub(crate) fn inspect(&self, arguments: &[&str]) -> String {
        self.package.sycl(&[&["inspect", self.binary.to_str().unwrap()], arguments].concat()).0
    }
}

impl Package {
    /// Waits until no other test has it, and writes it.
    pub(crate) fn enter() -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code");
        fs::create_dir_all(&root).unwrap();
        let in_use = File::create(root.join("in_use")).unwrap();
        in_use.lock().unwrap();
        let package = Self { root, _in_use: in_use };
        package.write();
        package
    }

    /// The folder that it is in.
    pub(crate) fn folder(&self) -> &Path {
        &self.root
    }

    /// Has the next build compile a program from the start, so that warnings are given again.
    pub(crate) fn touch(&self, program: &str) {
        let source = self.root.join(place(program));
        fs::write(&source, fs::read_to_string(&source).unwrap()).unwrap();
    }

    /// Adds a program that a test has made.
    pub(crate) fn write_program(&self, program: &str, source: &str) {
        let path = self.root.join(place(program));
        if fs::read_to_string(&path).ok().as_deref() != Some(source) {
            fs::write(path, source).unwrap();
        }
    }

    /// Runs `cargo sycl`, which has to succeed; gives standard output and standard error.
    pub(crate) fn sycl(&self, arguments: &[&str]) -> (String, String) {
        succeed(&mut self.command(arguments))
    }

    /// `cargo sycl` with these arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-sycl"));
        command.arg("sycl").args(arguments).current_dir(&self.root);
        // What the tests run under must not decide what they see. The cache is the test's own.
        for name in
            ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "RUSTC_WRAPPER"]
        {
            command.env_remove(name);
        }
        command.env("XDG_CACHE_HOME", self.root.join("cache"));
        command.env("CARGO_NET_OFFLINE", "true").env("CARGO_TERM_COLOR", "never");
        command
    }

    fn write(&self) {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let write = |path: &str, text: &str| {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // An unchanged file keeps its time, and what was built of it.
            if fs::read_to_string(&path).ok().as_deref() != Some(text) {
                fs::write(path, text).unwrap();
            }
        };
        let in_repository = |text: &str| text.replace("OXISYCL", repository.to_str().unwrap());
        write("Cargo.toml", &in_repository(MANIFEST));
        write("generic/Cargo.toml", &in_repository(LIBRARY));
        // Apart from the other programs, which would have the crates that these depend on, too.
        let borrowed = "libm = { path = \"../libm\" }\n\n[[bin]]\nname = \"borrowed\"\npath = \"src/main.rs\"";
        write("borrower/Cargo.toml", &in_repository(&user("borrower", borrowed)));
        write("elsewhere/Cargo.toml", &in_repository(&user("elsewhere", "apart = { path = \"../../apart\" }")));
        write("functions/Cargo.toml", &in_repository(&user("functions", "")));
        write("caller/Cargo.toml", &in_repository(&user("caller", "functions = { path = \"../functions\" }")));
        write(&format!("{APART_FOLDER}/Cargo.toml"), &in_repository(&user("apart", "")));
        for name in ["libm", "tables"] {
            write(&format!("{name}/Cargo.toml"), &format!("{OUTSIDE}name = \"{name}\"\n"));
        }
        for entry in fs::read_dir(sources()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let name = path.file_stem().unwrap().to_str().unwrap();
            write(&place(name), &fs::read_to_string(&path).unwrap());
        }
        let example = repository.join("examples/14_tiled_gemm.rs");
        write(&place("tiled_gemm"), &fs::read_to_string(example).unwrap());
        // The same versions as the repository, which are there without a network.
        if !self.root.join("Cargo.lock").exists() {
            fs::copy(repository.join("Cargo.lock"), self.root.join("Cargo.lock")).unwrap();
        }
    }
}

/// The manifest of a package that uses OxiSYCL, with what follows in it.
fn user(name: &str, rest: &str) -> String {
    let oxisycl = "oxisycl = { path = \"OXISYCL/crates/oxisycl\", default-features = false }";
    format!("{OUTSIDE}name = \"{name}\"\n\n[dependencies]\n{oxisycl}\n{rest}\n")
}

/// Where the package has a file of `kernels`.
fn place(name: &str) -> String {
    match name {
        "functions" | "generic" | "libm" | "tables" => format!("{name}/src/lib.rs"),
        "caller" => "caller/src/main.rs".to_owned(),
        "apart" => format!("{APART_FOLDER}/src/lib.rs"),
        "borrowed" => "borrower/src/main.rs".to_owned(),
        "elsewhere" => "elsewhere/src/main.rs".to_owned(),
        _ => format!("src/bin/{name}.rs"),
    }
}

/// Runs a command, which has to succeed; gives standard output and standard error.
pub(crate) fn succeed(command: &mut Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(status.success(), "{command:?} failed\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// The functions of PTX by name, each with its body.
pub(crate) fn functions(ptx: &str) -> BTreeMap<String, String> {
    let mut functions = BTreeMap::new();
    let mut name = None;
    let mut body = String::new();
    for line in ptx.lines() {
        if line.starts_with(".visible .entry") || line.starts_with(".func") {
            // `.func (results) name(` or `.func name(`
            let rest = line.trim_start_matches(".visible .entry").trim_start_matches(".func").trim();
            let rest = if rest.starts_with('(') { rest.split_once(')').map_or(rest, |(_, rest)| rest) } else { rest };
            name = Some(rest.trim().trim_end_matches('(').to_owned());
            body.clear();
        } else if line == "}" {
            if let Some(name) = name.take() {
                functions.insert(name, std::mem::take(&mut body));
            }
        } else {
            body.push_str(line);
            body.push('\n');
        }
    }
    functions
}

/// The code of the kernel whose name contains this, and of all functions that it may call.
pub(crate) fn kernel(functions: &BTreeMap<String, String>, part: &str) -> String {
    let mut found = functions.keys().filter(|name| name.contains(part) && name.starts_with('k'));
    let (name, other) = (found.next(), found.next());
    let name = name.unwrap_or_else(|| panic!("no kernel {part} in {:?}", functions.keys()));
    assert_eq!(other, None, "{part} is one kernel");
    let mut reached = vec![name];
    let mut at = 0;
    while at < reached.len() {
        let body = &functions[reached[at]];
        for callee in functions.keys() {
            if !reached.contains(&callee)
                && body.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').any(|word| word == callee)
            {
                reached.push(callee);
            }
        }
        at += 1;
    }
    reached.into_iter().map(|name| functions[name].as_str()).collect()
}
