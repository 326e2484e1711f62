//! Native code of kernels whose work-items wait for their group: loops over the work-items between barriers, in lanes.

use std::process::Command;

use crate::native::{has_v3, n_native as launches};
use crate::program::{Package, succeed};

const PROGRAM: &str = "item_loops";
/// The functions whose kernels have native code.
const HAVE: [&str; 6] = ["collective", "failing", "planes", "product<0>", "product<48>", "scanned"];

/// The output of the program, and what it writes to standard error.
fn run(package: &Package, profile: &str, code: &str) -> (String, String) {
    let mut command = Command::new(package.folder().join("target/sycl").join(profile).join(PROGRAM));
    command.env("OXISYCL_HOST_CODE", code).env("RUST_BACKTRACE", "1");
    succeed(&mut command)
}

#[test]
fn work_items_that_wait_run_in_loops_between_barriers() {
    let package = Package::enter();
    for lanes in ["4", "8", "auto"] {
        package.touch(PROGRAM);
        package.sycl(&["build", "--release", "--targets", "host-v3", "--lanes", lanes, "--bin", PROGRAM]);
        let (report, _) = package.sycl(&["inspect", "--emit", "report", &format!("target/sycl/release/{PROGRAM}")]);
        let of = |function: &str| {
            let own = format!(": {PROGRAM}::{function}::{{{{closure}}}}");
            report.lines().filter(|line| line.contains(&own)).collect::<Vec<_>>()
        };
        for function in HAVE {
            let loops = of(function);
            assert!(loops.len() > 1, "{function} has a loop for each region: {report}");
            assert!(loops.iter().all(|line| line.contains("its work-items run ")), "{report}");
            // Rows of five work-items are shorter than eight lanes.
            if lanes != "8" || function != "planes" {
                assert!(loops.iter().any(|line| line.contains("in vectors of ")), "{function}: {report}");
            }
        }
        for (function, reason) in [
            ("promised", "a barrier may be reached by some work-items only"),
            ("dropped", "a work-item has a value at a barrier that would have to be dropped"),
        ] {
            let (refused, lines) = (format!("plain code alone: {reason}"), of(function));
            assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(&refused)), "{reason}: {report}");
        }
        if !has_v3() {
            continue;
        }
        let ((plain, of_plain), (native, panics)) = (run(&package, "release", "plain"), run(&package, "release", "v3"));
        assert!(plain.contains("panicked in work-item [26] at ") && plain.contains(": 37 is bad"), "{plain}");
        assert_eq!(native, plain, "{lanes} lanes");
        assert!(of_plain.contains("native launches: 0") && panics.contains("native launches: 6"), "{panics}");
        assert!(panics.contains("__oxisycl_native_v3_g1_item_loops_failing_"), "it unwinds through loops: {panics}");
    }
}

/// Without symbols and without unwinding, and where the program is optimised as a whole.
#[test]
fn loops_between_barriers_stay_in_programs_of_other_profiles() {
    let package = Package::enter();
    // A program that aborts does not launch the kernel that panics, and never drops what a work-item has at a barrier.
    for (profile, n_native) in [("stripped", HAVE.len()), ("whole", HAVE.len())] {
        package.touch(PROGRAM);
        package.sycl(&["build", "--profile", profile, "--targets", "host-v3", "--lanes", "4", "--bin", PROGRAM]);
        if !has_v3() {
            continue;
        }
        let ((plain, of_plain), (native, of_native)) = (run(&package, profile, "plain"), run(&package, profile, "v3"));
        assert_eq!(native, plain, "{profile}");
        assert_eq!(plain.contains(": 37 is bad"), profile == "whole", "{plain}");
        assert_eq!([of_plain, of_native].map(|errors| launches(&errors)), [0, n_native], "{profile}");
    }
}
