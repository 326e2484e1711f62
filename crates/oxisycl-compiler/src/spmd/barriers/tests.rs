//! Random kernels with barriers, parted and executed: the same bits as an interpreter leaves, and an item that fails is one that fails there.
//!
//! Programs follow from their seeds. `OXISYCL_TEST_SEED` is the first one, and `OXISYCL_TEST_CASES` says how many. If the process dies, its output
//! names the seed; tests show it with `--nocapture`.
//!
//! Bodies come in three forms: as they are written, with less in them, and as LLVM leaves them in a build.

mod operations;
mod program;
mod reference;
mod refused;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};

use program::{INPUT, OUTPUT, Program, SITE};
use reference::Group;

use super::{Nest, part};
use crate::llvm::pass_lists::DROP_UNUSED;
use crate::llvm::{Module, PassTuning, Vectors};
use crate::passes::native_code;
use crate::passes::tests::context;
use crate::random::Random;
use crate::spmd::item_loops::define_steps;
use crate::spmd::tests::{fail, link, machine, of_lanes};
use crate::spmd::vectorise;

const PROGRAMS: u64 = 64;
/// Planes, rows, and work-items of a row.
const SHAPES: [[u64; 3]; 6] = [[1, 1, 1], [1, 1, 7], [1, 3, 5], [2, 3, 4], [1, 1, 40], [1, 16, 16]];
/// What there is before items write.
const BEFORE: u64 = 0x0123_4567_3f80_1234;
const FORMS: [&str; 3] = [
    "function(mem2reg)",
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)",
    "thinlto-pre-link<O3>",
];

/// What a body gets.
#[repr(C)]
struct Given {
    input: *const u64,
    shared: *mut u8,
    output: *mut [u64; OUTPUT],
    fail: extern "C-unwind" fn(u64) -> !,
    rows: u64,
    row: u64,
    items: u64,
    captures: [u64; 4],
}

type Code<'l> = libloading::Symbol<'l, unsafe extern "C-unwind" fn(&Given, u64, u64, u64)>;

/// What was run.
#[derive(Default, Debug)]
struct Count {
    refused: u64,
    regions: u64,
    vectors: u64,
    runs: u64,
    failed: u64,
    written: u64,
}

/// Runs one program without lanes and in some. The error says what differs.
fn check(seed: u64, count: &mut Count) -> Result<(), String> {
    let program = program::program(seed);
    let shape = seed.is_multiple_of(3).then(|| SHAPES[(seed / 3 % 6) as usize]);
    let is_optimised = seed.is_multiple_of(8);
    for lanes in [1, [2, 8, 16][(seed % 3) as usize]] {
        let Some(library) = parted(&program, (seed, shape), lanes, is_optimised, count)? else { return Ok(()) };
        // SAFETY: the function of this name has this type.
        let code: Code<'_> = unsafe { library.get(b"run") }.expect("a symbol");
        for shape in SHAPES.into_iter().filter(|of| shape.is_none_or(|shape| shape == *of)) {
            compare(&program, (seed, shape), &code, u64::from(lanes), count).map_err(|problem| {
                let text = text::module(&program, None);
                format!("seed {seed}, {lanes} lanes, shape {shape:?}, optimised: {is_optimised}: {problem}\n{text}")
            })?;
        }
    }
    Ok(())
}

/// The library of a program. `None` if it is refused.
fn parted(
    program: &Program,
    (seed, shape): (u64, Option<[u64; 3]>),
    lanes: u32,
    is_optimised: bool,
    count: &mut Count,
) -> Result<Option<libloading::Library>, String> {
    let (context, machine) = (context(), machine());
    let text = text::module(program, shape);
    let module = Module::from_text(&context, &text, "barriers").unwrap_or_else(|error| panic!("{error}: {text}"));
    module.set_target(machine.triple(), &machine.data_layout());
    module.verify("parsing").unwrap_or_else(|error| panic!("{error}: {text}"));
    let tuning = PassTuning { inliner_threshold: 1000, vectors: Vectors::None };
    module.run(FORMS[(seed / 2 % 3) as usize], Some(&machine), &tuning).expect("passes");
    let of = |name: &str| module.function(name).expect("it is there");
    native_code::compile_like(&context, of("group"), of("body"));
    let before = of("body").print();
    let nest = Nest { body: "body".to_owned(), group: "group".to_owned(), most_bytes: 1 << 20 };
    let regions = match part(&module, &machine, &nest, 0).expect("passes") {
        Ok(regions) => regions,
        Err(refused) => {
            println!("seed {seed}: refused: {}", refused.reason);
            count.refused += 1;
            return Ok(None);
        }
    };
    count.regions += regions.len() as u64;
    for region in &regions {
        let (body, steps) = (region.body(&module).expect("a region"), region.steps(&module).expect("its loop"));
        let mut vector = None;
        if lanes > 1 {
            match vectorise(&module, Some(&machine), body, of_lanes(lanes)).expect("passes") {
                Ok(made) => vector = Some((made.function, lanes)),
                Err(refused) => println!("seed {seed}: scalar: {}", refused.reason),
            }
            count.vectors += u64::from(vector.is_some());
        }
        define_steps(&module, steps, body, vector);
    }
    module.verify("parting").map_err(|error| format!("seed {seed}: {error}\n{before}"))?;
    module.run(DROP_UNUSED, None, &PassTuning::NATIVE).expect("passes");
    Ok(Some(link(&module, &machine, is_optimised)))
}

