//! How far the work is, where standard error is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar for so many pictures. It is drawn when it changes.
pub(crate) fn bar(n: usize, target: ProgressDrawTarget) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(n as u64), target);
    if let Ok(style) = ProgressStyle::with_template("  {bar:30} {pos} of {len}, {eta} left  {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
