//! `cargo xtask crates`: kernels that call published crates, on each kind of device, as a table with a row for each crate.
//!
//! The package `crates-suite` is a workspace of its own, so that what it depends on is of no concern to anything else. Its kernels are
//! compared with the same calls on the CPU. Invariants: a run in which no crate was equal is a failure. A run in which a crate was neither
//! equal nor refused as its list of refusals says is a failure, too. The stage runs exactly the [crates](FEW) that take little time. It
//! also builds their kernels for NVIDIA GPUs: `spirv-val` and `ptxas` have to accept all modules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lexopt::Parser;
use lexopt::prelude::*;
use serde_json::Value as Json;

use crate::device_programs::PTX;
use crate::opencl;
use crate::opencl_suites;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo, command};
use crate::ptx;
use crate::workspace::Workspace;

/// The folder of the suite.
pub(crate) const FOLDER: &str = "crates-suite";
/// The package's name, which is that of no member of the workspace.
pub(crate) const PACKAGE: &str = "oxisycl-crates-suite";
/// The suite's program.
pub(crate) const TEST: &str = "crates";

/// The crates without the feature `all`.
const FEW: usize = 10;
/// Kinds of devices, and what kernels are compiled for to run there.
const DEVICES: [(&str, &str); 3] = [("host", "spirv"), ("opencl", "spirv"), ("cuda", PTX)];
/// The longest that the program may run on one device. A driver's compiler takes most of it.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// What became of a crate on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Equal,
    /// With the reason.
    Refused(String),
    /// The results differ, or there are none: what was said.
    Differs(String),
}

/// `cargo xtask crates [--device KIND] [FILTER]`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    let (devices, filter) = parse(arguments)?;
    let devices = match &devices {
        Some(device) => vec![device.as_str()],
        // Those that need no GPU.
        None if opencl::environment(workspace).is_some() => vec!["host", "opencl"],
        None => vec!["host"],
    };
    let program = build(workspace, &targets(&devices).join(","), &["--features", "all"])?;
    let table = table(workspace, &program, &devices, filter.as_deref())?;
    report(&devices, &table, None)
}

/// Ten crates on the host and on OpenCL, whose modules are validated before, and assembled for NVIDIA GPUs where `ptxas` is found.
pub(crate) fn few(workspace: &Workspace) -> Result<Outcome> {
    if opencl::environment(workspace).is_none() {
        return Ok(Outcome::Skipped(format!("no {}: `cargo xtask test` installs them", opencl::NAME)));
    }
    let devices = ["host", "opencl"];
    let program = build(workspace, &targets(&["host", "opencl", "cuda"]).join(","), &["--no-default-features"])?;
    let n_valid = opencl_suites::validate(workspace, TEST, &program)?;
    enough("modules of SPIR-V", n_valid)?;
    let assembled = ptx::assemble_program(workspace, TEST, &program)?;
    if let Some(n_assembled) = assembled {
        enough("kernels of PTX", n_assembled)?;
    }
    let table = table(workspace, &program, &devices, None)?;
    let outcome = report(&devices, &table, Some(FEW))?;
    let Outcome::Passed(summary) = outcome else { return Ok(outcome) };
    let assembled =
        assembled.map_or("PTX not assembled".to_owned(), |n_kernels| format!("{n_kernels} kernels assembled"));
    Ok(Outcome::Passed(format!("{summary}; {n_valid} modules valid, {assembled}")))
}

/// Each crate has at least one kernel.
fn enough(what: &str, found: usize) -> Result<()> {
    if found < FEW { Err(Failure::new(format!("{found} {what}, at least {FEW} expected"))) } else { Ok(()) }
}

/// What kernels are compiled for to run on these devices.
fn targets(devices: &[&str]) -> Vec<&'static str> {
    let mut targets: Vec<&str> =
        DEVICES.iter().filter(|(name, _)| devices.contains(name)).map(|(_, target)| *target).collect();
    targets.dedup();
    targets
}

