//! Random bodies, executed by lanes and item by item: the same bits in memory, and an item that fails is one that fails alone.
//!
//! Programs follow from their seeds. `OXISYCL_TEST_SEED` is the first one, and `OXISYCL_TEST_CASES` says how many. Some are optimised before they run.
//! If the process dies, its output names the seeds; tests show it with `--nocapture`.
//!
//! Each item has places of its own, since items that run at once must not write to the same ones. After a failure, nothing is said of the other items
//! of its vector. In the rest of memory nothing may differ.

mod layout;
mod places;
mod program;

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{fail, link, machine, of_lanes};
use crate::llvm::{Linkage, Module, PassTuning, Type};
use crate::passes::tests::context;
use crate::random::Random;
use crate::spmd::emitter::Rule;
use crate::spmd::item_loops::define_steps;
use crate::spmd::vectorise_without;

const PROGRAMS: u64 = 48;
/// Enough that each rule which is left out is missed.
const PROGRAMS_FOR_A_RULE: u64 = 200;
/// Programs in one library.
const TOGETHER: u64 = 8;
const LANES: [u32; 5] = [2, 4, 8, 16, 32];
/// Items that run at most.
const MOST: u64 = 40;

/// What a body gets.
#[repr(C)]
struct Given {
    input: *const u64,
    output: *mut u64,
    fail: extern "C-unwind" fn(u64) -> !,
    number: u32,
}

/// A body for an item, or the loop over a number of items.
type Code<'l> = libloading::Symbol<'l, unsafe extern "C-unwind" fn(&Given, u64)>;

/// What was run.
#[derive(Default, Debug)]
struct Count {
    runs: u64,
    failed: u64,
    stored_bytes: u64,
}

/// The memory of a run, and what it is like before.
struct Memory {
    input: Vec<u64>,
    before: Vec<u64>,
    number: u32,
    owners: Vec<Option<u64>>,
}

impl Memory {
    fn new(seed: u64, case: u64) -> Self {
        let mut random = Random::new(seed ^ (case + 1) << 40);
        let (input, before) = layout::memory(|bound| random.below(bound));
        let number = [0, 1, 6, 23, 44][((seed + case) % 5) as usize];
        Self { input, before, number, owners: layout::owners() }
    }

