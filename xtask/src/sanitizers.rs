//! `cargo xtask asan` and `cargo xtask tsan`: tests under AddressSanitizer and ThreadSanitizer, each in a build of its own. They are those
//! of the runtime and the host backend, and the conformance suite.
//!
//! The standard library is built with the sanitizer, too: what ThreadSanitizer does not see of locks and channels it would report as races.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::conformance;
use crate::counts::Counts;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{Captured, has_nightly, has_nightly_sources, nightly_cargo, run_captured};
use crate::suites::count;
use crate::workspace::Workspace;

/// The sanitizers need the target to be named, so that build scripts and macros stay without them.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// What runs beside the conformance suite.
const SUITES: &[(&str, &[&str])] = &[
    ("runtime", &["-p", "oxisycl-runtime", "--lib", "--tests"]),
    ("host backend", &["-p", "oxisycl-backend-host", "--lib"]),
    ("waiting work-items", &["-p", "oxisycl", "--test", "waiting"]),
];
/// The kinds of device that the conformance suite runs on.
const DEVICES: &[&str] = &["host", "simulated", "apart"];
/// Threads of the host device: more than small machines have processors, so that they are interrupted anywhere.
const HOST_THREADS: &str = "4";

/// What is leaked by right: functions on the stack of the allocation, each with the reason.
const LEAKS: &[(&str, &str)] = &[
    ("khrIcdVendorAdd", "the loader of OpenCL drivers keeps its list until the process ends"),
    (
        "oxisycl_backend_opencl::process_exit",
        "at the end of the process devices are not given back: drivers must not be called any more",
    ),
    ("oxisycl_backend_host::pool::Pool>::leak", "a pool is never freed: tasks refer to it without counting"),
    ("a_forgotten_borrow_writes_nothing_back", "the test forgets a buffer"),
    ("a_forgotten_item_and_a_deep_stack_are_no_harm", "the test's work-items forget boxes"),
    (
        "one_of_two_units_with_an_image_is_unloaded_while_the_other_launches",
        "the test leaks its fixture, which has to stay if a thread hangs",
    ),
    ("a_launch_between_barriers_is_refused", "the test leaks its queue, so that a kernel may use it"),
    ("a_work_item_that_has_waited_starts_and_awaits_nothing", "the test leaks what a kernel is to use"),
    ("any_payload_is_survived", "a payload of the test's panics while it is dropped"),
];

/// A sanitizer of the compiler.
struct Sanitizer {
    /// What `-Zsanitizer` calls it.
    name: &'static str,
    /// The folder of its build, below the target directory.
    folder: &'static str,
    /// Whether it has to know where work-items change stacks, which the host backend then says.
    sees_stacks: bool,
}

const ADDRESS: Sanitizer = Sanitizer { name: "address", folder: "asan", sees_stacks: true };
const THREAD: Sanitizer = Sanitizer { name: "thread", folder: "tsan", sees_stacks: false };

/// `cargo xtask asan`.
pub(crate) fn address(workspace: &Workspace) -> Result<Outcome> {
    ADDRESS.run(workspace)
}

/// `cargo xtask tsan`.
pub(crate) fn thread(workspace: &Workspace) -> Result<Outcome> {
    THREAD.run(workspace)
}

impl Sanitizer {
    fn run(&self, workspace: &Workspace) -> Result<Outcome> {
        if let Some(reason) = missing(workspace) {
            return Ok(Outcome::Skipped(reason));
        }
        let mut notes = Vec::new();
        for (name, arguments) in SUITES {
            let mut command = self.cargo_test(workspace)?;
            command.args(*arguments).arg("--no-fail-fast");
            let counts = count(unreported(run_captured(&mut command)?)?, Counts::of_cargo_test, 1)?;
            notes.push(format!("{name}: {} tests", counts.passed));
        }
        for device in DEVICES {
            let mut command = self.cargo_test(workspace)?;
            command.args(["-p", conformance::PACKAGE, "--test", conformance::TEST, "--", "--device", device]);
            match conformance::check(&unreported(run_captured(&mut command)?)?)? {
                Outcome::Passed(note) | Outcome::Skipped(note) | Outcome::Late(note) => {
                    notes.push(format!("{device}: {note}"))
                }
            }
        }
        Ok(Outcome::Passed(notes.join(", ")))
    }

