//! `build`, `run`, `test`, `bench`, `check`: cargo, with this tool as its compiler.

use std::env;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sha2::{Digest, Sha256};

use super::build_options::BuildOptions;
use super::cargo::{Cargo, literal};
use super::ptxas::Ptxas;
use crate::compile;
use crate::failure::{Failure, Result};
use crate::settings::{Settings, VARIABLE, hex};
use crate::stamps;
use crate::toolchain;

/// Arguments that keep cargo from running documentation tests.
const WITHOUT_DOCUMENTATION_TESTS: &[&str] = &[
    "--lib",
    "--bins",
    "--bin",
    "--tests",
    "--test",
    "--examples",
    "--example",
    "--benches",
    "--bench",
    "--all-targets",
];

/// Becomes cargo. Returns only if that fails.
pub(crate) fn run(verb: &'static str, arguments: Vec<OsString>) -> Result<ExitCode> {
    let options = BuildOptions::parse(arguments)?;
    if options.help {
        return help(verb);
    }
    let cargo = Cargo::here(options.configuration.clone())?;
    let mut folders = cargo.target_folders(options.target_dir.as_deref())?;
    let only_checks = verb == "check";
    if only_checks {
        // What is checked is no program, and must not take the place of one.
        folders = folders.within("check");
    }
    let executable = executable()?;
    let tool = hash(&executable)?;
    toolchain::check(&cargo.rustc(), &tool)?;
    let settings = Settings {
        tool,
        targets: options.targets,
        are_targets_named: options.are_targets_named,
        float: options.float,
        lanes: options.lanes.clone(),
        dump: options.dump,
        time_passes: options.time_passes,
        stamps: folders.target.join(".oxisycl"),
        inner: cargo.wrapper(),
        ptxas: ptxas(),
        progress: if is_quiet(&options.cargo) { None } else { compile::place_of_this_process() },
        only_checks,
        allows_host_captures: options.allows_host_captures,
    };
    stamps::set(&settings)?;
    if verb == "test" && may_test_documentation(&options.cargo) {
        eprintln!("note: documentation tests run on the host device only: rustdoc compiles them, without device code");
    }

    let mut command = cargo.command();
    // The metadata of `cargo check` lacks generic functions, which kernels consist of.
    command.arg(if only_checks { "build" } else { verb }).arg("--target-dir").arg(&folders.target);
    let mut configure = |name: &str, value: &str| {
        command.arg("--config").arg(format!("{name}={value}"));
    };
    configure("build.rustc-wrapper", &literal(path_text(&executable)?));
    if let Some(build) = &folders.build {
        configure("build.build-dir", &literal(path_text(build)?));
    }
    // For `all_devices_have!` and `any_device_has!`. On cargo, which compares what crates asked for with its own environment.
    command.env("OXISYCL_TARGETS", settings.targets.join(","));
    // It would win over the configuration; the settings hold what it says.
    command.env_remove("RUSTC_WRAPPER").env(VARIABLE, settings.to_text()).args(options.cargo);
    let error = command.exec();
    Err(Failure::start(cargo.program(), error))
}

/// Turns the assembler's look at new code off, if it is `0`.
const VERIFY: &str = "CARGO_SYCL_PTXAS";

/// The assembler that looks at new code, unless the user does not want that.
fn ptxas() -> Option<PathBuf> {
    let is_wanted = env::var_os(VERIFY).is_none_or(|value| value != "0");
    is_wanted.then(Ptxas::find).flatten().map(|ptxas| ptxas.path().to_owned())
}

/// Whether cargo is asked to say nothing.
fn is_quiet(arguments: &[OsString]) -> bool {
    let mut own = arguments.iter().take_while(|argument| *argument != "--");
    own.any(|argument| {
        let argument = argument.to_string_lossy();
        argument == "--quiet" || argument.starts_with('-') && !argument.starts_with("--") && argument.contains('q')
    })
}

fn executable() -> Result<PathBuf> {
    env::current_exe().map_err(|error| Failure::new(format!("this tool's own path: {error}")))
}

fn help(verb: &str) -> Result<ExitCode> {
    print!("{}", super::HELP);
    println!("\nThe options of `cargo {verb}`:\n");
    let cargo = Cargo::here(Vec::new())?;
    let error = cargo.command().args([verb, "--help"]).exec();
    Err(Failure::start(cargo.program(), error))
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Failure::new(format!("{}: the path is not Unicode", path.display())))
}

fn may_test_documentation(arguments: &[OsString]) -> bool {
    let own = arguments.iter().take_while(|argument| *argument != "--");
    !own.into_iter().any(|argument| {
        let argument = argument.to_string_lossy();
        let name = argument.split('=').next().unwrap_or_default();
        WITHOUT_DOCUMENTATION_TESTS.contains(&name) || argument == "--no-run"
    })
}

/// The hash of this tool: another tool may make other outputs.
fn hash(tool: &PathBuf) -> Result<String> {
    let failed = |error| Failure::file(tool, error);
    let mut bytes = Vec::new();
    std::fs::File::open(tool).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(failed)?;
    Ok(hex(&Sha256::digest(&bytes)[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_silence_is_heard() {
        for (line, expected) in [
            ("", false),
            ("--quiet", true),
            ("-q", true),
            ("-rq", true),
            ("-r --features quick", false),
            ("-- -q", false),
        ] {
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert_eq!(is_quiet(&arguments), expected, "{line}");
        }
    }

    #[test]
    fn documentation_is_tested_unless_targets_are_chosen() {
        for (line, expected) in [
            ("", true),
            ("--release -p app", true),
            ("--doc", true),
            ("--lib", false),
            ("--test=one", false),
            ("--all-targets --release", false),
            ("-- --test", true),
        ] {
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert_eq!(may_test_documentation(&arguments), expected, "{line}");
        }
    }
}
