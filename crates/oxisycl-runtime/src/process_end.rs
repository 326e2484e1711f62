//! The end of the process: commands get a moment to end, errors that nobody has seen are told, files are written. An executable does not
//! end with success if a command of its own has panicked unseen. A forked child leaves all that to its parent.

use std::ffi::{OsStr, OsString, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oxisycl_backend::process_end;
use oxisycl_types::ErrorCode;

use crate::graph::report_unseen_errors;
use crate::observe::{counters, graph_dump, trace};
use crate::output::report;
use crate::program::{self, lies_in_the_program};
use crate::{Error, Result, fork};

const SETTING: &str = "OXISYCL_EXIT_CODE";
/// The status of a program that panicked, as Rust's own.
const PANICKED: c_int = 101;
/// How long commands of an executable are waited for: what they still have to tell counts, but nobody waits for what may never end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether panics that nobody has seen decide the status.
static DECIDES_STATUS: AtomicBool = AtomicBool::new(true);

/// From now on the end of the process is looked after.
pub(crate) fn watch(decides_status: bool) {
    DECIDES_STATUS.store(decides_status, Ordering::Relaxed);
    process_end::run_first(end);
    // The handler brings the first one with it.
    process_end::at_exit(|_| ());
}

/// What the environment says: `0` leaves the status alone.
///
/// # Errors
/// `Platform` for another value.
pub(crate) fn decides_status_from_env() -> Result<bool> {
    decides_status(std::env::var_os(SETTING))
}

fn decides_status(value: Option<OsString>) -> Result<bool> {
    match value.as_deref().map(OsStr::as_encoded_bytes) {
        None | Some(b"101") => Ok(true),
        Some(b"0") => Ok(false),
        Some(_) => {
            let value = value.unwrap_or_default();
            let message = format!("{SETTING}={value:?}: expected 0, or 101 as without it");
            Err(Error::new(ErrorCode::Platform, message))
        }
    }
}

fn end(_status: Option<c_int>) {
    // A library does not make its host wait, nor does it decide what that ends with.
    let is_executable = lies_in_the_program(end as *const ());
    if fork::generation() == fork::FIRST_GENERATION && is_executable {
        let began = Instant::now();
        while counters().unfinished_nodes() > 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    program::process_ends();
    if fork::generation() != fork::FIRST_GENERATION {
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
    if std::env::var_os("OXISYCL_COUNTERS").is_some() {
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
    fn the_setting_is_0_or_what_it_is_without() {
        let decided = |value: &str| decides_status(Some(value.into()));
        assert!(decides_status(None).unwrap() && decided("101").unwrap() && !decided("0").unwrap());
        for wrong in ["", "1", "no"] {
            let error = decided(wrong).unwrap_err();
            assert!(error.to_string().contains("expected 0, or 101 as without it"), "{error}");
        }
    }
}
