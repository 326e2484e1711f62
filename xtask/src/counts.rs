//! Reads how many tests really ran from what test runners print.
//!
//! Invariant: a text that no runner wrote counts as no test, so that an empty run is never taken for a good one.

use crate::text::{last, shortened};

/// What one run reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// What the runner calls ignored or skipped.
    pub(crate) ignored: u64,
}

impl Counts {
    /// The sum over all `test result: ok. 3 passed; 0 failed; ..` lines of `cargo test`.
    pub(crate) fn of_cargo_test(output: &str) -> Self {
        let mut counts = Self::default();
        for result in output.lines().filter_map(Self::of_result_line) {
            counts.passed += result.passed;
            counts.failed += result.failed;
            counts.ignored += result.ignored;
        }
        counts
    }

    /// The closing line of one test program, `test result: ..`; `None` if the last line is another.
    pub(crate) fn of_test_program(output: &str) -> Option<Self> {
        Self::of_result_line(output.lines().rev().find(|line| !line.trim().is_empty())?)
    }

    fn of_result_line(line: &str) -> Option<Self> {
        let (_, result) = line.split_once("test result:")?;
        let count = |what| number_before(result, what).unwrap_or(0);
        Some(Self { passed: count(" passed"), failed: count(" failed"), ignored: count(" ignored") })
    }

    /// The last `Summary [..] 5 tests run: 4 passed, 1 failed, 0 skipped` line of `cargo nextest run`.
    pub(crate) fn of_nextest(output: &str) -> Self {
        let summary = output.lines().rev().find(|line| {
            line.trim_start().starts_with("Summary [") && (line.contains(" tests run:") || line.contains(" test run:"))
        });
        let Some((_, summary)) = summary.and_then(|line| line.split_once(" run:")) else {
            return Self::default();
        };
        let count = |what| number_before(summary, what).unwrap_or(0);
        Self { passed: count(" passed"), failed: count(" failed") + count(" timed out"), ignored: count(" skipped") }
    }
}

