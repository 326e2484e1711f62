//! The programs with kernels that stages look at: suites, benchmarks and examples, built once with images for NVIDIA GPUs and for OpenCL.
//!
//! Invariant: one build for all stages. Each of them sees the images of its own target, and both come from one compilation of the host's
//! code. Suites run on the host from the same build. Two of them have images for OpenCL alone. The conformance suite has more kernels than
//! all others together, and the accuracy of mathematics is built by its own stage. Each further target takes minutes of two slow processors. The bundle for GPU
//! machines builds them for GPUs, and runs them there. Does not look into programs, and runs none.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value;

use crate::examples;
use crate::outcome::{Failure, Result};
use crate::process::{self, cargo};
use crate::workspace::Workspace;

/// The target of NVIDIA GPUs: the oldest that images are made for.
pub(crate) const PTX: &str = "sm_70";
/// The target of OpenCL devices.
const SPIRV: &str = "spirv";

/// The level that optimised programs have native code for by default.
const NATIVE: &str = "host-v3";

/// The packages whose programs have kernels.
const PACKAGES: &[&str] = &["oxisycl", "oxisycl-examples", "oxisycl-kernel-suite"];
/// Programs of theirs that run on devices: four suites, the benchmarks and the examples, with the targets that they have images for. Kernels of
/// the other tests talk with their host, in ways that no GPU has, and some reach the whole runtime.
const PROGRAMS: [(&[&str], &[&str]); 2] = [
    (&["--test", "kernels", "--test", "fuzz", "--benches", "--examples"], &[PTX, SPIRV]),
    (&["--test", "conformance"], &[SPIRV]),
];
/// One that is built apart, by the stage that runs it.
const MATH: [(&[&str], &[&str]); 1] = [(&["--test", "math"], &[SPIRV])];

/// Tests with their own `main` that are programs of this kind, with their packages. Plain `cargo test` builds none of them.
pub(crate) const BARE_TESTS: [(&str, &str); 3] =
    [("oxisycl", "conformance"), ("oxisycl-kernel-suite", "kernels"), ("oxisycl-kernel-suite", "fuzz")];

/// The programs by kind and name, such as `test conformance`. Built by the first stage that asks.
pub(crate) fn all(workspace: &Workspace) -> Result<&'static BTreeMap<String, PathBuf>> {
    static BUILT: OnceLock<Result<BTreeMap<String, PathBuf>>> = OnceLock::new();
    BUILT.get_or_init(|| build(workspace, &PROGRAMS)).as_ref().map_err(Clone::clone)
}

/// One of them.
pub(crate) fn named(workspace: &Workspace, kind: &str, name: &str) -> Result<PathBuf> {
    let program = all(workspace)?.get(&format!("{kind} {name}")).cloned();
    program.ok_or_else(|| Failure::new(format!("cargo built no {kind} {name}")))
}

/// The accuracy of mathematics. Built now.
pub(crate) fn math(workspace: &Workspace) -> Result<PathBuf> {
    let program = build(workspace, &MATH)?.remove("test math");
    program.ok_or_else(|| Failure::new("cargo built no test math"))
}

/// Optimised programs with native code for a level: the examples and the suite of kernels of ordinary code. Built now, as
/// benchmarks and users' programs are: across the parts of each crate, without which plain entries are slower than they need be.
pub(crate) fn optimised(workspace: &Workspace) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = cargo(workspace);
    command.args(["sycl", "build", "--profile", "bench", "--targets", NATIVE]);
    command.args([
        "--message-format",
        "json-render-diagnostics",
        "--examples",
        "--bench",
        "groups",
        "--test",
        "kernels",
    ]);
    command
        .args(PACKAGES.iter().flat_map(|package| ["-p", package]))
        .args(["--features", &examples::features(workspace)?]);
    let messages = process::run_for_output(&mut command)?.succeeded()?.stdout;
    Ok(messages.lines().filter_map(|line| executable(&line.parse().ok()?)).collect())
}

/// The suite of kernels of ordinary code and the examples, with native code for a level, which only optimised programs have in vectors. Built
/// now, by one compilation of what they share.
pub(crate) fn native(workspace: &Workspace) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = cargo(workspace);
    command.args(["sycl", "build", "--release", "--targets", NATIVE, "--message-format", "json-render-diagnostics"]);
    command.args(["-p", "oxisycl-kernel-suite", "-p", examples::PACKAGE, "--test", "kernels", "--examples"]);
    command.args(["--features", &examples::features(workspace)?]);
    let messages = process::run_for_output(&mut command)?.succeeded()?.stdout;
    Ok(messages.lines().filter_map(|line| executable(&line.parse().ok()?)).collect())
}

fn build(workspace: &Workspace, sets: &[(&[&str], &[&str])]) -> Result<BTreeMap<String, PathBuf>> {
    let features = examples::features(workspace)?;
    let mut built = BTreeMap::new();
    for (programs, targets) in sets {
        let mut command = cargo(workspace);
        command.args(["sycl", "build", "--targets", &targets.join(",")]);
        command.args(["--message-format", "json-render-diagnostics"]).args(*programs);
        // The same packages and features each time, so that what they share is built once.
        command.args(PACKAGES.iter().flat_map(|package| ["-p", package])).args(["--features", &features]);
        let messages = process::run_for_output(&mut command)?.succeeded()?.stdout;
        built.extend(messages.lines().filter_map(|line| executable(&line.parse().ok()?)));
    }
    Ok(built)
}

/// The program that one of cargo's messages is about, if it is about one: kind and name, and its file.
fn executable(message: &Value) -> Option<(String, PathBuf)> {
    let path = message["executable"].as_str()?;
    let target = &message["target"];
    Some((format!("{} {}", target["kind"][0].as_str()?, target["name"].as_str()?), PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read_from_cargos_messages() {
        let read = |text: &str| executable(&text.parse().expect("JSON"));
        let tour = r#"{"target":{"name":"tour","kind":["example"]},"executable":"/t/tour"}"#;
        assert_eq!(read(tour), Some(("example tour".to_owned(), PathBuf::from("/t/tour"))));
        assert_eq!(read(r#"{"target":{"name":"lib","kind":["lib"]},"executable":null}"#), None);
        assert_eq!(read(r#"{"reason":"build-finished"}"#), None);
    }
}
