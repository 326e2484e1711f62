//! Two work-items in each thread of a GPU: which kernels have them, and that every work-item of a range runs once, whatever its length.

use std::collections::BTreeMap;

use crate::program::{Built, build, functions, kernel};
use crate::ptx_thread::Launch;

/// What `inspect` says of a kernel whose threads run two work-items.
const PAIRED: &str = "    two work-items in each thread";

/// Whether the image of the kernel says that its threads run two work-items.
fn is_paired(built: &Built, function: &str) -> bool {
    let is_it = |line: &&str| line.starts_with("  ") && !line.starts_with("   ") && line.contains(function);
    let mut lines = built.kernels.lines().skip_while(|line| !is_it(line));
    assert!(lines.next().is_some(), "no kernel {function}: {}", built.kernels);
    lines.take_while(|line| line.starts_with("    ")).any(|line| line == PAIRED)
}

/// The code of a kernel that is run when nothing panics: the rest is what records a panic.
fn body<'f>(functions: &'f BTreeMap<String, String>, part: &str) -> &'f str {
    let mut found = functions.iter().filter(|(name, _)| name.contains(part) && name.starts_with('k'));
    let (_, body) = found.next().unwrap_or_else(|| panic!("no kernel {part} in {:?}", functions.keys()));
    assert!(found.next().is_none(), "{part} is one kernel");
    body
}

/// Loads and stores of global memory up to the first store, and all of them.
fn loads_and_stores(code: &str) -> [usize; 3] {
    let (before, _) = code.split_once("st.global").expect("it stores");
    [before.matches("ld.global.nc.b64").count(), code.matches("ld.global").count(), code.matches("st.global").count()]
}

/// How often each instruction is in the code.
fn instructions(code: &str) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for line in code.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.starts_with('.')) {
        let word = line.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or_default();
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// Runs a kernel that copies over ranges of many lengths. Gives the launches after which not each element was moved once to its own place.
fn wrong_copies(body: &str, items_of_a_thread: u64) -> Vec<Launch> {
    let n_threads = 32;
    let lengths = [1, 2, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129, 999, 1000, 1001];
    let launches = lengths.iter().flat_map(|&n_items| {
        let n_groups = u64::from(n_items).div_ceil(n_threads * items_of_a_thread);
        [0, 7].map(|first| Launch { first, n_items, n_threads, n_groups, call_stack: 0 })
    });
    let is_wrong = |launch: &Launch| {
        let mut moves = launch.run(body);
        moves.sort_unstable();
        let Some((from, to)) = moves.first().map(|(from, to)| (from >> 32, to >> 32)) else { return true };
        let ids = launch.first..launch.first + u64::from(launch.n_items);
        from == to || moves != ids.map(|id| ((from << 32) + 8 * id, (to << 32) + 8 * id)).collect::<Vec<_>>()
    };
    launches.filter(is_wrong).collect()
}

fn check(arguments: &[&str]) {
    let built = build("pairs", arguments);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let functions = functions(&built.code);
    // In the pair both loads come before the stores. Then follows the work-item that is alone at the end of a range of odd length.
    for (function, in_pair, all) in [("copy", 2, 3), ("triad", 4, 6)] {
        let code = body(&functions, &format!("pairs_{function}_closure"));
        assert!(is_paired(&built, &format!("pairs::{function}")), "{function}: {}", built.kernels);
        assert_eq!(loads_and_stores(code), [in_pair, all, 3], "{function}: {code}");
    }
    let triads = ["triad", "triad_of_arguments"].map(|name| kernel(&functions, &format!("pairs_{name}_closure")));
    assert!(is_paired(&built, "pairs::triad_of_arguments"), "{}", built.kernels);
    let [captures, beside] = triads.each_ref().map(|code| instructions(code));
    assert!(captures.keys().any(|name| name.starts_with("st.global")), "{captures:?}");
    assert_eq!(beside, captures, "arguments beside a kernel cost no instruction: {triads:?}");
    for function in ["own_check", "in_two_dimensions", "sum"] {
        let code = kernel(&functions, &format!("pairs_{function}_closure"));
        assert!(!is_paired(&built, &format!("pairs::{function}")), "{function}: {}", built.kernels);
        assert_eq!(code.matches("st.global").count(), 1, "{function}: {code}");
    }
    let copy = body(&functions, "pairs_copy_closure");
    assert_eq!(wrong_copies(copy, 2), [], "{copy}");
    let own_check = body(&functions, "pairs_own_check_closure");
    assert_eq!(wrong_copies(own_check, 1), [], "{own_check}");
    // A work-item beyond the end is noticed, and so is one that does not run.
    let beyond = copy.replace("setp.ge.u32", "setp.gt.u32");
    assert!(!wrong_copies(&beyond, 2).is_empty(), "{beyond}");
    assert!(!wrong_copies(copy, 4).is_empty() && !wrong_copies(own_check, 2).is_empty());
}

#[test]
fn a_kernel_that_moves_memory_runs_each_work_item_of_any_range_once_two_in_each_thread() {
    check(&["--release"]);
}

#[test]
fn unoptimised_builds_have_the_same_pairs() {
    check(&[]);
}
