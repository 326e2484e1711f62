//! What users can ask for, one module per verb or family of verbs.

mod build;
mod build_options;
mod cargo;
mod clean;
pub(crate) mod doctor;
mod inspect;
mod ls;
mod new;
pub(crate) mod ptxas;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use crate::failure::Result;

/// What `cargo sycl` and `cargo sycl --help` print.
pub(crate) const HELP: &str = "\
Builds Rust programs whose kernels run on GPUs

Usage: cargo sycl VERB [OPTIONS] [CARGO'S OPTIONS]

As in cargo, with device code for each kernel:
  build      Compile the current package
  run        Compile and run a program or an example
  test       Compile and run the tests; documentation tests run on the host device only
  bench      Compile and run the benchmarks
  check      Check the current package for errors, without device code

  --targets LIST    What to compile kernels for, separated by commas
                    [default: sm_70,spirv; for optimised programs host-v3, too]
                    sm_70, sm_80, sm_90, ...: NVIDIA GPUs of that compute capability and later
                    gfx90a, gfx942, gfx1100: AMD GPUs of that kind; to look at, since nothing launches them yet
                    spirv: devices of OpenCL that take SPIR-V
                    host-v3, host-v4: vector code for this computer, where its processor has AVX2 or AVX-512
  --float POLICY    strict: each operation is rounded; contract: a * b + c may become one operation [default];
                    fast: also reassociation, reciprocals, no NaN or infinity
  --lanes N         With the target host-v3 or host-v4: 2, 4, 8, 16 or 32 work-items at once where that is possible;
                    auto: as many as are estimated to be fastest [default for optimised programs, else 1]
  --dump DIR        Write the module of each kernel after each pass of the device compiler
  --time-passes     Show how long each pass of the device compiler took

About this machine and about programs:
  ls         List the devices, and the code that each can run
  doctor     Look for what building and running needs, and say what is missing
  inspect    Show the kernels in a program or library
  new        Make a package with a kernel and a test
  clean      Remove what these verbs have built

`cargo sycl VERB --help` says more. Outputs are in the folder `sycl` below cargo's target folder. Kernels that no target can run
are warned of, and so are those that a target of --targets cannot run; without --targets, kernels that only some targets can run are
a note for each of the others. All kernels run on the host device, as they do in a program that plain cargo has built.
";

/// A verb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    /// One of cargo's, by its name.
    Build(&'static str),
    Ls,
    Doctor,
    Inspect,
    New,
    Clean,
    Help,
    Version,
}

const VERBS: &[(&str, Verb)] = &[
    ("build", Verb::Build("build")),
    ("b", Verb::Build("build")),
    ("run", Verb::Build("run")),
    ("r", Verb::Build("run")),
    ("test", Verb::Build("test")),
    ("t", Verb::Build("test")),
    ("bench", Verb::Build("bench")),
    ("check", Verb::Build("check")),
    ("c", Verb::Build("check")),
    ("ls", Verb::Ls),
    ("doctor", Verb::Doctor),
    ("inspect", Verb::Inspect),
    ("new", Verb::New),
    ("clean", Verb::Clean),
    ("help", Verb::Help),
    ("--help", Verb::Help),
    ("-h", Verb::Help),
    ("--version", Verb::Version),
    ("-V", Verb::Version),
];

impl Verb {
    /// The verb of a name.
    pub(crate) fn named(name: &OsStr) -> Option<Self> {
        VERBS.iter().find(|(known, _)| *known == name).map(|(_, verb)| *verb)
    }

    /// Does it.
    pub(crate) fn run(self, arguments: Vec<OsString>) -> Result<ExitCode> {
        match self {
            Self::Build(verb) => build::run(verb, arguments),
            Self::Ls => ls::run(arguments),
            Self::Doctor => doctor::run(arguments),
            Self::Inspect => inspect::run(arguments),
            Self::New => new::run(arguments),
            Self::Clean => clean::run(arguments),
            Self::Help => {
                print!("{HELP}");
                Ok(ExitCode::SUCCESS)
            }
            Self::Version => {
                println!("cargo-sycl {}", env!("CARGO_PKG_VERSION"));
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_no_verbs() {
        for name in ["rustc", "/usr/bin/rustc", "sccache", "clippy-driver", ""] {
            assert_eq!(Verb::named(name.as_ref()), None, "{name:?}");
        }
    }

    #[test]
    fn help_names_the_default_targets() {
        let (targets, level) = (build_options::DEFAULT_TARGETS, build_options::DEFAULT_LEVEL);
        assert!(HELP.contains(&format!("[default: {targets}; for optimised programs {level}, too]\n")), "{HELP}");
    }

    #[test]
    fn help_names_each_verb() {
        for (name, _) in VERBS.iter().filter(|(name, _)| name.len() > 1 && !name.starts_with('-') && *name != "help") {
            assert!(HELP.contains(&format!("\n  {name} ")), "{name}");
        }
    }
}
