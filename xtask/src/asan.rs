//! `cargo xtask asan`: the conformance suite under AddressSanitizer, in its own build.

use crate::conformance;
use crate::outcome::{Outcome, Result};
use crate::process::{has_nightly, nightly_cargo, run_captured};
use crate::workspace::Workspace;

/// The sanitizer needs the target to be named, so that build scripts and macros stay without it.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs the suite on the host and on simulated devices if a nightly toolchain is installed.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Ok(Outcome::Skipped(format!("only {TARGET} is set up for it")));
    }
    if !has_nightly(workspace, &["--version"]) {
        return Ok(Outcome::Skipped("no nightly toolchain".to_owned()));
    }
    let mut notes = Vec::new();
    for device in ["host", "simulated"] {
        let mut command = nightly_cargo(workspace);
        command.args(["test", "-p", conformance::PACKAGE, "--test", conformance::TEST, "--release"]);
        command.args(["--target", TARGET, "--", "--device", device]);
        command
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("CARGO_TARGET_DIR", workspace.target_directory.join("asan"));
        match conformance::check(&run_captured(&mut command)?)? {
            Outcome::Passed(note) | Outcome::Skipped(note) => notes.push(format!("{device}: {note}")),
        }
    }
    Ok(Outcome::Passed(notes.join(", ")))
}
