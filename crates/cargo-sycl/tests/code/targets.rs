//! What a build reports of kernels that only some targets run, or none. It reports nothing twice, and nothing in full that the user did not
//! ask for.

use std::path::Path;
use std::{env, fs};

use crate::program::Package;

const RECURSIVE: &str = "calling_itself";

/// What a build of a program told, and what is in it.
struct Told {
    /// The lines that begin a warning or a note, without those in which cargo counts.
    lines: Vec<String>,
    /// What `cargo sycl inspect` says.
    kernels: String,
}

fn told(package: &Package, program: &str, targets: &[&str]) -> Told {
    let (_, messages) = package.sycl(&[&["build", "--bin", program], targets].concat());
    let is_told =
        |line: &&str| (line.starts_with("warning: ") || line.starts_with("note: ")) && !line.contains(" generated ");
    let lines = messages.lines().filter(is_told).map(str::to_owned).collect();
    let (kernels, _) = package.sycl(&["inspect", &format!("target/sycl/debug/{program}")]);
    Told { lines, kernels }
}

#[test]
fn a_kernel_that_one_default_target_runs_is_a_note_for_the_other_and_a_warning_if_that_is_named() {
    let package = Package::enter();
    package.touch("large_frames");
    // The second build has nothing to do, and cargo repeats what the first one said.
    for round in 0..2 {
        let Told { lines, kernels } = told(&package, "large_frames", &[]);
        let [note] = &lines[..] else { panic!("round {round}: {lines:?}") };
        assert!(
            note.starts_with("note: 1 kernel has no image for spirv1.2: large_frames::each<")
                && note.contains(RECURSIVE),
            "{note}"
        );
        assert!(note.ends_with("; `cargo sycl inspect PROGRAM` shows why"), "{note}");
        assert!(kernels.contains("sm_70: 2 kernels, ") && kernels.contains("spirv1.2: 1 kernel, "), "{kernels}");
        let (_, of_spirv) = kernels.split_once("spirv1.2: ").unwrap();
        assert!(of_spirv.contains("cannot run: ") && of_spirv.contains("recursi"), "{of_spirv}");
        let limit = "the variables of 64 open calls take ";
        assert!(of_spirv.contains(limit) && of_spirv.contains(" bytes, expected at most 65536"), "{of_spirv}");
    }
    // What the code of each target was generated from, in files of their own.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code-assembly");
    let _ = fs::remove_dir_all(&folder);
    let arguments = ["inspect", "target/sycl/debug/large_frames", "--emit", "llvm", "--out", folder.to_str().unwrap()];
    let (output, _) = package.sycl(&arguments);
    assert!(output.starts_with("3 files in "), "{output}");
    let n_files = |end: &str, triple: &str| {
        let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|file| file.to_str().unwrap().ends_with(end));
        files.filter(|file| fs::read_to_string(file).unwrap().contains(&format!("target triple = \"{triple}"))).count()
    };
    assert_eq!((n_files(".sm_70.ll", "nvptx64"), n_files(".spirv1.2.ll", "")), (2, 1));
    let (assembly, _) = package.sycl(&[&arguments[..4], &["--target", "spirv"]].concat());
    assert!(
        assembly.starts_with("; kernel large_frames::") && assembly.matches("\n; kernel ").count() == 0,
        "{assembly}"
    );
    // The same images, but the user asked for them.
    for round in 0..2 {
        let Told { lines, .. } = told(&package, "large_frames", &["--targets", "sm_70,spirv"]);
        let [warning] = &lines[..] else { panic!("round {round}: {lines:?}") };
        assert!(
            warning.starts_with("warning: kernel `large_frames::each<") && warning.contains(RECURSIVE),
            "{warning}"
        );
        assert!(warning.contains("` cannot run on spirv1.2: "), "{warning}");
    }
    let named = told(&package, "large_frames", &["--targets", "spirv"]);
    assert_eq!(named.lines.len(), 1, "{:?}", named.lines);
    assert!(named.kernels.starts_with("spirv1.2: 1 kernel, ") && !named.kernels.contains("sm_70"), "{}", named.kernels);
    assert_eq!(told(&package, "large_frames", &["--targets", "sm_70"]).lines, Vec::<String>::new());
}

#[test]
fn a_kernel_that_no_default_target_runs_is_one_warning() {
    let package = Package::enter();
    package.touch("runtime");
    for round in 0..2 {
        let Told { lines, kernels } = told(&package, "runtime", &[]);
        let [warning] = &lines[..] else { panic!("round {round}: {lines:?}") };
        assert!(
            warning.contains("runtime::waited") && warning.contains("` cannot run on sm_70, spirv1.2: "),
            "{warning}"
        );
        assert_eq!(kernels.matches("cannot run: ").count(), 2, "{kernels}");
    }
}
