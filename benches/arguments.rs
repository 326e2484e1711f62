//! The command line that the benchmarks share: `[--json FILE] [--filter SUBSTR] [--rounds N]`.
//!
//! Its tests are in `xtask`, since benchmarks have no harness.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// What is understood by all of them.
const USAGE: &str = "[--json FILE] [--filter SUBSTR] [--rounds N]";
/// The least that the protocol allows.
const ROUNDS: usize = 15;

/// What to measure, and how often.
#[derive(Debug)]
pub(crate) struct Options {
    /// Rounds per case.
    pub(crate) rounds: usize,
    /// Only cases whose name contains this.
    pub(crate) filter: String,
}

impl Options {
    /// Whether the case is to be measured.
    pub(crate) fn wants(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    /// Whether one of the cases is to be measured.
    pub(crate) fn wants_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.wants(name))
    }
}

/// What the command line asked for.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) options: Options,
    /// Where the results are written to, beside the table.
    pub(crate) json: Option<PathBuf>,
}

impl Arguments {
    /// Runs a benchmark with what was read, and prints why it ended early. `run` returns whether no bar is missed.
    pub(crate) fn run(
        read: Result<Self, String>,
        benchmark: &str,
        run: impl FnOnce(Self) -> Result<bool, Box<dyn Error>>,
    ) -> ExitCode {
        match read.map_err(Into::into).and_then(run) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("{benchmark}: {error}");
                ExitCode::from(2)
            }
        }
    }

    /// Reads them. A benchmark's own arguments are in `own_usage`. `own` is called with each argument that is not shared, and with a
    /// function that gives its value. It returns whether the argument is one of them.
    pub(crate) fn parse(
        arguments: impl IntoIterator<Item = String>,
        own_usage: &str,
        mut own: impl FnMut(&str, &mut dyn FnMut() -> Result<String, String>) -> Result<bool, String>,
    ) -> Result<Self, String> {
        let mut read = Self { options: Options { rounds: ROUNDS, filter: String::new() }, json: None };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                // Cargo says so to every benchmark.
                "--bench" => {}
                "--json" => read.json = Some(value()?.into()),
                "--filter" => read.options.filter = value()?,
                "--rounds" => {
                    let rounds = value()?;
                    let number = rounds.parse().ok().filter(|number| *number > 0);
                    read.options.rounds =
                        number.ok_or_else(|| format!("--rounds {rounds}: expected a number above zero"))?;
                }
                _ if own(&argument, &mut value)? => {}
                _ => return Err(format!("unexpected argument {argument}; arguments: {USAGE}{own_usage}")),
            }
        }
        Ok(read)
    }
}
