//! Each kernel is compiled as strictly as it says, or else as the build says.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{Package, build, functions, kernel};

/// Products, sums and fused operations of `f32` in code.
fn operations(code: &str) -> (usize, usize, usize) {
    let count = |names: &[&str]| names.iter().map(|name| code.matches(name).count()).sum();
    (count(&["mul.f32", "mul.rn.f32"]), count(&["add.f32", "add.rn.f32"]), count(&["fma.rn.f32"]))
}

/// The kinds of imprecise instructions in code, sorted.
fn imprecise(code: &str) -> Vec<&str> {
    let instructions = code.lines().filter_map(|line| line.split_whitespace().next());
    let mut kinds: Vec<_> = instructions.filter_map(|name| Some(name.split_once(".approx")?.0)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// The library functions that a kernel was linked with.
fn linked_with<'t>(kernels: &'t str, part: &str) -> Vec<&'t str> {
    let mut lines = kernels.lines().skip_while(|line| !line.contains(part));
    let line = lines.find_map(|line| line.strip_prefix("    linked with ")).expect("it is linked with something");
    line.split(", ").collect()
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
    let none = Vec::<&str>::new();
    assert_eq!(imprecise(&kernel(&functions, "floats_plain_functions_closure")), none);
    assert_eq!(imprecise(&kernel(&functions, "floats_strict_functions_closure")), none);
    let code = kernel(&functions, "floats_fast_functions_closure");
    assert_eq!(imprecise(&code), ["cos", "div", "ex2", "lg2", "rcp", "rsqrt", "sin", "sqrt"]);
    assert!(code.contains("mul.rn.f64"), "functions of f64 are as precise as ever: {code}");
    // What the image was linked with is what its code has.
    let linked = linked_with(&built.kernels, "floats::fast_functions");
    let precise: Vec<_> =
        linked.into_iter().filter(|name| !name.contains("::") || name.starts_with("oxisycl_builtins::")).collect();
    assert_eq!(precise, ["sin"], "that of f64");
    assert!(linked_with(&built.kernels, "floats::plain_functions").contains(&"sinf"), "{}", built.kernels);

    // The host device rounds each operation, whatever the kernel says.
    let output = Command::new(&built.binary).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let sums: Vec<&str> = text.lines().collect();
    assert!(output.status.success() && sums.len() == 9, "{text}");
    assert_eq!((sums[1], sums[4]), (sums[0], sums[0]), "strict and contracted as plain: {text}");
    assert_eq!((sums[7], sums[8]), (sums[6], sums[6]), "strict and fast as plain: {text}");
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

#[test]
fn a_fast_build_uses_the_devices_imprecise_functions_except_in_kernels_that_are_strict() {
    let built = build("floats", &["--float", "fast"]);
    let functions = functions(&built.code);
    let plain = imprecise(&kernel(&functions, "floats_plain_functions_closure")).len();
    let strict = imprecise(&kernel(&functions, "floats_strict_functions_closure")).len();
    assert_eq!((plain, strict), (8, 0), "kinds of imprecise instructions");
}

#[test]
fn modules_of_spirv_never_promise_that_there_are_no_nans_and_infinities() {
    const MAGIC: u32 = 0x0723_0203;
    const OP_DECORATE: u32 = 71;
    const FP_FAST_MATH_MODE: u32 = 40;
    const NO_SIGNED_ZEROS: u32 = 4;
    const ALLOW_RECIPROCAL: u32 = 8;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("floats-spirv");
    let _ = fs::remove_dir_all(&folder);
    let package = Package::enter();
    package.sycl(&["build", "--targets", "spirv", "--float", "fast", "--bin", "floats"]);
    package.sycl(&["inspect", "target/sycl/debug/floats", "--emit", "spirv", "--out", folder.to_str().unwrap()]);
    let mut all = 0;
    for file in fs::read_dir(&folder).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let words: Vec<u32> = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words[0], MAGIC);
        let mut at = 5;
        while at < words.len() {
            let length = (words[at] >> 16) as usize;
            if let [first, _, FP_FAST_MATH_MODE, mode] = words[at..at + length]
                && first & 0xFFFF == OP_DECORATE
            {
                // Neither `NotNaN` nor `NotInf`, nor `Fast`, which means both.
                assert_eq!(mode & !(NO_SIGNED_ZEROS | ALLOW_RECIPROCAL), 0, "mode {mode:#x}");
                all |= mode;
            }
            at += length;
        }
    }
    assert_eq!(all, NO_SIGNED_ZEROS | ALLOW_RECIPROCAL, "the fast kernels say what they may");
}
