//! Random item functions in LLVM's assembly.
//!
//! Blocks are joined at random, so that loops with several latches and exits come up. Edges into a loop go to its header. Each edge that goes back
//! has a counter, so that functions end.

use std::fmt::Write;

use crate::random::Random;

/// Variables of 32 bits, and then as many of 64 bits. The first of each begins with the item's number, the others with what all items have.
const VARIABLES: u64 = 4;
/// How often an edge that goes back is taken at most.
const REPETITIONS: u64 = 3;
/// A number that few values are.
const RARE: u64 = 77;

/// A variable, which is the first one in one of `n` cases.
fn variable(random: &mut Random, n: u64) -> u64 {
    if random.below(n) == 0 { 0 } else { 1 + random.below(VARIABLES - 1) }
}

/// The blocks of a function, of which some are loops: from a header to a last block. Of two loops, one contains the other, or they are disjoint.
struct Shape {
    n_blocks: u64,
    loops: Vec<(u64, u64)>,
}

impl Shape {
    fn new(random: &mut Random) -> Self {
        let n_blocks = 4 + random.below(9);
        let mut loops: Vec<(u64, u64)> = Vec::new();
        for _ in 0..random.below(6) {
            let first = random.below(n_blocks - 1);
            let last = first + random.below(n_blocks - 1 - first);
            let fits = |&(head, end): &(u64, u64)| {
                end < first || last < head || (head <= first && last <= end) || (first <= head && end <= last)
            };
            if loops.iter().all(fits) {
                loops.push((first, last));
            }
        }
        Self { n_blocks, loops }
    }

    /// A later block to go to.
    fn forwards(&self, random: &mut Random, block: u64) -> u64 {
        let to = (block + 1 + random.below(4)).min(self.n_blocks - 1);
        let entered = self.loops.iter().filter(|(head, end)| (block + 1..=to).contains(head) && to <= *end);
        entered.map(|(head, _)| *head).min().unwrap_or(to)
    }

    /// The header of a loop around the block.
    fn backwards(&self, random: &mut Random, block: u64) -> Option<u64> {
        let around: Vec<u64> =
            self.loops.iter().filter(|(head, end)| (head..=end).contains(&&block)).map(|(head, _)| *head).collect();
        (!around.is_empty()).then(|| around[random.below(around.len() as u64) as usize])
    }
}

