//! The end of the process: commands get a moment to end, errors that the program has not seen are reported, files are written. An executable
//! does not end with success if a command of its own has panicked unseen. A forked child leaves all that to its parent.

use std::env;
use std::ffi::{OsString, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oxisycl_backend::process_end;
use oxisycl_types::ErrorCode;

use crate::graph::report_unseen_errors;
use crate::observe::{counters, graph_dump, trace};
use crate::output::report;
use crate::plug_ins::link_unit::lies_in_the_program;
use crate::program;
use crate::{Error, Result, fork};

const EXIT_CODE: &str = "OXISYCL_EXIT_CODE";
const COUNTERS: &str = "OXISYCL_COUNTERS";
/// The status of a program that panicked, as Rust's own.
const PANICKED: c_int = 101;
/// How long the process waits at its end for commands of an executable. Their reports still count, but the process does not wait for what
/// may never end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether panics that the program has not seen decide the status.
static DECIDES_STATUS: AtomicBool = AtomicBool::new(true);
/// Whether the counters are printed.
static PRINTS_COUNTERS: AtomicBool = AtomicBool::new(false);

/// What the end of the process is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    decides_status: bool,
    prints_counters: bool,
}

/// From now on the end of the process is looked after.
pub(crate) fn watch(settings: Settings) {
    DECIDES_STATUS.store(settings.decides_status, Ordering::Relaxed);
    PRINTS_COUNTERS.store(settings.prints_counters, Ordering::Relaxed);
    process_end::run_first(end);
    // The handler brings the first one with it.
    process_end::at_exit(|_| ());
}

impl Settings {
    /// What the environment says.
    ///
    /// # Errors
    /// `Platform` if a variable has a wrong value.
    pub(crate) fn from_env() -> Result<Self> {
        Self::of(env::var_os(EXIT_CODE), env::var_os(COUNTERS))
    }

    fn of(exit_code: Option<OsString>, counters: Option<OsString>) -> Result<Self> {
        let wrong = |name: &str, value: &OsString, expected: &str| {
            Err(Error::new(ErrorCode::Platform, format!("{name}={value:?}: expected {expected}")))
        };
        let decides_status = match &exit_code {
            None => true,
            Some(value) if value == "101" => true,
            Some(value) if value == "0" => false,
            Some(value) => return wrong(EXIT_CODE, value, "0, or 101 as without it"),
        };
        let prints_counters = match &counters {
            None => false,
            Some(value) if value == "0" => false,
            Some(value) if value == "1" => true,
            Some(value) => return wrong(COUNTERS, value, "1, or 0 as without it"),
        };
        Ok(Self { decides_status, prints_counters })
    }
}

fn end(_status: Option<c_int>) {
    // A library does not make its host wait, nor does it decide what that ends with.
    let is_executable = lies_in_the_program(end as *const ());
    if !fork::is_child() && is_executable {
        let began = Instant::now();
        while counters().unfinished_nodes() > 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    program::process_ends();
    if fork::is_child() {
        return;
    }
    let pending = counters().unfinished_nodes();
    if pending > 0 {
        report(&format!("the process ends while {pending} commands are pending"));
    }
    let any_panic = report_unseen_errors();
    for (what, result) in [("trace", trace().check()), ("graph", graph_dump().write())] {
        if let Err(error) = result {
            report(&format!("cannot write the {what} file: {error}"));
        }
    }
    if PRINTS_COUNTERS.load(Ordering::Relaxed) {
        eprintln!("oxisycl: {:#?}", counters().snapshot());
    }
    if any_panic && is_executable && DECIDES_STATUS.load(Ordering::Relaxed) {
        process_end::fail(PANICKED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_two_values_and_the_others_are_refused() {
        let of = |exit_code: &str, counters: &str| {
            let value = |text: &str| (text != "-").then(|| OsString::from(text));
            Settings::of(value(exit_code), value(counters)).map_err(|error| error.to_string())
        };
        let ends = |decides_status, prints_counters| Ok(Settings { decides_status, prints_counters });
        assert_eq!(
            [of("-", "-"), of("101", "0"), of("0", "1")],
            [ends(true, false), ends(true, false), ends(false, true)]
        );
        for wrong in ["", "9", "no"] {
            let error = of(wrong, "-").unwrap_err();
            assert!(
                error.contains("OXISYCL_EXIT_CODE=") && error.ends_with("expected 0, or 101 as without it"),
                "{error}"
            );
            let error = of("-", wrong).unwrap_err();
            assert!(
                error.contains("OXISYCL_COUNTERS=") && error.ends_with("expected 1, or 0 as without it"),
                "{error}"
            );
        }
    }
}
