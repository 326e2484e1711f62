//! The processor time that child processes use.

use std::fs;

use crate::outcome::{Failure, Result};

/// Seconds of processors that ended children of this process have used, and theirs.
pub(crate) fn children_seconds() -> Result<f64> {
    /// Of a second; the same on all Linux systems.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat");
    let stat = stat.map_err(|error| Failure::new(format!("/proc/self/stat: {error}; it is there on Linux only")))?;
    parse_children(&stat)
        .map(|ticks| ticks as f64 / TICKS)
        .ok_or_else(|| Failure::new("/proc/self/stat has another form"))
}

/// The sum of `cutime` and `cstime`.
fn parse_children(stat: &str) -> Option<u64> {
    // The second field is a name in parentheses, which may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn processor_time_of_children_is_read_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 90 5000 0 3 11 12 130 14 20 0 1 0 100 200 300\n";
        assert_eq!(parse_children(stat), Some(144));
        assert_eq!(parse_children("7 (x) S 1"), None);
    }

    #[test]
    fn a_child_that_works_is_seen() {
        let before = children_seconds().unwrap();
        let mut work = std::process::Command::new("sh");
        process::run_quietly(work.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])).unwrap();
        assert!(children_seconds().unwrap() > before);
    }
}
