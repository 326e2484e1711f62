//! `cargo xtask loom`: the event and pool protocols of the host backend under every interleaving that loom can reach.

use std::env;

use crate::counts::Counts;
use crate::outcome::{Outcome, Result};
use crate::process::{cargo, run_captured};
use crate::suites::count;
use crate::workspace::Workspace;

const PACKAGE: &str = "oxisycl-backend-host";

/// Runs the tests whose names contain `loom`, in their own build: the flag changes every crate.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if !workspace.require(PACKAGE)?.manifest()?.contains("loom") {
        return Ok(Outcome::Skipped(format!("the manifest of {PACKAGE} does not mention loom")));
    }
    let mut command = cargo(workspace);
    command.args(["test", "-p", PACKAGE, "--release", "--lib", "loom"]);
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", workspace.target_directory.join("loom"));
    // More preemptions take hours and, by loom's own experience, find little more.
    if env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        command.env("LOOM_MAX_PREEMPTIONS", "3");
    }
    let counts = count(run_captured(&mut command)?, Counts::of_cargo_test, 1)?;
    Ok(Outcome::Passed(format!("{} models", counts.passed)))
}