    /// Runs code with a number. Returns the item that fails.
    fn run(&self, code: &Code<'_>, number: u64, output: &mut Vec<u64>) -> Option<u64> {
        let (input, output) = (self.input.as_ptr(), output.as_mut_ptr());
        let given = Given { input, output, fail, number: self.number };
        // SAFETY: the code has this type, and stays within these arrays, which are this thread's.
        let end = catch_unwind(AssertUnwindSafe(|| unsafe { code(&given, number) }));
        end.err().map(|item| *item.downcast::<u64>().expect("ours"))
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Runs some programs in one library. The error is the seed of one that differs, with the rest.
fn check(seeds: Range<u64>, is_optimised: bool, without: Option<Rule>, count: &mut Count) -> Result<(), (u64, String)> {
    let context = context();
    let machine = machine();
    let text = program::module(seeds.clone(), without.is_some());
    let module = Module::from_text(&context, &text, "vectors").unwrap_or_else(|error| panic!("{error}: {text}"));
    module.set_target(machine.triple(), &machine.data_layout());
    module.verify("parsing").expect("programs are valid");
    module.run("function(mem2reg)", None, &PassTuning::NATIVE).expect("it runs");
    let held = Type::function(Type::void(&context), &[Type::pointer(&context, 0), Type::int(&context, 64)]);
    let shown = |seed: u64| module.function(&format!("plain{seed}")).expect("a body").print();
    for seed in seeds.clone() {
        let body = module.function(&format!("body{seed}")).expect("a body");
        for lanes in LANES {
            let vector =
                match vectorise_without(&module, Some(&machine), body, of_lanes(lanes), without).expect("passes") {
                    Ok(vector) => vector.function,
                    Err(refused) => panic!("seed {seed}: refused: {}\n{}", refused.reason, shown(seed)),
                };
            let steps = module.declare(&format!("steps{seed}.{lanes}"), held);
            define_steps(&module, steps, body, Some((vector, lanes)));
            steps.set_linkage(Linkage::EXTERNAL);
        }
    }
    let texts: Vec<String> = seeds.clone().map(shown).collect();
    module.verify("vectorisation").unwrap_or_else(|error| panic!("seeds {seeds:?}: {error}"));
    let library = link(&module, &machine, is_optimised);
    for (seed, text) in seeds.zip(texts) {
        let code = |name: String| -> Code<'_> {
            // SAFETY: functions of these names have this type.
            unsafe { library.get(name.as_bytes()) }.expect("a symbol")
        };
        let plain = code(format!("plain{seed}"));
        for case in 0..3 {
            let memory = Memory::new(seed, case);
            let mut after = memory.before.clone();
            let failing = (0..MOST).filter(|item| memory.run(&plain, *item, &mut after).is_some()).collect();
            for lanes in LANES {
                let steps = code(format!("steps{seed}.{lanes}"));
                let items = [MOST, u64::from(lanes), (seed + case) % MOST][case as usize];
                compare(&memory, (&after, &failing), &steps, (u64::from(lanes), items), count).map_err(|problem| {
                    let what = format!("{lanes} lanes, {items} items, number {}", memory.number);
                    (seed, format!("seed {seed}, optimised: {is_optimised}, {what}: {problem}\n{text}"))
                })?;
            }
        }
    }
    Ok(())
}

/// Compares the run of a loop over items with what they do alone: the memory, and those that fail.
fn compare(
    memory: &Memory,
    (expected, failing): (&[u64], &BTreeSet<u64>),
    steps: &Code<'_>,
    (lanes, items): (u64, u64),
    count: &mut Count,
) -> Result<(), String> {
    let mut output = memory.before.clone();
    let failed = memory.run(steps, items, &mut output);
    // The items that run to their end, and those of which nothing is said.
    let (whole, unknown) = match failing.iter().find(|item| **item < items) {
        None => (0..items, 0..0),
        Some(&first) => {
            let begin = if first < items / lanes * lanes { first / lanes * lanes } else { first };
            let end = if begin == first && first >= items / lanes * lanes { first + 1 } else { begin + lanes };
            (0..begin, begin..end)
        }
    };
    count.runs += 1;
    match failed {
        None if unknown.is_empty() => {}
        Some(item) if unknown.contains(&item) && failing.contains(&item) => count.failed += 1,
        _ => return Err(format!("of {failing:?}, {failed:?} fails")),
    }
    let [before, expected, output] = [&memory.before, expected, &output].map(bytes);
    for (at, owner) in memory.owners.iter().enumerate() {
        let ends = owner.is_some_and(|item| whole.contains(&item) || failed == Some(item));
        if !ends && owner.is_some_and(|item| unknown.contains(&item)) {
            continue;
        }
        let right = if ends { expected[at] } else { before[at] };
        count.stored_bytes += u64::from(right != before[at]);
        if output[at] != right {
            let (found, before) = (output[at], before[at]);
            return Err(format!(
                "byte {at} of item {owner:?} is {found}, not {right}, and was {before}; {failed:?} fails"
            ));
        }
    }
    Ok(())
}

/// Some seeds, as many in a part as are in one library, and whether these are optimised.
fn parts(first: u64, programs: u64) -> impl Iterator<Item = (Range<u64>, bool)> {
    let mut begin = first;
    std::iter::from_fn(move || {
        let end = (first + programs).min((begin / TOGETHER + 1) * TOGETHER);
        let part = (begin < end).then_some((begin..end, (begin / TOGETHER).is_multiple_of(2)));
        begin = end;
        part
    })
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_bodies_do_the_same_in_lanes() {
    let (first, programs) = (setting("OXISYCL_TEST_SEED", 1), setting("OXISYCL_TEST_CASES", PROGRAMS));
    let mut count = Count::default();
    for (seeds, is_optimised) in parts(first, programs) {
        println!("seeds {seeds:?}");
        if let Err((_, problem)) = check(seeds, is_optimised, None, &mut count) {
            panic!("{problem}");
        }
    }
    println!("{programs} programs: {count:?}");
    // Enough of each kind comes up.
    if programs >= PROGRAMS {
        assert!(count.failed * 50 > count.runs && count.failed * 2 < count.runs, "{count:?}");
        assert!(count.stored_bytes > 20 * count.runs, "{count:?}");
    }
}

#[test]
fn a_rule_of_the_emitter_that_is_left_out_is_missed() {
    for rule in Rule::ALL {
        let find = |(seeds, _)| check(seeds, false, Some(rule), &mut Count::default()).err();
        let found = parts(1, PROGRAMS_FOR_A_RULE).find_map(find);
        let (_, why) = found.unwrap_or_else(|| panic!("seeds 1 to {PROGRAMS_FOR_A_RULE} do not miss {rule:?}"));
        println!("{rule:?}: {}", why.lines().next().unwrap_or_default());
    }
}
