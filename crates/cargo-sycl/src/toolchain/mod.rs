//! Which Rust toolchains can be device compilers.
//!
//! The compiler knows things about rustc that no promise covers: how panics are called, what a `TypeId` looks like in bitcode, which
//! LLVM reads it. Versions that were tested are listed; any other one has to pass the [`mod@probe`] before its first build, and is remembered.

mod probe;

use std::fs;
use std::path::Path;

use oxisycl_compiler::{CompileError, Toolchain};

use crate::compile::PrivateFolder;
use crate::failure::{Failure, Result};
use crate::settings::short_hash;

/// The versions of rustc that were tested with this tool.
const TESTED: &[&str] = &["1.95.0"];

/// What a compiler says of its toolchain.
pub(crate) fn ask(rustc: &Path) -> Result<Toolchain, CompileError> {
    // SAFETY: the compiler that cargo builds the program with, which runs code of its choice on this machine anyway. What is compiled with it
    // are the modules that this tool had it write, and those of its cache, which others cannot write to.
    unsafe { Toolchain::of(rustc) }
}

/// Fails if a compiler cannot make device code, and says what to do. `tool` is the hash of this tool.
pub(crate) fn check(rustc: &Path, tool: &str) -> Result<Toolchain> {
    let toolchain = ask(rustc)?;
    if !is_tested(&toolchain) {
        let passed = PrivateFolder::of_user("toolchains").ok().map(|folder| folder.path().join(mark(&toolchain, tool)));
        if !passed.as_ref().is_some_and(|passed| passed.is_file()) {
            probe(&toolchain)?;
            if let Some(passed) = passed {
                // If it cannot be kept, the next build asks again.
                let _ = fs::write(passed, "");
            }
        }
    }
    Ok(toolchain)
}

/// Whether the version is one that needs no probe.
pub(crate) fn is_tested(toolchain: &Toolchain) -> bool {
    TESTED.contains(&toolchain.release.as_str())
}

/// Compiles a probe and looks at the result.
pub(crate) fn probe(toolchain: &Toolchain) -> Result<()> {
    probe::run(toolchain).map_err(|failure| {
        let (release, tested, first) = (&toolchain.release, TESTED.join(", "), TESTED[0]);
        Failure::new(format!(
            "rustc {release} cannot be the device compiler of this version of cargo sycl: {failure}\n\
             These versions work: {tested}. Install one with `rustup toolchain install {first}`, and build with `cargo +{first} sycl`."
        ))
    })
}

fn mark(toolchain: &Toolchain, tool: &str) -> String {
    short_hash(format!("{}\n{}\n{}\n{tool}", toolchain.release, toolchain.commit, toolchain.host).as_bytes())
}
