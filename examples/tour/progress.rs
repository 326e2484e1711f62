//! Signs of life during long work, on standard error if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Pixels from which on work is long.
const LONG_WORK: usize = 4 << 20;

/// A bar for work in `n_steps` steps on `n_pixels` pixels.
pub(crate) fn bar(n_steps: usize, n_pixels: usize) -> ProgressBar {
    if n_pixels < LONG_WORK {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(n_steps as u64);
    if let Ok(style) = ProgressStyle::with_template("  {bar:50} {percent:>3} %  {elapsed}, {eta} left") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Runs `work`, beside a spinner if it concerns many pixels.
pub(crate) fn spin<R>(what: &str, n_pixels: usize, work: impl FnOnce() -> R) -> R {
    if n_pixels < LONG_WORK {
        return work();
    }
    let spinner = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg}, {elapsed}") {
        spinner.set_style(style);
    }
    spinner.set_message(what.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    spinner.finish_and_clear();
    result
}
