//! Compiles each kernel in a copy of this process. LLVM ends the process on some code, and then one kernel is lost and not the image.
//!
//! The copy has the bitcode of all kernels in memory, and reads what its own kernel needs of it. Invariants: as many copies run at a time
//! as cargo gives tokens for. The result does not depend on which copy compiles what, and when. This process itself compiles no kernel.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use oxisycl_compiler::{CompileError, Isolation, Job};
use serde::{Deserialize, Serialize};

use super::deferred::DeferredCrates;
use super::progress::{Lines, Progress};
use super::slots::{Slot, Slots};
use crate::files::temporary_name;

/// Most bytes that are reported of a compilation's output before it ended.
const MAX_LAST_WORDS: usize = 600;

/// The most processor time that a kernel may take, in seconds: far more than any does that its size did not refuse. What is slow here may be
/// fast elsewhere, so that what comes of it is not kept.
const MAX_SECONDS: u64 = 600;
/// Begins what is said of a kernel that takes more.
pub(super) const TOO_SLOW: &str = "the device compiler was stopped on it";

/// Compiles kernels in copies of this process.
pub(crate) struct Processes<'a, 'd> {
    folder: &'a Path,
    /// A copy may find that it needs more of them, and says so.
    deferred: &'a RefCell<DeferredCrates<'d>>,
    slots: Slots,
    progress: Option<Lines<'a>>,
    /// What runs now.
    jobs: String,
}

/// What a copy found out beside the bytes.
#[derive(Serialize, Deserialize)]
struct Notes {
    error: Option<String>,
    deferred: Vec<usize>,
    failed: Vec<usize>,
    warnings: Vec<String>,
}

struct Running {
    number: usize,
    answer: PathBuf,
    messages: PathBuf,
    _slot: Slot,
}

impl<'a, 'd> Processes<'a, 'd> {
    /// Copies that leave files in the folder while they run.
    pub(crate) fn new(
        folder: &'a Path,
        deferred: &'a RefCell<DeferredCrates<'d>>,
        progress: Option<&'a Progress>,
    ) -> Self {
        Self { folder, deferred, slots: Slots::of_build(), progress: progress.map(Lines::new), jobs: String::new() }
    }

    fn start(&self, number: usize, slot: Slot, job: &mut Job<'_>) -> io::Result<(libc::pid_t, Running)> {
        let file = |name: &str| temporary_name(&self.folder.join(name));
        let running = Running { number, answer: file("answer"), messages: file("messages"), _slot: slot };
        // SAFETY: this process has one thread, which `run` has checked, so that the copy finds no lock taken by a thread that it lacks.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => self.be_copy(&running, job),
            process => Ok((process, running)),
        }
    }

    /// What a copy does.
    fn be_copy(&self, running: &Running, job: &mut Job<'_>) -> ! {
        let compile = || -> io::Result<()> {
            redirect_errors(&running.messages)?;
            leave_no_core();
            limit_time();
            let result = job(running.number);
            let (error, bytes) = match result {
                Ok(bytes) => (None, bytes),
                Err(error) => (Some(error.to_string()), Vec::new()),
            };
            let deferred = self.deferred.borrow();
            let notes = Notes {
                error,
                deferred: deferred.used_positions().to_vec(),
                failed: deferred.failed_positions().to_vec(),
                warnings: deferred.warnings.clone(),
            };
            let notes = serde_json::to_vec(&notes)?;
            fs::write(&running.answer, [&(notes.len() as u64).to_le_bytes(), &*notes, &*bytes].concat())
        };
        let status = match catch_unwind(AssertUnwindSafe(compile)) {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => {
                eprintln!("{}: {error}", running.answer.display());
                1
            }
            Err(_) => 101,
        };
        // SAFETY: ends the copy. What the end of a process runs otherwise is for the original to do.
        unsafe { libc::_exit(status) }
    }

    /// What a copy that has ended left.
    fn finish(&self, running: &Running, status: ExitStatus) -> Result<Vec<u8>, String> {
        let (answer, messages) = (fs::read(&running.answer), fs::read(&running.messages));
        for path in [&running.answer, &running.messages] {
            let _ = fs::remove_file(path);
        }
        if !status.success() {
            return Err(death(status, &String::from_utf8_lossy(&messages.unwrap_or_default())));
        }
        let answer = answer.map_err(|error| format!("the compilation's answer is missing: {error}"))?;
        let (notes, bytes) = parse(&answer).ok_or("the compilation's answer is damaged")?;
        self.deferred.borrow_mut().add(&notes.deferred, &notes.failed, notes.warnings);
        match notes.error {
            Some(error) => Err(error),
            None => Ok(bytes.to_vec()),
        }
    }
}

impl Isolation for Processes<'_, '_> {
    fn is_separate(&self) -> bool {
        true
    }

    fn announce(&mut self, jobs: &str) {
        jobs.clone_into(&mut self.jobs);
    }

