//! Random kernels at group scope, run for several work-items whose variables lie at different addresses.
//!
//! Where the analysis refuses none, all work-items must run the same blocks, call `use` with the same numbers, and end alike. Variables hold
//! addresses and numbers, at constant and other distances. Addresses come back from memory, from loops and from functions that kept them.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use super::*;
use crate::analyses::uniformity::Flow;
use crate::llvm::{PassTuning, ValueKind};
use crate::passes::tests::{context, module};
use crate::random::Random;

const KERNELS: u64 = 1500;
const ITEMS: u64 = 4;
/// Blocks that a work-item runs at most.
const FUEL: usize = 60;
/// Variables of [`CELLS`] numbers or addresses, and those that have one address or number each, which passes make SSA values of.
const VARIABLES: u64 = 3;
const CELLS: u64 = 4;
const PLACES: u64 = 4;
/// Where memory is that work-items share. Each has its own here, so that none waits for another one.
const SHARED: u64 = 1 << 20;

/// What a step does. Those from [`DECIDES`] on may tell one work-item from another, and a kernel has few kinds of them.
const STEPS: u64 = 19;
const DECIDES: u64 = 13;

/// A step: `%t` is the beginning of its names.
fn step(random: &mut Random, kind: u64, t: &str) -> String {
    let mut below = |bound| random.below(bound);
    let (a, b, to, variable, constant) = (below(PLACES), below(PLACES), below(PLACES), below(VARIABLES), below(CELLS));
    let pointers = format!("{t}.a = load ptr, ptr %p{a} {t}.b = load ptr, ptr %p{b}");
    let numbers = format!("{t}.x = load i64, ptr %n{a} {t}.y = load i64, ptr %n{b}");
    let pointer = |value: &str| format!("store ptr {value}, ptr %p{to}");
    let number = |value: &str| format!("store i64 {value}, ptr %n{to}");
    let [of_variable, as_pointer, as_number] = [format!("%v{variable}"), pointer(t), number(t)];
    match kind {
        0 => pointer(&of_variable),
        1 => format!("{pointers} {t} = getelementptr i8, ptr {t}.a, i64 {} {as_pointer}", 8 * constant),
        2 => format!(
            "{pointers} {numbers} {t}.i = and i64 {t}.x, 3 {t} = getelementptr i64, ptr %v{variable}, i64 {t}.i {as_pointer}"
        ),
        3 => format!(
            "{pointers} {numbers} {t}.c = trunc i64 {t}.x to i1 {t} = select i1 {t}.c, ptr {t}.a, ptr {t}.b {as_pointer}"
        ),
        4 | 5 => format!("{pointers} {t} = load ptr, ptr {t}.a {as_pointer}"),
        6 => format!("{pointers} store ptr {t}.a, ptr {t}.b"),
        7 => format!("{pointers} {numbers} store i64 {t}.x, ptr {t}.a"),
        8 => format!("{numbers} {t} = add i64 {t}.x, {constant} {as_number}"),
        9 => format!("{numbers} {t} = xor i64 {t}.x, {t}.y {as_number}"),
        10 => format!("{pointers} {t}.e = icmp eq ptr {t}.a, null {t} = zext i1 {t}.e to i64 {as_number}"),
        11 => format!(
            "call void @llvm.memcpy.p0.p0.i64(ptr %v{variable}, ptr %v{}, i64 {}, i1 false)",
            a % VARIABLES,
            8 * (1 + constant)
        ),
        12 => format!("{numbers} call void @use(i64 {t}.x) call void @barrier()"),
        13 => format!("{pointers} {t}.e = icmp ult ptr {t}.a, {t}.b {t} = zext i1 {t}.e to i64 {as_number}"),
        14 => format!("{pointers} {t} = load i64, ptr {t}.a {as_number}"),
        15 => format!(
            "{pointers} {t}.x = ptrtoint ptr {t}.a to i64 {t}.y = ptrtoint ptr {t}.b to i64 {t} = sub i64 {t}.x, {t}.y {as_number}"
        ),
        16 => format!("{pointers} {t} = ptrtoint ptr {t}.a to i64 {as_number}"),
        17 => format!("{pointers} {t} = call ptr @llvm.ptrmask.p0.i64(ptr {t}.a, i64 -64) {as_pointer}"),
        _ => format!("{pointers} call void @keep(ptr {t}.a) {t} = call ptr @kept() {as_pointer}"),
    }
}

