//! What the build says of kernels that a target cannot run: `kernels/refused.stderr`, which `BLESS=1` writes anew.

use std::{env, fs};

use crate::program::{build, sources};

#[test]
fn each_construct_that_no_gpu_runs_is_named_with_its_line_and_the_way_to_it() {
    let built = build("refused", &[]);
    let found = normalised(&built.messages);
    let file = sources().join("refused.stderr");
    if env::var_os("BLESS").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap();
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
    assert_eq!(found.matches("cannot run on sm_70").count(), 9, "the tenth kernel runs everywhere: {found}");
}

/// The warnings, sorted: kernels of one name are in the order of their identities, which depends on where the package is.
fn normalised(messages: &str) -> String {
    let lines = messages.lines().map(str::trim_end);
    let is_progress =
        |line: &str| ["Blocking ", "Compiling ", "Finished "].iter().any(|start| line.trim_start().starts_with(start));
    let mut warnings: Vec<_> = lines.filter(|line| !line.is_empty() && !is_progress(line)).collect();
    warnings.sort_unstable();
    warnings.join("\n\n") + "\n"
}
