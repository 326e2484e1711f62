//! Has the images of a link unit compiled, for each target in a process of its own: LLVM may end the process that it runs in.
//!
//! Such a process reads the program, and copies itself for each kernel ([`processes`]). Owns the words between the two processes,
//! and asks the [`cache`] first. Why the process died, if it did before there were kernels, becomes the failure's text.

mod cache;
mod deferred;
mod outcome;
mod private_folder;
mod processes;
mod slots;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::thread::{self, ScopedJoinHandle};

use oxisycl_compiler::{Compiled, Options, Toolchain};
use serde::{Deserialize, Serialize};

pub(crate) use self::cache::ImageCache;
use self::deferred::DeferredCrates;
pub(crate) use self::outcome::Outcome;
pub(crate) use self::private_folder::PrivateFolder;
use self::processes::Processes;
use self::slots::Slots;
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

/// What comes of each request, in their order. As many run at a time as cargo allows.
pub(crate) fn run_all(requests: &[Request]) -> Vec<Result<Outcome>> {
    in_slots(&Slots::of_build(), requests, run)
}

fn in_slots<I: Sync, O: Send>(slots: &Slots, inputs: &[I], run: impl Fn(&I) -> Result<O> + Sync) -> Vec<Result<O>> {
    let run = &run;
    let end = |thread: ScopedJoinHandle<'_, Result<O>>| {
        thread.join().unwrap_or_else(|_| Err(Failure::new("the thread that waits for the compiler panicked")))
    };
    thread::scope(|scope| {
        let (mut running, mut outcomes) = (VecDeque::new(), Vec::new());
        for input in inputs {
            let slot = loop {
                match slots.take(running.len()) {
                    Some(slot) => break slot,
                    None => outcomes.extend(running.pop_front().map(end)),
                }
            };
            running.push_back(scope.spawn(move || {
                let _slot = slot;
                run(input)
            }));
        }
        outcomes.extend(running.into_iter().map(end));
        outcomes
    })
}

/// The images for a request, from the cache or newly compiled.
fn run(request: &Request) -> Result<Outcome> {
    // A fault is wanted for what comes of it, not for the images.
    let cache = if fault().is_none() { ImageCache::open() } else { None };
    let Some(cache) = cache else { return run_uncached(request) };
    let key = cache::key(request)?;
    // A dump is wanted for what it shows.
    let known = if request.dump.is_none() { cache.get(&key) } else { None };
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
        let Compiled { images, modules } = compiled;
        let mut deferred = deferred.into_inner();
        let warnings = std::mem::take(&mut deferred.warnings);
        Ok(Outcome { images, warnings, deferred: deferred.used()?, modules })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_targets_are_compiled_for_at_a_time_as_there_are_slots() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        use std::time::{Duration, Instant};

        for n_tokens in 0..2 {
            let slots = Slots::OfCargo(jobserver::Client::new(n_tokens).unwrap());
            let (n_running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let outcomes = in_slots(&slots, &[1, 2, 3], |number| {
                most.fetch_max(1 + n_running.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                // With a token the first two go on when both have begun.
                let began = Instant::now();
                while n_tokens == 1 && *number < 3 && most.load(Ordering::SeqCst) < 2 {
                    assert!(began.elapsed() < Duration::from_secs(60), "{number} is alone");
                    thread::yield_now();
                }
                n_running.fetch_sub(1, Ordering::SeqCst);
                if *number == 2 { Err(Failure::new("second")) } else { Ok(10 * number) }
            });
            assert_eq!(outcomes, [Ok(10), Err(Failure::new("second")), Ok(30)]);
            assert_eq!(most.into_inner(), 1 + n_tokens);
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
