//! The oldest Rust version that the manifests promise: stated once, inherited by every crate, and able to build all crates.
//!
//! Where this toolchain is of the promised version, every other stage builds with it. Else the stage builds all crates with the promised one.

use std::env;
use std::process::Command;

use toml::Value;

use crate::outcome::{Failure, Outcome, Result};
use crate::process::{of_toolchain, run as run_child, run_quietly, succeeds};
use crate::workspace::{Workspace, parse_toml};

/// Compares the promise with the running compiler and checks that every crate inherits it.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let promised = promised(&workspace.read("Cargo.toml")?)?;
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let captured = run_quietly(Command::new(rustc).arg("--version").current_dir(&workspace.root))?.succeeded()?;
    let running = captured.stdout.split_whitespace().nth(1).unwrap_or_default();
    if version(running)? < version(&promised)? {
        return Err(Failure::new(format!("rust-version is {promised}, but this is rustc {running}")));
    }
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let manifest = parse_toml(&format!("the manifest of {}", package.name), &package.manifest()?)?;
        let rust_version = manifest.get("package").and_then(|table| table.get("rust-version"));
        if rust_version.and_then(|value| value.get("workspace")).and_then(Value::as_bool) != Some(true) {
            findings.push(format!("{}: does not inherit rust-version", package.name));
        }
    }
    Failure::unless_empty("manifest", findings)?;
    if version(running)?[..2] == version(&promised)?[..2] {
        return Ok(Outcome::Passed(format!("rust-version {promised}, which this is: rustc {running}")));
    }
    if !succeeds(of_toolchain(workspace, &promised, "cargo").arg("--version")) {
        let install = format!("rustup toolchain install {promised} --profile minimal");
        return Ok(Outcome::Skipped(format!("this is rustc {running}, and there is no {promised}: `{install}`")));
    }
    let mut command = of_toolchain(workspace, &promised, "cargo");
    command.args(["check", "--workspace", "--all-features"]);
    run_child(command.arg("--target-dir").arg(workspace.target_directory.join("msrv")))?;
    Ok(Outcome::Passed(format!("built with rustc {promised}; this is {running}")))
}

/// `workspace.package.rust-version` of the root manifest.
fn promised(manifest: &str) -> Result<String> {
    let manifest = parse_toml("Cargo.toml", manifest)?;
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let version = package.and_then(|package| package.get("rust-version")).and_then(Value::as_str);
    version.map(str::to_owned).ok_or_else(|| Failure::new("Cargo.toml: no workspace.package.rust-version"))
}

/// A version as numbers that compare; `1.95` is `1.95.0`, and what follows a `-` does not count.
fn version(text: &str) -> Result<[u32; 3]> {
    let wrong = || Failure::new(format!("\"{text}\" is not a version"));
    let mut numbers = [0; 3];
    let mut parts = text.split('-').next().unwrap_or_default().split('.');
    for (position, number) in numbers.iter_mut().enumerate() {
        match parts.next() {
            Some(part) => *number = part.parse().map_err(|_| wrong())?,
            None if position < 2 => return if position == 0 { Err(wrong()) } else { Ok(numbers) },
            None => {}
        }
    }
    if parts.next().is_some() { Err(wrong()) } else { Ok(numbers) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(version("1.100").unwrap() > version("1.95.3").unwrap());
        assert_eq!(version("1.95").unwrap(), [1, 95, 0]);
        assert_eq!(version("1.97.0-nightly").unwrap(), [1, 97, 0]);
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for wrong in ["", "one", "1.x", "1.2.3.4", "1..2"] {
            assert!(version(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_promise_stands_in_the_root_manifest() {
        assert_eq!(promised("[workspace.package]\nrust-version = \"1.95\"\n"), Ok("1.95".to_owned()));
        assert!(promised("[workspace]\n").is_err());
    }
}
