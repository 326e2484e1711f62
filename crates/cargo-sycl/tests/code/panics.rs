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

#[test]
fn the_ranges_of_accessors_cost_one_comparison_and_the_place_of_a_panic_nothing() {
    let built = build("panics", &["--release"]);
    let functions = functions(&built.code);
    let name = functions.keys().find(|key| key.contains("panics_triad_closure")).expect("the kernel");
    let path = hot_path(&functions[name]);
    let counts = |words: &[&str]| words.iter().map(|word| count(&path, word)).collect::<Vec<_>>();
    let in_memory = |word: &str| path.iter().filter(|line| line.contains(word)).count();
    // One way for two work-items of a thread, and one for a thread that has but one.
    const N_WAYS: usize = 2;
    const N_ITEMS: usize = 3;
    // Each way compares its work-items with the end of the launch, and that with the least of the three ranges.
    assert_eq!(counts(&["setp", "min"]), [2 * N_WAYS, 2 * N_WAYS], "{path:#?}");
    // The first way also goes around the second.
    assert_eq!(count(&path, "bra"), 2 * N_WAYS + 1, "{path:#?}");
    assert_eq!((count(&path, "fma"), in_memory("ld.global"), in_memory("st.global")), (N_ITEMS, 2 * N_ITEMS, N_ITEMS));
    // Place, message and numbers of a panic are neither in registers nor in memory of the work-item.
    assert_eq!((in_memory(".local"), counts(&["call", "st"])), (0, vec![0, N_ITEMS]), "{path:#?}");
    let is_needed = |line: &&str| ["%ntid", "%ctaid", "%tid", "_param_"].iter().any(|part| line.contains(part));
    let moves: Vec<&str> = path.iter().copied().filter(|line| line.starts_with("mov.") && !is_needed(line)).collect();
    assert_eq!(moves, [""; 0], "{path:#?}");
}
