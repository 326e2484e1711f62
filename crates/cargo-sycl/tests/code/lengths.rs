//! Native code under policies that are not strict: the bits of results do not depend on lengths of ranges, blocks or threads.

use std::process::Command;

use crate::native::{has_v3, n_native};
use crate::program::{Package, succeed};

const PROGRAM: &str = "lengths";

#[test]
fn results_do_not_depend_on_how_many_work_items_run_at_once() {
    let package = Package::enter();
    package.touch(PROGRAM);
    package.sycl(&["build", "--release", "--targets", "host-v3,host-v4", "--lanes", "8", "--bin", PROGRAM]);
    let path = package.folder().join("target/sycl/release").join(PROGRAM);
    let (report, _) = package.sycl(&["inspect", "--emit", "report", path.to_str().unwrap()]);
    for kernel in ["blocks", "quick", "row", "rows", "wild"] {
        let mut own = report.lines().filter(|line| line.contains(&format!(": {PROGRAM}::{kernel}::")));
        assert!(
            own.clone().count() == 2 && own.all(|line| line.contains("run in vectors of 8 lanes")),
            "{kernel}: {report}"
        );
    }
    if !has_v3() {
        return;
    }
    let run = |code: &str, threads: &str| {
        let mut command = Command::new(&path);
        let (output, errors) = succeed(command.env("OXISYCL_HOST_CODE", code).env("OXISYCL_HOST_THREADS", threads));
        assert_eq!(n_native(&errors) == 0, code == "plain", "{errors}");
        output
    };
    let (plain, native) = (run("plain", "1"), run("v3", "1"));
    let differ = plain.lines().zip(native.lines()).filter(|(plain, native)| plain != native);
    let differ: Vec<_> = differ.filter_map(|(plain, _)| plain.split(' ').next()).collect();
    // Products and sums are fused, and functions are others. Infinite numbers stay so under `fast`, and are none in plain code.
    assert_eq!(differ, ["row", "rows", "quick", "blocks", "wild"], "{native}");
    let levels = ["v3", "v4"].into_iter().filter(|level| *level == "v3" || is_x86_feature_detected!("avx512vl"));
    for level in levels {
        for threads in ["1", "2", "3", "7"] {
            let found = run(level, threads);
            assert_eq!(found, native, "{level}, {threads} threads");
        }
    }
}
