//! What work-items of a GPU do whose calls are deeper than their stack: they panic, and the others go on.

use crate::program::{build, functions};
use crate::ptx_thread::{Launch, Ran};

const N_ITEMS: u32 = 300;

fn run(ptx: &str, call_stack: u32) -> Ran {
    let functions = functions(ptx);
    let mut kernels =
        functions.iter().filter(|(name, _)| name.contains("calling_itself_closure") && name.starts_with('k'));
    let (Some((_, kernel)), None) = (kernels.next(), kernels.next()) else { panic!("{:?}", functions.keys()) };
    let launch = Launch { first: 0, n_items: N_ITEMS, n_threads: 32, n_groups: 32, call_stack };
    launch.run_with(kernel, &functions)
}

/// What the first work-items store that are as many.
fn expected(n: usize) -> Vec<u64> {
    let next = |(n, sum): &(u64, u64)| Some((n + 1, sum.wrapping_mul(3).wrapping_add(n + 1)));
    std::iter::successors(Some((0, 1)), next).map(|(_, sum)| sum).take(n).collect()
}

fn stored(ran: &Ran) -> Vec<u64> {
    let mut moves = ran.moves.clone();
    moves.sort_by_key(|(_, to)| *to);
    let first = moves[0].1;
    assert!(moves.iter().zip(0..).all(|((_, to), item)| *to == first + 8 * item), "not the first work-items");
    moves.into_iter().map(|(value, _)| value).collect()
}

#[test]
fn a_work_item_whose_recursion_has_no_stack_left_panics_and_the_others_end() {
    let built = build("recursion", &["--release"]);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let enough = run(&built.code, 64 << 10);
    assert_eq!((stored(&enough), enough.panics.len()), (expected(N_ITEMS as usize), 0));

    let call_stack = 4 << 10;
    assert!(enough.deepest > u64::from(call_stack), "{}", enough.deepest);
    let ran = run(&built.code, call_stack);
    let stored = stored(&ran);
    assert_eq!(stored, expected(stored.len()));
    assert_eq!(stored.len() + ran.panics.len(), N_ITEMS as usize, "each has stored or panicked");
    // A record has the launch, a site, the kinds of up to three numbers, and those.
    assert!(ran.panics.iter().all(|record| record[3..] == [u64::from(call_stack), 0, 0]), "{:?}", ran.panics);
    // Room is left for the record, and for not much else.
    let left = u64::from(call_stack).checked_sub(ran.deepest).expect("nobody had more than there is");
    assert!((200..=600).contains(&left), "{left}");
    // What is not recursive asks nothing.
    let (recursive, plain) = built.code.split_once("in_a_loop").expect("two kernels");
    assert!(recursive.contains("oxisycl_stack_limit") && !plain.contains("oxisycl_stack_limit"), "{plain}");
}
