//! What is known of a crate's kernels before any of them is compiled: captures that must not leave the host.
//!
//! A process of its own finds it, since LLVM may end the process that it runs in. Owns the words between the two. The wrapper decides what
//! the build says.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use oxisycl_compiler::HostCapture;
use oxisycl_image::SourceLocation;
use serde::{Deserialize, Serialize};

use super::death;
use crate::failure::{Failure, Result};
use crate::toolchain;

/// The argument that makes a process of this tool check a crate.
pub(crate) const VERB: &str = "__check";

/// A place in a source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Spot {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A captured address of the host, with the fields of [`HostCapture`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Capture {
    pub(crate) kernel: String,
    pub(crate) path: Vec<String>,
    pub(crate) what: String,
    pub(crate) type_name: String,
    pub(crate) variable: Option<Spot>,
    pub(crate) code: Option<Spot>,
    pub(crate) launch: Option<Spot>,
}

/// What was found in a crate.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Checked {
    pub(crate) captures: Vec<Capture>,
    /// The kernels that no target runs because of their captures, with the reasons.
    pub(crate) refused: Vec<(String, String)>,
}

impl From<SourceLocation> for Spot {
    fn from(SourceLocation { file, line, column }: SourceLocation) -> Self {
        Self { file, line, column }
    }
}

impl From<HostCapture> for Capture {
    fn from(capture: HostCapture) -> Self {
        let HostCapture { kernel, path, what, type_name, variable, code, launch } = capture;
        let [variable, code, launch] = [variable, code, launch].map(|place| place.map(Spot::from));
        Self { kernel, path, what: what.to_owned(), type_name, variable, code, launch }
    }
}

/// Checks the kernels that a crate describes. `modules` is all of its bitcode.
pub(crate) fn check(rustc: &Path, modules: &[PathBuf]) -> Result<Checked> {
    let may_describe = |module: &PathBuf| {
        let bitcode = std::fs::read(module).map_err(|error| Failure::file(module, error))?;
        Ok(oxisycl_compiler::may_describe_kernels(&bitcode))
    };
    if !modules.iter().map(may_describe).collect::<Result<Vec<_>>>()?.contains(&true) {
        return Ok(Checked::default());
    }
    let tool = std::env::current_exe().map_err(|error| Failure::new(format!("this tool's own path: {error}")))?;
    let mut command = Command::new(&tool);
    command.arg(VERB).arg(rustc).args(modules);
    let child = command.stdin(Stdio::null()).output().map_err(|error| Failure::start(&tool, error))?;
    if !child.status.success() {
        return Err(Failure::new(death(child.status, &String::from_utf8_lossy(&child.stderr))));
    }
    serde_json::from_slice(&child.stdout).map_err(|_| Failure::new("the device compiler's answer is damaged"))
}

/// The other side: writes what it finds to standard output.
pub(crate) fn serve(arguments: &[OsString]) -> Result<ExitCode> {
    let [rustc, modules @ ..] = arguments else {
        return Err(Failure::new(format!("{VERB}: expected rustc and bitcode")));
    };
    let modules: Vec<PathBuf> = modules.iter().map(PathBuf::from).collect();
    let toolchain = toolchain::ask(rustc.as_ref())?;
    let oxisycl_compiler::Checked { captures, refused } = oxisycl_compiler::check(&toolchain, &modules)?;
    let checked = Checked { captures: captures.into_iter().map(Capture::from).collect(), refused };
    let text = serde_json::to_vec(&checked).map_err(|error| Failure::new(error.to_string()))?;
    std::io::stdout().write_all(&text).map_err(|error| Failure::new(format!("standard output: {error}")))?;
    Ok(ExitCode::SUCCESS)
}
