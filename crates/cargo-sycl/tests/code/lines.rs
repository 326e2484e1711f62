//! Code names the lines that it comes from, so that compute-sanitizer and profilers show Rust, and is still no debug build.

use std::fs;

use crate::program::{build, functions, kernel, sources};

#[test]
fn the_code_of_a_kernel_names_its_file_and_lines_and_is_no_debug_build() {
    let built = build("convergence", &["--release"]);
    // An image for each kernel, and no `debug`, with which drivers optimise nothing.
    let mut targets = built.code.lines().filter(|line| line.starts_with(".target"));
    assert!(targets.next().is_some() && targets.all(|line| line == ".target sm_70"), "{}", built.code);
    // What a debugger would read is not there.
    assert!(!built.code.contains(".debug_info") && !built.code.contains(".debug_line"), "{}", built.code);
    let image =
        built.code.split("// kernel ").find(|image| image.contains("convergence_function_with_a_barrier_closure"));
    let image = image.expect("the kernel has an image");
    let file = image.lines().find(|line| line.starts_with("\t.file") && line.ends_with("src/bin/convergence.rs\""));
    let number = file.and_then(|line| line.split_whitespace().nth(1)).expect("the file is named");

    let source = fs::read_to_string(sources().join("convergence.rs")).unwrap();
    let line = 1 + source.lines().position(|line| line.contains("value.rotate_left(3)")).unwrap();
    let functions = functions(image);
    let code = kernel(&functions, "convergence_function_with_a_barrier_closure");
    // Inlined into a closure, which is inlined into what the compiler makes.
    assert!(code.contains(&format!(".loc\t{number} {} ", line - 1)), "the barrier in line {}: {code}", line - 1);
    let own = 1 + source.lines().position(|line| line.contains("data.update(item, |x| x + turned)")).unwrap();
    assert!(code.contains(&format!(".loc\t{number} {own} ")), "line {own}: {code}");
    let other = 1 + source.lines().position(|line| line.contains("x.wrapping_mul(i)")).unwrap();
    assert!(!code.contains(&format!(".loc\t{number} {other} ")), "line {other} is of another kernel: {code}");
}
