use toml::{Table, Value};

use crate::outcome::{Failure, Result};

/// One requirement: its number, its tests, why there are none or what differs, and what is to bring the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) tests: Vec<String>,
    pub(super) reason: Option<String>,
    pub(super) planned: Vec<String>,
}

/// How far a requirement is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Tests show it.
    Tested,
    /// The requirement has no counterpart, cannot be tested or is left out on purpose.
    Reason,
    /// All or some of it is missing until a part of the project is built.
    Planned,
}

/// The keys an entry may have.
const KEYS: &[&str] = &["id", "source", "behaviour", "tests", "reason", "planned"];

impl Entry {
    /// What is missing wins over what is tested. `None` if the entry says nothing.
    pub(super) fn state(&self) -> Option<State> {
        if !self.planned.is_empty() {
            Some(State::Planned)
        } else if !self.tests.is_empty() {
            Some(State::Tested)
        } else {
            self.reason.as_ref().map(|_| State::Reason)
        }
    }
}

/// Reads the entries of the document; a key that is missing, unknown, empty or of the wrong type is a failure that names the entry.
pub(super) fn parse(document: &Table) -> Result<Vec<Entry>> {
    if let Some(key) = document.keys().find(|key| *key != "requirement" && *key != super::blocking::KEY) {
        let expected = format!("[[requirement]] or [{}]", super::blocking::KEY);
        return Err(Failure::new(format!("{}: unknown key \"{key}\" (expected: {expected})", super::FILE)));
    }
    let entries = document.get("requirement").and_then(Value::as_array);
    let Some(entries) = entries else {
        return Err(Failure::new(format!("{}: no [[requirement]]", super::FILE)));
    };
    let tables = entries.iter().enumerate().map(|(position, entry)| match entry.as_table() {
        Some(table) => from_table(position, table),
        None => Err(Failure::new(format!("entry {}: not a table", position + 1))),
    });
    tables.collect()
}

fn from_table(position: usize, table: &Table) -> Result<Entry> {
    let id = text(&format!("entry {}", position + 1), table, "id")?
        .ok_or_else(|| Failure::new(format!("entry {}: no id", position + 1)))?;
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(Failure::new(format!("{id}: unknown key \"{key}\" (known: {})", KEYS.join(", "))));
    }
    for key in ["source", "behaviour"] {
        text(&id, table, key)?.ok_or_else(|| Failure::new(format!("{id}: no {key}")))?;
    }
    let tests = names(&id, table, "tests")?;
    let reason = text(&id, table, "reason")?;
    let planned = names(&id, table, "planned")?;
    Ok(Entry { id, tests, reason, planned })
}

/// A list of texts, each once; empty if the key is absent.
fn names(owner: &str, table: &Table, key: &str) -> Result<Vec<String>> {
    let wrong = || Failure::new(format!("{owner}: {key} is not a list of names"));
    let mut names: Vec<String> = Vec::new();
    if let Some(list) = table.get(key) {
        for name in list.as_array().ok_or_else(wrong)? {
            let name = name.as_str().ok_or_else(wrong)?;
            if names.iter().any(|other| other == name) {
                return Err(Failure::new(format!("{owner}: {key} has \"{name}\" twice")));
            }
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// A non-empty text, or `None` if the key is absent.
fn text(owner: &str, table: &Table, key: &str) -> Result<Option<String>> {
    match table.get(key).map(Value::as_str) {
        None => Ok(None),
        Some(Some(text)) if !text.trim().is_empty() => Ok(Some(text.to_owned())),
        Some(_) => Err(Failure::new(format!("{owner}: {key} is empty or not a text"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::parse_toml;

    const GOOD: &str = "[[requirement]]\nid = \"A1\"\nsource = \"s\"\nbehaviour = \"b\"\n";

    fn read(text: &str) -> Result<Vec<Entry>> {
        parse(&parse_toml(crate::requirements::FILE, text)?)
    }

    fn error(text: &str) -> String {
        read(text).unwrap_err().message
    }

    #[test]
    fn an_entry_may_have_tests_or_a_reason_or_neither() {
        let bare = Entry { id: "A1".to_owned(), tests: Vec::new(), reason: None, planned: Vec::new() };
        assert_eq!(read(GOOD), Ok(vec![bare.clone()]));
        let tests = read(&format!("{GOOD}tests = [\"a b\", \"a c\"]\n")).unwrap();
        assert_eq!(tests, [Entry { tests: vec!["a b".to_owned(), "a c".to_owned()], ..bare.clone() }]);
        let reason = read(&format!("{GOOD}tests = []\nreason = \"later\"\n")).unwrap();
        assert_eq!(reason, [Entry { reason: Some("later".to_owned()), ..bare }]);
    }

    #[test]
    fn a_plan_wins_over_tests_and_those_over_a_reason() {
        let state = |keys: &str| read(&format!("{GOOD}{keys}")).unwrap()[0].state();
        assert_eq!(state(""), None);
        assert_eq!(state("reason = \"r\"\n"), Some(State::Reason));
        assert_eq!(state("reason = \"r\"\ntests = [\"a b\"]\n"), Some(State::Tested));
        assert_eq!(state("tests = [\"a b\"]\nplanned = [\"images\"]\n"), Some(State::Planned));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        assert_eq!(error("[[requirement]]\nsource = \"s\"\n"), "entry 1: no id");
        assert_eq!(error("[[requirement]]\nid = \"A1\"\nsource = \"s\"\n"), "A1: no behaviour");
        assert_eq!(error(&format!("{GOOD}tests = \"a\"\n")), "A1: tests is not a list of names");
        assert_eq!(error(&format!("{GOOD}tests = [1]\n")), "A1: tests is not a list of names");
        assert_eq!(error(&format!("{GOOD}tests = [\"a b\", \"a b\"]\n")), "A1: tests has \"a b\" twice");
        assert_eq!(error(&format!("{GOOD}planned = \"images\"\n")), "A1: planned is not a list of names");
        assert_eq!(error(&format!("{GOOD}reason = \" \"\n")), "A1: reason is empty or not a text");
        assert!(error(&format!("{GOOD}test = []\n")).starts_with("A1: unknown key \"test\""));
        assert!(error("[[requirements]]\n").contains("unknown key \"requirements\""));
        assert!(error("id = ").starts_with("requirements.toml: "));
        assert_eq!(error(""), "requirements.toml: no [[requirement]]");
    }
}
