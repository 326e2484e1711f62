//! `cargo xtask gpu-bundle`: programs for a machine that has a GPU with its driver, and neither Rust nor this repository.
//!
//! The folder `gpu-bundle` below the target folder holds the program of each [`part`], stripped and compressed, and this program as their
//! [`runner`]. It also holds the source of the benchmark's peer, and a manifest. Invariant: the bundle is at most [`CAPACITY`] bytes, and a
//! program whose kernels were written in Rust contains images of them.

mod machine;
mod packed;
mod part;
pub(crate) mod runner;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lexopt::Parser;
use lexopt::prelude::*;
use serde_json::{Value, json};

use crate::crates;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo};
use crate::workspace::{Workspace, collect, read};
use part::{PARTS, Part};

/// The most that all files of a bundle may have together, in bytes.
const CAPACITY: u64 = 50 << 20;

/// What kernels are compiled for unless the command says otherwise. Nothing on such a machine runs SPIR-V.
const TARGETS: &str = "sm_70";

/// What the bundle is, and the names of its parts with their sizes.
const MANIFEST: &str = "bundle.json";
/// What the runner writes.
const RESULTS: &str = "gpu-results.json";

/// What people start.
const SCRIPT: &str = "#!/bin/sh\n\
    # Runs parts of this bundle: --list names them, --part NAME chooses, --out FOLDER takes the results;\n\
    # --part benchmark --filter TEXT measures the figures whose names contain the text.\n\
    here=$(cd \"$(dirname \"$0\")\" && pwd)\n\
    exec \"$here/bin/runner\" gpu-run \"$here\" \"$@\"\n";

/// `cargo xtask gpu-bundle [--check] [--targets LIST]`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    let folder = workspace.target_directory.join("gpu-bundle");
    if let Asked::Build { targets } = Asked::parse(arguments)? {
        make(workspace, &folder, &targets)?;
    }
    let size = check(&folder, PARTS, CAPACITY)?;
    let mib = size as f64 / f64::from(1 << 20);
    Ok(Outcome::Passed(format!("{} parts, {mib:.1} MiB; run {}", PARTS.len(), folder.join("run").display())))
}

/// What the command asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Check,
    Build { targets: String },
}

impl Asked {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parser = Parser::from_args(arguments);
        let (mut is_check, mut targets) = (false, None);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("check") => is_check = true,
                Long("targets") => targets = Some(parser.value()?.string()?),
                _ => return Err(argument.unexpected().into()),
            }
        }
        match (is_check, targets) {
            (true, Some(_)) => Err(Failure::new("--check builds nothing, so that --targets has no effect")),
            (true, None) => Ok(Self::Check),
            (false, targets) => Ok(Self::Build { targets: targets.unwrap_or_else(|| TARGETS.to_owned()) }),
        }
    }
}

fn make(workspace: &Workspace, folder: &Path, targets: &str) -> Result<()> {
    let programs = build(workspace, targets)?;
    let failure = |path: &Path, error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| failure(folder, error))?;
    }
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).map_err(|error| failure(&bin, error))?;
    for (part, program) in PARTS.iter().zip(&programs) {
        if part.has_images {
            check_images(workspace, part, program)?;
        }
        let stripped = bin.join(part.name);
        strip(workspace, program, &stripped)?;
        packed::pack(&stripped, folder, part.name)?;
        fs::remove_file(&stripped).map_err(|error| failure(&stripped, error))?;
    }
    let own = std::env::current_exe().map_err(|error| Failure::new(format!("this program's own path: {error}")))?;
    strip(workspace, &own, &bin.join("runner"))?;
    let script = folder.join("run");
    fs::write(&script, SCRIPT).map_err(|error| failure(&script, error))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(|error| failure(&script, error))?;
    for benchmark in PARTS.iter().filter_map(|part| part.reference) {
        let peer = workspace.root.join("benches").join(benchmark).join("reference.cu");
        fs::copy(&peer, folder.join(reference_of(benchmark))).map_err(|error| failure(&peer, error))?;
    }
    let manifest = folder.join(MANIFEST);
    let text = serde_json::to_string_pretty(&describe(workspace, folder)?).unwrap_or_default();
    fs::write(&manifest, text + "\n").map_err(|error| failure(&manifest, error))
}

