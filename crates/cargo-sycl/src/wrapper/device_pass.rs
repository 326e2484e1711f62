//! Runs rustc a second time, for the bitcode and the metadata of a crate.
//!
//! Owns what is written beside the sidecar, but not the sidecar. Messages of the second run are kept back: the host's run has the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use super::archive::library_of;
use super::device_arguments::{Bitcode, Outputs, device_arguments};
use super::invocation::Invocation;
use super::sidecar::{Deferred, Place};
use crate::failure::{Failure, Result};
use crate::files::{temporary_name, write_atomically};

/// How a device pass ended.
pub(crate) enum Passed {
    /// Bitcode and, for a library, metadata are there.
    Yes,
    /// The compiler refused, with these messages.
    No(String),
}

/// Runs the pass in this process's directory and environment. `is_device` says which dependencies have device code.
pub(crate) fn run(
    rustc: &Path,
    invocation: &Invocation,
    place: &Place,
    is_device: impl Fn(&Place) -> bool,
) -> Result<Passed> {
    let (bitcode, metadata) = (place.bitcode(), place.metadata());
    let metadata = (!invocation.is_program()).then_some(metadata);
    let outputs = Outputs { folder: place.folder(), bitcode: Bitcode::InOne(&bitcode), metadata: metadata.as_deref() };
    let passed = start(command(rustc, invocation, &outputs, is_device), rustc)?;
    if let (Passed::Yes, Some(metadata)) = (&passed, &metadata) {
        let bytes = fs::read(metadata).map_err(|error| Failure::file(metadata, error))?;
        write_atomically(&place.library(), &library_of(&bytes))?;
    }
    Ok(passed)
}

/// Runs the pass of a crate that no other one uses, in the place of the host's. Its messages are shown, and `sources` lists the sources.
/// Gives the files of bitcode, or how the compiler ended.
pub(super) fn run_alone(
    rustc: &Path,
    invocation: &Invocation,
    place: &Place,
    sources: &Path,
    is_device: impl Fn(&Place) -> bool,
) -> Result<Result<Vec<PathBuf>, ExitStatus>> {
    // A unit of code that has changed has another name.
    let folder = place.units();
    let failed = |error| Failure::file(&folder, error);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    let outputs = Outputs { folder: &folder, bitcode: Bitcode::InUnits { sources }, metadata: None };
    let status = command(rustc, invocation, &outputs, is_device).status();
    let status = status.map_err(|error| Failure::start(rustc, error))?;
    if !status.success() {
        return Ok(Err(status));
    }
    let entries = fs::read_dir(&folder).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    let mut modules: Vec<PathBuf> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "bc")).collect();
    // The order of a folder is none.
    modules.sort();
    Ok(Ok(modules))
}

fn command(
    rustc: &Path,
    invocation: &Invocation,
    outputs: &Outputs<'_>,
    is_device: impl Fn(&Place) -> bool,
) -> Command {
    let mut command = Command::new(rustc);
    command.args(device_arguments(invocation, outputs, |library| {
        let place = Place::of_library(library).filter(|place| is_device(place))?;
        Some(place.library())
    }));
    command
}

/// Runs a pass that was put off, for the bitcode alone: the crates that use this one know the host's metadata.
///
/// Processes that want the same bitcode wait for each other.
pub(crate) fn run_deferred(deferred: Deferred, place: &Place, key: &str) -> Result<PathBuf> {
    let lock_path = place.lock();
    let failed = |error| Failure::file(&lock_path, error);
    let lock = fs::File::create(&lock_path).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let bitcode = place.deferred_bitcode(key);
    if bitcode.is_file() {
        return Ok(bitcode);
    }
    let (deferred, moved) = deferred.moved_to(place);
    let arguments: Vec<_> = deferred.arguments.iter().map(Into::into).collect();
    let invocation = Invocation::parse(&arguments)?;
    let mut command = Command::new(&deferred.rustc);
    command.current_dir(&deferred.directory).envs(&deferred.environment);
    if let Some(out_dir) = invocation.out_dir() {
        // What its build script sets and its source asks for.
        let dependencies = deferred.directory.join(out_dir).join(format!("{}.d", invocation.stem()));
        let read = environment_read(&fs::read_to_string(dependencies).unwrap_or_default());
        command.envs(read.into_iter().map(|(name, value)| (name, moved.apply(&value))));
    }
    let unfinished = temporary_name(&bitcode);
    let outputs = Outputs { folder: place.folder(), bitcode: Bitcode::InOne(&unfinished), metadata: None };
    command.args(device_arguments(&invocation, &outputs, |_| None));
    match start(command, &deferred.rustc)? {
        Passed::Yes => fs::rename(&unfinished, &bitcode).map_err(|error| Failure::file(&bitcode, error))?,
        Passed::No(messages) => return Err(refused(&invocation, &messages)),
    }
    Ok(bitcode)
}

/// The variables that a crate's source reads, from rustc's file of dependencies.
fn environment_read(dependencies: &str) -> Vec<(String, String)> {
    let lines = dependencies.lines().filter_map(|line| line.strip_prefix("# env-dep:")?.split_once('='));
    lines.map(|(name, value)| (unescaped(name), unescaped(value))).collect()
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => letter,
            },
            _ => letter,
        });
    }
    plain
}

/// The compiler took a crate for the host and not for the device.
pub(crate) fn refused(invocation: &Invocation, messages: &str) -> Failure {
    let name = invocation.crate_name().unwrap_or_default();
    Failure::new(format!("the device pass of crate `{name}` failed, which its host pass did not:\n{messages}"))
}

fn start(mut command: Command, rustc: &Path) -> Result<Passed> {
    let output = command.output().map_err(|error| Failure::start(rustc, error))?;
    if output.status.success() {
        Ok(Passed::Yes)
    } else {
        Ok(Passed::No(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_build_scripts_are_found_again() {
        let text = "/t/a.d: src/lib.rs\n\n# env-dep:NAME=a=b\\n\\\\c\n# env-dep:UNSET\n";
        assert_eq!(environment_read(text), [("NAME".to_owned(), "a=b\n\\c".to_owned())]);
    }
}
