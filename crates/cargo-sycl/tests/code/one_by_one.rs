//! Native code of kernels whose work-items must not share a vector: they end, and compute what they compute in plain code.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use crate::native::{has_v3, n_native};
use crate::program::{Package, succeed};

const PROGRAM: &str = "one_by_one";
const LANES: &str = "its work-items run in vectors of 8 lanes (about ";
const WAITS: &str = "its work-items run one by one: it may wait for another work-item";
const TURNS: &str = "its work-items run one by one: its work-items take turns on their thread, by barriers or by atomic operations in local memory";
/// Kernels that reach a trait object of the standard library have no native code at all.
const STATIC: &str = "plain code alone: it uses the static `vtable.";

/// The kernels, and what the report says of each of their loops.
const KERNELS: [(&str, &[&str]); 16] = [
    ("dropped", &["its work-items run one by one: it has an atomic operation in a destructor"]),
    ("marked", &["its work-items run one by one: a destructor runs if it panics"]),
    ("poisoned", &[WAITS]),
    ("scoped", &[STATIC]),
    ("locked", &[WAITS]),
    ("initialised", &[STATIC]),
    ("spun", &[WAITS]),
    ("exchanged", &[WAITS]),
    ("ticketed", &[WAITS]),
    ("caught", &["its work-items run one by one: it catches panics"]),
    ("binned", &[LANES, TURNS, LANES]),
    ("failing", &[LANES]),
    ("tallied", &[LANES, TURNS, LANES]),
    ("chunked", &[LANES]),
    ("tiled", &[LANES]),
    ("viewed", &[LANES]),
];

/// Builds the program, and gives its report. Kernels of the host alone may capture references, which is an error without the option.
fn build(package: &Package, profile: &str) -> (PathBuf, String) {
    package.touch(PROGRAM);
    let options = ["--targets", "host-v3", "--lanes", "8", "--allow", "host_capture", "--bin", PROGRAM];
    package.sycl(&[&["build", "--profile", profile], &options[..]].concat());
    let path = package.folder().join("target/sycl").join(profile).join(PROGRAM);
    let (report, _) = package.sycl(&["inspect", path.to_str().unwrap(), "--emit", "report"]);
    (path, report)
}

/// What a report says of the loops of a kernel.
fn remarks_of<'t>(report: &'t str, kernel: &str) -> Vec<&'t str> {
    let own = report.lines().filter(|line| line.contains(&format!(": {PROGRAM}::{kernel}::")));
    own.map(|line| line.split_once(": x86-64-v3: ").expect("a level").1).collect()
}

#[test]
fn work_items_that_must_not_share_a_vector_run_one_by_one() {
    let package = Package::enter();
    let (path, report) = build(&package, "release");
    for (kernel, expected) in KERNELS {
        let found = remarks_of(&report, kernel);
        let fit = found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected));
        assert!(fit && found.len() == expected.len(), "{kernel}: {found:#?}");
    }
    let run = |code: &str| succeed(Command::new(&path).env("OXISYCL_HOST_CODE", code));
    let (plain, errors) = run("plain");
    assert_eq!(n_native(&errors), 0, "{errors}");
    for text in [
        "\ndropped 0 left after kernel ",
        "\nmarked 0 left after kernel ",
        "\npoisoned 0 held and 1 poisoned after kernel ",
        "\nscoped 0 left after kernel ",
        "\nbinned [112, 119, 93, 99, 105, 30, 31, 0, ",
        "\ntallied [112, 119, 93, 99, 105, 0, ",
        "\ncaught [0, 2, 4, 1003, 8, 10, 12, 14, 1008, ",
        " panicked in work-item [45] at ",
    ] {
        assert!(plain.contains(text), "{text}: {plain}");
    }
    if has_v3() {
        let (native, errors) = run("v3");
        let n_plain = KERNELS.iter().filter(|(_, remarks)| *remarks == [STATIC]).count();
        assert_eq!((native, n_native(&errors)), (plain, KERNELS.len() - n_plain), "{errors}");
    }
}

/// Each work-item leaves its position for the message, which lanes would do all at once.
#[test]
fn phases_of_a_program_that_aborts_run_one_by_one() {
    let package = Package::enter();
    let (path, report) = build(&package, "stripped");
    for (kernel, n_loops) in [("binned", 3), ("failing", 1), ("tallied", 3)] {
        assert_eq!(remarks_of(&report, kernel).len(), n_loops, "{report}");
        assert!(remarks_of(&report, kernel).iter().all(|remark| remark.starts_with(TURNS)), "{kernel}: {report}");
    }
    let run = |code: &str| succeed(Command::new(&path).env("OXISYCL_HOST_CODE", code)).0;
    let plain = run("plain");
    for code in if has_v3() { &["plain", "v3"][..] } else { &["plain"] } {
        assert_eq!(run(code), plain, "{code}");
        let ended = Command::new(&path).arg("fail").env("OXISYCL_HOST_CODE", code).output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.signal(), Some(6), "it aborts: {errors}");
        assert!(errors.contains("item 45 is bad") && errors.contains("work-item [45]"), "{code}: {errors}");
    }
}
