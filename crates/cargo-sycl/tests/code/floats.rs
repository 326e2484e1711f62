//! Each kernel is compiled as strictly as it says, or else as the build says.

use std::process::Command;

use crate::program::{build, functions, kernel};

/// Products, sums and fused operations of `f32` in code.
fn operations(code: &str) -> (usize, usize, usize) {
    let count = |names: &[&str]| names.iter().map(|name| code.matches(name).count()).sum();
    (count(&["mul.f32", "mul.rn.f32"]), count(&["add.f32", "add.rn.f32"]), count(&["fma.rn.f32"]))
}

const SEPARATE: (usize, usize, usize) = (1, 1, 0);
const FUSED: (usize, usize, usize) = (0, 0, 1);

#[test]
fn each_kernel_is_compiled_as_strictly_as_it_says_and_runs_unchanged_on_the_host() {
    let built = build("floats", &["--float", "contract"]);
    // All kernels of a program find what only one of the crates below it defines, however many are compiled at a time.
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let functions = functions(&built.code);
    for (name, expected) in [
        ("floats_plain_closure", FUSED),
        ("floats_contracted_closure", FUSED),
        ("floats_strictly_closure", SEPARATE),
        ("floats_strictly_in_two_dimensions_closure", SEPARATE),
        ("floats_strictly_once_closure", SEPARATE),
        ("Strict_floats_Named", SEPARATE),
        ("Contract_floats_Named", FUSED),
        ("Fast_floats_Named", FUSED),
    ] {
        let code = kernel(&functions, name);
        assert_eq!(operations(&code), expected, "{name}: products, sums, fused operations\n{code}");
    }
    // Division by three and multiplication with it, less the number itself, is nothing, to whom rounding does not matter.
    let code = kernel(&functions, "floats_quickly_closure");
    assert!(!code.contains("div.rn.f32"), "{code}");

    // The host device rounds each operation, whatever the kernel says.
    let output = Command::new(&built.binary).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let sums: Vec<&str> = text.lines().collect();
    assert!(output.status.success() && sums.len() == 6, "{text}");
    assert_eq!((sums[1], sums[4]), (sums[0], sums[0]), "strict and contracted as plain: {text}");
}

#[test]
fn a_kernel_that_says_nothing_is_compiled_as_the_build_says() {
    let built = build("floats", &["--float", "strict"]);
    let functions = functions(&built.code);
    for (name, expected) in [
        ("floats_plain_closure", SEPARATE),
        ("floats_strictly_closure", SEPARATE),
        ("floats_contracted_closure", FUSED),
    ] {
        let code = kernel(&functions, name);
        assert_eq!(operations(&code), expected, "{name}: products, sums, fused operations\n{code}");
    }
}
