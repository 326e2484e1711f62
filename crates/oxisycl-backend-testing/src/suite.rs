//! Suites of tests that need something of the machine, for several backends: `libtest-mimic` reports a test that calls [`skip`] as
//! ignored, with the reason.
//!
//! Invariant: a test that could not look at anything never counts as passed. Does not know what is tested.

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// One test. Its name says what holds.
#[derive(Clone, Copy)]
pub struct Test {
    /// Says what holds.
    pub name: &'static str,
    /// Panics if it does not.
    pub run: fn(),
}

/// Lists the tests of a file, each once; one that is left out is reported by the compiler as never used.
#[macro_export]
macro_rules! suite_tests {
    ($($name:ident),* $(,)?) => {
        pub(crate) const TESTS: &[$crate::suite::Test] =
            &[$($crate::suite::Test { name: stringify!($name), run: $name }),*];
    };
}
pub use suite_tests as tests;

struct Skip(String);

/// Ends the test, which is reported as ignored. Not to be called on a thread that the test has started.
pub fn skip(reason: impl Into<String>) -> ! {
    // Not a panic, whose message would be printed.
    panic::resume_unwind(Box::new(Skip(reason.into())))
}

/// Runs the tests that the command line selects. Those of an area are called `area::name`, those of the area `""` by their names alone.
pub fn main(areas: &[(&str, &[Test])]) -> ExitCode {
    run(Arguments::from_args(), areas)
}

/// Runs tests like [`main`], one at a time: some keep a kernel running, which a driver's calls in another test would wait for.
pub fn main_in_turn(areas: &[(&str, &[Test])]) -> ExitCode {
    run(Arguments { test_threads: Some(1), ..Arguments::from_args() }, areas)
}

fn run(arguments: Arguments, areas: &[(&str, &[Test])]) -> ExitCode {
    let mut trials = Vec::new();
    for (area, tests) in areas {
        for Test { name, run } in *tests {
            let name = if area.is_empty() { (*name).to_owned() } else { format!("{area}::{name}") };
            let run = *run;
            trials.push(Trial::ignorable_test(name, move || complete(run)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn complete(run: fn()) -> Result<Completion, Failed> {
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => Ok(Completion::Completed),
        Err(payload) => match payload.downcast::<Skip>() {
            Ok(skip) => Ok(Completion::ignored_with(skip.0)),
            // A failure, whose message was printed.
            Err(payload) => panic::resume_unwind(payload),
        },
    }
}
