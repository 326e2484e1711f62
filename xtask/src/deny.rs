//! Licences, sources and versions of everything that is linked, and known vulnerabilities where the database can be reached.

use crate::outcome::{Outcome, Result};
use crate::process::{self, cargo, run_captured, succeeds};
use crate::workspace::Workspace;

/// Parts of the messages of a database that could not be fetched.
const UNREACHABLE: &[&str] = &["failed to fetch advisory database", "failed to load advisory database"];

/// `cargo deny check`, in two parts: the first needs no network.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if !succeeds(cargo(workspace).args(["deny", "--version"])) {
        return Ok(Outcome::Skipped("cargo-deny is not installed (`cargo xtask test` does it)".to_owned()));
    }
    process::run(cargo(workspace).args(["deny", "check", "bans", "licenses", "sources"]))?;
    let advisories = run_captured(cargo(workspace).args(["deny", "check", "advisories"]))?;
    if !advisories.success && is_unreachable(&advisories.output()) {
        return Ok(Outcome::Passed("without advisories: their database cannot be reached".to_owned()));
    }
    advisories.succeeded()?;
    Ok(Outcome::passed())
}

fn is_unreachable(output: &str) -> bool {
    UNREACHABLE.iter().any(|message| output.contains(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_that_cannot_be_fetched_is_forgiven() {
        assert!(is_unreachable("[ERROR] failed to fetch advisory database https://github.com/RustSec/advisory-db"));
        assert!(!is_unreachable("error[vulnerability]: double free\nadvisories FAILED"));
    }
}
