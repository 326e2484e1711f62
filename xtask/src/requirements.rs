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
//! `reason = ".."` stands in place of, or beside, `tests` where something cannot be tested or differs on purpose.
//! `planned = ["arguments"]` names the part of the project that will bring it and is not built yet. A test is written as `cargo nextest`
//! prints it: `package` (unit tests) or `package::target`, a space, and the name. A name with a `.rs` at its end is a file of the package,
//! for programs that must not compile.
//!
//! The `[blocking]` table names the tests of each row of the book's table of what blocks; see [`blocking`].
//!
//! Checked: every number of the [`table`] has exactly one entry, every entry has a state, every test exists, and the README quotes
//! the [`summary`]. Whether the tests pass is the business of the stages that run them.

mod blocking;
mod entry;
mod find;
mod summary;
mod table;

use std::collections::BTreeMap;

use crate::outcome::{Failure, Outcome, Result};
use crate::workspace::{Workspace, parse_toml};
use entry::Entry;
pub(crate) use find::Finder;
use table::NumberTable;

const FILE: &str = "requirements.toml";
const SEMANTICS: &str = "book/src/semantics.md";

/// Checks the file against the table of numbers, against book and README, and against the tests of the workspace.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let document = parse_toml(FILE, &workspace.read(FILE)?)?;
    let table = table::parse(&workspace.read(table::FILE)?)?;
    let entries = entry::parse(&document)?;
    let blocking = blocking::parse(&document)?;
    let rows = blocking::rows(&workspace.read(SEMANTICS)?)?;
    let mut findings = check_numbers(&table, &entries);
    findings.extend(blocking::check(&rows, &blocking));
    let mut finder = Finder::new(workspace);
    for entry in entries.iter().chain(&blocking) {
        for test in &entry.tests {
            if let Err(problem) = finder.find(test)? {
                findings.push(format!("{}: test \"{test}\": {problem}", entry.id));
            }
        }
    }
    let summary = summary::lines(&table, &entries);
    findings.extend(summary::check_readme(&workspace.read(summary::README)?, &summary));
    println!("{}", summary.join("\n"));
    let tests: usize = entries.iter().map(|entry| entry.tests.len()).sum();
    let blocking_tests: usize = blocking.iter().map(|row| row.tests.len()).sum();
    println!("{tests} names of tests, and {blocking_tests} for the {} rows of what blocks", rows.len());
    Failure::unless_empty("finding in requirements.toml", findings)?;
    Ok(Outcome::Passed(summary.join("; ")))
}

/// Findings for numbers that are missing, unknown or doubled, for entries without a state, and for plans that are no part of the
/// project.
fn check_numbers(table: &NumberTable, entries: &[Entry]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        *counts.entry(&entry.id).or_default() += 1;
    }
    let mut findings = Vec::new();
    let missing: Vec<&str> = table.numbers().filter(|id| !counts.contains_key(id)).collect();
    if !missing.is_empty() {
        findings.push(format!("no entry for {}", missing.join(" ")));
    }
    for (id, count) in counts {
        if count > 1 {
            findings.push(format!("{id}: {count} entries"));
        }
        if !table.numbers().any(|number| number == id) {
            findings.push(format!("{id}: not a number of {}", table::FILE));
        }
    }
    let open: Vec<&str> =
        entries.iter().filter(|entry| entry.state().is_none()).map(|entry| entry.id.as_str()).collect();
    if !open.is_empty() {
        findings.push(format!(
            "{} entries have neither a test nor a reason nor a plan: {}",
            open.len(),
            open.join(" ")
        ));
    }
    for entry in entries {
        for part in entry.planned.iter().filter(|part| !table.parts.contains(*part)) {
            findings.push(format!("{}: \"{part}\" is no planned part of {}", entry.id, table::FILE));
        }
    }
    for part in table.parts.iter().filter(|part| !entries.iter().any(|entry| entry.planned.contains(*part))) {
        findings.push(format!("{}: no entry is planned with \"{part}\"", table::FILE));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> NumberTable {
        table::parse(&crate::workspace::Workspace::load().unwrap().read(table::FILE).unwrap()).unwrap()
    }

    fn entry(id: &str, tests: &[&str], reason: Option<&str>) -> Entry {
        Entry {
            id: id.to_owned(),
            tests: tests.iter().map(|&test| test.to_owned()).collect(),
            reason: reason.map(str::to_owned),
            planned: Vec::new(),
        }
    }

    /// An entry for each number; the first ones name the planned parts.
    fn complete(table: &NumberTable) -> Vec<Entry> {
        let mut entries: Vec<Entry> = table.numbers().map(|id| entry(id, &["t"], None)).collect();
        for (entry, part) in entries.iter_mut().zip(&table.parts) {
            entry.planned.push(part.clone());
        }
        entries
    }

    #[test]
    fn a_complete_list_passes() {
        assert_eq!(check_numbers(&table(), &complete(&table())), [""; 0]);
    }

    #[test]
    fn missing_numbers_are_named_together() {
        let mut entries = complete(&table());
        entries.retain(|entry| entry.id != "S-D34" && entry.id != "V18");
        assert_eq!(check_numbers(&table(), &entries), ["no entry for S-D34 V18"]);
    }

    #[test]
    fn doubled_and_unknown_numbers_are_found() {
        let mut entries = complete(&table());
        entries.push(entry("A1", &["t"], None));
        entries.push(entry("A15", &["t"], None));
        let expected = ["A1: 2 entries", "A15: not a number of requirements-table.toml"];
        assert_eq!(check_numbers(&table(), &entries), expected);
    }

    #[test]
    fn an_entry_needs_a_test_or_a_reason_or_a_plan() {
        let mut entries = complete(&table());
        let last = entries.len() - 1;
        entries[last].tests.clear();
        let expected = ["1 entries have neither a test nor a reason nor a plan: V9"];
        assert_eq!(check_numbers(&table(), &entries), expected);
        entries[last].reason = Some("it has no counterpart in Rust".to_owned());
        assert_eq!(check_numbers(&table(), &entries), [""; 0]);
        (entries[last].reason, entries[last].planned) = (None, vec!["algorithms".to_owned()]);
        assert_eq!(check_numbers(&table(), &entries), [""; 0]);
    }

    #[test]
    fn plans_are_parts_of_the_table_and_the_other_way_round() {
        let mut entries = complete(&table());
        let first = std::mem::replace(&mut entries[0].planned, vec!["some day".to_owned()]);
        let expected = [
            "S-D1: \"some day\" is no planned part of requirements-table.toml".to_owned(),
            format!("requirements-table.toml: no entry is planned with \"{}\"", first[0]),
        ];
        assert_eq!(check_numbers(&table(), &entries), expected);
    }
}
