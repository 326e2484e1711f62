//! The workspace that the tests build: each kind of crate that can contain a kernel, and one that cannot but is called from kernels.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const FILES: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        r#"
[workspace]
resolver = "3"
members = ["app", "kernels", "second", "shared"]

[workspace.dependencies]
oxisycl = { path = "OXISYCL/crates/oxisycl", default-features = false, features = ["cuda"] }
kernels = { path = "kernels" }
lent = { version = "0.1", registry = "elsewhere" }
math = { path = "vendor/math" }

# OxiSYCL as the registry would have it.
[patch.crates-io]
oxisycl = { path = "OXISYCL/crates/oxisycl" }

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

[profile.quick]
inherits = "release"

# For the time that the test takes.
[profile.quick.package."*"]
opt-level = 1

[profile.small.package."*"]
opt-level = 1

[profile.thin.package."*"]
opt-level = 1
"#,
    ),
    (
        ".cargo/config.toml",
        r#"
[build]
rustflags = ["--cfg", "configured", "--check-cfg", "cfg(configured)"]

# A registry whose crates were vendored.
[registries.elsewhere]
index = "https://registry.invalid/"
[source.elsewhere]
registry = "https://registry.invalid/"
replace-with = "vendored"
[source.vendored]
directory = "vendored"
"#,
    ),
    // A library with kernels that cargo takes from a registry: its lints are capped, and it is nobody's workspace member.
    ("vendored/lent/.cargo-checksum.json", r#"{"files":{}}"#),
    (
        "vendored/lent/Cargo.toml",
        "[package]\nname = \"lent\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\noxisycl = { version = \"0.1\", default-features = false, features = [\"cuda\"] }\n",
    ),
    (
        "vendored/lent/src/lib.rs",
        r#"
use oxisycl::prelude::*;

pub fn halved(numbers: Vec<f32>) -> Vec<f32> {
    let unused_and_not_told = 1;
    let n = numbers.len();
    let buffer = Buffer::from_vec(numbers).unwrap();
    Queue::default()
        .unwrap()
        .submit(|cg| {
            let numbers = cg.access(&buffer, ReadWrite);
            cg.parallel_for(n, move |item| numbers.update(item, |x| x / 2.0))
        })
        .unwrap();
    buffer.into_vec().unwrap()
}
"#,
    ),
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
    let buffer = Buffer::from_vec(numbers).unwrap();
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

/// How many launches ran native code.
pub fn native_launches() -> f32 {
    oxisycl::observe::counters().native_kernels as f32
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
        "[package]\nname = \"shared\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\nkernels.workspace = true\noxisycl.workspace = true\n",
    ),
    (
        "shared/src/lib.rs",
        r#"
use std::sync::Mutex;

use oxisycl::prelude::*;

#[unsafe(no_mangle)]
pub extern "C" fn shared_value() -> f32 {
    kernels::mapped(vec![1.0], |x| x + 41.0)[0]
}

#[unsafe(no_mangle)]
pub extern "C" fn shared_native() -> f32 {
    kernels::native_launches()
}

static BEGUN: Mutex<Option<Buffer<f32, 1>>> = Mutex::new(None);

/// Submits a kernel that takes a while, and waits for nothing. Which backend it is for: 1, 2 or 3.
#[unsafe(no_mangle)]
pub extern "C" fn shared_begin() -> f32 {
    let queue = Queue::default().unwrap();
    let buffer = Buffer::from_vec(vec![1.0; 1024]).unwrap();
    queue
        .submit(|cg| {
            let numbers = cg.access(&buffer, ReadWrite);
            let next = |x| if x > 5.0 { 1.0 } else { x + 1.0 };
            cg.parallel_for(1024, move |item| numbers.update(item, |x| (0..20_000).fold(x, |x, _| next(x))))
        })
        .unwrap();
    *BEGUN.lock().unwrap() = Some(buffer);
    match queue.device().backend() {
        oxisycl::BackendKind::Host => 1.0,
        oxisycl::BackendKind::OpenCl => 2.0,
        _ => 3.0,
    }
}

/// What the kernel made of every number. Leaves a panic that nobody asks for, which must not decide how the program ends.
#[unsafe(no_mangle)]
pub extern "C" fn shared_end() -> f32 {
    let numbers = BEGUN.lock().unwrap().take().unwrap().into_vec().unwrap();
    assert!(numbers.iter().all(|x| *x == numbers[0]));
    let left = Queue::default().unwrap().submit(|cg| cg.host_task(|_| panic!("nobody asks"))).unwrap();
    while !left.is_complete() {
        std::thread::yield_now();
    }
    numbers[0]
}
"#,
    ),
    (
        "second/Cargo.toml",
        "[package]\nname = \"second\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\nkernels.workspace = true\n",
    ),
    (
        "second/src/lib.rs",
        r#"
#[unsafe(no_mangle)]
pub extern "C" fn second_native() -> f32 {
    kernels::native_launches()
}

/// Of two kernels: one that no other library has, and one that both have.
#[unsafe(no_mangle)]
pub extern "C" fn second_value() -> f32 {
    kernels::mapped(vec![2.0], |x| x * 10.0)[0] + kernels::evaluated(vec![2.0])[0]
}
"#,
    ),
    // Opens both libraries after it has started, and one of them again. Knows nothing of OxiSYCL, as a program in C or Python would.
    (
        "loader.rs",
        r#"
use std::ffi::{CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
}

struct Library(*mut c_void);

unsafe impl Sync for Library {}

impl Library {
    fn open(path: &str, flags: c_int) -> Self {
        let path = CString::new(path).unwrap();
        let library = unsafe { dlopen(path.as_ptr(), flags) };
        assert!(!library.is_null());
        Self(library)
    }

    /// Calls a function on this thread.
    fn call(&self, name: &str) -> f32 {
        let name = CString::new(name).unwrap();
        let function = unsafe { dlsym(self.0, name.as_ptr()) };
        assert!(!function.is_null());
        let function: extern "C" fn() -> f32 = unsafe { std::mem::transmute(function) };
        function()
    }

    /// Calls a function on a thread that has ended with all it had of the library when this returns.
    fn call_elsewhere(&self, name: &str) -> f32 {
        std::thread::scope(|scope| scope.spawn(|| self.call(name)).join().unwrap())
    }

    fn close(self) {
        assert_eq!(unsafe { dlclose(self.0) }, 0);
    }
}

fn is_loaded(path: &str) -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains(path)
}

fn main() {
    let [shared, second, flags, counted @ ..] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else { panic!() };
    let flags = flags.parse().unwrap();
    assert!(!is_loaded(shared) && !is_loaded(second));
    // What has registered its images and done nothing else goes away.
    Library::open(second, flags).close();
    assert!(!is_loaded(second));

    let (first, other) = (Library::open(shared, flags), Library::open(second, flags));
    print!("{} {} ", first.call_elsewhere("shared_value"), other.call("second_value"));
    // Its kernel may still be running.
    print!("{} ", first.call_elsewhere("shared_begin"));
    first.close();
    assert!(is_loaded(shared));
    print!("{} ", other.call("second_value"));
    let again = Library::open(shared, flags);
    print!("{} {} ", again.call("shared_end"), again.call("shared_value"));
    // How many launches of each library ran native code.
    if !counted.is_empty() {
        print!("{} {} ", again.call("shared_native"), other.call("second_native"));
    }
    other.close();
    again.close();
    println!("closed");
}
"#,
    ),
    (
        "app/Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\nkernels.workspace = true\nlent.workspace = true\noxisycl.workspace = true\n[[bench]]\nname = \"timed\"\nharness = false\n",
    ),
    (
        "app/src/main.rs",
        r#"
#![allow(unexpected_cfgs)]
fn main() {
    let squares = kernels::mapped(vec![1.0, 2.0], |x| x * x);
    let others = (kernels::evaluated(vec![2.0]), lent::halved(vec![3.0]));
    println!("{squares:?} {others:?} configured={} panic={}", cfg!(configured), cfg!(panic = "abort"));
}
"#,
    ),
    ("app/examples/cube.rs", "fn main() {\n    println!(\"{:?}\", kernels::mapped(vec![3.0], |x| x * x * x));\n}\n"),
    (
        "app/benches/timed.rs",
        "fn main() {\n    println!(\"{:?} {:?}\", kernels::mapped(vec![4.0], |x| x - 1.0), std::env::args().nth(1));\n}\n",
    ),
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

    /// `cargo sycl` with these arguments. What it builds is for NVIDIA GPUs, if they name no targets.
    pub(crate) fn sycl(&self, arguments: &[&str]) -> Command {
        let is_build = ["build", "run", "test", "bench"].contains(&arguments[0]) && !arguments.contains(&"--targets");
        let targets = if is_build { &["--targets", "sm_70"][..] } else { &[] };
        self.sycl_as_is(&[&arguments[..1], targets, &arguments[1..]].concat())
    }

    /// `cargo sycl` with these arguments and no others.
    pub(crate) fn sycl_as_is(&self, arguments: &[&str]) -> Command {
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

    /// Runs a program where the driver of a GPU is, which takes kernels and does nothing for them. Gives standard output.
    ///
    /// A launch needs a kernel that is found by its type in the program's images, and an entry of the code with its symbol. Its parameters
    /// must be as large as the host's. Without images the program stays on the host device.
    pub(crate) fn run_beside_a_gpu(&self, path: impl AsRef<Path>) -> String {
        self.beside_a_gpu(&mut Command::new(self.root.join(path)))
    }

    /// Runs any command beside a GPU.
    pub(crate) fn beside_a_gpu(&self, command: &mut Command) -> String {
        succeed(command.env("LD_LIBRARY_PATH", driver()).env("OXISYCL_CACHE_DIR", self.root.join("binaries"))).0
    }

    /// What `cargo sycl inspect` says of an output.
    pub(crate) fn inspect(&self, path: impl AsRef<Path>) -> String {
        let path = self.root.join(path);
        succeed(&mut self.sycl(&["inspect", path.to_str().unwrap()])).0
    }
}

/// The folder with a driver without a GPU, made once.
pub(crate) fn driver() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../oxisycl-backend-cuda/tests/fake_driver/library");
        // Of this process alone: tests may run in several.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "driver", "-A", "warnings"]);
        succeed(rustc.arg(sources.join("lib.rs")).arg("-o").arg(folder.join("libcuda.so.1")));
        folder
    };
    FOLDER.get_or_init(make).clone()
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

/// The crates that a build compiled or checked.
pub(crate) fn compiled(stderr: &str) -> Vec<&str> {
    let lines = stderr.lines().map(str::trim);
    let lines = lines.filter_map(|line| line.strip_prefix("Compiling ").or_else(|| line.strip_prefix("Checking ")));
    lines.filter_map(|line| line.split(' ').next()).collect()
}

/// The programs that `cargo test --no-run` names.
pub(crate) fn executables(stderr: &str) -> Vec<PathBuf> {
    let lines = stderr.lines().filter(|line| line.trim().starts_with("Executable "));
    lines.filter_map(|line| line.rsplit_once('(')?.1.strip_suffix(')').map(PathBuf::from)).collect()
}
