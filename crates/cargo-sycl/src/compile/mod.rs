//! Has the images of a link unit compiled for one target, in a process of its own: LLVM may end the process that it runs in.
//!
//! That process reads the program, and copies itself for each kernel ([`processes`]). Owns the words between the two processes,
//! and asks the [`cache`] first. Why the process died, if it did before there were kernels, becomes the failure's text.

mod cache;
mod deferred;
mod outcome;
mod private_folder;
mod processes;
mod slots;

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use oxisycl_compiler::{Options, Toolchain};
use serde::{Deserialize, Serialize};

pub(crate) use self::cache::ImageCache;
use self::deferred::DeferredCrates;
pub(crate) use self::outcome::Outcome;
pub(crate) use self::private_folder::PrivateFolder;
use self::processes::Processes;
use crate::failure::{Failure, Result};
use crate::files::temporary_name;
use crate::settings::{parse_float, parse_target};

/// The argument that makes a process of this tool the compiler.
pub(crate) const VERB: &str = "__compile";

/// What the images of one target are compiled from and for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The compiler of the toolchain.
    pub(crate) rustc: PathBuf,
    /// The toolchain's commit.
    pub(crate) toolchain: String,
    /// The hash of this tool.
    pub(crate) key: String,
    /// The bitcode, the final crate's first.
    pub(crate) modules: Vec<PathBuf>,
    /// The sidecars of crates whose bitcode is made when a kernel needs it.
    pub(crate) deferred: Vec<PathBuf>,
    /// The target's text.
    pub(crate) target: String,
    /// The policy for floating-point arithmetic.
    pub(crate) float: String,
    /// Where the compiler writes what it does.
    pub(crate) dump: Option<PathBuf>,
    /// A folder that belongs to the build.
    pub(crate) folder: PathBuf,
}

/// Names kernels at which the compiler ends as LLVM ends it. Not for users: tests see by it that the other kernels have their images.
const FAULT: &str = "CARGO_SYCL_FAULT";

fn fault() -> Option<String> {
    std::env::var(FAULT).ok()
}

/// The images for a request, from the cache or newly compiled.
pub(crate) fn run(request: &Request) -> Result<Outcome> {
    // A dump is wanted for what it shows, and a fault for what comes of it, not for the images.
    let is_usual = request.dump.is_none() && fault().is_none();
    let cache = if is_usual { ImageCache::open() } else { None };
    let Some(cache) = cache else { return run_uncached(request) };
    let key = cache::key(request)?;
    let known = cache.get(&key);
    if let Some(outcome) =
        known.filter(|known| deferred::are_as_they_were(&known.deferred, &request.deferred, &request.key))
    {
        return Ok(outcome);
    }
    let (outcome, bytes) = compile(request)?;
    cache.put(&key, &bytes);
    Ok(outcome)
}

/// The images for a request, newly compiled.
pub(crate) fn run_uncached(request: &Request) -> Result<Outcome> {
    compile(request).map(|(outcome, _)| outcome)
}

/// Starts the compiler and waits for it. Gives what it wrote, too.
fn compile(request: &Request) -> Result<(Outcome, Vec<u8>)> {
    let (input, output) =
        (temporary_name(&request.folder.join("request")), temporary_name(&request.folder.join("outcome")));
    let text = serde_json::to_vec(request).map_err(|error| Failure::new(error.to_string()))?;
    fs::write(&input, text).map_err(|error| Failure::file(&input, error))?;
    let result = start(&input, &output);
    for path in [&input, &output] {
        // Whatever is left of them is hidden and small.
        let _ = fs::remove_file(path);
    }
    result
}

fn start(input: &PathBuf, output: &PathBuf) -> Result<(Outcome, Vec<u8>)> {
    let tool = std::env::current_exe().map_err(|error| Failure::new(format!("this tool's own path: {error}")))?;
    let child = Command::new(&tool).arg(VERB).args([input, output]).stdin(Stdio::null()).output();
    let child = child.map_err(|error| Failure::start(&tool, error))?;
    if !child.status.success() {
        return Err(Failure::new(death(child.status, &String::from_utf8_lossy(&child.stderr))));
    }
    let bytes = fs::read(output).map_err(|error| Failure::file(output, error))?;
    let outcome = Outcome::decode(&bytes);
    Ok((outcome.ok_or_else(|| Failure::new("the device compiler's answer is damaged"))?, bytes))
}

/// Why there is no image.
fn death(status: ExitStatus, messages: &str) -> String {
    let messages = messages.trim();
    match (status.signal(), messages.is_empty()) {
        (None, false) => messages.to_owned(),
        (None, true) => format!("the device compiler ended with {status}"),
        (Some(signal), true) => format!("the device compiler was ended by signal {signal}"),
        (Some(signal), false) => format!("the device compiler was ended by signal {signal}:\n{messages}"),
    }
}

/// The other side: compiles what the file says, and writes the outcome.
pub(crate) fn serve(arguments: &[OsString]) -> Result<ExitCode> {
    let [input, output] = arguments else {
        return Err(Failure::new(format!("{VERB}: expected a request and a place for the outcome")));
    };
    let (input, output) = (PathBuf::from(input), PathBuf::from(output));
    let bytes = fs::read(&input).map_err(|error| Failure::file(&input, error))?;
    let request: Request =
        serde_json::from_slice(&bytes).map_err(|error| Failure::new(format!("{}: {error}", input.display())))?;
    let outcome = request.compile()?;
    fs::write(&output, outcome.encode()?).map_err(|error| Failure::file(&output, error))?;
    Ok(ExitCode::SUCCESS)
}

impl Request {
    /// Compiles in this process.
    fn compile(&self) -> Result<Outcome> {
        let toolchain = Toolchain::of(&self.rustc)?;
        let deferred = RefCell::new(DeferredCrates::new(&self.deferred, &self.key));
        let request = oxisycl_compiler::Request {
            modules: self.modules.clone(),
            target: parse_target(&self.target)?,
            options: Options { float: parse_float(&self.float)?, dump: self.dump.clone(), fault: fault() },
        };
        let mut processes = Processes::new(&self.folder, &deferred);
        let mut provide = |symbol: &str| Ok(deferred.borrow_mut().provide(symbol));
        let compiled = oxisycl_compiler::compile_with(&toolchain, &request, &mut provide, &mut processes)?;
        let mut deferred = deferred.into_inner();
        let warnings = compiled.warnings.into_iter().chain(std::mem::take(&mut deferred.warnings)).collect();
        Ok(Outcome { images: compiled.images, warnings, deferred: deferred.used()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_died_is_described_with_its_last_words() {
        let by_signal = ExitStatus::from_raw(6);
        assert_eq!(death(by_signal, ""), "the device compiler was ended by signal 6");
        assert_eq!(
            death(by_signal, "LLVM ERROR: no libcall\n"),
            "the device compiler was ended by signal 6:\nLLVM ERROR: no libcall"
        );
        assert_eq!(death(ExitStatus::from_raw(1 << 8), "target: sm_1\n"), "target: sm_1");
    }
}
