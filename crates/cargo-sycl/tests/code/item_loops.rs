//! Native code of kernels whose work-items wait for their group: loops over the work-items between barriers, in lanes.

use std::process::Command;

use crate::program::{Package, succeed};

const PROGRAM: &str = "item_loops";
/// The functions whose kernels have native code.
const HAVE: [&str; 6] = ["collective", "failing", "planes", "product<0>", "product<48>", "scanned"];

/// The output of the program, and what it writes to standard error.
fn run(package: &Package, code: &str) -> (String, String) {
    let mut command = Command::new(package.folder().join("target/sycl/release").join(PROGRAM));
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
        if !std::arch::is_x86_feature_detected!("avx2") {
            println!("native code was not run: the processor has no AVX2");
            continue;
        }
        let ((plain, of_plain), (native, panics)) = (run(&package, "plain"), run(&package, "v3"));
        assert!(plain.contains("panicked in work-item [26] at ") && plain.contains(": 37 is bad"), "{plain}");
        assert_eq!(native, plain, "{lanes} lanes");
        assert!(of_plain.contains("native launches: 0") && panics.contains("native launches: 6"), "{panics}");
        assert!(panics.contains("__oxisycl_native_v3_g1_item_loops_failing_"), "it unwinds through loops: {panics}");
    }
}
