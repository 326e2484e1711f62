//! `requirements-table.toml`: the numbers that must have an entry, and the parts of the project that entries may be planned with.
//!
//! Invariant: numbers are read from the table only, so that none is left out by leaving it out of a program.

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::{Failure, Result};
use crate::workspace::parse_toml;

pub(super) const FILE: &str = "requirements-table.toml";

/// The numbers of the specifications.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NumberTable {
    /// The numbers of the documents that the project implements.
    pub(super) seed: BTreeSet<String>,
    /// The rows of SYCL 2020 and of extensions.
    pub(super) rows: BTreeSet<String>,
    /// What is planned.
    pub(super) parts: BTreeSet<String>,
}

impl NumberTable {
    /// All numbers, those of the seed documents first.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &str> {
        self.seed.iter().chain(&self.rows).map(String::as_str)
    }
}

/// Reads the table. A section that is missing or unknown, a number without a meaning, and a gap in a series are failures.
pub(super) fn parse(text: &str) -> Result<NumberTable> {
    let document = parse_toml(FILE, text)?;
    const SECTIONS: [&str; 3] = ["seed", "rows", "planned"];
    if let Some(unknown) = document.keys().find(|key| !SECTIONS.contains(&key.as_str())) {
        return Err(Failure::new(format!("{FILE}: unknown key \"{unknown}\" (expected: {})", SECTIONS.join(", "))));
    }
    let section = |name: &str| -> Result<BTreeSet<String>> {
        let table = document.get(name).and_then(toml::Value::as_table);
        let table = table.ok_or_else(|| Failure::new(format!("{FILE}: no section [{name}]")))?;
        let meaning = |(id, meaning): (&String, &toml::Value)| match meaning.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(id.clone()),
            _ => Err(Failure::new(format!("{FILE}: {id} has no meaning"))),
        };
        table.iter().map(meaning).collect()
    };
    let table = NumberTable { seed: section("seed")?, rows: section("rows")?, parts: section("planned")? };
    match gap(&table) {
        Some(missing) => Err(Failure::new(format!("{FILE}: {missing} is missing"))),
        None => Ok(table),
    }
}

/// The first number that a series with a higher one lacks.
fn gap(table: &NumberTable) -> Option<String> {
    let mut series: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for id in table.numbers() {
        let prefix = id.trim_end_matches(|c: char| c.is_ascii_digit());
        series.entry(prefix).or_default().insert(id[prefix.len()..].parse().unwrap_or(0));
    }
    let missing = |(prefix, numbers): (&str, BTreeSet<usize>)| {
        let is_missing = |number: &usize| !numbers.contains(number);
        (1..=numbers.len()).find(is_missing).map(|number| format!("{prefix}{number}"))
    };
    series.into_iter().find_map(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn the_table_has_all_numbers_of_the_documents() {
        let table = parse(&Workspace::load().unwrap().read(FILE).unwrap()).unwrap();
        let last = |prefix: &str| {
            table.numbers().filter(|id| id.trim_end_matches(|c: char| c.is_ascii_digit()) == prefix).count()
        };
        assert_eq!([last("S-R"), last("S-F"), last("S-D")], [38, 25, 34]);
        let rows = "A14 B11 C11 D6 E10 F12 G5 H16 I17 J12 K5 L5 M12 N6 O9 P12 Q8 R9 S7 T5 U6 V18";
        for row in rows.split(' ') {
            let (prefix, number) = row.split_at(1);
            assert_eq!(last(prefix).to_string(), number, "{prefix}");
        }
        assert_eq!((table.seed.len(), table.rows.len()), (97, 216));
    }

    #[test]
    fn what_is_wrong_with_a_table_is_named() {
        let error = |text: &str| parse(text).unwrap_err().message;
        let good = "[seed]\nS-R1 = \"a\"\n[rows]\nA1 = \"a\"\n[planned]\nx = \"y\"\n";
        assert!(parse(good).is_ok());
        assert_eq!(error("[seed]\n[rows]\n"), "requirements-table.toml: no section [planned]");
        assert_eq!(error(&good.replace("A1", "A2")), "requirements-table.toml: A1 is missing");
        assert_eq!(error(&good.replace("\"y\"", "1")), "requirements-table.toml: x has no meaning");
        assert!(error(&format!("{good}[more]\n")).contains("unknown key \"more\""));
    }
}
