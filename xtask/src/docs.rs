//! The reference documentation, warnings denied, with the features that docs.rs builds.

use crate::outcome::{Outcome, Result};
use crate::process::{self, cargo};
use crate::workspace::Workspace;

/// `cargo doc` over all crates of the workspace.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let mut command = cargo(workspace);
    command.env("RUSTDOCFLAGS", "-D warnings");
    process::run(command.args(["doc", "--workspace", "--no-deps", "--all-features"]))?;
    Ok(Outcome::passed())
}