/// A kernel of random blocks. `%n` and `%p` are the same for all work-items.
fn kernel(random: &mut Random) -> String {
    let mut text = "declare void @use(i64)
        declare void @keep(ptr)
        declare ptr @kept()
        declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
        declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
        declare void @barrier() convergent
        define void @k(ptr %p, i64 %n) { start:\n"
        .to_owned();
    (0..VARIABLES).for_each(|v| writeln!(text, "%v{v} = alloca [{CELLS} x i64]").expect("text"));
    (0..PLACES).for_each(|v| writeln!(text, "%p{v} = alloca ptr %n{v} = alloca i64").expect("text"));
    for v in 0..PLACES {
        let first = if v < VARIABLES { format!("%v{v}") } else { "%p".to_owned() };
        writeln!(text, "store ptr {first}, ptr %p{v} store i64 %n, ptr %n{v}").expect("text");
    }
    text += "call void @barrier() br label %b0\n";
    let n_blocks = 2 + random.below(5);
    let dangers = [DECIDES + random.below(STEPS - DECIDES), DECIDES + random.below(STEPS - DECIDES)];
    for block in 0..n_blocks {
        writeln!(text, "b{block}:").expect("text");
        for number in 0..random.below(5) {
            let kind = if random.below(6) == 0 { dangers[random.below(2) as usize] } else { random.below(DECIDES) };
            writeln!(text, "{}", step(random, kind, &format!("%t{block}.{number}"))).expect("text");
        }
        if block == n_blocks - 1 {
            text += "ret void }";
            break;
        }
        // Mostly forwards, so that kernels end.
        let mut next = || match random.below(4) {
            0 => random.below(n_blocks),
            _ => (block + 1 + random.below(2)).min(n_blocks - 1),
        };
        let (a, b) = (next(), next());
        let (condition, bit) = (random.below(PLACES), random.below(8));
        writeln!(
            text,
            "%s{block} = load i64, ptr %n{condition} %s{block}.s = lshr i64 %s{block}, {bit}
            %s{block}.c = trunc i64 %s{block}.s to i1 br i1 %s{block}.c, label %b{a}, label %b{b}"
        )
        .expect("text");
    }
    text
}

/// What a work-item did that others do as well.
#[derive(PartialEq, Eq, Debug)]
enum Did {
    Block(usize),
    Used(u64),
    Returned,
    /// An access outside of all variables, or no fuel.
    Lost,
}

/// The memory of one work-item. Addresses of variables are where no others are.
struct Memory<'c> {
    variables: FxHashMap<Value<'c>, u64>,
    cells: FxHashMap<u64, u64>,
}

