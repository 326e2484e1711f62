//! `cargo xtask loom`: the event and pool protocols of the host backend, and the lanes' and the poller's, under every interleaving that loom
//! can reach.

use std::env;

use crate::counts::Counts;
use crate::outcome::{Outcome, Result};
use crate::process::{cargo, run_captured};
use crate::suites::count;
use crate::workspace::Workspace;

const PACKAGES: [&str; 2] = ["oxisycl-backend-host", "oxisycl-backend"];

/// Runs the tests whose names contain `loom`, in their own build: the flag changes every crate.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let mut command = cargo(workspace);
    command.args(["test", "--release", "--lib"]);
    for package in PACKAGES {
        workspace.require(package)?;
        command.args(["-p", package]);
    }
    command.arg("loom");
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", workspace.target_directory.join("loom"));
    // More preemptions take hours and, by loom's own experience, find little more.
    if env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        command.env("LOOM_MAX_PREEMPTIONS", "3");
    }
    let counts = count(run_captured(&mut command)?, Counts::of_cargo_test, 1)?;
    Ok(Outcome::Passed(format!("{} models", counts.passed)))
}
