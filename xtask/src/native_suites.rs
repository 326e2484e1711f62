//! Suites with kernels in native code of the device compiler: the vector code that optimised programs have without being told. Kernels of ordinary code follow
//! the default policy, and random ones have the bits of what they are compared with.
//!
//! Invariants: each suite reports about as many tests as there were, and has about as many kernels in lanes. All of them passed.

use std::time::Duration;

use crate::conformance;
use crate::device_programs;
use crate::opencl_suites::{count_on, enough};
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo, command};
use crate::workspace::Workspace;

/// A suite, its policy for floating-point arithmetic, the fewest tests, and the fewest kernels in lanes.
const SUITES: [(&str, &str, usize, usize); 2] = [("kernels", "contract", 186, 1000), ("fuzz", "strict", 64, 1000)];

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
    let mut notes = Vec::new();
    for (test, float, fewest, fewest_in_lanes) in SUITES {
        let program = device_programs::native(workspace, test, float)?;
        let mut inspect = cargo(workspace);
        inspect.args(["sycl", "inspect"]).arg(&program).args(["--emit", "report"]);
        let report = process::run_for_output(&mut inspect)?.succeeded()?.stdout;
        let in_lanes = in_lanes(&report).ok_or_else(|| Failure::new(format!("no sum in the report of {test}")))?;
        enough("kernels in lanes", in_lanes, fewest_in_lanes)?;
        let mut command = command(workspace, &program.into_os_string());
        command.current_dir(&workspace.require("oxisycl-kernel-suite")?.directory).args(["--device", "host"]);
        command.env("OXISYCL_DEVICE_SELECTOR", "host:*").env("OXISYCL_HOST_CODE", "v3");
        let captured = process::run_within(&mut command, LIMIT)?;
        process::show(&captured);
        conformance::check(&captured)?;
        let n_tests = count_on(&captured, "host");
        enough("tests", n_tests, fewest)?;
        notes.push(format!("{test} {n_tests} with {in_lanes} kernels in lanes"));
    }
    Ok(Outcome::Passed(notes.join(", ")))
}

/// The kernels in lanes, by the last line of a report.
fn in_lanes(report: &str) -> Option<usize> {
    let sum = report.lines().next_back()?;
    let part = sum.split(", ").find_map(|part| part.strip_suffix(" in lanes"))?;
    part.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::in_lanes;

    #[test]
    fn kernels_in_lanes_are_read_from_the_sum() {
        let report = "a.rs:1:1: k: x86-64-v3: its work-items run in vectors of 8 lanes\nhost:x+x86-64-v3: 5 kernels, 3 in lanes, 2 one by one\n";
        assert_eq!([in_lanes(report), in_lanes("host:x+x86-64-v3: 5 kernels, 5 one by one\n")], [Some(3), None]);
    }
}
