//! What panics cost a work-item that does not panic, and what they are where it does.

use crate::program::{build, functions, kernel};

/// The instructions of a kernel up to its return: what ends a work-item comes after that.
fn hot_path(code: &str) -> Vec<&str> {
    let (path, endings) = code.split_once("\tret;").expect("the kernel returns");
    assert!(!endings.is_empty() && !path.contains("call"), "{path}");
    let instructions = path.lines().map(str::trim).skip_while(|line| *line != "{").skip(1);
    instructions.filter(|line| line.ends_with(';') && !line.starts_with('.')).collect()
}

/// How many of the instructions begin with this word, predicates not counted.
fn count(path: &[&str], word: &str) -> usize {
    let operation = |line: &&str| line.split_whitespace().find(|word| !word.starts_with('@')).map(str::to_owned);
    path.iter().filter_map(operation).filter(|operation| operation.split('.').next() == Some(word)).count()
}

#[test]
fn a_check_costs_at_most_a_comparison_and_a_branch_and_the_panic_nothing() {
    let built = build("panics", &["--release"]);
    let functions = functions(&built.code);
    let body = |name: &str| {
        let name = functions.keys().find(|key| key.contains(name)).unwrap_or_else(|| panic!("no kernel {name}"));
        functions[name].as_str()
    };
    let (checked, unchecked) = (hot_path(body("panics_checked_closure")), hot_path(body("panics_unchecked_closure")));
    let n_checks =
        |path: &[&str]| path.iter().filter(|line| line.starts_with("setp.") && line.ends_with(", 15;")).count();
    assert_eq!((n_checks(&checked), n_checks(&unchecked)), (1, 0), "{checked:#?}\n{unchecked:#?}");
    // Less where one branch serves several checks.
    assert!(checked.len() <= unchecked.len() + 2, "{checked:#?}\n{unchecked:#?}");
    assert!(count(&checked, "bra") <= count(&unchecked, "bra") + 1, "{checked:#?}\n{unchecked:#?}");
    // Neither reads nor writes more than the other.
    for word in ["ld", "st", "atom"] {
        assert_eq!(count(&checked, word), count(&unchecked, word), "{word}: {checked:#?}\n{unchecked:#?}");
    }

    // What ends a program on the host ends a work-item, and leaves the GPU's context alone.
    let sorting = kernel(&functions, "panics_main_closure");
    assert!(!built.code.contains("trap;") && sorting.contains("__oxisycl_record_panic_numbers"), "{sorting}");
    assert!(built.kernels.contains("core::slice::sort::"), "the standard library's own sorting: {}", built.kernels);
}
