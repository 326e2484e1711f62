//! The workspace that the tests build: each kind of crate that can contain a kernel, and one that cannot but is called from kernels.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FILES: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        r#"
[workspace]
resolver = "3"
members = ["app", "kernels", "shared"]

[workspace.dependencies]
oxisycl = { path = "OXISYCL/crates/oxisycl", default-features = false }
kernels = { path = "kernels" }
math = { path = "vendor/math" }

[profile.small]
inherits = "release"
opt-level = "s"
lto = "fat"
strip = true
panic = "abort"

[profile.thin]
inherits = "release"
lto = "thin"
debug-assertions = true

# For the time that the test takes.
[profile.small.package."*"]
opt-level = 1

[profile.thin.package."*"]
opt-level = 1
"#,
    ),
    (".cargo/config.toml", "[build]\nrustflags = [\"--cfg\", \"configured\", \"--check-cfg\", \"cfg(configured)\"]\n"),
    // Does not know OxiSYCL; its functions are not inlined, so that kernels need its code.
    ("vendor/math/Cargo.toml", "[package]\nname = \"math\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
    (
        "vendor/math/src/lib.rs",
        r#"
#![no_std]
const COEFFICIENTS: [f32; 3] = [1.0, 2.0, 3.0];
#[inline(never)]
pub fn polynomial(x: f32) -> f32 {
    COEFFICIENTS.iter().fold(0.0, |sum, c| sum * x + c)
}
"#,
    ),
    (
        "kernels/Cargo.toml",
        "[package]\nname = \"kernels\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\noxisycl.workspace = true\nmath.workspace = true\n",
    ),
    (
        "kernels/src/lib.rs",
        r#"
//! ```
//! assert_eq!(kernels::mapped(vec![0.0], |x| x + 1.0), [1.0]);
//! ```
use oxisycl::prelude::*;

/// Generic: its kernels are in the crates that call it.
pub fn mapped(numbers: Vec<f32>, f: impl Fn(f32) -> f32 + Copy + Send + Sync + 'static) -> Vec<f32> {
    let n = numbers.len();
    let queue = Queue::default().unwrap();
    let buffer = Buffer::from_vec(numbers, n).unwrap();
    queue
        .submit(|cg| {
            let numbers = cg.access(&buffer, ReadWrite);
            cg.parallel_for(n, move |item| numbers.update(item, |x| f(x)))
        })
        .unwrap();
    buffer.into_vec().unwrap()
}

/// Not generic: its kernel is in this crate.
pub fn evaluated(numbers: Vec<f32>) -> Vec<f32> {
    mapped(numbers, math::polynomial)
}

#[cfg(test)]
mod tests {
    #[test]
    fn unit() {
        assert_eq!(super::mapped(vec![2.0], |x| x * x), [4.0]);
    }
}
"#,
    ),
    (
        "shared/Cargo.toml",
        "[package]\nname = \"shared\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\nkernels.workspace = true\n",
    ),
    (
        "shared/src/lib.rs",
        r#"
#[unsafe(no_mangle)]
pub extern "C" fn shared_value() -> f32 {
    kernels::mapped(vec![1.0], |x| x + 41.0)[0]
}
"#,
    ),
    (
        "app/Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\nkernels.workspace = true\noxisycl.workspace = true\n",
    ),
    (
        "app/src/main.rs",
        r#"
#![allow(unexpected_cfgs)]
fn main() {
    let squares = kernels::mapped(vec![1.0, 2.0], |x| x * x);
    println!("{squares:?} {:?} configured={} panic={}", kernels::evaluated(vec![2.0]), cfg!(configured), cfg!(panic = "abort"));
}
"#,
    ),
    ("app/examples/cube.rs", "fn main() {\n    println!(\"{:?}\", kernels::mapped(vec![3.0], |x| x * x * x));\n}\n"),
    (
        "app/tests/negated.rs",
        "#[test]\nfn negated() {\n    assert_eq!(kernels::mapped(vec![3.0], |x| -x), [-3.0]);\n}\n",
    ),
];

/// A generated workspace, and its target folder.
pub(crate) struct Project {
    pub(crate) root: PathBuf,
}

impl Project {
    /// Writes the workspace; the target folder is empty.
    pub(crate) fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let project = Self { root };
        for (path, text) in FILES {
            let text = text.replace("OXISYCL", repository.to_str().unwrap());
            project.write(path, &text);
        }
        // The same versions as the repository, which are there without a network.
        fs::copy(repository.join("Cargo.lock"), project.root.join("Cargo.lock")).unwrap();
        project
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// `cargo sycl` with these arguments.
    pub(crate) fn sycl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-sycl"));
        command.arg("sycl");
        self.prepare(command, arguments)
    }

    /// Plain cargo with these arguments.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        self.prepare(Command::new(env!("CARGO")), arguments)
    }

    fn prepare(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.args(arguments).current_dir(&self.root);
        // What the tests run under must not decide what they see. The cache is the test's own.
        for name in
            ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "RUSTC_WRAPPER"]
        {
            command.env_remove(name);
        }
        command.env("XDG_CACHE_HOME", self.root.join("cache")).env("CARGO_NET_OFFLINE", "true");
        command
    }

    /// What `cargo sycl inspect` says of an output.
    pub(crate) fn inspect(&self, path: impl AsRef<Path>) -> String {
        let path = self.root.join(path);
        succeed(&mut self.sycl(&["inspect", path.to_str().unwrap()])).0
    }
}

/// Runs a command that has to succeed; gives standard output and standard error.
pub(crate) fn succeed(command: &mut Command) -> (String, String) {
    let (success, stdout, stderr) = run(command);
    assert!(success, "{command:?} failed\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// Runs a command that has to fail; gives standard error.
pub(crate) fn fail(command: &mut Command) -> String {
    let (success, stdout, stderr) = run(command);
    assert!(!success, "{command:?} succeeded\n{stdout}\n{stderr}");
    stderr
}

fn run(command: &mut Command) -> (bool, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.success(), text(stdout), text(stderr))
}

/// The crates that a build compiled.
pub(crate) fn compiled(stderr: &str) -> Vec<&str> {
    let lines = stderr.lines().filter_map(|line| line.trim().strip_prefix("Compiling "));
    lines.filter_map(|line| line.split(' ').next()).collect()
}

/// The programs that `cargo test --no-run` names.
pub(crate) fn executables(stderr: &str) -> Vec<PathBuf> {
    let lines = stderr.lines().filter(|line| line.trim().starts_with("Executable "));
    lines.filter_map(|line| line.rsplit_once('(')?.1.strip_suffix(')').map(PathBuf::from)).collect()
}
