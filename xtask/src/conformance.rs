//! `cargo xtask conformance`: the conformance suite on one kind of device.
//!
//! The suite prints one `device area::name` line for each test and closes as Rust's test programs do. A run that does not close like
//! this, or in which no test passed, is a failure whatever its exit status.

use lexopt::Parser;
use lexopt::prelude::*;

use crate::counts::Counts;
use crate::device_programs;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{Captured, cargo, command, run_captured};
use crate::workspace::{Package, Workspace};

/// The package and the test target of the suite.
pub(crate) const PACKAGE: &str = "oxisycl";
pub(crate) const TEST: &str = "conformance";

const DEVICES: &[&str] = &["host", "simulated", "apart", "cuda", "opencl"];

/// `cargo xtask conformance --device KIND [FILTER]`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    let (device, rest) = parse(arguments)?;
    run_on(workspace, &device, &rest)
}

/// The whole suite on the host device.
pub(crate) fn host(workspace: &Workspace) -> Result<Outcome> {
    run_built(workspace, "host")
}

/// The whole suite on simulated devices.
pub(crate) fn simulated(workspace: &Workspace) -> Result<Outcome> {
    run_built(workspace, "simulated")
}

/// The whole suite on simulated devices of which one is of another platform than the rest, as a GPU is.
pub(crate) fn apart(workspace: &Workspace) -> Result<Outcome> {
    run_built(workspace, "apart")
}

/// Runs the suite that was built with its device code, in the package's folder, as cargo runs tests.
fn run_built(workspace: &Workspace, device: &str) -> Result<Outcome> {
    let program = device_programs::named(workspace, "test", TEST)?;
    let mut command = command(workspace, &program.into_os_string());
    command.current_dir(&workspace.require(PACKAGE)?.directory).args(["--device", device]);
    check(&run_captured(&mut command)?)
}

fn run_on(workspace: &Workspace, device: &str, rest: &[String]) -> Result<Outcome> {
    let package = workspace.require(PACKAGE)?;
    let mut command = cargo(workspace);
    command.args(["test", "-p", PACKAGE, "--test", TEST, "--release"]);
    command.args(feature(package, device)).args(["--", "--device", device]).args(rest);
    check(&run_captured(&mut command)?)
}

/// The feature of the facade that brings the device's backend, if it has one.
pub(crate) fn feature(package: &Package, device: &str) -> Vec<String> {
    let feature = package.features.contains(device);
    if feature { vec!["--features".to_owned(), device.to_owned()] } else { Vec::new() }
}

/// Holds a finished run against its closing line.
pub(crate) fn check(captured: &Captured) -> Result<Outcome> {
    let Some(counts) = Counts::of_test_program(&captured.stdout) else {
        return Err(Failure::new(format!("`{}` did not end with \"test result: ..\"", captured.line)));
    };
    let Counts { passed, failed, ignored } = counts;
    if failed > 0 {
        Err(Failure::new(format!("{passed} passed, {failed} failed")))
    } else if passed == 0 {
        Err(Failure::new("no test ran"))
    } else if !captured.success {
        Err(Failure::new(format!("{passed} passed, none failed, but `{}` reports an error", captured.line)))
    } else {
        Ok(Outcome::Passed(format!("{passed} tests, {ignored} ignored with a reason")))
    }
}

/// The device kind, and the filters that are passed on to the suite.
fn parse(arguments: &[String]) -> Result<(String, Vec<String>)> {
    let mut device = None;
    let mut rest = Vec::new();
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("device") => device = Some(parser.value()?.string()?),
            Value(filter) => rest.push(filter.string()?),
            _ => return Err(argument.unexpected().into()),
        }
    }
    match device {
        Some(device) if DEVICES.contains(&device.as_str()) => Ok((device, rest)),
        Some(device) => Err(Failure::new(format!("unknown device \"{device}\" (known: {})", DEVICES.join(", ")))),
        None => Err(Failure::new(format!("--device is missing (known: {})", DEVICES.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(stdout: &str, success: bool) -> Captured {
        Captured { stdout: stdout.to_owned(), stderr: String::new(), success, line: "cargo test".to_owned() }
    }

    fn parse_words(line: &str) -> Result<(String, Vec<String>)> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_device_is_named_and_the_rest_is_passed_on() {
        let expected = ("host".to_owned(), vec!["buffer::".to_owned()]);
        assert_eq!(parse_words("--device host buffer::"), Ok(expected.clone()));
        assert_eq!(parse_words("buffer:: --device=host"), Ok(expected));
    }

    #[test]
    fn a_missing_or_unknown_device_is_refused() {
        assert!(parse_words("buffer::").is_err());
        assert!(parse_words("--device").is_err() && parse_words("--device host --devices").is_err());
        let failure = parse_words("--device gpu").unwrap_err();
        assert_eq!(failure.message, "unknown device \"gpu\" (known: host, simulated, apart, cuda, opencl)");
    }

    #[test]
    fn only_a_run_that_closes_with_passed_tests_passes() {
        let good = check(&captured("test host a::b ... ok\ntest result: ok. 2 passed; 0 failed; 1 ignored\n", true));
        assert_eq!(good, Ok(Outcome::Passed("2 tests, 1 ignored with a reason".to_owned())));
        for (stdout, success) in [
            ("test result: ok. 2 passed; 0 failed; 0 ignored\n", false),
            ("test result: FAILED. 2 passed; 1 failed; 0 ignored\n", true),
            ("test result: ok. 0 passed; 0 failed; 9 ignored\n", true),
            ("2 passed, 0 failed\n", true),
            ("test host a::b ... ok\n", true),
            ("", true),
        ] {
            assert!(check(&captured(stdout, success)).is_err(), "{stdout:?} {success}");
        }
    }

    #[test]
    fn a_feature_is_asked_for_only_where_it_exists() {
        let package = Package { features: ["cuda".to_owned()].into(), ..Package::default() };
        assert_eq!(feature(&package, "cuda"), ["--features", "cuda"]);
        assert!(feature(&package, "host").is_empty());
    }
}
