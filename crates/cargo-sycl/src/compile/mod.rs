//! Compiles the images of a link unit for all targets in a separate process, since LLVM may end the process that it runs in.
//!
//! Such a process reads the program, and copies itself for each kernel ([`processes`]). Owns the words between the two processes,
//! and asks the [`cache`] first. Why the process died, if it did before there were kernels, becomes the failure's text.

mod cache;
pub(crate) mod captures;
mod deferred;
mod kernel_cache;
mod outcome;
mod private_folder;
mod processes;
mod progress;
mod slots;

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use oxisycl_compiler::{CompileError, Compiled, Inspect, Options};
use oxisycl_image::{DeviceImage, ImageTarget};
use serde::{Deserialize, Serialize};

pub(crate) use self::cache::ImageCache;
use self::captures::Capture;
use self::deferred::DeferredCrates;
use self::kernel_cache::KernelCache;
pub(crate) use self::outcome::{Outcome, PassTime};
pub(crate) use self::private_folder::PrivateFolder;
use self::processes::Processes;
pub(crate) use self::progress::{Progress, place_of_this_process};
use crate::failure::{Failure, Result};
use crate::files::temporary_name;
use crate::settings::{parse_float, parse_lanes, parse_target};
use crate::toolchain;
use crate::verb::ptxas::Ptxas;

/// The argument that makes a process of this tool the compiler.
pub(crate) const VERB: &str = "__compile";

/// What images are compiled from and for.
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
    /// The names of published crates that others bear in the program.
    pub(crate) borrowed: Vec<String>,
    /// The targets' texts, in the order of the outcomes.
    pub(crate) targets: Vec<String>,
    /// The policy for floating-point arithmetic.
    pub(crate) float: String,
    /// How many work-items native code of hosts runs at once: a number, or `auto`.
    pub(crate) lanes: String,
    /// Whether the final link takes names of Rust's away.
    pub(crate) loses_names: bool,
    /// Whether native code of hosts has source lines.
    pub(crate) has_lines: bool,
    /// Where the compiler writes what it does.
    pub(crate) dump: Option<PathBuf>,
    /// Whether the times of the compiler's passes are wanted.
    pub(crate) time_passes: bool,
    /// A folder that belongs to the build.
    pub(crate) folder: PathBuf,
    /// The assembler that looks at new code for NVIDIA GPUs, if it is there and wanted.
    pub(crate) ptxas: Option<PathBuf>,
    /// Whether results may come from the user's cache, and go there.
    pub(crate) is_kept: bool,
    /// What progress is shown of, if it is.
    pub(crate) progress: Option<Progress>,
    /// Whether captured addresses of the host are errors.
    pub(crate) refuses_host_captures: bool,
    /// The libraries whose symbols native code may refer to; none if no target is a host.
    pub(crate) exporting: Vec<PathBuf>,
}

/// Names kernels at which the compiler ends as LLVM ends it. Not for users: tests see by it that the other kernels have their images.
const FAULT: &str = "CARGO_SYCL_FAULT";

fn fault() -> Option<String> {
    std::env::var(FAULT).ok()
}

/// For each target the outcome with its bytes, or why there is none.
type Answers = Vec<Result<(Outcome, Vec<u8>)>>;

/// The result of compiling for all targets: nothing is compiled if the program captures addresses of the host, and may not.
type Compilation<T> = Result<Vec<Result<T>>, Vec<Capture>>;

