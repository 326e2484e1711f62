//! The table of `--time-passes` on the whole way: it names what each kernel went through, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::program::{Package, build};

/// The compiler's list of passes.
const PIPELINE: &str = include_str!("../../../oxisycl-compiler/src/pipeline.rs");

/// Passes of the list that other targets, other settings or other kernels have.
const ELSEWHERE: &[&str] = &[
    "amdgcn-atomics",
    "drop-recorder",
    "drop-statics",
    // Only where several kernels are linked together.
    "drop-types",
    "early-return",
    "expand-instructions",
    "fast-math",
    "formatting-depth",
    "frames",
    "function-pointers",
    "hide-launches",
    "hide-remainders",
    "inline-library",
    "inline-panics",
    "inline-program",
    "item-loops",
    "native-code",
    "next-positions",
    "overlap",
    "panic-outlining",
    "private-integers",
    "private-memory",
    "private-phis",
    "safe-gathers",
    "scalarise",
    "spirv-specialization",
    "wide-masks",
];

/// Steps that are no passes of the list.
const OTHERS: &[&str] = &["emit", "emit-for-aspect", "legality", "link"];

/// The names in the list.
fn listed() -> BTreeSet<&'static str> {
    let from = PIPELINE.find("const PASSES: &[Pass]").expect("the list");
    let list = PIPELINE[from..].split("\n];").next().expect("its end");
    let calls = list.split("Pass::").skip(1);
    calls.filter_map(|call| call.split_once("(\"")?.1.split('"').next()).collect()
}

/// Seconds and runs of a line such as `0.627 s  49.4 %       8 runs  link`, by the name of the step.
fn row(line: &str) -> Option<(&str, (f64, usize))> {
    match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        [seconds, "s", share, "%", n_runs, "runs", name] => {
            share.parse::<f64>().ok()?;
            Some((*name, (seconds.parse().ok()?, n_runs.parse().ok()?)))
        }
        _ => None,
    }
}

/// The rows of the table for a target, which add up to its sum.
fn rows<'t>(messages: &'t str, target: &str, crate_name: &str) -> BTreeMap<&'t str, (f64, usize)> {
    let (before, table) = messages.split_once(&format!("passes for {target}")).expect("a table");
    assert!(before.ends_with("note: "), "{before}");
    let (head, table) = table.split_once('\n').expect("rows");
    let sum = head.strip_prefix(&format!(", summed over the kernels of crate `{crate_name}`: "));
    let sum: f64 = sum.and_then(|sum| sum.strip_suffix(" s")?.parse().ok()).expect(head);
    let rows: BTreeMap<&str, (f64, usize)> = table.lines().map_while(row).collect();
    let summed: f64 = rows.values().map(|(seconds, _)| seconds).sum();
    // Each row is rounded.
    assert!(sum > 0.0 && (summed - sum).abs() < 0.001 * rows.len() as f64, "{summed} {sum}");
    rows
}

/// What native code in lanes goes through.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const NATIVE: [&str; 13] = [
    "call-graph",
    "drop-statics",
    "drop-types",
    "emit",
    "emit-for-aspect",
    "float-policy",
    "item-loops",
    "kernel-entry",
    "link",
    "llvm-optimise",
    "native-code",
    "safe-gathers",
    "wide-masks",
];

/// Times are shown of what is compiled anew. That has the same bytes, however many compilations run at a time.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn native_code_has_its_times_and_the_same_bytes_again() {
    const PROGRAM: &str = "failing_lanes";
    const N_KERNELS: usize = 4;
    let package = Package::enter();
    let build = |further: &[&str]| {
        package.touch(PROGRAM);
        let options = ["build", "--release", "--targets", "host-v3", "--lanes", "8", "--bin", PROGRAM];
        let (_, messages) = package.sycl(&[&options, further].concat());
        (fs::read(package.folder().join("target/sycl/release").join(PROGRAM)).unwrap(), messages)
    };
    let (first, messages) = build(&[]);
    assert!(!messages.contains("passes for "), "{messages}");
    let (again, messages) = build(&["--jobs", "1", "--time-passes"]);
    assert!(first == again, "expected the same program");
    let rows = rows(&messages, "host:x86_64-unknown-linux-gnu+x86-64-v3", PROGRAM);
    assert_eq!(rows.keys().copied().collect::<Vec<_>>(), NATIVE);
    for pass in ["emit", "item-loops", "llvm-optimise"] {
        assert!(rows[pass].1 >= N_KERNELS, "{pass}: {rows:?}");
    }
}

#[test]
fn a_build_with_time_passes_names_each_pass_that_ran_with_its_time() {
    let dump = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code-times");
    let _ = fs::remove_dir_all(&dump);
    let built = build("recursion", &["--release", "--time-passes", "--dump", dump.to_str().unwrap()]);
    let rows = rows(&built.messages, "sm_70", "recursion");

    let expected: BTreeSet<&str> = listed().into_iter().chain(OTHERS.iter().copied()).collect();
    let named: BTreeSet<&str> = rows.keys().chain(ELSEWHERE).copied().collect();
    assert_eq!(named, expected);
    assert!(ELSEWHERE.iter().all(|pass| !rows.contains_key(pass)), "{rows:?}");

    // What has changed a kernel has run on it.
    let mut changes = BTreeMap::<String, usize>::new();
    for kernel in fs::read_dir(dump.join("sm_70")).unwrap() {
        for file in fs::read_dir(kernel.unwrap().path()).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            let pass = file.strip_suffix(".ll").and_then(|file| file.split_once('-'));
            if let Some((_, pass)) = pass.filter(|(number, pass)| number.parse::<u32>().is_ok() && *pass != "linked") {
                *changes.entry(pass.to_owned()).or_default() += 1;
            }
        }
    }
    assert_eq!(changes["recursion"], 1, "of the two kernels one calls itself: {changes:?}");
    for (pass, n_changes) in &changes {
        assert!(rows.get(pass.as_str()).is_some_and(|(_, n_runs)| n_runs >= n_changes), "{pass} {n_changes}: {rows:?}");
    }
}

#[test]
fn an_option_that_no_one_knows_is_refused_with_its_name() {
    let package = Package::enter();
    let refused = package.command(&["build", "--bin", "recursion", "--time-pass"]).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && message.contains("'--time-pass'"), "{message}");
}
