//! `cargo xtask miri`: the tests of the unsafe core and of what promises safety above it under Miri, which finds undefined behaviour that
//! happens to work.
//!
//! Invariant: each test of these packages either runs or is [`excluded`] with a reason. Numbers of rounds are smaller under Miri, which
//! is hundreds of times slower than the processor; the tests say so themselves (`cfg!(miri)`).

mod excluded;

use std::process::Command;

use crate::counts::Counts;
use crate::outcome::{Outcome, Result};
use crate::process::{has_nightly, nightly_cargo, run_captured};
use crate::suites::count;
use crate::workspace::Workspace;

use excluded::{EXCLUDED, EXCLUDED_TARGETS};

/// A package whose tests run.
struct Package {
    name: &'static str,
    /// How cargo is to build it.
    arguments: &'static [&'static str],
    flags: &'static str,
}

/// The clock is real, since waits look at it; what belongs to the process lives as long as it does.
const AS_A_PROCESS: &str = "-Zmiri-disable-isolation -Zmiri-ignore-leaks";

const PACKAGES: &[Package] = &[
    Package { name: "oxisycl-types", arguments: &[], flags: "" },
    Package { name: "oxisycl-device", arguments: &["--all-features"], flags: "" },
    // The recording backend carries out its commands with real memory.
    Package { name: "oxisycl-backend", arguments: &[], flags: "" },
    Package { name: "oxisycl-backend-testing", arguments: &[], flags: "" },
    Package { name: "oxisycl-backend-host", arguments: &[], flags: AS_A_PROCESS },
    Package { name: "oxisycl-runtime", arguments: &[], flags: AS_A_PROCESS },
    // Everything together, with threads. Miri loads no driver.
    Package {
        name: "oxisycl",
        arguments: &["--no-default-features", "--features", "simulated,allocator"],
        flags: AS_A_PROCESS,
    },
];

/// Tests that do not run: by [`EXCLUDED`] one by one, by [`EXCLUDED_TARGETS`] all of a target.
type Reason = &'static str;

/// Runs the tests if a nightly toolchain with Miri is installed.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if !has_nightly(workspace, &["miri", "--version"]) {
        return Ok(Outcome::Skipped(
            "no nightly toolchain with miri (`rustup +nightly component add miri rust-src`)".to_owned(),
        ));
    }
    let (mut passed, mut ignored) = (0, 0);
    for package in PACKAGES {
        for target in targets(workspace, package.name)? {
            let counts =
                count(run_captured(&mut package.test(workspace, target.as_deref()))?, Counts::of_cargo_test, 0)?;
            passed += counts.passed;
            ignored += counts.ignored;
        }
    }
    let excluded = EXCLUDED.iter().map(|(_, tests, _)| tests.len()).sum::<usize>();
    Ok(Outcome::Passed(format!(
        "{passed} tests, {ignored} ignored; {excluded} tests and {} test programs excluded, each with its reason",
        EXCLUDED_TARGETS.len()
    )))
}

/// The targets of a package whose tests run: `None` for its unit tests, else an integration test.
fn targets(workspace: &Workspace, package: &str) -> Result<Vec<Option<String>>> {
    let names = workspace.require(package)?.targets.iter().filter(|target| target.kind == "test");
    let names = names.map(|target| target.name.clone());
    let runs = |name: &String| !EXCLUDED_TARGETS.iter().any(|(target, _)| *target == format!("{package}::{name}"));
    Ok(std::iter::once(None).chain(names.filter(runs).map(Some)).collect())
}

impl Package {
    /// Runs one of its targets without what is excluded of it.
    fn test(&self, workspace: &Workspace, target: Option<&str>) -> Command {
        let mut command = nightly_cargo(workspace);
        command.args(["miri", "test", "-p", self.name]).args(self.arguments);
        let suite = match target {
            Some(target) => {
                command.args(["--test", target]);
                format!("{}::{target}", self.name)
            }
            None => {
                command.arg("--lib");
                self.name.to_owned()
            }
        };
        command.args(["--", "--exact"]);
        for (_, tests, _) in EXCLUDED.iter().filter(|(of, ..)| *of == suite) {
            tests.iter().for_each(|test| _ = command.args(["--skip", test]));
        }
        // Random programs are few. Stacks of panics that tests expect take seconds each.
        command.envs([("OXISYCL_TEST_CASES", "2"), ("OXISYCL_HOST_THREADS", "2"), ("RUST_BACKTRACE", "0")]);
        command.env("MIRIFLAGS", self.flags);
        // A folder of its own: Miri runs a test in the environment of the time when it was built.
        command.env("CARGO_TARGET_DIR", workspace.target_directory.join("miri"));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirements::Finder;

    #[test]
    fn every_excluded_test_exists_and_has_a_reason() {
        let workspace = Workspace::load().unwrap();
        let mut finder = Finder::new(&workspace);
        let (mut seen, mut lost) = (Vec::new(), Vec::new());
        for (suite, tests, reason) in EXCLUDED {
            assert!(!reason.is_empty() && !tests.is_empty(), "{suite}");
            let package = suite.split("::").next().unwrap();
            assert!(PACKAGES.iter().any(|known| known.name == package), "{suite} does not run");
            assert!(!EXCLUDED_TARGETS.iter().any(|(target, _)| target == suite), "{suite} is excluded as a whole");
            for test in *tests {
                let name = format!("{suite} {test}");
                if let Err(reason) = finder.find(&name).unwrap() {
                    lost.push(format!("{name}: {reason}"));
                }
                assert!(!seen.contains(&name), "{name} is listed twice");
                seen.push(name);
            }
        }
        assert_eq!(lost, Vec::<String>::new());
    }

    #[test]
    fn every_excluded_target_exists_and_has_a_reason() {
        let workspace = Workspace::load().unwrap();
        for (target, reason) in EXCLUDED_TARGETS {
            let (package, name) = target.split_once("::").unwrap();
            assert!(PACKAGES.iter().any(|known| known.name == package), "{target} would not run anyway");
            assert!(workspace.require(package).unwrap().target("test", name).is_some(), "{target}");
            assert!(!reason.is_empty(), "{target}");
        }
    }

    #[test]
    fn targets_are_the_unit_tests_and_every_integration_test_that_is_not_excluded() {
        let workspace = Workspace::load().unwrap();
        let targets = targets(&workspace, "oxisycl-runtime").unwrap();
        assert_eq!(targets, [None, Some("graph".to_owned()), Some("process".to_owned())]);
        let facade = super::targets(&workspace, "oxisycl").unwrap();
        assert!(facade.contains(&Some("soundness".to_owned())) && !facade.contains(&Some("conformance".to_owned())));
    }
}