    /// `cargo test` with this sanitizer in everything that the tests link.
    fn cargo_test(&self, workspace: &Workspace) -> Result<Command> {
        let mut command = nightly_cargo(workspace);
        let stacks = if self.sees_stacks { " --cfg oxisycl_fibers" } else { "" };
        command.args(["test", "--release", "-Zbuild-std", "--target", TARGET]);
        command
            // With frame pointers the stacks of leaks are whole.
            .env("RUSTFLAGS", format!("-Zsanitizer={} -Cforce-frame-pointers=yes{stacks}", self.name))
            .env("LSAN_OPTIONS", format!("suppressions={}", self.suppressions(workspace)?.display()))
            // Otherwise each stack of a work-item that waits leaves memory behind, until the system has no more of it. Rust's threads have a stack
            // for signals already, which the sanitizer would give back as its own. On processors with large registers that fails.
            // Tests ask for more memory than there is, and look at the error.
            .env("ASAN_OPTIONS", "detect_stack_use_after_return=0:use_sigaltstack=0:allocator_may_return_null=1")
            .env("TSAN_OPTIONS", "allocator_may_return_null=1")
            // The lines that reports name.
            .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only")
            .env("CARGO_TARGET_DIR", workspace.target_directory.join(self.folder))
            .env("OXISYCL_HOST_THREADS", HOST_THREADS);
        Ok(command)
    }

    /// The file that tells the leak checker what is leaked by right.
    fn suppressions(&self, workspace: &Workspace) -> Result<PathBuf> {
        let folder = workspace.target_directory.join(self.folder);
        let path = folder.join("leaks.txt");
        let lines: String = LEAKS.iter().map(|(function, _)| format!("leak:{function}\n")).collect();
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&path, lines))
            .map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))?;
        Ok(path)
    }
}

/// The run, if no sanitizer reported anything: a test with a race may pass all the same.
fn unreported(captured: Captured) -> Result<Captured> {
    let output = captured.output();
    let mut reports: Vec<String> = Vec::new();
    for report in output.lines().filter(|line| line.starts_with("SUMMARY: ")) {
        if !reports.iter().any(|known| known == report) {
            reports.push(report.to_owned());
        }
    }
    match reports.len() {
        0 => Ok(captured),
        _ => Err(Failure { message: format!("`{}`: the sanitizer has reports", captured.line), findings: reports }),
    }
}

/// What this machine lacks.
fn missing(workspace: &Workspace) -> Option<String> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        Some(format!("only {TARGET} is set up for it"))
    } else if !has_nightly(workspace, &["--version"]) {
        Some("no nightly toolchain".to_owned())
    } else if !has_nightly_sources(workspace) {
        Some("no sources of the nightly standard library (`rustup +nightly component add rust-src`)".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(stderr: &str) -> Captured {
        let stdout = "test result: ok. 3 passed; 0 failed; 0 ignored\n".to_owned();
        Captured { stdout, stderr: stderr.to_owned(), success: true, line: "cargo test".to_owned() }
    }

    #[test]
    fn a_report_fails_a_run_whose_tests_passed() {
        assert!(unreported(captured("warning: unused\n")).is_ok());
        let race = "SUMMARY: ThreadSanitizer: data race src/lib.rs:3 in f\n";
        let failure = unreported(captured(&format!("WARNING: ThreadSanitizer\n{race}=====\n{race}"))).unwrap_err();
        assert_eq!(failure.findings, [race.trim_end()], "each once");
    }
}
