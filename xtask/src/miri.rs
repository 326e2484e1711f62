//! `cargo xtask miri`: tests of the unsafe core and of what promises safety above it under Miri, which finds undefined behaviour
//! that happens to work.

use crate::counts::Counts;
use crate::outcome::{Outcome, Result};
use crate::process::{has_nightly, nightly_cargo, run_captured};
use crate::suites::count;
use crate::workspace::Workspace;

/// Some tests of a package.
struct Tests {
    package: &'static str,
    /// What `cargo test` builds of it.
    target: &'static [&'static str],
    /// Which of its tests: filters and `--skip`; all without.
    arguments: &'static [&'static str],
    flags: &'static str,
}

/// The clock is real, since waits look at it; what belongs to the process lives as long as it does.
const AS_A_PROCESS: &str = "-Zmiri-disable-isolation -Zmiri-ignore-leaks";

/// The tests that Miri runs: what takes it seconds rather than minutes.
const TESTS: &[Tests] = &[
    Tests { package: "oxisycl-types", target: &["--lib"], arguments: &[], flags: "" },
    Tests { package: "oxisycl-device", target: &["--lib"], arguments: &[], flags: "" },
    Tests { package: "oxisycl-backend", target: &["--lib", "--test", "recording"], arguments: &[], flags: "" },
    // The graph on the recording backend, which carries out what it is told to with real memory.
    Tests {
        package: "oxisycl-runtime",
        target: &["--lib", "--test", "graph"],
        arguments: &["graph::", "delays::", "destructors::", "failures::", "lifetime::", "waits::"],
        flags: AS_A_PROCESS,
    },
    // Everything together, with threads.
    Tests {
        package: "oxisycl",
        target: &["--test", "soundness"],
        arguments: &["overlap::", "owners::memory_lives", "owners::buffers_may_be_dropped", "races::an_event"],
        flags: AS_A_PROCESS,
    },
];

/// Runs [`TESTS`] if a nightly toolchain with Miri is installed.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if !has_nightly(workspace, &["miri", "--version"]) {
        return Ok(Outcome::Skipped(
            "no nightly toolchain with miri (`rustup +nightly component add miri rust-src`)".to_owned(),
        ));
    }
    let mut passed = 0;
    for Tests { package, target, arguments, flags } in TESTS {
        let mut command = nightly_cargo(workspace);
        command.args(["miri", "test", "-p", package]).args(*target).arg("--").args(*arguments);
        // Random programs stay small: Miri is hundreds of times slower than the processor.
        command.env("OXISYCL_CASES", "8").env("OXISYCL_HOST_THREADS", "2").env("MIRIFLAGS", flags);
        passed += count(run_captured(&mut command)?, Counts::of_cargo_test, 1)?.passed;
    }
    Ok(Outcome::Passed(format!("{passed} tests")))
}
