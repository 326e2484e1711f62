//! Native code of kernels that give values to reductions: work-items in lanes, with the bits of plain code.

use std::process::Command;

use crate::native::{has_v3, n_native};
use crate::program::{Package, succeed};

const PROGRAM: &str = "reductions";
/// The functions whose kernels have lanes, whatever their number.
const IN_LANES: [&str; 6] = ["failing", "planes", "rests", "rounds", "several", "spaces"];
/// Work-items that panic: in the first vector, in rows of accumulators, and behind all vectors.
const FAILING: [&str; 7] = ["0", "5", "63", "64", "130", "199", "202"];

#[test]
fn work_items_that_give_to_reductions_run_in_lanes() {
    let package = Package::enter();
    for lanes in ["4", "16", "auto"] {
        package.touch(PROGRAM);
        let options = ["--release", "--targets", "host-v3", "--lanes", lanes, "--float", "strict", "--bin", PROGRAM];
        package.sycl(&[&["build"][..], &options].concat());
        let (report, _) = package.sycl(&["inspect", "--emit", "report", &format!("target/sycl/release/{PROGRAM}")]);
        for function in IN_LANES {
            // The kernel's closure is an argument of the library's function that reduces.
            let own = format!("{PROGRAM}::{function}::{{{{closure}}}}::{{{{closure}}}}>::");
            let loops: Vec<_> = report.lines().filter(|line| line.contains(&own)).collect();
            let [only] = loops[..] else { panic!("{function} has one loop: {report}") };
            assert!(only.starts_with(&format!("src/bin/{PROGRAM}.rs:")), "its place is the user's: {only}");
            // Accumulators of a span are scattered where a work-item chooses one.
            let has_lanes = if lanes != "auto" {
                only.contains(&format!("in vectors of {lanes} lanes"))
            } else {
                only.contains("run in vectors ") || function == "rests"
            };
            assert!(has_lanes, "{lanes}: {only}");
        }
        if !has_v3() {
            continue;
        }
        let run = |code: &str| {
            let mut command = Command::new(package.folder().join("target/sycl/release").join(PROGRAM));
            succeed(command.args(FAILING).env("OXISYCL_HOST_CODE", code))
        };
        let ((plain, of_plain), (native, of_native)) = (run("plain"), run("v3"));
        for at in FAILING {
            assert!(plain.contains(&format!("failing {at}: kernel ")), "{plain}");
            assert!(plain.contains(&format!(": item {at} of 203")), "{plain}");
        }
        assert_eq!(native, plain, "{lanes} lanes");
        assert!(n_native(&of_plain) == 0 && n_native(&of_native) > 300, "{of_native}");
    }
}
