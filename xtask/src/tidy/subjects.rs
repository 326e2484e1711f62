//! Subjects of commits: at most [`MOST_CHARACTERS`] long, as tools that show histories expect. Reasons stand in the body.
//!
//! Looks at the newest commits only: older ones cannot be changed any more. What lies outside of a git repository has no commits to check.

use std::path::Path;
use std::process::Command;

/// The most characters of a subject.
const MOST_CHARACTERS: usize = 72;
/// How many of the newest commits are checked.
const N_COMMITS: usize = 50;

/// Findings for the newest commits. There are none without git, or without a repository of the project's own.
pub(super) fn check(root: &Path) -> Vec<String> {
    // A repository further up is that of another project, which has this one's sources among its files.
    if !root.join(".git").exists() {
        return Vec::new();
    }
    let newest = N_COMMITS.to_string();
    // `HEAD` has fewer commits in a shallow clone: those that are there count.
    let log =
        Command::new("git").arg("-C").arg(root).args(["log", "--no-merges", "--format=%h %s", "-n", &newest]).output();
    match log {
        Ok(log) if log.status.success() => check_log(&String::from_utf8_lossy(&log.stdout)),
        _ => Vec::new(),
    }
}

/// Findings for lines of abbreviated hash and subject.
fn check_log(log: &str) -> Vec<String> {
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    let long = commits.filter_map(|(hash, subject)| {
        let n_characters = subject.chars().count();
        let is_long = n_characters > MOST_CHARACTERS;
        is_long.then(|| {
            format!("commit {hash}: a subject of {n_characters} characters, at most {MOST_CHARACTERS}: {subject}")
        })
    });
    long.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_of_more_than_72_characters_are_refused() {
        let subject = |n_characters: usize| "\u{e9}".repeat(n_characters);
        let log = format!("abc0 {}\nabc1 {}\nabc2 Short one\n", subject(72), subject(73));
        let expected = format!("commit abc1: a subject of 73 characters, at most 72: {}", subject(73));
        assert_eq!(check_log(&log), [expected]);
        assert_eq!(check_log(""), [""; 0]);
    }

    #[test]
    fn a_folder_without_a_repository_has_no_commits() {
        assert_eq!(check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")), [""; 0]);
    }
}
