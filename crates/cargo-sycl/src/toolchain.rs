//! Which Rust toolchains can be device compilers.
//!
//! The compiler knows things about rustc that no stability promise covers: how panics are called, what a `TypeId` looks like in
//! bitcode, which version of LLVM reads it. Each version that was tested is listed.

use std::path::Path;

use oxisycl_compiler::Toolchain;

use crate::failure::{Failure, Result};

/// The versions of rustc that were tested with this tool.
pub(crate) const TESTED: &[&str] = &["1.95.0"];

/// Fails if a compiler cannot make device code, and says what to do.
pub(crate) fn check(rustc: &Path) -> Result<Toolchain> {
    let toolchain = Toolchain::of(rustc)?;
    if is_tested(&toolchain.release) {
        return Ok(toolchain);
    }
    Err(Failure::new(format!(
        "rustc {} was not tested as a device compiler; these versions work: {}. Install one with `rustup toolchain install {}` and \
         build with `cargo +{} sycl`",
        toolchain.release,
        TESTED.join(", "),
        TESTED[0],
        TESTED[0]
    )))
}

pub(crate) fn is_tested(release: &str) -> bool {
    TESTED.contains(&release)
}