/// What comes of each target, in the order of the targets: from the cache, or newly compiled. The error is the captured addresses of the host.
pub(crate) fn run(request: &Request) -> Compilation<Outcome> {
    // A fault is wanted for what comes of it, not for the images.
    let cache = if fault().is_none() { ImageCache::open() } else { None };
    let Some(cache) = cache else { return run_uncached(request) };
    let mut outcomes: Vec<Option<Result<Outcome>>> = Vec::new();
    let keys: Vec<Result<String>> = request.targets.iter().map(|target| cache::key(request, target)).collect();
    for key in &keys {
        let known = key.as_ref().ok().filter(|_| !request.is_watched()).and_then(|key| cache.get(key));
        let is_current = |known: &Outcome| deferred::are_as_they_were(&known.deferred, &request.deferred, &request.key);
        outcomes.push(known.filter(is_current).map(Ok));
    }
    let missing: Vec<usize> = (0..outcomes.len()).filter(|idx| outcomes[*idx].is_none()).collect();
    let targets = missing.iter().map(|idx| request.targets[*idx].clone()).collect();
    let compiled = if missing.is_empty() { Vec::new() } else { compile(&Request { targets, ..request.clone() })? };
    for (idx, compiled) in missing.into_iter().zip(compiled) {
        outcomes[idx] = Some(compiled.map(|(outcome, bytes)| {
            if let Ok(key) = &keys[idx]
                && !outcome.is_of_this_machine()
                && !request.time_passes
            {
                cache.put(key, &bytes);
            }
            outcome
        }));
    }
    Ok(outcomes.into_iter().flatten().collect())
}

/// The images for a request, newly compiled.
pub(crate) fn run_uncached(request: &Request) -> Compilation<Outcome> {
    Ok(compile(request)?.into_iter().map(|compiled| compiled.map(|(outcome, _)| outcome)).collect())
}

/// Starts the compiler and waits for it. Gives what it wrote, too.
fn compile(request: &Request) -> Compilation<(Outcome, Vec<u8>)> {
    let (input, output) =
        (temporary_name(&request.folder.join("request")), temporary_name(&request.folder.join("outcome")));
    let result = || {
        let text = serde_json::to_vec(request).map_err(|error| Failure::new(error.to_string()))?;
        fs::write(&input, text).map_err(|error| Failure::file(&input, error))?;
        start(&input, &output, request.targets.len())
    };
    let result = result();
    for path in [&input, &output] {
        // Whatever is left of them is hidden and small.
        let _ = fs::remove_file(path);
    }
    // What is wrong with the program is wrong for each target.
    result.unwrap_or_else(|failure| Ok(request.targets.iter().map(|_| Err(failure.clone())).collect()))
}

fn start(input: &PathBuf, output: &PathBuf, n_targets: usize) -> Result<Compilation<(Outcome, Vec<u8>)>> {
    let tool = std::env::current_exe().map_err(|error| Failure::new(format!("this tool's own path: {error}")))?;
    let child = Command::new(&tool).arg(VERB).args([input, output]).stdin(Stdio::null()).output();
    let child = child.map_err(|error| Failure::start(&tool, error))?;
    if !child.status.success() {
        return Err(Failure::new(death(child.status, &String::from_utf8_lossy(&child.stderr))));
    }
    let bytes = fs::read(output).map_err(|error| Failure::file(output, error))?;
    let damaged = || Failure::new("the device compiler's answer is damaged");
    if let Some((&CAPTURES, list)) = bytes.split_first() {
        return serde_json::from_slice(list).map(Err).map_err(|_| damaged());
    }
    let answers = answers(&bytes).filter(|answers| answers.len() == n_targets);
    answers.map(Ok).ok_or_else(damaged)
}

/// The first byte of an answer that is a list of captured addresses.
const CAPTURES: u8 = 2;

/// The bytes of answers, one for each target: whether there is an outcome, its length, and the outcome or why there is none.
fn encode_answers(outcomes: Vec<Result<Outcome>>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for outcome in outcomes {
        let (kind, body) = match outcome {
            Ok(outcome) => (1, outcome.encode()?),
            Err(failure) => (0, failure.to_string().into_bytes()),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&body);
    }
    Ok(bytes)
}

/// Reads them; `None` if they are damaged.
fn answers(mut bytes: &[u8]) -> Option<Answers> {
    let mut answers = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let (length, rest) = rest.split_first_chunk()?;
        let (body, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        answers.push(match kind {
            1 => Ok((Outcome::decode(body)?, body.to_vec())),
            _ => Err(Failure::new(String::from_utf8_lossy(body))),
        });
        bytes = rest;
    }
    Some(answers)
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
    let answer = match request.compile()? {
        Ok(outcomes) => encode_answers(outcomes)?,
        Err(captures) => {
            let list = serde_json::to_vec(&captures).map_err(|error| Failure::new(error.to_string()))?;
            [&[CAPTURES], &*list].concat()
        }
    };
    fs::write(&output, answer).map_err(|error| Failure::file(&output, error))?;
    Ok(ExitCode::SUCCESS)
}

