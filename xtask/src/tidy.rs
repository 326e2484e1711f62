//! The rules of `ARCHITECTURE.md` that a machine can check. They say who may depend on whom, what every crate states about itself, and what
//! no source may contain.
//!
//! Each module below holds one kind of rule as functions from text to findings, so that every rule has its own test.
//! Reads the workspace, changes nothing, and needs no build.

mod beginners;
mod cycles;
mod documents;
mod edges;
mod hashes;
mod manifests;
mod paths;
mod public_unsafe;
mod sentences;
mod sources;
mod subjects;
mod tokens;
mod vendors;

use crate::outcome::{Failure, Outcome, Result};
use crate::workspace::{File, Workspace, read};

/// What starts CI.
const START: &str = ".ci/run";

/// Crates in which `unsafe` cannot even be allowed.
const WITHOUT_UNSAFE: &[&str] = &["oxisycl-types", "oxisycl-image", "oxisycl-macros", "xtask"];

/// Checks every rule; all findings are reported together.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let mut findings = Vec::new();
    let mut cycles = Vec::new();
    for package in &workspace.packages {
        let (broken, largest) = cycles::check(workspace, package)?;
        findings.extend(broken);
        cycles.extend(largest);
        findings.extend(edges::check(package));
        findings.extend(manifests::check(package, &package.manifest()?)?);
        if WITHOUT_UNSAFE.contains(&package.name.as_str())
            && let Some(target) = package.main_target()
        {
            findings.extend(sources::check_forbids_unsafe(&workspace.relative(&target.source), &read(&target.source)?));
        }
    }

    let files = workspace.files(&["rs", "toml", "md", "yml"])?;
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    findings.extend(sources::check_exceptions(&paths));
    findings.extend(manifests::check_readmes(&paths));
    for file in &files {
        findings.extend(sources::check_tabs(file));
        if file.path.ends_with(".rs") {
            findings.extend(sources::check(file, &paths));
            findings.extend(sources::check_numbers(file));
            findings.extend(paths::check(file));
            findings.extend(vendors::check(file));
            findings.extend(beginners::check_sentences(file));
        }
    }

    findings.extend(beginners::check_examples(&files));
    findings.extend(sentences::check(&files));
    findings.extend(subjects::check(&workspace.root));
    findings.extend(hashes::check(&workspace.root, &files));

    match workspace.read("ARCHITECTURE.md") {
        Ok(text) => findings.extend(documents::check_architecture(&text, &workspace.packages)),
        Err(failure) => findings.push(failure.message),
    }
    match workspace.read("book/src/settings.md") {
        Ok(text) => {
            findings.extend(documents::check_settings(&text, &files));
            findings.extend(documents::check_test_variables(&text, &files));
            let start = File { path: START.to_owned(), text: workspace.read(START)? };
            findings.extend(documents::check_test_variables(&text, &[start]));
        }
        Err(failure) => findings.push(failure.message),
    }

    findings.extend(public_unsafe::check_traits(&workspace.packages, &files));
    match workspace.read(public_unsafe::REVIEW) {
        Ok(text) => findings.extend(public_unsafe::check_reviewed(&text, &workspace.packages, &files)),
        Err(failure) => findings.push(failure.message),
    }
    match workspace.read(public_unsafe::LIST) {
        Ok(list) => findings.extend(public_unsafe::check(&list, &workspace.packages, &files)?),
        Err(failure) => findings.push(failure.message),
    }

    println!("  largest module cycles: {}", cycles.join("; "));
    Failure::unless_empty("broken rule", findings)?;
    Ok(Outcome::Passed(format!("{} files, {} packages", files.len(), workspace.packages.len())))
}
