//! A work-item that panics in a lane of a vector looks like one that panics alone, whichever lane of whichever vector it is.

use std::process::Command;

use crate::native::{has_v3, n_native};
use crate::program::{Package, succeed};

const PROGRAM: &str = "failing_lanes";
const LANES: usize = 8;
/// The number of work-items in a row.
const N: usize = 1003;
const LANES_REMARK: &str = "in vectors of 8 lanes";
/// The kernels, and what the report says of them. The last one needs what a program that is optimised as a whole has no name for.
const KERNELS: [(&str, [&str; 2]); 4] = [
    ("in_rows", [LANES_REMARK; 2]),
    ("in_planes", [LANES_REMARK; 2]),
    ("in_phases", [LANES_REMARK; 2]),
    ("beside_a_guard", ["one by one", "it needs `oxisycl_runtime::output::print`, which the program does not export"]),
];

/// A panic as the standard library shows it.
#[derive(PartialEq, Debug)]
struct Shown<'t> {
    place: &'t str,
    message: &'t str,
    /// The frames of the kernels' native code, from the innermost one on.
    frames: Vec<&'t str>,
}

fn shown(errors: &str) -> Vec<Shown<'_>> {
    let panics = errors.split("\nthread '").skip(1);
    let shown = panics.map(|panic| {
        let (first, rest) = panic.split_once('\n').expect("a message");
        let place = first.split_once(" panicked at ").expect("a place").1;
        let (message, backtrace) = rest.split_once("\nstack backtrace:\n").expect("a backtrace");
        let functions = backtrace.lines().filter_map(|line| Some(line.trim_start().split_once(": ")?.1));
        Shown { place, message, frames: functions.filter(|name| name.starts_with("__oxisycl_native_v3_")).collect() }
    });
    shown.collect()
}

#[test]
fn each_lane_panics_as_a_work_item_alone() {
    fails_in_each_lane("release", 0);
}

/// Where Rust's functions have no names any more.
#[test]
fn each_lane_panics_so_in_a_program_with_link_time_optimisation() {
    fails_in_each_lane("whole", 1);
}

/// Where the profile has debug information, so has native code.
#[test]
fn backtraces_name_the_lines_of_native_code() {
    let package = Package::enter();
    package.sycl(&["build", "--targets", "host-v3", "--lanes", "8", "--bin", PROGRAM]);
    for code in ["plain", "v3"] {
        if code == "v3" && !has_v3() {
            continue;
        }
        let mut command = Command::new(package.folder().join("target/sycl/debug").join(PROGRAM));
        let (_, errors) = succeed(command.arg("5").env("RUST_BACKTRACE", "1").env("OXISYCL_HOST_CODE", code));
        for panic in shown(&errors) {
            // Two panics of `in_rows` are one call, which is at neither line.
            if code == "v3" && panic.frames.iter().any(|frame| frame.contains("_in_rows_")) {
                continue;
            }
            let place = panic.place.trim_end_matches(':');
            let is_there = |line: &str| line.trim_start().starts_with("at ") && line.ends_with(place);
            assert!(errors.lines().any(is_there), "{code}: {place} {errors}");
        }
    }
}

fn fails_in_each_lane(profile: &str, remark: usize) {
    let package = Package::enter();
    package.touch(PROGRAM);
    let lanes = LANES.to_string();
    let options = ["--profile", profile, "--targets", "host-v3", "--lanes", &lanes, "--bin", PROGRAM];
    let (_, messages) = package.sycl(&[&["build"][..], &options].concat());
    assert!(!messages.contains("warning"), "{messages}");
    let path = package.folder().join("target/sycl").join(profile).join(PROGRAM);
    let (report, _) = package.sycl(&["inspect", path.to_str().unwrap(), "--emit", "report"]);
    for (name, remarks) in KERNELS {
        let mut own = report.lines().filter(|line| line.contains(&format!(": {PROGRAM}::{name}::")));
        assert!(own.clone().next().is_some() && own.all(|line| line.contains(remarks[remark])), "{name}: {report}");
    }
    let is_native = |name: &str| name != "beside_a_guard" || profile == "release";

    // All lanes of the first vector, of one in the middle, and of the last one; then the last work-items, which are no vector.
    let last = N / LANES * LANES;
    let begins = [0, last / 2 / LANES * LANES, last - LANES, last];
    let failing: Vec<usize> =
        begins.into_iter().flat_map(|begin| (begin..begin + LANES).take_while(|at| *at < N)).collect();
    assert_eq!(failing.len(), 3 * LANES + N % LANES);
    let run = |code: &str| {
        let mut command = Command::new(&path);
        command.args(failing.iter().map(usize::to_string)).env("RUST_BACKTRACE", "1").env("OXISYCL_HOST_CODE", code);
        succeed(&mut command)
    };
    let (plain, plain_errors) = run("plain");
    for at in &failing {
        for text in [
            format!("\nin_rows {at}: kernel \"failing_lanes::in_rows\" ("),
            format!(" panicked in work-item [{at}] at src/bin/failing_lanes.rs:"),
            format!(": item {at} of {N}"),
            format!("\nin_planes {at}: kernel "),
            format!(" panicked in work-item [{}, {}] at src/bin/failing_lanes.rs:", at / 17, at % 17),
            format!("\ndropped with {}\n", at + 1),
            "\nowners 1, told of 1 failure\n".to_owned(),
        ] {
            assert!(format!("\n{plain}").contains(&text), "{text}: {plain}");
        }
    }
    let of_plain = shown(&plain_errors);
    assert_eq!(of_plain.len(), failing.len() * KERNELS.len(), "{plain_errors}");
    assert!(n_native(&plain_errors) == 0 && of_plain.iter().all(|panic| panic.frames.is_empty()), "{plain_errors}");
    if !has_v3() {
        return;
    }
    let (native, native_errors) = run("v3");
    assert_eq!(native, plain);
    let of_native = shown(&native_errors);
    let n_kernels = KERNELS.iter().filter(|(name, _)| is_native(name)).count();
    assert_eq!(
        (n_native(&native_errors), of_native.len()),
        (n_kernels * failing.len(), of_plain.len()),
        "{native_errors}"
    );
    for ((plain, native), number) in of_plain.iter().zip(&of_native).zip(0..) {
        assert_eq!((plain.place, plain.message), (native.place, native.message));
        let name = KERNELS[number % KERNELS.len()].0;
        let is_named = |frame: &&str| frame.contains(&format!("_{PROGRAM}_{name}_"));
        let n_frames = usize::from(is_native(name));
        assert!(native.frames.len() == n_frames && native.frames.iter().all(is_named), "{name}: {native:?}");
    }
}