/// Looks at the code of kernels, in the process in which each is compiled.
struct Inspector {
    assembler: Option<Ptxas>,
    /// [`FAULT`], if it is set.
    fault: Option<String>,
}

impl Inspect for Inspector {
    fn inspect(&self, image: &DeviceImage) -> Result<(), String> {
        let is_fault = |fault: &String| image.kernels.iter().any(|kernel| kernel.type_name.contains(fault));
        if self.fault.as_ref().is_some_and(is_fault) {
            eprintln!("LLVM ERROR: a test asked for this");
            std::process::abort();
        }
        match (&self.assembler, &image.target) {
            (Some(ptxas), ImageTarget::Ptx { sm }) => ptxas.verify(*sm, &image.code),
            _ => Ok(()),
        }
    }
}

impl Request {
    /// Whether the build shows how each kernel is compiled, so that no result may come from a cache.
    fn is_watched(&self) -> bool {
        self.dump.is_some() || self.time_passes
    }

    /// Compiles in this process.
    fn compile(&self) -> Result<Compilation<Outcome>> {
        let toolchain = toolchain::ask(&self.rustc)?;
        let deferred = RefCell::new(DeferredCrates::new(&self.deferred, &self.key));
        let request = oxisycl_compiler::Request {
            modules: self.modules.clone(),
            targets: self.targets.iter().map(|target| parse_target(target)).collect::<Result<_>>()?,
            options: Options {
                float: parse_float(&self.float)?,
                dump: self.dump.clone(),
                borrowed: self.borrowed.clone(),
                refuses_host_captures: self.refuses_host_captures,
                exporting: self.exporting.clone(),
                lanes: parse_lanes(&self.lanes)?,
                loses_names: self.loses_names,
                has_lines: self.has_lines,
            },
        };
        // A fault ends what would be kept.
        let cache = if self.is_kept && !self.is_watched() && fault().is_none() { ImageCache::open() } else { None };
        let kept = KernelCache::new(cache, self, &deferred)?;
        let inspect = Inspector { assembler: self.ptxas.clone().map(Ptxas::at), fault: fault() };
        let mut processes = Processes::new(&self.folder, &deferred, self.progress.as_ref());
        let mut provide = |symbol: &str| Ok(deferred.borrow_mut().provide(symbol));
        let compiled =
            oxisycl_compiler::compile_with(&toolchain, &request, &mut provide, &mut processes, &kept, &inspect);
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(CompileError::HostCaptures(found)) => return Ok(Err(found.into_iter().map(Capture::from).collect())),
            Err(error) => return Err(error.into()),
        };
        drop(kept);
        let mut deferred = deferred.into_inner();
        let warnings = std::mem::take(&mut deferred.warnings);
        let deferred = deferred.used()?;
        let outcome = |Compiled { images, modules, times }| Outcome {
            times: if self.time_passes { times.into_iter().map(PassTime::from).collect() } else { Vec::new() },
            images,
            warnings: warnings.clone(),
            deferred: deferred.clone(),
            modules,
        };
        Ok(Ok(compiled.into_iter().map(|compiled| Ok(outcome(compiled?))).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_and_damaged_ones_do_not() {
        let outcomes = || vec![Ok(outcome::tests::outcome()), Err(Failure::new("no such target"))];
        let bytes = encode_answers(outcomes()).unwrap();
        let read: Vec<_> =
            answers(&bytes).unwrap().into_iter().map(|answer| answer.map(|(outcome, _)| outcome)).collect();
        assert_eq!(read, outcomes());
        for length in 1..bytes.len() {
            assert!(answers(&bytes[..length]).is_none_or(|answers| answers.len() < 2), "{length} bytes");
        }
    }

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