impl<'c> Memory<'c> {
    fn new(id: u64, instructions: &[Value<'c>]) -> Self {
        let variables: Vec<_> = instructions.iter().filter(|instruction| instruction.is(Opcode::ALLOCA)).collect();
        let n = variables.len() as u64;
        // In another order for each work-item, and apart in the bits that kernels ask for.
        let order = |number: u64| if id.is_multiple_of(2) { (number + id) % n } else { n - 1 - number };
        let address = |number: u64| (order(number) + 1) << 32 | (id * 0x35 + number * (id + 3)) << 3;
        Self {
            variables: variables.into_iter().copied().zip((0..).map(address)).collect(),
            cells: FxHashMap::default(),
        }
    }

    /// Whether an address has a cell.
    fn is_valid(&self, address: u64) -> bool {
        let is_within = |first: u64| address.wrapping_sub(first) < 8 * CELLS;
        address.is_multiple_of(8) && (is_within(SHARED) || self.variables.values().any(|first| is_within(*first)))
    }
}

/// Runs one work-item.
fn run(flow: &Flow<'_>, instructions: &[Value<'_>], id: u64, n: u64) -> Vec<Did> {
    let mut memory = Memory::new(id, instructions);
    let (mut values, mut did, mut kept) = (FxHashMap::default(), Vec::new(), SHARED);
    let (mut at, mut from) = (flow.blocks[0], None);
    for _ in 0..FUEL {
        did.push(Did::Block(flow.number(at)));
        let of = |value: Value<'_>, values: &FxHashMap<Value<'_>, u64>, memory: &Memory<'_>| {
            let is_address = matches!(value.value_type().kind(), TypeKind::Pointer(_));
            match value.integer() {
                Some(constant) => constant,
                None if value.kind() == ValueKind::Argument && is_address => SHARED,
                None if value.kind() == ValueKind::Argument => n,
                None => memory.variables.get(&value).or(values.get(&value)).copied().unwrap_or(0),
            }
        };
        let block = at.instructions();
        let chosen: Vec<u64> = block
            .iter()
            .filter(|instruction| instruction.is(Opcode::PHI))
            .map(|phi| {
                let incoming = phi.incoming().into_iter().find(|(_, block)| Some(*block) == from);
                of(incoming.expect("the block before").0, &values, &memory)
            })
            .collect();
        let mut next = None;
        for (index, &instruction) in block.iter().enumerate() {
            let operand = |index| of(instruction.operand(index), &values, &memory);
            let result = match instruction.opcode().expect("an instruction") {
                Opcode::PHI => chosen[index],
                Opcode::ALLOCA => continue,
                Opcode::ADD => operand(0).wrapping_add(operand(1)),
                Opcode::SUB => operand(0).wrapping_sub(operand(1)),
                Opcode::XOR => operand(0) ^ operand(1),
                Opcode::AND => operand(0) & operand(1),
                Opcode::LSHR => operand(0) >> operand(1),
                Opcode::TRUNC => operand(0) & 1,
                Opcode::ZEXT | Opcode::PTR_TO_INT => operand(0),
                Opcode::SELECT => operand(if operand(0) == 1 { 1 } else { 2 }),
                Opcode::GET_ELEMENT_PTR => {
                    // By bytes, or by numbers of 64 bits.
                    let is_by_bytes = instruction.operand(1).integer().is_some();
                    operand(0).wrapping_add(operand(1) * if is_by_bytes { 1 } else { 8 })
                }
                Opcode::INTEGER_COMPARISON => {
                    // With null, or by order.
                    let is_with_null = instruction.operand(1).kind() == ValueKind::Null;
                    u64::from(if is_with_null { operand(0) == 0 } else { operand(0) < operand(1) })
                }
                Opcode::LOAD | Opcode::STORE => {
                    let is_load = instruction.is(Opcode::LOAD);
                    let address = operand(u32::from(!is_load));
                    if !memory.is_valid(address) {
                        did.push(Did::Lost);
                        return did;
                    }
                    if is_load {
                        memory.cells.get(&address).copied().unwrap_or(0)
                    } else {
                        let value = operand(0);
                        memory.cells.insert(address, value);
                        continue;
                    }
                }
                Opcode::CALL => match instruction.callee().expect("a function").name() {
                    "use" => {
                        did.push(Did::Used(operand(0)));
                        continue;
                    }
                    "keep" => {
                        kept = operand(0);
                        continue;
                    }
                    "kept" => kept,
                    "barrier" => continue,
                    "llvm.ptrmask.p0.i64" => operand(0) & operand(1),
                    _ => {
                        let (to, source, size) = (operand(0), operand(1), operand(2));
                        let copied: Vec<_> = (0..size)
                            .step_by(8)
                            .map(|byte| memory.cells.get(&(source + byte)).copied().unwrap_or(0))
                            .collect();
                        (to..).step_by(8).zip(copied).for_each(|(to, value)| _ = memory.cells.insert(to, value));
                        continue;
                    }
                },
                Opcode::BRANCH => {
                    let successors = at.successors();
                    let is_second = successors.len() > 1 && operand(0) == 0;
                    next = Some(successors[usize::from(is_second)]);
                    continue;
                }
                Opcode::RET => {
                    did.push(Did::Returned);
                    return did;
                }
                other => panic!("{other:?} is not made"),
            };
            values.insert(instruction, result);
        }
        (from, at) = (Some(at), next.expect("an end of the block"));
    }
    did.push(Did::Lost);
    did
}

#[test]
fn work_items_do_the_same_in_random_kernels_that_are_not_refused() {
    let context = context();
    let (mut taken, mut refused_rightly) = (0, 0);
    for seed in 1..=KERNELS {
        let mut random = Random::new(seed);
        let module = module(&context, &kernel(&mut random));
        if seed % 2 == 0 {
            module.run("mem2reg", None, &PassTuning::DEVICE).expect("it runs");
        }
        let kernel = module.function("k").expect("the kernel");
        let (flow, instructions) = (Flow::of(kernel), kernel.instructions());
        let is_taken = refusal(kernel, None).is_none();
        taken += u64::from(is_taken);
        let mut is_same = true;
        for n in [0, 1, 6, 0x55] {
            let first = run(&flow, &instructions, 0, n);
            for id in 1..ITEMS {
                let other = run(&flow, &instructions, id, n);
                is_same &= first == other;
                assert!(
                    !is_taken || first == other,
                    "seed {seed}, n {n}, item {id}: {other:?}, another one {first:?}\n{module}"
                );
            }
        }
        refused_rightly += u64::from(!is_same);
    }
    // Enough of each kind comes up, also of those that work-items would run apart.
    let shares = [taken, refused_rightly].map(|part| part * 100 / KERNELS);
    assert!((20..=90).contains(&shares[0]) && shares[1] >= 3, "{shares:?}");
}
