//! This tool in the place of rustc: what cargo runs for each crate.
//!
//! A crate that can contain device code is compiled twice: first for its bitcode and metadata, un-optimised ([`device_pass`]), then for
//! the host as cargo asked. The device pass comes first, because cargo starts the crates that depend on this one as soon as the host's
//! metadata is there. What is linked gets an object with the images of its kernels ([`link`]).
//!
//! Which crates that is: the device libraries and everything that depends on them. Other crates are only recorded, and the crates that use
//! them are compiled for the device against the host's metadata. Their bitcode is made when a kernel turns out to need it. The one generic
//! thing that is optimised too early this way is a function outside that calls a kernel's closure.
//!
//! Invariant: a failure of this module fails the crate's compilation, before cargo sees any output of it.

mod allowed;
mod archive;
mod captures;
mod check;
pub(crate) mod device_arguments;
pub(crate) mod device_pass;
mod diagnostic;
mod final_link;
pub(crate) mod invocation;
mod link;
mod native;
mod pass_times;
mod published;
mod refusals;
mod rendered;
mod runtime;
pub(crate) mod sidecar;
mod source;

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, exit};

use oxisycl_compiler::RESERVED;

use self::allowed::Allowed;
use self::device_pass::Passed;
use self::diagnostic::Reporter;
use self::invocation::Invocation;
use self::link::Linked;
use self::sidecar::{Deferred, Place, Sidecar};
use crate::failure::{Failure, Result};
use crate::settings::Settings;
use crate::stamps;

/// The crates that make those that depend on them contain device code: what kernels see, and what the compiler calls in them.
const DEVICE_LIBRARIES: &[&str] = &["oxisycl_device", "oxisycl_builtins"];

/// Does what cargo asks the compiler, which is the first argument, to do. Returns only with a failure.
pub(crate) fn run(settings: &Settings, arguments: Vec<OsString>) -> Result<ExitCode> {
    let host = Host::new(settings, arguments)?;
    if host.arguments == ["-vV"] {
        return host.version();
    }
    let invocation = Invocation::parse(&host.arguments)?;
    match invocation.out_dir() {
        Some(out_dir) if invocation.compiles_crate() => compile(settings, &host, &invocation, out_dir),
        _ => Err(host.replace_process(&[])),
    }
}

/// Whether an argument is the path of a compiler, by its name.
pub(crate) fn is_compiler(argument: &OsStr) -> bool {
    let path = Path::new(argument);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.contains("rustc") && path.extension().is_none_or(|extension| extension != "rs")
}

/// Becomes the compiler that is the first argument. Returns only if that fails.
pub(crate) fn become_compiler(arguments: &[OsString]) -> Failure {
    let program = arguments.first().cloned().unwrap_or_default();
    let error = Command::new(&program).args(arguments.iter().skip(1)).exec();
    Failure::start(program.as_ref(), error)
}

fn compile(settings: &Settings, host: &Host, invocation: &Invocation, out_dir: &Path) -> Result<ExitCode> {
    let key = &settings.tool;
    let place = Place::new(out_dir, &invocation.stem());
    let name = invocation.crate_name().unwrap_or_default();
    if RESERVED.contains(&name) {
        return Err(Failure::new(format!(
            "a crate is named `{name}`, as one of the standard library: what kernels use of it could not be told from that"
        )));
    }
    let dependencies = dependencies(invocation, key)?;
    let device = DEVICE_LIBRARIES.contains(&name) || dependencies.iter().any(|(_, sidecar)| sidecar.device);
    let is_library = !invocation.is_program();
    if !device && !is_library {
        return Err(host.replace_process(&[]));
    }

    std::fs::create_dir_all(place.folder()).map_err(|error| Failure::file(place.folder(), error))?;
    place.clear()?;
    let places: Vec<Place> = dependencies.iter().map(|(place, _)| place.clone()).collect();
    let deferred = if device { None } else { Some(host.deferred()?) };
    let own = runtime::of_dependencies(name, &dependencies);
    let for_users = runtime::for_users(invocation, &own);
    let sidecar = Sidecar::new(&place, key, name, &places, device, deferred).with_runtime(&place, for_users);
    if !device {
        sidecar.write(&place)?;
        return Err(host.replace_process(&[]));
    }

    let is_device = |place: &Place| dependencies.iter().any(|(other, sidecar)| other == place && sidecar.device);
    if settings.only_checks && check::is_enough_for(invocation) {
        check::run(settings, host, invocation, &place, is_device)?;
    }
    if let Passed::No(messages) = device_pass::run(&host.rustc, invocation, &place, is_device)? {
        return host.explain(invocation, &messages);
    }
    let reporter = Reporter::new(invocation);
    let allowed = Allowed::here(settings, invocation)?;
    let is_linked = invocation.is_linked() && !settings.only_checks;
    if !allowed.host_captures && !is_linked && !captures::are_allowed(&host.rustc, &place, &reporter)? {
        exit(1);
    }
    sidecar.write(&place)?;
    if invocation.crate_types().contains(&"staticlib") {
        reporter.warning(&format!(
            "the static library of crate `{name}` contains no device code: its kernels run on the host device only"
        ));
    }
    let mut linked = Linked::default();
    let mut stamp = stamps::of_library(settings);
    if is_linked {
        let prepared =
            link::prepare(settings, (&host.rustc, invocation), (&place, &sidecar, &own), &allowed, &reporter)?;
        let Some(prepared) = prepared else { exit(1) };
        linked = prepared;
        stamp = stamps::of_linked(settings);
    }
    let status = final_link::run(host, &place, linked, &reporter, settings.are_targets_named)?;
    if status.success() {
        let sources = out_dir.join(format!("{}.d", invocation.stem()));
        for source in allowed.because_of.iter().chain([&stamp]) {
            stamps::list(source, &sources)?;
        }
    }
    exit(status.code().unwrap_or(1));
}

