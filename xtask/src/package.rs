//! `cargo xtask package`: what would be uploaded to the registry, for every published crate.
//!
//! All crates are packaged in one call: cargo then resolves the dependencies among them, none of which the registry has,
//! from the packages themselves.

use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo};
use crate::workspace::Workspace;

/// `cargo xtask package [--no-verify]`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    match arguments {
        [] => verified(workspace),
        [flag] if flag == "--no-verify" => package(workspace, &["--no-verify"]),
        _ => Err(Failure::new("unexpected argument (known: --no-verify)")),
    }
}

/// Packages, and builds what was packaged: a file that a crate needs but does not contain is found only so.
pub(crate) fn verified(workspace: &Workspace) -> Result<Outcome> {
    package(workspace, &[])
}

fn package(workspace: &Workspace, options: &[&str]) -> Result<Outcome> {
    let mut command = cargo(workspace);
    command.args(["package", "--workspace", "--allow-dirty"]).args(options);
    for package in workspace.packages.iter().filter(|package| !package.publish) {
        command.args(["--exclude", &package.name]);
    }
    process::run(&mut command)?;
    let published = workspace.packages.iter().filter(|package| package.publish).count();
    Ok(Outcome::Passed(format!("{published} packages")))
}
