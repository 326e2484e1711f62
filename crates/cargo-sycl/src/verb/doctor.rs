//! `doctor`: looks for what building and running needs, and says what to do about what is missing.
//!
//! Only the toolchain is needed for building; what running needs depends on the devices. Changes nothing, except that the folder of the
//! cache is made.

mod cuda_driver;
mod programs;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;
use oxisycl_compiler::Toolchain;

use super::cargo::Cargo;
use crate::compile::{ImageCache, PrivateFolder};
use crate::failure::{Failure, Result};
use crate::toolchain;

const HELP: &str = "\
Looks for what building and running needs, and says what is missing

Usage: cargo sycl doctor [OPTIONS]

  --probe   Also compile a probe, as it is done once for versions of rustc that this tool does not know
";

/// What was found of one thing.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    /// It is there; the text says which and where.
    Found(String),
    /// It is not there, and something cannot be done without it.
    Absent(String),
    /// It is needed for building, and is not there or does not work.
    Broken(String),
}

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut with_probe = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("probe") => with_probe = true,
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let findings = [
        ("toolchain", toolchain(with_probe)?),
        ("image cache", cache()),
        ("CUDA driver", cuda_driver::find()),
        ("OpenCL drivers", opencl(env::var_os("OCL_ICD_VENDORS").map(PathBuf::from))),
        ("ptxas", programs::ptxas()),
        ("spirv-val", programs::spirv_val()),
    ];
    for (name, finding) in &findings {
        println!("{}", line(name, finding));
    }
    let broken = findings.iter().any(|(_, finding)| matches!(finding, Finding::Broken(_)));
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn line(name: &str, finding: &Finding) -> String {
    let (mark, text) = match finding {
        Finding::Found(text) => ("ok", text),
        Finding::Absent(text) => ("--", text),
        Finding::Broken(text) => ("!!", text),
    };
    format!("{mark}  {name:14}  {text}")
}

fn toolchain(with_probe: bool) -> Result<Finding> {
    let rustc = Cargo::here(Vec::new())?.rustc();
    let toolchain = Toolchain::of(&rustc).map_err(Failure::from).and_then(|toolchain| {
        if with_probe || !toolchain::is_tested(&toolchain) {
            toolchain::probe(&toolchain)?;
        }
        Ok(toolchain)
    });
    let passed = if with_probe { ", passed the probe" } else { "" };
    Ok(match toolchain {
        Ok(toolchain) => {
            let library = toolchain.llvm_library.display();
            Finding::Found(format!("rustc {}, {library}{passed}", toolchain.release))
        }
        Err(failure) => Finding::Broken(failure.to_string()),
    })
}

fn cache() -> Finding {
    match PrivateFolder::of_user("images") {
        Ok(folder) => {
            let (n_entries, size) = ImageCache::open().map(|cache| cache.usage()).unwrap_or_default();
            let folder = folder.path().display();
            Finding::Found(format!("{folder}: {n_entries} images, {} MiB", size.div_ceil(1 << 20)))
        }
        Err(failure) => Finding::Absent(format!("{failure}; images are compiled again for each link")),
    }
}

/// The drivers that OpenCL's loader finds, by the files that name them.
fn opencl(vendors: Option<PathBuf>) -> Finding {
    let vendors = vendors.unwrap_or_else(|| PathBuf::from("/etc/OpenCL/vendors"));
    let files = if vendors.is_file() { vec![vendors.clone()] } else { icd_files(&vendors) };
    let drivers: Vec<String> = files
        .iter()
        .filter_map(|file| {
            let library = std::fs::read_to_string(file).ok()?;
            Some(format!("{} ({})", library.trim(), file.display()))
        })
        .collect();
    if drivers.is_empty() {
        return Finding::Absent(format!(
            "no driver in {}; install one from the device's vendor to use its devices through OpenCL",
            vendors.display()
        ));
    }
    Finding::Found(drivers.join(", "))
}

fn icd_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "icd")).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn drivers_are_named_by_their_files() {
        let scratch = Scratch::new("icd");
        assert!(matches!(opencl(Some(scratch.path().to_owned())), Finding::Absent(_)));
        let file = scratch.path().join("intel.icd");
        std::fs::write(&file, "libintelocl.so\n").unwrap();
        std::fs::write(scratch.path().join("readme.txt"), "no driver").unwrap();
        let expected = Finding::Found(format!("libintelocl.so ({})", file.display()));
        assert_eq!(opencl(Some(scratch.path().to_owned())), expected);
        assert_eq!(opencl(Some(file)), expected);
    }

    #[test]
    fn a_line_says_how_bad_it_is() {
        assert_eq!(line("ptxas", &Finding::Found("12.4".to_owned())), "ok  ptxas           12.4");
        assert!(line("ptxas", &Finding::Absent(String::new())).starts_with("--"));
        assert!(line("toolchain", &Finding::Broken(String::new())).starts_with("!!"));
    }
}