/// Builds the programs of all parts, and gives their files in the order of the table.
fn build(workspace: &Workspace, targets: &str) -> Result<Vec<PathBuf>> {
    // `test` would make a test of an example that is named, and `build` leaves tests and benchmarks out.
    let members = PARTS.iter().filter(|part| part.package != crates::PACKAGE);
    let (examples, others): (Vec<&Part>, Vec<&Part>) = members.partition(|part| part.kind == "example");
    let mut messages = Vec::new();
    for (verb, parts) in [(&["test", "--no-run"][..], others), (&["build"], examples)] {
        let mut command = cargo(workspace);
        command.arg("sycl").args(verb).args(["--release", "--targets", targets]);
        command.args(["--message-format", "json-render-diagnostics"]);
        let packages: BTreeSet<&str> = parts.iter().map(|part| part.package).collect();
        command.args(packages.iter().flat_map(|package| ["-p", package]));
        for part in parts {
            command.arg(format!("--{}", part.kind)).arg(part.target);
        }
        let output = process::run_for_output(&mut command)?.succeeded()?.stdout;
        messages.extend(output.lines().filter_map(|line| line.parse::<Value>().ok()));
    }
    let of_part = |part: &Part| match part.package {
        // A workspace of its own.
        crates::PACKAGE => crates::build(workspace, targets, &["--release"]),
        _ => executable(workspace, part, &messages),
    };
    PARTS.iter().map(of_part).collect()
}

/// The file that cargo says it made of a part's target.
fn executable(workspace: &Workspace, part: &Part, messages: &[Value]) -> Result<PathBuf> {
    let missing = || Failure::new(format!("part {}: cargo built no {} {}", part.name, part.kind, part.target));
    let target = workspace.require(part.package)?.target(part.kind, part.target).ok_or_else(missing)?;
    let made = messages.iter().filter(|message| message["target"]["src_path"].as_str() == target.source.to_str());
    let is_meant = |message: &&Value| part.kind != "example" || message["profile"]["test"] == false;
    made.filter(is_meant)
        .filter_map(|message| message["executable"].as_str())
        .next_back()
        .map(PathBuf::from)
        .ok_or_else(missing)
}

/// Looks into a program: without images its kernels would run on the host device of the other machine.
fn check_images(workspace: &Workspace, part: &Part, program: &Path) -> Result<()> {
    let mut inspect = cargo(workspace);
    let inspected = process::run_quietly(inspect.args(["sycl", "inspect"]).arg(program))?.succeeded()?;
    let has_kernels = inspected.stdout.lines().any(|line| line.contains(" kernel") && !line.contains(" 0 kernels"));
    if has_kernels { Ok(()) } else { Err(Failure::new(format!("part {}: the program has no device code", part.name))) }
}

/// Copies a program without its symbols and debug information. What is loaded at run time stays, images among it.
fn strip(workspace: &Workspace, program: &Path, to: &Path) -> Result<()> {
    // The one that comes with rustc; `strip` of the system may be missing.
    let sysroot = process::run_quietly(process::command(workspace, &"rustc".into()).args(["--print", "sysroot"]))?;
    let libraries = Path::new(sysroot.stdout.trim()).join("lib/rustlib");
    let tools = fs::read_dir(&libraries).into_iter().flatten().flatten().map(|entry| entry.path());
    let tool = tools.map(|target| target.join("bin/rust-objcopy")).find(|tool| tool.is_file());
    let tool = tool.map_or_else(|| "objcopy".into(), PathBuf::into_os_string);
    let mut command = process::command(workspace, &tool);
    process::run_quietly(command.arg("--strip-all").args([program, to]))?.succeeded()?;
    Ok(())
}

/// The manifest.
fn describe(workspace: &Workspace, folder: &Path) -> Result<Value> {
    let git = |arguments: &[&str]| {
        let output = process::run_quietly(process::command(workspace, &"git".into()).args(arguments)).ok()?;
        output.success.then(|| output.stdout.trim().to_owned())
    };
    // Sources without version control, as in a package, have no commit.
    let commit = git(&["rev-parse", "HEAD"]).map(|commit| {
        let is_changed = git(&["status", "--porcelain"]).is_none_or(|changes| !changes.is_empty());
        if is_changed { format!("{commit} with changes") } else { commit }
    });
    let rustc = process::run_quietly(process::command(workspace, &"rustc".into()).arg("--version"))?.succeeded()?;
    let sizes = PARTS.iter().map(|part| Ok((part.name.to_owned(), size_of(&packed::path(folder, part.name))?.into())));
    let sizes: serde_json::Map<String, Value> = sizes.collect::<Result<_>>()?;
    Ok(json!({ "commit": commit, "rustc": rustc.stdout.trim(), "parts": sizes }))
}

