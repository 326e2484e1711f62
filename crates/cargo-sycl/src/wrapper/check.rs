//! `cargo sycl check` of what would be linked: a device pass in the place of the host's, and a look at the kernels in it.
//!
//! Cargo builds the crate as far as it knows. The outputs that it expects are empty files in a folder of their own, so that it does not
//! check again what has not changed. Other crates are compiled as in a build, since crates that use them need their code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;

use super::allowed::Allowed;
use super::captures;
use super::device_pass;
use super::diagnostic::Reporter;
use super::invocation::Invocation;
use super::sidecar::Place;
use super::{Host, Result, runtime};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::stamps;

/// Whether no other crate can use what is made of a crate, so that nothing needs to be made.
pub(super) fn is_enough_for(invocation: &Invocation) -> bool {
    invocation.is_program() || invocation.crate_types() == ["cdylib"]
}

/// Checks the crate and ends this process, unless something outside of the crate is wrong.
pub(super) fn run(
    settings: &Settings,
    host: &Host,
    invocation: &Invocation,
    place: &Place,
    is_device: impl Fn(&Place) -> bool,
) -> Result<()> {
    let Some(out_dir) = invocation.out_dir() else { return Ok(()) };
    let sources = out_dir.join(format!("{}.d", invocation.stem()));
    let modules = match device_pass::run_alone(&host.rustc, invocation, place, &sources, is_device)? {
        Ok(modules) => modules,
        Err(status) => exit(status.code().unwrap_or(1)),
    };
    let allowed = Allowed::here(settings, invocation)?;
    let reporter = Reporter::new(invocation);
    if !captures::all_is_well(settings, &host.rustc, &modules, allowed.host_captures, &reporter)? {
        exit(1);
    }
    let output = output(invocation, out_dir);
    fs::write(&output, "").map_err(|error| Failure::file(&output, error))?;
    for source in allowed.because_of.iter().chain([&stamps::of_linked(settings)]) {
        stamps::list(source, &sources)?;
    }
    exit(0);
}

/// The file that cargo expects.
fn output(invocation: &Invocation, out_dir: &Path) -> PathBuf {
    match invocation.is_program() {
        true => out_dir.join(format!("{}{}", invocation.stem(), std::env::consts::EXE_SUFFIX)),
        false => runtime::library(invocation, out_dir),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn only_what_no_crate_uses_is_not_made() {
        for (line, is_enough, file) in [
            ("--crate-name app --crate-type bin -C extra-filename=-1", true, "/t/app-1"),
            ("--crate-name app --test --crate-type lib", true, "/t/app"),
            ("--crate-name shared --crate-type cdylib", true, "/t/libshared.so"),
            ("--crate-name shared --crate-type cdylib,rlib", false, "/t/libshared.so"),
            ("--crate-name shared --crate-type dylib", false, "/t/libshared.so"),
            ("--crate-name kernels --crate-type lib", false, "/t/libkernels.so"),
        ] {
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let invocation = Invocation::parse(&arguments).unwrap();
            assert_eq!(is_enough_for(&invocation), is_enough, "{line}");
            assert_eq!(output(&invocation, "/t".as_ref()), Path::new(file), "{line}");
        }
    }
}