/// The crates of the program that a crate depends on directly, once each.
fn dependencies(invocation: &Invocation, key: &str) -> Result<Vec<(Place, Sidecar)>> {
    let mut found: Vec<(Place, Sidecar)> = Vec::new();
    for path in invocation.externs().filter_map(|dependency| dependency.path) {
        let Some(place) = Place::of_library(&path) else { continue };
        if found.iter().any(|(other, _)| *other == place) {
            continue;
        }
        match Sidecar::read(&place, key)? {
            Some(sidecar) => found.push((place, sidecar)),
            // Macros have none.
            None if path.extension().is_some_and(|extension| extension == env::consts::DLL_EXTENSION) => {}
            None => return Err(sidecar::outdated(&format!("{} is missing", place.sidecar().display()))),
        }
    }
    Ok(found)
}

/// The host's compilation.
struct Host {
    /// The program to start: the compiler, or a wrapper that gets the rest.
    program: PathBuf,
    /// What stands between the program and the compiler's arguments.
    prefix: Vec<OsString>,
    rustc: PathBuf,
    arguments: Vec<OsString>,
}

impl Host {
    fn new(settings: &Settings, arguments: Vec<OsString>) -> Result<Self> {
        let mut arguments = arguments.into_iter().peekable();
        let mut chain: Vec<OsString> = settings.inner.iter().map(Into::into).collect();
        chain.extend(arguments.next());
        // A wrapper for the workspace's own crates comes before the compiler.
        let is_next = arguments.peek().is_some_and(|argument| is_compiler(argument));
        if env::var_os("RUSTC_WORKSPACE_WRAPPER").is_some() && is_next {
            chain.extend(arguments.next());
        }
        let rustc =
            chain.pop().map(PathBuf::from).ok_or_else(|| Failure::new("expected the path of rustc, found nothing"))?;
        chain.push(rustc.clone().into());
        let program = chain.remove(0).into();
        Ok(Self { program, prefix: chain, rustc, arguments: arguments.collect() })
    }

    fn command(&self, more: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.prefix).args(&self.arguments).args(more);
        command
    }

    /// Becomes the host's compilation. Returns only if that fails.
    fn replace_process(&self, more: &[OsString]) -> Failure {
        let error = self.command(more).exec();
        Failure::start(&self.program, error)
    }

    /// Tells the compiler's version, and that of the sidecars as a part of it: with another one, everything is compiled again.
    fn version(&self) -> Result<ExitCode> {
        let output =
            Command::new(&self.rustc).arg("-vV").output().map_err(|error| Failure::start(&self.rustc, error))?;
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        print!("{}", String::from_utf8_lossy(&output.stdout));
        if output.status.success() {
            println!("oxisycl: {}", sidecar::VERSION);
        }
        exit(output.status.code().unwrap_or(1));
    }

    /// After a failed device pass: the host's messages are better, and nearly always there are some.
    fn explain(&self, invocation: &Invocation, messages: &str) -> Result<ExitCode> {
        let status = self.command(&[]).status().map_err(|error| Failure::start(&self.program, error))?;
        if status.success() {
            return Err(device_pass::refused(invocation, messages));
        }
        exit(status.code().unwrap_or(1));
    }

    /// What it takes to run the device pass later.
    fn deferred(&self) -> Result<Deferred> {
        let text = |argument: &OsString| {
            let text = argument.to_str().map(str::to_owned);
            text.ok_or_else(|| Failure::new(format!("rustc's argument {argument:?} is not Unicode")))
        };
        let directory = env::current_dir().map_err(|error| Failure::file(".".as_ref(), error))?;
        Ok(Deferred {
            rustc: self.rustc.clone(),
            arguments: self.arguments.iter().map(text).collect::<Result<_>>()?,
            directory,
            environment: told_by_cargo(env::vars_os()),
        })
    }
}

/// What cargo sets for crates, without anything that could be a secret.
fn told_by_cargo(variables: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let known = |name: &str| {
        name == "OUT_DIR"
            || name.starts_with("CARGO_PKG_")
            || name.starts_with("CARGO_BIN_")
            || ["CARGO", "CARGO_CRATE_NAME", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PRIMARY_PACKAGE"]
                .contains(&name)
    };
    let texts = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(name, _)| known(name)).collect()
}
