//! Suites with kernels on a real driver of OpenCL, Intel's for CPUs: the kernels of ordinary code, random ones, the conformance suite with its
//! panics, and the accuracy of mathematics.
//!
//! Builds them with `cargo sycl` for SPIR-V, has `spirv-val` look at each module, and runs the programs. Invariants: each suite must report
//! about as many tests as there were when it was listed here, all of them passed, and on a device of OpenCL; kernels that such devices
//! cannot run are listed by the suite itself, with the reason. Nothing else is left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::conformance;
use crate::counts::Counts;
use crate::opencl;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, Captured, cargo, command};
use crate::suites;
use crate::workspace::Workspace;

/// One program of tests.
struct Suite {
    package: &'static str,
    test: &'static str,
    arguments: &'static [&'static str],
    /// The devices that the program sees, as `OXISYCL_DEVICE_SELECTOR` names them.
    devices: &'static str,
    counting: Counting,
    /// The fewest tests.
    fewest: usize,
    /// The fewest kernels with code.
    fewest_modules: usize,
}

/// How tests are read from what a program prints.
#[derive(Clone, Copy)]
enum Counting {
    /// A line for each, with the device, and their number at the end.
    Lines,
    /// As Rust's test harness tells them. The program sees one device, and fails where it cannot use it.
    Harness,
}

const DEVICE: &[&str] = &["--device", "opencl"];
/// Other devices have stages of their own.
const ALONE: &str = "opencl:0";

/// The longest that a suite may run; the longest takes a few minutes. A driver that hangs must not hang the run.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Those that take longest stand first.
const SUITES: &[Suite] = &[
    Suite {
        package: conformance::PACKAGE,
        test: conformance::TEST,
        arguments: DEVICE,
        // One test looks at the host device's memory.
        devices: "opencl:0; host:0",
        counting: Counting::Lines,
        fewest: 580,
        fewest_modules: 630,
    },
    Suite {
        package: "oxisycl-kernel-suite",
        test: "kernels",
        arguments: DEVICE,
        devices: ALONE,
        counting: Counting::Lines,
        fewest: 170,
        fewest_modules: 170,
    },
    Suite {
        package: conformance::PACKAGE,
        test: "math",
        // Each test keeps all processors busy.
        arguments: &["--nocapture", "--test-threads", "1"],
        devices: ALONE,
        counting: Counting::Harness,
        fewest: 28,
        fewest_modules: 340,
    },
    Suite {
        package: "oxisycl-kernel-suite",
        test: "fuzz",
        arguments: DEVICE,
        devices: ALONE,
        counting: Counting::Lines,
        fewest: 48,
        fewest_modules: 48,
    },
];

/// Builds, validates and runs.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if opencl::environment(workspace).is_none() {
        return Ok(Outcome::Skipped(format!("no {}: `cargo xtask test` installs them", opencl::NAME)));
    }
    let programs = build(workspace)?;
    let suites: Vec<(&Suite, PathBuf)> = SUITES.iter().zip(programs).collect();
    let notes = Mutex::new(Vec::new());
    // The driver compiles one kernel at a time in each process, which takes most of the time.
    let findings = in_parallel(&suites, |(suite, program)| {
        let note = check(workspace, suite, program).map_err(|failure| format!("{}: {failure}", suite.test))?;
        notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        Ok(())
    });
    Failure::unless_empty("fault of a suite on OpenCL", findings)?;
    let mut notes = notes.into_inner().unwrap_or_else(PoisonError::into_inner);
    notes.sort();
    Ok(Outcome::Passed(notes.join(", ")))
}

/// One suite: its modules, then itself.
fn check(workspace: &Workspace, suite: &Suite, program: &Path) -> Result<String> {
    let n_modules = validate(workspace, suite, program)?;
    let folder = &workspace.require(suite.package)?.directory;
    let mut command = command(workspace, &program.as_os_str().to_owned());
    // In the package's folder, as cargo runs tests.
    command.current_dir(folder).args(suite.arguments).env("OXISYCL_DEVICE_SELECTOR", suite.devices);
    let captured = process::run_within(&mut command, LIMIT)?;
    // At once, since others run beside it.
    println!("$ {}\n{}", captured.line, captured.stdout);
    let n_tests = match suite.counting {
        Counting::Lines => count(&captured),
        Counting::Harness => count_of_harness(captured),
    }?;
    enough("tests", n_tests, suite.fewest)?;
    Ok(format!("{} {n_tests} with {n_modules} modules", suite.test))
}

fn enough(what: &str, found: usize, fewest: usize) -> Result<()> {
    if found < fewest { Err(Failure::new(format!("{found} {what}, at least {fewest} expected"))) } else { Ok(()) }
}