/// The size of a bundle, if it is whole and small enough.
fn check(folder: &Path, parts: &[Part], capacity: u64) -> Result<u64> {
    let manifest: Value =
        read(&folder.join(MANIFEST))?.parse().map_err(|error| Failure::new(format!("{MANIFEST}: {error}")))?;
    let mut findings = Vec::new();
    for part in parts {
        match size_of(&packed::path(folder, part.name)) {
            Err(failure) => findings.push(format!("{}: {}", part.name, failure.message)),
            Ok(size) if manifest["parts"][part.name].as_u64() != Some(size) => {
                findings
                    .push(format!("{}: {size} bytes, the manifest says {}", part.name, manifest["parts"][part.name]));
            }
            Ok(_) => {}
        }
    }
    let references = parts.iter().filter_map(|part| part.reference).map(reference_of);
    for file in ["run", "bin/runner"].map(str::to_owned).into_iter().chain(references) {
        findings.extend(size_of(&folder.join(file)).err().map(|failure| failure.message));
    }
    Failure::unless_empty("fault of the bundle", findings)?;
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    let mut sizes = files.iter().map(|file| Ok((size_of(file)?, file))).collect::<Result<Vec<_>>>()?;
    sizes.sort_by(|a, b| b.cmp(a));
    let total = sizes.iter().map(|(size, _)| size).sum();
    if total > capacity {
        let findings = sizes.iter().map(|(size, file)| format!("{size:>12}  {}", file.display())).collect();
        let message = format!("the bundle has {total} bytes, at most {capacity} are allowed");
        return Err(Failure { message, findings });
    }
    Ok(total)
}

/// The source of a benchmark's peer in the bundle.
fn reference_of(benchmark: &str) -> String {
    format!("{benchmark}-reference.cu")
}

fn size_of(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok(metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::path_text;

    #[test]
    fn a_bundle_is_whole_and_small_enough_or_refused() {
        let folder = std::env::temp_dir().join(format!("xtask-bundle-check-{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).unwrap();
        let position = PARTS.iter().position(|part| part.reference.is_some()).unwrap();
        let parts = &PARTS[position..=position];
        let (name, reference) = (parts[0].name, reference_of(parts[0].reference.unwrap()));
        let write = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
        write(&format!("bin/{name}.gz"), "12345");
        write(MANIFEST, &json!({ "parts": { (name): 5 } }).to_string());
        let check = |capacity| check(&folder, parts, capacity);
        let lacking = check(1000).unwrap_err();
        assert_eq!(lacking.findings.len(), 3, "{lacking}");
        ["run", "bin/runner", &reference].iter().for_each(|file| write(file, ""));
        let size = check(1000).unwrap();
        assert!(check(size - 1).unwrap_err().message.contains("at most"));
        write(&format!("bin/{name}.gz"), "123456");
        assert_eq!(check(1000).unwrap_err().findings, [format!("{name}: 6 bytes, the manifest says 5")]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn targets_are_those_of_the_command() {
        let asked = |arguments: &[&str]| Asked::parse(&arguments.iter().map(|&a| a.to_owned()).collect::<Vec<_>>());
        let build = |targets: &str| Asked::Build { targets: targets.to_owned() };
        assert_eq!(asked(&[]).unwrap(), build("sm_70"));
        assert_eq!(asked(&["--targets", "sm_70,sm_80"]).unwrap(), build("sm_70,sm_80"));
        assert_eq!(asked(&["--check"]).unwrap(), Asked::Check);
        assert!(asked(&["--check", "--targets", "sm_80"]).unwrap_err().message.contains("--targets has no effect"));
        assert!(asked(&["--other"]).is_err());
    }

    #[test]
    fn what_cargo_built_is_found_by_its_source() {
        let workspace = Workspace::load().unwrap();
        let part = PARTS.iter().find(|part| part.kind == "bench").unwrap();
        let source = path_text(&workspace.require(part.package).unwrap().target("bench", part.target).unwrap().source);
        let message =
            |path: &str, executable: Value| json!({ "target": { "src_path": path }, "executable": executable });
        let other = message("/other.rs", json!("/t/other"));
        let library = message(source.as_ref().unwrap(), Value::Null);
        assert!(executable(&workspace, part, &[other.clone(), library.clone()]).is_err());
        let built = message(source.as_ref().unwrap(), json!("/t/gpu-1"));
        assert_eq!(executable(&workspace, part, &[other, library, built]), Ok("/t/gpu-1".into()));

        // An example that was built as a test is another program.
        let part = PARTS.iter().find(|part| part.kind == "example").unwrap();
        let source = &workspace.require(part.package).unwrap().target("example", part.target).unwrap().source;
        let message = |executable: &str, test: bool| json!({ "target": { "src_path": source.to_str() }, "executable": executable, "profile": { "test": test } });
        let messages = [message("/t/tour", false), message("/t/tour-test", true)];
        assert_eq!(executable(&workspace, part, &messages), Ok("/t/tour".into()));
    }
}
