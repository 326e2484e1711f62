//! Says how far a long compilation is: a line now and then, where the user sees it at once.
//!
//! Cargo keeps what compilers write, and writes it again in builds with nothing to do. So lines go past it, to where cargo itself writes.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Nothing is said of what takes less.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two lines on a terminal, and elsewhere, where all of them stay.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];

/// What progress is shown of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Where cargo writes.
    pub(crate) place: PathBuf,
    /// The crate's name.
    pub(crate) crate_name: String,
}

/// Where cargo writes, for processes below it; nothing where the system has no name for that.
pub(crate) fn place_of_this_process() -> Option<PathBuf> {
    // This process becomes cargo. A descriptor would be kept open by whatever the build leaves running.
    let place = PathBuf::from(format!("/proc/{}/fd/2", std::process::id()));
    place.exists().then_some(place)
}

/// Lines about one list of jobs.
pub(super) struct Lines<'a> {
    progress: &'a Progress,
    last: Instant,
    pause: Duration,
}

impl<'a> Lines<'a> {
    pub(super) fn new(progress: &'a Progress) -> Self {
        Self { progress, last: Instant::now(), pause: PATIENCE }
    }

    /// So many jobs of a kind have ended.
    pub(super) fn ended(&mut self, jobs: &str, n_ended: usize, n_jobs: usize) {
        if self.last.elapsed() < self.pause || n_ended == n_jobs {
            return;
        }
        // It is no failure of the build if nothing can be shown.
        let Ok(mut place) = File::options().append(true).open(&self.progress.place) else { return };
        let is_terminal = place.is_terminal();
        let _ = place.write_all(line(jobs, n_ended, n_jobs, &self.progress.crate_name, is_terminal).as_bytes());
        self.last = Instant::now();
        self.pause = PAUSES[usize::from(!is_terminal)];
    }
}

fn line(jobs: &str, n_ended: usize, n_jobs: usize, crate_name: &str, is_terminal: bool) -> String {
    // Cargo's bar may stand in the line.
    let clear = if is_terminal { "\r\x1b[K" } else { "" };
    format!("{clear}{:>12} {jobs} {n_ended} of {n_jobs} (crate `{crate_name}`)\n", "Device code")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn lines_come_after_a_while_and_not_for_each_job() {
        let scratch = Scratch::new("progress");
        let place = scratch.path().join("messages");
        std::fs::write(&place, "").unwrap();
        let progress = Progress { place: place.clone(), crate_name: "app".to_owned() };
        let mut lines = Lines::new(&progress);
        lines.ended("kernel", 1, 97);
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "");
        lines.last -= PATIENCE;
        lines.ended("kernel", 12, 97);
        lines.ended("kernel", 13, 97);
        assert_eq!(std::fs::read_to_string(&place).unwrap(), " Device code kernel 12 of 97 (crate `app`)\n");
        lines.last -= PAUSES[1];
        lines.ended("kernel", 97, 97);
        assert_eq!(std::fs::read_to_string(&place).unwrap().lines().count(), 1, "cargo prints the end");
        assert!(line("kernel", 1, 2, "app", true).starts_with("\r\x1b[K"));
    }
}
