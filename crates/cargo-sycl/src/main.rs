//! `cargo sycl`: builds Rust programs whose kernels run on GPUs.
//!
//! One executable in three roles. As `cargo sycl VERB` it does what the user asks ([`verb`]); most verbs start cargo with this executable
//! in the place of rustc. Started by cargo it is that wrapper ([`wrapper`]), which compiles each crate a second time for its device code.
//! Started by the wrapper it is the device compiler ([`compile`]), in a process that may die without taking the build with it.
//!
//! Invariant: nothing of the user's is changed, neither flags nor configuration nor the outputs of plain cargo. The folder `sycl` below the
//! target folder is this tool's own. Does not know what is in bitcode; `oxisycl-compiler` does.

mod compile;
mod failure;
mod files;
mod settings;
mod stamps;
mod toolchain;
mod verb;
mod wrapper;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use failure::{Failure, Result};
use settings::Settings;
use verb::{Verb, doctor};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    run(arguments).unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        ExitCode::FAILURE
    })
}

fn run(mut arguments: Vec<OsString>) -> Result<ExitCode> {
    // Cargo passes the name of the subcommand on.
    if arguments.first().is_some_and(|first| first == "sycl") {
        arguments.remove(0);
    }
    let Some(first) = arguments.first() else {
        print!("{}", verb::HELP);
        return Ok(ExitCode::SUCCESS);
    };
    if first == compile::VERB {
        return compile::serve(&arguments[1..]);
    }
    if first == compile::captures::VERB {
        return compile::captures::serve(&arguments[1..]);
    }
    if first == doctor::opencl::VERB {
        return doctor::opencl::serve(&arguments[1..]);
    }
    if let Some(verb) = Verb::named(first) {
        return verb.run(arguments.split_off(1));
    }
    if let Some(settings) = Settings::from_environment()? {
        return wrapper::run(&settings, arguments);
    }
    if wrapper::is_compiler(first) {
        // A build script that asks the compiler something, and hides its environment from it.
        return Err(wrapper::become_compiler(&arguments));
    }
    Err(Failure::new(format!("there is no verb {first:?}: `cargo sycl --help` lists them")))
}
