//! How many numbers are tested, have a reason or are planned, in the lines that the README quotes.

use std::collections::BTreeSet;

use super::entry::{Entry, State};
use super::table::NumberTable;

pub(super) const README: &str = "README.md";

/// One line for the seed requirements and one for the rows.
pub(super) fn lines(table: &NumberTable, entries: &[Entry]) -> Vec<String> {
    let line = |numbers: &BTreeSet<String>, what: &str| {
        let count =
            |state| entries.iter().filter(|entry| numbers.contains(&entry.id) && entry.state() == Some(state)).count();
        let [tested, reason, planned] = [State::Tested, State::Reason, State::Planned].map(count);
        format!("{} {what}: {tested} tested, {reason} reason, {planned} planned", numbers.len())
    };
    vec![line(&table.seed, "seed requirements"), line(&table.rows, "rows of SYCL 2020 and extensions")]
}

/// Findings for lines that the README does not have as they are.
pub(super) fn check_readme(readme: &str, lines: &[String]) -> Vec<String> {
    let is_missing = |line: &&String| !readme.lines().any(|quoted| quoted == **line);
    lines.iter().filter(is_missing).map(|line| format!("{README} does not quote the line \"{line}\"")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{FILE, entry, table};
    use super::*;
    use crate::workspace::{Workspace, parse_toml};

    #[test]
    fn the_readme_quotes_what_the_command_prints() {
        let workspace = Workspace::load().unwrap();
        let table = table::parse(&workspace.read(table::FILE).unwrap()).unwrap();
        let entries = entry::parse(&parse_toml(FILE, &workspace.read(FILE).unwrap()).unwrap()).unwrap();
        assert_eq!(check_readme(&workspace.read(README).unwrap(), &lines(&table, &entries)), [""; 0]);
    }

    #[test]
    fn numbers_are_counted_by_their_states() {
        let table =
            table::parse("[seed]\nS-R1 = \"a\"\n[rows]\nA1 = \"a\"\nA2 = \"b\"\n[planned]\nx = \"y\"\n").unwrap();
        let entry = |id: &str, tests: &[&str], planned: &[&str]| Entry {
            id: id.to_owned(),
            tests: tests.iter().map(|&test| test.to_owned()).collect(),
            reason: Some("why".to_owned()),
            planned: planned.iter().map(|&part| part.to_owned()).collect(),
        };
        let lines = lines(&table, &[entry("S-R1", &["t"], &[]), entry("A1", &["t"], &["x"]), entry("A2", &[], &[])]);
        assert_eq!(lines[0], "1 seed requirements: 1 tested, 0 reason, 0 planned");
        assert_eq!(lines[1], "2 rows of SYCL 2020 and extensions: 0 tested, 1 reason, 1 planned");
        assert_eq!(check_readme(&lines.join("\n"), &lines), [""; 0]);
        assert_eq!(check_readme(&format!("{} ", lines.join("\n")), &lines).len(), 1);
    }
}
