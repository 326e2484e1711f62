use std::fmt;

use lexopt::Parser;
use lexopt::prelude::Long;

use crate::text::{last, shortened};

/// How a stage or a verb ended without a failure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was done; the text says how much, and may be empty.
    Passed(String),
    /// Something could not be done on this machine; the text says what and why.
    Skipped(String),
    /// Left out for want of time; the text says what runs it. No failure under CI, and shown again at the end.
    Late(String),
}

/// Why a stage or a verb failed: one line, and the findings behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What went wrong, in one line.
    pub(crate) message: String,
    /// One line for each place that has to change; may be empty.
    pub(crate) findings: Vec<String>,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Outcome {
    /// Passed, with nothing to add.
    pub(crate) fn passed() -> Self {
        Self::Passed(String::new())
    }
}

/// Whether the only flag of a verb is there; other arguments are refused.
pub(crate) fn has_flag(arguments: &[String], flag: &str) -> Result<bool> {
    let mut parser = Parser::from_args(arguments);
    let mut found = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Long(name) if name == flag => found = true,
            _ => return Err(argument.unexpected().into()),
        }
    }
    Ok(found)
}

impl Failure {
    /// A failure that its one line explains.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), findings: Vec::new() }
    }

    /// The last findings and the message, each cut to a line that is easily read.
    pub(crate) fn brief(&self, n_findings: usize) -> String {
        const LONGEST: usize = 160;
        let findings = last(self.findings.clone(), n_findings);
        let lines = findings.iter().map(|finding| format!("  {}\n", shortened(finding, LONGEST)));
        lines.collect::<String>() + &shortened(&self.message, LONGEST)
    }

    /// `Ok` without findings, else a failure that lists them.
    pub(crate) fn unless_empty(what: &str, findings: Vec<String>) -> Result<()> {
        match findings.len() {
            0 => Ok(()),
            1 => Err(Self { message: format!("1 {what}"), findings }),
            n => Err(Self { message: format!("{n} {what}s"), findings }),
        }
    }
}

impl From<lexopt::Error> for Failure {
    /// An argument that is not known, lacks its value or has one too many.
    fn from(error: lexopt::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "  {finding}")?;
        }
        write!(f, "{}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_findings_are_no_failure() {
        assert_eq!(Failure::unless_empty("broken rule", Vec::new()), Ok(()));
    }

    #[test]
    fn a_brief_failure_has_its_last_findings_and_short_lines() {
        let findings = vec!["a".to_owned(), "b".to_owned(), "c".repeat(500)];
        let brief = Failure { message: "`cargo test` failed".to_owned(), findings }.brief(2);
        let lines: Vec<&str> = brief.lines().collect();
        assert_eq!(lines[..2], ["  (1 lines before these are left out)", "  b"]);
        assert_eq!((lines[2].len(), lines[3]), (162, "`cargo test` failed"));
    }

    #[test]
    fn findings_are_counted_and_listed_before_the_message() {
        let failure = Failure::unless_empty("broken rule", vec!["a".into(), "b".into()]).unwrap_err();
        assert_eq!(failure.to_string(), "  a\n  b\n2 broken rules");
    }
}
