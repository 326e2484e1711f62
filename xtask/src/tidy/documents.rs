use std::collections::BTreeSet;

use crate::workspace::{File, Package};

/// What every setting of the libraries begins with.
const PREFIX: &str = "OXISYCL_";
/// What names begin with that every program may use.
const FOR_TESTS: &str = "OXISYCL_TEST_";
/// Sources whose tests name variables that are not there.
const OWN_TESTS: &str = "xtask/src/tidy/";

/// Findings for crates that `ARCHITECTURE.md` does not mention.
pub(super) fn check_architecture(text: &str, packages: &[Package]) -> Vec<String> {
    let missing = packages.iter().filter(|package| !mentions(text, &package.name));
    missing.map(|package| format!("ARCHITECTURE.md: does not mention {}", package.name)).collect()
}

/// Findings for environment variables that stand in the crates' sources or in the book's table, but not in both. Names that every program may
/// use are those of unit tests.
pub(super) fn check_settings(chapter: &str, files: &[File]) -> Vec<String> {
    let described = variables(chapter);
    let mut used = BTreeSet::new();
    for file in files.iter().filter(|file| is_library_source(&file.path)) {
        used.extend(variables(&file.text).into_iter().filter(|name| !name.starts_with(FOR_TESTS)));
    }
    let undescribed = used.difference(&described).map(|name| format!("book/src/settings.md: does not describe {name}"));
    let unused = described.difference(&used).map(|name| format!("book/src/settings.md: no crate reads {name}"));
    undescribed.chain(unused).collect()
}

/// Findings for variables that no library reads and that programs report as unknown. They are neither settings of the book's table, nor
/// names that every program may use. Sources outside of the libraries name them in a string, and what starts CI anywhere.
pub(super) fn check_test_variables(chapter: &str, files: &[File]) -> Vec<String> {
    let described = variables(chapter);
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !is_library_source(&file.path) && !file.path.starts_with(OWN_TESTS)) {
        let mut unknown = match file.path.rsplit('.').next() {
            Some("rs") => arguments(&file.text),
            Some("md" | "toml") => continue,
            _ => variables(&file.text),
        };
        unknown.retain(|name| !name.starts_with(FOR_TESTS) && !described.contains(name));
        let finding =
            |name| format!("{}: reads {name}, expected a name with {FOR_TESTS} or of book/src/settings.md", file.path);
        findings.extend(unknown.into_iter().map(finding));
    }
    findings
}

/// The variables that are the first argument of a function, such as `var`. In pairs stand variables that are set.
fn arguments(text: &str) -> BTreeSet<String> {
    let is_called = |start: &usize| is_name_character(text[..*start].chars().next_back());
    let quotes = text.match_indices("(\"").map(|(start, _)| start).filter(is_called);
    let quoted = quotes.filter_map(|start| text[start + 2..].split('"').next());
    quoted.filter(|text| variables(text).contains(*text)).map(str::to_owned).collect()
}

/// Whether a file is a source of a library, not of its integration tests.
fn is_library_source(path: &str) -> bool {
    let mut parts = path.split('/');
    path.ends_with(".rs") && parts.next() == Some("crates") && parts.nth(1) == Some("src")
}

/// The variable names in a text. `OXISYCL_*` and names that are only a beginning do not count.
fn variables(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (start, _) in text.match_indices(PREFIX) {
        let rest = &text[start..];
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        let name = &rest[..end.unwrap_or(rest.len())];
        if !name.ends_with('_') && !is_name_character(text[..start].chars().next_back()) {
            names.insert(name.to_owned());
        }
    }
    names
}

/// Whether a name occurs as a whole: `oxisycl-backend` is not mentioned by `oxisycl-backend-host`.
fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let mut after = text[start + name.len()..].chars();
        let continues = match after.next() {
            Some('-') => is_name_character(after.next()),
            next => is_name_character(next),
        };
        !continues && !is_name_character(before) && before != Some('-')
    })
}

fn is_name_character(character: Option<char>) -> bool {
    character.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn package(name: &str) -> Package {
        Package { name: name.to_owned(), ..Package::default() }
    }

    #[test]
    fn a_longer_name_does_not_mention_a_shorter_one() {
        let packages = [package("oxisycl-backend"), package("oxisycl-backend-host")];
        let text = "`oxisycl-backend-host/` runs kernels";
        assert_eq!(check_architecture(text, &packages), ["ARCHITECTURE.md: does not mention oxisycl-backend"]);
        assert!(check_architecture("oxisycl-backend: the contract - oxisycl-backend-host", &packages).is_empty());
    }

    #[test]
    fn settings_must_stand_in_both_places() {
        let chapter = "| `OXISYCL_TRACE` | a file |\n| `OXISYCL_OLD` | gone |\nAll `OXISYCL_*` variables.";
        let files = [
            file("crates/a/src/trace.rs", "env::var(\"OXISYCL_TRACE\")"),
            file("crates/a/src/deep/graph.rs", "env::var(\"OXISYCL_GRAPH\")"),
            file("crates/a/tests/t.rs", "set_var(\"OXISYCL_ONLY_IN_A_TEST\")"),
            file("crates/a/src/tests.rs", "var(\"OXISYCL_TEST_SWITCH\")"),
            file("examples/e.rs", "set_var(\"OXISYCL_ONLY_IN_AN_EXAMPLE\")"),
        ];
        assert_eq!(
            check_settings(chapter, &files),
            [
                "book/src/settings.md: does not describe OXISYCL_GRAPH",
                "book/src/settings.md: no crate reads OXISYCL_OLD"
            ]
        );
    }

    #[test]
    fn variables_of_tests_are_settings_or_free_names() {
        let chapter = "| `OXISYCL_TRACE` | a file |";
        let text = "var(\"OXISYCL_TRACE\"); var(\"OXISYCL_NEW\"); var(\"OXISYCL_TEST_X\"); print(\"OXISYCL_OTHER is read\"); (\"OXISYCL_SET\", 1)";
        let read_by = ["crates/a/tests/t.rs", "xtask/src/a.rs", "benches/b.rs", "examples/e.rs", "crates-suite/c.rs"];
        let others = ["crates/a/src/lib.rs", "xtask/src/tidy/d.rs", "benches/results/r.md"];
        let files: Vec<File> = read_by.iter().chain(&others).map(|path| file(path, text)).collect();
        let finding = |path: &str, name: &str| {
            format!("{path}: reads {name}, expected a name with OXISYCL_TEST_ or of book/src/settings.md")
        };
        assert_eq!(check_test_variables(chapter, &files), read_by.map(|path| finding(path, "OXISYCL_NEW")));
        let script = [file(".ci/run", "OXISYCL_TRACE=a OXISYCL_TEST_X=1 OXISYCL_NEW=2 run")];
        assert_eq!(check_test_variables(chapter, &script), [finding(".ci/run", "OXISYCL_NEW")]);
    }

    #[test]
    fn parts_of_names_are_no_variables() {
        assert!(variables("OXISYCL_* OXISYCL_SIMULATED_{n} MY_OXISYCL_X").is_empty());
        assert_eq!(variables("OXISYCL_A,OXISYCL_B2.").into_iter().collect::<Vec<_>>(), ["OXISYCL_A", "OXISYCL_B2"]);
    }
}
