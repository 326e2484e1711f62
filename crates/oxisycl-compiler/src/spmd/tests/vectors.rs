//! Random bodies, executed by lanes and item by item: the same bits in memory, and an item that fails is one that fails alone.
//!
//! Programs follow from their seeds. `OXISYCL_TEST_SEED` is the first one, and `OXISYCL_TEST_CASES` says how many. Some are optimised before they run.
//! If the process dies, its output names the seeds; tests show it with `--nocapture`.
//!
//! Each item has places of its own, since items that run at once must not write to the same ones. After a failure, nothing is said of the other items
//! of its vector. In the rest of memory nothing may differ.
//!
//! Memory is between pages without access. A lane that is not active and accesses what is beyond ends the process.

mod layout;
mod numbers;
mod pages;
mod places;
mod program;
mod structures;

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use layout::{KINDS, STRIDES};
use oxisycl_image::HostLevel;
use pages::{PAGE, Pages};

use super::{LANES, fail, has_level, link_with, machine, machine_of, of_level, without_registers_for_masks};
use crate::llvm::{Linkage, Module, PassTuning, Type};
use crate::passes::tests::context;
use crate::random::Random;
use crate::spmd::emitter::Rule;
use crate::spmd::item_loops::define_steps;
use crate::spmd::vectorise_without;

const PROGRAMS: u64 = 150;
/// Enough that each rule which is left out is missed.
const PROGRAMS_FOR_A_RULE: u64 = 200;
/// Programs of each of which one blend is left out.
const PROGRAMS_FOR_A_BLEND: u64 = 120;
/// Numbers of lanes that bodies have without a rule.
const LANES_FOR_A_RULE: [u32; 2] = [2, 8];
/// Says in a process of a test's own which rule is left out.
const LEFT_OUT: &str = "OXISYCL_TEST_LEFT_OUT";
/// Rules whose lack ends the process by a signal, with the first seed of those that are tried: one that misses the rule is near.
const FATAL: [(Rule, i32, u64); 4] = [
    (Rule::LoadMasks, libc::SIGSEGV, 1),
    (Rule::GatherMasks, libc::SIGSEGV, 121),
    (Rule::LastStructure, libc::SIGSEGV, 1),
    (Rule::Divisors, libc::SIGFPE, 305),
];
/// Programs in one library.
const TOGETHER: u64 = 8;
/// Items that run at most.
const MOST: u64 = 40;

/// What a body gets.
#[repr(C)]
struct Given {
    input: *const u8,
    output: *mut u8,
    fail: extern "C-unwind" fn(u64) -> !,
    number: u32,
    edges: *mut u8,
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

/// What there is before items write.
const BEFORE: [u8; 8] = 0x0123_4567_3f80_1234_u64.to_le_bytes();
/// The parts of the pages: what all items read, what each of them writes, the edges from here on, and structures that all items read.
const INPUT: usize = 0;
const OUTPUT: usize = 1;
const EDGES: usize = 2;
const TABLE: usize = EDGES + layout::EDGES - 1;

/// The memory of a run.
struct Memory {
    pages: Pages,
    /// Where arrays begin that do not have all of their pages.
    starts: [usize; 2],
    number: u32,
    /// The item that has each byte of the pages that items write to.
    owners: Vec<Option<u64>>,
}

impl Memory {
    fn new(seed: u64, case: u64) -> Self {
        let mut random = Random::new(seed ^ (case + 1) << 40);
        let input: Vec<u8> =
            layout::input_words(|bound| random.below(bound)).into_iter().flat_map(u64::to_le_bytes).collect();
        let lengths = [input.len(), layout::OUTPUT];
        let mut pages = Pages::new(&[&lengths[..], &[PAGE; layout::EDGES]].concat());
        let starts = [INPUT, OUTPUT].map(|part| match case {
            1 => 0,
            _ => pages.bytes(part).len() - lengths[part],
        });
        pages.bytes_mut(INPUT)[starts[INPUT]..][..input.len()].copy_from_slice(&input);
        pages.bytes_mut(TABLE).iter_mut().zip(input.iter().cycle()).for_each(|(to, from)| *to = *from);
        let mut owners = vec![None; pages.bytes(OUTPUT).len()];
        owners[starts[OUTPUT]..][..layout::OUTPUT].copy_from_slice(&layout::owners());
        owners.extend((0..KINDS).flat_map(layout::owners_of_edge));
        owners.extend((0..STRIDES.len()).flat_map(layout::owners_of_structures));
        let number = [0, 1, 6, 23, 44][((seed + case) % 5) as usize];
        Self { pages, starts, number, owners }
    }

