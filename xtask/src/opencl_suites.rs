//! Suites with kernels on a real OpenCL driver, Intel's for CPUs. They are the kernels of ordinary code, and random ones. The conformance suite with its
//! panics, and the accuracy of mathematics, are stages of their own.
//!
//! Has `spirv-val` look at each module, and runs the programs. The modules of the examples and
//! benchmarks are looked at as well; those programs have stages of their own. Invariants: each suite must report about as many tests as
//! there were when it was listed here. All of them must have passed, and on an OpenCL device. Kernels that such devices cannot run are
//! listed by the suite itself, with the reason. Each program has about as many modules as there were. Nothing else is left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::conformance;
use crate::counts::Counts;
use crate::device_programs;
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
    /// The fewest kernels with code; 0 for a program that another suite has looked at.
    fewest_modules: usize,
}

/// How tests are read from what a program prints.
#[derive(Clone, Copy)]
enum Counting {
    /// Tests whose lines name the device.
    Lines,
    /// All tests. The program sees one device, and fails where it cannot use it.
    Harness,
}

const DEVICE: &[&str] = &["--device", "opencl"];
/// Other devices have stages of their own.
const ALONE: &str = "opencl:0";

/// The tests of the conformance suite in the area with the most kernels.
const GROUPS: &str = " group::";

/// Examples that are run on the driver as well. Each compares its results with what they must be.
const RUN: &[&str] =
    &["14_tiled_gemm", "15_stencil", "16_histogram", "17_bitonic_sort", "18_block_scan", "19_reduction"];

/// The longest that a suite may run; the longest takes a few minutes. A driver that hangs must not hang the run.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// The conformance suite, a stage of its own. In two parts, since the driver compiles one kernel at a time in each process. Both load all kernels before
/// their first test. In different orders, so that each finds in the cache what the other one has compiled.
const CONFORMANCE: &[Suite] = &[
    Suite {
        package: conformance::PACKAGE,
        test: conformance::TEST,
        arguments: &["--device", "opencl", "--skip", GROUPS],
        // One test looks at the host device's memory.
        devices: "opencl:0; host:0",
        counting: Counting::Lines,
        fewest: 850,
        fewest_modules: 630,
    },
    Suite {
        package: conformance::PACKAGE,
        test: conformance::TEST,
        arguments: &["--device", "opencl", "--last-first", GROUPS],
        devices: "opencl:0; host:0",
        counting: Counting::Lines,
        fewest: 100,
        // Those of the other part.
        fewest_modules: 0,
    },
];

/// The kernels of ordinary code, and random ones.
const KERNELS: &[Suite] = &[
    Suite {
        package: "oxisycl-kernel-suite",
        test: "kernels",
        arguments: DEVICE,
        devices: ALONE,
        counting: Counting::Lines,
        fewest: 186,
        fewest_modules: 210,
    },
    Suite {
        package: "oxisycl-kernel-suite",
        test: "fuzz",
        arguments: DEVICE,
        devices: ALONE,
        counting: Counting::Lines,
        fewest: 64,
        fewest_modules: 64,
    },
];

/// The accuracy of mathematics, a stage of its own.
const MATH: Suite = Suite {
    package: conformance::PACKAGE,
    test: "math",
    // Each test keeps all processors busy.
    arguments: &["--nocapture", "--test-threads", "1"],
    devices: ALONE,
    counting: Counting::Harness,
    fewest: 28,
    fewest_modules: 340,
};

/// The package's programs with kernels, by kind and name, and the fewest kernels with code. A program that is not listed is a failure.
const FEWEST: &[(&str, &str, usize)] = &[
    ("bench", "gpu", 16),
    ("bench", "groups", 5),
    ("bench", "host", 20),
    ("bench", "images", 11),
    ("bench", "opencl", 12),
    // Another one lets other threads run while it spins, which only the host has.
    ("bench", "runtime", 20),
    ("example", "01_hello", 1),
    ("example", "02_buffers_and_views", 2),
    ("example", "03_chunks_dot", 3),
    ("example", "04_two_devices", 2),
    ("example", "05_usm", 1),
    ("example", "06_host_task_and_events", 2),
    ("example", "07_atomics", 1),
    ("example", "08_ndarray", 1),
    ("example", "09_nalgebra", 1),
    ("example", "10_image", 1),
    ("example", "11_half", 1),
    ("example", "12_num_complex", 1),
    ("example", "13_glam", 1),
    ("example", "14_tiled_gemm", 1),
    ("example", "15_stencil", 1),
    ("example", "16_histogram", 1),
    ("example", "17_bitonic_sort", 1),
    ("example", "18_block_scan", 2),
    ("example", "19_reduction", 1),
    ("example", "20_cublas", 2),
    ("example", "21_ray_march", 1),
    ("example", "22_optical_flow", 5),
    ("example", "resize", 3),
    ("example", "tour", 7),
];

