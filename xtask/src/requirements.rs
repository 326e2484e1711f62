//! `requirements.toml`: what the specifications ask for, in our words, and the tests that show it.
//!
//! An entry is
//!
//! ```toml
//! [[requirement]]
//! id = "S-R2"
//! source = "runtime specification, buffers"
//! behaviour = "a buffer never changes its size"
//! tests = ["oxisycl::conformance buffer::size_is_fixed", "oxisycl-runtime state::tests::size_is_fixed"]
//! ```
//!
//! with `reason = ".."` in place of, or beside, `tests` where something cannot be tested. A test is written as `cargo nextest`
//! prints it: `package` (unit tests) or `package::target`, a space, and the name. A name with a `.rs` at its end is a file of
//! the package, for programs that must not compile.
//!
//! The `[blocking]` table names the tests of each row of the book's table of what blocks; see [`blocking`].
//!
//! Checked: every number of [`ROWS`] has exactly one entry, every entry has a test or a reason, and every test exists.
//! Whether the tests pass is the business of the stages that run them.

mod blocking;
mod entry;
mod find;

use std::collections::BTreeMap;

use crate::outcome::{Failure, Outcome, Result};
use crate::workspace::{Workspace, parse_toml};
use entry::Entry;
use find::Finder;

const FILE: &str = "requirements.toml";
const SEMANTICS: &str = "book/src/semantics.md";

/// The numbers that must have an entry: a prefix and its last number.
const ROWS: &[(&str, u32)] = &[
    ("S-R", 38),
    ("S-F", 25),
    ("A", 14),
    ("B", 11),
    ("C", 11),
    ("D", 6),
    ("E", 10),
    ("F", 12),
    ("H", 16),
    ("I", 17),
    ("J", 12),
    ("L", 5),
    ("M", 12),
    ("N", 6),
    ("S", 7),
    ("T", 2),
];

/// Checks the file against [`ROWS`], against the book and against the tests of the workspace.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let document = parse_toml(FILE, &workspace.read(FILE)?)?;
    let entries = entry::parse(&document)?;
    let blocking = blocking::parse(&document)?;
    let rows = blocking::rows(&workspace.read(SEMANTICS)?)?;
    let mut findings = check_numbers(&entries);
    findings.extend(blocking::check(&rows, &blocking));
    let mut finder = Finder::new(workspace);
    for entry in entries.iter().chain(&blocking) {
        for test in &entry.tests {
            if let Err(problem) = finder.find(test)? {
                findings.push(format!("{}: test \"{test}\": {problem}", entry.id));
            }
        }
    }
    let tested = entries.iter().filter(|entry| !entry.tests.is_empty()).count();
    let tests: usize = entries.iter().map(|entry| entry.tests.len()).sum();
    let reasons = entries.iter().filter(|entry| entry.tests.is_empty() && entry.reason.is_some()).count();
    let tested_rows = blocking.iter().filter(|row| !row.tests.is_empty()).count();
    let summary = format!(
        "{tested} of {} requirements have tests ({tests} names), {reasons} a reason; {tested_rows} of {} rows of what blocks \
         have tests",
        entries.len(),
        rows.len()
    );
    println!("  {summary}");
    Failure::unless_empty("finding in requirements.toml", findings)?;
    Ok(Outcome::Passed(summary))
}

/// Findings for numbers that are missing, unknown or doubled, and for entries with neither a test nor a reason.
fn check_numbers(entries: &[Entry]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        *counts.entry(&entry.id).or_default() += 1;
    }
    let expected: Vec<String> =
        ROWS.iter().flat_map(|(prefix, last)| (1..=*last).map(move |number| format!("{prefix}{number}"))).collect();
    let mut findings = Vec::new();
    let missing: Vec<&str> = expected.iter().map(String::as_str).filter(|id| !counts.contains_key(id)).collect();
    if !missing.is_empty() {
        findings.push(format!("no entry for {}", missing.join(" ")));
    }
    for (id, count) in counts {
        if count > 1 {
            findings.push(format!("{id}: {count} entries"));
        }
        if !expected.iter().any(|expected| expected == id) {
            findings.push(format!("{id}: not a number of the list"));
        }
    }
    let open = |entry: &&Entry| entry.tests.is_empty() && entry.reason.is_none();
    let open: Vec<&str> = entries.iter().filter(open).map(|entry| entry.id.as_str()).collect();
    if !open.is_empty() {
        findings.push(format!("{} entries have neither a test nor a reason: {}", open.len(), open.join(" ")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, tests: &[&str], reason: Option<&str>) -> Entry {
        Entry {
            id: id.to_owned(),
            tests: tests.iter().map(|&test| test.to_owned()).collect(),
            reason: reason.map(str::to_owned),
        }
    }

    fn complete() -> Vec<Entry> {
        let ids = ROWS.iter().flat_map(|(prefix, last)| (1..=*last).map(move |number| format!("{prefix}{number}")));
        ids.map(|id| entry(&id, &["t"], None)).collect()
    }

    #[test]
    fn a_complete_list_passes() {
        assert!(check_numbers(&complete()).is_empty());
    }

    #[test]
    fn missing_numbers_are_named_together() {
        let mut entries = complete();
        entries.retain(|entry| entry.id != "S-R4" && entry.id != "N6");
        assert_eq!(check_numbers(&entries), ["no entry for S-R4 N6"]);
    }

    #[test]
    fn doubled_and_unknown_numbers_are_found() {
        let mut entries = complete();
        entries.push(entry("A1", &["t"], None));
        entries.push(entry("A15", &["t"], None));
        assert_eq!(check_numbers(&entries), ["A1: 2 entries", "A15: not a number of the list"]);
    }

    #[test]
    fn an_entry_needs_a_test_or_a_reason() {
        let mut entries = complete();
        entries[0].tests.clear();
        assert_eq!(check_numbers(&entries), ["1 entries have neither a test nor a reason: S-R1"]);
        entries[0].reason = Some("images come later".to_owned());
        assert!(check_numbers(&entries).is_empty());
    }
}