/// Builds the program, with `arguments` for cargo.
pub(crate) fn build(workspace: &Workspace, targets: &str, arguments: &[&str]) -> Result<PathBuf> {
    let mut command = cargo(workspace);
    command.args(["sycl", "test", "--no-run", "--locked", "--test", TEST, "--targets", targets]);
    command.arg("--manifest-path").arg(workspace.root.join(FOLDER).join("Cargo.toml"));
    command.arg("--target-dir").arg(&workspace.target_directory).args(arguments);
    command.args(["--message-format", "json-render-diagnostics"]);
    let messages = process::run_for_output(&mut command)?.succeeded()?.stdout;
    let built = messages.lines().filter_map(|line| executable(&line.parse().ok()?)).next_back();
    built.ok_or_else(|| Failure::new(format!("cargo built no test {TEST}")))
}

fn executable(message: &Json) -> Option<PathBuf> {
    let is_it = message["target"]["name"] == TEST && message["target"]["kind"][0] == "test";
    message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
}

type Table = BTreeMap<String, BTreeMap<String, Verdict>>;

/// What becomes of each crate on each device.
fn table(workspace: &Workspace, program: &Path, devices: &[&str], filter: Option<&str>) -> Result<Table> {
    let mut table = Table::new();
    for device in devices {
        let mut command = command(workspace, &program.as_os_str().to_owned());
        command.current_dir(workspace.root.join(FOLDER)).args(["--device", device]).args(filter);
        let captured = process::run_within(&mut command, LIMIT)?;
        for (name, verdict) in verdicts(&captured.stdout, device) {
            table.entry(name).or_default().insert((*device).to_owned(), verdict);
        }
    }
    Ok(table)
}

/// What the program says of each crate.
fn verdicts(output: &str, device: &str) -> Vec<(String, Verdict)> {
    let mut messages: BTreeMap<&str, String> = BTreeMap::new();
    let mut of = None;
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" ----")) {
            of = Some(name);
        } else if line == "failures:" || line.starts_with("test result:") {
            of = None;
        } else if let Some(name) = of {
            let text = messages.entry(name).or_default();
            *text = format!("{text} {}", line.trim()).trim().to_owned();
        }
    }
    let of_line = |line: &str| {
        let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let (on, test) = name.trim_end().split_once(' ')?;
        if on.split(':').next() != Some(device) {
            return None;
        }
        let said = || messages.get(name.trim_end()).cloned().unwrap_or_else(|| result.to_owned());
        let verdict = match result {
            "ok" => Verdict::Equal,
            _ if result.starts_with("ignored") => Verdict::Refused(result.to_owned()),
            _ => refusal(&said()).map_or_else(|| Verdict::Differs(said()), Verdict::Refused),
        };
        Some((test.trim().to_owned(), verdict))
    };
    output.lines().filter_map(of_line).collect()
}

/// The reason in an error that says that a device cannot run a kernel.
fn refusal(message: &str) -> Option<String> {
    let (_, reason) = message.split_once("KernelNotSupported: ")?.1.split_once("cannot run it: ")?;
    Some(reason.split("; submit it").next().unwrap_or(reason).to_owned())
}

/// Prints the table. `n_crates` is how many there must be, each equal on all devices.
fn report(devices: &[&str], table: &Table, n_crates: Option<usize>) -> Result<Outcome> {
    let width = table.keys().map(String::len).max().unwrap_or_default();
    let (mut n_equal, mut findings) = (0, Vec::new());
    for (name, row) in table {
        let cells = devices.iter().map(|device| match row.get(*device) {
            None => "did not run".to_owned(),
            Some(Verdict::Equal) => "equal".to_owned(),
            Some(Verdict::Refused(reason)) => format!("refused: {reason}"),
            Some(Verdict::Differs(what)) => format!("differs: {what}"),
        });
        let cells: Vec<String> = cells.zip(devices).map(|(cell, device)| format!("{device} {cell}")).collect();
        println!("{name:<width$}  {}", cells.join("  "));
        if devices.iter().all(|device| row.get(*device) == Some(&Verdict::Equal)) {
            n_equal += 1;
        } else if n_crates.is_some() || !row.values().any(|verdict| matches!(verdict, Verdict::Refused(_))) {
            findings.push(format!("{name}: {}", cells.join("; ")));
        }
    }
    let summary = format!("{n_equal} of {} crates equal on {}", table.len(), devices.join(", "));
    if let Some(expected) = n_crates.filter(|expected| *expected != table.len()) {
        findings.push(format!("{} crates, {expected} expected", table.len()));
    }
    Failure::unless_empty("crate whose kernel is not as on the CPU", findings)?;
    if n_equal == 0 { Err(Failure::new(summary)) } else { Ok(Outcome::Passed(summary)) }
}