/// Builds, validates and runs [`KERNELS`] and some examples.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if opencl::environment(workspace).is_none() {
        return Ok(no_driver());
    }
    let n_others = validate_others(workspace)?;
    run_examples(workspace)?;
    let mut notes = run_suites(workspace, KERNELS)?;
    notes.push(format!("examples and benchmarks with {n_others} modules, {} examples run", RUN.len()));
    Ok(Outcome::Passed(notes.join(", ")))
}

/// Builds, validates and runs [`CONFORMANCE`].
pub(crate) fn conformance(workspace: &Workspace) -> Result<Outcome> {
    if opencl::environment(workspace).is_none() {
        return Ok(no_driver());
    }
    Ok(Outcome::Passed(run_suites(workspace, CONFORMANCE)?.join(", ")))
}

fn no_driver() -> Outcome {
    Outcome::Skipped(format!("no {}: `cargo xtask test` installs them", opencl::NAME))
}

/// Builds, validates and runs suites, several at a time. Gives what ran, sorted.
fn run_suites(workspace: &Workspace, suites: &[Suite]) -> Result<Vec<String>> {
    let programs = suites.iter().map(|suite| device_programs::named(workspace, "test", suite.test));
    let programs: Vec<(&Suite, PathBuf)> = suites.iter().zip(programs.collect::<Result<Vec<_>>>()?).collect();
    let notes = Mutex::new(Vec::new());
    // The driver compiles one kernel at a time in each process, which takes most of the time.
    let findings = in_parallel(&programs, |(suite, program)| {
        let note = check(workspace, suite, program).map_err(|failure| format!("{}: {failure}", suite.test))?;
        notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        Ok(())
    });
    Failure::unless_empty("fault of a suite on OpenCL", findings)?;
    let mut notes = notes.into_inner().unwrap_or_else(PoisonError::into_inner);
    notes.sort();
    Ok(notes)
}

/// The suites with a `main` of their own on the host, from the same build, except the conformance suite, which has stages of its own.
pub(crate) fn on_host(workspace: &Workspace) -> Result<Outcome> {
    let mut notes = Vec::new();
    for (package, test) in device_programs::BARE_TESTS.into_iter().filter(|(_, test)| *test != conformance::TEST) {
        let program = device_programs::named(workspace, "test", test)?;
        let mut command = command(workspace, &program.into_os_string());
        command.current_dir(&workspace.require(package)?.directory).args(["--device", "host"]);
        let captured = process::run_within(&mut command, LIMIT)?;
        process::show(&captured);
        conformance::check(&captured)?;
        let fewest = KERNELS.iter().find(|suite| suite.test == test).map_or(1, |suite| suite.fewest);
        let n_tests = count_on(&captured, "host");
        enough("tests", n_tests, fewest)?;
        notes.push(format!("{test} {n_tests}"));
    }
    Ok(Outcome::Passed(notes.join(", ")))
}

/// [`MATH`]: builds, validates and runs it.
pub(crate) fn math(workspace: &Workspace) -> Result<Outcome> {
    if opencl::environment(workspace).is_none() {
        return Ok(no_driver());
    }
    let program = device_programs::math(workspace)?;
    check(workspace, &MATH, &program).map(Outcome::Passed)
}

/// One suite: its modules, then itself.
fn check(workspace: &Workspace, suite: &Suite, program: &Path) -> Result<String> {
    let n_modules = if suite.fewest_modules == 0 { 0 } else { validate(workspace, suite.test, program)? };
    enough("modules", n_modules, suite.fewest_modules)?;
    let folder = &workspace.require(suite.package)?.directory;
    let mut command = command(workspace, &program.as_os_str().to_owned());
    // In the package's folder, as cargo runs tests.
    command.current_dir(folder).args(suite.arguments).env("OXISYCL_DEVICE_SELECTOR", suite.devices);
    // The limit for one kernel is for users. A busy machine needs longer for kernels that print.
    command.env("OXISYCL_COMPILE_LIMIT", "600");
    let captured = process::run_within(&mut command, LIMIT)?;
    // At once, since others run beside it.
    process::show(&captured);
    let n_tests = match suite.counting {
        Counting::Lines => count(&captured),
        Counting::Harness => count_of_harness(captured),
    }?;
    enough("tests", n_tests, suite.fewest)?;
    Ok(format!("{} {n_tests} with {n_modules} modules", suite.test))
}

pub(crate) fn enough(what: &str, found: usize, fewest: usize) -> Result<()> {
    if found < fewest { Err(Failure::new(format!("{found} {what}, at least {fewest} expected"))) } else { Ok(()) }
}