/// Builds all suites at once, and gives their programs in the order of the list.
fn build(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let mut command = cargo(workspace);
    command.args(["sycl", "test", "--no-run", "--targets", "spirv", "--message-format", "json-render-diagnostics"]);
    for suite in SUITES {
        command.args(["-p", suite.package, "--test", suite.test]);
    }
    let messages = process::run_for_output(&mut command)?.succeeded()?.stdout;
    let messages: Vec<Value> = messages.lines().filter_map(|line| line.parse().ok()).collect();
    SUITES
        .iter()
        .map(|suite| {
            let is_of_suite =
                |message: &&Value| message["target"]["name"] == suite.test && message["target"]["kind"][0] == "test";
            let built = messages.iter().filter(is_of_suite).find_map(|message| message["executable"].as_str());
            built.map(PathBuf::from).ok_or_else(|| Failure::new(format!("cargo built no test {}", suite.test)))
        })
        .collect()
}

/// Has `spirv-val` look at the modules of a program, several at a time. Gives their number.
fn validate(workspace: &Workspace, suite: &Suite, program: &Path) -> Result<usize> {
    let folder = workspace.target_directory.join("spirv").join(suite.test);
    let failure = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failure)?;
    }
    let mut inspect = cargo(workspace);
    inspect.args(["sycl", "inspect"]).arg(program).args(["--emit", "spirv", "--out"]).arg(&folder);
    process::run_quietly(&mut inspect)?.succeeded()?;
    let entries = fs::read_dir(&folder).map_err(failure)?;
    let mut modules: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    modules.sort();
    enough("modules", modules.len(), suite.fewest_modules)?;
    Failure::unless_empty(
        "module that spirv-val refuses",
        in_parallel(&modules, |module| validate_one(workspace, module)),
    )?;
    let nonsense = folder.join("nonsense.spv");
    fs::write(&nonsense, b"\x03\x02\x23\x07nonsense").map_err(failure)?;
    if validate_one(workspace, &nonsense).is_ok() {
        return Err(Failure::new("spirv-val takes what is no module"));
    }
    Ok(modules.len())
}

fn validate_one(workspace: &Workspace, module: &Path) -> Result<(), String> {
    let mut command = command(workspace, &"spirv-val".into());
    let captured = process::run_quietly(command.args(["--target-env", "spv1.3"]).arg(module));
    let captured = captured.map_err(|failure| failure.message)?;
    if captured.success { Ok(()) } else { Err(format!("{}: {}", module.display(), captured.output().trim())) }
}

/// What was found wrong with some of many, in their order. As many are looked at at a time as there are processors.
fn in_parallel<T: Sync>(all: &[T], check: impl Fn(&T) -> Result<(), String> + Sync) -> Vec<String> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(position) else { break };
                    if let Err(message) = check(one) {
                        found.lock().unwrap_or_else(PoisonError::into_inner).push((position, message));
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort();
    found.into_iter().map(|(_, message)| message).collect()
}

/// Tests of a suite that prints a line for each and closes with their number.
fn count(captured: &Captured) -> Result<usize> {
    conformance::check(captured)?;
    let on_device = captured.stdout.lines().filter(|line| line.starts_with("opencl") && line.ends_with(" ... ok"));
    Ok(on_device.count())
}

/// Tests of a program with Rust's test harness.
fn count_of_harness(captured: Captured) -> Result<usize> {
    let Counts { passed, .. } = suites::count(captured, Counts::of_cargo_test, 1)?;
    Ok(passed as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(stdout: &str, success: bool) -> Captured {
        Captured { stdout: stdout.to_owned(), stderr: String::new(), success, line: "suite".to_owned() }
    }

    #[test]
    fn tests_count_only_if_they_ran_on_the_device() {
        let output = "opencl:0 a::b ... ok\nopencl a::c ... ok\nhost:0 a::b ... ok\nopencl:0 a::d ... skipped (why)\n";
        let closed = |closing: &str| count(&captured(&(output.to_owned() + closing), true));
        assert_eq!(closed("3 passed, 0 failed\n"), Ok(2));
        assert!(closed("3 passed, 1 failed\n").is_err() && closed("").is_err());
        assert!(count(&captured("1 passed, 0 failed\n", false)).is_err());
    }

    #[test]
    fn tests_of_rusts_harness_count_only_if_none_failed() {
        let closed = |closing: &str, success| count_of_harness(captured(closing, success));
        assert_eq!(closed("test a ... ok\ntest result: ok. 21 passed; 0 failed;\n", true), Ok(21));
        assert!(closed("test result: FAILED. 20 passed; 1 failed;\n", false).is_err());
        assert!(closed("test result: ok. 0 passed; 0 failed;\n", true).is_err());
    }

    #[test]
    fn too_few_are_a_failure_that_says_how_many() {
        assert_eq!(enough("tests", 5, 5), Ok(()));
        assert_eq!(enough("tests", 4, 5).unwrap_err().message, "4 tests, at least 5 expected");
    }

    #[test]
    fn what_is_wrong_with_several_is_told_in_their_order() {
        let numbers: Vec<u32> = (0..100).collect();
        let odd = |number: &u32| if number % 2 == 1 { Err(number.to_string()) } else { Ok(()) };
        let expected: Vec<String> = (0..50).map(|half| (2 * half + 1).to_string()).collect();
        assert_eq!(in_parallel(&numbers, odd), expected);
    }
}
