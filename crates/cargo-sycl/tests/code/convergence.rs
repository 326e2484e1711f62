//! Barriers and shuffles are in the final code exactly where the source has them. If two were merged, or one became two, other work-items
//! would wait at them than the programmer meant.

use std::fs;
use std::path::Path;

use crate::program::{Package, build, functions, kernel};

/// The functions of `kernels/convergence.rs`, with the barriers and shuffles in each.
pub(crate) const SHAPES: [(&str, usize, usize); 12] = [
    ("flag_of_an_arm", 1, 0),
    ("same_condition", 1, 0),
    ("option_matched_after", 1, 0),
    ("invariant_condition_in_a_loop", 1, 0),
    ("function_with_a_barrier", 1, 0),
    ("barrier_in_both_arms", 2, 0),
    ("shuffle_in_both_arms", 0, 2),
    ("equal_shuffles_in_both_arms", 0, 2),
    ("shuffle_before_a_condition", 0, 1),
    ("barrier_for_each_element", 1, 0),
    ("barrier_in_a_closure", 1, 0),
    ("generic_of_another_crate", 1, 0),
];

fn check(arguments: &[&str]) {
    let built = build("convergence", arguments);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let functions = functions(&built.code);
    for (shape, barriers, shuffles) in SHAPES {
        let code = kernel(&functions, &format!("convergence_{shape}_closure"));
        let found = (code.matches("barrier.sync").count(), code.matches("shfl.sync").count());
        assert_eq!(found, (barriers, shuffles), "{shape}: barriers and shuffles\n{code}");
    }
    // Every work-item of a sub-group takes part in the shuffle: it comes before the branch.
    let code = kernel(&functions, "convergence_shuffle_before_a_condition_closure");
    let shuffle = code.find("shfl.sync").unwrap();
    let store = code.find("st.global").unwrap();
    let condition = code.find("setp.gt.u32").or_else(|| code.find("setp.lt.u32")).unwrap();
    let branch = condition + code[condition..].find("bra").unwrap();
    assert!(shuffle < branch && branch < store, "{code}");
}

#[test]
fn unoptimised_builds_keep_barriers_and_shuffles_apart_and_single() {
    check(&[]);
}

#[test]
fn optimised_builds_keep_barriers_and_shuffles_apart_and_single() {
    check(&["--release"]);
}

/// The codes of the instructions of a module of SPIR-V.
pub(crate) fn instructions(module: &[u8]) -> Vec<u32> {
    let words: Vec<u32> = module.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let (mut position, mut found) = (5, Vec::new());
    while let Some(word) = words.get(position) {
        found.push(word & 0xFFFF);
        position += (word >> 16) as usize;
    }
    found
}

#[test]
fn modules_of_spirv_have_the_barriers_and_shuffles_of_the_source() {
    const BARRIER: u32 = 224;
    const SHUFFLE: u32 = 345;
    let package = Package::enter();
    let (_, messages) = package.sycl(&["build", "--targets", "spirv", "--bin", "convergence"]);
    assert!(!messages.contains("warning"), "{messages}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("convergence-modules");
    let _ = fs::remove_dir_all(&folder);
    let binary = "target/sycl/debug/convergence";
    package.sycl(&["inspect", binary, "--emit", "spirv", "--out", folder.to_str().unwrap()]);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), SHAPES.len());
    for (shape, barriers, shuffles) in SHAPES {
        let name = format!("convergence_{shape}_closure");
        let file = files.iter().find(|file| file.to_str().unwrap().contains(&name)).unwrap();
        let code = instructions(&fs::read(file).unwrap());
        let count = |wanted| code.iter().filter(|code| **code == wanted).count();
        assert_eq!((count(BARRIER), count(SHUFFLE)), (barriers, shuffles), "{shape}: barriers and shuffles");
    }
}