/// Has `spirv-val` look at the modules of the examples and benchmarks. Gives the number of those.
fn validate_others(workspace: &Workspace) -> Result<usize> {
    let programs = device_programs::all(workspace)?.iter().filter(|(name, _)| !name.starts_with("test "));
    let counts = programs.map(|(name, program)| {
        let n_modules = validate(workspace, &name.replace(' ', "-"), program)?;
        Ok((name.clone(), n_modules))
    });
    let counts: BTreeMap<String, usize> = counts.collect::<Result<_>>()?;
    Failure::unless_empty("program with another number of modules than expected", unexpected(&counts))?;
    Ok(counts.values().sum())
}

/// Runs the examples of [`RUN`].
fn run_examples(workspace: &Workspace) -> Result<()> {
    for example in RUN {
        let program = device_programs::named(workspace, "example", example)?;
        let mut command = command(workspace, &program.into_os_string());
        command.env("OXISYCL_DEVICE_SELECTOR", ALONE).env("OXISYCL_COMPILE_LIMIT", "600");
        process::run_within(&mut command, LIMIT)?.succeeded()?;
    }
    Ok(())
}

/// Programs with fewer modules than there were, and programs with modules that are not listed.
fn unexpected(counts: &BTreeMap<String, usize>) -> Vec<String> {
    let fewest: BTreeMap<String, usize> =
        FEWEST.iter().map(|(kind, name, fewest)| (format!("{kind} {name}"), *fewest)).collect();
    let lacks = |(name, fewest): (&String, &usize)| {
        let found = counts.get(name).copied().unwrap_or_default();
        (found < *fewest).then(|| format!("{name}: {found} modules, at least {fewest} expected"))
    };
    let is_new = |(name, found): (&String, &usize)| {
        (*found > 0 && !fewest.contains_key(name)).then(|| format!("{name}: {found} modules, but it is not listed"))
    };
    fewest.iter().filter_map(lacks).chain(counts.iter().filter_map(is_new)).collect()
}

/// Has `spirv-val` look at the modules of a program, several at a time. Gives their number.
pub(crate) fn validate(workspace: &Workspace, name: &str, program: &Path) -> Result<usize> {
    let folder = workspace.target_directory.join("spirv").join(name);
    let failure = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failure)?;
    }
    let mut inspect = cargo(workspace);
    inspect.args(["sycl", "inspect"]).arg(program).args(["--target", "spirv", "--emit", "spirv", "--out"]).arg(&folder);
    process::run_quietly(&mut inspect)?.succeeded()?;
    if !folder.exists() {
        // It has no kernels.
        return Ok(0);
    }
    let entries = fs::read_dir(&folder).map_err(failure)?;
    let mut modules: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    modules.sort();
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
    Ok(count_on(captured, "opencl"))
}

/// Tests that passed on a kind of device.
pub(crate) fn count_on(captured: &Captured, device: &str) -> usize {
    let test = format!("test {device}");
    captured.stdout.lines().filter(|line| line.starts_with(&test) && line.ends_with(" ... ok")).count()
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
        let output = "test opencl:0 a::b ... ok\ntest opencl a::c   ... ok\ntest host:0 a::b ... ok\ntest opencl:0 a::d ... ignored (why)\n";
        let closed = |closing: &str| count(&captured(&(output.to_owned() + closing), true));
        assert_eq!(closed("test result: ok. 3 passed; 0 failed; 1 ignored\n"), Ok(2));
        assert!(closed("test result: FAILED. 3 passed; 1 failed\n").is_err() && closed("").is_err());
        assert!(count(&captured("test result: ok. 1 passed; 0 failed\n", false)).is_err());
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
    fn programs_that_lack_modules_and_programs_that_nobody_listed_are_told() {
        let mut counts: BTreeMap<String, usize> =
            FEWEST.iter().map(|(kind, name, fewest)| (format!("{kind} {name}"), *fewest)).collect();
        counts.insert("example ls".to_owned(), 0);
        assert_eq!(unexpected(&counts), Vec::<String>::new());
        counts.insert("example 08_new".to_owned(), 2);
        counts.insert("example tour".to_owned(), 1);
        counts.remove("bench opencl");
        let found = unexpected(&counts);
        let expected =
            ["bench opencl: 0 modules, at least ", "example tour: 1 modules, at least ", "example 08_new: 2 mod"];
        let agree = |(found, expected): (&String, &str)| found.starts_with(expected);
        assert!(found.len() == 3 && found.iter().zip(expected).all(agree), "{found:?}");
    }

    #[test]
    fn what_is_wrong_with_several_is_told_in_their_order() {
        let numbers: Vec<u32> = (0..100).collect();
        let odd = |number: &u32| if number % 2 == 1 { Err(number.to_string()) } else { Ok(()) };
        let expected: Vec<String> = (0..50).map(|half| (2 * half + 1).to_string()).collect();
        assert_eq!(in_parallel(&numbers, odd), expected);
    }
}
