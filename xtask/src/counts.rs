//! Reads how many tests really ran from what test runners print.
//!
//! Invariant: a text that no runner wrote counts as no test, so that an empty run is never taken for a good one.

/// What one run reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    /// The sum over all `test result: ok. 3 passed; 0 failed; ..` lines of `cargo test`.
    pub(crate) fn of_cargo_test(output: &str) -> Self {
        let mut counts = Self::default();
        for line in output.lines() {
            if let Some((_, result)) = line.split_once("test result:") {
                counts.passed += number_before(result, " passed").unwrap_or(0);
                counts.failed += number_before(result, " failed").unwrap_or(0);
            }
        }
        counts
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
        Self { passed: count(" passed"), failed: count(" failed") + count(" timed out") }
    }

    /// The closing line of the conformance suite, `N passed, M failed`; `None` if the last line is another.
    pub(crate) fn of_conformance(output: &str) -> Option<Self> {
        let line = output.lines().rev().find(|line| !line.trim().is_empty())?.trim();
        let (passed, failed) = line.split_once(" passed, ")?;
        Some(Self { passed: passed.parse().ok()?, failed: failed.strip_suffix(" failed")?.parse().ok()? })
    }
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

    #[test]
    fn results_of_all_test_binaries_are_added() {
        let output = "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
                      \ntest result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured\n";
        assert_eq!(Counts::of_cargo_test(output), Counts { passed: 12, failed: 3 });
    }

    #[test]
    fn text_without_a_result_counts_nothing() {
        assert_eq!(Counts::of_cargo_test("Finished in 3 passed"), Counts::default());
        assert_eq!(Counts::of_nextest("    Finished `test` profile\nerror: no tests to run"), Counts::default());
        assert_eq!(Counts::of_conformance(""), None);
    }

    #[test]
    fn nextest_summaries_are_read_with_and_without_failures() {
        let all = "------------\n     Summary [   0.012s] 7 tests run: 7 passed, 2 skipped\n";
        assert_eq!(Counts::of_nextest(all), Counts { passed: 7, failed: 0 });
        let slow =
            "     Summary [  61.0s] 9 tests run: 5 passed (1 slow), 3 failed, 1 timed out, 0 skipped\n  FAIL a\n";
        assert_eq!(Counts::of_nextest(slow), Counts { passed: 5, failed: 4 });
        assert_eq!(
            Counts::of_nextest(" Summary [ 1s] 1 test run: 1 passed, 0 skipped"),
            Counts { passed: 1, failed: 0 }
        );
    }

    #[test]
    fn the_conformance_suite_must_end_with_its_counts() {
        assert_eq!(
            Counts::of_conformance("host:0 a::b\n12 passed, 0 failed\n\n"),
            Some(Counts { passed: 12, failed: 0 })
        );
        assert_eq!(Counts::of_conformance("12 passed, 0 failed\nthread panicked"), None);
        assert_eq!(Counts::of_conformance("twelve passed, 0 failed"), None);
    }
}
