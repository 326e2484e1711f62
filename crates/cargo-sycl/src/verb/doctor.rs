//! `doctor`: looks for what building and running needs, and says what to do about what is missing.
//!
//! Only the toolchain is needed for building; what running needs depends on the devices. Changes nothing, except that the folder of the
//! cache is made.

mod cuda_driver;
mod llvm;
pub(crate) mod opencl;
mod programs;

use std::ffi::OsString;
use std::process::ExitCode;

use lexopt::prelude::*;

use super::cargo::Cargo;
use crate::compile::{ImageCache, PrivateFolder};
use crate::failure::Result;
use crate::toolchain;

const HELP: &str = "\
Looks for what building and running needs, and says what is missing

Usage: cargo sycl doctor [OPTIONS]

  --probe   Also compile a probe, as it is done once for versions of rustc that this tool does not know
";

/// What was found of one thing.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    /// The thing is there; the text says which and where.
    Found(String),
    /// The thing is not there, and something cannot be done without it.
    Absent(String),
    /// The thing is needed for building, and is not there or does not work.
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
    let mut findings = toolchain(with_probe)?;
    findings.extend([
        ("image cache", cache()),
        ("CUDA driver", cuda_driver::find()),
        ("OpenCL loader", opencl::loader()),
    ]);
    findings.extend(opencl::drivers().into_iter().map(|driver| ("OpenCL driver", driver)));
    findings.extend([("ptxas", programs::ptxas()), ("spirv-val", programs::spirv_val())]);
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

/// The compiler, and the LLVM that it brings.
fn toolchain(with_probe: bool) -> Result<Vec<(&'static str, Finding)>> {
    let rustc = Cargo::here(Vec::new())?.rustc();
    let toolchain = match toolchain::ask(&rustc) {
        Ok(toolchain) => toolchain,
        Err(error) => return Ok(vec![("toolchain", Finding::Broken(error.to_string()))]),
    };
    let llvm = llvm::find(toolchain.llvm_library());
    let is_probed = with_probe || !toolchain::is_tested(&toolchain);
    // Without LLVM the probe would say the same once more.
    let probed = if is_probed && matches!(llvm, Finding::Found(_)) { toolchain::probe(&toolchain) } else { Ok(()) };
    let compiler = match probed {
        Ok(()) => {
            let passed = if is_probed { ", passed the probe" } else { "" };
            Finding::Found(format!("rustc {}, {}{passed}", toolchain.release, toolchain.sysroot.display()))
        }
        Err(failure) => Finding::Broken(failure.to_string()),
    };
    Ok(vec![("toolchain", compiler), ("libLLVM", llvm)])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_bad_it_is() {
        assert_eq!(line("ptxas", &Finding::Found("12.4".to_owned())), "ok  ptxas           12.4");
        assert!(line("ptxas", &Finding::Absent(String::new())).starts_with("--"));
        assert!(line("toolchain", &Finding::Broken(String::new())).starts_with("!!"));
    }
}