/// Compares a run of a group with what its items do in the reference.
fn compare(
    program: &Program,
    (seed, shape): (u64, [u64; 3]),
    code: &Code<'_>,
    lanes: u64,
    count: &mut Count,
) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut number = |most: u64| if random.below(3) > 0 { random.below(most) } else { random.below(u64::MAX) };
    let input: Vec<u64> = (0..INPUT).map(|_| number(300)).collect();
    let captures = [(); 4].map(|()| number(9));
    let group = Group { shape, input: &input, captures };
    let [planes, rows, row] = shape;
    let mut output = vec![[BEFORE; OUTPUT]; group.items() as usize];
    let mut shared = vec![0_u64; program.sites.len() * SITE as usize / 8];
    let given = Given {
        input: input.as_ptr(),
        shared: shared.as_mut_ptr().cast(),
        output: output.as_mut_ptr(),
        fail,
        rows,
        row,
        items: group.items(),
        captures,
    };
    // SAFETY: the code has this type, and stays within these arrays, which are this thread's.
    let end = catch_unwind(AssertUnwindSafe(|| unsafe { code(&given, planes, rows, row) }));
    let failed = end.err().map(|item| *item.downcast::<u64>().expect("ours"));
    count.runs += 1;
    match (reference::run(program, &group, BEFORE), failed) {
        (Err(failing), Some(failed)) => {
            count.failed += 1;
            // Those before it have come to the barrier, but for others of its vector.
            let first = failing[0];
            let whole = row / lanes * lanes;
            let of_vector = |item: u64| match item % row {
                x if x < whole => (item / row, x / lanes, 0),
                x => (item / row, whole, x),
            };
            if failing.contains(&failed) && of_vector(first) == of_vector(failed) {
                Ok(())
            } else {
                Err(format!("of {failing:?}, {failed} fails"))
            }
        }
        (Ok(expected), None) => {
            for (item, (found, right)) in output.iter().zip(&expected).enumerate() {
                count.written += right.iter().filter(|value| **value != BEFORE).count() as u64;
                if let Some(at) = (0..OUTPUT).find(|at| found[*at] != right[*at]) {
                    return Err(format!("place {at} of item {item} is {:#x}, not {:#x}", found[at], right[at]));
                }
            }
            Ok(())
        }
        (expected, failed) => Err(format!("{failed:?} fails, and should of {:?}", expected.err())),
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_kernels_with_barriers_do_the_same_in_regions() {
    let (first, programs) = (setting("OXISYCL_TEST_SEED", 1), setting("OXISYCL_TEST_CASES", PROGRAMS));
    let mut count = Count::default();
    let mut problems = Vec::new();
    for seed in first..first + programs {
        println!("seed {seed}");
        problems.extend(check(seed, &mut count).err());
    }
    println!("{programs} programs: {count:?}");
    assert!(problems.is_empty(), "{} problems, the first: {}", problems.len(), problems[0]);
    // Enough of each kind comes up.
    if programs >= PROGRAMS {
        assert!(count.refused * 10 <= programs, "{count:?}");
        assert!(count.failed * 50 > count.runs && count.failed * 3 < count.runs, "{count:?}");
        assert!(count.written > 20 * count.runs, "{count:?}");
        assert!(count.vectors * 4 > count.regions, "{count:?}");
    }
}
