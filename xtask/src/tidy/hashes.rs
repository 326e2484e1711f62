//! Commits that documents name: each is one of this history, so that readers find the state that a result was measured on.
//!
//! Looks at words in backquotes that can only be abbreviated hashes. What lies outside of a git repository, or in a clone without the whole
//! history, is not checked.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::workspace::File;

/// The fewest and the most digits of a hash in a document.
const LENGTHS: std::ops::RangeInclusive<usize> = 7..=40;
/// Documents that name commits, beside the pages of the book and of results.
const DOCUMENTS: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "benches/LOG.md"];
/// Folders of such documents.
const FOLDERS: [&str; 2] = ["benches/results/", "book/src/"];

/// Findings for all documents. There are none without git, or without the whole history of the project's own repository.
pub(super) fn check(root: &Path, files: &[File]) -> Vec<String> {
    // A repository further up is that of another project, which has this one's sources among its files.
    if !root.join(".git").exists() || git(root, &["rev-parse", "--is-shallow-repository"]).as_deref() != Some("false\n")
    {
        return Vec::new();
    }
    match git(root, &["rev-list", "HEAD"]) {
        Some(history) => check_documents(files, &history),
        None => Vec::new(),
    }
}

/// What git prints, if it succeeds.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Findings for hashes that are not those of a line of `history`.
fn check_documents(files: &[File], history: &str) -> Vec<String> {
    let history: BTreeSet<&str> = history.lines().collect();
    // In order, what begins with a text is the first that is not less.
    let is_known = |hash: &str| history.range(hash..).next().is_some_and(|first: &&str| first.starts_with(hash));
    let mut findings = Vec::new();
    for File { path, text } in files.iter().filter(|file| is_checked(&file.path)) {
        for (number, line) in text.lines().enumerate() {
            let unknown = hashes(line).filter(|hash| !is_known(hash));
            findings.extend(
                unknown.map(|hash| format!("{path}:{}: `{hash}` is no commit that HEAD descends from", number + 1)),
            );
        }
    }
    findings
}

fn is_checked(path: &str) -> bool {
    path.ends_with(".md") && (DOCUMENTS.contains(&path) || FOLDERS.iter().any(|folder| path.starts_with(folder)))
}

/// The code spans of a line that are hashes. A span without a digit is a word, and one without a letter is a number.
fn hashes(line: &str) -> impl Iterator<Item = &str> {
    let spans = line.split('`').skip(1).step_by(2);
    spans.filter(|span| {
        LENGTHS.contains(&span.len())
            && span.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && span.bytes().any(|byte| byte.is_ascii_digit())
            && span.bytes().any(|byte| byte.is_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_known_or_findings() {
        let history = "0123abc7\n4567abc890\nbcdef012\n";
        let text = "State: `4567abc`, not `4567abd`.\nOf `bcdef012`, `bcdef0123` and `facade0`";
        let file = |path: &str| File { path: path.to_owned(), text: text.to_owned() };
        let files = [file("benches/results/a.md"), file("crates/a/README.md"), file("benches/results/a.json")];
        let expected = |line: usize, hash: &str| {
            format!("benches/results/a.md:{line}: `{hash}` is no commit that HEAD descends from")
        };
        assert_eq!(
            check_documents(&files, history),
            [expected(1, "4567abd"), expected(2, "bcdef0123"), expected(2, "facade0")]
        );
    }

    #[test]
    fn words_and_numbers_are_no_hashes() {
        let found = |line| hashes(line).collect::<Vec<_>>();
        assert_eq!(found("`defaced`, `12345678`, `abc12`, 4567abc, `a4567abc()` and `4567ABC`"), [""; 0]);
        assert_eq!(found("4567abc `4567abc` 4567abd `4567abe`"), ["4567abc", "4567abe"]);
    }

    #[test]
    fn a_folder_without_a_repository_has_no_history() {
        let file = File { path: "README.md".to_owned(), text: "`4567abd`".to_owned() };
        assert_eq!(check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &[file]), [""; 0]);
    }
}
