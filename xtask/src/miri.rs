//! `cargo xtask miri`: unit tests of the unsafe core under Miri, which finds undefined behaviour that happens to work.

use crate::counts::Counts;
use crate::outcome::{Outcome, Result};
use crate::process::{has_nightly, nightly_cargo, run_captured};
use crate::suites::count;
use crate::workspace::Workspace;

/// The packages whose unit tests Miri can run, and a filter each (empty: all).
const TESTS: &[(&str, &str)] = &[
    ("oxisycl-types", ""),
    ("oxisycl-device", ""),
    ("oxisycl-backend", "arguments::"),
    ("oxisycl-backend", "fill_pattern::"),
];

/// Runs [`TESTS`] if a nightly toolchain with Miri is installed.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if !has_nightly(workspace, &["miri", "--version"]) {
        return Ok(Outcome::Skipped(
            "no nightly toolchain with miri (`rustup +nightly component add miri rust-src`)".to_owned(),
        ));
    }
    let mut passed = 0;
    for (package, filter) in TESTS {
        let mut command = nightly_cargo(workspace);
        command.args(["miri", "test", "-p", package, "--lib", "--"]);
        if !filter.is_empty() {
            command.arg(filter);
        }
        // Random programs stay small: Miri is hundreds of times slower than the processor.
        command.env("PROPTEST_CASES", "8");
        passed += count(run_captured(&mut command)?, Counts::of_cargo_test, 1)?.passed;
    }
    Ok(Outcome::Passed(format!("{passed} tests")))
}
