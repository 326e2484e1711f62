//! The parts of a Rust toolchain that the compiler uses: its LLVM, and the bitcode of the standard library.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::CompileError;
use crate::options::FloatPolicy;

/// A Rust toolchain that can serve as a device compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// The toolchain's folder of libraries.
    pub sysroot: PathBuf,
    /// The version of rustc, such as `1.95.0`.
    pub release: String,
    /// The commit of rustc; `unknown` for builds that do not report it.
    pub commit: String,
    /// The triple of the machine it runs on.
    pub host: String,
    /// The shared library with LLVM, which is loaded into this process.
    llvm_library: PathBuf,
}

impl Toolchain {
    /// The options that an image was made with: the differences between images of the same program for the same target.
    pub(crate) fn build_options(&self, float: FloatPolicy) -> String {
        let own = env!("CARGO_PKG_VERSION");
        let Self { release, commit, .. } = self;
        let commit = commit.get(..9).unwrap_or(commit);
        format!("oxisycl={own} rustc={release}-{commit} opt-level=3 float={float}")
    }

    /// Runs the Rust compiler `rustc` for information about its toolchain.
    ///
    /// # Safety
    /// The path is that of a toolchain's Rust compiler. The LLVM in its folder is loaded into this process. It reads, without checks of its
    /// own, the modules that are compiled and shown with the toolchain. These were written by that compiler, or by this crate.
    ///
    /// # Errors
    /// `Toolchain` if it does not answer, or brings no LLVM as a shared library.
    pub unsafe fn of(rustc: &Path) -> Result<Self, CompileError> {
        let version = ask(rustc, &["-vV"])?;
        let field = |name: &str| {
            let value = version.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value
                .map(str::to_owned)
                .ok_or_else(|| CompileError::Toolchain(format!("{} -vV says nothing about {name}", rustc.display())))
        };
        let sysroot = PathBuf::from(ask(rustc, &["--print", "sysroot"])?.trim());
        let llvm_library = llvm_library(&sysroot)?;
        Ok(Self {
            rustc: rustc.to_owned(),
            release: field("release")?,
            commit: field("commit-hash")?,
            host: field("host")?,
            sysroot,
            llvm_library,
        })
    }

    /// The one that the tests run under.
    #[cfg(test)]
    pub(crate) fn of_the_tests() -> Self {
        // SAFETY: cargo runs the tests with this compiler, which writes what they compile, or they write text that LLVM checks.
        unsafe { Self::of(Path::new("rustc")) }.expect("the tests run under a toolchain with LLVM")
    }

    /// The path of LLVM's shared library.
    pub fn llvm_library(&self) -> &Path {
        &self.llvm_library
    }

    /// The archives of the standard library for the host, in a fixed order.
    pub(crate) fn standard_library(&self) -> Result<Vec<PathBuf>, CompileError> {
        let folder = self.sysroot.join("lib/rustlib").join(&self.host).join("lib");
        let mut archives = files(&folder)?;
        archives.retain(|path| path.extension().is_some_and(|extension| extension == "rlib"));
        Ok(archives)
    }
}

fn ask(rustc: &Path, arguments: &[&str]) -> Result<String, CompileError> {
    let failed =
        |reason: String| CompileError::Toolchain(format!("{} {}: {reason}", rustc.display(), arguments.join(" ")));
    let output = Command::new(rustc).args(arguments).output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    String::from_utf8(output.stdout).map_err(|_| failed("the answer is not text".to_owned()))
}

/// Finds LLVM in the toolchain's own folder only.
fn llvm_library(sysroot: &Path) -> Result<PathBuf, CompileError> {
    let folder = sysroot.join("lib");
    let is_llvm = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libLLVM") && (name.contains(".so") || name.ends_with(".dylib"))
    };
    // The versioned name is the library, the other one may be a linker script.
    let mut found: Vec<_> = files(&folder)?.into_iter().filter(is_llvm).collect();
    found.sort_by_key(|path| !path.to_string_lossy().contains(".so."));
    found.into_iter().next().ok_or_else(|| {
        CompileError::Toolchain(format!(
            "{} holds no libLLVM. Toolchains from rustup bring LLVM as a shared library; those of Linux distributions often use the \
             system's LLVM instead, which has no NVPTX target or another version. Install one with `rustup toolchain install stable`.",
            folder.display()
        ))
    })
}

/// The entries of a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, CompileError> {
    let failed = |error| CompileError::File { path: folder.to_owned(), error };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}
