//! What a benchmark says of a bar.

use std::fmt;

/// Whether a bar holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Holds,
    WithinNoise,
    Missed,
    Information,
}

impl Verdict {
    /// By how many times the bar is missed, which is at most 1 if it holds, and what the machine's noise excuses. What is no number is missed.
    pub(crate) fn of(excess: f64, noise: f64) -> Self {
        if excess <= 1.0 {
            Self::Holds
        } else if excess <= noise {
            Self::WithinNoise
        } else {
            Self::Missed
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::WithinNoise => "within noise",
            Self::Missed => "MISSED",
            Self::Information => "",
        })
    }
}