/// The tests that passed only when nextest repeated them, from lines such as `FLAKY 2/2 [   0.1s] package::binary test`.
pub(crate) fn flaky_tests(output: &str) -> Vec<String> {
    let name = |line: &str| {
        let (_, name) = line.trim_start().strip_prefix("FLAKY ")?.split_once("] ")?;
        // Its number may stand before it.
        let name = name.trim();
        Some(name.split_once(") ").map_or(name, |(_, name)| name).to_owned())
    };
    let mut names: Vec<String> = output.lines().filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

/// The most lines of one run that [`telling_lines`] keeps.
const MOST_LINES: usize = 40;
/// The most characters of one such line.
const LONGEST_LINE: usize = 240;
/// How many lines after the first one belong to a panic or to an error of the compiler.
const LINES_BEHIND: usize = 4;

/// The lines of a failed run that say what failed: names of tests, panics, errors of the compiler. A log may be shortened on its way to the
/// reader, so they are shown once more at its end.
pub(crate) fn telling_lines(output: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut behind = 0;
    for line in output.lines() {
        let trimmed = line.trim_start();
        let begins = ["FAIL [", "TRY 2 ", "TIMEOUT [", "SIG", "ABORT [", "error: ", "error["]
            .iter()
            .any(|s| trimmed.starts_with(s))
            && !trimmed.contains(" PASS [");
        if begins
            || trimmed.ends_with("... FAILED")
            || (trimmed.starts_with("thread ") && trimmed.contains(" panicked at "))
        {
            behind = LINES_BEHIND;
        } else if behind > 0 {
            behind -= 1;
        } else {
            continue;
        }
        let line = shortened(line, LONGEST_LINE);
        if !trimmed.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    last(lines, MOST_LINES)
}

/// The end of what a run wrote, for runs without [`telling_lines`].
pub(crate) fn last_lines(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(MOST_LINES)..].iter().map(|line| shortened(line, LONGEST_LINE)).collect()
}

/// The number that stands directly before the first occurrence of `label`.
fn number_before(text: &str, label: &str) -> Option<u64> {
    let before = &text[..text.find(label)?];
    let start = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
    before[start..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64, ignored: u64) -> Counts {
        Counts { passed, failed, ignored }
    }

    #[test]
    fn results_of_all_test_binaries_are_added() {
        let output = "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
                      \ntest result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured\n";
        assert_eq!(Counts::of_cargo_test(output), counts(12, 3, 1));
    }

    #[test]
    fn text_without_a_result_counts_nothing() {
        assert_eq!(Counts::of_cargo_test("Finished in 3 passed"), Counts::default());
        assert_eq!(Counts::of_nextest("    Finished `test` profile\nerror: no tests to run"), Counts::default());
        assert_eq!(Counts::of_test_program(""), None);
    }

    #[test]
    fn nextest_summaries_are_read_with_and_without_failures() {
        let all = "------------\n     Summary [   0.012s] 7 tests run: 7 passed, 2 skipped\n";
        assert_eq!(Counts::of_nextest(all), counts(7, 0, 2));
        let slow =
            "     Summary [  61.0s] 9 tests run: 5 passed (1 slow), 3 failed, 1 timed out, 0 skipped\n  FAIL a\n";
        assert_eq!(Counts::of_nextest(slow), counts(5, 4, 0));
        assert_eq!(Counts::of_nextest(" Summary [ 1s] 1 test run: 1 passed, 0 skipped"), counts(1, 0, 0));
    }

    #[test]
    fn tests_that_passed_when_repeated_are_named_once() {
        let log = "  TRY 1 FAIL [   0.005s] a::b c\n  TRY 2 PASS [   0.004s] a::b c\n     Summary [   0.2s] 9 tests run: 9 passed (1 flaky), 0 skipped\n   FLAKY 2/2 [   0.004s] a::b c\n   FLAKY 2/2 [   0.004s] (3/9) a::b c\n";
        assert_eq!(flaky_tests(log), ["a::b c"]);
        assert_eq!(Counts::of_nextest(log), counts(9, 0, 0));
    }

    #[test]
    fn what_failed_is_picked_out_of_a_long_log() {
        let log = "    PASS [ 0.1s] (1/3) a::b c\n        FAIL [ 2.0s] (2/3) a::b broken\n  stdout ---\n\n\
                   thread 'broken' (7) panicked at src/lib.rs:3:5:\nassertion failed\n  left: 1\n right: 2\nnote: run with\n\
                   more\n    PASS [ 0.1s] (3/3) a::b d\n     Summary [ 2.2s] 3 tests run: 2 passed, 1 failed\n        FAIL [ 2.0s] (2/3) a::b broken\n";
        let lines = telling_lines(log);
        assert!(lines[0].ends_with("a::b broken") && lines.iter().any(|line| line == " right: 2"), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("PASS") || line == "more"), "{lines:?}");
        assert!(telling_lines("test a ... ok\ntest b ... FAILED\n")[0].ends_with("b ... FAILED"));
        let many: String = (0..500).map(|i| format!("error: {i}\n")).collect();
        let lines = telling_lines(&many);
        assert!(
            lines[0].starts_with("(460 lines") && lines.last().is_some_and(|line| line == "error: 499"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_run_that_says_nothing_telling_is_known_by_its_end() {
        let output: String = (0..100).map(|i| format!("{i}\n\n")).collect();
        let lines = last_lines(&output);
        assert_eq!((lines.len(), lines[0].as_str(), lines[39].as_str()), (40, "60", "99"));
        assert_eq!(last_lines(&"x".repeat(1000))[0].len(), LONGEST_LINE);
    }

    #[test]
    fn a_test_program_must_end_with_its_counts() {
        let closing = "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 5 filtered out; finished in 0.01s";
        let read = |output: &str| Counts::of_test_program(output);
        assert_eq!(read(&format!("test host a::b ... ok\n\n{closing}\n\n")), Some(counts(12, 0, 3)));
        assert_eq!(read(&format!("{closing}\nthread panicked")), None);
        assert_eq!(read("12 passed, 0 failed"), None);
    }
}
