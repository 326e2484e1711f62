//! `cargo xtask`: every check and every measurement of this repository, one verb each.
//!
//! Each verb is a file; `validate.rs` chains them into the stages that must pass before a change is merged. Invariants: a run
//! in which nothing was tested is a failure, and what could not be done on this machine is said, not dropped. Knows the
//! crates by name only; depends on none of them.
#![forbid(unsafe_code)]

mod bench;
mod book;
mod conformance;
mod counts;
mod crates;
mod deny;
mod device_programs;
mod disk;
mod dockerfile;
mod docs;
mod examples;
mod gpu_bundle;
mod install;
mod lints;
mod loom;
mod miri;
mod msrv;
mod native_examples;
mod native_suites;
mod nvcc;
mod opencl;
mod opencl_suites;
mod outcome;
mod package;
mod process;
mod processor_time;
mod ptx;
mod ptxas;
mod quirks;
mod requirements;
mod sanitizers;
mod suites;
mod test;
mod text;
mod tidy;
mod tools;
mod validate;
mod workspace;

use std::env;
use std::process::ExitCode;

use outcome::{Failure, Outcome, Result};
use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask VERB [ARGUMENTS]

  validate [--only A,B] [--skip A,B] [--list]
                          every check, in stages; --list names the stages
  test [--install] [--only A,B] [--skip A,B]
                          installs the tools that stages need below the target directory, then validates;
                          with --install or under CI a stage that cannot run is a failure
  tidy                    the rules of ARCHITECTURE.md: dependency edges, manifests, sources, settings
  requirements            requirements.toml against its numbers and against the tests
  conformance --device host|simulated|apart|cuda|opencl [FILTER]
                          the conformance suite on one kind of device
  crates [--device host|opencl|cuda] [FILTER]
                          kernels that call thirty published crates, as a table; without a device on the host and on OpenCL
  bench NAME [--json FILE] [ARGUMENTS]
                          a benchmark; FILE receives its results. For gpu and images nvcc builds the peer, if there is one;
                          host --plain is programs on the CPU beside rayon, with one thread on each side;
                          host --all-programs is native entries of whole programs' kernels beside plain ones;
                          build is what cargo sycl takes for an example, beside cargo
  gpu-bundle [--check] [--targets LIST]
                          programs for a machine with a GPU and without Rust, at most 50 MiB, below the target directory;
                          --check looks at the one that is there; --targets are those of cargo sycl [default: sm_70]
  gpu-run BUNDLE [--list] [--part A,B] [--out FOLDER] [--limit SECONDS]
                          runs parts of such a bundle, and writes gpu-results.json
  miri                    the tests of the device crate, the host backend, the runtime and the facade under Miri, but for a list of
                          excluded ones (needs a nightly toolchain with miri)
  loom                    models of the event and pool protocols under loom
  asan                    the tests of the runtime and the host backend, and the conformance suite, under AddressSanitizer (needs a
                          nightly toolchain with rust-src)
  tsan                    the same under ThreadSanitizer
  package [--no-verify]   packages every published crate and builds what was packaged
  install                 installs the packaged cargo sycl for a user who has nothing else, and builds and runs a new package with it
  book                    builds the book and compiles its snippets
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some((verb, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::FAILURE;
    };
    if ["help", "--help", "-h"].contains(&verb.as_str()) {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(verb, rest) {
        Ok(Outcome::Passed(note)) if note.is_empty() => println!("{verb}: passed"),
        Ok(Outcome::Passed(note)) => println!("{verb}: passed ({note})"),
        Ok(Outcome::Late(reason)) => println!("{verb}: NOT RUN: {reason}"),
        Ok(Outcome::Skipped(reason)) => println!("{verb}: did not run: {reason}"),
        Err(failure) => {
            eprintln!("{failure}\n{verb}: failed");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn run(verb: &str, rest: &[String]) -> Result<Outcome> {
    // In a bundle there is no workspace.
    if verb == "gpu-run" {
        return gpu_bundle::runner::run(rest);
    }
    let workspace = Workspace::load()?;
    match verb {
        "validate" => validate::run(&workspace, rest),
        "test" => test::run(&workspace, rest),
        "conformance" => conformance::run(&workspace, rest),
        "crates" => crates::run(&workspace, rest),
        "bench" => bench::run(&workspace, rest),
        "gpu-bundle" => gpu_bundle::run(&workspace, rest),
        "package" => package::run(&workspace, rest),
        _ => {
            let run = match verb {
                "tidy" => tidy::run,
                "requirements" => requirements::run,
                "miri" => miri::run,
                "loom" => loom::run,
                "asan" => sanitizers::address,
                "tsan" => sanitizers::thread,
                "book" => book::run,
                "install" => install::run,
                _ => return Err(Failure::new(format!("unknown verb \"{verb}\"\n\n{USAGE}"))),
            };
            match rest.first() {
                None => run(&workspace),
                Some(argument) => Err(Failure::new(format!("unexpected argument \"{argument}\""))),
            }
        }
    }
}