/// A function `f(captures, captured number, item)`.
pub(super) fn program(random: &mut Random) -> String {
    let text = "declare i32 @llvm.umin.i32(i32, i32) declare i32 @unknown(i32)
        define void @f(ptr %env, i32 %n, i64 %x) { start: %id = trunc i64 %x to i32 %m = zext i32 %n to i64
        %mine = alloca [4 x i32]\n";
    blocks(random, text, &mut instruction) + "trap: unreachable }"
}

/// A step of a block: writes instructions whose names begin with one that no other step has.
pub(in crate::spmd) type Step<'a> = &'a mut dyn FnMut(&mut Random, &mut String, &str);

/// The text of an entry, and behind it the blocks `%b0` and so on. The entry has the numbers `%id` and `%x` of the item, and `%n` and `%m` of all.
/// Some blocks end with an edge to `%trap`.
pub(in crate::spmd) fn blocks(random: &mut Random, entry: &str, step: Step<'_>) -> String {
    let shape = Shape::new(random);
    let n_blocks = shape.n_blocks;
    let mut text = entry.to_owned();
    for v in 0..VARIABLES {
        let (narrow, wide) = if v == 0 { ("%id", "%x") } else { ("%n", "%m") };
        line(&mut text, format!("%v{v} = alloca i32 %w{v} = alloca i64"));
        line(&mut text, format!("store i32 {narrow}, ptr %v{v} store i64 {wide}, ptr %w{v}"));
    }
    for block in 0..n_blocks {
        line(&mut text, format!("%count{block} = alloca i32 store i32 0, ptr %count{block}"));
    }
    text += "br label %b0\n";
    for block in 0..n_blocks {
        line(&mut text, format!("b{block}:"));
        for number in 0..random.below(4) {
            step(random, &mut text, &format!("%t{block}.{number}"));
        }
        end(random, &mut text, block, &shape);
    }
    text
}

pub(in crate::spmd) fn line(text: &mut String, line: String) {
    writeln!(text, "{line}").expect("text");
}

/// Some computation from variables to a variable.
fn instruction(random: &mut Random, text: &mut String, name: &str) {
    let (to, constant, kind) = begun(random, text, name);
    let (narrow, wide) = match kind {
        13 | 14 => {
            line(text, format!("{name}.p = getelementptr i32, ptr %env, i64 {name}.wa"));
            (format!("load i32, ptr {name}.p"), None)
        }
        15 => {
            line(text, format!("{name}.i = and i64 {name}.wa, 3"));
            line(
                text,
                format!("{name}.p = getelementptr i32, ptr %mine, i64 {name}.i store i32 {name}.b, ptr {name}.p"),
            );
            (format!("load i32, ptr {name}.p"), None)
        }
        16 => {
            let access = match constant {
                0 => "load i32, ptr %mine",
                1 => "load volatile i32, ptr %env",
                2 => "atomicrmw add ptr %env, i32 1 monotonic",
                _ => "load i32, ptr %env",
            };
            (access.to_owned(), None)
        }
        11 => (format!("call i32 @unknown(i32 {name}.a)"), None),
        20 => {
            let size = ["i8", "i32", "[3 x i16]", "{ i32, i64 }", "i32"][constant as usize];
            let index = if constant == 4 { format!("i32 {name}.a") } else { format!("i64 {name}.wa") };
            line(text, format!("{name}.p = getelementptr {size}, ptr %env, {index}"));
            (String::new(), Some(format!("ptrtoint ptr {name}.p to i64")))
        }
        pure => computed(pure, constant, text, name),
    };
    store(text, name, &narrow, wide, to);
}

/// Some computation from variables to a variable, which needs no memory and no other function than `llvm.umin.i32`.
pub(in crate::spmd) fn computation(random: &mut Random, text: &mut String, name: &str) {
    let (to, constant, kind) = begun(random, text, name);
    let kind = if matches!(kind, 11 | 13..=16 | 20) { constant } else { kind };
    let (narrow, wide) = computed(kind, constant, text, name);
    store(text, name, &narrow, wide, to);
}

/// Loads the operands of a step. Returns the number of the variable that gets its result, a constant, and its kind.
fn begun(random: &mut Random, text: &mut String, name: &str) -> (u64, u64, u64) {
    let [a, b, to] = [(); 3].map(|()| variable(random, 6));
    line(text, format!("{name}.a = load i32, ptr %v{a} {name}.b = load i32, ptr %v{b}"));
    line(text, format!("{name}.wa = load i64, ptr %w{a} {name}.wb = load i64, ptr %w{b}"));
    let constant = random.below(5);
    (to, constant, random.below(22))
}

/// The instruction of a kind, and of which width its result is.
fn computed(kind: u64, constant: u64, text: &mut String, name: &str) -> (String, Option<String>) {
    match kind {
        0 => (format!("xor i32 {name}.a, {name}.b"), None),
        1 => (format!("add i32 {name}.a, {name}.b"), None),
        2 => (format!("sub i32 {name}.a, {name}.b"), None),
        3 => (format!("add i32 {name}.a, {constant}"), None),
        4 => (format!("mul i32 {name}.a, {}", [-3, 2, 12, 256, 1 << 30][constant as usize]), None),
        5 => (format!("shl i32 {name}.a, {constant}"), None),
        6 => (format!("trunc i64 {name}.wa to i32"), None),
        7 => (format!("freeze i32 {name}.a"), None),
        8 | 9 => (format!("add i32 0, {constant}"), None),
        10 => (format!("call i32 @llvm.umin.i32(i32 {name}.a, i32 {name}.b)"), None),
        12 => {
            line(text, format!("{name}.c = trunc i32 {name}.a to i1"));
            (format!("select i1 {name}.c, i32 {name}.b, i32 5"), None)
        }
        17 => (String::new(), Some(format!("zext i32 {name}.a to i64"))),
        18 => (String::new(), Some(format!("sext i32 {name}.a to i64"))),
        19 => (String::new(), Some(format!("add i64 {name}.wa, {name}.wb"))),
        _ => (String::new(), Some(format!("mul i64 {name}.wa, {}", [-1, 3, 7, 1_i64 << 40, 0][constant as usize]))),
    }
}

/// Stores the result of a step to a variable.
fn store(text: &mut String, name: &str, narrow: &str, wide: Option<String>, to: u64) {
    match wide {
        Some(wide) => line(text, format!("{name} = {wide} store i64 {name}, ptr %w{to}")),
        None => line(text, format!("{name} = {narrow} store i32 {name}, ptr %v{to}")),
    }
}

/// The end of a block.
fn end(random: &mut Random, text: &mut String, block: u64, shape: &Shape) {
    if block == shape.n_blocks - 1 {
        return line(text, "ret void".to_owned());
    }
    let [a, b, c] = [(); 3].map(|()| shape.forwards(random, block));
    let back = shape.backwards(random, block);
    let v = variable(random, 3);
    line(text, format!("%s{block} = load i32, ptr %v{v} %s{block}.s = lshr i32 %s{block}, {}", random.below(3)));
    line(text, format!("%s{block}.c = trunc i32 %s{block}.s to i1"));
    match random.below(16) {
        0 => line(text, "ret void".to_owned()),
        1 => line(text, format!("br label %b{a}")),
        2 => line(text, format!("switch i32 %s{block}, label %b{a} [ i32 1, label %b{b} i32 4, label %b{c} ]")),
        3 => {
            line(text, format!("%s{block}.r = icmp eq i32 %s{block}, {RARE}"));
            line(text, format!("br i1 %s{block}.r, label %trap, label %b{a}"));
        }
        4..=12 if back.is_some() => {
            let back = back.expect("there is one");
            line(text, format!("%count{block}.a = load i32, ptr %count{block}"));
            line(text, format!("%count{block}.b = add i32 %count{block}.a, 1"));
            line(text, format!("store i32 %count{block}.b, ptr %count{block}"));
            line(text, format!("%count{block}.c = icmp ult i32 %count{block}.a, {REPETITIONS}"));
            // Some loops have nothing but the counter to end them.
            let condition = if random.below(3) == 0 { "true".to_owned() } else { format!("%s{block}.c") };
            line(text, format!("%count{block}.d = and i1 %count{block}.c, {condition}"));
            line(text, format!("br i1 %count{block}.d, label %b{back}, label %b{a}"));
        }
        _ => line(text, format!("br i1 %s{block}.c, label %b{a}, label %b{b}")),
    }
}
