//! Quirks of drivers in tests: the switch by which their reproducers show the fault, and the book's page.
//!
//! A reproducer passes as any test does. It fails where `OXISYCL_TEST_QUIRKS_OFF` names its quirk, as long as the driver has the fault;
//! `cargo xtask validate --only quirks` runs it that way. Only unit tests ask for the variable: what users build has no such switch.

use std::path::{Path, PathBuf};

use oxisycl_types::{Quirk, Reproducer};

/// Names of quirks, with commas between them, whose remedies tests leave out.
const VARIABLE: &str = "OXISYCL_TEST_QUIRKS_OFF";
const PAGE: &str = "book/src/quirks.md";
const HEAD: &str =
    "| quirk | driver | seen with | what goes wrong | remedy | reproducer |\n|---|---|---|---|---|---|\n";

/// Whether the environment switches a quirk off.
#[must_use]
pub fn is_off(quirk: &Quirk) -> bool {
    std::env::var(VARIABLE).is_ok_and(|names| names.split(',').any(|name| name == quirk.name))
}

/// Checks that the book's page has the tables of a crate, each below a heading. With `BLESS=1` it writes them there.
///
/// # Panics
/// If the page has other tables, and if an entry is not well-formed.
pub fn check_page(crate_name: &str, tables: &[(&str, &[Quirk])]) {
    let path = workspace().join(PAGE);
    let found = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{PAGE}: {error}"));
    let mut expected = found.clone();
    for (heading, quirks) in tables {
        quirks.iter().for_each(check);
        let rows: String = quirks.iter().map(|quirk| format!("{quirk}\n")).collect();
        let heading = format!("{heading} (`{crate_name}`)");
        expected = with_table(&expected, &heading, &format!("{HEAD}{rows}"));
    }
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        return std::fs::write(&path, expected).unwrap_or_else(|error| panic!("{PAGE}: {error}"));
    }
    assert!(found == expected, "{PAGE} is not what {crate_name} says: BLESS=1 cargo test -p {crate_name} --lib book");
}

/// A page with another table below a heading.
fn with_table(page: &str, heading: &str, table: &str) -> String {
    let heading = format!("## {heading}\n");
    let section = page.find(&heading).unwrap_or_else(|| panic!("{PAGE}: there is no \"{}\"", heading.trim_end()));
    let start = page[section..].find("\n|").map(|offset| section + offset + 1);
    let start = start.unwrap_or_else(|| panic!("{PAGE}: there is no table below \"{}\"", heading.trim_end()));
    let length = page[start..].find("\n\n").map_or(page.len() - start, |end| end + 1);
    format!("{}{table}{}", &page[..start], &page[start + length..])
}

/// A table has one line for each quirk, and its cells are read by `cargo xtask`.
fn check(quirk: &Quirk) {
    let Quirk { name, driver, seen, fault, switch, reproducer, .. } = *quirk;
    let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
    assert!(!name.is_empty() && name.chars().all(is_name), "\"{name}\": small letters and dashes only");
    let (Reproducer::Test(last) | Reproducer::Without(last)) = reproducer;
    for text in [driver, seen, fault, switch, last] {
        assert!(!text.is_empty() && !text.contains(['|', '\n']), "{name}: \"{text}\" is no cell of a table");
    }
    assert!(fault.ends_with('.') && !fault.contains(". "), "{name}: \"{fault}\" is not one sentence");
}

/// The workspace's root, which is above the crate whose tests run.
fn workspace() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    Path::new(&folder).ancestors().nth(2).expect("a crate of the workspace").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_replaced_below_its_heading_alone() {
        let page = "# Q\n\n## A\n\ntext\n\n| a |\n| 1 |\n\n## B\n\n| b |\n";
        assert_eq!(with_table(page, "A", "| x |\n"), "# Q\n\n## A\n\ntext\n\n| x |\n\n## B\n\n| b |\n");
        assert_eq!(with_table(page, "B", "| x |\n"), "# Q\n\n## A\n\ntext\n\n| a |\n| 1 |\n\n## B\n\n| x |\n");
    }
}
