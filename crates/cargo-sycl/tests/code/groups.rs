//! Kernels over groups: their barriers and shuffles are those of the source, and a loop over tiles has nothing but the source's arithmetic.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::convergence::instructions;
use crate::program::{Package, build, functions};
use crate::ptxas;

/// A kernel of `kernels/groups.rs`, with what it has in PTX: barriers, shuffles, and votes. The last number is of barriers in SPIR-V. There a value passes
/// through local memory in the place of a shuffle or a vote, with more barriers.
type Shape = (&'static str, usize, usize, usize, usize);

const SHAPES: [Shape; 22] = [
    ("phases_in_a_loop", 2, 0, 0, 2),
    ("sum_of_a_group", 2, 5, 0, 4),
    ("barriers_in_both_arms", 2, 0, 0, 2),
    ("barriers_in_a_loop", 2, 0, 0, 2),
    ("barrier_in_a_function", 1, 0, 0, 1),
    ("sums_in_both_arms", 3, 15, 0, 9),
    ("vote_of_a_group", 2, 5, 0, 4),
    ("broadcast_of_a_group", 2, 0, 0, 3),
    ("votes_of_sub_groups", 1, 0, 1, 3),
    ("ballots_of_sub_groups", 1, 0, 1, 3),
    ("broadcasts_of_sub_groups", 1, 1, 0, 3),
    ("shuffles_of_sub_groups", 1, 2, 0, 5),
    ("shuffles_of_work_items", 0, 1, 1, 4),
    ("integers_of_sub_groups", 0, 60, 0, 19),
    ("sort_of_a_tile", 22, 0, 0, 22),
    ("chase_of_indices", 2, 0, 0, 3),
    ("scan_of_a_group", 2, 5, 0, 5),
    ("joint_sum_of_a_tile", 2, 5, 0, 4),
    ("matches_of_sub_groups", 1, 32, 0, 3),
    ("barriers_with_scopes", 2, 0, 0, 2),
    ("barriers_of_sub_groups", 2, 0, 0, 2),
    ("copy_to_local", 1, 0, 0, 1),
];

fn check(arguments: &[&str]) {
    let built = build("groups", arguments);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let functions = functions(&built.code);
    let found = SHAPES.map(|(shape, _, _, _, barriers_in_spirv)| {
        let (_, code) = functions.iter().find(|(name, _)| name.contains(&format!("groups_{shape}_closure"))).unwrap();
        let [barriers, shuffles, votes] =
            ["barrier.sync", "shfl.sync", "vote.sync"].map(|word| code.matches(word).count());
        (shape, barriers, shuffles, votes, barriers_in_spirv)
    });
    assert_eq!(found, SHAPES);
}

#[test]
fn unoptimised_builds_keep_the_barriers_and_shuffles_of_groups() {
    check(&[]);
}

#[test]
fn optimised_builds_keep_the_barriers_and_shuffles_of_groups() {
    check(&["--release"]);
}

/// Kernels with reductions, and what each has for newer processors: instructions that combine integers of 32 bits, and shuffles.
const AT_ONCE: [(&str, &[&str], usize); 5] = [
    ("sum_of_a_group", &["add.s32"], 0),
    ("sums_in_both_arms", &["add.s32", "add.s32", "max.u32"], 0),
    ("vote_of_a_group", &["or.b32"], 0),
    (
        "integers_of_sub_groups",
        &["add.s32", "and.b32", "max.s32", "max.u32", "min.s32", "min.u32", "or.b32", "xor.b32"],
        // A sum of 64 bits.
        12,
    ),
    ("shuffles_of_sub_groups", &[], 2),
];

#[test]
fn newer_processors_combine_integers_of_a_sub_group_in_one_instruction() {
    const REDUCTION: &str = "redux.sync.";
    let package = Package::enter();
    package.sycl(&["build", "--targets", "sm_70,sm_80", "--bin", "groups"]);
    let emitted =
        |target: &str| package.sycl(&["inspect", "--emit", "ptx", "--target", target, "target/sycl/debug/groups"]).0;
    let [older, newer] = ["sm_70", "sm_80"].map(emitted);
    assert!(older.contains(".target sm_70") && !older.contains(REDUCTION), "{older}");
    let functions = functions(&newer);
    for (kernel, expected, n_shuffles) in AT_ONCE {
        let (_, code) = functions.iter().find(|(name, _)| name.contains(&format!("groups_{kernel}_closure"))).unwrap();
        let words = code.split_whitespace().filter_map(|word| word.strip_prefix(REDUCTION));
        let mut found: Vec<_> = words.collect();
        found.sort_unstable();
        assert_eq!((found.as_slice(), code.matches("shfl.sync").count()), (expected, n_shuffles), "{kernel}");
    }
    match ptxas::find() {
        Some(_) => assert_eq!(ptxas::assemble(&newer, "sm_80"), Ok(())),
        None => println!("not assembled: ptxas is neither installed nor in PATH"),
    }
}

/// Builds a program for OpenCL devices, and gives the modules of its kernels by their files' names.
pub(crate) fn modules(program: &str) -> Vec<(String, Vec<u8>)> {
    let package = Package::enter();
    let (_, messages) = package.sycl(&["build", "--release", "--targets", "spirv", "--bin", program]);
    assert!(!messages.contains("warning"), "{messages}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}-modules"));
    let _ = fs::remove_dir_all(&folder);
    let binary = format!("target/sycl/release/{program}");
    package.sycl(&["inspect", &binary, "--emit", "spirv", "--out", folder.to_str().unwrap()]);
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    files.map(|file| (file.to_str().unwrap().to_owned(), fs::read(&file).unwrap())).collect()
}

