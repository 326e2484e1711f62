//! The tests of all crates: unit, integration and documentation tests, and the facade's once more in release.
//!
//! Invariant: a run counts only if about as many tests ran as the sources hold; a run of no tests is a failure.
//! Tests with their own `main` know only at run time whether they apply to this machine. The test runner would count skipped ones as
//! passed. So they run one by one, and the tests that they ignored are counted. Those with kernels for devices have stages of their own; see
//! [`device_programs`]. Tests that Rust's harness ignores need a driver or a tool, and run where all of those are.

use crate::counts::{Counts, flaky_tests};
use crate::device_programs;
use crate::examples;
use crate::opencl;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{Captured, cargo, run_captured, succeeds};
use crate::ptxas;
use crate::workspace::{File, Workspace};

/// The share of the test functions in the sources that must run, in percent: a few need another system or feature.
const SHARE: u64 = 90;
/// The fewest documentation tests.
const FEWEST_DOC_TESTS: u64 = 300;

/// A test with its own `main`.
#[derive(Debug, PartialEq, Eq)]
struct BareTest {
    package: String,
    name: String,
}

/// All tests of the workspace in the development profile, but the documentation tests.
pub(crate) fn tests(workspace: &Workspace) -> Result<Outcome> {
    let mut bare = bare_tests(workspace)?;
    bare.retain(|test| !test.has_stages());
    let fewest = (test_functions(&workspace.files(&["rs"])?) * SHARE / 100).max(1);
    let mut flaky = Vec::new();
    let counts = if has_nextest(workspace) {
        let mut counts = run_nextest(workspace, &filter(&bare), fewest, &mut flaky)?;
        for test in &bare {
            let own = test.run(workspace)?;
            counts.passed += own.passed;
            counts.ignored += own.ignored;
        }
        counts
    } else {
        println!("  cargo-nextest is not installed: tests run without a time limit each");
        let mut command = cargo(workspace);
        command.args(["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]);
        command.args(["--features", &examples::features(workspace)?]);
        if has_all_needs(workspace) {
            command.args(["--", "--include-ignored"]);
        }
        count(run_captured(&mut command)?, Counts::of_cargo_test, fewest)?
    };
    Ok(Outcome::Passed(note_of(counts, &flaky)))
}

/// Tests of `cargo sycl` that build programs with all that they depend on, in several profiles, as nextest names them. The longest takes nine minutes of a slow
/// machine. A stage of their own, which comes last, and which CI leaves out where it is late.
const BUILDS: &str = "binary_id(=cargo-sycl::workspace) | binary_id(=cargo-sycl::code) & \
                      test(=native::native_code_stays_in_a_program_that_is_stripped_and_aborts)";
/// The fewest of them.
const FEWEST_BUILDS: u64 = 9;

/// The tests of [`BUILDS`].
pub(crate) fn builds(workspace: &Workspace) -> Result<Outcome> {
    if !has_nextest(workspace) {
        return Ok(Outcome::Passed("ran with the others, by `cargo test`".to_owned()));
    }
    let mut flaky = Vec::new();
    let counts = run_nextest(workspace, BUILDS, FEWEST_BUILDS, &mut flaky)?;
    Ok(Outcome::Passed(note_of(counts, &flaky)))
}

fn note_of(counts: Counts, flaky: &[String]) -> String {
    let Counts { passed, ignored, .. } = counts;
    let mut note = format!("{passed} tests, {ignored} ignored");
    if !flaky.is_empty() {
        note.push_str(&format!("; FLAKY, passed when repeated: {}", flaky.join(", ")));
    }
    note
}

/// The documentation tests. A stage of their own, so that one of them that fails has only these repeated.
pub(crate) fn doc_tests(workspace: &Workspace) -> Result<Outcome> {
    let mut command = cargo(workspace);
    command.args(["test", "--doc", "--workspace", "--no-fail-fast"]);
    let counts = count(run_captured(&mut command)?, Counts::of_cargo_test, FEWEST_DOC_TESTS)?;
    Ok(Outcome::Passed(format!("{} tests", counts.passed)))
}

/// Tests of the facade that race, drop, fail or generate programs, so that they go through unsafe code in many ways. Also `endurance`, which
/// submits a million commands in release, and a tenth of that otherwise.
const RELEASE: [&str; 10] =
    ["deadlocks", "endurance", "events", "failure", "faults", "model", "panics", "programs", "soundness", "storm"];
/// The test of CUDA's backend that launches a million kernels in release. Nothing else may allocate in its process.
const MANY_LAUNCHES: &str = "memory::many_launches_keep_no_memory";

/// [`RELEASE`] and [`MANY_LAUNCHES`], and the unit tests of the facade, the runtime and the host backend, in release: optimisation finds other
/// bugs in unsafe code.
/// What else there is looks at messages, settings and processes, which it does not change.
pub(crate) fn release(workspace: &Workspace) -> Result<Outcome> {
    let mut command = cargo(workspace);
    command.args([
        "test",
        "--release",
        "--no-fail-fast",
        "-p",
        "oxisycl-runtime",
        "-p",
        "oxisycl-backend-host",
        "--lib",
    ]);
    let mut counts = count(run_captured(&mut command)?, Counts::of_cargo_test, 1)?;

    let mut command = cargo(workspace);
    command.args(["test", "--release", "--no-fail-fast", "-p", "oxisycl", "--lib"]);
    command.args(RELEASE.iter().flat_map(|name| ["--test", name]));
    counts.passed += count(run_captured(&mut command)?, Counts::of_cargo_test, 1)?.passed;

    let mut command = cargo(workspace);
    command.args(["test", "--release", "-p", "oxisycl-backend-cuda", "--test", "fake_driver"]);
    command.args(["--", "--exact", MANY_LAUNCHES]);
    counts.passed += count(run_captured(&mut command)?, Counts::of_cargo_test, 1)?.passed;
    Ok(Outcome::Passed(format!("{} tests", counts.passed)))
}

fn has_nextest(workspace: &Workspace) -> bool {
    succeeds(cargo(workspace).args(["nextest", "--version"]))
}

/// Runs the tests of a filter. A test that fails is repeated once: a machine may be so busy that it finds no time. That a test needed it is a
/// fault of the test, and is reported through `flaky`.
fn run_nextest(workspace: &Workspace, filter: &str, fewest: u64, flaky: &mut Vec<String>) -> Result<Counts> {
    let mut command = cargo(workspace);
    command.args(["nextest", "run", "--workspace", "--retries", "1", "--features", &examples::features(workspace)?]);
    if has_all_needs(workspace) {
        command.args(["--run-ignored", "all"]);
    }
    let captured = run_captured(command.args(["-E", filter]))?;
    flaky.extend(flaky_tests(&captured.output()));
    count(captured, Counts::of_nextest, fewest)
}

/// Whether everything is there that ignored tests need: an OpenCL driver and `ptxas`, both of which `cargo xtask test` installs.
fn has_all_needs(workspace: &Workspace) -> bool {
    opencl::environment(workspace).is_some() && ptxas::find(workspace).is_some()
}

/// The nextest filter for all tests but those with their own `main`, and [`BUILDS`].
fn filter(bare: &[BareTest]) -> String {
    let names = bare.iter().map(|test| format!("binary_id(={}::{})", test.package, test.name));
    format!("not ({})", [BUILDS.to_owned()].into_iter().chain(names).collect::<Vec<_>>().join(" | "))
}

/// The counts of a run that succeeded, if they reach `fewest`.
pub(crate) fn count(captured: Captured, read: fn(&str) -> Counts, fewest: u64) -> Result<Counts> {
    let captured = captured.succeeded()?;
    enough(&captured.line, read(&captured.output()), fewest)
}

fn enough(line: &str, counts: Counts, fewest: u64) -> Result<Counts> {
    if counts.failed > 0 {
        return Err(Failure::new(format!("`{line}`: {} tests failed", counts.failed)));
    }
    if counts.passed < fewest {
        return Err(Failure::new(format!("`{line}`: {} tests ran, at least {fewest} expected", counts.passed)));
    }
    Ok(counts)
}

/// The number of test functions in the sources that an ordinary build contains. Files that mention loom do not count: their
/// tests may exist in its own build only.
fn test_functions(files: &[File]) -> u64 {
    let counted = files.iter().filter(|file| !file.text.contains("loom"));
    counted.map(|file| file.text.lines().filter(|line| line.trim() == "#[test]").count() as u64).sum()
}

fn bare_tests(workspace: &Workspace) -> Result<Vec<BareTest>> {
    let mut tests = Vec::new();
    for package in &workspace.packages {
        let names = package.tests_without_harness()?;
        tests.extend(names.into_iter().map(|name| BareTest { package: package.name.clone(), name }));
    }
    Ok(tests)
}

impl BareTest {
    /// Runs it. Tests of devices that this machine lacks are ignored, so that there may be nothing else in it; but there is something.
    fn run(&self, workspace: &Workspace) -> Result<Counts> {
        let mut command = cargo(workspace);
        command.args(["test", "-p", &self.package, "--test", &self.name]);
        let captured = run_captured(&mut command)?.succeeded()?;
        self.closing(&captured)
    }

    /// The counts of a run that succeeded.
    fn closing(&self, captured: &Captured) -> Result<Counts> {
        let counts = enough(&captured.line, Counts::of_cargo_test(&captured.stdout), 0)?;
        if counts.passed + counts.ignored == 0 {
            return Err(Failure::new(format!("`{}`: no test ran, and none was ignored", captured.line)));
        }
        Ok(counts)
    }

    /// Whether other stages run it.
    fn has_stages(&self) -> bool {
        device_programs::BARE_TESTS.contains(&(self.package.as_str(), self.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_with_their_own_main_are_left_out_of_nextest() {
        let test = |name: &str| BareTest { package: "oxisycl".to_owned(), name: name.to_owned() };
        assert_eq!(filter(&[]), format!("not ({BUILDS})"));
        assert_eq!(
            filter(&[test("a"), test("b")]),
            format!("not ({BUILDS} | binary_id(=oxisycl::a) | binary_id(=oxisycl::b))")
        );
        assert!(test("conformance").has_stages() && !test("a").has_stages());
    }

    #[test]
    fn test_functions_are_counted_where_an_ordinary_build_has_them() {
        let file = |text: &str| File { path: "a.rs".to_owned(), text: text.to_owned() };
        let plain = file("    #[test]\n    fn a() {}\n// #[test]\n#[test]\nfn b() {}\n");
        assert_eq!(test_functions(&[plain, file("#[cfg(loom)]\n#[test]\nfn c() {}\n")]), 2);
    }

    #[test]
    fn a_run_of_too_few_tests_fails() {
        assert!(enough("cargo test", Counts { passed: 5, ..Counts::default() }, 5).is_ok());
        let few = enough("cargo test", Counts::default(), 1).unwrap_err();
        assert_eq!(few.message, "`cargo test`: 0 tests ran, at least 1 expected");
        assert!(enough("cargo test", Counts { passed: 50, failed: 1, ignored: 0 }, 5).is_err());
    }

    #[test]
    fn a_suite_of_ignored_tests_is_no_failure_but_an_empty_one_is() {
        let test = BareTest { package: "p".to_owned(), name: "t".to_owned() };
        let closing = |passed: u64, failed: u64, ignored: u64| {
            let stdout = format!("test result: ok. {passed} passed; {failed} failed; {ignored} ignored;");
            test.closing(&Captured { stdout, stderr: String::new(), success: true, line: "cargo test".to_owned() })
        };
        assert_eq!(closing(0, 0, 5), Ok(Counts { ignored: 5, ..Counts::default() }));
        assert_eq!(closing(4, 0, 1), Ok(Counts { passed: 4, ignored: 1, ..Counts::default() }));
        assert!(closing(0, 0, 0).is_err() && closing(4, 1, 0).is_err());
    }

    #[test]
    fn output_counts_only_if_the_run_succeeded() {
        let captured = |success| Captured {
            stdout: "test result: ok. 3 passed; 0 failed;".to_owned(),
            stderr: String::new(),
            success,
            line: "cargo test".to_owned(),
        };
        assert_eq!(count(captured(true), Counts::of_cargo_test, 1), Ok(Counts { passed: 3, ..Counts::default() }));
        assert!(count(captured(false), Counts::of_cargo_test, 1).is_err());
    }
}