fn parse(arguments: &[String]) -> Result<(Option<String>, Option<String>)> {
    let (mut device, mut filter) = (None, None);
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("device") => device = Some(parser.value()?.string()?),
            Value(text) if filter.is_none() => filter = Some(text.string()?),
            _ => return Err(argument.unexpected().into()),
        }
    }
    match &device {
        Some(unknown) if DEVICES.iter().all(|(name, _)| *name != unknown) => {
            let known = DEVICES.map(|(name, _)| name).join(", ");
            Err(Failure::new(format!("unknown device \"{unknown}\" (known: {known})")))
        }
        _ => Ok((device, filter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 3 tests
test opencl:0 a::equal   ... ok
test opencl:0 a::refused ... FAILED
test opencl:0 a::wrong   ... FAILED
test host:0 a::equal     ... ok

failures:

---- opencl:0 a::refused ----
panicked at h.rs:1:2: KernelNotSupported: kernel \"k\" on device \"d\": the target spirv1.2 cannot run it: recursion (f -> f); submit it to another

---- opencl:0 a::wrong ----
panicked at h.rs:1:2: 3 of 1000 results differ

failures:
    opencl:0 a::wrong

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s
";

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn table() -> Table {
        let named = verdicts(OUTPUT, "opencl").into_iter();
        named.map(|(name, verdict)| (name, BTreeMap::from([("opencl".to_owned(), verdict)]))).collect()
    }

    #[test]
    fn each_crate_has_a_verdict_with_its_reason() {
        let found = verdicts(OUTPUT, "opencl");
        let expected = [
            ("a::equal", Verdict::Equal),
            ("a::refused", Verdict::Refused("recursion (f -> f)".to_owned())),
            ("a::wrong", Verdict::Differs("panicked at h.rs:1:2: 3 of 1000 results differ".to_owned())),
        ];
        assert_eq!(found, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
        assert_eq!(verdicts(OUTPUT, "host"), [("a::equal".to_owned(), Verdict::Equal)]);
    }

    #[test]
    fn a_crate_that_differs_fails_the_run_and_one_that_is_refused_fails_only_the_stage() {
        let mut table = table();
        assert!(report(&["opencl"], &table, None).unwrap_err().findings[0].starts_with("a::wrong"));
        table.remove("a::wrong");
        assert_eq!(report(&["opencl"], &table, None), Ok(Outcome::Passed("1 of 2 crates equal on opencl".to_owned())));
        assert!(report(&["opencl"], &table, Some(2)).is_err());
        table.remove("a::refused");
        assert!(report(&["opencl"], &table, Some(1)).is_ok() && report(&["opencl"], &table, Some(2)).is_err());
        assert!(report(&["host"], &table, None).is_err(), "nothing ran there");
        assert!(report(&["host"], &Table::new(), None).is_err());
    }

    #[test]
    fn each_target_of_some_devices_is_built_once() {
        assert_eq!(targets(&["host"]), ["spirv"]);
        assert_eq!(targets(&["host", "opencl", "cuda"]), ["spirv", PTX]);
        assert!(enough("modules", FEW).is_ok() && enough("modules", FEW - 1).is_err());
    }

    #[test]
    fn a_device_and_a_filter_are_taken() {
        assert_eq!(parse(&words("--device cuda hex")).unwrap(), (Some("cuda".to_owned()), Some("hex".to_owned())));
        assert_eq!(parse(&words("--device=host")).unwrap(), (Some("host".to_owned()), None));
        assert!(parse(&words("--device gpu")).is_err() && parse(&words("a b")).is_err());
    }
}