#[test]
fn modules_of_spirv_have_the_barriers_of_groups() {
    let modules = modules("groups");
    assert_eq!(modules.len(), SHAPES.len());
    let found = SHAPES.map(|(shape, ..)| {
        let (_, module) = modules.iter().find(|(name, _)| name.contains(&format!("groups_{shape}_closure"))).unwrap();
        (shape, instructions(module).into_iter().filter(|code| *code == BARRIER).count())
    });
    assert_eq!(found, SHAPES.map(|(shape, .., barriers)| (shape, barriers)));
}

/// A barrier asks for work-items that have panicked only where a loop could wait for what these would have written.
#[test]
fn only_a_kernel_with_a_loop_that_others_end_asks_at_its_barriers() {
    let built = build("groups", &["--release"]);
    let functions = functions(&built.code);
    let asks = |shape: &str| {
        let (_, code) = functions.iter().find(|(name, _)| name.contains(&format!("groups_{shape}_closure"))).unwrap();
        assert!(code.contains("exit;"), "{shape} may panic\n{code}");
        let words = code.lines().filter(|line| line.contains("[oxisycl_early_exits]"));
        let (loads, stores): (Vec<_>, Vec<_>) = words.partition(|line| line.trim().starts_with("ld."));
        (loads.len(), stores.is_empty())
    };
    assert_eq!(asks("sort_of_a_tile"), (0, true));
    // Behind the barrier between the phases.
    assert_eq!(asks("chase_of_indices"), (1, false));
}

/// The kernel is the one that the book has, word for word.
#[test]
fn the_loop_of_a_product_by_tiles_reads_local_memory_and_checks_nothing() {
    const TILE: usize = 16;
    let built = build("tiled_gemm", &["--release"]);
    assert!(!built.code.contains("oxisycl_early_exits"), "{}", built.code);
    let functions = functions(&built.code);
    let (_, code) = functions.iter().find(|(name, _)| name.contains("tiled_gemm_multiply_closure")).unwrap();
    // Between the barrier behind the stores of a tile and the one before the next stores.
    let phases: Vec<&str> = code.split("barrier.sync").filter(|part| part.contains("fma.rn.f32")).collect();
    assert_eq!(phases.len(), 1, "{code}");
    let instructions = || phases[0].lines().map(str::trim).filter(|line| line.ends_with(';') && !line.starts_with('.'));
    let of = |word: &str| instructions().filter(|line| line.starts_with(word)).count();
    assert_eq!((of("fma.rn.f32"), of("ld.shared.") > TILE, of("ld.")), (TILE, true, of("ld.shared.")), "{code}");
    assert_eq!(["setp", "bra", "@", "call", "st."].map(of), [0; 5], "{code}");
}

/// Code in SPIR-V: the loop has the loads of both tiles and the arithmetic, and nothing that decides, calls or stores.
#[test]
fn in_spirv_the_loop_of_a_product_by_tiles_reads_local_memory_and_checks_nothing() {
    const TILE: usize = 16;
    let modules = modules("tiled_gemm");
    let (_, module) = modules.iter().find(|(name, _)| name.contains("multiply")).unwrap();
    let loads = loads_of_f32(module);
    assert_eq!((loads.get(&WORKGROUP), loads.get(&GENERIC)), (Some(&(2 * TILE)), None), "loads by storage class");
    // Between the barrier behind the stores of a tile and the one before the next stores.
    let codes = instructions(module);
    let phases: Vec<&[u32]> =
        codes.split(|code| *code == BARRIER).filter(|phase| phase.contains(&MULTIPLICATION)).collect();
    assert_eq!(phases.len(), 1, "{codes:?}");
    let mut counts = BTreeMap::new();
    for code in phases[0].iter().filter(|code| ![POINTER_TO_ELEMENT, CAST].contains(code)) {
        *counts.entry(*code).or_insert(0) += 1;
    }
    // No comparison, no branch, no call and no store among them.
    assert_eq!(counts, BTreeMap::from([(LOAD, 2 * TILE), (MULTIPLICATION, TILE), (ADDITION, TILE)]));
}

/// SPIR-V's numbers of instructions: `OpLoad`, `OpInBoundsPtrAccessChain`, `OpBitcast`, `OpFAdd`, `OpFMul` and `OpControlBarrier`.
const LOAD: u32 = 61;
const POINTER_TO_ELEMENT: u32 = 70;
const CAST: u32 = 124;
const ADDITION: u32 = 129;
const MULTIPLICATION: u32 = 133;
const BARRIER: u32 = 224;
/// SPIR-V's numbers of local memory, and of memory that is not known.
const WORKGROUP: u32 = 4;
const GENERIC: u32 = 8;

/// How many loads of numbers a module of SPIR-V has, by the storage class of their pointers.
pub(crate) fn loads_of_f32(module: &[u8]) -> BTreeMap<u32, usize> {
    const TYPE_FLOAT: u32 = 22;
    const TYPE_POINTER: u32 = 32;
    let words: Vec<u32> = module.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let (mut floats, mut pointers, mut of_value) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut loads = BTreeMap::new();
    let mut position = 5;
    while let Some(first) = words.get(position) {
        let instruction = &words[position..position + (first >> 16) as usize];
        match first & 0xFFFF {
            TYPE_FLOAT => floats.push(instruction[1]),
            TYPE_POINTER => pointers.push((instruction[1], instruction[2])),
            code => {
                if code == LOAD && floats.contains(&instruction[1]) {
                    *loads.entry(of_value[&instruction[3]]).or_default() += 1;
                }
                // A result of a pointer's type: the type comes before the result.
                if let [_, kind, result, ..] = instruction
                    && let Some((_, storage)) = pointers.iter().find(|(id, _)| id == kind)
                {
                    of_value.insert(*result, *storage);
                }
            }
        }
        position += instruction.len();
    }
    loads
}