    /// Has memory as it is before items write.
    fn clear(&mut self) {
        for part in OUTPUT..TABLE {
            self.pages.bytes_mut(part).chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&BEFORE));
        }
    }

    /// The bytes that items may have written.
    fn written(&self) -> Vec<u8> {
        (OUTPUT..TABLE).flat_map(|part| self.pages.bytes(part)).copied().collect()
    }

    /// Runs code with a number. Returns the item that fails.
    fn run(&mut self, code: &Code<'_>, number: u64) -> Option<u64> {
        let [input, output] = [INPUT, OUTPUT].map(|part| self.pages.address(part).wrapping_add(self.starts[part]));
        let given = Given { input, output, fail, number: self.number, edges: self.pages.address(EDGES) };
        // SAFETY: the code has this type, and stays within these arrays, which are this thread's.
        let end = catch_unwind(AssertUnwindSafe(|| unsafe { code(&given, number) }));
        end.err().map(|item| *item.downcast::<u64>().expect("ours"))
    }
}

/// Runs some programs in one library. The error is the seed of one that differs, with the rest.
fn check(seeds: Range<u64>, is_optimised: bool, without: Option<Rule>, count: &mut Count) -> Result<(), (u64, String)> {
    let context = context();
    let level = if without.is_some() { HostLevel::V3 } else { level(seeds.start) };
    let is_v4 = level == HostLevel::V4;
    let machine = if is_v4 { machine_of(level.name()) } else { machine() };
    let is_harmless = |rule| matches!(rule, Rule::OneBlend(_)) || Rule::HARMLESS.contains(&rule);
    let text = program::module(seeds.clone(), without.is_some_and(is_harmless));
    let lanes = if without.is_some() { &LANES_FOR_A_RULE[..] } else { &LANES };
    let module = Module::from_text(&context, &text, "vectors").unwrap_or_else(|error| panic!("{error}: {text}"));
    module.set_target(machine.triple(), &machine.data_layout());
    module.verify("parsing").expect("programs are valid");
    module.run("function(mem2reg)", None, &PassTuning::NATIVE).expect("it runs");
    let held = Type::function(Type::void(&context), &[Type::pointer(&context, 0), Type::int(&context, 64)]);
    let shown = |seed: u64| module.function(&format!("plain{seed}")).expect("a body").print();
    for seed in seeds.clone() {
        let body = module.function(&format!("body{seed}")).expect("a body");
        for lanes in lanes.iter().copied() {
            let vector = match vectorise_without(&module, Some(&machine), body, of_level(level, lanes), without)
                .expect("passes")
            {
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
    // AVX-512 has registers for masks.
    let last = |module: &Module<'_>| {
        if !is_v4 {
            without_registers_for_masks(module)
        }
    };
    let library = link_with(&module, &machine, is_optimised, last);
    for (seed, text) in seeds.zip(texts) {
        let code = |name: String| -> Code<'_> {
            // SAFETY: functions of these names have this type.
            unsafe { library.get(name.as_bytes()) }.expect("a symbol")
        };
        let plain = code(format!("plain{seed}"));
        for case in 0..3 {
            let mut memory = Memory::new(seed, case);
            memory.clear();
            let failing = (0..MOST).filter(|item| memory.run(&plain, *item).is_some()).collect();
            let after = memory.written();
            for lanes in lanes.iter().copied() {
                let steps = code(format!("steps{seed}.{lanes}"));
                let items = [MOST, u64::from(lanes), (seed + case) % MOST][case as usize];
                compare(&mut memory, (&after, &failing), &steps, (u64::from(lanes), items), count).map_err(
                    |problem| {
                        let what = format!("{lanes} lanes, {items} items, number {}", memory.number);
                        (seed, format!("seed {seed}, optimised: {is_optimised}, {what}: {problem}\n{text}"))
                    },
                )?;
            }
        }
    }
    Ok(())
}

/// Compares the run of a loop over items with what they do alone: the memory, and those that fail.
fn compare(
    memory: &mut Memory,
    (expected, failing): (&[u8], &BTreeSet<u64>),
    steps: &Code<'_>,
    (lanes, items): (u64, u64),
    count: &mut Count,
) -> Result<(), String> {
    memory.clear();
    let failed = memory.run(steps, items);
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
    let output = memory.written();
    for (at, owner) in memory.owners.iter().enumerate() {
        let ends = owner.is_some_and(|item| whole.contains(&item) || failed == Some(item));
        if !ends && owner.is_some_and(|item| unknown.contains(&item)) {
            continue;
        }
        let before = BEFORE[at % 8];
        let right = if ends { expected[at] } else { before };
        count.stored_bytes += u64::from(right != before);
        if output[at] != right {
            let found = output[at];
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

/// The level of programs from a seed on: every other two libraries are for AVX-512, if the processor has it.
fn level(begin: u64) -> HostLevel {
    let is_v4 = begin / TOGETHER % 4 >= 2 && has_level(HostLevel::V4);
    if is_v4 { HostLevel::V4 } else { HostLevel::V3 }
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
    let mut not_missed = Vec::new();
    for rule in Rule::HARMLESS {
        let find = |(seeds, _)| check(seeds, false, Some(rule), &mut Count::default()).err();
        let found = parts(1, PROGRAMS_FOR_A_RULE).find_map(find);
        match found {
            Some((_, why)) => println!("{rule:?}: {}", why.lines().next().unwrap_or_default()),
            None => not_missed.push(rule),
        }
    }
    assert!(not_missed.is_empty(), "seeds 1 to {PROGRAMS_FOR_A_RULE} do not miss {not_missed:?}");
}

/// Each program that has a blend of that number. Not all are missed: some values are not used, or are what they were.
#[test]
fn single_blends_that_are_left_out_at_random_are_missed() {
    let (mut n_missed, mut random) = (0, Random::new(7));
    for seed in 1..=PROGRAMS_FOR_A_BLEND {
        let rule = Rule::OneBlend(random.below(4) as u32);
        if let Err((_, why)) = check(seed..seed + 1, false, Some(rule), &mut Count::default()) {
            println!("{rule:?}: {}", why.lines().next().unwrap_or_default());
            n_missed += 1;
        }
    }
    println!("{n_missed} of {PROGRAMS_FOR_A_BLEND} programs miss a blend");
    assert!(n_missed * 30 > PROGRAMS_FOR_A_BLEND, "{n_missed} of {PROGRAMS_FOR_A_BLEND}");
}

/// Values that are loaded for lanes that are not active have no use. So only the pages around the arrays tell that they are loaded.
#[test]
fn a_rule_that_is_left_out_may_end_the_process() {
    if let Ok(name) = std::env::var(LEFT_OUT) {
        let (rule, _, first) = FATAL.into_iter().find(|(rule, ..)| format!("{rule:?}") == name).expect("a rule");
        for (seeds, _) in parts(setting("OXISYCL_TEST_SEED", first), PROGRAMS_FOR_A_RULE) {
            println!("seeds {seeds:?}");
            check(seeds, false, Some(rule), &mut Count::default()).unwrap_or_else(|(_, problem)| panic!("{problem}"));
        }
        return;
    }
    let this = "a_rule_that_is_left_out_may_end_the_process";
    let module = module_path!().split_once("::").expect("a module of this crate").1;
    for (rule, signal, _) in FATAL {
        let mut child = Command::new(std::env::current_exe().expect("this test"));
        child.args([&format!("{module}::{this}"), "--exact", "--nocapture"]).env(LEFT_OUT, format!("{rule:?}"));
        let output = child.output().expect("it starts");
        let shown = String::from_utf8_lossy(&output.stdout);
        println!("{rule:?}: {}: {}", output.status, shown.lines().last().unwrap_or_default());
        assert_eq!(output.status.signal(), Some(signal), "{rule:?}: {shown}");
    }
}