    fn run(&mut self, n_jobs: usize, job: &mut Job<'_>) -> Result<Vec<Result<Vec<u8>, String>>, CompileError> {
        let failed = |what: &str, error: io::Error| CompileError::Isolation(format!("{what}: {error}"));
        if let Some(n_threads) = n_threads().filter(|n_threads| *n_threads != 1) {
            return Err(CompileError::Isolation(format!("the compiler has {n_threads} threads, expected 1")));
        }
        self.deferred.borrow_mut().prepare();
        give_memory_back();
        let mut results: Vec<Option<Result<Vec<u8>, String>>> = Vec::new();
        results.resize_with(n_jobs, || None);
        let mut running = HashMap::new();
        let (mut next, mut n_ended) = (0, 0);
        loop {
            while next < n_jobs
                && let Some(slot) = self.slots.take(running.len())
            {
                running.extend([self.start(next, slot, job).map_err(|error| failed("fork", error))?]);
                next += 1;
            }
            if running.is_empty() {
                break;
            }
            let (process, status) = wait().map_err(|error| failed("wait", error))?;
            if let Some(ended) = running.remove(&process) {
                results[ended.number] = Some(self.finish(&ended, status));
                n_ended += 1;
                if let Some(lines) = &mut self.progress {
                    lines.ended(&self.jobs, n_ended, n_jobs);
                }
            }
        }
        Ok(results.into_iter().flatten().collect())
    }
}

/// How many threads this process has, where the system tells.
fn n_threads() -> Option<usize> {
    fs::read_dir("/proc/self/task").ok().map(Iterator::count)
}

/// Gives the system what the allocator keeps of memory that was freed: each copy would have a part in it.
fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: only touches unallocated memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Sends this process's errors to a file.
fn redirect_errors(path: &Path) -> io::Result<()> {
    let file = File::create(path)?;
    // SAFETY: two descriptors that are open; the second one becomes another name of the first.
    if unsafe { libc::dup2(file.as_raw_fd(), libc::STDERR_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The end of a copy is a diagnostic, not something to look into.
fn leave_no_core() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a complete structure. If it fails, there is a file too many.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
}

/// Ends this process when it has used the time that a kernel may take.
fn limit_time() {
    let limit = libc::rlimit { rlim_cur: MAX_SECONDS, rlim_max: MAX_SECONDS + 5 };
    // SAFETY: a complete structure. If it fails, there is a guard less.
    unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const limit) };
}

/// Waits for the end of any copy.
fn wait() -> io::Result<(libc::pid_t, ExitStatus)> {
    loop {
        let mut status = 0;
        // SAFETY: the address of a number.
        let process = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        match io::Error::last_os_error() {
            _ if process > 0 => return Ok((process, ExitStatus::from_raw(status))),
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
}

fn parse(answer: &[u8]) -> Option<(Notes, &[u8])> {
    let (length, rest) = answer.split_first_chunk()?;
    let (notes, bytes) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((serde_json::from_slice(notes).ok()?, bytes))
}

/// Why a kernel has no code, from what its compilation said last.
fn death(status: ExitStatus, messages: &str) -> String {
    let words = last_words(messages);
    let words = if words.is_empty() { String::new() } else { format!(": {words}") };
    match status.signal() {
        Some(libc::SIGXCPU) => format!("{TOO_SLOW} after {MAX_SECONDS} s of processor time, the limit for a kernel"),
        Some(signal) => format!("the code generator ended with signal {signal}{words}"),
        None => format!("the compiler failed on it{words}"),
    }
}

/// The messages in one line, the same in every run: without addresses, and without what LLVM asks for its developers.
fn last_words(messages: &str) -> String {
    let lines = messages.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.take_while(|line| !line.starts_with("PLEASE submit") && !line.starts_with("Stack dump"));
    let text = lines.collect::<Vec<_>>().join(" ");
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(' ') {
        words.push(if word.starts_with("0x") { "_" } else { word });
    }
    let mut text = words.join(" ");
    if let Some((end, _)) = text.char_indices().nth(MAX_LAST_WORDS) {
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_whose_compilation_died_is_told_by_its_last_words() {
        let words = "LLVM ERROR: Cannot select: 0x7f01: f128 = fadd 0x7f02, 0x7f03\n  0x7f02: f128 = load\nPLEASE submit a bug report to x\nStack dump:\n0. a\n";
        assert_eq!(
            death(ExitStatus::from_raw(6), words),
            "the code generator ended with signal 6: LLVM ERROR: Cannot select: _ f128 = fadd _ _ _ f128 = load"
        );
        assert_eq!(death(ExitStatus::from_raw(101 << 8), "panicked"), "the compiler failed on it: panicked");
        assert_eq!(
            death(ExitStatus::from_raw(libc::SIGXCPU), ""),
            "the device compiler was stopped on it after 600 s of processor time, the limit for a kernel"
        );
        assert_eq!(death(ExitStatus::from_raw(9), ""), "the code generator ended with signal 9");
        assert!(last_words(&"word ".repeat(1000)).len() < MAX_LAST_WORDS + 10);
    }

    #[test]
    fn a_damaged_answer_is_none() {
        let notes = Notes { error: None, deferred: vec![3], failed: vec![4], warnings: Vec::new() };
        let notes = serde_json::to_vec(&notes).unwrap();
        let answer = [&(notes.len() as u64).to_le_bytes(), &*notes, b"bytes"].concat();
        let (read, bytes) = parse(&answer).unwrap();
        assert_eq!((read.deferred, read.failed, bytes), (vec![3], vec![4], &b"bytes"[..]));
        for length in 0..8 + notes.len() {
            assert!(parse(&answer[..length]).is_none(), "{length} bytes");
        }
    }
}
