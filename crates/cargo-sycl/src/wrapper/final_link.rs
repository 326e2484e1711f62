//! The host's compilation of a crate that is linked with code of its kernels.
//!
//! Native code may refer to what the link does not have, since the linker drops rustc's code of a kernel that nothing launches. A symbol may
//! also be local to another object. So a link that fails at native code is repeated without the code at which it failed. Invariants: a program
//! that links without native code also links with it, and a link that fails for another reason is not repeated. Of such a link the messages
//! are rustc's own.

use std::collections::HashSet;
use std::fs::{self, File};
use std::process::ExitStatus;

use serde_json::Value;

use super::Host;
use super::diagnostic::Reporter;
use super::link::Linked;
use super::native::{Blamed, blamed};
use super::sidecar::Place;
use crate::failure::{Failure, Result};
use crate::files::temporary_name;

/// Runs the compilation. Gives how it ended. What native code is missing is a warning if the user named its level.
pub(super) fn run(
    host: &Host,
    place: &Place,
    mut linked: Linked,
    reporter: &Reporter,
    are_targets_named: bool,
) -> Result<ExitStatus> {
    let start = |linked: &Linked| host.command(&linked.arguments());
    if linked.native.is_empty() {
        return start(&linked).status().map_err(|error| Failure::start(&host.program, error));
    }
    let path = temporary_name(&place.object());
    let mut shown = HashSet::new();
    let mut dropped: Vec<Blamed> = Vec::new();
    let status = loop {
        // No pipe: a process that outlives the compiler may hold its standard error.
        let file = File::create(&path).map_err(|error| Failure::file(&path, error))?;
        let status = start(&linked).stderr(file).status().map_err(|error| Failure::start(&host.program, error))?;
        let bytes = fs::read(&path).map_err(|error| Failure::file(&path, error))?;
        let text = String::from_utf8_lossy(&bytes);
        let to_blame = match status.success() {
            true => Vec::new(),
            false => blamed(&linked.native, &of_linker(&text, &place.object().to_string_lossy()))?,
        };
        if to_blame.is_empty() {
            show(&text, &mut shown, |_| true);
            break status;
        }
        // What another attempt says again. Errors are not said.
        show(&text, &mut shown, |line| !is_error(line));
        linked.drop_native(&to_blame)?;
        dropped.extend(to_blame);
    };
    // Only this attempt has written there.
    let _ = fs::remove_file(&path);
    if status.success() && !dropped.is_empty() {
        let each: Vec<String> = dropped.iter().map(Blamed::to_string).collect();
        let text = format!(
            "the native code of some kernels cannot be linked, so the program has Rust's alone: {}",
            each.join("; ")
        );
        if are_targets_named { reporter.warning(&text) } else { reporter.note(&text) }
    }
    Ok(status)
}

/// Writes lines that were not written yet.
fn show(text: &str, shown: &mut HashSet<String>, is_wanted: impl Fn(&str) -> bool) {
    for line in text.lines().filter(|line| is_wanted(line)) {
        if !line.starts_with('{') || shown.insert(line.to_owned()) {
            eprintln!("{line}");
        }
    }
}

/// A message of rustc in JSON.
fn message(line: &str) -> Option<Value> {
    line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten()
}

/// Whether a line of rustc's is an error, or belongs to one. Text that is not JSON may.
fn is_error(line: &str) -> bool {
    message(line).is_none_or(|message| matches!(message["level"].as_str(), Some("error" | "failure-note")))
}

/// What the linker said if it failed. The command that started it, which names the object `registration`, is no part of that.
fn of_linker(text: &str, registration: &str) -> String {
    let mut said = String::new();
    for line in text.lines() {
        match message(line) {
            Some(message) if message["message"].as_str().is_some_and(|text| text.starts_with("linking with ")) => {
                let children = message["children"].as_array().into_iter().flatten();
                children.filter_map(|child| child["message"].as_str()).for_each(|text| said.extend([text, "\n"]));
            }
            Some(_) => {}
            None => said.extend([line, "\n"]),
        }
    }
    said.lines().filter(|line| !line.contains(registration)).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_the_linker_is_nothing_that_it_says() {
        let error = r#"{"level":"error","message":"linking with `cc` failed: exit status: 1","children":[{"message":" \"cc\" \"/t/a.o\" \"/t/a.0.o\""},{"message":"ld: undefined symbol: x\n>>> referenced by /t/a.1.o"}]}"#;
        let other = r#"{"level":"error","message":"aborting, see /t/a.2.o","children":[]}"#;
        let said = of_linker(&format!("{other}\n{error}\n"), "/t/a.o");
        assert_eq!(said, "ld: undefined symbol: x\n>>> referenced by /t/a.1.o\n");
        let text =
            "error: linking with `cc` failed\n = note: \"cc\" \"/t/a.o\" \"/t/a.0.o\"\n = note: ld: /t/a.1.o: no x\n";
        assert!(!of_linker(text, "/t/a.o").contains("a.0.o") && of_linker(text, "/t/a.o").contains("a.1.o"));
    }

    #[test]
    fn errors_are_told_from_what_every_attempt_says() {
        assert!(is_error(r#"{"level":"error"}"#) && is_error(r#"{"level":"failure-note"}"#) && is_error("text"));
        assert!(!is_error(r#"{"level":"warning"}"#) && !is_error(r#"{"artifact":"a"}"#));
    }
}
