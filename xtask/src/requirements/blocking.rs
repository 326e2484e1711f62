//! The table of what blocks in `book/src/semantics.md`, and the tests of its rows in the `[blocking]` table.
//!
//! ```toml
//! [blocking]
//! "8.2" = ["oxisycl::conformance blocking::row_8_02_barrier_and_flush_never_block"]
//! ```
//!
//! Checked: every numbered rule of section 8 has an entry with a test, and every entry is the number of a rule. A row counts as
//! tested only by tests that exist, which is checked with those of the requirements.

use toml::Table;

use super::entry::Entry;
use crate::outcome::{Failure, Result};

/// The table's key.
pub(super) const KEY: &str = "blocking";
/// The heading of the section, and what its rules begin with.
const SECTION: &str = "## 8 ";
const PREFIX: &str = "8.";

/// The numbers of the section's rules, in their order. A failure if there are none, or one is doubled or left out.
pub(super) fn rows(semantics: &str) -> Result<Vec<String>> {
    let section = semantics.lines().skip_while(|line| !line.starts_with(SECTION)).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    // A rule's number stands in bold; without bold it refers to a rule.
    let number = |line: &str| -> Option<String> {
        let (_, rest) = line.split_once("**")?;
        let (bold, _) = rest.split_once("**")?;
        let last = bold.strip_prefix(PREFIX)?;
        last.parse::<u32>().ok().map(|last| format!("{PREFIX}{last}"))
    };
    let rows: Vec<String> = section.filter_map(number).collect();
    for (i, row) in rows.iter().enumerate() {
        let expected = format!("{PREFIX}{}", i + 1);
        if *row != expected {
            return Err(Failure::new(format!("semantics.md: rule {row} stands where {expected} is expected")));
        }
    }
    if rows.is_empty() {
        return Err(Failure::new(format!("semantics.md: no rule below \"{SECTION}\"")));
    }
    Ok(rows)
}

/// The entries of the `[blocking]` table; none if there is no table.
pub(super) fn parse(document: &Table) -> Result<Vec<Entry>> {
    let wrong = |what: &str| Failure::new(format!("[{KEY}] {what} is not a list of names"));
    let Some(table) = document.get(KEY) else { return Ok(Vec::new()) };
    let entries =
        table.as_table().ok_or_else(|| Failure::new(format!("{KEY} is not a table")))?.iter().map(|(row, tests)| {
            let tests = tests.as_array().ok_or_else(|| wrong(row))?.iter();
            let tests = tests.map(|test| test.as_str().map(str::to_owned).ok_or_else(|| wrong(row)));
            Ok(Entry { id: row.clone(), tests: tests.collect::<Result<_>>()?, reason: None, planned: Vec::new() })
        });
    entries.collect()
}

/// Findings for rows without a test, and for entries that are no row.
pub(super) fn check(rows: &[String], entries: &[Entry]) -> Vec<String> {
    let is_tested = |row: &&String| entries.iter().any(|entry| entry.id == **row && !entry.tests.is_empty());
    let open: Vec<&str> = rows.iter().filter(|row| !is_tested(row)).map(String::as_str).collect();
    let mut findings = Vec::new();
    if !open.is_empty() {
        findings.push(format!("[{KEY}] no test for {} of semantics.md", open.join(" ")));
    }
    let unknown = entries.iter().filter(|entry| !rows.contains(&entry.id));
    findings.extend(unknown.map(|entry| format!("[{KEY}] {}: not a rule of semantics.md", entry.id)));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEMANTICS: &str = "## 7 Waiting\n- **7.1** a\n## 8 What blocks\n| | call |\n| **8.1** | a |\n| **8.2** | \
                             **b** |\n- **8.3** unlike 8.9\n## 9 Failures\n- **9.1** see **8.4**\n";

    fn table(text: &str) -> Result<Vec<Entry>> {
        parse(&text.parse::<Table>().unwrap())
    }

    fn findings(text: &str) -> Vec<String> {
        check(&rows(SEMANTICS).unwrap(), &table(text).unwrap())
    }

    #[test]
    fn rows_are_the_rules_of_the_section() {
        assert_eq!(rows(SEMANTICS).unwrap(), ["8.1", "8.2", "8.3"]);
    }

    #[test]
    fn a_section_that_is_gone_or_counts_wrongly_is_a_failure() {
        assert!(rows("## 9 Failures\n- **8.1** a\n").unwrap_err().message.contains("no rule"));
        let doubled = SEMANTICS.replace("**8.3**", "**8.2**");
        assert_eq!(rows(&doubled).unwrap_err().message, "semantics.md: rule 8.2 stands where 8.3 is expected");
        let left_out = SEMANTICS.replace("**8.1**", "**8.4**");
        assert_eq!(rows(&left_out).unwrap_err().message, "semantics.md: rule 8.4 stands where 8.1 is expected");
    }

    #[test]
    fn every_row_needs_a_test() {
        assert_eq!(
            findings("[blocking]\n\"8.1\" = [\"a b\"]\n\"8.2\" = [\"a c\", \"a d\"]\n\"8.3\" = [\"a b\"]\n"),
            [""; 0]
        );
        assert_eq!(
            findings("[blocking]\n\"8.2\" = [\"a b\"]\n\"8.3\" = []\n"),
            ["[blocking] no test for 8.1 8.3 of semantics.md"]
        );
        assert_eq!(findings(""), ["[blocking] no test for 8.1 8.2 8.3 of semantics.md"]);
    }

    #[test]
    fn entries_that_are_no_row_are_found() {
        let text = "[blocking]\n\"8.1\" = [\"a\"]\n\"8.2\" = [\"a\"]\n\"8.3\" = [\"a\"]\n\"8.01\" = [\"a\"]\n\"9.1\" = [\"a\"]\n";
        assert_eq!(
            findings(text),
            ["[blocking] 8.01: not a rule of semantics.md", "[blocking] 9.1: not a rule of semantics.md"]
        );
    }

    #[test]
    fn what_is_no_list_of_names_is_named() {
        for wrong in ["\"8.1\" = \"a\"", "\"8.1\" = [1]", "8.1 = [\"a\"]"] {
            assert!(table(&format!("[blocking]\n{wrong}\n")).unwrap_err().message.contains("is not a list of names"));
        }
        assert_eq!(table("blocking = 1\n").unwrap_err().message, "blocking is not a table");
    }
}
