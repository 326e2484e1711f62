//! The suite of kernels of ordinary code, and the examples, in native code of the device compiler: what optimised programs have without being told.
//!
//! Invariants: the suite reports about as many tests as there were, and has about as many kernels in native code and in lanes. All tests passed, and all
//! examples [ran](native_examples). Random kernels are run so by hand, since they take minutes to compile.

use std::time::Duration;

use crate::conformance;
use crate::device_programs;
use crate::native_examples;
use crate::opencl_suites::{count_on, enough};
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo, command};
use crate::workspace::Workspace;

const SUITE: &str = "test kernels";
/// The fewest tests.
const FEWEST: usize = 186;
/// The fewest kernels with native code, and of those the fewest in lanes.
const FEWEST_KERNELS: [usize; 2] = [145, 40];

/// The longest that a suite may run.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Builds and runs them.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    #[cfg(target_arch = "x86_64")]
    let has_level = std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    let has_level = false;
    if !has_level {
        // No failure: nothing that is installed would help.
        return Ok(Outcome::Passed("nothing was run, since the processor has not all of x86-64-v3".to_owned()));
    }
    let built = device_programs::native(workspace)?;
    let program = built.get(SUITE).ok_or_else(|| Failure::new(format!("cargo built no {SUITE}")))?;
    let mut inspect = cargo(workspace);
    inspect.args(["sycl", "inspect"]).arg(program).args(["--emit", "report"]);
    let report = process::run_for_output(&mut inspect)?.succeeded()?.stdout;
    let [all, in_lanes, plain] = [" kernels", " in lanes", " in plain code alone"].map(|what| count_of(&report, what));
    let native = all.saturating_sub(plain);
    enough("kernels in native code", native, FEWEST_KERNELS[0])?;
    enough("kernels in lanes", in_lanes, FEWEST_KERNELS[1])?;
    let mut command = command(workspace, &program.as_os_str().to_owned());
    command.current_dir(&workspace.require("oxisycl-kernel-suite")?.directory).args(["--device", "host"]);
    command.env("OXISYCL_DEVICE_SELECTOR", "host:*").env("OXISYCL_HOST_CODE", "v3");
    let captured = process::run_within(&mut command, LIMIT)?;
    process::show(&captured);
    conformance::check(&captured)?;
    let n_tests = count_on(&captured, "host");
    enough("tests", n_tests, FEWEST)?;
    let [n_examples, n_equal] = native_examples::run(workspace, &built)?;
    Ok(Outcome::Passed(format!(
        "{n_tests} tests, {native} kernels in native code, {in_lanes} of them in lanes; {n_examples} examples, {n_equal} of them with equal outputs"
    )))
}

/// How many kernels the last line of a report counts as this; 0 if it does not say.
fn count_of(report: &str, what: &str) -> usize {
    let sum = report.lines().next_back().unwrap_or_default();
    let part = sum.split(", ").flat_map(|part| part.split(": ")).find_map(|part| part.strip_suffix(what));
    part.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::count_of;

    #[test]
    fn kernels_are_counted_by_the_sum_of_a_report() {
        let report = "a.rs:1:1: k: x86-64-v3: 7 in lanes\nhost:x+x86-64-v3: 5 kernels, 3 in lanes, 2 one by one\n";
        assert_eq!([" kernels", " in lanes", " in plain code alone"].map(|what| count_of(report, what)), [5, 3, 0]);
        assert_eq!(count_of("", " kernels"), 0);
    }
}
