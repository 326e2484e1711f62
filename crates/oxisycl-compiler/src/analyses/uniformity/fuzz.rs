//! Random kernels, run for several work-items, against what the analysis says of them.
//!
//! Blocks are joined at random, so that loops with several entries and exits come up. Variables are in memory in half of the kernels and phis in the
//! others.

use std::fmt::Write;

use super::*;
use crate::llvm::PassTuning;
use crate::passes::tests::{context, module};
use crate::random::Random;

const KERNELS: u64 = 1500;
const ITEMS: u64 = 8;
/// Blocks that a work-item runs at most.
const FUEL: usize = 300;
/// The first one has the position of the work-item until another value is stored to it.
const VARIABLES: u64 = 5;

/// A variable, which is the first one in one of `n` cases.
fn variable(random: &mut Random, n: u64) -> u64 {
    if random.below(n) == 0 { 0 } else { 1 + random.below(VARIABLES - 1) }
}

/// A kernel of random blocks. `%n` is the same for all work-items.
fn kernel(random: &mut Random) -> String {
    let n_blocks = 4 + random.below(7);
    let mut text = "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
        define void @k(i32 %n) { start: %id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
        .to_owned();
    (0..VARIABLES).for_each(|v| writeln!(text, "%v{v} = alloca i32").expect("text"));
    for v in 0..VARIABLES {
        let first = if v == 0 { "%id" } else { "%n" };
        writeln!(text, "store i32 {first}, ptr %v{v}").expect("text");
    }
    text += "br label %b0\n";
    for block in 0..n_blocks {
        writeln!(text, "b{block}:").expect("text");
        for step in 0..random.below(3) {
            let (a, to) = (variable(random, 12), variable(random, 12));
            let b = variable(random, 12);
            let name = format!("%t{block}.{step}");
            writeln!(text, "{name}.a = load i32, ptr %v{a} {name}.b = load i32, ptr %v{b}").expect("text");
            match random.below(6) {
                0 => writeln!(text, "{name} = xor i32 {name}.a, {name}.b"),
                4 | 5 => writeln!(text, "{name} = add i32 0, {}", random.below(8)),
                1 => writeln!(text, "{name} = add i32 {name}.a, {}", 1 + random.below(3)),
                2 => writeln!(
                    text,
                    "{name}.c = trunc i32 {name}.a to i1 {name} = select i1 {name}.c, i32 {name}.b, i32 5"
                ),
                _ => writeln!(text, "{name} = add i32 {name}.a, {name}.b"),
            }
            .expect("text");
            writeln!(text, "store i32 {name}, ptr %v{to}").expect("text");
        }
        // Mostly forwards, so that kernels end.
        let mut next = || match random.below(4) {
            0 => random.below(n_blocks),
            _ => (block + 1 + random.below(3)).min(n_blocks - 1),
        };
        let [a, b, c] = [next(), next(), next()];
        let v = variable(random, 3);
        match random.below(24) {
            _ if block == n_blocks - 1 => writeln!(text, "ret void"),
            0 => writeln!(text, "unreachable"),
            1 => writeln!(text, "ret void"),
            2 => writeln!(text, "br label %b{a}"),
            3 => writeln!(
                text,
                "%s{block} = load i32, ptr %v{v} switch i32 %s{block}, label %b{a} [ i32 1, label %b{b} i32 4, label %b{c} ]"
            ),
            _ => writeln!(
                text,
                "%s{block} = load i32, ptr %v{v} %s{block}.s = lshr i32 %s{block}, {}
                %s{block}.c = trunc i32 %s{block}.s to i1 br i1 %s{block}.c, label %b{a}, label %b{b}",
                random.below(3)
            ),
        }
        .expect("text");
    }
    text + "}"
}

#[derive(PartialEq, Eq, Debug)]
enum End {
    Returned,
    /// In a panic, or out of fuel.
    Lost,
}

/// Runs one work-item. What it does that is proved: the blocks, with the values there that are the same for all.
fn run(analysis: &Analysis<'_>, id: u64, n: u64) -> (Vec<(usize, Vec<u64>)>, End) {
    let (mut values, mut memory, mut trace) = (FxHashMap::default(), FxHashMap::default(), Vec::new());
    let (mut at, mut from) = (analysis.flow.blocks[0], None);
    for _ in 0..FUEL {
        let number = analysis.flow.number(at);
        let mut same = Vec::new();
        let instructions = at.instructions();
        let of = |value: Value<'_>, values: &FxHashMap<Value<'_>, u64>| match value.integer() {
            Some(constant) => constant,
            None if value.kind() == ValueKind::Argument => n,
            None => values.get(&value).copied().unwrap_or(0),
        };
        // All phis choose by what was before the block.
        let chosen: Vec<u64> = instructions
            .iter()
            .filter(|instruction| instruction.is(Opcode::PHI))
            .map(|phi| {
                let incoming = phi.incoming().into_iter().find(|(_, block)| Some(*block) == from);
                of(incoming.expect("the block before").0, &values)
            })
            .collect();
        let mut next = None;
        for (index, &instruction) in instructions.iter().enumerate() {
            let operand = |index| of(instruction.operand(index), &values);
            let bits = |bits: u64| bits & u64::from(u32::MAX);
            let result = match instruction.opcode().expect("an instruction") {
                Opcode::PHI => chosen[index],
                Opcode::CALL => id,
                Opcode::ALLOCA => continue,
                Opcode::ADD => bits(operand(0) + operand(1)),
                Opcode::XOR => operand(0) ^ operand(1),
                Opcode::LSHR => operand(0) >> operand(1),
                Opcode::TRUNC => operand(0) & 1,
                Opcode::SELECT => operand(if operand(0) == 1 { 1 } else { 2 }),
                Opcode::LOAD => memory.get(&instruction.operand(0)).copied().unwrap_or(0),
                Opcode::STORE => {
                    memory.insert(instruction.operand(1), operand(0));
                    continue;
                }
                Opcode::BRANCH | Opcode::SWITCH => {
                    let successors = at.successors();
                    let taken = if successors.len() == 1 {
                        0
                    } else if instruction.is(Opcode::BRANCH) {
                        usize::from(operand(0) == 0)
                    } else {
                        let is_case = |case: &usize| instruction.case(*case as u32).integer() == Some(operand(0));
                        (1..successors.len()).find(is_case).unwrap_or(0)
                    };
                    next = Some(successors[taken]);
                    continue;
                }
                Opcode::RET => {
                    trace.extend(analysis.ways[number].is_none().then_some((number, same)));
                    return (trace, End::Returned);
                }
                Opcode::UNREACHABLE => return (trace, End::Lost),
                other => panic!("{other:?} is not made"),
            };
            values.insert(instruction, result);
            if analysis.state(instruction) == State::Uniform {
                same.push(result);
            }
        }
        trace.extend(analysis.ways[number].is_none().then_some((number, same)));
        (from, at) = (Some(at), next.expect("an end of the block"));
    }
    (trace, End::Lost)
}

#[test]
fn what_is_proved_of_random_kernels_holds() {
    let context = context();
    let (mut proved, mut unproved, mut same, mut differs) = (0, 0, 0, 0);
    for seed in 1..=KERNELS {
        let mut random = Random::new(seed);
        let text = kernel(&mut random);
        let module = module(&context, &text);
        if seed % 2 == 0 {
            module.run("mem2reg", None, &PassTuning::DEVICE).expect("it runs");
        }
        let analysis = Analysis::of(module.function("k").expect("the kernel"));
        // The entry says nothing.
        for block in &analysis.flow.blocks[1..] {
            let is_proved = analysis.ways[analysis.flow.number(*block)].is_none();
            *if is_proved { &mut proved } else { &mut unproved } += 1;
            for instruction in block.instructions() {
                let is_same = analysis.state(instruction) == State::Uniform;
                *if is_same { &mut same } else { &mut differs } += 1;
            }
        }
        for n in [0, 1, 6] {
            let items: Vec<_> = (0..ITEMS).map(|id| run(&analysis, id, n)).collect();
            let (longest, _) = items.iter().max_by_key(|(trace, _)| trace.len()).expect("an item");
            for (id, (trace, end)) in items.iter().enumerate() {
                // One that ends early has come as far as the others on the same way.
                let is_right = longest.starts_with(trace) && (*end == End::Lost || trace.len() == longest.len());
                assert!(is_right, "seed {seed}, n {n}, item {id}: {trace:?}, another one {longest:?}\n{module}");
            }
        }
    }
    // Enough of both kinds comes up.
    let share = |part: usize, other: usize| part * 100 / (part + other);
    let shares = [share(proved, unproved), share(same, differs)];
    assert!(shares.iter().all(|share| (20..=90).contains(share)), "{shares:?}");
}
